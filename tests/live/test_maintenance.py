"""Upkeep: recounts that notice, backups, forgetting, and schemas of the past."""

import sqlite3
import threading
from pathlib import Path

import numpy as np
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import select, text

from duelay._core.duration import Duration
from duelay.live import (
    Experiment,
    Store,
    StoreError,
    UnknownExperimentError,
    backup,
    forget,
    verify,
)
from duelay.live.audit.recount import COUNTS
from duelay.live.audit.verify import differences
from duelay.live.storage import schema
from duelay.live.storage.delay_histogram import DelayHistogram
from duelay.live.storage.rows import DuelRow, ExperimentRow
from duelay.live.storage.store import VERSIONS, _head
from duelay.live.writes import compaction
from duelay.live.writes.requests import Operation
from live.hours import Hours, book_of, browser, settle, to_schema_four
from servers import need

TIED = np.full((3, 3), 0.5)
FIRST = Path(__file__).parent / "stores" / "first.sql"


def play(store, hours, n=80, **made):
    made = {"window": "30m", **made}
    experiment = Experiment.create(store, "x", ["a", "b", "c"], clock=hours, **made)
    browser(experiment, hours, n, TIED, every=60.0, units=lambda k: f"v{k % 60}")
    settle(experiment)
    return experiment


CHANGES = [
    ("UPDATE pairs SET plays = plays + 1 WHERE first = 0 AND second = 1", "plays of 'a' over"),
    ("UPDATE pairs SET conversions = 0", "conversions of"),
    ("UPDATE pairs SET repeats = 7 WHERE first = 0 AND second = 1", "repeats of"),
    ("UPDATE pairs SET closed = closed + 1 WHERE first = 0 AND second = 1", "closed of"),
    ("UPDATE pairs SET n_open = n_open + 1 WHERE first = 0 AND second = 1", "n_open of"),
    ("UPDATE pairs SET lead = lead + 0.01 WHERE first = 0 AND second = 1", "lead of"),
    ("UPDATE ages SET answered = answered + 1", "answered in age bucket"),
    ("UPDATE ages SET asked = asked + 1", "asked in age bucket"),
    ("UPDATE experiments SET asked = asked + 1", "duels are counted as asked"),
    ("UPDATE experiments SET heard = heard + 1", "answers are counted"),
    ("UPDATE experiments SET n_matured = n_matured - 1", "n_matured is"),
    ("UPDATE experiments SET n_answered = n_answered + 1", "n_answered is"),
    ("UPDATE experiments SET n_heard = n_heard + 1", "n_heard is"),
    ("UPDATE experiments SET delays = delays * 1.001", "delays is"),
    ("UPDATE pairs SET late = late + 1", "late of"),
    ("UPDATE duels SET told = NULL, first_won = NULL WHERE told IS NOT NULL", "answers of"),
    ("UPDATE duels SET odds = odds * 0.9 WHERE settled_by = 2", "lead of"),
    ("UPDATE duels SET stake = stake * 0.9", "evidence at gap"),
    ("UPDATE duels SET settled_by = 1 WHERE settled_by = 2 AND stake > 0", "evidence at gap"),
    ("UPDATE experiments SET matured = matured - 20", "evidence at gap"),
    ("UPDATE pairs SET wins = wins + 1 WHERE first = 0 AND second = 1", "wins of 'a' over 'b' is"),
    ("DELETE FROM duels WHERE number = 5", "duel 5 is missing"),
    ("UPDATE pairs SET best = best + 20", "the most that the evidence of 'a' over 'b' ever was is"),
    ("UPDATE pairs SET best = log_evidence - 1", "is above the most that it ever was"),
    ("UPDATE pairs SET passed = 1", "has passed, and its evidence was never enough"),
    ("UPDATE experiments SET winner = 0", "'a' is declared, and its evidence is not enough"),
    ("UPDATE duels SET unit = 'same'", "and its unit says otherwise"),
    ("UPDATE times SET asked = asked + 1 WHERE arm = -1", "asked in time bucket 0 is"),
    ("UPDATE times SET answered = answered + 1 WHERE arm = -1", "answered in time bucket 0 is"),
    ("UPDATE times SET heard = 0 WHERE arm = -1", "heard in time bucket"),
    ("UPDATE times SET asked = 0 WHERE arm = 1", "asked in time bucket"),
    ("UPDATE pair_times SET plays = plays + 1", "plays in time bucket"),
    ("UPDATE pair_times SET given = given - 0.5", "given in time bucket"),
    ("DELETE FROM pair_times WHERE conversions > 0", "conversions in time bucket"),
    ("UPDATE experiments SET width = 2 * width", "a bucket of time has"),
]


def test_a_recount_notices(store):
    """Each change in a transaction of its own, which is rolled back."""
    play(store, Hours())
    assert verify(store) == ()
    opened = Store(store)
    for change, words in CHANGES:
        with opened.engine.connect() as connection:
            connection.execute(text(change))
            head = connection.execute(select(schema.experiments)).mappings().one()
            found = list(differences(connection, head))
            connection.rollback()
        assert any(words in sentence for sentence in found), (change, found)
    assert verify(store) == ()
    with opened.writing() as connection:
        connection.execute(text(CHANGES[0][0]))
    opened.close()
    assert verify(store)[0].startswith("x: plays of 'a' over 'b' is ")
    with pytest.raises(UnknownExperimentError):
        verify(store, "y")


def test_a_recount_notices_wealth(store):
    experiment = play(store, Hours())
    with Store(store).writing() as connection:
        wealth = book_of(experiment).eprocess.wealth[0, 1] + 0.001
        connection.execute(
            schema.pairs.update().where(schema.pairs.c.first == 0, schema.pairs.c.second == 1),
            {"wealth": wealth.tobytes()},
        )
    assert "evidence at gap 0.01 of 'a' over 'b'" in verify(store)[0]


def test_forgetting_keeps_all_that_was_told(store):
    hours = Hours()
    experiment = play(store, hours)
    hours.pass_by(3600)
    settle(experiment)
    before, standing = book_of(experiment), experiment.standing()
    experiment._writer.submit(_forget("45m"))
    after = book_of(experiment)
    history = experiment.history()
    assert after.head["forgotten"] > 40 and history.n == 80 - after.head["forgotten"]
    assert history.n_earlier == after.head["forgotten"]
    assert verify(store) == ()
    assert before.eprocess.wins.any()
    for name in ("plays", "conversions", "answers", "repeats", "wins", "lead", "n"):
        assert (after.array(name) == before.array(name)).all()
    assert experiment.standing().conversions.sum() == standing.conversions.sum()
    browser(experiment, hours, 30, TIED, seed=1, units=lambda k: f"v{k}")
    assert verify(store) == ()
    for name, wrong in (("n_matured", "- 1"), ("n_heard", "+ 1"), ("n_answered", "+ 999"),
                        ("delays", "* 999")):  # fmt: skip
        with experiment.store.engine.connect() as connection:
            connection.execute(text(f"UPDATE experiments SET {name} = {name} {wrong}"))
            head = connection.execute(select(schema.experiments)).mappings().one()
            assert any(each.startswith(f"{name} is") for each in differences(connection, head))
            connection.rollback()
    late = Experiment.open(store, "x", clock=hours)
    assert late.ask().id is not None and verify(store) == ()


def _count_wrongly(name):
    def count(rows, n_arms, right=compaction._count):
        sums = right(rows, n_arms)
        sums[name][0, 1] += 1
        return sums

    return compaction, "_count", count


def _forget_evidence(eprocess, rows):
    """Add nothing."""


MISTAKES = [
    *((_count_wrongly(name), f"{name} of 'a' over 'b' is") for name in COUNTS),
    (_count_wrongly("given"), "given of 'a' over 'b' is"),
    ((compaction, "count_answers", _forget_evidence), "n of 'a' over 'b' is"),
    ((compaction, "book_duels", _forget_evidence), "evidence at gap 0.01 of"),
    ((DelayHistogram, "bucket", lambda self, row: 0), "answered in age bucket 0 is"),
    ((DelayHistogram, "add", lambda self, row: None), "asked in age bucket 0 is"),
]


@pytest.mark.parametrize("mistake, words", MISTAKES)
def test_the_audit_finds_a_mistake_of_the_compaction(tmp_path, monkeypatch, mistake, words):
    """It shares no code with it: the mistake is also there while the audit runs."""
    store, hours = tmp_path / "duels.db", Hours()
    experiment = play(store, hours)
    hours.pass_by(3600)
    settle(experiment)
    monkeypatch.setattr(*mistake)
    experiment._writer.submit(_forget("45m"))
    assert any(words in sentence for sentence in verify(store))


def test_what_is_open_is_not_forgotten(store):
    experiment = Experiment.create(store, "x", ["a", "b"])
    experiment.ask()
    assert forget(store, "1ms") == {"x": 0} and experiment.history().n == 1


def _forget(after):
    return Operation(
        lambda connection, state, moment: compaction.compact_due(
            connection, state, moment, Duration(after)
        )
    )


def test_a_declared_experiment_stands_when_all_its_duels_are_forgotten(store):
    hours = Hours()
    experiment = Experiment.create(store, "x", ["a", "b"], clock=hours, window="10m")
    browser(experiment, hours, 500, [[0.5, 1.0], [0.0, 0.5]], mean=20.0)
    hours.pass_by(7200)
    settle(experiment)
    experiment._writer.submit(_forget("1h"))
    assert experiment.history().n == 0
    assert str(experiment.standing()).startswith("a wins: declared after")
    assert verify(store) == ()


def test_a_unit_is_remembered_though_its_duel_is_forgotten(store):
    hours = Hours()
    experiment = Experiment.create(store, "x", ["a", "b"], clock=hours, window="10m")
    experiment.tell(experiment.ask(unit="v"))
    hours.pass_by(7200)
    settle(experiment)
    experiment._writer.submit(_forget("1h"))
    assert experiment.history().n == 0
    experiment.tell(experiment.ask(unit="v"))
    assert experiment.standing().repeats.sum() == 1 and verify(store) == ()


def test_an_experiment_forgets_by_itself(store):
    hours = Hours()
    experiment = Experiment.create(store, "x", ["a", "b"], clock=hours, window="10m",
                                   forget_after="20m")  # fmt: skip
    browser(experiment, hours, 60, TIED[:2, :2], every=60.0)
    assert 15 < experiment.history().n < 35 and verify(store) == ()
    assert experiment.standing().plays.sum() == 60


def test_a_backup_is_whole_while_others_write(store, tmp_path):
    if store.startswith("postgresql"):
        need("pg_dump")
    experiment = Experiment.create(store, "x", ["a", "b"])
    stop = threading.Event()

    def write():
        while not stop.is_set():
            experiment.tell(experiment.ask())

    thread = threading.Thread(target=write)
    thread.start()
    try:
        copies = [backup(store, tmp_path / f"copy{k}.db") for k in range(3)]
    finally:
        stop.set()
        thread.join()
    assert not list(tmp_path.glob("*draft*"))
    with pytest.raises(ValueError, match="already"):
        backup(store, copies[0])
    if store.startswith("postgresql"):
        assert all(copy.read_bytes().startswith(b"PGDMP") for copy in copies)  # of pg_dump
        return
    for copy in copies:
        assert verify(copy) == ()
        assert Experiment.open(copy, "x").ask().id is not None
    with pytest.raises(ValueError, match="there is no folder"):
        backup(store, tmp_path / "no" / "copy.db")


def test_the_migrations_make_the_tables_of_the_schema(bare):
    Experiment.create(bare, "x", ["a", "b"])
    with Store(bare).reading() as connection:
        opts = {"compare_type": True, "version_table": VERSIONS}
        context = MigrationContext.configure(connection, opts=opts)
        assert compare_metadata(context, schema.metadata) == []


def test_a_store_of_the_first_schema_opens(tmp_path):
    """`tests/live/stores/first.sql` was written by the first version, and is never made anew."""
    path = tmp_path / "first.db"
    connection = sqlite3.connect(path)
    connection.executescript(FIRST.read_text())
    connection.close()
    store = Store(path)
    if store.revision() != _head():
        with pytest.raises(StoreError, match="migrate"):
            Experiment.open(path, "first")
    store.migrate()
    assert verify(store) == ()
    experiment = Experiment.open(store, "first")
    standing = experiment.standing()
    assert standing.plays.sum() == 200 and standing.arms == ("a", "b", "c", "d")
    assert experiment.ask().id is not None and verify(store) == ()
    assert Experiment.open(store, "votes").standing().tick == 60


@pytest.mark.parametrize("feedback", ["conversions", "votes"])
def test_the_evidence_of_an_earlier_schema_is_computed_anew(store, feedback):
    """From the rows alone, as if W_s and the stakes had been written when duels were asked."""
    hours = Hours()
    experiment = Experiment.create(
        store, "x", ["a", "b", "c"], clock=hours, window="1h", freshness=1e9, feedback=feedback
    )
    browser(experiment, hours, 200, TIED, every=20.0, votes=feedback == "votes",
            before=lambda: settle(experiment))  # fmt: skip
    settle(experiment)
    before = book_of(experiment)
    assert before.eprocess.wealth.any() and before.eprocess.n_open.any()
    with experiment.store.reading() as connection:
        duels = connection.execute(select(schema.duels).order_by(schema.duels.c.number)).all()
    to_schema_four(experiment.store)
    with Store(store).writing() as connection:
        connection.execute(text("UPDATE experiments SET winner = 1, declared = 150"))
    Store(store).migrate()
    after = book_of(experiment)
    for name in ("wealth", "wins", "seen", "lead", "n", "n_open", "log_evidence"):
        np.testing.assert_allclose(
            getattr(after.eprocess, name), getattr(before.eprocess, name), atol=1e-9
        )
    for name in ("kappa", "refit", "n_matured", "n_answered", "n_heard", "delays", "matured"):
        assert after.head[name] == pytest.approx(before.head[name]), name
    assert (after.eprocess.best >= before.eprocess.best - 1e-9).all()
    assert after.eprocess.best.max() < 9.0
    with experiment.store.reading() as connection:
        found = connection.execute(select(schema.duels).order_by(schema.duels.c.number)).all()
    for one, other in zip(found, duels, strict=True):
        assert one.wait == other.wait and one.settled_by == other.settled_by
        assert one.stake == pytest.approx(other.stake) and one.odds == pytest.approx(other.odds)
    assert after.head["earlier"] == after.head["asked"]
    assert experiment.standing().winner == 1 and verify(store) == ()


def test_duels_that_are_forgotten_keep_their_evidence_in_a_migration(store):
    hours = Hours()
    experiment = play(store, hours, n=300)
    hours.pass_by(3600)
    experiment._writer.submit(_forget("65m"))
    before = book_of(experiment)
    assert 0 < before.head["forgotten"] < 300
    with experiment.store.reading() as connection:
        folded = connection.execute(select(schema.folded_pairs)).mappings().all()
    to_schema_four(experiment.store)
    Store(store).migrate()
    assert verify(store) == ()
    after = book_of(experiment)
    with experiment.store.reading() as connection:
        assert connection.execute(select(schema.folded_pairs)).mappings().all() == folded
    assert after.eprocess.lead.any() and after.eprocess.wealth.any()


def test_a_store_of_a_later_version_is_refused(store):
    Experiment.create(store, "x", ["a", "b"])
    with Store(store).writing() as connection:
        connection.execute(text("UPDATE duelay_version SET version_num = '9999'"))
    with pytest.raises(StoreError, match="later version of duelay"):
        Experiment.open(store, "x")


def test_processes_that_make_a_store_at_one_time_do_not_disturb_each_other(store):
    found = []

    def make(k):
        try:
            Experiment.create(store, f"x{k}", ["a", "b"]).close()
        except Exception as error:
            found.append(error)

    threads = [threading.Thread(target=make, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not found and len(Experiment.names(store)) == 4


def test_a_database_of_another_program_with_alembic_is_shared(store):
    with Store(store).writing() as connection:
        connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32))"))
        connection.execute(text("INSERT INTO alembic_version VALUES ('abc123')"))
    assert Experiment.create(store, "x", ["a", "b"]).ask().id is not None


def test_a_file_that_is_no_store_is_refused(tmp_path):
    path = tmp_path / "notes.db"
    path.write_text("not a database at all, but long enough to look at " * 100)
    with pytest.raises(StoreError, match="not a database"):
        Experiment.open(path, "x")


@pytest.mark.parametrize(("kind", "table"), [(ExperimentRow, "experiments"), (DuelRow, "duels")])
def test_the_type_of_a_row_has_the_columns_of_its_table(kind, table):
    columns = [column.name for column in getattr(schema, table).c]
    assert sorted(kind.__annotations__.keys() - {"shared_time"}) == sorted(columns)
