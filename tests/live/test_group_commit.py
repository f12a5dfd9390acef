"""Commits in groups: everybody gets its own answer, after its own commit."""

import gc
import json
import os
import signal
import threading

import numpy as np
import pytest

from duelay._core import forks
from duelay._core.jit import background
from duelay.live import (
    Experiment,
    Store,
    StoreError,
    UnknownDuelError,
    backup,
    verify,
)
from duelay.live.ledger_replica import LedgerReplica
from duelay.live.writes import writer
from duelay.live.writes.group_commit import Batch, Request
from service.served import CallingCommitter, wait_until


class Number(Request):
    def __init__(self, n):
        super().__init__()
        self.n = n


def in_threads(n, work):
    """Let n threads work at once; return what each returned or raised."""
    found = [None] * n

    def one(k):
        try:
            found[k] = work(k)
        except Exception as error:
            found[k] = error

    threads = [threading.Thread(target=one, args=(k,)) for k in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
        assert not thread.is_alive(), "somebody waits for ever"
    return found


def gated(n, commit, *most):
    """A committer, and what lets n threads work: the first writes alone, once all others wait."""
    leads = threading.Event()

    def gate(group):
        if not leads.is_set():
            leads.set()
            wait_until(lambda: len(committer._queue) == n - 1, every=0.001)
        commit(group)

    def run(work):
        return in_threads(n, lambda k: (k == 0 or leads.wait(300)) and work(k))

    committer = CallingCommitter(gate, *most)
    return committer, run


def test_everybody_gets_its_own_result_and_groups_form():
    """A commit takes until all others wait: so two commits, one after the other, write for all."""
    written, sizes, at_work = [], [], set(range(20))

    def commit(group):
        wait_until(lambda: len(group) + len(committer._queue) >= len(at_work), every=0.001)
        written.extend(request.n for request in group)
        sizes.append(len(group))
        for request in group:
            request.result = -request.n

    def work(k):
        found = [committer.submit(Number(20 * i + k)) for i in range(10)]
        at_work.remove(k)
        return found

    committer = CallingCommitter(commit)
    found = in_threads(20, work)
    assert found == [[-(20 * i + k) for i in range(10)] for k in range(20)]
    assert sorted(written) == list(range(200))
    assert sum(sizes) == 200 and len(sizes) < 100


def test_a_group_is_no_larger_than_the_most():
    sizes = []

    committer, run = gated(12, lambda group: sizes.append(len(group)), 3)
    run(lambda k: committer.submit(Number(k)))
    assert sizes == [1, 3, 3, 3, 2]


def test_an_error_is_of_its_group_alone():
    groups = []

    def commit(group):
        groups.append({request.n for request in group})
        if any(request.n == 7 for request in group):
            raise ValueError("seven")

    committer, run = gated(10, commit, 2)
    found = run(lambda k: committer.submit(Number(k)))
    failed = {k for k, error in enumerate(found) if isinstance(error, ValueError)}
    assert [failed] == [group for group in groups if 7 in group]
    assert [len(group) for group in groups] == [1, 2, 2, 2, 2, 1]
    assert committer.submit(Number(1)) is None


def test_a_leader_that_is_stopped_lets_the_others_try_again():
    def commit(group):
        if group[0].n == 0:
            raise KeyboardInterrupt

    committer, run = gated(5, commit)

    def work(k):
        try:
            return committer.submit(Number(k))
        except KeyboardInterrupt:
            return "stopped"

    assert run(work) == ["stopped", None, None, None, None]


def test_one_bad_call_does_not_harm_the_others_of_its_group(store):
    experiment = Experiment.create(store, "x", ["a", "b"])
    duels = [experiment.ask() for _ in range(16)]

    def work(k):
        return experiment.tell("nobody" if k % 4 == 0 else duels[k])

    found = in_threads(16, work)
    assert [isinstance(answer, UnknownDuelError) for answer in found] == [
        k % 4 == 0 for k in range(16)
    ]
    assert experiment.standing().conversions.sum() == 12 and verify(store) == ()


def test_threads_that_ask_for_one_unit_or_key_get_one_duel(store):
    experiment = Experiment.create(store, "x", ["a", "b"])
    other = Experiment.open(store, "x")
    both = (experiment, other)
    assert len(set(in_threads(8, lambda k: both[k % 2].ask(unit="v")))) == 1
    assert len(set(in_threads(8, lambda k: both[k % 2].ask(key="k")))) == 1
    told = in_threads(8, lambda k: both[k % 2].tell(experiment.ask(key="k")))
    assert sorted(told) == ["counted"] + ["repeated"] * 7
    assert verify(store) == ()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_goes_on_with_coins_of_its_own(store):
    experiment = Experiment.create(store, "x", [str(k) for k in range(12)], goal="regret")
    for _ in range(5):
        experiment.ask()
    children = []
    for k in range(2):
        if (pid := os.fork()) == 0:
            try:
                asked = [experiment.ask(key=f"{k} {n}") for n in range(25)]
                os._exit(0 if all(experiment.tell(duel) == "counted" for duel in asked) else 1)
            except BaseException:
                os._exit(2)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0]
    assert experiment.ask().id is not None
    history = experiment.history()
    assert history.n == 56 and verify(store) == ()
    one = [tuple(experiment.ask(key=f"0 {n}")[1:3]) for n in range(25)]
    other = [tuple(experiment.ask(key=f"1 {n}")[1:3]) for n in range(25)]
    assert one != other


class Watched:
    """A lock that says when the main thread, which forks, wants it."""

    def __init__(self, lock):
        self.lock, self.is_wanted = lock, threading.Event()

    def acquire(self, *words, **more):
        if threading.current_thread() is threading.main_thread():
            self.is_wanted.set()
        return self.lock.acquire(*words, **more)

    def release(self):
        self.lock.release()

    def __enter__(self):
        return self.acquire()

    def __exit__(self, *_):
        self.release()


def forked_while_writing(experiment, *, is_waited_for):
    """What a child, forked while a thread of its parent writes, gets for six asks at once.

    The thread ends its write while the fork waits for that, or after the fork.
    """
    writing, forked, (reads, writes) = threading.Event(), threading.Event(), os.pipe()
    lock = experiment.store._lock = Watched(experiment.store._lock)

    def write():
        with experiment.store.writing():
            writing.set()
            assert (lock.is_wanted if is_waited_for else forked).wait(300)

    thread = threading.Thread(target=write)
    thread.start()
    assert writing.wait(300)
    child = os.fork()
    if child == 0:
        signal.alarm(300)
        try:
            asked = in_threads(6, lambda k: experiment.ask(key=str(k)))
            words = [str(getattr(duel, "id", duel)) for duel in asked]
            os.write(writes, json.dumps(words).encode())
        finally:
            os._exit(0)
    forked.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    found = json.loads(os.read(reads, 1 << 16))
    os.close(reads)
    os.close(writes)
    return found


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_while_a_thread_writes_goes_on_in_the_child(store, monkeypatch):
    """None of its threads waits for a thread that is not there, and no ask is lost."""
    monkeypatch.setattr(forks, "_MAX_WAIT_SECONDS", 300.0)
    experiment = Experiment.create(store, "x", ["a", "b"])
    found = forked_while_writing(experiment, is_waited_for=True)
    assert found == [experiment.ask(key=str(k)).id for k in range(6)] and len(set(found)) == 6
    assert experiment.history().n == 6 and verify(store) == ()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_sqlite_would_let_wait_for_ever_is_told_so_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(forks, "_MAX_WAIT_SECONDS", 0.05)
    experiment = Experiment.create(tmp_path / "duels.db", "x", ["a", "b"])
    found = forked_while_writing(experiment, is_waited_for=False)
    assert all("forked while a thread was writing" in words for words in found)
    assert experiment.ask().id is not None


def test_no_transaction_waits_for_the_compiler(store, monkeypatch):
    """It is rolled back meanwhile, so that other processes can write, and done again."""
    experiment, assign, waits = Experiment.create(store, "x", ["a", "b"]), writer.assign_duels, []

    class Kernel:
        def compile(self, kind, types):
            waits.append(kind)
            Experiment.open(store, "x").ask()

    def call(*words, **more):
        if not waits:
            raise background.CompilationError(Kernel(), "kind", ())
        return assign(*words, **more)

    monkeypatch.setattr(writer, "assign_duels", call)
    assert experiment.ask().id is not None
    assert waits == ["kind"] and experiment.standing().tick == 2 and verify(store) == ()


def test_the_log_is_replayed_before_a_transaction_begins(store, monkeypatch):
    made = Experiment.create(store, "x", ["a", "b"], goal="regret")
    made.ask()
    experiment, read, n_read = Experiment.open(store, "x"), LedgerReplica.read, []

    def note(self, connection, state, moment):
        begun = self._asked
        read(self, connection, state, moment)
        is_writing = bool(connection.get_execution_options().get("writes"))
        n_read.append((is_writing, self._asked - begun))

    monkeypatch.setattr(LedgerReplica, "read", note)
    experiment.ask()
    assert n_read == [(False, 1)]
    assert experiment.standing().tick == 2


def test_a_leader_that_is_stopped_before_it_writes_hands_over():
    """Ctrl-C may come between any two steps: whoever comes later must not wait for ever."""

    class Stopped(CallingCommitter):
        def lead(self, request):
            if request.n == 0:
                raise KeyboardInterrupt
            super().lead(request)

    done = []
    committer = Stopped(lambda group: done.extend(request.n for request in group))
    with pytest.raises(KeyboardInterrupt):
        committer.submit(Number(0))
    in_threads(3, lambda k: committer.submit(Number(k + 1)))
    assert sorted(done) == [1, 2, 3]


def test_a_store_that_is_gone_is_said_and_comes_back(tmp_path):
    path = tmp_path / "duels.db"
    experiment = Experiment.create(path, "x", ["a", "b"], patience=0.2)
    duel = experiment.ask()
    experiment.close()
    path.rename(tmp_path / "away.db")
    with pytest.raises(StoreError, match="is gone"):
        experiment.tell(duel)
    (tmp_path / "away.db").rename(path)
    assert experiment.tell(duel) == "counted"
    assert np.array(experiment.standing().conversions).sum() == 1


def test_a_file_that_is_removed_under_a_running_process_is_noticed(tmp_path):
    path = tmp_path / "duels.db"
    experiment = Experiment.create(path, "x", ["a", "b"])
    duel = experiment.ask()
    for made in tmp_path.glob("duels.db*"):
        made.unlink()
    for call in (experiment.ask, lambda: experiment.tell(duel), experiment.standing):
        with pytest.raises(StoreError, match="is gone"):
            call()
    Experiment.create(path, "x", ["a", "b"])
    for _ in range(2):  # until the program is started again
        with pytest.raises(StoreError, match="was replaced"):
            experiment.tell(duel)
    assert Experiment.open(path, "x").ask().id is not None and verify(path) == ()


def replaced_by_a_backup(path):
    """Return a running experiment whose file is now a backup without its answers, and its duels."""
    experiment, copy = Experiment.create(path, "x", ["a", "b"]), path.with_name("copy.db")
    duels = [experiment.ask() for _ in range(5)]
    backup(experiment.store, copy)
    experiment.tell_all(duels)
    copy.replace(path)
    return experiment, duels


def test_a_backup_that_is_moved_over_a_running_store_is_not_touched(tmp_path):
    path = tmp_path / "duels.db"
    experiment, duels = replaced_by_a_backup(path)
    whole, log = path.read_bytes(), tmp_path / "duels.db-wal"
    kept = log.read_bytes()
    for again in range(2):
        calls = (experiment.ask, lambda: experiment.tell(duels[0]), experiment.standing)
        for call in (*calls, experiment.history, lambda: Experiment.open(experiment.store, "x")):
            with pytest.raises(StoreError, match="was replaced.*stop all programs.*remove.*-wal"):
                call()
        assert path.read_bytes() == whole and log.read_bytes() == kept
        if not again:
            experiment.close()
    for left in tmp_path.glob("duels.db-*"):
        left.unlink()
    assert verify(path) == () and Experiment.open(path, "x").standing().tick == 5
    assert Experiment.open(path, "x").tell(duels[0]) == "counted"


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_store_that_is_opened_beside_the_log_of_another_file_touches_neither(tmp_path, is_closed):
    path = tmp_path / "duels.db"
    (tmp_path / "link.db").symlink_to(path)
    experiment, duels = replaced_by_a_backup(path)
    whole, log = path.read_bytes(), tmp_path / "duels.db-wal"
    kept = log.read_bytes()
    if is_closed:
        experiment.close()
    calls = (lambda at: Experiment.open(at, "x"), verify, lambda at: backup(at, tmp_path / "b.db"))
    for at in (path, tmp_path / "link.db", Store(path)):
        for call in calls:
            with pytest.raises(StoreError, match="was replaced.*stop all programs.*remove.*-wal"):
                call(at)
    assert path.read_bytes() == whole and log.read_bytes() == kept
    for left in tmp_path.glob("duels.db-*"):
        left.unlink()
    opened = Experiment.open(path, "x")
    assert opened.standing().tick == 5 and opened.ask().id is not None
    assert Experiment.open(path, "x").standing().tick == 6 and verify(path) == ()


@pytest.mark.parametrize("how", ["closed", "open", "collected"])
def test_a_store_that_is_made_anew_after_its_file_was_deleted_is_not_refused(tmp_path, how):
    path = tmp_path / "duels.db"
    experiment = Experiment.create(path, "x", ["a", "b"])
    for n in range(3):  # a cell of a notebook, again and again
        assert experiment.ask().id is not None and experiment.standing().tick == 1, n
        if how == "closed":
            experiment.close()
        elif how == "collected":
            del experiment
            gc.collect()
        path.unlink()
        experiment = Experiment.create(path, "x", ["a", "b"])
        assert verify(path) == () and Experiment.open(path, "x").standing().tick == 0


def test_a_group_has_few_parts_and_a_large_batch_is_alone():
    written = []
    committer = CallingCommitter(lambda group: written.append(len(group)), 10)
    first = batch_of(1)
    assert committer.enqueue(first)
    for n in (4, 5, 1, 30, 2):
        assert not committer.enqueue(batch_of(n))
    request = first
    while request is not None:
        committer.lead(request)
        request = committer._leader
    assert written == [10, 1, 30, 2]


def batch_of(n):
    found = Batch([Request() for _ in range(n)])
    found.notify = lambda: None
    return found
