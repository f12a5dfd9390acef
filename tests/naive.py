"""Each formula the slow, obvious way, straight from the paper's definitions.

A history is a list of `Past`: the duel of tick s = 1, 2, ... in order. Nothing here is incremental.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
from scipy import stats


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


def double_thompson(mean, n, alpha, t, rng, is_plus=False):
    """Wu and Liu's Algorithm 1 for one tick, with matrices: mu^ = S / N~, N~ (0 for unseen)."""
    k = len(mean)
    s = np.clip(np.nan_to_num(mean) * n, 0, n)
    with np.errstate(divide="ignore", invalid="ignore"):
        width = np.sqrt(alpha * math.log(t) / n)
        upper = np.where(n > 0, s / n + width, 1.0)
        lower = np.where(n > 0, s / n - width, 0.0)
    off = ~np.eye(k, dtype=bool)
    copeland = ((upper > 0.5) & off).sum(axis=1)
    candidates = np.flatnonzero(copeland == copeland.max())
    theta = np.full((k, k), 0.5)
    for i in range(k):
        for j in range(i + 1, k):
            theta[i, j] = rng.beta(s[i, j] + 1, n[i, j] - s[i, j] + 1)
            theta[j, i] = 1 - theta[i, j]
    wins = ((theta > 0.5) & off).sum(axis=1)
    best = [i for i in candidates if wins[i] == max(wins[candidates])]
    first = rng.choice(best)
    if is_plus:  # D-TS+: the least sum of r_ij / d(theta_ij, 1/2)
        zeta = wins / (k - 1)

        def promised(i):
            others = [j for j in range(k) if j != i]
            return sum(
                (zeta.max() - (zeta[i] + zeta[j]) / 2) / max(entropy(theta[i, j]), 1e-12)
                for j in others
            )

        first = min(best, key=promised)
    strength = np.full(k, -1.0)
    for i in range(k):
        if i == first:
            strength[i] = 0.5
        elif lower[i, first] <= 0.5:
            strength[i] = rng.beta(s[i, first] + 1, n[i, first] - s[i, first] + 1)
    return int(first), int(np.argmax(strength))


def entropy(p):
    """d(p, 1/2)."""
    return sum(x * math.log(2 * x) for x in (p, 1 - p) if x > 0)


def rmed(n_arms, read):
    """RMED1 line by line, as a generator of pairs; read(t) gives mu^ and N~ at tick t."""
    t = 1
    for i in range(n_arms):
        for j in range(i + 1, n_arms):
            t += 1
            yield i, j
    current = remaining = set(range(n_arms))
    coming = set()
    while True:
        for arm in sorted(current):
            mean, n = read(t)
            beaten_by = {
                i: {j for j in range(n_arms) if j != i and n[i, j] > 0 and mean[i, j] <= 0.5}
                for i in range(n_arms)
            }

            unlikely = [
                sum(n[i, j] * entropy(mean[i, j]) for j in beaten_by[i]) for i in range(n_arms)
            ]
            best = int(np.argmin(unlikely))
            shown = {j: mean[arm, j] if n[arm, j] > 0 else 0.5 for j in range(n_arms) if j != arm}
            enemies = {j for j, m in shown.items() if m <= 0.5}
            opponent = best if best in enemies or not enemies else min(shown, key=shown.get)
            remaining = remaining - {arm}
            limit = min(unlikely) + math.log(t) + 0.3 * n_arms**1.01
            coming |= {j for j in range(n_arms) if j not in remaining and unlikely[j] <= limit}
            t += 1
            yield arm, opponent
        current = remaining = coming
        coming = set()


def maillard(n, n_tilde, s, spread, noise, beyond):
    """The chance of each pair under Maillard sampling: K×K, the leader's row, its self-duel too.

    Strengths are at their mean: the sweeps of the rule go there.
    """
    k = len(n)
    off = ~np.eye(k, dtype=bool)
    precision, mean = np.zeros((k, k)), np.zeros((k, k))
    for i, j in zip(*np.nonzero(off & (n_tilde > 0)), strict=True):
        precision[i, j] = 4 * n_tilde[i, j] / (2 - n_tilde[i, j] / n[i, j])
        mean[i, j] = min(max(s[i, j] / n_tilde[i, j], 0), 1) - 1 / 2
    with np.errstate(divide="ignore"):  # of y_ij = theta_i - theta_j + e_ij + error
        weight = 1 / (noise**2 + 1 / precision)
    matrix = np.diag(1 / spread**2 + weight.sum(axis=1)) - weight
    theta = np.linalg.solve(matrix, (weight * mean).sum(axis=1))
    lowest = np.full(k, math.inf)
    for i, j in zip(*np.nonzero(off), strict=True):
        prior = theta[i] - theta[j], 1 / matrix[i, i] + 1 / matrix[j, j]
        own = noise**2 * precision[i, j] / (1 + noise**2 * precision[i, j])
        centre = (1 - own) * prior[0] + own * mean[i, j]
        variance = (1 - own) * noise**2 + (1 - own) ** 2 * prior[1]
        alone = 1 / (precision[i, j] + 1 / (2 * spread**2 + noise**2))
        z = max(
            centre / math.sqrt(variance),
            alone * precision[i, j] * mean[i, j] / math.sqrt(alone) - beyond,
        )
        lowest[i] = min(lowest[i], z)
    against = -np.minimum(0, math.log(2) + stats.norm.logcdf(lowest))
    leader = int(np.argmax(lowest))
    runner_up = (lowest == np.delete(lowest, leader).max()) & (np.arange(k) != leader)
    share = np.exp(-against) / (1 + against)
    share[runner_up] = np.exp(-against[runner_up])
    share /= share[leader]
    share[leader] = 0
    chance = np.zeros((k, k))
    chance[leader] = share / max(1, share.sum())
    chance[leader, leader] = 1 - chance[leader].sum()
    return chance


def learned_law(history, t, ages, tells):
    """2 (1 - KM) at tick t: Kaplan-Meier over the duels that tell, censored at their age.

    `tells(past)` says which; a duel is watched up to age min(t - s, ages).
    """
    tau, survival = [0.0], 1.0
    for age in range(1, ages + 1):
        at_risk = events = 0
        for s, past in enumerate(history[: t - 1], start=1):
            if tells(past) and t - s >= age:
                came = past.delay if past.won else math.inf
                at_risk += came >= age
                events += came == age
        if at_risk:
            survival *= 1 - events / at_risk
        tau.append(min(1.0, 2 * (1 - survival)))
    return np.array(tau)


def first_bonus(votes, n_arms):
    """What being shown first adds, from (first, second, first_won) triples, and its weight.

    For each pair shown in both orders the mean of the two shares, less 1/2, weighted with the
    inverse of its variance at most. Self-duels tell nothing.
    """
    told = []
    for i in range(n_arms):
        for j in range(i + 1, n_arms):
            one = [won for first, second, won in votes if (first, second) == (i, j)]
            other = [won for first, second, won in votes if (first, second) == (j, i)]
            if one and other:
                variance = (1 / len(one) + 1 / len(other)) / 16
                told.append(((np.mean(one) + np.mean(other)) / 2 - 0.5, 1 / variance))
    weight = sum(w for _, w in told)
    return (sum(bonus * w for bonus, w in told) / weight if weight else 0.0), weight


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


def is_behind(n, n_tilde, s, i, j, error, t):
    """Whether arm i's Borda score is below arm j's, but for an error of at most `error`."""
    k = len(n)
    steps = []  # the ranges of a martingale's steps, one a duel
    for a in range(k):
        for b in range(a + 1, k):
            steps += round(n[a, b]) * [(a in (i, j)) + (b in (i, j))]
    v = sum(step**2 for step in steps) / 4  # the variance of a step is at most range^2 / 4
    r = (t / k) * (1 + 1 / (k - 1)) / 20  # fixed in advance
    radius = math.sqrt(2 * (v + r) * math.log(math.sqrt((v + r) / r) / error))
    others = [(a, b) for a in (i, j) for b in range(k) if b != a]
    least = min(n_tilde[pair] for pair in others)
    if least <= 0:
        return False
    # (k - 1) least (b_j - b_i), but for what opponents that count more can lift j
    lead = sum(s[a, b] * (1 if a == j else -1) for a, b in others)
    return lead - sum(n_tilde[j, b] - least for b in range(k) if b != j) > radius


def borda_choice(n, n_tilde, s, active, error, t):
    """Drop arms whose Borda score is too low, then the least played pair with an active arm.

    `error` is None between two looks.
    """
    k = len(n)
    if error is not None and len(active) > 1:
        behind = {
            i for i in active for j in active - {i} if is_behind(n, n_tilde, s, i, j, error, t)
        }
        active = active - behind
    if len(active) == 1:
        (only,) = active
        return (only, only), active
    pairs = [(i, j) for i in range(k) for j in range(i + 1, k) if i in active or j in active]
    return min(pairs, key=lambda pair: n[pair]), active


def told_bets(history, t, n_arms, law, last_age, gaps, weights, asked=None):
    """E_ij at tick t under a law that is told: the likelihood of all duels, over that at 1/2.

    What comes after `last_age` is not heard. By the clock t is a time, and `asked` has the times of
    the duels.
    """
    evidence = np.ones((n_arms, n_arms))
    for i in range(n_arms):
        for j in range(n_arms):
            if i == j:
                continue
            total = 0.0
            for g, weight in zip(gaps, weights, strict=True):
                ratio = 1.0
                for s, past in enumerate(history, start=1):
                    if {past.first, past.second} != {i, j}:
                        continue
                    mu = 0.5 + g if past.first == i else 0.5 - g
                    born = s if asked is None else asked[s - 1]
                    age = min(round(t - born, 6), last_age)
                    if past.won and past.delay <= age:
                        ratio *= mu / 0.5
                    else:
                        tau = float(law.at(past.first, past.second).cdf(age))
                        ratio *= (1 - mu * tau) / (1 - 0.5 * tau)
                total += weight * ratio
            evidence[i, j] = total
    return evidence


def booked(history, t, window, first_wait=None, first_share=0.75, least=10):
    """Which duels are booked at tick t: (number, whether answered in time, stake or None for none).

    Also the duels of two arms that are neither heard in time nor booked.
    """
    window = 1 << 16 if window is None else window
    found, done, n_booked, answered, refit = [], 0, 0, 0, 0
    kappa = first_share / (2 - first_share)
    waits, stakes = {}, {}
    for now in range(1, t + 1):
        delays = [past.delay for s, past in enumerate(history[: now - 1], start=1)
                  if past.won and past.first != past.second and past.delay <= min(now - s, window)
                  ]  # fmt: skip
        n, w = len(delays), window if first_wait is None else min(first_wait, window)
        if n >= least:
            w = min(int(3.0 * sum(delays) / n * (1.0 + 20.0 / max(n, 10))) + 1, window)
        while done < now - 1:
            past, s = history[done], done + 1
            if past.first != past.second:
                wait = w if stakes[s] is None else waits[s]
                if now - s < wait:
                    break
                is_answered = bool(past.won and past.delay <= wait)
                if stakes[s] is None:  # no bet: an answer that was heard before it was passed over
                    is_answered = bool(past.won and past.delay <= min(now - s, window))
                found.append((s, is_answered, stakes[s]))
                n_booked, answered = n_booked + 1, answered + is_answered
                if n_booked >= refit:
                    share = min(1.0, (2 * answered + 10 * first_share) / (n_booked + 10))
                    kappa, refit = share / (2 - share), n_booked + n_booked // 20 + 1
            done += 1
        waits[now], stakes[now] = w, kappa if n >= least or first_wait is not None else None
    still_open = []
    for s, past in enumerate(history[: t - 1], start=1):
        in_time = past.won and past.delay <= min(t - s, window)
        if stakes[s] is not None:
            in_time = in_time and past.delay <= waits[s]
        if s > done and past.first != past.second and not in_time:
            still_open.append(s)
    return found, still_open


def eprocess(
    history, t, n_arms, window, gaps, weights, first_wait=None, first_share=0.75, least=10
):
    """E_ij at the look of tick t: every booked duel's factor, multiplied by gap and then mixed.

    Returns the evidence, the wins that are booked, and the number of open duels of each pair.
    """
    wealth = np.ones((len(gaps), n_arms, n_arms))
    wins, n_open = np.zeros((n_arms, n_arms)), np.zeros((n_arms, n_arms), dtype=int)
    found, still_open = booked(history, t, window, first_wait, first_share, least)
    for s, is_answered, stake in found:
        good, bad = history[s - 1].first, history[s - 1].second
        if stake is None:
            continue
        if is_answered:
            wins[good, bad] += 1
        else:
            good, bad = bad, good
        for place, g in enumerate(gaps):
            size = 1.0 if is_answered else stake
            wealth[place, good, bad] *= 1 + 2 * size * g
            wealth[place, bad, good] *= 1 - 2 * size * g
    for s in still_open:
        i, j = history[s - 1].first, history[s - 1].second
        n_open[i, j] += 1
        n_open[j, i] += 1
    return np.einsum("g,gij->ij", weights, wealth), wins, n_open


def planned_bets(planned):
    """The gaps and weights for a planned gap, one after another, each up to 0.45."""
    gaps = [planned * 2**x for x in (-3, -2, -1, -0.5, 0, 0.5, 1, 1.5, 2)]
    if gaps[-1] < 0.45:
        step = (0.45 / gaps[-1]) ** (1 / 3)
        gaps += [gaps[-1] * step, gaps[-1] * step**2, 0.45]
    gaps = [g for g in gaps if g < 0.45] + [0.45]
    logs = [math.log(g) for g in gaps]
    wide = []  # how far it is to the neighbours on either side, halved
    for place in range(len(logs)):
        low, high = logs[max(place - 1, 0)], logs[min(place + 1, len(logs) - 1)]
        wide.append(float(high - low) / (2 if 0 < place < len(logs) - 1 else 1))
    bump = [min((g / planned) ** 2, (planned / g) ** 1.5) * w
            for g, w in zip(gaps, wide, strict=True)]  # fmt: skip
    weights = [0.9 * b / sum(bump) + 0.1 * w / sum(wide)
               for b, w in zip(bump, wide, strict=True)]  # fmt: skip
    return np.array(gaps), np.array(weights)


def tie_odds(phi, m0, m1):
    """q / p of (converted, silent) x (own arm first, other first), and alpha, by bisection."""

    def balance(alpha):
        silent = [(w, w1) for w, w1 in ((m0, m1), (1 - m0, 1 - m1))]
        return phi / alpha - sum(w * (1 - phi * w1) / (1 - alpha * w) for w, w1 in silent)

    low, high = 1e-9, 1.0
    while high - low > 1e-14:
        middle = (low + high) / 2
        low, high = (middle, high) if balance(middle) > 0 else (low, middle)
    p = [low * m0, low * (1 - m0), 1 - low * m0, 1 - low * (1 - m0)]
    q = [phi * m1, phi * (1 - m1), 1 - phi * m1, 1 - phi * (1 - m1)]
    return [b / a for a, b in zip(p, q, strict=True)], low


def tie_evidence(history, t, n_arms, margin, gaps, weights, first_wait=None):
    """Ebar_ij of conversions at the look of tick t: half E_ij, half the mean of two tie bettors."""
    plain = eprocess(history, t, n_arms, None, gaps, weights, first_wait)[0]
    made = np.ones((2, n_arms, n_arms))
    m0 = 0.5 - margin
    for s, is_answered, stake in booked(history, t, None, first_wait)[0]:
        if stake is None:
            continue
        i, j = history[s - 1].first, history[s - 1].second
        for place, h in enumerate((margin, 2 * margin)):
            odds, _ = tie_odds(2 * stake / (1 + stake), m0, m0 + h)
            own = 0 if is_answered else 2
            made[place, i, j] *= odds[own]
            made[place, j, i] *= odds[own + 1]
    return 0.5 * plain + 0.25 * made.sum(axis=0)


def wrong_by_count(losses):
    """The bound on a wrong declaration at threshold L: the sum of L^-d of the arms not winning.

    `losses` has, for each arm, the arms that it does not beat.
    """
    return lambda threshold: sum(threshold ** -len(of) for of in losses if of)


def share_interval(wins, losses, pairs, error):
    """The values of mu that Beta(1/2, 1/2) does not outdo pairs / error times, on a grid."""
    grid = np.linspace(0, 1, 20001)[1:-1]
    p = (np.arange(20000) + 0.5) / 20000
    prior = np.diff(np.arcsin(np.sqrt(np.linspace(0, 1, 20001)))) * 2 / math.pi

    def likelihood(mu):
        return wins * np.log(mu) + losses * np.log1p(-mu)

    at = likelihood(p)
    mixed = at.max() + math.log((prior * np.exp(at - at.max())).sum())
    kept = grid[mixed - likelihood(grid) < math.log(pairs / error)]
    return kept[0], kept[-1]


class Asked(NamedTuple):
    first: int
    second: int
    age: float  # at the end
    delay: float  # inf for silence
    won: float | None  # what the first arm got


def asked(history):
    """The duels of two arms, one by one."""
    rows = zip(
        history.first, history.second, history.ages, history.delay, history.first_won, strict=True
    )
    return [
        Asked(int(i), int(j), float(age), *((math.inf, None) if math.isnan(d) else (d, w)))
        for i, j, age, d, w in rows
        if i != j
    ]


def like_with_like(history):
    """The duels older than A, and those of them that were heard by age A.

    By A 95 % of all that was heard had come; it is at most half of the time so far.
    """
    every = asked(history)
    delays = sorted(duel.delay for duel in every if duel.won is not None)
    if not delays:
        return [duel for duel in every if duel.age > 1], []
    cut = next(d for d in delays if sum(x <= d for x in delays) >= 0.95 * len(delays))
    half = max(float(age) for age in history.ages) / 2
    cut = min(cut, max(1, int(half)) if history.at is None else half)
    old = [duel for duel in every if duel.age > cut]
    return old, [duel for duel in old if duel.delay <= cut]


def likeness(history):
    """The score of neighbours that are alike: its parts, and how many answers and neighbours."""
    answers = {}
    for duel in like_with_like(history)[1]:
        if duel.won != 0.5:
            low = min(duel.first, duel.second)
            told = duel.won if duel.first == low else 1 - duel.won
            answers.setdefault((low, max(duel.first, duel.second)), []).append(told)
    total = variance = alike = neighbours = 0
    for told in answers.values():
        if len(told) < 3:
            continue
        mean = math.fsum(told) / len(told)
        total += math.fsum((x - mean) ** 2 for x in told) / len(told)
        for x, y in itertools.pairwise(told):
            total += (x - mean) * (y - mean)
            variance += ((x - mean) * (y - mean)) ** 2
            alike += math.isclose(x, y)
            neighbours += 1
    return total, variance, alike, neighbours, sum(map(len, answers.values()))


def sums_by_pair(history):
    """{pair: (rate in one order plus rate in the other, its variance, duels)}, of 20 in each."""
    old, heard = like_with_like(history)
    found = {}
    for low, high in itertools.combinations(range(history.n_arms), 2):
        total = variance = 0
        counts = [
            tuple(sum((duel.first, duel.second) == way for duel in duels) for duels in (old, heard))
            for way in ((low, high), (high, low))
        ]
        if min(n for n, _ in counts) < 20:
            continue
        for n, won in counts:
            smooth = (won + 1) / (n + 2)
            total += won / n
            variance += smooth * (1 - smooth) / n
        found[low, high] = total, variance, sum(n for n, _ in counts)
    return found


def law_edges(history, delay):
    """Where the ages are cut: each quantile is the mean of those of the ordered pairs that duel."""
    laws = [delay.at(*way) for way in {(duel.first, duel.second) for duel in asked(history)}]
    last = max(float(age) for age in history.ages) / 2
    if history.window is not None:
        last = min(last, float(history.window))
    edges = set()
    for step in (0.25, 0.5, 0.75, 0.95):
        mean = sum(law.quantile(step * (1 - law.never)) for law in laws) / len(laws)
        edge = min(mean, last)
        edges.add(edge if history.at is not None else max(math.floor(edge), 1))
    return sorted(edges)


def as_told(history, delay, is_even):
    """Edges, old duels, and for each part how many answers came and were expected; covariances."""
    edges = law_edges(history, delay)
    old = [duel for duel in asked(history) if duel.age > edges[-1]]
    parts = list(itertools.pairwise([-1.0, *edges]))
    is_vote = history.feedback == "votes"
    is_alike = all(
        delay.at(duel.first, duel.second) == delay.at(duel.second, duel.first) for duel in old
    )
    came, expected = np.zeros(len(parts)), np.zeros(len(parts))
    covariance = np.zeros((len(parts), len(parts)))
    for duel in old:
        law = delay.at(duel.first, duel.second)
        mine = np.array([float(a < duel.delay <= b) for a, b in parts])
        chance = np.array([float(law.cdf(b) - law.cdf(max(a, 0.0))) for a, b in parts])
        if not is_vote and is_alike and is_even:
            chance = chance / 2
        elif not is_vote:
            if not mine.any():
                continue
            chance = chance / chance.sum()
        came += mine
        expected += chance
        covariance += np.diag(chance) - np.outer(chance, chance)
    return edges, len(old), came, expected, covariance
