"""Lower bounds on the regret of every policy, and the information of a duel, which they rest on."""

from __future__ import annotations

import math

import numpy as np

from duelay._core import checks
from duelay.errors import InvalidValueError
from duelay.problems.problem import Problem, check_problem

LOWER_BOUND_CONSTANT = math.exp(-0.5) / 128  # c of Remark 2, worked out in `minimax_lower_bound`


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
    """
    checks.number("mu", mu, least=0, most=1)
    checks.number("tau_window", tau_window, least=0, most=1)
    checks.one_of("order", order, ("champion", "coin"))
    ways = [kl(p * tau_window, tau_window / 2) for p in (mu, 1 - mu)]
    return max(ways) if order == "champion" else sum(ways) / 2


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
