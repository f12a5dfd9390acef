"""Processes that ask and tell for a test, and the account of what they have heard."""

import collections
import os
import subprocess
import sys
import time
from pathlib import Path

from sqlalchemy import select

from duelay.live import Experiment, Store, verify
from duelay.live.storage import schema
from live.worker import EXPERIMENTS, converts, read_lines

PROGRAM = Path(__file__).with_name("worker.py")
NAMES = ("a", "b")  # of the processes
N_THREADS = 4
WINDOW = "3s"  # short, so that duels are settled, closed and too late meanwhile


class Workers:
    """Two processes at work on one store, which has two experiments.

    They can be killed and started again. `patience` is that of their calls.
    """

    def __init__(self, store, folder, patience=2.0):
        for name in EXPERIMENTS:
            Experiment.create(
                store, name, ["red", "green", "blue"], goal=name, window=WINDOW, share=1.0,
                margin=0.02,
            ).close()  # fmt: skip
        self.folder = folder
        folder.mkdir()
        self._errors = (folder / "errors").open("w+")
        self._program = subprocess.Popen(
            [sys.executable, PROGRAM, store, folder, str(N_THREADS), str(patience)],
            text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            env=os.environ | {"NUMBA_DISABLE_JIT": "1", "OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip

        for name in NAMES:
            self.do("start", name)

    def do(self, command, name):
        """Start, kill or stop one."""
        self._program.stdin.write(f"{command} {name}\n")
        return self._program.stdout.readline().strip()

    def said(self, kind):
        """Return what they have written down so far: asked, told, or failed."""
        lines = [words for file in self.folder.glob("?-?") for words in read_lines(file)]
        return [" ".join(words[1:]) for words in lines if words[:1] == [kind]]

    def wait_for(self, kind, n, seconds=300.0):
        """Wait until they have written down n more of a kind; return these."""
        before, until = len(self.said(kind)), time.monotonic() + seconds
        while len(found := self.said(kind)) < before + n:
            assert time.monotonic() < until, f"{len(found) - before} {kind} in {seconds} seconds"
            time.sleep(0.05)
        return found[before:]

    def finish(self):
        """Stop them; nothing went wrong in any."""
        codes = [self.do("stop", name) for name in NAMES]
        self._errors.seek(0)
        assert (codes, self._errors.read()) == (["0", "0"], "")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._program.stdin.close()
        self._program.wait(timeout=300)
        self._program.stdout.close()
        self._errors.close()


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
    kept = {row.key: row.id for row in rows}
    assert kept == asked, (kept.items() - asked.items(), asked.items() - kept.items())
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
        these = [pair for pair in pairs if pair.experiment == head.id]
        assert sum(pair.plays for pair in these) == len(own)
        assert sum(pair.conversions for pair in these) == len(told)
        assert sum(pair.late for pair in these) == sum(row.late is not None for row in own)
        assert {row.place for row in told} == set(range(1, len(told) + 1))
        assert {row.number for row in own} == set(range(1, len(own) + 1))
    assert verify(store) == ()
    return {name: len(these) for name, these in said.items()} | {
        "late": sum(row.late is not None for row in rows),
        "found again": sum(heard["counted"] == 0 and heard["repeated"] > 0
                           for heard in results.values()),
    }  # fmt: skip
