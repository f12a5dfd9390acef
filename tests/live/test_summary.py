"""The summary of an experiment: each number against a slow twin, and what it says when."""

import dataclasses
import json

import numpy as np
import pytest
from sqlalchemy import select

from duelay.assumptions import Finding
from duelay.live import Experiment
from duelay.live.standing import LiveStanding
from duelay.live.storage.schema import duels
from duelay.live.summary import MIN_ANSWERS, Summary
from live.hours import Hours, browser
from page.million import numbers_of

ARMS = ["red", "green", "blue"]
CLOSE = np.array([[0.5, 0.48, 0.52], [0.52, 0.5, 0.53], [0.48, 0.47, 0.5]])
CLEAR = np.array([[0.5, 0.2, 0.5], [0.8, 0.5, 0.85], [0.5, 0.15, 0.5]])


@pytest.fixture
def hours():
    return Hours()


def run(url, hours, n, mu, **more):
    votes = more.get("feedback") == "votes"
    made = Experiment.create(url, "x", ARMS, clock=hours, window="2h", **more)
    browser(made, hours, n, mu, votes=votes, units=lambda k: f"visitor {k % 200}")
    return made


def answers_of(experiment):
    """Pairs of winner and loser, of answers that count, duel by duel."""
    with experiment.store.reading() as connection:
        rows = connection.execute(select(duels).where(duels.c.enters, duels.c.told.is_not(None)))
        return [(row.first, row.second)[:: 1 if row.first_won == 1.0 else -1] for row in rows]


@pytest.mark.parametrize("feedback", ["conversions", "votes"])
def test_answers_and_wins_are_counted_arm_by_arm(url, hours, feedback):
    experiment = run(url, hours, 300, CLOSE, feedback=feedback)
    answers = answers_of(experiment)
    for number, arm in enumerate(experiment.standing().without_alarms().summary.arms):
        won = sum(winner == number for winner, _ in answers)
        lost = sum(loser == number for _, loser in answers)
        assert (arm.arm, arm.answers, arm.wins) == (ARMS[number], won + lost, won)
        assert arm.share == pytest.approx(won / (won + lost))
        assert won > 0 and lost > 0


def test_differences_are_those_of_the_intervals_as_shares_of_visitors(url, hours):
    standing = run(url, hours, 500, CLOSE).standing().without_alarms()
    summary, best = standing.summary, standing.leader
    assert summary.state in ("close", "leads") and summary.best == ARMS[best]
    for number, arm in enumerate(summary.arms):
        if number == best:
            assert arm.ahead is None
            continue
        mean, lower, upper = (
            x[best, number] for x in (standing.mean, standing.lower, standing.upper)
        )
        # Of 100 visitors 100 mu choose the one and 100 (1 - mu) the other.
        assert arm.ahead.lower == pytest.approx(lower - (1 - lower))
        assert arm.ahead.upper == pytest.approx(upper - (1 - upper))
        assert arm.ahead.value == pytest.approx(min(max(mean, lower), upper) * 2 - 1)
    rival = ARMS.index(summary.difference.rival)
    assert standing.chances[rival] == max(np.delete(standing.chances, best))
    assert summary.difference.value == summary.arms[rival].ahead.value
    assert summary.difference.confidence == pytest.approx(0.95)


def test_the_cost_is_that_of_every_duel_against_the_best_arm_alone(url, hours):
    experiment = run(url, hours, 500, CLOSE)
    summary = experiment.standing().without_alarms().summary
    with experiment.store.reading() as connection:
        shown = connection.execute(select(duels.c.first, duels.c.second)).all()
    unknown = {"value": 0.0, "lower": -1.0, "upper": 1.0}  # of an arm that has not met the best
    for end in ("value", "lower", "upper"):
        cost = 0.0
        for pair in shown:
            for arm in summary.arms[pair[0]], summary.arms[pair[1]]:
                if arm.ahead is not None:
                    cost += getattr(arm.ahead, end) / 2
                elif arm.arm != summary.best:
                    cost += unknown[end] / 2
        assert getattr(summary.cost, end) == pytest.approx(max(cost, 0.0))


def test_no_interval_contradicts_a_declared_winner(url, hours):
    experiment = run(url, hours, 3000, CLEAR)
    standing = experiment.standing().without_alarms()
    assert standing.winner == 1
    wide = dataclasses.replace(standing, lower=standing.lower - 0.4)  # as early declarations have
    summary = wide.without_alarms().summary
    assert summary.state == "winner" and summary.best == "green" and summary.time_left == ""
    assert summary.difference.lower == 0.0 <= summary.difference.value <= summary.difference.upper
    assert summary.difference.confidence == pytest.approx(0.9)  # intervals and verdict together
    assert all(arm.ahead is None or arm.ahead.lower >= 0.0 for arm in summary.arms)


def test_nobody_leads_before_each_arm_has_enough_answers(url, hours):
    made = Experiment.create(url, "x", ARMS[:2], clock=hours, feedback="votes")
    assert made.standing().summary.state == "no_answers"
    for n in range(2 * MIN_ANSWERS):
        made.tell(made.ask(), ["red", "green"][n % 2])
        hours.pass_by(60.0)
        summary = made.standing().without_alarms().summary
        is_early = n + 1 < MIN_ANSWERS
        assert (summary.state == "too_early") == is_early == (summary.best is None)
        assert (summary.difference is None) == (summary.chance is None) == is_early
        assert bool(summary.lacks) == is_early
    assert summary.state == "close" and "red" in summary.headline and "green" in summary.headline


def test_the_days_that_are_left_are_the_duels_at_the_pace_of_the_last_day(url, hours):
    experiment = run(url, hours, 500, CLOSE)
    standing = experiment.standing().without_alarms()
    low, high = standing.summary.days_left
    pace = (hours.now - 1_700_000_000.0) / standing.tick
    assert standing.seconds_per_duel == pytest.approx(pace, rel=0.1)
    assert low == pytest.approx(standing.duels_left.low * standing.seconds_per_duel / 86_400)
    assert high == pytest.approx(standing.duels_left.high * standing.seconds_per_duel / 86_400)
    slower = standing.at_traffic(10 * standing.seconds_per_duel)
    assert slower.summary.days_left == pytest.approx([10 * low, 10 * high])
    assert slower.evidence is standing.evidence  # nothing else is computed again
    hours.pass_by(86_400.0)
    assert experiment.standing().without_alarms().summary.days_left is None
    experiment.pause()
    assert experiment.standing().without_alarms().summary.days_left is None


def test_with_an_alarm_no_number_is_offered_for_a_decision(url, hours):
    standing = run(url, hours, 500, CLOSE).standing()
    alarm = Finding("order balance", 9.0, 1e-9, 500, True, "Red is always first.")
    remark = Finding("share by arm", 9.0, 1e-9, 500, True, "Red is answered less.")
    summary = standing.with_alarms((alarm,)).summary
    assert summary.state == "off" and summary.doubts == ["Red is always first."]
    assert summary.best is summary.difference is summary.chance is summary.cost is None
    assert standing.with_alarms((remark,)).summary.state != "off"


def test_a_summary_that_is_sent_is_read_again(url, hours):
    for experiment in (run(url, hours, 400, CLOSE), None):
        with experiment or Experiment.create(url, "new", ARMS, clock=hours) as made:
            summary = made.standing().without_alarms().summary
            sent = json.loads(json.dumps(summary.to_json(), allow_nan=False)) | {"later": 1}
            assert Summary.from_json(sent) == summary
            assert summary.headline in summary.text
            assert all(words in summary.text for words in summary.sentences)


def test_a_winner_is_compared_with_the_arm_that_comes_nearest(url, hours, monkeypatch):
    """Of arms without a chance, which has the most of it is noise."""
    standing = run(url, hours, 3000, CLEAR).standing().without_alarms()
    nearest = standing.arms[min((0, 2), key=lambda arm: standing.mean[1, arm])]
    for chances in ([0.002, 0.998, 0.0], [0.0, 0.998, 0.002]):
        monkeypatch.setattr(LiveStanding, "chances", np.array(chances))
        standing.__dict__.pop("summary", None)
        assert standing.winner == 1 and standing.summary.difference.rival == nearest


def test_one_arm_at_a_time_has_lifts_and_lost_conversions_against_the_best_arm_alone(url, hours):
    made = Experiment.create(url, "x", ["low", "high"], clock=hours, window="2h", display="one",
                             error=1e-6)  # fmt: skip
    rng = np.random.default_rng(0)
    for _ in range(250):
        hours.pass_by(60.0)
        duel = made.ask()
        if rng.random() < {"low": 0.3, "high": 0.4}[duel.arm]:
            made.tell(duel)
    hours.pass_by(3 * 3600.0)
    standing = made.standing().without_alarms()
    summary, best = standing.summary, standing.leader
    other = summary.arms[1 - best]
    assert summary.state in ("close", "leads") and summary.difference.measure == "lift"
    for end, mu in (("lower", standing.lower), ("upper", standing.upper)):
        share = mu[best, 1 - best]
        assert getattr(other.ahead, end) == pytest.approx(share / (1 - share) - 1)
        lost = max(other.answers * getattr(other.ahead, end), 0.0)
        assert getattr(summary.cost, end) == pytest.approx(lost)
    assert "differs from" not in summary.text  # in words of another lift than that of the interval
    known = np.where(np.eye(2, dtype=bool), 0.5, np.nan)
    unknown = dataclasses.replace(standing, mean=known, lower=known, upper=known).summary
    assert unknown.difference is None and unknown.cost is None
    rows = numbers_of(made)
    for number, arm in enumerate(summary.arms):
        mine = [row for row in rows if row["first"] == number]
        heard = sum(row["told"] is not None for row in mine)
        assert (arm.shown, arm.answers) == (len(mine), heard)
        assert arm.rate.value == pytest.approx(heard / len(mine)) and arm.share is None
    sent = json.loads(json.dumps(summary.to_json(), allow_nan=False))
    assert Summary.from_json(sent) == summary
