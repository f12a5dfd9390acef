"""What tests were skipped, and why, in few lines: of one run, and of all that `make test` does."""

import json
import os
import sys
from collections import Counter
from pathlib import Path

TITLE = "LEFT OUT"
# Where a run writes it down, for `make test`; no child that runs tests, too, is to see that.
_FOLDER = os.environ.pop("DUELAY_LEFT_OUT", None)


def lines(counts, most=10):
    """Each reason with how many tests have it, the most frequent first, in at most `most` lines."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    if len(ranked) > most:
        rest = ranked[most - 1 :]
        n = sum(count for _, count in rest)
        ranked = [*ranked[: most - 1], (f"for {len(rest)} more reasons: pytest -rs has them", n)]
    return [f"{count} x {reason}" for reason, count in ranked]


def reasons(reports):
    """How many of these reports give each reason."""
    return Counter(_reason(report.longrepr) for report in reports)


def _reason(told):
    words = str(told[2] if isinstance(told, tuple) else told)
    return " ".join(words.removeprefix("Skipped: ").split()) or "no reason is given"


def write(counts):
    """Write it down if somebody asks for that: a file for each process, whatever runs beside it."""
    if _FOLDER:
        Path(_FOLDER).mkdir(parents=True, exist_ok=True)
        file = Path(_FOLDER, f"{os.getpid()}.json")
        file.write_text(json.dumps(counts), encoding="utf-8")


def main(folder):
    """Print what all runs together have left out."""
    files = sorted(Path(folder).glob("*.json"))
    counts = sum((Counter(json.loads(file.read_text("utf-8"))) for file in files), Counter())
    print(f"{TITLE}, of {len(files)} runs of tests:")
    print("\n".join(lines(counts) or ["nothing" if files else "none has ended"]))


if __name__ == "__main__":
    main(*sys.argv[1:])
