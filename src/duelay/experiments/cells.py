"""Cells: the unit of work, and of what a crash can lose.

A cell is a block of runs of one policy on one problem under one law. It knows all that it needs, so
that any process on any machine can compute it, and it is written whole or not at all.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from duelay._core.files import write_whole
from duelay._core.sources import Sources, digest_of_modules, sources_of
from duelay._core.user_modules import explain
from duelay.delays import Delay
from duelay.errors import DuelayError, InvalidValueError
from duelay.experiments.spec import Choice, Grid, Specification, problem_digest
from duelay.problems import Problem
from duelay.simulation import Result, simulate
from duelay.simulation.setting import Setting

BY_RUN = (  # arrays with one row per run
    "regret", "final", "leader", "plays", "stopped", "nobody", "verdicts", "beaten", "p_value",
)  # fmt: skip
_ARRAYS = ("t", "regret", "final", "leader", "plays", "pairs", *BY_RUN[4:])
_OURS = digest_of_modules(Path(__file__))


class OtherSourcesError(InvalidValueError):
    """A cell was made by other sources than the present ones; `names` lists what differs."""

    def __init__(self, path: Path, modules: list[str]) -> None:
        self.names = ["this program" if name == "__main__" else name for name in modules]
        super().__init__(f"cell {path.name} was made by other sources of {', '.join(self.names)}")


class PolicyFailedError(DuelayError, RuntimeError):
    """A law or a policy of the user's raised an exception."""


@dataclass(frozen=True)
class Cell:
    """Runs `start` to `stop` - 1 of one policy on one problem under one law."""

    problem: Problem
    policy: Any
    delay: Delay
    horizon: int
    checkpoints: int
    seed: int
    start: int
    stop: int
    setting: Setting = Setting()

    @property
    def recipes(self) -> tuple[Any, ...]:
        """The parts that a user may define: the policy, the law and the traffic."""
        return self.policy, self.delay, self.setting.traffic

    @property
    def made_by(self) -> dict[str, str]:
        """Digests of the sources of its numbers, by module: duelay's and the user's."""
        theirs = sources_of(*self.recipes)
        return {"duelay": _OURS, **{name: sources.digest for name, sources in theirs.items()}}

    @property
    def header(self) -> dict[str, Any]:
        """All that its numbers depend on."""
        return {**self.asked, "sources": self.made_by}

    @property
    def asked(self) -> dict[str, Any]:
        """All that its numbers depend on, but for the sources."""
        return {
            "problem": self.problem.name,
            "problem_digest": problem_digest(self.problem),
            "policy": str(self.policy),
            "delay": str(self.delay),
            "horizon": self.horizon,
            "checkpoints": self.checkpoints,
            "seed": self.seed,
            "runs": [self.start, self.stop],
            **({"setting": str(self.setting)} if str(self.setting) else {}),
        }

    @property
    def file_name(self) -> str:
        """A readable name with a digest of `asked`.

        It does not depend on the sources: a newer cell takes the place of the older one.
        """
        digest = hashlib.sha256(json.dumps(self.asked, sort_keys=True).encode()).hexdigest()[:16]
        words = re.sub(r"[^a-z0-9.]+", "-", f"{self.problem.name}--{self.policy}".lower())[:60]
        return f"{words.strip('-')}--{self.start}-{self.stop - 1}--{digest}.npz"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the user's modules first: a worker needs them to read the rest."""
        sent = tuple(s for s in sources_of(*self.recipes).values() if s.is_sent)
        fields = [getattr(self, field.name) for field in dataclasses.fields(self)]
        return _unpickle, (sent, *fields)

    def __str__(self) -> str:
        return (
            f"{self.problem.name}, {self.policy}, {self.delay}, runs {self.start} to "
            f"{self.stop - 1}"
        )


def _unpickle(sent: tuple[Sources, ...], *fields: Any) -> Cell:
    return Cell(*fields)


def blocks_of(grid: Grid, problem: Problem, law: Delay, choice: Choice) -> list[Cell]:
    """Return the cells of one policy on one problem under one law, in the order of their runs."""
    policy = choice.under(law, grid.horizon)
    return [
        Cell(
            problem,
            policy,
            law,
            grid.horizon,
            grid.checkpoints,
            grid.seed,
            start,
            min(start + grid.block, grid.runs),
            choice.within(grid.setting),
        )
        for start in range(0, grid.runs, grid.block)
    ]


def cells_of(spec: Specification) -> list[Cell]:
    """Return every cell of a specification, once, in the order in which they are run.

    Blocks of early runs come first: when a long run is stopped, every policy has some.
    """
    cells: dict[str, Cell] = {}
    for grid in spec.grids:
        blocks = [
            blocks_of(grid, problem, law, choice)
            for problem in grid.problems
            for law in grid.delays
            for choice in grid.policies
        ]
        for turn in zip(*blocks, strict=True):
            cells.update({cell.file_name: cell for cell in turn})
    return list(cells.values())


def compute(cell: Cell) -> dict[str, Any]:
    """Simulate a cell, in one thread; return its arrays."""
    try:
        result = _simulate(cell)
    except Exception as error:
        if not sources_of(*cell.recipes):
            raise
        raise PolicyFailedError(f"{cell.policy} failed: {explain(error)}") from error
    return {name: np.asarray(getattr(result, name)) for name in _ARRAYS}


def _simulate(cell: Cell) -> Result:
    return simulate(
        cell.problem,
        cell.policy,
        delay=cell.delay,
        horizon=cell.horizon,
        runs=cell.stop - cell.start,
        seed=cell.seed,
        workers=1,
        checkpoints=cell.checkpoints,
        setting=dataclasses.replace(
            cell.setting,
            first_run=cell.start,
            pairs=True,
            progress=False,
            cautious=False,  # warnings are given once, before the work
        ),
    )


def write(cell: Cell, arrays: dict[str, Any], folder: Path) -> None:
    """Write a cell: first beside its place, then moved there in one step."""
    header = {**cell.header, "checksum": _checksum(cell.header, arrays)}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, header=np.array(json.dumps(header, sort_keys=True)), **arrays)
    write_whole(folder / cell.file_name, buffer.getvalue())


def read(cell: Cell, folder: Path) -> dict[str, Any] | None:
    """Return a cell's arrays; None where it is missing.

    A damaged one raises ValueError, and one of other sources OtherSourcesError.
    """
    path = folder / cell.file_name
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
            header = json.loads(str(stored["header"]))
            arrays = {name: stored[name] for name in _ARRAYS if name in stored}
    except FileNotFoundError:
        return None
    except Exception as error:  # a damaged archive can raise anything
        raise InvalidValueError(f"damaged cell {path.name}: {error}") from None
    made_by = header.get("sources") if isinstance(header, dict) else None
    asked = {**cell.asked, "sources": made_by}
    if header != {**asked, "checksum": _checksum(asked, arrays)}:
        raise InvalidValueError(f"damaged cell {path.name}: its checksum does not fit")
    if made_by != cell.made_by:
        there, here = dict(made_by or {}), cell.made_by
        raise OtherSourcesError(path, [n for n in {**here, **there} if there.get(n) != here.get(n)])
    if len(arrays) < len(_ARRAYS):
        raise InvalidValueError(f"damaged cell {path.name}: it is not whole")
    return arrays


def _checksum(header: dict[str, Any], arrays: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in (name for name in _ARRAYS if name in arrays):  # an earlier release wrote fewer
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
