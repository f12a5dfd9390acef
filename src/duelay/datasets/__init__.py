"""The preference matrices of the paper's experiments, built in.

``docs/datasets.md`` tells where each comes from and what was done to it.
"""

from __future__ import annotations

import os
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


_RANKER_NAMES = tuple("ABCDEF")
_TENNIS = (
    "Goran Ivanisevic",
    "Stefan Edberg",
    "Pete Sampras",
    "Boris Becker",
    "Andre Agassi",
    "Ivan Lendl",
    "Michael Chang",
    "Jim Courier",
)
_SUSHI = (
    "sake (salmon)",
    "awabi (abalone)",
    "hamachi (young yellowtail)",
    "aka-gai (ark shell)",
    "tai (sea bream)",
    "ama-ebi (AMA shrimp)",
    "hotate-gai (scallop)",
    "toro (fatty tuna)",
    "tamago (egg)",
    "uni (sea urchin)",
    "maguro (tuna)",
    "ikura (salmon roe)",
    "tako (octopus)",
    "ika (squid)",
    "anago (sea eel)",
    "ebi (shrimp)",
)
_SUSHI_CHUTORO = (
    "chu-toro (mildly-fatty tuna)",
    "toro (fatty tuna)",
    "sake (salmon)",
    "maguro (tuna)",
    "ikura (salmon roe)",
    "tai (sea bream)",
    "anago (sea eel)",
    "hotate-gai (scallop)",
    "ika (squid)",
    "aji (horse mackerel)",
    "unagi (eel)",
    "awabi (abalone)",
    "saba (mackerel)",
    "geso (squid feet)",
    "tori-gai (TORI-clam)",
    "shako (squilla)",
)
_CARS = tuple(f"car {item}" for item in range(1, 11))

_DATASETS = {
    "six-rankers": Dataset(
        "Six rankers of arXiv.org's full-text search",
        "Yue and Joachims 2011, as symmetrised by Komiyama et al. 2015",
        _RANKER_NAMES,
    ),
    "mslr": Dataset(
        "Five rankers of the Microsoft Learning to Rank data",
        "Zoghi, Karnin, Whiteson and de Rijke 2015",
        tuple(f"ranker {rank}" for rank in range(1, 6)),
    ),
    "tennis": Dataset(
        "Career head-to-heads of eight tennis players",
        "Ramamohan, Rajkumar and Agarwal 2016, turned round to fit the matches",
        _TENNIS,
    ),
    "tennis-without-sampras": Dataset(
        "The other seven: no arm beats all others",
        "The same, without the Condorcet winner",
        tuple(name for name in _TENNIS if name != "Pete Sampras"),
    ),
    "arithmetic": Dataset(
        "Ten evenly spaced arms, mu_ij = 0.5 + 0.025 (j - i)",
        "Yi, Kang and Li 2024",
        tuple(f"arm {arm}" for arm in range(1, 11)),
    ),
    "car": Dataset(
        "Ten cars compared by 60 people",
        "Abbasnejad, Sanner, Bonilla and Poupart 2013, all 60",
        _CARS,
    ),
    "car-consistent": Dataset(
        "Ten cars compared by the 52 people who repeat their answers",
        "Abbasnejad, Sanner, Bonilla and Poupart 2013, 52 of 60",
        _CARS,
    ),
    "sushi": Dataset(
        "The sixteen kinds of sushi that were compared most",
        "Kamishima 2003, selected as by Komiyama et al. 2015's script",
        _SUSHI,
    ),
    "sushi-chutoro": Dataset(
        "Sixteen other kinds of sushi, chu-toro among them, in a total order",
        "Kamishima 2003, a selection in circulation",
        _SUSHI_CHUTORO,
    ),
}


def names() -> tuple[str, ...]:
    """Return the names of the built-in problems."""
    return tuple(_DATASETS)


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
    if name not in _DATASETS:
        listed = ", ".join(_DATASETS)
        hint = checks.nearest(name, _DATASETS)
        raise InvalidValueError(f"unknown dataset {name!r}{hint}; there are: {listed}")
    return _DATASETS[name]


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
    if form in _DATASETS:
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
    known = ", ".join([*_DATASETS, *(f"{name}:..." for name in GENERATORS)])
    hint = checks.nearest(form, _DATASETS)
    raise InvalidValueError(f"unknown problem {form!r}{hint}; there are: {known}; or a .csv")
