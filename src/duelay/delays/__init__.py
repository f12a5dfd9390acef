"""Delay laws, the distributions of the ticks from a duel to its conversion.

A delay is at least 1 and may be infinite. A law that is given a duration, such as "2h", is in time:
its delays are in seconds.
"""

from __future__ import annotations

from duelay._core.duration import Duration
from duelay.delays.base import Law
from duelay.delays.by_pair import ByPair
from duelay.delays.continuous import Exponential, Gamma, LogNormal, Pareto, Weibull
from duelay.delays.curve import Curve
from duelay.delays.delay import Delay, parse, tables
from duelay.delays.delay import check_delay as check
from duelay.delays.empirical import Empirical
from duelay.delays.families import Constant, Geometric, NegativeBinomial, Uniform, Zipf
from duelay.delays.fitted_laws import fit
from duelay.delays.never import Never

__all__ = [
    "ByPair",
    "Constant",
    "Curve",
    "Delay",
    "Duration",
    "Empirical",
    "Exponential",
    "Gamma",
    "Geometric",
    "Law",
    "LogNormal",
    "NegativeBinomial",
    "Never",
    "Pareto",
    "Uniform",
    "Weibull",
    "Zipf",
    "check",
    "fit",
    "parse",
    "tables",
]
