"""Run the paper's evaluation, and put its report, figures and verdicts into the docs.

    python benchmarks/reproduction.py [FOLDER]

What is in the folder already is not computed again.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pages
from duelay import experiments
from duelay._core.files import write_whole

COMMAND = "python -m benchmarks reproduction"


def main() -> None:
    """Run what is missing, copy the report, write the page."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("paper")
    claims = experiments.run(experiments.built_in("paper"), folder)
    docs = pages.ROOT / "docs" / "reproduction"
    write_whole(docs / "report.md", (folder / "report.md").read_bytes())
    pages.sign(docs / "report.md", COMMAND)
    for figure in sorted((folder / "figures").glob("*.svg")):
        write_whole(docs / "figures" / figure.name, figure.read_bytes())
    rows = [[str(n), claim.title, f"**{claim.verdict}**"] for n, claim in enumerate(claims, 1)]
    pages.keep("claims", COMMAND, [pages.table(["", "claim", "verdict"], rows)])


if __name__ == "__main__":
    main()
