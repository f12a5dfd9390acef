"""A database that is frozen: calls return within their patience, and go on where they can."""

import os
import signal
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from sqlalchemy import make_url

from duelay.errors import StoreError
from duelay.live import Experiment, verify
from duelay.live import experiment as live_experiment
from duelay.live.storage import store as store_module
from duelay.live.writes import writer


@pytest.fixture
def url(postgresql, migrated):
    with postgresql.database(migrated) as found:
        yield found


@contextmanager
def impatient(experiment, patience=1.0):
    """Let calls wait so many seconds only; before and after, a busy machine has its time."""
    writer, before = experiment._writer, experiment._writer.patience
    writer.patience = patience
    try:
        yield
    finally:
        writer.patience = before


@contextmanager
def frozen(pids):
    """Stop processes, and let them go on at the end."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def backends(postgresql, url):
    """The processes of the server that have a connection to a database."""
    name = make_url(url).database
    found = postgresql.execute(f"SELECT pid FROM pg_stat_activity WHERE datname = '{name}'")
    assert found
    return [pid for (pid,) in found]


def server(postgresql):
    """The process that takes connections."""
    return int((postgresql.folder / "data" / "postmaster.pid").read_text().split()[0])


def test_a_call_goes_on_beside_a_connection_that_is_frozen(postgresql, url):
    experiment = Experiment.create(url, "x", ["a", "b"], patience=60.0)
    duel = experiment.ask()
    with frozen(backends(postgresql, url)):
        assert experiment.tell(duel) == "counted"
    assert verify(url) == ()
    experiment.close()


def test_a_call_is_given_up_when_all_of_the_server_is_frozen(postgresql, url):
    experiment = Experiment.create(url, "x", ["a", "b"])
    duel, pids = experiment.ask(), [server(postgresql), *backends(postgresql, url)]
    with impatient(experiment), frozen(pids):
        for call in (experiment.ask, lambda: experiment.tell(duel)):
            with pytest.raises(StoreError, match="call again"):
                call()
    patient = Experiment.open(url, "x")
    assert patient.tell(duel) in ("counted", "repeated")
    assert patient.ask().id and verify(url) == ()
    patient.close()
    experiment.close()


def test_a_call_is_given_up_when_the_server_freezes_in_its_midst(postgresql, url, monkeypatch):
    experiment = Experiment.create(url, "x", ["a", "b"])
    experiment.ask()
    assign, stopped = writer.assign_duels, []

    def freeze(connection, *words, **more):
        if not stopped:
            stopped.append(connection.connection.dbapi_connection.info.backend_pid)
            os.kill(stopped[0], signal.SIGSTOP)
        return assign(connection, *words, **more)

    monkeypatch.setattr(writer, "assign_duels", freeze)
    try:
        with impatient(experiment, 2.0):
            while not stopped:  # a slow call may be given up before it is frozen
                with pytest.raises(StoreError, match="call again"):  # the row is held all the time
                    experiment.ask(key="k")
    finally:
        os.kill(stopped[0], signal.SIGCONT)
    patient = Experiment.open(url, "x")
    assert patient.ask(key="k").id == patient.ask(key="k").id
    assert patient.standing().tick == 2 and verify(url) == ()
    patient.close()
    experiment.close()


def test_a_read_is_given_up_when_all_of_the_server_is_frozen(postgresql, url):
    experiment = Experiment.create(url, "x", ["a", "b"])
    experiment.ask()
    pids = [server(postgresql), *backends(postgresql, url)]
    with impatient(experiment), frozen(pids):
        for read in (experiment.standing, experiment.history, lambda: experiment.status):
            with pytest.raises(StoreError, match="call again"):
                read()
    assert experiment.standing().tick == experiment.history().n == 1
    experiment.close()


def test_a_read_is_given_up_when_the_server_freezes_in_its_midst(postgresql, url, monkeypatch):
    experiment = Experiment.create(url, "x", ["a", "b"])
    experiment.ask()
    settled, stopped = live_experiment.read_settled, []

    def freeze(connection, *words):
        stopped.append(connection.connection.dbapi_connection.info.backend_pid)
        os.kill(stopped[0], signal.SIGSTOP)
        return settled(connection, *words)

    with monkeypatch.context() as patch, impatient(experiment):
        patch.setattr(live_experiment, "read_settled", freeze)
        try:
            while not stopped:
                with pytest.raises(StoreError, match="call again"):
                    experiment.standing()
        finally:
            os.kill(stopped[0], signal.SIGCONT)
    assert experiment.standing().tick == 1
    experiment.close()


def test_a_read_has_as_long_for_each_statement(url, monkeypatch):
    """So that what goes on answering is not given up, however much is read."""
    experiment = Experiment.create(url, "x", ["a", "b"])
    now, ends = [1e9], []  # far ahead of the watchdog's clock
    extend = store_module.Watchdog._extend

    def note(self, own, until):
        ends.append(until - 1e9)
        extend(self, own, until)

    monkeypatch.setattr(store_module.Watchdog, "_extend", note)
    monkeypatch.setattr(store_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with impatient(experiment, 5.0), experiment.reading() as (connection, _):
        for _ in range(3):
            now[0] += 4.0
            connection.exec_driver_sql("SELECT 1")
    assert ends[-3:] == [9.0, 13.0, 17.0]
    experiment.close()


def test_the_server_knows_the_patience_of_a_transaction_and_of_nothing_else(url):
    experiment = Experiment.create(url, "x", ["a", "b"], patience=60.0)
    with experiment.writing() as connection:
        for name in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
            assert connection.exec_driver_sql(f"SHOW {name}").scalar_one() == "1min"
    with experiment.store.reading() as connection:
        assert connection.exec_driver_sql("SHOW statement_timeout").scalar_one() == "0"
    experiment.close()
