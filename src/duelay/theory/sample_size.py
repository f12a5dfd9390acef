"""Sample sizes: the duels until a winner can be declared, one by one or in a fixed number."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from duelay._core import checks
from duelay.problems.problem import Problem, check_problem
from duelay.theory.lower_bounds import kl


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
    """
    check_problem(problem)
    error = checks.number("error", error, above=0, below=1)
    power = checks.number("power", power, above=0, below=1)
    k, normal = problem.n_arms, NormalDist()
    gap = float(np.delete(problem.matrix[problem.winner], problem.winner).min()) - 0.5
    z = normal.inv_cdf(1 - error / (k - 1)) + normal.inv_cdf(power)
    return k * (k - 1) / 2 * z * z / (4 * gap * gap)
