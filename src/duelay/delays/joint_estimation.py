"""Preferences and the delay law together, where no coin decided who is shown first.

With i first, a duel is answered by age a with probability mu_ij tau(a); with j first it is
(1 - mu_ij) tau(a). So the two orders of a pair tell both mu_ij and tau, however often either order
was shown. This needs two things: the order was decided without knowing how the duel would end, and
being shown first helps no arm. The likelihood is

    product over duels of  mu q_b        for an answer in the b-th stretch of ages,
                           1 - mu T_b    for silence up to its beginning,  T_b = sum of q before b.

It is maximised by expectation-maximization: a silent duel was won by the first with probability
mu (1 - T_b) / (1 - mu T_b). Standard errors are those of the whole likelihood: the error of mu_ij
allows for the law being estimated, too. All mu can be eliminated cheaply, since no two of them
share a term. What is left (Schur's complement) is a small information matrix of the law.

Pairs that were seldom shown in one of the orders tell little about the law, and many of them would
mislead it: their mu fits any answers. So the law is estimated from pairs with enough duels in both
orders, and the mu of all other pairs is estimated under that law.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core.arrays import Floats
from duelay.delays.survival import MIN_AT_RISK, Learned, Watched
from duelay.errors import InvalidValueError

MIN_DUELS = 10  # duels of a pair in each order
_STRETCHES = 60
_MIN_FINE_ANSWERS = 100_000  # answers for which stretches are finer
_MAX_ROUNDS = 5000
_CLOSE = 1e-9


class Joint(NamedTuple):
    """Preferences and the law, with their standard errors."""

    mean: Floats  # (K, K): mu_ij; nan where a pair never met
    error: Floats  # (K, K): its standard error, that of the law included
    lower: Floats  # (K, K): the ends of intervals for all pairs together, at one look
    upper: Floats
    law: Learned
    spread: float  # the variance of tau at its end, over what it would be if all mu were known


class _Counts(NamedTuple):
    """Answers and silences of each ordered pair, by stretch of ages."""

    answers: Floats  # (P, B): of low first
    silences: Floats  # (P, B + 1): ... that were watched up to the beginning of the b-th
    answers_back: Floats  # the same of high first
    silences_back: Floats


def estimate_jointly(watched: Watched, n_arms: int, error: float = 0.05) -> Joint:
    """Return preferences and the law of duels in any order; refuse duels that cannot tell them.

    With many answers, all intervals hold together but for a share `error` of experiments. Each
    keeps every mu whose likelihood under the law is not too small. The limit grows by the factor by
    which the law's own error raises the variance.
    """
    edges = _edges(watched)
    low = np.minimum(watched.first, watched.second)
    high = np.maximum(watched.first, watched.second)
    kinds, pair = np.unique(low * n_arms + high, return_inverse=True)
    counts = _count(watched, edges, pair, len(kinds), watched.first == low)
    shown = [c.sum(axis=1) for c in counts]
    enough = (shown[0] + shown[1] >= MIN_DUELS) & (shown[2] + shown[3] >= MIN_DUELS)
    if not (enough & (shown[0] + shown[2] > 0)).any():
        raise InvalidValueError(
            f"the law cannot be estimated: no pair was shown {MIN_DUELS} times in each "
            "order. Pass the order coin if it was random, or pass the delay law"
        )
    told = _Counts(*(c[enough] for c in counts))
    mu, q = _maximize(told)
    all_mu = _preferences(counts, q)
    all_mu[enough] = mu
    covariance, known = _law_covariance(told, mu, q)
    law = _learned(edges, q, covariance, watched)
    alone, full = _errors(counts, all_mu, q, covariance)
    limit = NormalDist().inv_cdf(1.0 - error / (n_arms * (n_arms - 1))) ** 2 / 2.0
    low_end, high_end = _ranges(counts, all_mu, q, limit * (full / alone) ** 2)
    i, j = np.divmod(kinds, n_arms)
    shape = (n_arms, n_arms)
    mean, spread = np.full(shape, np.nan), np.full(shape, np.nan)
    lower, upper = np.full(shape, -np.inf), np.full(shape, np.inf)
    mean[i, j], mean[j, i] = all_mu, 1.0 - all_mu
    spread[i, j] = spread[j, i] = full
    lower[i, j], upper[i, j] = low_end, high_end
    lower[j, i], upper[j, i] = 1.0 - high_end, 1.0 - low_end
    for matrix, fill in ((mean, 0.5), (spread, 0.0), (lower, 0.5), (upper, 0.5)):
        np.fill_diagonal(matrix, fill)
    wider = max(float(covariance.sum() / known.sum()), 1.0) if known.sum() > 0 else 1.0
    return Joint(mean, spread, lower, upper, law, wider)


def _edges(watched: Watched) -> Floats:
    """(B + 1,): stretches of ages with as many answers each, as far as enough duels are watched."""
    least = min(MIN_AT_RISK, watched.exit.size)
    longest = np.partition(watched.exit, -least)[-least] if least else 0.0
    delays = watched.exit[watched.is_heard & (watched.exit <= longest)]
    if not delays.size:
        raise InvalidValueError("the law cannot be estimated: no duel has been answered")
    n = _STRETCHES if delays.size < _MIN_FINE_ANSWERS else 4 * _STRETCHES
    # Short in answers at both ends: the curve is flat there, and its tail is long in time.
    ends = 0.5 ** np.arange(1, 9) / n
    shares = np.concatenate([np.arange(1, n + 1) / n, ends, 1.0 - ends])
    parts = np.unique(np.quantile(delays, shares, method="higher"))
    return np.append(-1.0, parts)  # a stretch is after its beginning, up to its end


def _count(
    watched: Watched, edges: Floats, pair: NDArray[Any], n: int, low_first: NDArray[np.bool_]
) -> _Counts:
    """Count answers by stretch, and silences by the stretches that they were watched through."""
    size = edges.size - 1
    place = np.searchsorted(edges, watched.exit, side="left") - 1  # the stretch of an answer
    passed = np.searchsorted(edges, watched.age, side="right") - 1  # stretches that it has passed
    # An answer counts if its duel has passed the answer's stretch; else the duel counts as silent.
    is_told = watched.is_heard & (place < np.minimum(passed, size))
    found = []
    for is_mine in (low_first, ~low_first):
        heard, silent = is_mine & is_told, is_mine & ~is_told
        code = pair[heard] * size + place[heard]
        found.append(np.bincount(code, minlength=n * size).reshape(n, size).astype(np.float64))
        code = pair[silent] * (size + 1) + np.clip(passed[silent], 0, size)
        rows = np.bincount(code, minlength=n * (size + 1)).reshape(n, size + 1)
        found.append(rows.astype(np.float64))
    return _Counts(*found)


def _maximize(counts: _Counts) -> tuple[Floats, Floats]:
    """Return mu (P,) of low over high, and q (B,)."""
    n, answers = _totals(counts), counts.answers.sum(axis=0) + counts.answers_back.sum(axis=0)
    won = counts.answers.sum(axis=1) + 1.0
    mu = won / (won + counts.answers_back.sum(axis=1) + 1.0)
    q = answers / (answers.sum() * 1.05)
    for _ in range(_MAX_ROUNDS):
        mine, theirs = _won_in_silence(counts, mu, q)
        wins = counts.answers.sum(axis=1) + mine.sum(axis=1)
        losses = counts.answers_back.sum(axis=1) + theirs.sum(axis=1)
        before, mu = mu, (wins + n[1] - losses) / (n[0] + n[1])
        mu = np.clip(mu, 1e-12, 1.0 - 1e-12)
        silent = (mine + theirs).sum(axis=0)
        at_risk = np.cumsum(answers[::-1])[::-1] + np.cumsum(silent[::-1])[::-1][1:]
        hazard = np.divide(answers, at_risk, out=np.zeros_like(answers), where=at_risk > 0)
        was, q = q, hazard * np.append(1.0, np.cumprod(1.0 - hazard)[:-1])
        if max(np.abs(mu - before).max(), np.abs(q - was).max()) < _CLOSE:
            break
    return mu, q


def _totals(counts: _Counts) -> tuple[Floats, Floats]:
    a, s, b, r = (c.sum(axis=1) for c in counts)
    return a + s, b + r


def _beginnings(q: Floats) -> Floats:
    """(B + 1,): T_b, the share that has come before each stretch, and by the last one's end."""
    return np.append(0.0, np.minimum(np.cumsum(q), 1.0))


def _won_in_silence(counts: _Counts, mu: Floats, q: Floats) -> tuple[Floats, Floats]:
    """How many silent duels the first has won, for low first and for high first."""
    come = _beginnings(q)[None, :]
    found = []
    for share, silences in ((mu, counts.silences), (1.0 - mu, counts.silences_back)):
        m = share[:, None]
        found.append(silences * m * (1.0 - come) / np.maximum(1.0 - m * come, 1e-300))
    return found[0], found[1]


def _preferences(counts: _Counts, q: Floats) -> Floats:
    """The most likely mu of each pair under a law: the slope is bisected."""
    come = _beginnings(q)[None, :]
    low, high = np.zeros(len(counts.answers)), np.ones(len(counts.answers))
    won, lost = counts.answers.sum(axis=1), counts.answers_back.sum(axis=1)
    for _ in range(50):  # not so often that mu is 0 or 1
        mu = (low + high) / 2.0
        m = mu[:, None]
        slope = won / mu - lost / (1.0 - mu)
        slope -= (counts.silences * come / (1.0 - m * come)).sum(axis=1)
        slope += (counts.silences_back * come / (1.0 - (1.0 - m) * come)).sum(axis=1)
        low, high = np.where(slope > 0, mu, low), np.where(slope > 0, high, mu)
    return (low + high) / 2.0


def _ranges(counts: _Counts, mu: Floats, q: Floats, limit: Floats) -> tuple[Floats, Floats]:
    """Bisect for the mu at which the log likelihood under a law is `limit` below the largest."""
    come = _beginnings(q)[None, :]

    def log_likelihood(mu: Floats) -> Floats:
        m = np.clip(mu, 1e-12, 1.0 - 1e-12)[:, None]
        total = counts.answers.sum(axis=1) * np.log(m[:, 0])
        total += counts.answers_back.sum(axis=1) * np.log1p(-m[:, 0])
        total += (counts.silences * np.log1p(-m * come)).sum(axis=1)
        return np.asarray(total + (counts.silences_back * np.log1p(-(1.0 - m) * come)).sum(axis=1))

    least, ends = log_likelihood(mu) - limit, []
    for end in (0.0, 1.0):
        inside, outside = mu.copy(), np.full_like(mu, end)
        for _ in range(40):
            middle = (inside + outside) / 2.0
            is_out = log_likelihood(middle) < least
            inside, outside = np.where(is_out, inside, middle), np.where(is_out, middle, outside)
        ends.append(outside)
    return ends[0], ends[1]


def _information(counts: _Counts, mu: Floats, q: Floats) -> tuple[Floats, Floats, Floats]:
    """Return minus the second derivatives: in each mu (P,), in mu and q (P, B), in q (B, B)."""
    come, size = _beginnings(q)[None, :], q.size
    both, cross, later = np.zeros(len(mu)), np.zeros((len(mu), size)), np.zeros(size)
    for sign, share, answers, silences in (
        (1.0, mu, counts.answers, counts.silences),
        (-1.0, 1.0 - mu, counts.answers_back, counts.silences_back),
    ):
        m = np.clip(share, 1e-9, 1.0)[:, None]
        left = np.maximum(1.0 - m * come, 1e-12) ** 2
        both += answers.sum(axis=1) / m[:, 0] ** 2 + (silences * come**2 / left).sum(axis=1)
        cross += sign * _after(silences / left)
        later += _after((silences * m**2 / left).sum(axis=0)[None, :])[0]
    answers = counts.answers.sum(axis=0) + counts.answers_back.sum(axis=0)
    place = np.arange(size)
    law = later[np.maximum.outer(place, place)]
    law[place, place] += np.where(answers > 0, answers / np.maximum(q, 1e-30) ** 2, 0.0)
    return both, cross, law


def _after(values: Floats) -> Floats:
    """(P, B): the sum over all places behind the b-th, of values (P, B + 1)."""
    return np.asarray(np.cumsum(values[:, ::-1], axis=1)[:, ::-1][:, 1:])


def _law_covariance(counts: _Counts, mu: Floats, q: Floats) -> tuple[Floats, Floats]:
    """Return two covariances of q, (B, B): with all mu estimated as well, and with all mu known."""
    both, cross, law = _information(counts, mu, q)
    left = law - (cross / np.maximum(both, 1e-300)[:, None]).T @ cross
    scale = np.outer(q, q)  # the q differ much in size: invert on their own scale
    full, known = (np.linalg.pinv(part * scale, hermitian=True) * scale for part in (left, law))
    return np.asarray(full), np.asarray(known)


def _errors(counts: _Counts, mu: Floats, q: Floats, covariance: Floats) -> tuple[Floats, Floats]:
    """Return the standard errors of mu: under a known law, and under this one."""
    both, cross, _ = _information(counts, mu, q)
    both = np.maximum(both, 1e-300)
    by_law = np.einsum("pb,bc,pc->p", cross, covariance, cross) / both**2
    return 1.0 / np.sqrt(both), np.sqrt(1.0 / both + np.maximum(by_law, 0.0))


def _learned(edges: Floats, q: Floats, covariance: Floats, watched: Watched) -> Learned:
    variance = np.cumsum(np.cumsum(covariance, axis=0), axis=1).diagonal()
    least = min(MIN_AT_RISK, watched.exit.size)
    last = float(max(np.partition(watched.exit, -least)[-least], edges[-1]))
    error = np.sqrt(np.maximum(variance, 0.0))
    return Learned(edges[1:], np.cumsum(q), error, last, in_steps=False)
