"""Counts by time: as the rows of the duels say, however wide the buckets have become."""

import os
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select, text
from sqlalchemy.exc import OperationalError

from duelay._core.duration import Duration
from duelay.live import Experiment, Store, verify
from duelay.live.audit.verify import differences
from duelay.live.storage import schema
from duelay.live.storage.time_buckets import MAX_BUCKETS, TimeBuckets, merge, wide_enough
from duelay.live.storage.time_series import asked_since, read_pairs, read_shown, read_totals
from duelay.live.writes.compaction import compact_due
from duelay.live.writes.requests import Operation
from live.hours import Hours, book_of, browser, settle, to_schema_four

TIED = np.full((3, 3), 0.5)
MINUTE, DAY, YEAR = 60.0, 86_400.0, 365.25 * 86_400.0


def make(store, hours, **made):
    made = {"window": "30m", **made}
    return Experiment.create(store, "x", ["a", "b", "c"], clock=hours, **made)


def read(experiment, arms=(0, 1, 2)):
    """What the store has by time: totals, arms shown, pairs."""
    with experiment.store.reading() as connection:
        id = experiment._writer.id
        return (read_totals(connection, id), read_shown(connection, id, arms),
                read_pairs(connection, id, arms))  # fmt: skip


def rows_of(experiment):
    with experiment.store.reading() as connection:
        return connection.execute(select(schema.duels).order_by(schema.duels.c.number)).all()


def assert_as_rows_say(experiment, arms=(0, 1, 2)):
    """The slow twin: every row, looked at by the start of each bucket alone."""
    totals, shown, pairs = read(experiment, arms)
    n, k = len(totals.start), len(arms)
    head, place = book_of(experiment).head, {arm: p for p, arm in enumerate(arms)}
    assert totals.start[0] == head["created"] / 1e6
    assert totals.start[-1] <= head["moment"] / 1e6 < totals.start[-1] + totals.width
    asked, answered, heard = np.zeros((3, n), dtype=int)
    was_shown, twin = np.zeros((n, k), dtype=int), np.zeros((4, n, k, k))
    for row in rows_of(experiment):
        begins = np.flatnonzero(totals.start <= row.asked / 1e6)[-1]
        asked[begins] += 1
        for arm in (row.first, row.second):
            if arm in place:
                was_shown[begins, place[arm]] += 1
        is_in = row.first in place and row.second in place
        if is_in:
            twin[0, begins, place[row.first], place[row.second]] += 1
        if row.told is not None:
            told = np.flatnonzero(totals.start <= row.told / 1e6)[-1]
            answered[begins] += 1
            heard[told] += 1
            if is_in:
                gives = np.array([row.first_won == 1, 1, row.first_won if row.enters else 0])
                twin[1:, told, place[row.first], place[row.second]] += gives
    assert (totals.asked == asked).all() and (totals.answered == answered).all()
    assert (totals.heard == heard).all() and (shown == was_shown).all()
    assert all((array == each).all() for array, each in zip(pairs, twin, strict=True))
    assert verify(experiment.store) == ()


@pytest.mark.parametrize("every", [3.0, 200.0, DAY])
def test_every_bucket_is_as_the_rows_say(store, every):
    hours = Hours()
    experiment = make(store, hours)
    browser(experiment, hours, 150, TIED, every=every, units=lambda k: f"v{k % 50}")
    settle(experiment)
    assert_as_rows_say(experiment)
    assert_as_rows_say(experiment, (2, 0))
    for array, name in zip(read(experiment)[2], ("plays", "conversions", "answers", "given"),
                           strict=True):  # fmt: skip
        assert (array.sum(axis=0) == book_of(experiment).array(name)).all()


def test_votes_ties_and_answers_of_the_past_are_in_the_bucket_in_which_they_were_heard(store):
    hours = Hours()
    experiment = make(store, hours, feedback="votes", window="1d")
    duels = []
    for _ in range(12):
        duels.append(experiment.ask())
        hours.pass_by(10 * MINUTE)
    hours.pass_by(45.0)
    experiment.tell(duels[0], "tie", at=hours.now - 30 * MINUTE)
    experiment.tell_all([(duel, "second", hours.now - 45.0) for duel in duels[5:8]])
    experiment.tell(duels[9], "first")
    hours.pass_by(2 * DAY)
    assert experiment.tell(duels[2], "first") == "late"
    assert_as_rows_say(experiment)
    assert read(experiment)[0].heard.sum() == 5


def test_an_arm_against_itself_is_shown_twice(store):
    hours = Hours()
    experiment = make(store, hours, self_duels=True, policy="double-thompson", window="1d")
    browser(experiment, hours, 120, np.array([[0.5, 1, 1], [0, 0.5, 1], [0, 0, 0.5]]), every=30.0)
    totals, shown, pairs = read(experiment)
    assert np.trace(pairs.plays.sum(axis=0)) > 0
    assert (shown.sum(axis=1) == 2 * totals.asked).all()
    assert_as_rows_say(experiment)


def test_arms_that_come_and_go_are_counted(store):
    hours = Hours()
    experiment = make(store, hours)
    browser(experiment, hours, 20, TIED, every=MINUTE)
    experiment.add_arm("d")
    experiment.retire_arm("a")
    browser(experiment, hours, 40, np.full((4, 4), 0.5), seed=1, every=MINUTE)
    assert read(experiment, (3,))[1].sum() > 0
    assert_as_rows_say(experiment, (3, 1, 0, 2))


def test_a_new_experiment_has_one_empty_bucket(store):
    totals, shown, pairs = read(make(store, Hours()))
    assert totals.asked.tolist() == totals.answered.tolist() == totals.heard.tolist() == [0]
    assert totals.width == MINUTE and shown.shape == (1, 3) and pairs.given.shape == (1, 3, 3)


def test_silence_has_empty_buckets(store):
    hours = Hours()
    experiment = make(store, hours)
    experiment.ask()
    hours.pass_by(5 * MINUTE)
    settle(experiment)
    assert read(experiment)[0].asked.tolist() == [1, 0, 0, 0, 0, 0]


def test_buckets_merge_when_there_would_be_more_than_128(store):
    hours = Hours()
    experiment = make(store, hours)
    for _ in range(MAX_BUCKETS):
        experiment.tell(experiment.ask())
        hours.pass_by(MINUTE)
    hours.pass_by(-1e-6)
    settle(experiment)
    assert read(experiment)[0].asked.tolist() == [1] * MAX_BUCKETS
    hours.pass_by(1e-6)
    experiment.ask()
    totals, _, _ = read(experiment)
    assert totals.width == 2 * MINUTE and totals.asked.tolist() == [2] * 64 + [1]
    assert totals.heard.tolist() == [2] * 64 + [0]
    assert_as_rows_say(experiment)


def test_an_experiment_that_slept_for_years_wakes_up_with_128_buckets_at_most(store):
    hours = Hours()
    experiment = make(store, hours)
    browser(experiment, hours, 40, TIED, every=MINUTE)
    for slept in (YEAR, 20 * YEAR):
        hours.pass_by(slept)
        browser(experiment, hours, 5, TIED, every=MINUTE)
        totals, _, _ = read(experiment)
        assert MAX_BUCKETS // 2 <= len(totals.start) <= MAX_BUCKETS
        assert_as_rows_say(experiment)


def test_pairs_are_merged_arm_by_arm_and_read_the_same_meanwhile(store):
    hours = Hours()
    experiment = make(store, hours, freshness=1e9)
    browser(experiment, hours, 250, TIED, every=0.5 * MINUTE)
    hours.pass_by(10 * DAY)
    experiment.ask()
    left = []
    for _ in experiment.arms:
        assert_as_rows_say(experiment)
        left.append(len(pair_rows(experiment)))
        settle(experiment)
    assert left[0] > left[1] > left[2] > len(pair_rows(experiment))
    minutes = read(experiment)[0].width / MINUTE
    assert minutes > 1 and all(row.minute % minutes == 0 for row in pair_rows(experiment))
    assert_as_rows_say(experiment)


def pair_rows(experiment):
    with experiment.store.reading() as connection:
        return connection.execute(select(schema.pair_times)).all()


def test_a_group_that_is_written_again_counts_and_merges_once(store, monkeypatch):
    hours = Hours()
    experiment = make(store, hours)
    duels = [experiment.ask() for _ in range(6)]
    writing, fails = Store.writing, ["before", "after", "before"]

    @contextmanager
    def broken(self, *words):
        gone = OperationalError("COMMIT", {}, Exception(), connection_invalidated=True)
        with writing(self, *words) as connection:
            yield connection
            if fails[:1] == ["before"]:
                fails.pop(0)
                raise gone
        if fails[:1] == ["after"]:
            fails.pop(0)
            raise gone

    monkeypatch.setattr("duelay.live.writes.writer._PAUSE", 0.001)
    monkeypatch.setattr(Store, "writing", broken)
    hours.pass_by(29 * MINUTE)
    assert experiment.tell_all(duels[:3]) == ["counted"] * 3
    fails[:] = ["before", "after"]
    hours.pass_by(DAY)
    experiment.ask()
    assert not fails
    assert_as_rows_say(experiment)
    assert read(experiment)[0].asked.sum() == 7


PROGRAM = """
import sys
from duelay.live import Experiment
with Experiment.open(sys.argv[1], "x") as experiment:
    for _ in range(40):
        experiment.tell(experiment.ask())
"""


def test_two_processes_count_together(store):
    with Experiment.create(store, "x", ["a", "b", "c"]) as experiment:
        environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "OPENBLAS_NUM_THREADS": "1"}
        both = [subprocess.Popen([sys.executable, "-c", PROGRAM, store], env=environment)
                for _ in range(2)]  # fmt: skip
        assert [process.wait(timeout=300) for process in both] == [0, 0]
        assert read(experiment)[0].asked.sum() == read(experiment)[0].heard.sum() == 80
        assert_as_rows_say(experiment)


# Forgetting and deleting.


def forget_after(experiment, after):
    experiment._writer.submit(
        Operation(
            lambda connection, state, moment: compact_due(
                connection, state, moment, Duration(after)
            )
        )
    )


def test_forgetting_changes_no_bucket_and_a_recount_still_notices(store):
    hours = Hours()
    experiment = make(store, hours)
    browser(experiment, hours, 100, TIED, every=MINUTE)
    hours.pass_by(DAY)
    settle(experiment)
    browser(experiment, hours, 20, TIED, seed=1, every=MINUTE)
    before = read(experiment)
    forget_after(experiment, "12h")
    assert len(rows_of(experiment)) == 20
    for x, y in zip(before, read(experiment), strict=True):
        assert all((np.asarray(a) == b).all() for a, b in zip(x, y, strict=True))
    assert verify(store) == ()
    for change, words in (
        ("UPDATE times SET asked = asked + 1 WHERE arm = 0 AND minute = 0",
         "asked in all buckets of time of 'a' is"),
        ("UPDATE times SET heard = heard + 1 WHERE arm = -1 AND minute = 0",
         "heard in all buckets of time is"),
        ("UPDATE pair_times SET given = given + 0.5 WHERE minute = 0",
         "given in all buckets of time of "),
        ("UPDATE times SET asked = 0 WHERE minute > 0", "asked in time bucket 9"),
    ):  # fmt: skip
        with experiment.store.engine.connect() as connection:
            connection.execute(text(change))
            head = connection.execute(select(schema.experiments)).mappings().one()
            found = list(differences(connection, head))
            connection.rollback()
        assert any(words in sentence for sentence in found), (words, found)


def test_an_experiment_that_is_deleted_leaves_nothing_and_the_others_are_whole(store):
    hours = Hours()
    kept = Experiment.create(store, "y", ["a", "b", "c"], clock=hours)
    browser(kept, hours, 20, TIED)
    experiment = make(store, hours)
    browser(experiment, hours, 20, TIED)
    experiment.delete()
    with kept.store.reading() as connection:
        for table in (schema.times, schema.pair_times):
            found = connection.execute(select(table.c.experiment).distinct()).scalars().all()
            assert found == [kept._writer.id]
    assert_as_rows_say(kept)


def test_merging_one_experiment_leaves_another(store):
    hours, slow = Hours(), Hours()
    experiment, other = make(store, hours), Experiment.create(store, "y", 3, clock=slow)
    for each, clock in ((experiment, hours), (other, slow)):
        browser(each, clock, 20, TIED, every=MINUTE)
    before = read(other)[0]
    hours.pass_by(YEAR)
    experiment.ask()
    assert (read(other)[0].asked == before.asked).all() and verify(store) == ()


# Stores of the second schema.


def undo(store):
    """Make a store one of the second schema."""
    to_schema_four(Store(store))
    with Store(store).writing() as connection:
        for words in ("DROP TABLE times", "DROP TABLE pair_times",
                      "ALTER TABLE experiments DROP COLUMN width",
                      "ALTER TABLE experiments DROP COLUMN swept",
                      "ALTER TABLE experiments DROP COLUMN clock",
                      "UPDATE duelay_version SET version_num = '0002'"):  # fmt: skip
            connection.execute(text(words))


@pytest.mark.parametrize("every", [3.0, 200.0, DAY])
def test_a_migration_counts_what_is_there(store, every):
    hours = Hours()
    experiment = make(store, hours, self_duels=True, policy="double-thompson")
    browser(experiment, hours, 80, TIED, every=every, units=lambda k: f"v{k % 30}")
    votes = Experiment.create(store, "votes", 3, feedback="votes", clock=hours)
    browser(votes, hours, 30, TIED, votes=True)
    Experiment.create(store, "empty", 3, clock=hours)
    experiment.close()
    votes.close()
    before = tables(store)
    undo(store)
    assert Store(store).migrate()[0] == "0002"
    assert tables(store) == before and verify(store) == ()
    assert Experiment.open(store, "x").ask().id is not None and verify(store) == ()


def tables(store):
    """All rows of the counts by time, and the widths."""
    with Store(store).reading() as connection:
        found = [connection.execute(select(table).order_by(*table.primary_key)).all()
                 for table in (schema.times, schema.pair_times)]  # fmt: skip
        return [*found, connection.execute(select(schema.experiments.c.width)).all()]


def test_a_migration_counts_duels_whose_rows_are_gone_in_the_first_bucket(store):
    hours = Hours()
    experiment = make(store, hours)
    browser(experiment, hours, 60, TIED, every=MINUTE)
    hours.pass_by(DAY)
    settle(experiment)
    browser(experiment, hours, 20, TIED, seed=1, every=MINUTE)
    forget_after(experiment, "12h")
    heard = int(read(experiment)[0].heard.sum())
    experiment.close()
    undo(store)
    Store(store).migrate()
    totals, shown, _ = read(experiment)
    assert totals.asked[0] == 60 and totals.asked.sum() == 80
    assert totals.heard.sum() == totals.answered.sum() == heard and shown.sum() == 160
    assert verify(store) == ()


# Duels since a moment.


def since(experiment, moment):
    with experiment.store.reading() as connection:
        return asked_since(connection, experiment._writer.id, round(moment * 1e6))


def test_duels_since_a_moment_are_counted_exactly(store):
    hours = Hours()
    experiment = make(store, hours)
    assert since(experiment, 0) == 0
    browser(experiment, hours, 60, TIED, every=MINUTE)
    experiment.tell_all([experiment.ask() for _ in range(3)])  # at one moment
    asked = [row.asked for row in rows_of(experiment)]
    for at in {*asked, asked[0] - 1, asked[7] + 1, asked[-1] - 1}:
        assert since(experiment, at / 1e6) == sum(each > at for each in asked)


def test_duels_since_a_moment_are_about_right_where_they_are_forgotten(store):
    hours = Hours()
    experiment = make(store, hours)
    browser(experiment, hours, 300, TIED, every=2 * MINUTE)
    hours.pass_by(2 * 3600)
    settle(experiment)
    asked = [row.asked / 1e6 for row in rows_of(experiment)]
    forget_after(experiment, "4h")
    left = [row.asked / 1e6 for row in rows_of(experiment)]
    assert 0 < len(left) < 200
    width = read(experiment)[0].width
    for at in np.linspace(asked[0], left[0] - 1, 9):
        low, high = (sum(each > at + side * width for each in asked) for side in (1, -1))
        assert low <= since(experiment, at) <= high
    assert since(experiment, left[5]) == len(left) - 6
    assert since(experiment, 0.0) == 300


# Width, and what is read.


@given(st.integers(0, 2**55), st.integers(0, 2**55))
@settings(deadline=None)
def test_a_width_is_the_least_that_is_enough(created, age):
    width = wide_enough(created, schema.MINUTE, created + age)
    assert age // width < MAX_BUCKETS
    assert width == schema.MINUTE or age // (width // 2) >= MAX_BUCKETS


def duel(first, second, asked, delay, first_won, enters):
    told = None if first_won is None else asked + delay
    return {"first": first, "second": second, "asked": asked, "told": told,
            "first_won": first_won, "enters": enters}  # fmt: skip


arms, times = st.integers(0, 2), st.integers(0, 10**10)
duels = st.lists(st.builds(duel, arms, arms, times, times, st.sampled_from([None, 0.0, 0.5, 1.0]),
                           st.booleans()), max_size=30)  # fmt: skip


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("series") / "duels.db")
    Experiment.create(store, "x", 3)
    yield store
    store.close()


@given(rows=duels, n=st.sampled_from([2, 4, 1024]))
@settings(max_examples=40, deadline=None)
def test_merged_buckets_are_those_of_a_wider_tally(scratch, rows, n):
    fine, wide = TimeBuckets(0, schema.MINUTE), TimeBuckets(0, n * schema.MINUTE)
    for row in rows:
        for time_buckets in (fine, wide):
            time_buckets.ask(row)
            if row["told"] is not None:
                time_buckets.hear(row)
    with scratch.engine.connect() as connection:
        fine.save(connection, 1)
        width = {"created": 0, "width": wide.width}
        before = TimeBuckets.read(connection, 1, width)
        for table in (schema.pair_times, schema.times):
            merge(connection, table, n, table.c.experiment == 1)
            minutes = connection.execute(select(table.c.minute)).scalars().all()
            assert all(minute % n == 0 for minute in minutes)
        after = TimeBuckets.read(connection, 1, width)
        connection.rollback()
    for found in (before, after):
        assert found.pairs == wide.pairs and found.times == wide.times


def test_reads_are_look_ups_whose_number_does_not_grow_with_the_duels(tmp_path):
    experiment = make(f"sqlite:///{tmp_path}/duels.db", Hours())
    seen = []
    with experiment.store.engine.connect() as connection:
        run = connection.connection.driver_connection
        run.set_trace_callback(seen.append)
        read_totals(connection, 1)
        read_shown(connection, 1, (0, 1))
        read_pairs(connection, 1, (0, 1))
        run.set_trace_callback(None)
        plans = [row[3] for words in seen if words.startswith("SELECT")
                 for row in run.execute(f"EXPLAIN QUERY PLAN {words}")]  # fmt: skip
    assert any("experiment=? AND minute=? AND arm=?" in plan for plan in plans)
    assert any("experiment=? AND first=? AND second=?" in plan for plan in plans)
    assert not any("SCAN" in plan for plan in plans)
