"""A database that is frozen: calls return within their patience, and go on where they can."""

import os
import signal
from contextlib import contextmanager

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
    experiment = Experiment.create(url, "x", ["a", "b"], patience=10.0)
    duel = experiment.ask()
    with frozen(backends(postgresql, url)):
        assert experiment.tell(duel) == "counted"
    assert verify(url) == ()
    experiment.close()


def test_a_call_is_given_up_when_all_of_the_server_is_frozen(postgresql, url):
    experiment = Experiment.create(url, "x", ["a", "b"], patience=1.0)
    duel = experiment.ask()
    with frozen([server(postgresql), *backends(postgresql, url)]):
        for call in (experiment.ask, lambda: experiment.tell(duel)):
            with pytest.raises(StoreError, match="call again"):
                call()
    patient = Experiment.open(url, "x")
    assert patient.tell(duel) in ("counted", "repeated")
    assert patient.ask().id and verify(url) == ()
    patient.close()
    experiment.close()


def test_a_call_is_given_up_when_the_server_freezes_in_its_midst(postgresql, url, monkeypatch):
    experiment = Experiment.create(url, "x", ["a", "b"], patience=2.0)
    experiment.ask()
    assign, stopped = writer.assign_duels, []

    def freeze(connection, *words, **more):
        if not stopped:
            stopped.append(connection.connection.dbapi_connection.info.backend_pid)
            os.kill(stopped[0], signal.SIGSTOP)
        return assign(connection, *words, **more)

    monkeypatch.setattr(writer, "assign_duels", freeze)
    try:
        with pytest.raises(StoreError, match="call again"):  # the row is held all the time
            experiment.ask()
    finally:
        os.kill(stopped[0], signal.SIGCONT)
    patient = Experiment.open(url, "x")
    assert patient.ask(key="k").id == patient.ask(key="k").id
    assert patient.standing().tick == 2 and verify(url) == ()
    patient.close()
    experiment.close()


def test_a_read_is_given_up_when_all_of_the_server_is_frozen(postgresql, url):
    experiment = Experiment.create(url, "x", ["a", "b"], patience=1.0)
    experiment.ask()
    with frozen([server(postgresql), *backends(postgresql, url)]):
        for read in (experiment.standing, experiment.history, lambda: experiment.status):
            with pytest.raises(StoreError, match="call again"):
                read()
    assert experiment.standing().tick == experiment.history().n == 1
    experiment.close()


def test_a_read_is_given_up_when_the_server_freezes_in_its_midst(postgresql, url, monkeypatch):
    experiment = Experiment.create(url, "x", ["a", "b"], patience=1.0)
    experiment.ask()
    settled, stopped = live_experiment.read_settled, []

    def freeze(connection, *words):
        stopped.append(connection.connection.dbapi_connection.info.backend_pid)
        os.kill(stopped[0], signal.SIGSTOP)
        return settled(connection, *words)

    with monkeypatch.context() as patch:
        patch.setattr(live_experiment, "read_settled", freeze)
        try:
            with pytest.raises(StoreError, match="call again"):
                experiment.standing()
        finally:
            os.kill(stopped[0], signal.SIGCONT)
    assert experiment.standing().tick == 1
    experiment.close()


def test_a_read_has_as_long_for_each_statement(url, monkeypatch):
    """So that what goes on answering is not given up, however much is read."""
    experiment, now = Experiment.create(url, "x", ["a", "b"], patience=5.0), [0.0]
    ends = []
    monkeypatch.setattr(store_module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(
        store_module.Watchdog, "_extend", lambda self, own, until: ends.append(until)
    )
    with experiment.reading() as (connection, _):
        for _ in range(3):
            now[0] += 4.0
            connection.exec_driver_sql("SELECT 1")
    assert ends[-3:] == [9.0, 13.0, 17.0]
    experiment.close()


def test_the_server_knows_the_patience_of_a_transaction_and_of_nothing_else(url):
    experiment = Experiment.create(url, "x", ["a", "b"], patience=5.0)
    with experiment.writing() as connection:
        for name in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
            assert connection.exec_driver_sql(f"SHOW {name}").scalar_one() == "5s"
    with experiment.store.reading() as connection:
        assert connection.exec_driver_sql("SHOW statement_timeout").scalar_one() == "0"
    experiment.close()
