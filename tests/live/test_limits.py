"""Limits of databases, and errors of theirs: what passes is tried again, and nothing else is."""

import sqlite3

import pytest
from sqlalchemy import event, text

from duelay.errors import StoreError, UnknownDuelError
from duelay.live import Experiment, verify
from duelay.live.writes.requests import Ask, Tell
from duelay.live.writes.writer import Writer

MANY = 70_000  # values: PostgreSQL takes 65,535 in a statement, and SQLite 32,766


def allow_few(experiment):
    """Let each connection to SQLite take 1,200 values in a statement."""

    @event.listens_for(experiment.store.engine, "connect")
    def _limit(connection, _):
        connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 1200)


def test_a_file_of_made_up_answers_is_refused_and_stops_nobody(store):
    experiment = Experiment.create(store, "x", ["a", "b"])
    duel = experiment.ask()
    with pytest.raises(UnknownDuelError, match=f"{MANY} of {MANY + 1} answers"):
        experiment.tell_all([*(f"{n:040d}" for n in range(MANY)), duel])
    assert experiment.tell(duel) == "repeated"
    experiment.close()


def test_units_keys_and_answers_of_a_large_group_are_looked_up_in_parts(url):
    experiment = Experiment.create(url, "x", ["a", "b", "c"], window="1d", share=1.0)
    experiment.close()
    allow_few(experiment)
    asks = [Ask(f"unit {n}", None) for n in range(2500)]
    asks += [Ask(None, f"key {n}") for n in range(2500)]
    experiment.submit_all(asks)
    again = [Ask(f"unit {n}", None) for n in range(2500)]
    again += [Ask(None, f"key {n}") for n in range(2500)]
    experiment.submit_all(again)
    assert [ask.outcome().id for ask in again] == [ask.outcome().id for ask in asks]
    tells = [Tell(ask.outcome().id, None, None) for ask in asks]
    experiment.submit_all(tells)
    assert {tell.outcome() for tell in tells} == {"counted"}
    assert verify(url) == ()
    experiment.close()


FAULTS = {
    "SELECT 1 / 0": 1,
    "SELECT nothing FROM nowhere": 1,
    "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40001'; END $$": 3,  # two transactions met
    "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40P01'; END $$": 3,  # a deadlock
    "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '55P03'; END $$": 3,  # a lock was not to be had
    "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '57014'; END $$": 3,  # the statement took too long
    "SET TRANSACTION READ ONLY; CREATE TABLE nothing (id int)": 3,  # the primary is no longer one
}


@pytest.mark.parametrize("fault", FAULTS)
def test_only_what_may_pass_is_tried_again(postgresql, migrated, monkeypatch, fault):
    with postgresql.database(migrated) as url:
        experiment = Experiment.create(url, "x", ["a", "b"])
        write, tries = Writer._write, []

        def fail_twice(writer, group, *words, **more):
            tries.append(1)
            if len(tries) <= 2:
                with writer.store.writing() as connection:
                    connection.execute(text(fault))
            write(writer, group, *words, **more)

        monkeypatch.setattr(Writer, "_write", fail_twice)
        if FAULTS[fault] == 1:
            with pytest.raises(StoreError):
                experiment.ask()
        else:
            assert experiment.ask().id
        assert len(tries) == FAULTS[fault]
        monkeypatch.undo()
        assert experiment.ask().id and verify(url) == ()
        experiment.close()


def test_a_statement_with_too_many_values_is_not_tried_again(postgresql, migrated, monkeypatch):
    with postgresql.database(migrated) as url:
        experiment = Experiment.create(url, "x", ["a", "b"])
        tries = []

        def fail(writer, group, *words, **more):
            tries.append(1)
            with writer.store.writing() as connection:
                names = ", ".join(f":p{n}" for n in range(MANY))
                connection.execute(text(f"SELECT 1 WHERE 1 IN ({names})"),
                                   {f"p{n}": n for n in range(MANY)})  # fmt: skip

        monkeypatch.setattr(Writer, "_write", fail)
        with pytest.raises(StoreError):
            experiment.ask()
        assert tries == [1]
        experiment.close()
