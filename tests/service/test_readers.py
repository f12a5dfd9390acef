"""Page and service read an experiment by its public interface, and class names do not collide."""

import ast
from collections import Counter
from pathlib import Path

SRC = Path(__file__).parents[2] / "src" / "duelay"
OWN = ("self", "cls")


def private_reads(path):
    """Attributes with an underscore of anything but the object itself or its own class."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            is_own = isinstance(node.value, ast.Name) and node.value.id in OWN
            if not (is_own or node.attr.startswith("__") or node.attr in ("_asdict", "_replace")):
                yield f"{path.name}:{node.lineno} {ast.unparse(node)}"


def test_page_and_service_read_no_private_attribute():
    paths = [path for name in ("page", "service") for path in (SRC / name).rglob("*.py")]
    assert [found for path in paths for found in private_reads(path)] == []


def test_a_private_read_is_found(tmp_path):
    path = tmp_path / "reader.py"
    path.write_text("def look(experiment):\n    return experiment._writer.id\n")
    assert list(private_reads(path)) == ["reader.py:2 experiment._writer"]


def test_each_class_name_is_defined_once():
    counts = Counter(
        node.name
        for path in SRC.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, n in counts.items() if n > 1] == []
