"""The paper's bounds as functions, with the explicit constants of its appendix.

Each is infinite where its formula diverges, and its docstring says when and why. "Arm 1" of the
paper is the problem's winner, wherever it stands.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from duelay._core import checks
from duelay._core.feedback import check_feedback
from duelay.delays.delay import Delay, check_delay
from duelay.delays.ticks_or_clock import refuse_time
from duelay.problems.problem import Problem, check_problem
from duelay.theory.round_lengths import NO_VOTES

# --- RUCB-Delay -------------------------------------------------------------------------------


def radius(n: ArrayLike, n_tilde: ArrayLike, t: float, alpha: float = 1.0) -> Any:
    """Return the confidence radius of Lemma 1: r_ij(t) = sqrt(alpha N_ij log t) / N~_ij.

    Parameters
    ----------
    n : array_like
        N_ij, the duels of a pair; a number or an array.
    n_tilde : array_like
        N~_ij, the answers expected by now, as many as `n`.
    t : float
        The tick, at least 1.
    alpha : float
        The width of the bounds.

    Returns
    -------
    The radius, as a number or an array; infinite where N~ is 0.
    """
    checks.number("t", t, least=1)
    checks.number("alpha", alpha, above=0)
    n, n_tilde = np.asarray(n, dtype=np.float64), np.asarray(n_tilde, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        answer = np.where(n_tilde > 0, np.sqrt(alpha * n * math.log(t)) / n_tilde, np.inf)
    return float(answer) if answer.ndim == 0 else answer


def coverage(t: float, alpha: float = 1.0) -> float:
    """Return the coverage of Lemma 1: P(|mu^_ij - mu_ij| <= r_ij(t)) >= 1 - 2 / t^(2 alpha).

    The lemma is exact for pairs chosen independently of the outcomes. Under an adaptive policy it
    holds only approximately.

    Parameters
    ----------
    t : float
        The tick, at least 1.
    alpha : float
        The width of the bounds.

    Returns
    -------
    The lower bound of the probability, at least 0.
    """
    checks.number("t", t, least=1)
    checks.number("alpha", alpha, above=0)
    return max(0.0, 1.0 - 2.0 * math.exp(-2.0 * alpha * math.log(t)))


def burn_in(delta: float, *, n_arms: int, window: int, alpha: float = 1.0) -> float:
    """Return C(delta) of Lemma 2: all bounds hold after this tick, with probability 1 - delta.

    Parameters
    ----------
    delta : float
        The probability of error.
    n_arms : int
        The number of arms, K.
    window : int
        The window M, in ticks.
    alpha : float
        The width of the bounds.

    Returns
    -------
    The tick; infinite for alpha <= 1/2, where the sum over ticks of t^(-2 alpha) diverges.
    """
    checks.number("delta", delta, above=0)
    checks.whole("n_arms", n_arms, least=2)
    checks.whole("window", window)
    if checks.number("alpha", alpha) <= 0.5:
        return math.inf
    base = (4 * alpha - 1) * (window + 1) * n_arms * (n_arms - 1) / ((2 * alpha - 1) * delta)
    return _power(base, 1.0 / (2 * alpha - 1))


def comparisons_bound(
    problem: Problem,
    *,
    delay: Delay,
    window: int,
    t: float,
    alpha: float = 1.0,
    discount: str = "first",
) -> NDArray[np.float64]:
    """Return the bound of N_ij(t) by Appendix A.2.

    N_ij(t) <= 4 alpha log t / (tau_1^2 min(Delta_i^2, Delta_j^2)) for t > C(delta), with
    probability 1 - delta. The winner's own gap is 0, which would make the bound infinite for its
    pairs; for the pair (winner, j) the proof gives Delta_j^2, which is used here.

    Parameters
    ----------
    problem : Problem
        The preferences.
    delay : Law or ByPair
        The delay law, in ticks.
    window : int
        The window M, in ticks.
    t : float
        The tick.
    alpha : float
        The width of the bounds, above 1/2.
    discount : str
        ``"first"`` divides by tau_1; ``"window"`` by tau_M / (M + 1), the appendix's replacement,
        which requires that every pair has been played before the window began.

    Returns
    -------
    The bounds, (K, K). The diagonal is 0 for losers, which do not duel themselves after C(delta),
    and infinite for the winner. All are infinite where the discount is 0.
    """
    square = _least_square_gaps(check_problem(problem))
    share = _discount(problem, delay, window, discount)
    checks.number("t", t, least=1)
    checks.number("alpha", alpha, above=0.5, why="C(delta) is infinite below")
    with np.errstate(divide="ignore"):
        bound = np.where(square < math.inf, 4 * alpha * math.log(t) / square, 0.0)
        bound = bound / np.float64(share) ** 2 if share > 0 else np.full_like(square, math.inf)
    np.fill_diagonal(bound, 0.0)
    bound[problem.winner, problem.winner] = math.inf
    return bound


def high_probability_bound(
    problem: Problem,
    *,
    delay: Delay,
    window: int,
    horizon: int,
    delta: float,
    alpha: float = 1.0,
    discount: str = "first",
) -> float:
    """Return the regret bound of Theorem 1: RUCB-Delay, with probability 1 - delta.

    (2 C(delta/2) + 2 D log 2D) Delta_max + sum_j 2 alpha log T / (tau_1^2 Delta_j)
    + 4 Delta_max log(2/delta) + sum_j 8 alpha Delta_max log T / (tau_1^2 Delta_j^2), for alpha >=
    1.

    Parameters
    ----------
    problem : Problem
        The preferences.
    delay : Law or ByPair
        The delay law, in ticks.
    window : int
        The window M, in ticks.
    horizon : int
        The horizon T.
    delta : float
        The probability of error.
    alpha : float
        The width of the bounds, at least 1.
    discount : str
        See `comparisons_bound`.

    Returns
    -------
    The bound; infinite where tau_1, or its replacement, is 0.
    """
    check_problem(problem)
    checks.whole("horizon", horizon)
    checks.number("delta", delta, above=0, below=1)
    checks.number("alpha", alpha, least=1, why="Theorem 1 needs it")
    start = 2 * burn_in(delta / 2, n_arms=problem.n_arms, window=window, alpha=alpha)
    start += 4 * math.log(2 / delta)
    return start * float(problem.gaps.max()) + _after_burn_in(
        problem, delay, window, horizon, alpha, discount
    )


def expected_bound(
    problem: Problem,
    *,
    delay: Delay,
    window: int,
    horizon: int,
    alpha: float = 1.0,
    discount: str = "first",
) -> float:
    """Return the bound of the expected regret by Theorem 2: RUCB-Delay.

    Parameters
    ----------
    problem : Problem
        The preferences.
    delay : Law or ByPair
        The delay law, in ticks.
    window : int
        The window M, in ticks.
    horizon : int
        The horizon T.
    alpha : float
        The width of the bounds, at least 1.
    discount : str
        See `comparisons_bound`.

    Returns
    -------
    The bound. It is infinite at alpha = 1, the value of the paper's experiments: the integral of
    C(delta/2) over delta has alpha - 1 in its denominator. It is also infinite where tau_1 is 0.
    """
    check_problem(problem)
    checks.whole("horizon", horizon)
    checks.whole("window", window)
    if checks.number("alpha", alpha, least=1, why="Theorem 2 needs it") == 1:
        return math.inf
    k = problem.n_arms
    base = 2 * (4 * alpha - 1) * (window + 1) * k * (k - 1) / (2 * alpha - 1)
    start = 8 + _power(base, 1 / (2 * alpha - 1)) * (2 * alpha - 1) / (alpha - 1)
    return start * float(problem.gaps.max()) + _after_burn_in(
        problem, delay, window, horizon, alpha, discount
    )


def _after_burn_in(
    problem: Problem, delay: Delay, window: int, horizon: int, alpha: float, discount: str
) -> float:
    """Return the common part of Theorems 1 and 2: 2 D log 2D Delta_max, and the sums with log T."""
    share = _discount(problem, delay, window, discount)
    if share == 0:
        return math.inf
    gaps = np.delete(problem.gaps, problem.winner)
    most = float(gaps.max())
    pairs = np.triu_indices(problem.n_arms, 1)
    d = float(np.sum(4 * alpha / _least_square_gaps(problem)[pairs])) / share**2
    sums = np.sum(2 * alpha * (gaps + 4 * most) / (share**2 * gaps**2))
    return 2 * d * math.log(2 * d) * most + float(sums) * math.log(horizon)


def _least_square_gaps(problem: Problem) -> NDArray[np.float64]:
    """Return min(Delta_i^2, Delta_j^2), with Delta_j^2 for the pair (winner, j)."""
    gaps = problem.gaps.copy()
    gaps[problem.winner] = math.inf
    return np.minimum.outer(gaps, gaps) ** 2


def _discount(problem: Problem, delay: Delay, window: int, discount: str) -> float:
    checks.one_of("discount", discount, ("first", "window"))
    window = checks.whole("window", window)
    law = check_delay(delay, problem.n_arms)
    refuse_time("delay", law)
    if discount == "first":
        return float(np.min(law.cdf(1)))  # the slowest pair, where the law depends on it
    return float(np.min(law.cdf(window))) / (window + 1)


# --- MRR-DB-Delay -----------------------------------------------------------------------------


def mrr_bound(
    problem: Problem, *, horizon: int, mean_delay: float, feedback: str = "conversions"
) -> float:
    """Return the bound of MRR-DB-Delay's expected regret: Theorem 3, the end of Appendix B.2.

    Where 4 T Delta_i^2 / 9 < 1 its logarithm is taken as 0: arm i then costs less than 9 / (4
    Delta_i) over the whole horizon, which the term 81 / Delta_i covers.

    Parameters
    ----------
    problem : Problem
        The preferences.
    horizon : int
        The horizon T.
    mean_delay : float
        The mean delay E[D].
    feedback : str
        ``"conversions"``; or ``"counts"`` for the theorem of Appendix C.

    Returns
    -------
    The bound; infinite for an infinite mean delay.
    """
    check_feedback(feedback, votes=NO_VOTES)
    k, gaps, log = _mrr_terms(problem, horizon, mean_delay)
    if math.isinf(mean_delay):
        return math.inf
    if feedback == "counts":
        terms = (
            36 * k * log / gaps
            + 8 * k * log
            + 36 * k * np.log(3 / gaps) * mean_delay
            + 243 / 2 / gaps
            + k * gaps / 2
        )
        return float(terms.sum())
    terms = (
        9 * k * log / gaps
        + 4 * k * log
        + 6 * k * np.sqrt(2 * mean_delay * log)
        + 81 / gaps
        + 6 * k * mean_delay
        + k * gaps / 2
    )
    return float(terms.sum())


def _mrr_terms(problem: Problem, horizon: int, mean: float) -> tuple[int, Any, Any]:
    check_problem(problem)
    checks.whole("horizon", horizon)
    if mean != math.inf:
        checks.number("mean_delay", mean, least=1)
    gaps = np.delete(problem.gaps, problem.winner)
    return problem.n_arms, gaps, np.log(np.maximum(4 * horizon * gaps**2 / 9, 1.0))


def coin_mean(mu: float, tau: float) -> float:
    """Return 1/2 + tau (mu - 1/2): the expected estimate under the coin without a delay law.

    A duel is shown as (i, j) or (j, i) with probability one half each, and counts as a loss of its
    first arm until its conversion arrives. Its expected contribution to S_ij is
    mu tau / 2 + (1 - (1 - mu) tau) / 2. The sign of mu - 1/2 is kept for any tau.

    Parameters
    ----------
    mu : float
        P(i beats j).
    tau : float
        The share of conversions that have arrived by now.
    """
    checks.number("mu", mu, least=0, most=1)
    checks.number("tau", tau, least=0, most=1)
    return 0.5 + tau * (mu - 0.5)


def _power(base: float, exponent: float) -> float:
    try:
        return float(base**exponent)
    except OverflowError:
        return math.inf
