"""One arm at a time: an A/B test in a store, from the ask to the rates and the verdict."""

import dataclasses
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import duelay
from duelay.errors import InvalidValueError
from duelay.inference.alarms import find_all
from duelay.inference.rates import margin_of_lift
from duelay.ledger.evidence.eprocess import GAPS, evidence_weights
from duelay.live import Experiment, Store, verify
from duelay.live.standing import StandingReport
from duelay.live.storage import schema
from live.hours import Hours, browser

ARMS = ["red", "green", "blue"]
RATES = np.array([0.3, 0.6, 0.1])
FIRST = Path(__file__).parent / "stores" / "first.sql"
CHANCES = np.repeat(RATES[:, None], 3, axis=1)


@pytest.fixture
def hours():
    return Hours()


def make(store, hours, **said):
    said = {"name": "x", "window": "2h", "display": "one", "clock": hours, **said}
    return Experiment.create(store, arms=ARMS, **said)


def test_a_visitor_sees_the_first_arm_until_a_winner_is_declared(store, hours):
    experiment = make(store, hours)
    duel = experiment.ask(unit="v")
    assert duel.arm == duel.first and duel.second != duel.first
    assert experiment.tell(duel, "first") == "counted"
    hours.pass_by(3 * 3600)
    assert experiment.ask(unit="v") == duel and experiment.tell(duel) == "repeated"
    experiment.retire_arm(duel.arm)
    assert experiment.ask(unit="v").arm not in (None, duel.arm)
    shown = browser(experiment, hours, 6000, CHANCES, mean=600.0)
    assert shown < 6000 and verify(store) == ()
    winner = experiment.arms[experiment.standing().winner]
    left = [arm for arm in ("green", "red", "blue") if arm != duel.arm]
    assert winner == left[0]
    settled = experiment.ask()
    assert settled.id is None and settled.arm == settled.winner == winner


def test_a_silent_visitor_who_returns_sees_the_winner(store, hours):
    experiment = make(store, hours, window="14d")
    for k in range(3000):
        hours.pass_by(10)
        duel = experiment.ask(unit=f"v{k}")
        if duel.id is None:
            break
        if duel.arm == "red":
            experiment.tell(duel)
    assert experiment.standing().verdict == "winner"
    assert {experiment.ask(unit=f"v{i}").arm for i in range(k)} == {"red"}
    experiment.add_arm("yellow")
    assert experiment.ask(unit="v0").id is not None, "the declaration is withdrawn"


@pytest.mark.parametrize("said", [{"budget": 30}, {"until": "1h"}])
def test_after_another_end_a_visitor_keeps_an_arm_until_its_window_closes(store, hours, said):
    experiment = make(store, hours, **said)
    shown = [experiment.ask(unit=f"v{k}").arm for k in range(30)]
    hours.pass_by(3700)
    assert experiment.ask().id is None
    assert experiment.standing().verdict == "undecided"
    assert [experiment.ask(unit=f"v{k}").arm for k in range(30)] == shown
    hours.pass_by(3700)
    assert {experiment.ask(unit=f"v{k}").arm for k in range(30)} == {experiment.ask().arm}


def test_the_table_and_the_summary_state_the_same_lift_while_most_conversions_are_no_evidence(
    url, hours
):
    experiment = make(url, hours)
    chances = np.repeat([[0.8], [0.9], [0.7]], 3, axis=1)
    gaps = []
    while not gaps:  # it may be too early to say who leads
        browser(experiment, hours, 300, chances, every=10.0, mean=1200.0)
        standing = experiment.standing().without_alarms()
        gaps = [(arm, found.ahead.value) for arm, found in enumerate(standing.summary.arms)
                if found.ahead is not None]  # fmt: skip
    assert standing.eprocess.seen.sum() < standing.conversions.sum()
    best = standing.leader
    for arm, ahead in gaps:
        assert standing.rates.lift[best, arm] == pytest.approx(ahead)


def test_rates_and_lifts_are_those_of_the_duels(url, hours):
    experiment = make(url, hours)
    browser(experiment, hours, 250, CHANCES, every=60.0, mean=1200.0)
    hours.pass_by(30)
    standing, history = experiment.standing(), experiment.history()
    assert history.display == "one" and standing.display == "one"
    rates, age = standing.rates, history.ages
    for arm in range(3):
        mine = history.first == arm
        closed = mine & (age > 7200)
        assert rates.shown[arm] == mine.sum()
        assert rates.conversions[arm] == (mine & history.is_heard).sum()
        assert abs(rates.closed[arm] - closed.sum()) <= 1  # it may be due at this very moment
        n, won = rates.closed[arm], rates.converted[arm]
        assert n == 0 or rates.rate[arm] == won / n
        assert rates.lower[arm] < 0.8 * RATES[arm] < rates.upper[arm]  # a fifth never comes
    assert (rates.closed > 0).all()
    wins = standing.eprocess.seen
    off = (wins > 0) & (wins.T > 0)
    assert off.any()
    mean = np.clip(standing.mean, standing.lower, standing.upper)[off]
    np.testing.assert_allclose(rates.lift[off], mean / (1 - mean) - 1)
    mu = standing.lower[off]
    np.testing.assert_allclose(rates.lift_lower[off], mu / (1 - mu) - 1)
    np.testing.assert_allclose(1 + rates.lift_upper[off], 1 / (1 + rates.lift_lower.T[off]))
    report = StandingReport.of(standing)
    assert StandingReport.from_json(report.to_json()) == report
    assert "leader's lift" in str(standing) and "no window" not in str(standing)
    assert "the arm that is shown" in standing.guarantee.words


def test_equal_answers_of_arms_are_no_assumption_of_one_arm_at_a_time(url, hours):
    experiment = make(url, hours, share=1.0)
    browser(experiment, hours, 900, CHANCES)
    found = {test.name: test.is_alarm for test in find_all(experiment.history())}
    assert "share by arm" not in found and not any(found.values()), found
    estimate = duelay.estimate(experiment.history())
    assert estimate.delays is None and "up to a factor" in estimate.why_no_law
    with pytest.raises(InvalidValueError, match="delay must be left out"):
        duelay.estimate(experiment.history(), delay="exponential:5m")


def test_a_file_of_the_duels_says_how_they_were_shown(url, hours, tmp_path):
    experiment = make(url, hours)
    browser(experiment, hours, 60, CHANCES)
    for ending in ("csv", "parquet"):
        path = experiment.export(tmp_path / f"duels.{ending}")
        assert duelay.History.read(path).display == "one"


def test_what_does_not_fit_one_arm_is_refused(url, hours):
    for wrong, words in (
        ({"feedback": "votes"}, "feedback must be conversions"),
        ({"self_duels": True}, "self_duels must be left out"),
        ({"display": "both"}, "display must be"),
        ({"policy": "decide:display=one", "display": "pair"}, "display must be said once"),
    ):
        with pytest.raises(InvalidValueError, match=words):
            make(url, hours, **wrong)
    assert make(url, hours, policy="decide:error=0.1").policy.display == "one"


def test_an_experiment_of_before_shows_pairs(tmp_path):
    path = tmp_path / "first.db"
    connection = sqlite3.connect(path)
    connection.executescript(FIRST.read_text())
    connection.close()
    Store(path).migrate()
    assert Experiment.open(path, "first").standing().display == "pair"
    assert Experiment.open(path, "first").ask().arm is None


def test_bets_of_an_experiment_with_a_margin_are_those_of_its_policy_and_are_verified(store, hours):
    experiment = make(store, hours, margin="50%", forget_after="3h")
    epsilon = margin_of_lift(0.5)
    assert experiment.policy.planned == epsilon and "planned=" in str(experiment.policy)
    browser(experiment, hours, 400, CHANCES, every=60.0)
    eprocess = Experiment.open(store, "x", clock=hours).standing().eprocess
    policy = duelay.Decide(margin=epsilon, display="one", window="2h", self_duels=False)
    assert np.array_equal(eprocess.gaps, policy.ledger(3, by_clock=True).assumed.gaps)
    assert eprocess.wealth.any() and verify(store) == ()
    own = make(store, hours, name="own", margin="50%", policy="decide:planned=0.2")
    assert own.policy.planned == 0.2


def test_an_experiment_of_before_keeps_its_bets(store, hours):
    """Its policy has a margin, and does not say what it is planned for."""
    experiment = make(store, hours, margin="50%")
    was = str(dataclasses.replace(experiment.policy, planned=None))
    with experiment.store.writing() as connection:
        connection.execute(schema.experiments.update().values(policy=was))
    experiment = Experiment.open(store, "x", clock=hours)
    browser(experiment, hours, 400, CHANCES, every=60.0)
    eprocess = experiment.standing().eprocess
    assert np.array_equal(eprocess.gaps, GAPS) and eprocess.wealth.any()
    assert np.array_equal(eprocess.log_weight, np.log(evidence_weights(shows_one=True)))
    assert verify(store) == ()


def test_saving_regret_one_arm_at_a_time_shows_the_better_arm_more(url, hours):
    experiment = make(url, hours, goal="regret", error=1e-9)
    browser(experiment, hours, 600, CHANCES)
    shown = experiment.standing().rates.shown
    assert shown[1] > shown[0] + shown[2] - 150


@pytest.fixture
def tested(url, hours):
    """An A/B test in which visitors return to pairs, arms go and come, and some are silent."""
    experiment = make(url, hours)
    experiment.writer._selector.rng = np.random.default_rng(0)
    close = np.repeat(np.array([[0.45], [0.5], [0.4]]), 3, axis=1)

    def visit(n):
        said = {"every": 60.0, "mean": 1200.0, "units": lambda k: f"v{k}"}
        assert browser(experiment, hours, n, close, **said) == n

    visit(200)
    experiment.retire_arm("red")
    visit(100)
    experiment.add_arm("red")
    experiment.retire_arm("blue")
    visit(200)
    return experiment


def test_an_estimate_of_the_export_has_the_rates_and_lifts_of_the_standing(tested, tmp_path):
    standing = tested.standing()
    found = duelay.estimate(tested.export(tmp_path / "visitors.csv"))
    assert standing.repeats.sum() > 0
    for name in ("shown", "conversions", "closed", "converted", "rate", "lower", "upper"):
        ours, theirs = getattr(found.rates, name), getattr(standing.rates, name)
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, err_msg=name)
    np.testing.assert_allclose(found.mean, standing.mean, atol=1e-3)
    np.testing.assert_allclose(found.rates.lift, standing.rates.lift, atol=0.02, rtol=0.01)
    lower, upper = found.rates.lift_lower, found.rates.lift_upper
    assert (lower <= found.rates.lift).all() and (found.rates.lift <= upper).all()
    assert found.arms[found.leader] == standing.arms[standing.leader]
    # All conversions are counted, and no arm may join: these intervals are never much wider.
    assert (lower >= standing.rates.lift_lower - 0.05).all() and (lower != 0).sum() == 6


def test_the_estimate_of_an_ab_test_speaks_of_visitors_rates_and_lift(tested, tmp_path, undrawn):
    found = duelay.estimate(tested.history())
    shown, data = str(found), found.as_data()
    for words in ("leader's lift", "conversions", "%  ["):
        assert words in shown
    assert "duel" not in found.headline and data["display"] == "one"
    by_arm = {row["arm"]: row for row in data["ranking_table"]}
    red = found.arms.index("red")
    assert by_arm["red"]["rate"] == found.rates.rate[red]
    assert by_arm["red"]["rate_lower"] < 0.8 * 0.45 < by_arm["red"]["rate_upper"]
    lifts = {(row["arm"], row["over"]): row for row in data["lifts_table"]}
    one = lifts["green", "red"]
    assert one["lower"] < 0.1 < one["upper"] and one["lower"] <= one["lift"] <= one["upper"]
    written = found.save(tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text()
    assert {"ranking.csv", "lifts.csv"} <= {path.name for path in written}
    assert "Lift" in page and "preferences" not in page and "beats it" not in page


def test_an_estimate_without_a_window_or_conversions_has_no_rate(url, hours):
    experiment = make(url, hours, window=None)
    [experiment.ask() for _ in range(4)]
    found = duelay.estimate(experiment.history())
    assert np.isnan(found.rates.rate).all() and "no window" in str(found)
    assert "4 visitors" in found.headline and found.as_data()["lifts_table"]
