"""The paper's bounds as functions, with the explicit constants of its appendix.

Each is infinite where its formula diverges, and its docstring says when and why. "Arm 1" of the
paper is the problem's winner, wherever it stands.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from duelay._core import checks
from duelay._core.feedback import check_feedback
from duelay.delays import Delay
from duelay.delays import check as check_delay
from duelay.delays.time_units import refuse_time
from duelay.errors import InvalidValueError
from duelay.problems import Problem
from duelay.problems.problem import check_problem

LOWER_BOUND_CONSTANT = math.exp(-0.5) / 128  # c of Remark 2, worked out in `minimax_lower_bound`


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

_NO_VOTES = "the paper has no formula for both outcomes"


def mrr_schedule(
    horizon: int,
    mean_delay: float,
    *,
    feedback: str = "conversions",
    constants: tuple[float, float, float] | None = None,
) -> NDArray[np.int64]:
    """Return n_1, n_2, ...: the plays of each pair by the end of each round of MRR-DB-Delay.

    Without `constants` these are the appendix's formulas: the end of B.1 for conversions, Appendix
    C for counts. With them it is Equation 6, the brief form, rounded up:
    C_1 log(T gamma^2) / gamma^2 + C_2 sqrt(E[D] log(T gamma^2)) / gamma + C_3 E[D] / gamma.
    The schedule ends where T gamma_m^2 <= e, or n_m exceeds the horizon; that round lasts to the
    horizon.

    Parameters
    ----------
    horizon : int
        The horizon T.
    mean_delay : float
        The mean delay E[D], which must be finite.
    feedback : str
        ``"conversions"`` or ``"counts"``.
    constants : tuple of float, optional
        C_1, C_2 and C_3 of Equation 6, for conversions.

    Returns
    -------
    The schedule. It ends where T gamma_m^2 <= e, or n_m exceeds the horizon: the round after the
    last one continues to the horizon.

    Examples
    --------
    >>> mrr_schedule(200_000, 100.0)[:3]
    array([ 893, 1969, 4475])
    """
    horizon = checks.whole("horizon", horizon)
    mean_delay = checks.mean_delay(mean_delay)
    check_feedback(feedback, votes=_NO_VOTES)
    if constants is not None:
        constants = check_constants(constants)
    if constants is not None and feedback == "counts":
        raise InvalidValueError(
            "constants belong to Equation 6, which is for feedback='conversions'"
        )
    schedule: list[int] = []
    most = max(horizon, 2**36)  # more would change nothing, and K² times this fits an int64
    m, gamma = 1, 0.5
    while horizon * gamma**2 > math.e and (not schedule or schedule[-1] < horizon):
        log = math.log(horizon * gamma**2)
        if constants is not None:
            c1, c2, c3 = constants
            n = c1 * log / gamma**2 + c2 * math.sqrt(mean_delay * log) / gamma
            n += c3 * mean_delay / gamma
        elif feedback == "counts":
            rest = 2 * log + 8 / 3 * gamma * log + 6 * gamma * m * mean_delay
            n = (math.sqrt(2 * log) + math.sqrt(rest)) ** 2 / gamma**2
        else:
            late = math.sqrt(2 * mean_delay * log)
            rest = log / 2 + 4 / 3 * gamma * log + 2 * gamma * late + 2 * gamma * mean_delay
            n = (math.sqrt(log / 2) + math.sqrt(rest)) ** 2 / gamma**2
        least = schedule[-1] + 1 if schedule else 1
        schedule.append(max(math.ceil(min(n, most)), least))
        m, gamma = m + 1, gamma / 2
    return np.array(schedule, dtype=np.int64)


def check_constants(constants: object) -> tuple[float, float, float]:
    """Return C_1, C_2 and C_3 of Equation 6; raise ValueError unless they are valid."""
    needs = "constants must be three numbers C_1 > 0, C_2 >= 0 and C_3 >= 0"
    if isinstance(constants, np.ndarray):
        constants = constants.tolist()
    if not isinstance(constants, tuple | list) or len(constants) != 3:
        raise InvalidValueError(f"{needs}, got {constants!r}")
    try:
        c1 = checks.number("C_1", constants[0], above=0)
        c2, c3 = (checks.number("C", c, least=0) for c in constants[1:])
    except ValueError:
        raise InvalidValueError(f"{needs}, got {constants!r}") from None
    return c1, c2, c3


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
    check_feedback(feedback, votes=_NO_VOTES)
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


# --- lower bounds -----------------------------------------------------------------------------


def minimax_lower_bound(n_arms: int, horizon: int, tau_window: float = 1.0) -> float:
    """Return c sqrt(T K / tau_M), c = e^(-1/2) / 128: every policy has more regret on some problem.

    Appendix D ends with R_1 + R_2 >= (T gap / 4) exp(-64 T tau_M gap^2 / (K - 1)). With its gap,
    sqrt((K - 1) / (128 T tau_M)), the larger of the two is at least half of it, and K - 1 >= K / 2.
    The proof needs gap <= 1/8, that is T >= (K - 1) / (2 tau_M).

    Parameters
    ----------
    n_arms : int
        The number of arms, K.
    horizon : int
        The horizon T.
    tau_window : float
        tau_M, the share of conversions that arrive within the window.

    Returns
    -------
    The bound; 0 for a shorter horizon, and for tau_M = 0, where no horizon is long enough.
    """
    checks.number("tau_window", tau_window, least=0, most=1)
    checks.whole("n_arms", n_arms, least=2)
    checks.whole("horizon", horizon)
    if tau_window == 0 or horizon < (n_arms - 1) / (2 * tau_window):
        return 0.0
    return LOWER_BOUND_CONSTANT * math.sqrt(horizon * n_arms / tau_window)


def lower_bound_instances(n_arms: int, gap: float, k: int = 1) -> tuple[Problem, Problem]:
    """Return the two problems of Appendix D, which no policy can distinguish at little cost.

    In the first, arm 0 beats all others by `gap`, and they are equal. In the second, arm `k` beats
    arm 0 by `gap` and the others by 2 `gap`. The paper's "for all i > 2" is read as i not in
    {1, k}.

    Parameters
    ----------
    n_arms : int
        The number of arms, K.
    gap : float
        At most 1/8.
    k : int
        The winner of the second problem, any arm but 0.

    Returns
    -------
    The two problems.
    """
    n_arms = checks.whole("n_arms", n_arms, least=2)
    gap = checks.number("gap", gap, above=0, most=1 / 8)
    if not 0 < checks.whole("k", k, least=0) < n_arms:
        raise InvalidValueError(f"k must be an arm other than 0, from 1 to {n_arms - 1}, got {k!r}")
    one = np.full((n_arms, n_arms), 0.5)
    one[0, 1:], one[1:, 0] = 0.5 + gap, 0.5 - gap
    two = one.copy()
    two[k, :], two[:, k] = 0.5 + 2 * gap, 0.5 - 2 * gap
    two[k, 0], two[0, k] = 0.5 + gap, 0.5 - gap
    two[k, k] = 0.5
    return Problem(one, name="appendix-d-1"), Problem(two, name="appendix-d-2")


def asymptotic_lower_bound(
    problem: Problem, horizon: int, *, tau_window: float = 1.0, order: str = "champion"
) -> float:
    """Return the asymptotic lower bound of the regret of every consistent policy.

    sum over i of min over j that beat i of (Delta_i + Delta_j) / (2 I(mu_ij)) · log T, where
    I = d(mu_ij, 1/2). Where only a share tau_M of the conversions ever arrives, I is `information`.

    Parameters
    ----------
    problem : Problem
        The preferences.
    horizon : int
        The horizon T.
    tau_window : float
        tau_M, the share of conversions that arrive within the window.
    order : str
        ``"champion"`` or ``"coin"``, see `information`.

    Returns
    -------
    The bound; infinite at tau_M = 0.

    References
    ----------
    Komiyama, Honda, Kashima, Nakagawa. Regret Lower Bound and Optimal Algorithm in Dueling Bandit
    Problem. COLT 2015, Theorem 1 and Section 2.
    """
    check_problem(problem)
    checks.whole("horizon", horizon)
    mu, gaps, total = problem.matrix, problem.gaps, 0.0
    for i in range(problem.n_arms):
        if i != problem.winner:
            beat = np.flatnonzero(mu[i] < 0.5)
            told = np.array([information(float(mu[i, j]), tau_window, order) for j in beat])
            with np.errstate(divide="ignore"):
                total += np.min((gaps[i] + gaps[beat]) / (2 * told))
    return float(total) * math.log(horizon)


def declaration_lower_bound(problem: Problem, error: float = 0.05) -> float:
    """Return the least mean number of duels until a rule may declare a winner.

    sum over j of d(error, 1 - error) / d(mu_wj, 1/2), w the winner. If a winner need not exist, the
    rule must distinguish each pair of w and j from a tie, and only duels of these two arms do that.
    It is the bound without delay; with delay a rule needs no fewer duels.

    Parameters
    ----------
    problem : Problem
        The preferences.
    error : float
        The probability that a wrong winner is declared.

    Returns
    -------
    The number of duels; 0 from an error of 1/2 on.

    References
    ----------
    Kaufmann, Cappé, Garivier. On the Complexity of Best-Arm Identification in Multi-Armed Bandit
    Models. JMLR 2016, Lemma 1.
    """
    check_problem(problem)
    error = checks.number("error", error, above=0, below=1)
    mu = np.delete(problem.matrix[problem.winner], problem.winner)
    return sum(kl(error, 1 - error) / kl(float(p), 0.5) for p in mu) if error < 0.5 else 0.0


def fixed_sample(problem: Problem, error: float = 0.05, power: float = 0.95) -> float:
    """Return the duels of an experiment of fixed size, given the winner's smallest gap g.

    Each pair has (z_error + z_power)^2 / (4 g^2) duels, where z are normal quantiles, and the
    winner's K - 1 pairs share the error.

    Parameters
    ----------
    problem : Problem
        The preferences.
    error : float
        The probability of a wrong winner.
    power : float
        The probability that the winner is found.

    Returns
    -------
    The number of duels of all pairs together.
    """
    check_problem(problem)
    error = checks.number("error", error, above=0, below=1)
    power = checks.number("power", power, above=0, below=1)
    k, normal = problem.n_arms, NormalDist()
    gap = float(np.delete(problem.matrix[problem.winner], problem.winner).min()) - 0.5
    z = normal.inv_cdf(1 - error / (k - 1)) + normal.inv_cdf(power)
    return k * (k - 1) / 2 * z * z / (4 * gap * gap)


def information(mu: float, tau_window: float = 1.0, order: str = "champion") -> float:
    """Return the information of a duel against mu = 1/2: a relative entropy.

    A conversion arrives with probability mu tau_M if i is first, (1 - mu) tau_M if j is, and
    tau_M / 2 if the arms are equal. At tau_M = 1 the information is d(mu, 1/2) for every order.

    Parameters
    ----------
    mu : float
        P(i beats j).
    tau_window : float
        tau_M, the share of conversions that arrive within the window.
    order : str
        ``"champion"`` for the better order, the larger of d(mu tau_M, tau_M / 2) and d((1 - mu)
        tau_M, tau_M / 2); ``"coin"`` for their mean.

    Returns
    -------
    The information in nats.
    """
    checks.number("mu", mu, least=0, most=1)
    checks.number("tau_window", tau_window, least=0, most=1)
    checks.one_of("order", order, ("champion", "coin"))
    ways = [kl(p * tau_window, tau_window / 2) for p in (mu, 1 - mu)]
    return max(ways) if order == "champion" else sum(ways) / 2


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

    Returns
    -------
    The expected estimate.
    """
    checks.number("mu", mu, least=0, most=1)
    checks.number("tau", tau, least=0, most=1)
    return 0.5 + tau * (mu - 0.5)


def kl(p: float, q: float) -> float:
    """Return d(p, q): the relative entropy of two Bernoulli distributions.

    Parameters
    ----------
    p, q : float
        Probabilities.

    Returns
    -------
    The relative entropy in nats; infinite where q excludes an outcome that p allows.
    """
    checks.number("p", p, least=0, most=1)
    checks.number("q", q, least=0, most=1)
    total = 0.0
    for x, y in ((p, q), (1 - p, 1 - q)):
        if x > 0:
            total += math.inf if y <= 0 else x * math.log(x / y)
    return total


def _power(base: float, exponent: float) -> float:
    try:
        return float(base**exponent)
    except OverflowError:
        return math.inf
