"""Each formula the slow, obvious way, straight from the paper's definitions.

A history is a list of `Past`: the duel of tick s = 1, 2, ... in order. Nothing here is incremental.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np


class Past(NamedTuple):
    first: int
    second: int
    won: bool  # X_s
    delay: float  # D_s, inf for never


def y_tilde(past, s, t, window):
    """Y~_{s,t} = X_s 1(D_s <= min(M, t - s))."""
    return float(past.won and past.delay <= min(window, t - s))


def estimates(history, t, n_arms, tau, window):
    """N, N~, S, mu^ at tick t: Equations 2 to 4, duel by duel. tau(i, j, age)."""
    window = math.inf if window is None else window
    n = np.zeros((n_arms, n_arms))
    n_tilde = np.zeros((n_arms, n_arms))
    s_matrix = np.zeros((n_arms, n_arms))
    for s, past in enumerate(history[: t - 1], start=1):
        i, j = past.first, past.second
        if i == j:
            continue
        share = tau(i, j, min(t - s, window))
        y = y_tilde(past, s, t, window)
        n[i, j] += 1
        n[j, i] += 1
        n_tilde[i, j] += share
        n_tilde[j, i] += share
        s_matrix[i, j] += y
        s_matrix[j, i] += share - y
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(n_tilde > 0, s_matrix / n_tilde, np.nan)
    np.fill_diagonal(mean, 0.5)
    return n, n_tilde, s_matrix, mean


def append_only(history, t, n_arms, window):
    """Losses at once, wins on top when they come."""
    window = math.inf if window is None else window
    wins = np.zeros((n_arms, n_arms))
    for s, past in enumerate(history[: t - 1], start=1):
        wins[past.second, past.first] += 1
        wins[past.first, past.second] += y_tilde(past, s, t, window)
    return wins + wins.T, wins


def conversions_only(history, t, n_arms, window):
    window = math.inf if window is None else window
    wins = np.zeros((n_arms, n_arms))
    for s, past in enumerate(history[: t - 1], start=1):
        wins[past.first, past.second] += y_tilde(past, s, t, window)
    return wins + wins.T, wins


def upper_bounds(n, n_tilde, s_matrix, width):
    """U with U_ii = 1/2 and infinity where nothing is heard (Equation 5, Remark 1)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        upper = np.where(n_tilde > 0, s_matrix / n_tilde + np.sqrt(width * n) / n_tilde, np.inf)
    np.fill_diagonal(upper, 0.5)
    return upper


def rucb_allowed(upper, champion):
    """RUCB, lines 6 to 13: the first arms it may choose (with B afterwards), and its seconds.

    Returns {first: probability}, the new B or None, and {first: set of seconds}.
    """
    k = len(upper)
    c = [i for i in range(k) if all(upper[i, j] >= 0.5 for j in range(k))]
    b = champion if champion in c else None
    if not c:
        firsts = {i: 1 / k for i in range(k)}
    elif len(c) == 1:
        b = c[0]
        firsts = {b: 1.0}
    elif b is None:
        firsts = {i: 1 / len(c) for i in c}
    else:
        firsts = {i: 0.5 if i == b else 0.5 / (len(c) - 1) for i in c}
    seconds = {}
    for first in firsts:
        best = max(upper[j, first] for j in range(k))
        top = {j for j in range(k) if upper[j, first] == best}
        seconds[first] = top - {first} if len(top) > 1 else top
    return firsts, b, seconds


def rr_db_choice(upper, active, n):
    """Drop the beaten, then the active pair with the fewest duels; returns pair and active set."""
    beaten = {i for i in active if any(upper[i, j] < 0.5 for j in active if j != i)}
    active = active - beaten if beaten != active else active
    if len(active) == 1:
        (only,) = active
        return (only, only), active
    pairs = [(i, j) for i in sorted(active) for j in sorted(active) if i < j]
    return min(pairs, key=lambda pair: n[pair]), active


def mrr_db(n_arms, schedule, ordered, observe):
    """Algorithm 2 line by line, as a generator of pairs; observe(s, t) is Y_{s,t}.

    After the schedule's last round the least played pair is played, to the horizon.
    """
    active = list(range(n_arms))
    times = {(i, j): [] for i in range(n_arms) for j in range(n_arms)}
    t, m, gamma = 1, 1, 0.5

    def pairs():
        return [(i, j) for i in active for j in active if (i != j if ordered else i < j)]

    while True:
        if len(active) == 1:
            while True:
                yield active[0], active[0]
        if m > len(schedule):
            while True:
                pair = min(pairs(), key=lambda pair: len(times[pair]))
                times[pair].append(t)
                t += 1
                yield pair
        for pair in pairs():
            while len(times[pair]) < schedule[m - 1]:
                times[pair].append(t)
                t += 1
                yield pair
        y_bar = {}
        for i, j in pairs():
            y_bar[i, j] = sum(observe(s, t) for s in times[i, j]) / len(times[i, j])
            if not ordered:
                y_bar[j, i] = 1 - y_bar[i, j]
        beaten = [i for i in active if any(y_bar[i, j] + gamma < 0.5 for j in active if j != i)]
        if len(beaten) < len(active):
            active = [i for i in active if i not in beaten]
        gamma /= 2
        m += 1


def regret(problem, duels):
    """Equation 1."""
    gaps = [problem.matrix[problem.winner, i] - 0.5 for i in range(problem.n_arms)]
    return sum((gaps[i] + gaps[j]) / 2 for i, j in duels)


def invert(law, u, limit):
    """The smallest delay d with u < tau_d, None beyond the limit."""
    for d in range(1, limit + 1):
        if u < law.cdf(d):
            return d
    return None
