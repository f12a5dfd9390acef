"""What was acknowledged is there, once, whatever is killed, filled up, stopped or set wrong.

`make chaos` kills more often and waits longer: DUELAY_KILLS says how often.
"""

import collections
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sqlalchemy import select

from duelay.live import Experiment, Store, schema, verify
from live.worker import EXPERIMENTS, converts, read_lines

KILLS = int(os.environ.get("DUELAY_KILLS", "5"))
IS_LONG = KILLS > 5
PROGRAM = Path(__file__).with_name("worker.py")
NAMES = ("a", "b")  # of the processes
N_THREADS = 4
WINDOW = "3s"  # short, so that duels are settled, closed and too late meanwhile


class Workers:
    """Processes that ask and tell; they can be killed and started again."""

    def __init__(self, store, folder):
        self.folder = folder
        folder.mkdir()
        self._errors = (folder / "errors").open("w+")
        self._program = subprocess.Popen(
            [sys.executable, PROGRAM, store, folder, str(N_THREADS)], text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            env=os.environ | {"NUMBA_DISABLE_JIT": "1", "OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip

    def do(self, command, name):
        """Start, kill or stop one."""
        self._program.stdin.write(f"{command} {name}\n")
        return self._program.stdout.readline().strip()

    def finish(self):
        """Stop them; nothing went wrong in any."""
        codes = [self.do("stop", name) for name in NAMES]
        self._errors.seek(0)
        assert (codes, self._errors.read()) == (["0", "0"], "")

    def close(self):
        self._program.stdin.close()
        self._program.wait(timeout=60)
        self._program.stdout.close()
        self._errors.close()


@pytest.fixture
def workers(store, tmp_path):
    """Two processes at work on one store, which has two experiments."""
    for name in EXPERIMENTS:
        Experiment.create(
            store, name, ["red", "green", "blue"], goal=name, window=WINDOW, share=1.0
        ).close()
    started = Workers(store, tmp_path / "acknowledged")
    for name in NAMES:
        started.do("start", name)
    yield started
    started.close()


def check(store, folder):
    """Compare what the store has with what it has acknowledged; return the counts of both."""
    lines = [words for file in sorted(folder.glob("?-?")) for words in read_lines(file)]
    said = collections.defaultdict(list)
    for words in lines:
        said[words[0]].append(words[1:])
    asked = {key: id for key, id, *_ in said["asked"]}
    results = collections.defaultdict(collections.Counter)
    for result, id in [*said["told"], *said["meddled"]]:
        results[id][result] += 1
    opened = Store(store)
    with opened.reading() as connection:
        rows = connection.execute(select(schema.duels)).all()
        heads = connection.execute(select(schema.experiments)).all()
        pairs = connection.execute(select(schema.pairs)).all()
    opened.close()
    duels = {row.id: row for row in rows}

    # Every ask that was acknowledged is one row, and there is no other.
    assert len(asked) == len(said["asked"]) == len(set(asked.values()))
    assert {row.key: row.id for row in rows} == asked
    assert len({row.unit for row in rows}) == len(rows)
    # So it is with answers: each is counted once, or was too late.
    assert set(results) == {id for key, id in asked.items() if converts(key)}
    for id, heard in results.items():
        assert heard["counted"] <= 1
        is_late = heard["late"] > 0
        assert is_late != (heard["counted"] + heard["repeated"] > 0)
        assert (duels[id].told is None) == (duels[id].late is not None) == is_late
    assert all(row.told is None and row.late is None for row in rows if row.id not in results)
    for head in heads:
        own = [row for row in rows if row.experiment == head.id]
        told = [row for row in own if row.told is not None]
        assert head.asked == len(own) and head.heard == len(told)
        assert head.late == sum(row.late is not None for row in own)
        assert sum(pair.plays for pair in pairs if pair.experiment == head.id) == len(own)
        assert sum(pair.conversions for pair in pairs if pair.experiment == head.id) == len(told)
        assert {row.place for row in told} == set(range(1, len(told) + 1))
        assert {row.number for row in own} == set(range(1, len(own) + 1))
    assert verify(store) == ()
    return {name: len(these) for name, these in said.items()} | {
        "late": sum(row.late is not None for row in rows),
        "found again": sum(heard["counted"] == 0 and heard["repeated"] > 0
                           for heard in results.values()),
    }  # fmt: skip


@pytest.mark.long
@pytest.mark.timeout(60 + 10 * KILLS)
def test_what_was_acknowledged_before_a_kill_is_there_once(store, workers, request):
    for kill in range(KILLS):
        name = random.choice(NAMES)
        time.sleep(random.uniform(0.2, 1.5))
        assert workers.do("kill", name) == "-9"
        assert workers.do("start", name) == "started"
        if "postgresql" in store and kill % 5 == 2:
            hurt(request.getfixturevalue("postgresql"), store, is_all=kill % 10 == 7)
    time.sleep(1.0)
    workers.finish()
    counts = check(store, workers.folder)
    print(counts)
    assert counts["asked"] > 20 * KILLS


def hurt(server, store, *, is_all):
    """Kill a process of the server that serves this store; or all of them, as if by the power."""
    if is_all:
        server.stop("immediate")
        server.start()
    else:
        name = store.split("@/")[1].split("?")[0]
        served = server.execute(f"SELECT pid FROM pg_stat_activity WHERE datname = '{name}'")
        os.kill(random.choice(served)[0], signal.SIGKILL)
