"""Guard-rails of a live experiment: other events of a duel, which are counted by arm."""

from importlib import import_module

import numpy as np
import pytest
from sqlalchemy import text

from duelay.inference.guardrails import arm_shares, difference_interval
from duelay.live import Experiment, UnknownDuelError, UnknownExperimentError, verify
from duelay.live.changes import make_change
from duelay.live.events import read_events
from duelay.live.maintenance import Upkeep
from duelay.live.storage.store import VERSIONS, open_store
from live.hours import Hours, book_of, browser, settle

ARMS = ["red", "green", "blue"]
BEFORE = import_module("duelay.live.migrations.versions.0008_metrics").down_revision


@pytest.fixture
def hours():
    return Hours()


def make(store, hours, guardrails=None, **options):
    guardrails = {"refund": {"bound": 0.02, "within": "1h"}} if guardrails is None else guardrails
    options = {"window": "1d", "clock": hours, "guardrails": guardrails, **options}
    return Experiment.create(store, "x", ARMS, **options)


def of(experiment, metric="refund"):
    return next(each for each in experiment.standing().guardrails if each.metric == metric)


def kinds_of(experiment):
    with experiment.store.reading() as connection:
        return [(row["kind"], row["about"]) for row in read_events(connection, experiment.id)]


def ask_and_refund(experiment, hours, n, rates, seed=0):
    """Ask n duels, a minute apart; return how many showed each arm, and how many events it had."""
    rng = np.random.default_rng(seed)
    n_of, k_of = dict.fromkeys(ARMS, 0), dict.fromkeys(ARMS, 0)
    for _ in range(n):
        duel = experiment.ask()
        hours.pass_by(60)
        for arm in (duel.first, duel.second):
            n_of[arm] += 1
            if rng.random() < rates[arm]:
                assert experiment.tell(duel, metric="refund", arm=arm) == "counted"
                k_of[arm] += 1
    hours.pass_by(3601)
    return n_of, k_of


def test_events_are_counted_for_the_arm_they_are_about(store, hours):
    experiment = make(store, hours)
    n_of, k_of = ask_and_refund(experiment, hours, 40, {"red": 0.1, "green": 0.5, "blue": 0.9})
    for is_settled in (False, True):  # a reader counts what is due, and writes nothing
        if is_settled:
            settle(experiment)
        found = of(experiment)
        assert {arm.arm: arm.duels for arm in found.arms} == n_of
        assert {arm.arm: arm.events for arm in found.arms} == k_of
        assert [arm.rate for arm in found.arms] == [k_of[arm] / n_of[arm] for arm in ARMS]
    assert (found.baseline, found.bound, found.within) == ("red", 0.02, "1h")
    assert all(arm.lower <= arm.rate <= arm.upper for arm in found.arms)
    assert found.arms[0].difference is None
    assert verify(store) == ()


def test_the_other_arms_are_compared_with_the_fallback(store, hours):
    experiment = make(store, hours, fallback="blue")
    ask_and_refund(experiment, hours, 40, {"red": 1.0, "green": 0.0, "blue": 0.0})
    found = of(experiment)
    assert found.baseline == "blue" and found.alarms == ["red"]
    assert found.arms[2].difference is None and found.arms[0].difference > 0.5


def test_the_baseline_is_fixed_when_a_metric_is_declared(store, hours):
    """A fallback of later is not the arm that the error of the alarms speaks of."""
    experiment = make(store, hours)
    ask_and_refund(experiment, hours, 40, {"red": 0.0, "green": 0.0, "blue": 1.0})
    before = of(experiment)
    experiment.pause(fallback="blue")
    experiment.resume()
    assert of(experiment) == before
    experiment.add_guardrail("share", within="1h")  # what is declared now has the fallback of now
    assert of(experiment, "share").baseline == "blue"
    experiment.add_guardrail("refund", bound=0.02, within="1h")  # the same again is no change
    assert of(experiment).baseline == "red"


def test_a_retired_arm_is_no_baseline_of_a_later_metric(store, hours):
    experiment = make(store, hours)
    experiment.retire_arm("red")
    experiment.add_guardrail("share", within="1h")
    assert (of(experiment).baseline, of(experiment, "share").baseline) == ("red", "green")


def test_an_arm_that_joins_in_the_same_change_may_be_the_baseline(store, hours):
    experiment = make(store, hours, {})
    experiment.submit(
        make_change(add_arms=["gold"], fallback="gold", add_guardrails={"refund": None})
    )
    assert of(experiment).baseline == "gold"


@pytest.mark.parametrize("lag", [None, "1h"])
def test_while_booking_is_held_no_guard_rail_is_booked(store, hours, lag):
    """An outage: events told after it, without a time of their own, still count."""
    experiment = make(store, hours, lag=lag)
    duels = [experiment.ask() for _ in range(4)]
    hours.pass_by(600)
    experiment.hold_booking()
    hours.pass_by(5 * 3600)
    settle(experiment)
    assert not experiment.settle_due()
    assert sum(arm.duels for arm in of(experiment).arms) == 0
    said = [experiment.tell(duel, metric="refund", arm=duel.first) for duel in duels[:2]]
    asked = hours.now - 5 * 3600 - 600
    said.append(experiment.tell(duels[2], metric="refund", arm="first", at=asked + 3600))
    said.append(experiment.tell(duels[3], metric="refund", arm="first", at=asked + 3601))
    assert said == ["counted", "counted", "counted", "late"]
    experiment.release_booking()
    assert experiment.settle_due()
    found = of(experiment)
    assert (sum(arm.duels for arm in found.arms), sum(arm.events for arm in found.arms)) == (8, 3)
    assert verify(store) == ()


def test_an_event_that_came_too_late_before_a_hold_stays_late(store, hours):
    experiment = make(store, hours)
    duel = experiment.ask()
    hours.pass_by(3601)
    experiment.hold_booking()
    assert experiment.tell(duel, metric="refund", arm="first") == "late"


def test_upkeep_books_a_guard_rail_of_an_experiment_without_calls(store, hours):
    """With a lag a metric may be due after all windows have closed and all duels are booked."""
    experiment = make(store, hours, window="1h", lag="30m")
    duel = experiment.ask()
    hours.pass_by(3600 + 60)
    experiment.tell(duel, metric="refund", arm="first")
    upkeep = Upkeep(experiment.store, clock=hours)
    upkeep.settle()
    hours.pass_by(1800)
    for _ in range(2):
        assert upkeep.settle() == {}
        with experiment.store.reading() as connection:
            assert connection.execute(text("SELECT sum(of_first) FROM metric_counts")).scalar() == 1


def test_of_an_ab_test_an_event_is_about_the_arm_that_was_shown(store, hours):
    experiment = make(store, hours, display="one")
    shown = [experiment.ask() for _ in range(6)]
    for duel in shown:
        assert experiment.tell(duel, metric="refund") == "counted"
        with pytest.raises(ValueError, match="arm"):
            experiment.tell(duel, metric="refund", arm=duel.second)
    hours.pass_by(3601)
    n_of = {arm: [duel.first for duel in shown].count(arm) for arm in ARMS}
    assert {arm.arm: arm.events for arm in of(experiment).arms} == n_of
    assert {arm.arm: arm.duels for arm in of(experiment).arms} == n_of


def test_a_difference_uses_no_duel_twice(store, hours):
    """Duels of both count for the one that was shown first: counted by hand."""
    experiment = make(store, hours)
    told = {}
    rng = np.random.default_rng(3)
    for _ in range(60):
        duel = experiment.ask()
        told[duel.id] = (duel, {arm for arm in (duel.first, duel.second) if rng.random() < 0.4})
        for arm in told[duel.id][1]:
            experiment.tell(duel.id, metric="refund", arm=arm)
    hours.pass_by(3601)
    found = of(experiment)
    for place, arm in enumerate(ARMS[1:], start=1):
        own, base = [], []
        for duel, events in told.values():
            if arm in duel[1:3] and (
                duel.first == arm or duel.second != "red" and arm in duel[1:3]
            ):
                if not (duel.first == "red" and duel.second == arm):
                    own.append(arm in events)
            if "red" in duel[1:3] and not (duel.first == arm and duel.second == "red"):
                base.append("red" in events)
        share = arm_shares(np.zeros(3, dtype=int), 0)[place]
        error = experiment.standing().error
        by_hand = difference_interval(sum(own), len(own), sum(base), len(base), error * share)
        row = found.arms[place]
        assert row.difference == pytest.approx(float(by_hand.mean))
        assert row.difference_lower == pytest.approx(float(by_hand.lower))
        assert row.difference_upper == pytest.approx(float(by_hand.upper))


def test_an_event_counts_once_and_only_in_time(store, hours):
    experiment = make(store, hours)
    duels = [experiment.ask() for _ in range(4)]
    asked = hours.now
    one, other = duels[0].first, duels[0].second
    said = [experiment.tell(duels[0], metric="refund", arm=arm) for arm in (one, one, other)]
    assert said == ["counted", "repeated", "counted"]
    hours.pass_by(3600)
    assert experiment.tell(duels[1], metric="refund", arm="first") == "counted"
    hours.pass_by(1)
    assert experiment.tell(duels[2], metric="refund", arm="second") == "late"
    # Told later than it came: in time as long as its duel is not booked.
    is_booked = experiment.standing().guardrails[0].arms[0].duels > 0
    assert is_booked
    settle(experiment)
    assert experiment.tell(duels[3], metric="refund", arm="first", at=asked + 5) == "late"
    assert sum(arm.events for arm in of(experiment).arms) == 3
    assert verify(store) == ()


def test_with_a_lag_duels_are_booked_later(store, hours):
    experiment = make(store, hours, lag="1h")
    duel = experiment.ask()
    hours.pass_by(7000)
    settle(experiment)
    assert sum(arm.duels for arm in of(experiment).arms) == 0
    assert experiment.tell(duel, metric="refund", arm="first") == "counted"
    hours.pass_by(300)
    assert sum(arm.events for arm in of(experiment).arms) == 1


def test_an_alarm_is_raised_once_and_stays(store, hours):
    experiment = make(store, hours)
    ask_and_refund(experiment, hours, 60, {"red": 0.0, "green": 0.0, "blue": 1.0})
    standing = experiment.standing().without_alarms()  # before anybody has written it
    assert standing.guardrails[0].alarms == ["blue"]
    assert any("refund" in words for words in standing.warnings)
    settle(experiment)
    noted = [about for kind, about in kinds_of(experiment) if kind == "guardrail"]
    assert noted == ["refund: blue"]
    ask_and_refund(experiment, hours, 60, {"red": 1.0, "green": 1.0, "blue": 0.0}, seed=1)
    settle(experiment)
    found = of(experiment)
    assert found.arms[2].difference_lower < found.bound and found.alarms == ["blue"]
    assert [kind for kind, _ in kinds_of(experiment)].count("guardrail") == 1


def test_a_metric_without_a_bound_never_alarms(store, hours):
    experiment = make(store, hours, {"refund": {"within": "1h"}, "share": None})
    ask_and_refund(experiment, hours, 40, {"red": 0.0, "green": 0.0, "blue": 1.0})
    settle(experiment)
    assert of(experiment).alarms == [] and of(experiment, "share").within == "1d"
    assert not any(kind == "guardrail" for kind, _ in kinds_of(experiment))


def test_events_change_nothing_by_which_pairs_are_chosen(store, hours):
    experiment = make(store, hours, {"refund": {"bound": 0.0, "within": "1m"}})
    browser(experiment, hours, 15, np.full((3, 3), 0.5))
    duels = [experiment.ask() for _ in range(3)]
    settle(experiment)
    before = book_of(experiment)
    for duel in duels:
        assert experiment.tell(duel, metric="refund", arm="first") == "counted"
    settle(experiment)
    after = book_of(experiment)
    for name in ("wealth", "lead", "n", "n_open", "doubts", "best", "log_evidence"):
        same = getattr(before.eprocess, name), getattr(after.eprocess, name)
        assert np.array_equal(*same), name
    assert np.array_equal(before.ledger.conversions, after.ledger.conversions)
    assert before.head["heard"] == after.head["heard"]


def test_a_metric_that_is_declared_later_counts_from_then_on(store, hours):
    experiment = make(store, hours, {})
    early = experiment.ask()
    with pytest.raises(ValueError, match="metric"):
        experiment.tell(early, metric="refund", arm="first")
    assert experiment.standing().guardrails == ()
    experiment.add_guardrail("refund", bound=0.1, within="1h")
    experiment.add_guardrail("refund", bound=0.1, within="1h")  # the same again is no change
    assert experiment.tell(early, metric="refund", arm="first") == "late"
    duel = experiment.ask()
    assert experiment.tell(duel, metric="refund", arm="first") == "counted"
    hours.pass_by(3601)
    assert [sum(arm.duels for arm in of(experiment).arms),
            sum(arm.events for arm in of(experiment).arms)] == [2, 1]  # fmt: skip
    with pytest.raises(ValueError, match="refund"):
        experiment.add_guardrail("refund", bound=0.2, within="1h")
    assert verify(store) == ()


def test_an_arm_that_joins_is_compared_too(store, hours):
    experiment = make(store, hours)
    experiment.add_arm("gold")
    ask_and_refund_of = {arm: 0.2 for arm in (*ARMS, "gold")}
    rng, n = np.random.default_rng(2), 0
    for _ in range(40):
        duel = experiment.ask()
        n += "gold" in duel[1:3]
        if "gold" in duel[1:3] and rng.random() < ask_and_refund_of["gold"]:
            experiment.tell(duel, metric="refund", arm="gold")
    hours.pass_by(3601)
    assert of(experiment).arms[3].duels == n > 0
    assert of(experiment).arms[3].difference is not None


def test_duels_of_a_unit_that_repeats_a_pair_do_not_count(store, hours):
    experiment = Experiment.create(
        store, "x", ARMS[:2], window="1h", clock=hours, guardrails={"refund": 0.1}
    )
    for _ in range(3):
        duel = experiment.ask(unit="ann")
        experiment.tell(duel)
        experiment.tell(duel, metric="refund", arm="first")
    hours.pass_by(3601)
    assert sum(arm.duels for arm in of(experiment).arms) == 2
    assert sum(arm.events for arm in of(experiment).arms) == 1
    settle(experiment)
    assert verify(store) == ()


def test_sums_stay_when_rows_are_folded(store, hours):
    experiment = make(store, hours, window="1h", forget_after="2h")
    n_of, k_of = ask_and_refund(experiment, hours, 30, dict.fromkeys(ARMS, 0.5))
    for _ in range(3):
        hours.pass_by(3600)
        settle(experiment)
    with experiment.store.reading() as connection:
        assert connection.execute(text("SELECT count(*) FROM duels")).scalar() == 0
        assert connection.execute(text("SELECT count(*) FROM metric_events")).scalar() == 0
    assert {arm.arm: (arm.duels, arm.events) for arm in of(experiment).arms} == {
        arm: (n_of[arm], k_of[arm]) for arm in ARMS
    }
    assert verify(store) == ()


def test_rows_stay_until_every_metric_has_booked_them(store, hours):
    experiment = make(store, hours, window="1h", forget_after="1h", lag="5h")
    experiment.ask()
    hours.pass_by(2 * 3600)
    settle(experiment)
    with experiment.store.reading() as connection:
        assert connection.execute(text("SELECT count(*) FROM duels")).scalar() == 1


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE metric_counts SET shown = shown + 1",
        "UPDATE metric_counts SET of_first = of_first + 1",
        "DELETE FROM metric_events",
        "UPDATE metric_events SET number = 10000",
    ],
)
def test_verify_finds_a_wrong_count(store, hours, damage):
    experiment = make(store, hours)
    for _ in range(3):
        experiment.tell(experiment.ask(), metric="refund", arm="first")
    hours.pass_by(3601)
    settle(experiment)
    assert verify(store) == ()
    with experiment.store.writing() as connection:
        if "number" in damage:
            connection.execute(text("DELETE FROM metric_events WHERE number > 1"))
        connection.execute(text(damage))
    assert any("refund" in words for words in verify(store))


def test_events_are_exported_and_printed(store, hours, tmp_path):
    experiment = make(store, hours)
    duel = experiment.ask()
    experiment.tell(duel, metric="refund", arm="second")
    path = experiment.export_events(tmp_path / "events.csv")
    assert path.read_text().splitlines() == [
        "duel,metric,arm,at,late",
        f"1,refund,{duel.second},{hours.now:.6f},False",
    ]
    hours.pass_by(3601)
    lines = str(of(experiment)).splitlines()
    assert "refund within 1h, compared with red, at most 2 points allowed" in lines[0]
    assert len(lines) == 6


def test_a_deleted_experiment_takes_its_metrics_along(store, hours, tmp_path):
    experiment = make(store, hours)
    experiment.tell(experiment.ask(), metric="refund", arm="first")
    hours.pass_by(3601)
    settle(experiment)
    experiment.delete()
    with pytest.raises(UnknownExperimentError):
        experiment.export_events(tmp_path / "events.csv")
    with experiment.store.reading() as connection:
        for table in ("metrics", "metric_events", "metric_counts", "folded_metric_counts"):
            assert connection.execute(text(f"SELECT count(*) FROM {table}")).scalar() == 0


def test_a_store_of_the_schema_before_migrates(store, hours):
    experiment = make(store, hours, {})
    browser(experiment, hours, 20, np.full((3, 3), 0.5))
    before = experiment.standing().plays
    with experiment.store.writing() as connection:
        for table in ("metrics", "metric_events", "metric_counts", "folded_metric_counts"):
            connection.execute(text(f"DROP TABLE {table}"))
        connection.execute(text(f"UPDATE {VERSIONS} SET version_num = '{BEFORE}'"))
    experiment.close()
    again = open_store(store)
    again.migrate()
    experiment = Experiment.open(again, "x", clock=hours)
    assert (experiment.standing().plays == before).all() and verify(again) == ()
    experiment.add_guardrail("refund", bound=0.1)
    assert of(experiment).within == "1d"


@pytest.mark.parametrize(
    "given, argument",
    [
        (["refund"], "guardrails"),
        ({"refund": 1.5}, "bound"),
        ({"refund": -0.1}, "bound"),
        ({"refund": {"most": 0.1}}, "guardrails"),
        ({"refund": {"within": "2d"}}, "within"),
        ({"": 0.1}, "metric"),
        ({"a/b": 0.1}, "metric"),
        ({"..": 0.1}, "metric"),
        ({str(n): 0.1 for n in range(51)}, "guardrails"),
    ],
)
def test_what_is_no_guard_rail_is_refused(tmp_path, given, argument):
    with pytest.raises(ValueError, match=argument):
        Experiment.create(f"sqlite:///{tmp_path}/x.db", "x", ARMS, window="1d", guardrails=given)


def test_without_a_window_the_age_must_be_said(tmp_path):
    store = f"sqlite:///{tmp_path}/x.db"
    with pytest.raises(ValueError, match="within"):
        Experiment.create(store, "x", ARMS, window=None, guardrails={"refund": 0.1})


def test_what_cannot_be_told_is_refused(store, hours):
    experiment = make(store, hours)
    duel = experiment.ask()
    for said in (
        {"metric": "refunds", "arm": "first"},
        {"metric": "refund"},
        {"metric": "refund", "arm": "gold"},
        {"metric": "refund", "arm": "first", "winner": "first"},
        {"metric": "refund", "arm": "first", "at": hours.now - 10_000},
        {"arm": "first"},
    ):
        with pytest.raises(ValueError):
            experiment.tell(duel, **said)
    with pytest.raises(UnknownDuelError):
        experiment.tell("nobody", metric="refund", arm="first")
    assert experiment.tell(duel, metric="refund", arm="first") == "counted"
