"""What was acknowledged is there, once, whatever is killed, stopped or filled up.

DUELAY_KILLS says how often; CONTRIBUTING.md has a command that kills more often.
"""

import os
import random
import signal
import subprocess
import threading
import time
from contextlib import contextmanager, suppress

import pytest
from sqlalchemy import event

from duelay.live import Experiment, StoreError, verify
from duelay.live.writes.writer import Writer
from live.crowd import NAMES, Workers, check
from service.served import wait_until

KILLS = int(os.environ.get("DUELAY_KILLS", "5"))
AWAY = 0.0 if KILLS <= 5 else 10.0  # seconds without a database, at the least

pytestmark = pytest.mark.long


@pytest.mark.timeout(1500 + 60 * KILLS)
def test_what_was_acknowledged_before_a_kill_is_there_once(store, request, tmp_path):
    with Workers(store, tmp_path / "acknowledged") as workers:
        for kill in range(KILLS):
            name = random.choice(NAMES)
            workers.wait_for("asked", random.randint(8, 40))
            assert workers.do("kill", name) == "-9"
            assert workers.do("start", name) == "started"
            if "postgresql" in store and kill % 5 == 2:
                hurt(request.getfixturevalue("postgresql"), store, is_all=kill % 10 == 7)
        workers.wait_for("told", 20)
        workers.finish()
    counts = check(store, workers.folder)
    print(counts)
    assert counts["asked"] > 5 * KILLS


def hurt(server, store, *, is_all):
    """Kill a process of the server that serves this store; or all of them, as if by the power."""
    if is_all:
        server.stop("immediate")
        server.start()
    else:
        name, served = store.split("@/")[1].split("?")[0], []
        while not served:  # both processes may be starting just now
            served = server.execute(f"SELECT pid FROM pg_stat_activity WHERE datname = '{name}'")
        with suppress(ProcessLookupError):
            os.kill(random.choice(served)[0], signal.SIGKILL)


# A database that goes away.


@contextmanager
def away(server, mode):
    """Stop a server for a while."""
    server.stop(mode)
    try:
        yield
    finally:
        server.start()


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_database_that_goes_away_loses_nothing_and_is_found_again(postgresql, mode, tmp_path):
    with postgresql.database() as store, Workers(store, tmp_path / "acknowledged") as workers:
        workers.wait_for("told", 20)
        with away(postgresql, mode):
            time.sleep(AWAY)
            failed = workers.wait_for("failed", 1)  # who has little patience; the others wait
        workers.wait_for("asked", 50)
        workers.finish()
        check(store, workers.folder)
    assert all("does not answer" in words and "call again" in words
               and "check that the server runs" in words for words in failed)  # fmt: skip


def test_a_patient_caller_waits_for_a_database_that_is_away(postgresql, monkeypatch):
    with postgresql.database() as store:
        experiment = Experiment.create(store, "buttons", ["red", "green", "blue"])
        duel, results = experiment.ask(), []
        calls = [lambda: experiment.ask().first, lambda: experiment.tell(duel)]
        write, tries = Writer._write, []
        monkeypatch.setattr(
            Writer, "_write", lambda *words, **more: tries.append(1) or write(*words, **more)
        )
        with away(postgresql, "fast"):
            threads = [threading.Thread(target=lambda call=call: results.append(call()))
                       for call in calls]  # fmt: skip
            for thread in threads:
                thread.start()
            wait_until(lambda: len(tries) >= 4)
            assert results == []
            with pytest.raises(StoreError, match="does not answer.*check that the server runs"):
                experiment.history()
        for thread in threads:
            thread.join()
        assert "counted" in results and len(results) == 2
        assert verify(store) == ()
        experiment.close()


# A disk that is full.


@contextmanager
def small_disk(folder, size):
    """Give a disk of that many bytes."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        words = done.stderr.strip() if done.returncode else ""
    except FileNotFoundError as error:
        words = str(error)
    if words:
        pytest.skip(f"a small disk cannot be mounted here, so that none is filled up: {words}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_full_disk_loses_nothing_and_once_there_is_space_it_goes_on(tmp_path):
    with small_disk(tmp_path / "small", 8_000_000) as disk:
        store = f"sqlite:///{disk}/duels.db"
        with Workers(store, tmp_path / "acknowledged", patience=300.0) as workers:
            workers.wait_for("told", 20)
            fill(disk / "other")
            failed = workers.wait_for("failed", 20)
            (disk / "other").unlink()
            workers.wait_for("asked", 50)
            workers.finish()
        check(store, workers.folder)
    for words in failed:
        assert "nothing of this was kept: free some space on its disk" in words


def fill(file):
    """Leave no room."""
    with file.open("wb", buffering=0) as out:
        for size in (65536, 4096, 1):
            try:
                while True:
                    out.write(b"x" * size)
            except OSError:
                pass


def test_a_store_that_may_not_grow_says_so_loses_nothing_and_goes_on(tmp_path):
    store = f"sqlite:///{tmp_path}/duels.db"
    experiment = Experiment.create(store, "buttons", ["red", "green", "blue"])
    most = {"pages": 1}  # of the file: SQLite never takes less than it has

    @event.listens_for(experiment.store.engine, "checkout")
    def _limit(connection, *_):
        connection.execute(f"PRAGMA max_page_count={most['pages']}")

    kept = []
    with pytest.raises(StoreError, match="is full.*nothing of this was kept: free some space"):
        while True:
            kept.append(experiment.ask(unit="u" * 150 + str(len(kept))).id)
    assert len(kept) > 5
    with pytest.raises(StoreError, match="is full"):
        experiment.ask(unit="u" * 150)
    assert verify(store) == ()
    most["pages"] = 1_000_000
    assert [experiment.tell(id) for id in kept] == ["counted"] * len(kept)
    assert experiment.ask(unit="u" * 150).id not in kept
    assert int(experiment.standing().conversions.sum()) == len(kept)
    assert verify(store) == ()
    experiment.close()
