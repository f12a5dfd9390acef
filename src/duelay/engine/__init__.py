"""The simulator: a compiled loop in several threads, with the same numbers for any of them."""

from __future__ import annotations

from duelay.engine.job import streams
from duelay.engine.result import BANDS, Result, write_csv
from duelay.engine.setting import Setting
from duelay.engine.simulate import simulate

__all__ = ["BANDS", "Result", "Setting", "simulate", "streams", "write_csv"]
