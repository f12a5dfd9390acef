"""Execute the missing cells of a specification, here or on a cluster; it can be resumed."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import filelock
import joblib
from tqdm import tqdm

from duelay import __version__
from duelay._core import checks
from duelay._core.files import write_whole
from duelay._core.stderr import say as say_aloud
from duelay.errors import InvalidValueError, WorkFailedError
from duelay.experiments import cluster
from duelay.experiments.cells import (
    Cell,
    OtherSourcesError,
    cells_of,
    compute,
    read,
    write,
)
from duelay.experiments.spec import Specification
from duelay.policies.policy import CompiledPolicy
from duelay.simulation import Setting
from duelay.simulation.simulate import compile_ahead

CLUSTER_SECONDS = 10  # how long to wait for a cluster's answer
BACKENDS = {"threads": "threading", "processes": "loky", "dask": "dask", "ray": "ray"}


@contextlib.contextmanager
def opened(folder: Path, spec: Specification) -> Iterator[Path]:
    """Take hold of a results folder: make it, lock it, check that it is this specification's.

    The lock is the operating system's and goes with the process, however that ends.
    """
    lock = filelock.FileLock(folder / ".lock")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise InvalidValueError(
            f"another duelay process is at work in {folder}: wait for it"
        ) from None
    except OSError as error:
        raise InvalidValueError(f"cannot work in {folder}: {error.strerror or error}") from None
    try:
        try:
            _claim(folder, spec)
            for draft in folder.rglob(".draft-*"):  # of a process that was killed
                draft.unlink(missing_ok=True)
        except OSError as error:
            raise InvalidValueError(f"cannot work in {folder}: {error.strerror or error}") from None
        try:
            yield folder
        except OSError as error:  # the tables, the figures or the report
            raise WorkFailedError(_stopped(folder, "with all cells done", error)) from error
    finally:
        lock.release()


def _claim(folder: Path, spec: Specification) -> None:
    """Refuse a folder that holds something else; note whose it is."""
    path = folder / "specification.json"
    if path.exists():
        try:
            name = json.loads(path.read_text(encoding="utf-8"))["name"]
        except (ValueError, KeyError, TypeError, OSError):
            name = None
        if name is None and not (folder / "cells").is_dir():
            raise InvalidValueError(f"{path} is not one of duelay's: choose another folder")
        if name is not None and name != spec.name:
            raise InvalidValueError(
                f"{folder} holds the results of the specification {name!r}, not of {spec.name!r}: "
                f"choose another folder"
            )
    elif any(not _is_ours(entry) for entry in folder.iterdir()):
        raise InvalidValueError(
            f"{folder} is not empty and holds no results: choose another folder"
        )
    content = json.dumps(spec.normal_form(), indent=2, ensure_ascii=False) + "\n"
    write_whole(path, content.encode())
    (folder / "cells").mkdir(exist_ok=True)


def _is_ours(entry: Path) -> bool:
    """Whether this is what a run that was stopped at its very start leaves behind."""
    empty = entry.name == "cells" and entry.is_dir() and not any(entry.iterdir())
    return empty or entry.name == ".lock" or entry.name.startswith(".draft-")


def execute(
    spec: Specification,
    folder: Path,
    *,
    workers: int | None = None,
    backend: str = "threads",
    address: str | None = None,
    quiet: bool = False,
    say: Callable[[str], None] | None = None,
) -> int:
    """Compute and write every cell that is missing, damaged or of other sources.

    Returns how many were computed. The folder must be `opened`.
    """
    say = say or say_aloud
    workers = None if workers is None else checks.whole("workers", workers)
    checks.one_of("backend", backend, BACKENDS)
    store = folder / "cells"
    cells = cells_of(spec)
    missing = _missing(cells, store, say)
    if not missing:
        return 0
    done = len(cells) - len(missing)
    by_name = {cell.file_name: cell for cell in missing}
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(_backend(backend, address))
        try:
            if backend == "threads":
                missing = _by_kind(missing)
                stack.enter_context(compiled_ahead(missing))
            elif backend == "processes":
                compile_for(missing)  # here and not in every process: they find it on disk
            outcomes = _outcomes(missing, workers, backend, client)
            step = stack.enter_context(
                report_progress(len(cells), " cells", done=done, quiet=quiet, say=say)
            )
            for name, arrays, made_by, seconds in outcomes:
                cell = by_name[name]
                _check_alike(made_by, _made_by(cell))
                write(cell, arrays, store)
                done += 1
                step(f"{cell} ({seconds:.1f} s)")
        except WorkFailedError:
            raise
        except Exception as error:  # a full disk, a lost cluster, a worker that was killed
            how_far = f"after {done} of {len(cells)} cells"
            raise WorkFailedError(_stopped(folder, how_far, error)) from error
    return len(missing)


def _stopped(folder: Path, how_far: str, error: Exception) -> str:
    """Say why the work stopped, what is left of it and what to do."""
    if not (folder / "cells").is_dir():
        return (
            f"stopped {how_far}: {folder} was removed or moved meanwhile; put it back, or run "
            f"again to begin anew"
        )
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return f"stopped {how_far}, which are kept: {reason}"


@contextlib.contextmanager
def compiled_ahead(cells: list[Cell]) -> Iterator[None]:
    """Compile in a thread what the cells need, in their order, while the first of them run.

    Kernels run without the GIL: so one core compiles, and the others are not idle meanwhile.
    """
    stop = threading.Event()

    def work() -> None:
        with contextlib.suppress(Exception):  # a cell that cannot be compiled says so itself
            compile_for(cells, stop)

    thread = threading.Thread(target=work, name="compiling ahead")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def compile_for(cells: list[Cell], stop: threading.Event | None = None) -> None:
    """Compile, or load from disk, the kernels of each kind of cell."""
    kinds = {_kind(cell): cell for cell in cells if isinstance(cell.policy, CompiledPolicy)}
    for cell in kinds.values():
        if stop is not None and stop.is_set():
            return
        compile_ahead(cell.problem, cell.policy, delay=cell.delay, setting=cell.setting)


def _kind(cell: Cell) -> tuple[str, str, Setting]:
    """Return the kind of a cell: cells of one kind have the same kernels."""
    return str(cell.policy), str(cell.delay), cell.setting


def _by_kind(cells: list[Cell]) -> list[Cell]:
    """Return the cells of the first kind first: they run while the next kind is compiled."""
    places: dict[Any, int] = {}
    for cell in cells:
        places.setdefault(_kind(cell), len(places))
    return sorted(cells, key=lambda cell: places[_kind(cell)])


def _outcomes(cells: list[Cell], workers: int | None, backend: str, client: Any) -> Iterator[Any]:
    """Yield cells with their arrays as they are finished, in any order."""
    if backend == "dask":
        yield from cluster.outcomes(client, _work, cells)
        return
    parent = os.getpid() if backend == "processes" else None
    tasks = [joblib.delayed(_work)(cell, parent) for cell in cells]
    if backend == "ray":  # it answers only when all is done: hand it 64 cells at a time
        size = 64
        for start in range(0, len(tasks), size):
            yield from joblib.Parallel(n_jobs=workers or -1)(tasks[start : start + size])
    else:
        yield from joblib.Parallel(
            n_jobs=workers or -1, return_as="generator_unordered", batch_size=1
        )(tasks)


def _work(cell: Cell, parent: int | None) -> tuple[str, dict[str, Any], dict[str, str], float]:
    """Compute a cell in a worker; it writes nothing, so it needs no shared disk."""
    if parent is not None and parent != os.getpid():
        _die_with(parent)
    start = time.perf_counter()
    return cell.file_name, compute(cell), _made_by(cell), time.perf_counter() - start


def _made_by(cell: Cell) -> dict[str, str]:
    """Return the sources of a cell's numbers here, but for `__main__`, which differs in workers."""
    sources = {name: made for name, made in cell.made_by.items() if name != "__main__"}
    return {**sources, "duelay": f"{__version__}, sources {sources['duelay']}"}


def _check_alike(there: dict[str, str], here: dict[str, str]) -> None:
    """Refuse the numbers of a worker that has other sources."""
    for name, made_by in here.items():
        if there.get(name) != made_by:
            raise WorkFailedError(
                f"a worker has another {name} ({there.get(name)}) than this process ({made_by}): "
                f"install the same, and start the worker anew"
            )


@functools.cache
def _die_with(parent: int) -> None:
    """End this worker process soon after its parent has ended, however that came about."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _missing(cells: list[Cell], store: Path, say: Callable[[str], None]) -> list[Cell]:
    """Return the cells to compute; say why, for those that are damaged or of other sources."""
    missing, stale, names = [], 0, set[str]()
    for cell in cells:
        try:
            if read(cell, store) is None:
                missing.append(cell)
        except OtherSourcesError as error:
            missing.append(cell)
            stale += 1
            names |= set(error.names)
        except ValueError as error:
            place = store / cell.file_name
            if place.is_dir():
                raise WorkFailedError(
                    f"{place} is a folder, and a cell belongs there: move it away, and run again"
                ) from None
            missing.append(cell)
            say(f"{error}: it is computed again")
    if stale:
        say(
            f"{stale} of {len(cells)} cells were made by other sources of "
            f"{', '.join(sorted(names))}: they are computed again"
        )
    return missing


@contextlib.contextmanager
def _backend(backend: str, address: str | None) -> Iterator[Any]:
    """Choose joblib's backend, or Dask; reach the cluster before anything is sent to it."""
    if backend == "dask":
        try:
            from distributed import Client
        except ImportError:
            raise InvalidValueError(
                "backend dask needs distributed: pip install 'duelay[dask]'", argument="backend"
            ) from None
        if not address:
            raise InvalidValueError(
                "backend dask needs the address of a scheduler, tcp://HOST:PORT", argument="backend"
            )
        try:
            client = Client(address, timeout=CLUSTER_SECONDS, set_as_default=True)
        except (OSError, TimeoutError, ValueError) as error:
            raise InvalidValueError(f"no Dask cluster answers at {address}: {error}") from None
        with cluster.quiet(), client:
            try:
                client.wait_for_workers(1, timeout=CLUSTER_SECONDS)
            except (OSError, TimeoutError):
                raise InvalidValueError(
                    f"the Dask cluster at {address} has no workers: start some, dask worker "
                    f"{address}"
                ) from None
            yield client
    elif backend == "ray":
        try:
            import ray
            from ray.util.joblib import register_ray
        except ImportError:
            raise InvalidValueError(
                "backend ray needs ray: pip install 'duelay[ray]'", argument="backend"
            ) from None
        try:
            ray.init(address=address, ignore_reinit_error=True)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise InvalidValueError(f"no Ray cluster answers at {address}: {error}") from None
        register_ray()
        with joblib.parallel_config(backend="ray"):
            yield
    else:
        with joblib.parallel_config(backend=BACKENDS[backend]):
            yield


@contextlib.contextmanager
def report_progress(
    total: int,
    unit: str,
    *,
    done: int = 0,
    quiet: bool = False,
    say: Callable[[str], None] | None = None,
) -> Iterator[Callable[[str], None]]:
    """Yield a function to call after each step, with a text about it.

    On a terminal the function advances a bar with the time left. Elsewhere it writes a line. With
    `quiet` it does nothing.
    """
    say = say or say_aloud
    is_terminal = not quiet and sys.stderr is not None and sys.stderr.isatty()
    # smoothing=0: the time left is by the mean of all steps, since these differ a hundredfold.
    bar = tqdm(total=total, initial=done, unit=unit, disable=not is_terminal, smoothing=0)

    def step(words: str) -> None:
        nonlocal done
        done += 1
        bar.update(1)
        if not (is_terminal or quiet):
            say(f"{done}/{total} {words}")

    with bar:
        yield step
