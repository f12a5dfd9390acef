"""Names of modules, classes and files in docstrings and on pages are those of the code."""

import ast
import importlib
import re
import tomllib
from pathlib import Path

import pytest

import duelay

ROOT = Path(__file__).parents[2]
PACKAGE = Path(duelay.__file__).parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "docs").rglob("*.svg")),
]
TABLES = [ROOT / "pyproject.toml", *sorted((ROOT / "benchmarks").glob("*.toml"))]
DOTTED = re.compile(r"(?<![\w./-])duelay(?:\.[A-Za-z_]\w*)+(?![\w/-])")
PATH = re.compile(r"(?<![\w/.:])[\w-]+(?:/[\w-]+)+\.py\b")
# An example of a policy to be written, and a script of another repository.
NOT_OURS = {"src/duelay/policies/random_pairs.py", "sushi/build_pref_sushi.py"}


def docstrings(path):
    """The docstrings of a module, of its classes and of its functions."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds)]
    return "\n".join(filter(None, map(ast.get_docstring, nodes)))


def is_there(name):
    """Whether a dotted name is a module, or something in one."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        for part in parts[n:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def test_every_dotted_name_of_a_docstring_or_a_page_is_there():
    texts = {path: docstrings(path) for path in sorted(PACKAGE.rglob("*.py"))}
    texts |= {path: path.read_text(encoding="utf-8") for path in PAGES}
    named = {(path, name) for path, text in texts.items() for name in DOTTED.findall(text)}
    assert len(named) > 100
    there = {name: is_there(name) for name in {name for _, name in named}}
    missing = sorted(f"{path.relative_to(ROOT)}: {name}" for path, name in named if not there[name])
    assert not missing


@pytest.mark.parametrize("path", [*PAGES, *TABLES], ids=lambda path: path.name)
def test_every_file_that_is_named_is_there(path):
    places = (ROOT, PACKAGE, ROOT / "docs", path.parent)
    named = set(PATH.findall(path.read_text(encoding="utf-8"))) - NOT_OURS
    assert not sorted(name for name in named if not any((at / name).is_file() for at in places))


def test_every_section_on_mutants_is_of_a_module():
    sections = tomllib.loads((ROOT / "benchmarks" / "mutants.toml").read_text(encoding="utf-8"))
    assert not [name for name in sections if not (PACKAGE / f"{name}.py").is_file()]
