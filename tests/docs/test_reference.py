"""The API reference: what is public stays, and its docstrings say what each parameter is."""

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest
import yaml

import duelay
from duelay import policies

ROOT = Path(__file__).parents[2]
REFERENCE = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
PROMISED = (
    (ROOT / "tests" / "data" / "public_names.txt").read_text(encoding="utf-8").split("\n")[:-1]
)


def listed():
    """The public names by module, as docs/reference.md lists them."""
    found = {}
    for path, body in re.findall(r"^::: ([\w.]+)\n((?: {4}.*\n)*)", REFERENCE, re.MULTILINE):
        options = yaml.safe_load(body or "options: {}")["options"]
        if "show_root_heading" in options:  # one name, and not a module
            module, _, name = path.rpartition(".")
            found.setdefault(module, []).append(name)
        else:
            names = options.get("members") or importlib.import_module(path).__all__
            found.setdefault(path, []).extend(names)
    return found


LISTED = listed()


def exported():
    """Every pair of a module of the reference and a name in its `__all__`."""
    modules = [importlib.import_module(name) for name in LISTED]
    return [(module, name) for module in modules for name in getattr(module, "__all__", [])]


@pytest.mark.parametrize("line", PROMISED)
def test_a_promised_name_is_still_there(line):
    """Other programs import these names; CONTRIBUTING.md has the deprecation policy."""
    module, name = line.split()
    assert hasattr(importlib.import_module(module), name)


def test_every_exported_name_is_in_the_reference():
    face = [vars(duelay)[name] for name in LISTED["duelay"]]
    face += [vars(policies)[name] for name in policies.__all__]
    missing = [
        f"{module.__name__} {name}"
        for module, name in exported()
        if name not in [*LISTED[module.__name__], "__version__"]
        and not inspect.ismodule(vars(module)[name])
        and not any(vars(module)[name] is known for known in face)
    ]
    assert missing == [], "docs/reference.md"


def sections(docstring):
    """The names that the sections Parameters and Attributes of a docstring explain.

    A name counts only with a sentence below it: ``name : type`` alone explains nothing.
    """
    griffe = pytest.importorskip("griffe", reason="griffe reads docstrings: duelay[docs]")
    found = {"parameters": set(), "attributes": set()}
    for section in griffe.parse_numpy(griffe.Docstring(docstring or ""), warnings=False):
        for item in section.value if section.kind.value in found else ():
            if item.description:
                found[section.kind.value] |= {one.strip(" *") for one in item.name.split(",")}
    return found


def drift(found):
    """How the docstring of a function or class differs from its parameters."""
    if inspect.isclass(found) and issubclass(found, Exception):
        return []
    names = [name for name in inspect.signature(found).parameters if not name.startswith("_")]
    names = [name for name in names if name not in ("self", "cls")]
    known = sections(inspect.getdoc(found))
    if inspect.isclass(found):  # a record inherits the attributes that its bases explain
        for base in found.__mro__[1:]:
            known["attributes"] |= sections(vars(base).get("__doc__"))["attributes"]
    lacks = [name for name in names if name not in known["parameters"] | known["attributes"]]
    return lacks + [f"no {name}" for name in sorted(known["parameters"] - set(names))]


def callables():
    """Each public function or class by its name, but for rules, whose fields are not promised."""
    found = {}
    for module, names in LISTED.items():
        for name in names:
            one = getattr(importlib.import_module(module), name)
            is_rule = module == "duelay.rules" and inspect.isclass(one)
            if callable(one) and inspect.getmodule(one) and not is_rule:
                found[f"{module}.{name}"] = one
    return found


def methods():
    """Each public method that a public class adds to those of its bases."""
    found = {}
    for name, cls in callables().items():
        if inspect.isclass(cls):
            for method, one in vars(cls).items():
                one = getattr(one, "__func__", one)
                is_new = not any(method in vars(base) for base in cls.__mro__[1:])
                if is_new and inspect.isfunction(one) and not method.startswith("_"):
                    found[f"{name}.{method}"] = one
    return found


def check(found):
    """Fail with a list of all docstrings that differ from the code."""
    wrong = {name: told for name, one in found.items() if (told := drift(one))}
    listed = "\n".join(f"{name}: {', '.join(told)}" for name, told in wrong.items())
    assert not wrong, f"{len(wrong)} docstrings lack parameters in a section Parameters:\n{listed}"


def test_every_public_callable_explains_its_parameters():
    check(callables())


def test_every_public_method_explains_its_parameters():
    check(methods())


def test_every_public_name_has_a_docstring():
    found = {**callables(), **methods()}
    assert [name for name, one in found.items() if not inspect.getdoc(one)] == []


def twice(docstring):
    """The numpydoc sections that occur more than once in a docstring."""
    heads = re.findall(r"^ *([A-Z][A-Za-z ]+)\n *-{3,}$", docstring, re.MULTILINE)
    return sorted({head for head in heads if heads.count(head) > 1})


def test_no_section_occurs_twice_in_a_docstring():
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    wrong = []
    for path in sorted((ROOT / "src" / "duelay").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            docstring = ast.get_docstring(node) if isinstance(node, kinds) else None
            for head in twice(docstring or ""):
                wrong.append(f"{path.name} {getattr(node, 'name', '')}: {head}")
    assert wrong == []
    assert twice("A.\n\nNotes\n-----\nB.\n\nNotes\n-----\nC.") == ["Notes"]


def test_a_parameter_without_an_explanation_is_found():
    def add(a, b, *more, _hidden=0):
        """Add.

        Parameters
        ----------
        a, b : int
            Terms.
        c : int
            A term of earlier.
        """

    assert drift(add) == ["more", "no c"]
    add.__doc__ = add.__doc__.replace("            Terms.\n", "")
    assert drift(add) == ["a", "b", "more", "no c"]
    add.__doc__ = "Add `a`, `b` and `more`."
    assert drift(add) == ["a", "b", "more"]
