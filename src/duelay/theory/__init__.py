"""The paper's bounds as functions, and more: lower bounds on the regret of any policy."""

from duelay.theory.bayes_optimal import bayes_optimal_regret
from duelay.theory.bounds import (
    asymptotic_lower_bound,
    burn_in,
    coin_mean,
    comparisons_bound,
    coverage,
    declaration_lower_bound,
    expected_bound,
    fixed_sample,
    high_probability_bound,
    information,
    kl,
    lower_bound_instances,
    minimax_lower_bound,
    mrr_bound,
    mrr_schedule,
    radius,
)
from duelay.theory.finite_horizon import finite_lower_bound

__all__ = [
    "asymptotic_lower_bound",
    "bayes_optimal_regret",
    "burn_in",
    "coin_mean",
    "comparisons_bound",
    "coverage",
    "declaration_lower_bound",
    "expected_bound",
    "finite_lower_bound",
    "fixed_sample",
    "high_probability_bound",
    "information",
    "kl",
    "lower_bound_instances",
    "minimax_lower_bound",
    "mrr_bound",
    "mrr_schedule",
    "radius",
]
