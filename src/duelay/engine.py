"""The former name of `duelay.simulation`."""

from duelay.simulation import BANDS, Result, Setting, simulate, streams, write_csv

__all__ = ["BANDS", "Result", "Setting", "simulate", "streams", "write_csv"]
