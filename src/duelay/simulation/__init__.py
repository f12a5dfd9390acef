"""The simulator: a compiled loop in several threads, with the same numbers for any of them."""

from __future__ import annotations

from duelay.simulation.result import BANDS, Result, write_csv
from duelay.simulation.runs import streams
from duelay.simulation.setting import Setting
from duelay.simulation.simulate import simulate

__all__ = ["BANDS", "Result", "Setting", "simulate", "streams", "write_csv"]
