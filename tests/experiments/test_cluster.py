"""A real Dask cluster on loopback, one of whose two workers is killed half-way."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from duelay import experiments
from duelay.experiments import cluster as on_dask
from duelay.experiments import spec_parser
from helpers import SMALL, fingerprint
from own import MINE, finish, small

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A cluster on a machine that is slow is not taken for one that is gone."""
    monkeypatch.setattr(on_dask, "LOST_SECONDS", 600)
    monkeypatch.setattr("duelay.experiments.execution.CLUSTER_SECONDS", 600)


@pytest.fixture
def cluster(tmp_path):
    """A scheduler and two worker processes; they end with the test."""
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'duelay[dask]'")
    scheduler_file = tmp_path / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path,
             "env": {**os.environ, "TMPDIR": str(tmp_path)}}  # fmt: skip
    dask = [sys.executable, "-m", "dask"]
    scheduler = subprocess.Popen(
        [*dask, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
         "--scheduler-file", str(scheduler_file)], **quiet,
    )  # fmt: skip
    workers = []
    try:
        until = time.monotonic() + 600
        while not scheduler_file.exists() and time.monotonic() < until:
            time.sleep(0.1)
        for _ in range(2):
            workers.append(
                subprocess.Popen(
                    [
                        *dask,
                        "worker",
                        "--scheduler-file",
                        str(scheduler_file),
                        "--nthreads",
                        "1",
                        "--nworkers",
                        "1",
                        "--no-nanny",
                        "--no-dashboard",
                    ],
                    **quiet,
                )  # fmt: skip
            )
        import json

        yield json.loads(scheduler_file.read_text())["address"], workers
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()


def cells(lines):
    """The lines that tell of a cell, and not of tables or figures."""
    return [line for line in lines if "/48 " in line]


@pytest.mark.compiled
def test_a_cluster_that_loses_a_worker_gives_the_same_bytes(cluster, tmp_path, monkeypatch):
    from duelay.experiments import execution

    address, workers = cluster
    from distributed import Client

    with Client(address) as client:
        client.wait_for_workers(2, timeout=600)
    source = SMALL.replace("horizon = 300", "horizon = 100_000").replace("runs = 5", "runs = 12")
    spec = spec_parser.parse(source.replace("block = 2", "block = 1"), "small.toml", Path())
    experiments.run(spec, tmp_path / "here", workers=2, quiet=True)
    seen = []

    def lose_one(line):
        seen.append(line)
        if len(seen) == 8:
            workers[0].kill()

    def not_here(cell):
        raise AssertionError("computed in the process that was started, not on the cluster")

    with monkeypatch.context() as context:
        context.setattr(execution, "compute", not_here)
        experiments.run(spec, tmp_path / "there", backend="dask", address=address, say=lose_one)
    assert len(cells(seen)) == 48
    assert workers[0].poll() is not None and workers[1].poll() is None
    assert fingerprint(tmp_path / "there") == fingerprint(tmp_path / "here")


@pytest.fixture
def busy(cluster):
    """A cluster at work, and a specification that keeps it so for a while."""
    from distributed import Client

    address, workers = cluster
    with Client(address) as client:
        client.wait_for_workers(2, timeout=600)
    source = SMALL.replace("horizon = 300", "horizon = 100_000").replace("runs = 5", "runs = 12")
    return (
        address,
        workers,
        spec_parser.parse(source.replace("block = 2", "block = 1"), "s", Path()),
    )


@pytest.mark.compiled
def test_a_cluster_that_loses_all_workers_is_one_sentence_after_a_while(
    busy, tmp_path, monkeypatch
):
    monkeypatch.setattr(on_dask, "LOST_SECONDS", 3)
    address, workers, long = busy
    seen = []

    def lose_all(line):
        seen.append(line)
        if len(seen) == 4:
            for worker in workers:
                worker.kill()

    with pytest.raises(experiments.WorkFailedError, match="no worker"):
        experiments.run(long, tmp_path / "out", backend="dask", address=address, say=lose_all)
    kept = len(list((tmp_path / "out" / "cells").glob("*.npz")))
    assert kept == len(seen) >= 4
    seen.clear()
    experiments.run(long, tmp_path / "out", workers=2, say=seen.append)
    assert len(cells(seen)) == 48 - kept


def test_a_result_that_is_here_counts_though_its_worker_is_lost_since(cluster, monkeypatch):
    import distributed
    from distributed import Client

    class Known(distributed.as_completed):
        def __init__(self, *given, **told):
            super().__init__(*given, **told)
            known.append(self)

    known = []
    monkeypatch.setattr(distributed, "as_completed", Known)

    address, workers = cluster
    with Client(address) as client, on_dask.quiet():
        client.wait_for_workers(2, timeout=600)
        outcomes = on_dask.outcomes(client, lambda cell, _: (time.sleep(0.1), cell), range(4))
        found = [next(outcomes)[1]]
        while known[0].futures:  # the others come meanwhile
            time.sleep(0.1)
        for worker in workers:
            worker.kill()
            worker.wait()
        while client.nthreads():
            time.sleep(0.1)
        assert sorted([*found, *(cell for _, cell in outcomes)]) == [0, 1, 2, 3]


@pytest.mark.compiled
def test_a_cluster_without_workers_is_one_sentence(busy, tmp_path, monkeypatch):
    from distributed import Client

    address, workers, long = busy
    for worker in workers:
        worker.kill()
        worker.wait()
    with Client(address) as client:
        while client.nthreads():
            time.sleep(0.1)
    wait = Client.wait_for_workers  # the scheduler answers as late as it may, and there is nobody
    monkeypatch.setattr(Client, "wait_for_workers", lambda self, n, timeout: wait(self, n, 0.1))
    with pytest.raises(ValueError, match=f"{address} has no workers"):
        experiments.run(long, tmp_path / "out", backend="dask", address=address)


@pytest.mark.compiled
def test_a_cluster_is_sent_the_policies_of_somebodys_own(cluster, module, tmp_path, monkeypatch):
    """Its workers have neither the module nor what it imports, and keep no earlier edit of it."""
    from duelay.experiments import execution

    address, workers = cluster
    from distributed import Client

    with Client(address) as client:
        client.wait_for_workers(2, timeout=600)

    def not_here(cell):
        raise AssertionError("computed in the process that was started, not on the cluster")

    there, specs = [], tmp_path / "specs"
    for step in (1, 5):
        source = MINE.replace("import duelay", "import duelay\nimport helper", 1)
        module(source=source.replace("{step}", "helper.STEP"), folder=specs)
        (specs / "helper.py").write_text(f"STEP = {step}\n" * step)
        spec = spec_parser.parse(small(), "small.toml", specs)
        with monkeypatch.context() as context:
            context.setattr(execution, "compute", not_here)
            there.append(finish(spec, tmp_path / "there", backend="dask", address=address))
        assert there[-1] == finish(spec, tmp_path / "here")
    assert there[0] != there[1]


def test_a_cluster_that_does_not_answer_is_one_sentence(tmp_path, monkeypatch):
    from duelay.experiments import execution

    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'duelay[dask]'")
    monkeypatch.setattr(execution, "CLUSTER_SECONDS", 1)
    spec = spec_parser.parse(SMALL, "small.toml", Path())
    with pytest.raises(ValueError, match="tcp://127.0.0.1:9"):
        experiments.run(spec, tmp_path / "out", backend="dask", address="tcp://127.0.0.1:9")
    with pytest.raises(ValueError, match="address"):
        experiments.run(spec, tmp_path / "out", backend="dask")


@pytest.mark.parametrize("backend, package", [("dask", "distributed"), ("ray", "ray")])
def test_a_missing_extra_is_named(tmp_path, monkeypatch, backend, package):
    monkeypatch.setitem(sys.modules, package, None)
    spec = spec_parser.parse(SMALL, "small.toml", Path())
    with pytest.raises(ValueError, match=rf"pip install 'duelay\[{backend}\]'"):
        experiments.run(spec, tmp_path / "out", backend=backend, address="tcp://127.0.0.1:9")
