"""Specifications as TOML files, and those that come with duelay.

    name = "mine"
    problems = ["six-rankers", "my-matrix.csv", "arithmetic:5,0.1"]
    policies = ["rucb-delay", { policy = "rucb:alpha=1", label = "the baseline" }]
    delays = ["geometric:0.01"]
    horizon = 100_000
    runs = 20

A problem may also be ``first-bonus:0.1,PROBLEM``, one with a bonus for being shown first. `target`,
`feedback`, `corrects_position`, `stale`, `batch`, `stop`, `traffic` and `by_clock` are those of a
`Setting`; a policy may have a `by_clock` of its own. ``[sweep]`` with `over`, `axis` and `ticks`
draws the regret over the laws, the problems or the grids.
``import = ["mine"]`` imports modules that name your own policies or laws. ``band = "mean"`` draws
an interval for the mean in figures, in place of the spread of the runs.

These keys describe one grid: every problem with every policy under every law. Several grids are
written as ``[[grid]]``, each with a `name`; a grid takes the keys that it leaves out from the top.
"""

from __future__ import annotations

import re
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn

from duelay import datasets, delays
from duelay._core import checks
from duelay._core.deprecation import accept_old_names
from duelay._core.user_modules import bring_in
from duelay.delays import Delay
from duelay.errors import InvalidValueError
from duelay.experiments.spec import Choice, Grid, Specification, Sweep, slug
from duelay.problems import Problem
from duelay.simulation import BANDS
from duelay.simulation.setting import ABOUT, Setting
from duelay.simulation.simulate import check_fits, check_units

_SHARED: dict[str, Any] = {
    "problems": None,
    "policies": None,
    "delays": ["geometric:0.01"],
    "horizon": 100_000,
    "runs": 20,
    "seed": 0,
    "checkpoints": 100,
    "block": 10,
    **{name: getattr(Setting, name) for name in ABOUT},
}
_TOP = ("name", "title", "import", "claims", "band", "sweep", "grid", *_SHARED)
_GRID = ("name", "title", *_SHARED)
_CLAIMS = ("none", "paper")
_SWEEPS = ("delays", "problems", "grids")
_STUDIES = (path.name for path in (resources.files(__package__) / "studies").iterdir())
BUILT_IN = ("paper", *sorted(name[:-5] for name in _STUDIES if name.endswith(".toml")))


@accept_old_names(is_checked="checked")
def built_in(name: str, *, checked: bool = True) -> Specification:
    """Return a specification that comes with duelay.

    Parameters
    ----------
    name : str
        ``"paper"``, or a study such as ``"mean-delay"``.
    checked : bool
        False leaves out the claims of the paper.
    """
    folder = resources.files(__package__)
    if name != "paper":
        folder = folder / "studies"
    source = (folder / f"{name}.toml").read_text(encoding="utf-8")
    if not checked:
        source = source.replace('claims = "paper"', "")
    return parse(source, f"{name}.toml", Path())


def read(path: str | Path) -> Specification:
    """Read a specification from a TOML file, or a built-in one by its name.

    Parameters
    ----------
    path : str or Path
        The path of the file, or a name that `built_in` knows. CSV files and modules that the file
        names are looked for in its folder.

    Raises
    ------
    ValueError
        If there is no such file, or something in it is unknown or invalid.
    """
    path = Path(path)
    if str(path) in BUILT_IN and not path.is_file():  # a folder of results may have its name
        return built_in(str(path))
    try:
        source = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        hint = checks.nearest(str(path), BUILT_IN)
        raise InvalidValueError(
            f"cannot read the specification {path}{hint}: there is no such file, nor a study of "
            f"that name; there are: {', '.join(BUILT_IN)}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValueError(f"cannot read the specification {path}: {error}") from None
    return parse(source, path.name, path.parent)


def parse(source: str, file: str, folder: Path) -> Specification:
    """Make a specification from TOML text.

    Parameters
    ----------
    source : str
        The text.
    file : str
        The name of its file, for messages.
    folder : Path
        The folder in which CSV files and modules are looked for.

    Raises
    ------
    ValueError
        If something in it is unknown or invalid. The message names the line.
    """
    try:
        data = tomllib.loads(source)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidValueError(f"{file}: {error}") from None
    reader = _Reader(source, file, folder)
    reader.keys(data, _TOP)
    modules = reader.modules(data.get("import", []))
    name = reader.word(data, "name", Path(file).stem)
    title = reader.word(data, "title", name)
    claims = data.get("claims", "none")
    reader.guard("claims", claims, lambda: checks.one_of("claims", claims, _CLAIMS))
    band = data.get("band", "sd")
    reader.guard("band", band, lambda: checks.one_of("band", band, BANDS))
    shared = {key: data.get(key, default) for key, default in _SHARED.items()}
    parts = data.get("grid")
    if parts is None:
        parts = [{"name": name, "title": title}]
    if not isinstance(parts, list) or not parts or not all(isinstance(p, dict) for p in parts):
        reader.refuse("grid", "grid must be written as [[grid]], once for each grid")
    grids = tuple(reader.grid(part, shared, number) for number, part in enumerate(parts))
    if len({grid.name for grid in grids}) < len(grids):
        reader.refuse("name", "each grid must have a name of its own")
    reader.agree(grids)
    if claims == "paper":
        reader.can_be_claimed(grids)
    if (
        sum(len(g.problems) * len(g.policies) * len(g.delays) * g.runs / g.block for g in grids)
        > 1e6
    ):
        reader.refuse("runs", "runs and block must give at most a million cells")
    return Specification(name, title, claims, grids, reader.sweep(data, grids), modules, band)


class _Reader:
    """Checks a parsed TOML file, and finds the line of what is wrong."""

    def __init__(self, source: str, file: str, folder: Path) -> None:
        self.lines, self.file, self.folder = source.splitlines(), file, folder
        self.start = 0  # the line above the grid that is being read

    def refuse(self, what: Any, message: str) -> NoReturn:
        """Raise, with the line in which a key or a value stands."""
        word = re.escape(str(what))
        key = rf"(^|[{{,])\s*[\"']?{word}[\"']?\s*="
        for pattern in (key, rf"[\"']{word}[\"']", rf"\b{word}\b"):
            for number, line in enumerate(self.lines, start=1):
                if number > self.start and re.search(pattern, line):
                    raise InvalidValueError(f"{self.file}, line {number}: {message}")
        raise InvalidValueError(f"{self.file}: {message}")

    def guard(self, what: Any, value: Any, make: Any) -> Any:
        """Return `make()`, or raise its error with the line of `what`."""
        try:
            return make()
        except ValueError as error:
            self.refuse(value if isinstance(value, str) else what, str(error))

    def keys(self, part: dict[str, Any], known: tuple[str, ...]) -> None:
        """Refuse an unknown key."""
        for key in part:
            if key not in known:
                hint = checks.nearest(key, known)
                self.refuse(key, f"unknown key {key!r}{hint}; there are: {', '.join(known)}")

    def word(self, part: dict[str, Any], key: str, default: str) -> str:
        """Return a text of one line."""
        value = part.get(key, default)
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            self.refuse(key, f"{key} must be a text of one line, got {value!r}")
        return value

    def modules(self, names: Any) -> tuple[str, ...]:
        """Import the modules that name the user's policies and laws."""
        if not isinstance(names, list):
            self.refuse("import", f'import must be a list of modules, ["mine"], got {names!r}')
        for name in names:
            self.guard("import", name, lambda name=name: bring_in(name, [self.folder]))
        return tuple(names)

    def grid(self, part: dict[str, Any], shared: dict[str, Any], number: int) -> Grid:
        """Return one grid."""
        heads = [n for n, line in enumerate(self.lines) if line.strip().startswith("[[grid]]")]
        self.start = heads[number] if number < len(heads) else 0
        self.keys(part, _GRID)
        given = {**shared, **part}
        name = self.word(part, "name", f"grid-{number + 1}")
        whole = {
            key: self.guard(
                key,
                given[key],
                lambda key=key: checks.whole(key, given[key], least=0 if key == "seed" else 1),
            )
            for key in ("horizon", "runs", "seed", "checkpoints", "block")
        }
        setting = self.setting(given)
        if any(key not in part for key in _SHARED):
            self.start = 0  # from here on the faulty line may be at the top
        problems = [self.problem(form) for form in self.items(given, "problems")]
        laws = [
            self.guard("delays", form, lambda form=form: self.law(form, setting))
            for form in self.items(given, "delays")
        ]
        for problem in problems if setting.stop is None else ():
            self.guard(
                "problems", problem.name, lambda problem=problem: problem.gaps_for(setting.target)
            )
        choices = [self.choice(item) for item in self.items(given, "policies")]
        for kind, labels in (
            ("problems", [problem.name for problem in problems]),
            ("policies", [choice.label for choice in choices]),
            ("delays", [str(law) for law in laws]),
        ):
            twice = next((label for label in labels if labels.count(label) > 1), None)
            if twice is not None:
                self.refuse(twice, f"{kind} must differ from each other, got {twice!r} twice")
        for choice in choices:
            for law in laws:
                self.guard(
                    "policies",
                    choice.form,
                    lambda choice=choice, law=law: check_fits(
                        choice.under(law, whole["horizon"]),
                        choice.within(setting),
                        problems[0].n_arms,
                    ),
                )
        for problem in problems:
            for law in laws:
                self.guard(
                    "delays", str(law), lambda law=law, k=problem.n_arms: delays.check(law, k)
                )
        return Grid(
            name=name,
            title=self.word(part, "title", name),
            problems=tuple(problems),
            policies=tuple(choices),
            delays=tuple(laws),
            setting=setting,
            **whole,
        )

    def setting(self, given: dict[str, Any]) -> Setting:
        """Return a grid's setting."""
        known: dict[str, Any] = {}
        for key in ABOUT:  # one by one, to find the line
            known[key] = given[key]
            self.guard(key, given[key], lambda: Setting(**known))
        return Setting(**known)

    def sweep(self, data: dict[str, Any], grids: tuple[Grid, ...]) -> Sweep | None:
        """Return the sweep, if there is one."""
        part = data.get("sweep")
        if part is None:
            return None
        if not isinstance(part, dict):
            self.refuse("sweep", "sweep must be written as [sweep], with over, axis and ticks")
        self.keys(part, ("over", "axis", "ticks"))
        over = part.get("over", "delays")
        self.guard("over", over, lambda: checks.one_of("over", over, _SWEEPS))
        n = len(grids) if over == "grids" else len(getattr(grids[0], over))
        ticks = part.get("ticks")
        if not isinstance(ticks, list) or len(ticks) != n:
            self.refuse("ticks", f"ticks must be a list of {n} words or numbers, one for each of "
                        f"the {over}, got {ticks!r}")  # fmt: skip
        if over == "delays" and len({len(grid.delays) for grid in grids}) > 1:
            self.refuse("over", "over = 'delays' needs as many delays in each grid")
        labels = {tuple(choice.label for choice in grid.policies) for grid in grids}
        if over == "grids" and len(labels) > 1:
            self.refuse("over", "over = 'grids' needs the same labels of policies in each grid")
        return Sweep(over, self.word(part, "axis", over), tuple(str(tick) for tick in ticks))

    def agree(self, grids: tuple[Grid, ...]) -> None:
        """Refuse grids that disagree on the meaning of one problem, policy and law.

        The tables have one row for each of these, run and tick.
        """
        seen: dict[tuple[str, ...], tuple[Any, ...]] = {}
        slugs: dict[str, str] = {}
        for grid in grids:
            known = slugs.setdefault(slug(grid.name), grid.name)
            if known != grid.name:
                self.refuse(grid.name, f"grids {known!r} and {grid.name!r} have names too alike")
            for problem in grid.problems:
                for law in grid.delays:
                    for choice in grid.policies:
                        setting = str(choice.within(grid.setting))
                        key = (problem.name, choice.form, str(law), setting)
                        means = (problem, grid.seed, grid.horizon, grid.checkpoints)
                        if seen.setdefault(key, means) != means:
                            self.refuse(
                                grid.name,
                                f"grid {grid.name!r} repeats {', '.join(key[:3])} of another grid, "
                                f"but with another matrix, seed, horizon or checkpoints",
                            )

    def can_be_claimed(self, grids: tuple[Grid, ...]) -> None:
        """Refuse claims = "paper" where the grids and policies of the paper are not there."""
        paper = {grid.name: grid for grid in built_in("paper", checked=False).grids}
        own = {grid.name: grid for grid in grids}
        for name, grid in paper.items():
            there = own.get(name)
            lacks = (
                there is None
                or {p.name for p in grid.problems} - {p.name for p in there.problems}
                or {c.label for c in grid.policies} - {c.label for c in there.policies}
                or (there.runs, there.horizon) != (grids[0].runs, grids[0].horizon)
            )
            if lacks:
                self.refuse(
                    "claims",
                    f'claims = "paper" needs the grids of paper.toml, and {name!r} is missing or '
                    f"differs in its problems, labels, runs or horizon",
                )

    def items(self, part: dict[str, Any], key: str) -> list[Any]:
        """Return a list that is not empty."""
        value = part[key]
        if not isinstance(value, list) or not value:
            self.refuse(key, f"{key} must be a list with at least one entry, got {value!r}")
        return value

    def problem(self, form: Any) -> Problem:
        """Return a built-in problem, one from a CSV, or a generated one."""
        if not isinstance(form, str):
            self.refuse(form, f"problems must be names, CSV files or forms, got {form!r}")

        answer: Problem = self.guard("problems", form, lambda: datasets.find(form, self.folder))
        return answer

    def choice(self, item: Any) -> Choice:
        """Return a policy, with a label of its own or without."""
        if isinstance(item, str):
            return Choice(item, item)
        if not isinstance(item, dict) or not isinstance(item.get("policy"), str):
            self.refuse("policies", f"policies must be texts or {{ policy, label }}, got {item!r}")
        self.keys(item, ("policy", "label", "by_clock"))
        by_clock = item.get("by_clock")
        if by_clock is not None:
            self.guard("by_clock", None, lambda: checks.yes_or_no("by_clock", by_clock))
        return Choice(item["policy"], self.word(item, "label", item["policy"]), by_clock)

    def law(self, form: Any, setting: Setting) -> Delay:
        """Return a law, in time where there is traffic and in ticks where there is none."""
        law = delays.check(form)
        check_units(law, setting)
        return law
