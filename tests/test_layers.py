"""Imports point downwards: the layers are those that docs/architecture.md draws."""

import ast
import functools
import graphlib
import re
from pathlib import Path
from typing import NamedTuple

import duelay

SOURCES = Path(duelay.__file__).parent
PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"

# What may be imported within a function, and why it cannot be at the top of the file.
LATER = {
    "duelay._core.modules.receive": "modules read sources; a pickle alone leads the other way",
    "duelay.cli.run": "click is an extra",
    "duelay.estimates.figures": "matplotlib is an extra",
    "duelay.estimates.report": "it is imported by what it reports on",
    "duelay.experiments": "pyarrow, joblib and others are an extra",
    "duelay.experiments.figures": "matplotlib takes half a second to load",
    "duelay.experiments.report": "matplotlib takes half a second to load",
    "duelay.players.player.Player": "Policy.start makes a player, and players know policies",
    "duelay.live": "SQLAlchemy and Alembic are an extra",
    "duelay.page.report.write_report": "Jinja2 is an extra",
    "duelay.service": "FastAPI and uvicorn are an extra",
    "duelay.show.notebook": "wanted in a notebook alone",
    "duelay.show.canvas": "matplotlib is an extra",
    "duelay.show.plots": "matplotlib is an extra",
}
UPWARD = {("duelay.policies.policy", "duelay.players.player.Player")}  # the only import upwards
# Who may name a type of a room above, for the checker of types alone, and why.
TYPES = {
    ("policies", "players"): "a policy starts a player",
    ("show", "delays"): "it draws them",
    ("show", "engine"): "it draws its results",
    ("show", "experiments"): "it shows their results",
    ("show", "players"): "it shows them",
    ("show", "problems"): "it shows them",
    ("show", "traffic"): "it draws it",
}


class Import(NamedTuple):
    """One file of ours imports another."""

    by: str  # the module that imports
    name: str  # what it imports: a module, or a name of one
    kind: str  # "now", "later" (within a function) or "types"


def modules():
    """Every module of duelay: its name and its file."""
    found = {}
    for path in sorted(SOURCES.rglob("*.py")):
        parts = ("duelay", *path.relative_to(SOURCES).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def room(name):
    """The room of a module or of a name: its first word below duelay."""
    parts = name.split(".")
    if len(parts) == 1 or ".".join(parts[:2]) not in MODULES:
        return "__init__"
    return parts[1]


def imports_of(module, tree):
    """Every import of something of duelay's, at whatever depth."""

    def visit(node, kind):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                names = [alias.name for alias in child.names]
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{module} has a relative import"
                names = [f"{child.module}.{alias.name}" for alias in child.names]
            else:
                inner = kind
                if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                    inner = "later"
                elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                    inner = "types"
                yield from visit(child, inner)
                continue
            yield from (Import(module, n, kind) for n in names if n.split(".")[0] == "duelay")

    return list(visit(tree, "now"))


@functools.cache
def all_imports():
    return [
        found
        for name, path in MODULES.items()
        for found in imports_of(name, ast.parse(path.read_text(encoding="utf-8")))
    ]


def layers():
    """The rooms of each layer as the page draws them, the lowest first."""
    drawn = re.search(r"```text title=\"layers\"\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    rows = [re.split(r"\s{3,}", line.strip())[0] for line in drawn.group(1).splitlines()]
    return [[name.strip("/") for name in row.split()] for row in reversed(rows) if row]


HEIGHT = {name: height for height, row in enumerate(layers()) for name in row}


def test_every_room_has_its_place_on_the_page_and_no_other():
    rooms = {room(name) for name in MODULES}
    assert rooms == set(HEIGHT)
    assert len(HEIGHT) == sum(len(row) for row in layers())


def test_every_folder_of_sources_is_a_package():
    folders = {path.parent for path in SOURCES.rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


def test_imports_point_downwards():
    upward = {
        (found.by, found.name)
        for found in all_imports()
        if found.kind != "types"
        and room(found.by) != room(found.name)
        and HEIGHT[room(found.by)] <= HEIGHT[room(found.name)]
    }
    assert upward == UPWARD


def test_types_of_a_room_above_are_named_only_where_there_is_a_reason():
    named = {
        (room(found.by), room(found.name))
        for found in all_imports()
        if found.kind == "types" and HEIGHT[room(found.by)] < HEIGHT[room(found.name)]
    }
    assert named == set(TYPES)


def test_an_import_waits_within_a_function_only_where_there_is_a_reason():
    assert {found.name for found in all_imports() if found.kind == "later"} == set(LATER)


def test_no_file_imports_itself_by_way_of_others():
    graph = {name: set() for name in MODULES}
    for found in all_imports():
        if found.kind == "now":
            is_module = found.name in MODULES
            graph[found.by].add(found.name if is_module else found.name.rpartition(".")[0])
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which says the way round


def test_the_reader_of_imports_sees_all_three_kinds():
    source = """
import duelay.text
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from duelay.engine import Result
def show():
    from duelay.show import plots
"""
    assert imports_of("duelay.delays", ast.parse(source)) == [
        Import("duelay.delays", "duelay.text", "now"),
        Import("duelay.delays", "duelay.engine.Result", "types"),
        Import("duelay.delays", "duelay.show.plots", "later"),
    ]


def test_every_file_that_the_page_names_exists():
    root = PAGE.parents[1]
    named = re.findall(r"`((?:src|tests|docs|benchmarks)/[\w./-]+)`", PAGE.read_text("utf-8"))
    assert len(named) > 20
    assert [name for name in named if not (root / name).exists()] == []
