"""Numbers on pages: made by a command, kept in docs/numbers, written between two marks.

A block of a page stands between ``<!-- NAME, made by: COMMAND -->`` and ``<!-- end -->``. What
COMMAND finds it hands to `keep`, which writes docs/numbers/NAME.json and the block of that name,
wherever it stands. Nobody writes there by hand: `tests/docs/test_numbers.py` compares the pages
with what is kept, and makes the quick ones anew.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from duelay._core.files import write_whole

ROOT = Path(__file__).parent.parent
MARK = re.compile(
    r"<!-- (?P<name>[\w-]+), made by: (?P<command>.+?) -->\n(?P<body>.*?)<!-- end -->", re.DOTALL
)

Part = dict[str, Any]  # {"text": ...} or {"title": ..., "columns": [...], "rows": [[...], ...]}


class Block(NamedTuple):
    """A block of a page."""

    page: Path
    name: str
    command: str
    body: str


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> Part:
    """Return a part that is a table."""
    return {"title": title, "columns": list(columns), "rows": [list(row) for row in rows]}


def text(words: str) -> Part:
    """Return a part that is a paragraph, or a picture."""
    return {"text": words}


def render(parts: Sequence[Part]) -> str:
    """Return the parts as Markdown."""
    shown = []
    for part in parts:
        if "text" in part:
            shown.append(part["text"])
            continue
        columns = part["columns"]
        lines = [columns, ["---"] * len(columns), *part["rows"]]
        body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        shown.append(f"*{part['title']}*\n\n{body}" if part["title"] else body)
    return "\n\n".join(shown)


def pages(root: Path = ROOT) -> list[Path]:
    """Return every page that may hold numbers."""
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def blocks(root: Path = ROOT) -> Iterator[Block]:
    """Find every block of every page."""
    for page in pages(root):
        for found in MARK.finditer(page.read_text(encoding="utf-8")):
            yield Block(page, found["name"], found["command"], found["body"].strip("\n"))


def kept(name: str, root: Path = ROOT) -> dict[str, Any]:
    """Return what is kept under a name: the command that made it, and its parts."""
    path = root / "docs" / "numbers" / f"{name}.json"
    return dict(json.loads(path.read_text(encoding="utf-8")))


def keep(name: str, command: str, parts: Sequence[Part], root: Path = ROOT) -> None:
    """Keep what a command has found, and write it into the pages."""
    folder = root / "docs" / "numbers"
    folder.mkdir(exist_ok=True)
    write_whole(folder / f"{name}.json", spell(command, parts).encode())
    write(name, root)


def show(name: str, command: str, parts: Sequence[Part]) -> None:
    """Print what a command has found, and keep it if the command line has `--write`."""
    print(render(parts), flush=True)
    if "--write" in sys.argv:
        keep(name, f"python -m benchmarks {command}", parts)


def make_tables(command: str, makers: Mapping[str, Callable[[int], Part]]) -> None:
    """Make the tables that the command line names, or all, and keep each as COMMAND-NAME.

    A maker is told by what to divide its number of runs: 1, or 10 with `--quick`, which keeps
    nothing.
    """
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks {command}")
    parser.add_argument("tables", nargs="*", default=list(makers))
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs, nothing written")
    options = parser.parse_args()
    for name in options.tables:
        made = makers[name](10 if options.quick else 1)
        if not options.quick:
            keep(f"{command}-{name}", f"python -m benchmarks {command}", [made])


def spell(command: str, parts: Sequence[Part]) -> str:
    """Return what is kept as JSON, a row of a table on a line, so that a change is easy to see."""
    shown = []
    for part in parts:
        head = json.dumps({key: part[key] for key in part if key != "rows"}, ensure_ascii=False)
        if "rows" in part:
            rows = ",\n   ".join(json.dumps(row, ensure_ascii=False) for row in part["rows"])
            head = f'{head[:-1]}, "rows": [\n   {rows}]}}'
        shown.append(head)
    body = ",\n  ".join(shown)
    return f'{{"made by": {json.dumps(command)},\n "parts": [\n  {body}]}}\n'


def sign(page: Path, command: str, root: Path = ROOT) -> None:
    """Keep the digest of a page that a command writes as a whole."""
    digest = hashlib.sha256(page.read_bytes()).hexdigest()
    told = {"made by": command, "page": page.relative_to(root).as_posix(), "sha256": digest}
    path = root / "docs" / "numbers" / f"{page.stem}.json"
    write_whole(path, (json.dumps(told, indent=1) + "\n").encode())


def write(name: str, root: Path = ROOT) -> None:
    """Write what is kept under a name into every block of that name; there must be one."""
    known = kept(name, root)
    where = 0
    for page in pages(root):
        before = page.read_text(encoding="utf-8")

        def fill(found: re.Match[str]) -> str:
            if found["name"] != name:
                return found[0]
            nonlocal where
            where += 1
            head = f"<!-- {name}, made by: {known['made by']} -->"
            return f"{head}\n\n{render(known['parts'])}\n\n<!-- end -->"

        after = MARK.sub(fill, before)
        if after != before:
            write_whole(page, after.encode())
    if where == 0:
        raise SystemExit(
            f"no page has a place for {name}: <!-- {name}, made by: COMMAND --> ... <!-- end -->"
        )
