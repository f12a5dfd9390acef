"""Tables in plain text and in Markdown."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[int] = ()) -> str:
    """Lay out rows under a head; numbers to the right, the columns named in `left` to the left."""
    lines = [list(columns), *(list(row) for row in rows)]
    widths = [max(_width(line[column]) for line in lines) for column in range(len(columns))]
    lines.insert(1, ["-" * width for width in widths])

    def lay(line: list[str]) -> str:
        cells = []
        for column, cell in enumerate(line):
            space = " " * (widths[column] - _width(cell))
            cells.append(cell + space if column in left else space + cell)
        return "  ".join(cells).rstrip()

    return "\n".join(lay(line) for line in lines)


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown; the cells are escaped already."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
