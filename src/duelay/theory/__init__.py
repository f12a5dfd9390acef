"""The paper's bounds as functions, and more: lower bounds on the regret of any policy."""

from duelay.theory.bounds import (
    burn_in,
    coin_mean,
    comparisons_bound,
    coverage,
    expected_bound,
    high_probability_bound,
    mrr_bound,
    radius,
)
from duelay.theory.lower_bounds import (
    asymptotic_lower_bound,
    information,
    kl,
    lower_bound_instances,
    minimax_lower_bound,
)
from duelay.theory.round_lengths import mrr_schedule
from duelay.theory.sample_size import declaration_lower_bound, fixed_sample

__all__ = [
    "asymptotic_lower_bound",
    "burn_in",
    "coin_mean",
    "comparisons_bound",
    "coverage",
    "declaration_lower_bound",
    "expected_bound",
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
