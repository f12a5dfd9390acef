"""How often each test of an assumption alarms where all is well: the table of docs/assumptions.md.

    python benchmarks/levels.py

runs the tests that measure it, and keeps what they print.
"""

from __future__ import annotations

import re
import subprocess
import sys

import pages

COMMAND = "python -m benchmarks levels"
SETTINGS = {"random": "random", "random votes": "random, votes", "adaptive": "coin",
            "adaptive votes": "votes", "alternate": "alternating",
            "champion": "champion first"}  # fmt: skip


def main() -> None:
    """Run the tests, keep the table, write the page."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-s", "-k", "level_is_held",
         pages.ROOT / "tests" / "assumptions" / "test_assumptions.py"],
        cwd=pages.ROOT, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    print(done.stdout)
    shares: dict[str, dict[str, str]] = {}
    for test, setting, share, told in re.findall(
        r"level: (\w+), ([\w ]+): ([\d.]+ %) of (\d+)", done.stdout
    ):
        shares.setdefault(test, {})[setting] = share if int(told) > 0 else "cannot tell"
    rows = [[f"`{test}`", *(row[setting] for setting in SETTINGS)] for test, row in shares.items()]
    pages.keep("levels", COMMAND, [pages.table(["test", *SETTINGS.values()], rows)])


if __name__ == "__main__":
    main()
