"""Players by the clock: what a time may be, bursts and pauses, windows, and restarts."""

import datetime
import heapq
import pickle
import time
import warnings

import numpy as np
import pytest

import duelay
import noon
from duelay import delays

NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
PROBLEM = duelay.Problem([[0.5, 0.7, 0.8], [0.3, 0.5, 0.6], [0.2, 0.4, 0.5]], ["a", "b", "c"])


def live(policy, law, at, seed=0, problem=PROBLEM, **started):
    """Play through the clock: duels asked at the times `at`, answers told when they come."""
    rng = np.random.default_rng(seed)
    law = delays.check(law)
    player = policy.start(problem.arms, seed=seed, clock="wall", **started)
    due, chance, delay = [], rng.random(len(at)), law.sample(len(at), seed=rng)
    for now, luck, late in zip(at, chance, delay, strict=True):
        while due and due[0][0] <= now:
            then, number, winner = heapq.heappop(due)
            told = {"winner": winner} if player.feedback == "votes" else {}
            player.tell(number, at=then, **told)
        duel = player.ask(at=now)
        won = luck < problem.matrix[duel.first, duel.second]
        if (won or player.feedback == "votes") and np.isfinite(late):
            heapq.heappush(due, (now + late, duel.id, "first" if won else "second"))
    return player


def bursts(n, rng, size=100, apart=3600.0):
    """Bursts of duels a hundredth of a second apart, at about hourly times."""
    starts = np.cumsum(rng.exponential(apart, n // size + 1))
    return NOON.timestamp() + np.sort((starts[:, None] + 0.01 * np.arange(size)).ravel())[:n]


@pytest.fixture
def wall(monkeypatch):
    """The time of the machine, which stands still; the list has it."""
    now = [NOON.timestamp() + 10 * 86400]
    monkeypatch.setattr(time, "time", lambda: now[0])
    return now


def test_a_time_is_seconds_an_aware_datetime_or_now(wall):
    player = duelay.DoubleThompson().start(3, seed=0, clock="wall")
    first = player.ask(at=NOON)
    player.ask(at=NOON.timestamp() + 60)
    assert player.tell(first, at=NOON + datetime.timedelta(minutes=2)) == "counted"
    player.ask()
    now = wall[0]
    wall[0] += 5.0  # later, when nothing happens
    history = player.history()
    assert history.at[:2].tolist() == [NOON.timestamp(), NOON.timestamp() + 60]
    assert history.delay[0] == 120 and np.isnan(history.delay[1:]).all()
    assert history.at[2] == history.now == now
    assert repr(player) == 'Player(double-thompson, n_arms=3, tick=3, clock="wall")'


@pytest.mark.parametrize(
    "at, words",
    [
        (datetime.datetime(2026, 3, 1, 12), "at must"),
        (float("nan"), "at must"),
        ("noon", "at must"),
        (True, "at must"),
        (1.7e12, "seconds since the epoch, got .* looks like milliseconds: divide by 1000"),
        (1.7e15, "looks like microseconds: divide by 1e6"),
        (1e10, "at must"),
    ],
)
def test_what_is_no_time_is_refused_and_changes_nothing(at, words):
    player = duelay.DoubleThompson().start(3, seed=0, clock="wall")
    duel = player.ask(at=5.0)
    for call in (lambda: player.ask(at=at), lambda: player.tell(duel, at=at)):
        with pytest.raises(ValueError, match=words):
            call()
    assert player.tick == 1 and not player.history().is_heard.any()
    assert player.tell(duel, at=6.0) == "counted"


def test_a_time_in_the_near_future_is_refused_too(wall):
    player = duelay.DoubleThompson().start(3, seed=0, clock="wall")
    duel, other = player.ask(), player.ask()
    with pytest.raises(ValueError, match="must not lie in the future"):
        player.tell(duel, at=wall[0] + 1.5)
    assert player.tell(duel, at=wall[0] + 0.5) == "counted"  # two machines' clocks differ
    wall[0] += 1.0
    assert player.tell(other, at=wall[0] + 0.5) == "counted"


def test_without_a_clock_there_is_no_time():
    player = duelay.DoubleThompson().start(3, seed=0)
    with pytest.raises(ValueError, match='start it with clock="wall"'):
        player.ask(at=5.0)
    duel = player.ask()
    with pytest.raises(ValueError, match='start it with clock="wall"'):
        player.tell(duel, at=5.0)


def test_time_that_runs_backwards_is_the_latest_known_and_is_counted():
    player = duelay.Decide().start(3, seed=0, clock="wall")
    duels = [player.ask(at=now) for now in (100.0, 90.0, 110.0)]
    player.tell(duels[0], at=105.0)  # evidence goes by the time of the event
    history = player.history()
    assert history.at.tolist() == [100.0, 100.0, 110.0]
    assert history.delay[0] == 5.0 and player.standing().backwards == 2
    for _ in range(8):
        player.ask(at=1.0)
    assert "a time before the latest one known was given 10 times" in player.standing().warnings[-1]


@pytest.mark.parametrize("at", [5, 1.7e6, datetime.datetime(1970, 2, 1, tzinfo=datetime.UTC)])
def test_a_time_of_1970_is_doubted_once(at):
    player = duelay.DoubleThompson().start(3, seed=0, clock="wall")
    with pytest.warns(UserWarning, match="at=.* 1970"):
        player.ask(at=at)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        player.ask(at=at)
        duelay.DoubleThompson().start(3, seed=0, clock="wall").ask(at=1e8)


def test_a_forgotten_time_that_freezes_the_clock_is_said(wall):
    """To fill in the past, and to leave out `at` once, takes all that follows for now."""
    player = duelay.DoubleThompson().start(3, seed=0, clock="wall")
    duel = player.ask(at=NOON)
    player.tell(duel)
    assert player.standing().warnings == () or "before" not in player.standing().warnings[-1]
    with pytest.warns(UserWarning, match="without `at`"):
        duel = player.ask(at=NOON + datetime.timedelta(minutes=1))
    player.tell(duel, at=NOON + datetime.timedelta(minutes=2))  # warned once
    words = player.standing().warnings[-1]
    assert "given 2 times" in words and "start anew and give `at` in every call" in words
    told = duelay.DoubleThompson().start(3, seed=0, clock="wall")
    told.tell(told.ask(at=NOON), at=NOON - datetime.timedelta(days=2))  # nothing was forgotten
    assert told.standing().backwards == 1 and not told.standing().is_frozen
    crossing = duelay.DoubleThompson().start(3, seed=0, clock="wall")
    duel = crossing.ask()
    crossing.tell(duel, at=wall[0] - 60)
    assert crossing.standing().backwards == 1
    assert not any("clock" in words for words in crossing.standing().warnings)


def test_an_answer_after_the_window_is_late():
    player = duelay.DoubleThompson(window="10m").start(3, seed=0, clock="wall")
    first, second = player.ask(at=0.0), player.ask(at=0.0)
    assert player.tell(first, at=600.0) == "counted"
    assert player.tell(second, at=600.5) == "late"
    assert player.standing().pending.sum() == 0 and player.standing().late == 1
    assert str(player.history().window) == "10m"


@pytest.mark.parametrize("policy", ["decide", "double-thompson:delay=learn", "rmed"])
def test_in_a_burst_any_number_of_duels_is_asked_at_one_time(policy):
    player = duelay.policies.parse(policy).start(3, seed=1, clock="wall")
    duels = [player.ask(at=1000.0) for _ in range(300)]
    for duel in duels[::3]:
        player.tell(duel, at=1000.0)
    standing = player.standing()
    assert standing.plays.sum() == 300 and standing.conversions.sum() == 100
    assert player.ask(at=1e9).id == 300


@pytest.mark.long
@pytest.mark.interpreted
@pytest.mark.parametrize(
    "policy", ["decide", "decide:winner_exists=true", "double-thompson:delay=learn", "rmed",
               "rucb:order=coin", "double-thompson:delay=exponential:20m", "borda"]
)  # fmt: skip
def test_a_player_pickles_and_goes_on_by_the_clock(policy):
    policy = duelay.policies.parse(policy)
    at = bursts(240, np.random.default_rng(5), size=40)
    player = live(policy, "exponential:20m", at[:200])
    copy = pickle.loads(pickle.dumps(player))
    assert [tuple(player.ask(at=now)) for now in at[200:]] == [
        tuple(copy.ask(at=now)) for now in at[200:]
    ]
    assert copy.history().now == player.history().now


@pytest.mark.compiled
def test_under_bursts_the_law_and_the_estimates_are_right():
    law = "never:0.2,(log-normal:10m,1)"
    at = bursts(15_000, np.random.default_rng(2), size=1000, apart=7200.0)
    player = live(duelay.recommend().policy, law, at, seed=3)
    learned, standing = player.learned_law(), player.standing()
    assert learned.never == pytest.approx(0.2, abs=0.05)
    assert learned.cdf("10m") == pytest.approx(0.4, abs=0.04)
    often = (standing.plays + standing.plays.T) >= 500
    assert np.abs(standing.mean - PROBLEM.matrix)[often].max() < 0.06
    assert standing.leader == 0 and not standing.warnings and not standing.alarms


@pytest.mark.compiled
@pytest.mark.parametrize("seed", [0, 1])
def test_at_noon_a_player_learns_what_is_true(seed):
    """A few thousand duels of `python -m benchmarks noon`."""
    found = noon.measure(seed, n=5000, size=1000)
    assert found.is_led and found.never == pytest.approx(noon.NEVER, abs=0.08)
    assert max(found.scores, default=0.0) < 4 and sum(found.alarms) <= 2


LAW = "never:0.2,(log-normal:10m,1)"


@pytest.mark.parametrize("delay, order", [("learn", "coin"), (LAW, "coin"), (LAW, "champion")])
@pytest.mark.parametrize("n_arms", [2, 3, 6])
def test_a_burst_at_launch_is_spread_over_all_pairs(delay, order, n_arms):
    """Before the first answer nothing tells the arms apart, and no arm duels itself."""
    player = duelay.DoubleThompson(delay, order).start(n_arms, seed=n_arms, clock="wall")
    for n in range(90):
        player.ask(at=1000.0 + 0.01 * n)
    plays = player.standing().plays
    each = (plays + plays.T)[np.triu_indices(n_arms, 1)]
    assert not np.diag(plays).any() and each.max() - each.min() <= 1
    if order == "champion":
        assert np.abs(plays - plays.T).max() <= 1


def test_a_burst_goes_on_being_spread_while_few_are_answered_and_the_law_is_not_known():
    player = duelay.DoubleThompson(delay="learn").start(2, seed=0, clock="wall")
    duels = [player.ask(at=1000.0) for _ in range(100)]
    for duel in duels[:5]:
        player.tell(duel, at=1001.0)
    for _ in range(300):
        player.ask(at=1002.0)
    assert not np.diag(player.standing().plays).any()
    for duel in duels[5:40]:
        player.tell(duel, at=1003.0)
    for _ in range(300):
        player.ask(at=1004.0)
    assert np.diag(player.standing().plays).any()


@pytest.mark.compiled
def test_of_two_tied_arms_none_is_declared_by_the_clock_more_often_than_promised():
    tied = duelay.Problem([[0.5, 0.5, 0.8], [0.5, 0.5, 0.7], [0.2, 0.3, 0.5]])
    declared = 0
    for seed in range(40):
        at = bursts(700, np.random.default_rng(seed), size=50)
        player = live(duelay.Decide(error=0.2), "never:0.3,(log-normal:30m,1)", at, seed, tied)
        declared += player.standing().winner is not None
    assert declared / 40 <= 0.2 + 3 * (0.2 * 0.8 / 40) ** 0.5


def test_a_policy_that_decides_does_so_by_the_clock():
    player = live(duelay.Decide(), "exponential:5m", bursts(900, np.random.default_rng(0), size=30))
    standing = player.standing()
    assert standing.winner == 0 and standing.guarantee.kind == "proved"
    assert standing.evidence.declared < 900


def test_replayed_evidence_by_the_clock_is_what_the_player_has_kept():
    from duelay.inference.evidence import evidence_of, replay_bets

    for started in ({}, {"feedback": "votes"}):
        player = live(duelay.Decide(), "exponential:5m", bursts(300, np.random.default_rng(1), 30),
                      **started)  # fmt: skip
        kept, found = player.standing().evidence, evidence_of(replay_bets(player.history(), 0.05))
        np.testing.assert_allclose(found.log_evidence, kept.log_evidence, atol=1e-9)
        assert (found.winner, found.declared) == (kept.winner, kept.declared)


@pytest.mark.long
@pytest.mark.interpreted
def test_with_a_law_in_time_that_is_told_the_intervals_are_proved():
    law = "exponential:20m"
    player = live(duelay.DoubleThompson(delay=law), law, bursts(600, np.random.default_rng(4), 50))
    standing = player.standing()
    assert standing.guarantee.words == "the delay law being as it was told"
    assert ((standing.lower <= PROBLEM.matrix) & (PROBLEM.matrix <= standing.upper)).all()
    assert standing.upper[0, 2] - standing.lower[0, 2] < 0.6


def test_intervals_under_a_law_that_is_told_do_not_take_silence_after_the_window_for_defeat():
    """Half of the answers come after the window, and are not counted."""
    policy = duelay.DoubleThompson(delay="exponential:1h", window="20m")
    player = live(policy, "exponential:1h", bursts(900, np.random.default_rng(4), 50))
    standing = player.standing()
    assert ((standing.lower <= PROBLEM.matrix) & (PROBLEM.matrix <= standing.upper)).all()
    assert standing.upper[0, 2] < 1


def test_a_policy_that_decides_is_told_a_law_by_the_clock():
    law = "exponential:20m"
    player = live(duelay.Decide(delay=law), law, bursts(900, np.random.default_rng(0), size=30))
    standing = player.standing()
    assert standing.winner == 0 and standing.guarantee.kind == "proved"
    assert "if the law is as told" in standing.headline
    assert ((standing.lower <= PROBLEM.matrix) & (PROBLEM.matrix <= standing.upper)).all()
