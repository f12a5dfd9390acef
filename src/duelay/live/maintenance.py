"""Back up a store while it runs, fold its old duels, and compile kernels ahead of their use."""

from __future__ import annotations

import functools
import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import select

from duelay._core import checks
from duelay._core.duration import Duration
from duelay._core.jit.background import COMPILER
from duelay.errors import InvalidValueError, StoreError, UnknownExperimentError
from duelay.live.experiment import Experiment
from duelay.live.storage import schema
from duelay.live.storage.statements import read_heads
from duelay.live.storage.store import Store, open_store
from duelay.live.validation import WINDOW
from duelay.live.writes.compaction import compact_due
from duelay.live.writes.requests import Operation
from duelay.live.writes.settlement import is_at_rest
from duelay.precompilation import FEW, sizes
from duelay.recommendation import GOALS

_A_MOMENT = 1.7e9  # seconds since the epoch, at which an experiment that warms up begins
_PAGES_PER_STEP = 2000  # of a backup, between two reports of progress


def backup(
    store: Store | str | Path,
    path: str | Path,
    progress: Callable[[float], None] = lambda share: None,
) -> Path:
    """Copy a store to a file while it runs, completely or not at all.

    The store may be of another version of duelay: it is copied as it is.
    From SQLite the file is a store, which can be opened. From PostgreSQL it is what
    pg_dump writes, for pg_restore.

    Parameters
    ----------
    store : Store, str or Path
        The store, or its address.
    path : str or Path
        The path of the file, which must not exist.
    progress : callable
        A function that is called with the share that is copied, from 0 to 1.

    Returns
    -------
    Path
        The path of the file.

    Raises
    ------
    InvalidValueError
        If the file exists, or its folder does not.
    StoreError
        If the copy fails.
    """
    store, path = open_store(store), Path(path)
    if path.exists():
        raise InvalidValueError(f"there is a file {path} already: name another one")
    if not path.parent.is_dir():
        raise InvalidValueError(f"there is no folder {path.parent}: make it, or name another one")
    if store.revision() is None:
        store.need()  # says what is missing
    draft = path.with_name(f"{path.name}.{os.getpid()}.draft")
    try:
        if store.is_sqlite:
            _copy_sqlite(Path(str(store.path)), draft, progress)
        else:
            _dump_postgres(store, draft)
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        os.link(draft, path)  # refuses where somebody else has made it meanwhile
    except sqlite3.Error as error:
        raise StoreError(f"the backup to {path} failed, nothing is left of it: {error}") from error
    finally:
        for rest in (draft, *path.parent.glob(f"{draft.name}-*")):
            rest.unlink(missing_ok=True)
    return path


def _copy_sqlite(source: Path, draft: Path, progress: Callable[[float], None]) -> None:
    def tell(status: int, left: int, total: int) -> None:
        progress(1.0 - left / max(total, 1))

    with sqlite3.connect(source) as old, sqlite3.connect(draft) as new:
        old.execute("BEGIN")  # one moment, however long it takes and whoever writes
        old.execute("SELECT count(*) FROM experiments").fetchone()
        old.backup(new, pages=_PAGES_PER_STEP, progress=tell)
        new.execute("PRAGMA journal_mode=DELETE")  # one file
    for connection in (old, new):
        connection.close()


def _dump_postgres(store: Store, draft: Path) -> None:
    program = shutil.which("pg_dump")
    if program is None:
        raise StoreError("a backup of PostgreSQL needs pg_dump, and it is not installed")
    url = store.url.set(drivername="postgresql")
    # A list of the machine's processes shows their arguments, but not their environment.
    secret = {} if url.password is None else {"PGPASSWORD": str(url.password)}
    address = url._replace(password=None).render_as_string(hide_password=False)
    done = subprocess.run(
        [program, "--format=custom", f"--file={draft}", f"--dbname={address}"],
        capture_output=True, text=True, check=False, env=os.environ | secret,
    )  # fmt: skip
    if done.returncode:
        raise StoreError(f"pg_dump failed, nothing is left of the backup: {done.stderr.strip()}")


class Upkeep:
    """Settles what is due in the experiments of a store that nobody asks or tells.

    `opened` is what `Experiment.open` takes.
    """

    def __init__(self, store: Store | str | Path, **opened: Any) -> None:
        self.store, self._opened = open_store(store), opened
        self._open: dict[str, Experiment] = {}

    def settle(self) -> dict[str, str]:
        """Settle each experiment where something is due; return why some could not be, by name."""
        troubles = {}
        with self.store.reading() as connection:
            heads = read_heads(connection)
            behind = {metric.experiment: metric.booked for metric in connection.execute(
                select(schema.metrics).order_by(schema.metrics.c.booked.desc()))}  # fmt: skip
        for gone in self._open.keys() - {head["name"] for head in heads}:
            del self._open[gone]
        for head in heads:
            name = head["name"]
            if is_at_rest(head) and behind.get(head["id"], head["asked"]) == head["asked"]:
                continue
            try:
                if name not in self._open:
                    self._open[name] = Experiment.open(self.store, name, **self._opened)
                self._open[name].settle_due()
            except UnknownExperimentError:  # deleted, and maybe made anew under its name
                self._open.pop(name, None)
            except (ValueError, StoreError) as error:
                troubles[name] = str(error)
            except Exception as error:  # one experiment must not stop the others
                troubles[name] = f"it cannot be settled ({type(error).__name__}: {error})"
        return troubles


def forget(
    store: Store | str | Path,
    after: Any,
    name: str | None = None,
    progress: Callable[[int], None] = lambda n: None,
    **opened: Any,
) -> dict[str, int]:
    """Fold closed duels into the counters, and delete their rows.

    A duel whose window is open is kept.

    Parameters
    ----------
    store : Store, str or Path
        The store, or its address.
    after : Duration, timedelta or str
        The age from which duels are folded.
    name : str, optional
        The name of an experiment; None for all.
    progress : callable
        A function that is called with the number of duels of an experiment that are folded.
    **opened : object
        The keywords of `Experiment.open`.

    Returns
    -------
    dict of str to int
        The number of duels folded, by experiment.
    """
    store, after = open_store(store), checks.duration("forget_after", after)
    found = {}
    for each in Experiment.names(store) if name is None else (name,):
        experiment, n, total = Experiment.open(store, each, **opened), 1, 0
        experiment.settle()  # what is due is closed first
        while n:
            n = experiment.submit(
                Operation(
                    lambda connection, state, moment: compact_due(connection, state, moment, after)
                )
            )
            total += n
            progress(total)
        found[each] = total
    return found


def warm_up(n_arms: int = FEW) -> None:
    """Compile, or load from disk, all kernels of live experiments, so that the first ask is quick.

    Parameters
    ----------
    n_arms : int
        The largest number of arms of an experiment: from 32 on there is more to compile.
    """
    with tempfile.TemporaryDirectory() as folder:
        for goal in GOALS:
            for n in sizes(n_arms):
                store = f"{folder}/warm.db"
                now = [_A_MOMENT]
                experiment = Experiment.create(
                    store, f"{goal} {n}", n, goal=goal, clock=functools.partial(now.__getitem__, 0)
                )
                experiment.tell(experiment.ask())
                now[0] += 2 * float(Duration(WINDOW))  # the duel is due, whatever its age W
                experiment.settle()
                experiment.standing()
                experiment.close()
    COMPILER.wait()
