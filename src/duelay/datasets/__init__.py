"""The preference matrices of the paper's experiments, built in.

``docs/datasets.md`` tells where each comes from and what was done to it.
"""

from __future__ import annotations

import functools
import os
import tomllib
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from duelay._core import checks
from duelay.errors import InvalidValueError
from duelay.problems import GENERATORS, Problem, generate

__all__ = ["Dataset", "describe", "find", "load", "names"]


class Dataset(NamedTuple):
    """The description of a built-in problem.

    Attributes
    ----------
    title : str
        What is compared.
    source : str
        Where the preferences come from.
    arms : tuple of str
        The names of the arms.
    """

    title: str
    source: str
    arms: tuple[str, ...]


@functools.cache
def _datasets() -> dict[str, Dataset]:
    table = resources.files(__package__) / "data" / "datasets.toml"
    found = tomllib.loads(table.read_text(encoding="utf-8"))
    return {
        name: Dataset(about["title"], about["source"], tuple(about["arms"]))
        for name, about in found.items()
    }


def names() -> tuple[str, ...]:
    """Return the names of the built-in problems."""
    return tuple(_datasets())


def describe(name: str) -> Dataset:
    """Return the title, source and arms of a built-in problem.

    Parameters
    ----------
    name : str
        One of `names`.

    Raises
    ------
    ValueError
        If there is no such problem.
    """
    if name not in _datasets():
        listed = ", ".join(_datasets())
        hint = checks.nearest(name, _datasets())
        raise InvalidValueError(f"unknown dataset {name!r}{hint}; there are: {listed}")
    return _datasets()[name]


def load(name: str) -> Problem:
    """Return a built-in problem.

    Parameters
    ----------
    name : str
        One of `names`.

    Raises
    ------
    ValueError
        If there is no such problem.

    Examples
    --------
    >>> load("tennis").arms[load("tennis").winner]
    'Pete Sampras'
    """
    dataset = describe(name)
    with resources.as_file(resources.files(__package__) / "data" / f"{name}.csv") as path:
        return Problem(Problem.from_csv(path).matrix, dataset.arms, name=name)


_BONUS = "first-bonus:"


def find(form: str, folder: Path | None = None) -> Problem:
    """Return a problem by its name, file or text form.

    Parameters
    ----------
    form : str
        One of `names`, the path of a CSV file, a form of `duelay.problems.generate`, or
        ``first-bonus:B,PROBLEM`` for a problem with an advantage of the first place.
    folder : Path, optional
        The folder from which relative paths start; None for the working directory.

    Raises
    ------
    ValueError
        If there is no such problem.

    Examples
    --------
    >>> find("first-bonus:0.1,mslr").first_bonus
    0.1
    """
    path = (folder or Path()) / form
    if form in _datasets():
        return load(form)
    if form.lower().endswith(".csv") or os.path.isfile(path):  # False for a name too long to be one
        return Problem.from_csv(path)
    if form.startswith(_BONUS):
        bonus, _, rest = form.removeprefix(_BONUS).partition(",")
        if rest.startswith(_BONUS):
            raise InvalidValueError(f"first-bonus must be given once, got {form[:60]!r}")
        inner = find(rest, folder)
        try:
            amount = float(bonus)
        except ValueError:
            raise InvalidValueError(f"first-bonus must be a number, got {bonus!r}") from None
        return Problem(inner.matrix, inner.arms, name=form, first_bonus=amount)
    if form.partition(":")[0] in GENERATORS and ":" in form:
        return generate(form)
    known = ", ".join([*_datasets(), *(f"{name}:..." for name in GENERATORS)])
    hint = checks.nearest(form, _datasets())
    raise InvalidValueError(f"unknown problem {form!r}{hint}; there are: {known}; or a .csv")
