"""Simulate one plan in a process of its own: `python -m duelay.planning.worker`.

It reads the arguments of `plan` from standard input as JSON, and writes the report to standard
output. A server starts it, so that a plan takes no time from other requests and can be killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys

from duelay.planning.report import PlanReport
from duelay.planning.simulated import plan

_NICE = 10  # other processes of the machine go first


def main() -> None:
    """Read, simulate and write."""
    with contextlib.suppress(AttributeError, OSError):  # Windows has no such thing
        os.nice(_NICE)
    planned = plan(**json.load(sys.stdin), progress=False)
    json.dump(PlanReport.of(planned).to_json(), sys.stdout)


if __name__ == "__main__":
    main()
