"""A history replayed: the player stands where the one stood that the history came from."""

import copy
import dataclasses
import heapq
import math
import pickle

import numpy as np
import pytest

import duelay
from duelay import History, delays
from duelay._core.jit.background import COMPILER
from duelay.ledger import age_to, clock_to
from duelay.ledger.evidence.winner_threshold import needed
from helpers import calls

MU = np.array([[0.5, 0.7, 0.8], [0.3, 0.5, 0.6], [0.2, 0.4, 0.5]])
ARMS = ("red", "green", "blue")
EPOCH = 1.7e9
LAW = delays.Never(0.2, delays.LogNormal("10m", 1.0))
LEARNS = duelay.DoubleThompson(delay="learn")
IN_TICKS = {
    "none": duelay.DoubleThompson(),
    "append-only": duelay.RUCB(counting="append-only"),
    "conversions only": duelay.RUCB(counting="conversions"),
    "learned": duelay.DoubleThompson(delay="learn", window=60),
    "learned from self-duels": duelay.DoubleThompson(
        delay="learn-from-self-duels", order="champion", window=60
    ),
    "geometric": duelay.RUCBDelay(delay="geometric:0.1"),
    "table": duelay.RRDBDelay(delay="uniform:1,9", order="coin", window=8),
    "turns": duelay.RMED(order="alternate", window=30),
    "rounds": duelay.MRRDBDelay(schedule=(20, 80)),
    "borda": duelay.Borda(),
    "bets": duelay.Decide(window=40),
    "bets on a law": duelay.Decide(delay="geometric:0.1"),
}  # fmt: skip
BY_CLOCK = {
    "none": duelay.DoubleThompson(),
    "learned": duelay.DoubleThompson(delay="learn"),
    "told": duelay.DoubleThompson(delay=LAW, window="2h"),
    "turns": duelay.RMED(order="alternate", window="30m"),
    "bets": duelay.Decide(),
    "borda": duelay.Borda(),
}
SIZES = {"learned": 1100, "bets": 1100}  # more than there is room for at first
LONG = [pytest.param(kind, marks=[pytest.mark.long] * (kind in SIZES)) for kind in BY_CLOCK]


def in_ticks(policy, n=400, seed=0, feedback="conversions"):
    """A player after n duels, some of their answers told after the last."""
    rng = np.random.default_rng(seed)
    player, due = policy.start(ARMS, seed=seed, feedback=feedback), []
    for t in range(n + 6):
        while due and due[0][0] <= t:
            tell(player, *heapq.heappop(due)[1:])
        if t < n:
            ask(player, rng, due, t + rng.geometric(0.1))
    return player


def by_clock(policy, n=500, seed=0, feedback="conversions", arms=ARMS, start=EPOCH):
    """As `in_ticks`, in bursts, many duels at one time, and pauses; now is after the last duel."""
    rng = np.random.default_rng(seed)
    player, due = policy.start(arms, seed=seed, feedback=feedback, clock="wall"), []
    at = start + np.cumsum(rng.choice([0.0, 0.01, 300.0], p=[0.5, 0.4, 0.1], size=n))
    for now, late in zip(at, LAW.sample(n, seed=rng).tolist(), strict=True):
        while due and due[0][0] <= now:
            when, *what = heapq.heappop(due)
            tell(player, *what, at=when)
        ask(player, rng, due, now + late, at=now)
    while due and due[0][0] <= at[-1] + 400:
        when, *what = heapq.heappop(due)
        tell(player, *what, at=when)
    return player


def ask(player, rng, due, when, **at):
    duel = player.ask(**at)
    won = rng.random() < MU[duel.first, duel.second]
    if math.isfinite(when) and (won or player.feedback == "votes"):
        heapq.heappush(due, (when, duel, "first" if won else "second"))


def tell(player, duel, winner, **at):
    player.tell(duel, winner=winner if player.feedback == "votes" else None, **at)


def again(player, policy=None, **more):
    """A new player with the history of another."""
    clock = "wall" if player.history().at is not None else None
    policy = policy or player.policy
    started = policy.start(player.arms, seed=9, feedback=player.feedback, clock=clock, **more)
    return started.replay(player.history())


def assert_same_history(found, wanted):
    for name in ("first", "second", "delay", "first_won", "at"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), err_msg=name)
    for name in ("n_arms", "arms", "window", "feedback", "order", "now", "chosen_by"):
        assert getattr(found, name) == getattr(wanted, name), name


def assert_same_standing(found, wanted):
    for name in ("plays", "conversions", "pending"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), err_msg=name)
    for name in ("mean", "lower", "upper"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-9)
    for name in ("tick", "told", "is_learning", "guarantee", "winner", "leader"):
        assert getattr(found, name) == getattr(wanted, name), name
    assert (found.evidence is None) == (wanted.evidence is None)
    if wanted.evidence is not None:
        for name in ("log_evidence", "arm", "path", "lead", "n", "n_open"):
            one, other = getattr(found.evidence, name), getattr(wanted.evidence, name)
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9, err_msg=name)
        assert found.evidence.declared == wanted.evidence.declared


@pytest.mark.parametrize("feedback", ["conversions", "votes"])
@pytest.mark.parametrize("kind", IN_TICKS)
def test_in_ticks_a_replayed_player_stands_where_the_first_one_stood(kind, feedback):
    player = in_ticks(IN_TICKS[kind], feedback=feedback)
    found = again(player)
    assert_same_standing(found.standing(), player.standing())
    assert_same_history(found.history(), player.history())
    if kind == "learned" and feedback == "conversions":
        assert found.learned_law() == player.learned_law()
    found.tell(found.ask(), winner="first" if feedback == "votes" else None)
    assert found.tick == player.tick + 1


@pytest.mark.long
@pytest.mark.interpreted
@pytest.mark.parametrize("feedback", ["conversions", "votes"])
@pytest.mark.parametrize("kind", LONG)
def test_by_the_clock_a_replayed_player_stands_where_the_first_one_stood(kind, feedback):
    player = by_clock(BY_CLOCK[kind], n=SIZES.get(kind, 200), feedback=feedback)
    found = again(player)
    assert_same_standing(found.standing(), player.standing())
    assert_same_history(found.history(), player.history())
    if kind == "learned" and feedback == "conversions":
        assert player.learned_law().never > 0
        assert found.learned_law() == player.learned_law()
    found.tell(found.ask(), winner="first" if feedback == "votes" else None)
    assert found.tick == player.tick + 1


def log(n=300, *, at=None, order="coin", chosen_by="", feedback="conversions", arms=ARMS, seed=0):
    """A history that nobody of duelay has asked for: pairs at random."""
    rng = np.random.default_rng(seed)
    first = rng.integers(3, size=n)
    second = (first + rng.integers(1, 3, size=n)) % 3
    heard = rng.random(n) < MU[first, second]
    delay = rng.integers(1, 5, size=n).astype(float)
    heard &= delay <= np.arange(n, 0, -1)
    return History(
        n_arms=3,
        first=first,
        second=second,
        delay=np.where(heard, delay, np.nan),
        first_won=np.where(heard, 1.0, np.nan),
        order=order,
        arms=arms,
        at=at,
        chosen_by=chosen_by,
        feedback=feedback,
    )


@pytest.mark.parametrize(
    "policy, past, kind",
    [
        (duelay.Decide(), {"chosen_by": "decide"}, "proved"),
        (duelay.Decide(), {"chosen_by": "decide:error=0.1"}, "proved"),
        (duelay.Decide(winner_exists=True), {"chosen_by": "decide"}, "proved"),
        (duelay.Decide(window=9), {"chosen_by": "decide"}, "proved"),
        (duelay.Decide(), {"chosen_by": "decide:delay=geometric:0.1"}, "proved"),
        (duelay.Decide(), {"chosen_by": "decide", "order": "alternate"}, "measured"),
        (duelay.Decide(), {"chosen_by": "decider"}, "proved"),
        (duelay.Decide(), {"chosen_by": "double-thompson"}, "proved"),
        (duelay.Decide(), {"chosen_by": "merge of decide"}, "proved"),
        (duelay.Decide(), {"chosen_by": "decide then rmed"}, "proved"),
        (duelay.Decide(), {}, "measured"),
        (duelay.Decide(), {"order": None, "chosen_by": "decide"}, "none"),
        (duelay.Decide(), {"order": "champion", "chosen_by": "rucb"}, "none"),
        (duelay.Decide(delay="geometric:0.1"), {"order": None}, "proved"),
        (duelay.DoubleThompson(), {"chosen_by": "rmed"}, "proved"),
        (duelay.DoubleThompson(), {}, "measured"),
        (duelay.DoubleThompson(), {"order": None}, "none"),
        (duelay.RUCBDelay(delay="geometric:0.1"), {"order": None}, "proved"),
        (duelay.RUCB(), {}, "none"),
        (duelay.Decide(), {"feedback": "votes"}, "measured"),
        (duelay.Decide(), {"feedback": "votes", "chosen_by": "rmed"}, "proved"),
        (duelay.RMED(), {"feedback": "votes", "chosen_by": "rmed", "order": None}, "proved"),
    ],
    ids=str,
)
def test_a_replayed_player_promises_what_the_weaker_part_does(policy, past, kind):
    history = log(**past)
    player = policy.start(ARMS, seed=0, feedback=history.feedback).replay(history)
    for _ in range(2):
        standing = player.standing()
        promised = standing.guarantee.kind
        if policy == duelay.RUCB():
            kind = "measured" if player.tick == history.n else "none"  # its own duels are not even
        assert promised == kind and standing.guarantee.words and str(standing)
        if kind == "none":
            assert standing.winner is None and "(not guaranteed)" in standing.headline
        player.ask()


def test_unknown_pairs_are_said_to_be_unknown():
    standing = duelay.Decide().start(ARMS).replay(log()).standing()
    assert "`chosen_by` does not say how the pairs were chosen" in str(standing)
    standing = duelay.Decide().start(ARMS).replay(log(order=None)).standing()
    assert "not guaranteed: nobody says that a coin or turns decided the order" in str(standing)


def test_a_history_says_who_has_chosen_its_pairs_and_in_which_order():
    assert duelay.RMED(window=9).start(2).history().chosen_by == "rmed:window=9"
    player = duelay.Decide().start(ARMS, seed=0).replay(log(chosen_by="rmed", order="alternate"))
    assert (player.history().chosen_by, player.history().order) == ("rmed", "alternate")
    player.ask()
    assert (player.history().chosen_by, player.history().order) == (
        "rmed then decide",
        "alternate",
    )
    more = duelay.Decide().start(ARMS, seed=0).replay(player.history())
    more.ask()
    assert more.history().chosen_by == "rmed then decide"
    unknown = duelay.RUCB().start(ARMS, seed=0).replay(log())
    unknown.ask()
    assert (unknown.history().chosen_by, unknown.history().order) == ("", "champion")


def test_what_is_proved_stays_proved_where_an_arm_has_joined():
    player = duelay.Decide().start(ARMS, seed=0, clock="wall")
    player.ask(at=EPOCH)
    player.add_arm("white")
    player.ask(at=EPOCH + 1)
    assert player.history().chosen_by == "decide"
    assert again(player).standing().guarantee == player.standing().guarantee
    assert player.standing().guarantee.kind == "proved"


def test_arms_change_after_a_replay_and_not_before():
    player = duelay.DoubleThompson().start(ARMS, seed=0)
    player.retire_arm("blue")
    with pytest.raises(ValueError, match="^replay "):
        player.replay(log())
    player = duelay.DoubleThompson().start(ARMS, seed=0).replay(log())
    player.retire_arm("blue")
    assert player.standing().plays.sum() == 300
    assert all(2 not in player.ask()[1:] for _ in range(20))


@pytest.mark.long
@pytest.mark.interpreted
def test_arms_that_joined_need_not_be_named_at_the_start():
    changes = [(0, "green", "joined"), (300, "blue", "retired")]
    names, at = ("green", "red", "blue"), EPOCH + np.arange(300.0)
    history = log(arms=names, at=at, chosen_by="decide")
    history = dataclasses.replace(history, n_arms=4, arms=(*names, "white"), changes=changes)
    for arms in (("red", "blue", "white"), ("white", "green", "red", "blue")):
        for policy in (duelay.Decide(), LEARNS):
            player = policy.start(arms, seed=0, clock="wall").replay(history)
            assert player.arms[-1] == "green" and set(player.arms) == {*ARMS, "white"}
            standing = player.standing()
            assert standing.joined.tolist() == [0, 0, 0, 1]
            assert [arm for arm, there in zip(player.arms, standing.present, strict=True)
                    if not there] == ["blue"]  # fmt: skip
            one, other = player.arms.index("red"), player.arms.index("blue")
            assert (
                standing.plays[one, other] == ((history.first == 1) & (history.second == 2)).sum()
            )
    with pytest.raises(ValueError, match="no arm is called 'white'"):
        duelay.Decide().start(("red", "blue"), clock="wall").replay(history)


def test_in_ticks_the_room_for_arms_that_joined_is_kept_from_the_start():
    player = LEARNS.start(ARMS, seed=0, feedback="votes")
    for _ in range(200):
        player.tell(player.ask(), winner="first")
    player.add_arm("white")
    for _ in range(200):
        duel = player.ask()
        player.tell(duel, winner="first" if 3 in duel[1:] and duel.first == 3 else "second")
    assert again(player).standing().joined.tolist() == [0, 0, 0, 1]
    found = again(player, duelay.Decide())
    eprocess = found._ledger.assumed
    assert eprocess.has_changed and eprocess.level == pytest.approx(math.log(4 / 0.045))
    assert needed(eprocess, 3, 0) == pytest.approx(math.log(8 / 0.045))
    assert_same_standing(again(found).standing(), found.standing())


def test_a_declaration_is_kept_by_the_policy_that_made_it_and_no_other():
    history = dataclasses.replace(
        log(30, chosen_by="decide:error=0.2"), declared=("blue", 17, "decide:error=0.2")
    )
    kept = duelay.Decide(error=0.2).start(ARMS, seed=0).replay(history).standing()
    assert kept.winner == 2 and kept.evidence.declared == 17
    assert duelay.Decide().start(ARMS, seed=0).replay(history).standing().winner is None


def test_an_empty_history_changes_nothing():
    player = duelay.Decide().start(ARMS, seed=0)
    player.replay(log(0, order=None))
    assert player.standing().guarantee.kind == "proved" and player.history().order == "coin"
    clock = duelay.Decide().start(ARMS, seed=0, clock="wall").replay(log(0, at=[]))
    clock.ask()
    assert clock.tick == 1


def test_arms_are_found_by_their_names():
    history = log(arms=("c", "a", "b"))
    player = duelay.DoubleThompson().start(["a", "b", "c", "d"], seed=0).replay(history)
    plays = player.standing().plays
    want = np.zeros((4, 4), dtype=int)
    np.add.at(want, (np.array([2, 0, 1])[history.first], np.array([2, 0, 1])[history.second]), 1)
    np.testing.assert_array_equal(plays, want)


def test_what_came_after_the_players_window_is_late():
    history = log()
    player = duelay.DoubleThompson(window=2).start(ARMS, seed=0).replay(history)
    late = int((history.delay > 2).sum())
    standing = player.standing()
    assert standing.late == late > 0
    assert standing.conversions.sum() == history.is_heard.sum() - late
    assert player.tell(int(np.flatnonzero(history.delay > 2)[0])) == "late"
    assert player.tell(int(np.flatnonzero(history.delay == 1)[0])) == "repeated"


def test_turns_go_on_where_the_history_ends():
    history = log()
    player = duelay.DoubleThompson(order="alternate").start(ARMS, seed=0).replay(history)
    last = {}
    for i, j in zip(history.first, history.second, strict=True):
        last[frozenset((i, j))] = i
    for _ in range(20):
        duel = player.ask()
        if duel.first != duel.second:
            pair = frozenset((duel.first, duel.second))
            assert last[pair] != duel.first
            last[pair] = duel.first


def test_an_answer_at_the_time_of_its_own_question_is_heard():
    """And many duels at that time."""
    first, one = np.arange(200) % 2, np.ones(200)
    history = History(
        n_arms=2, first=first, second=1 - first, delay=0 * one, first_won=one,
        at=EPOCH + np.arange(200) // 50, order="coin", chosen_by="decide",
    )  # fmt: skip
    for policy in (duelay.Decide(), LEARNS, duelay.DoubleThompson()):
        player = policy.start(2, clock="wall").replay(history)
        assert player.standing().conversions.sum() == 200
        evidence = player.standing().evidence
        assert evidence is None or evidence.n[0, 1] >= 199  # as of the last ask
    player = LEARNS.start(2, clock="wall").replay(history)
    assert player._ledger.assumed.n_taught[0] == 200


@pytest.mark.parametrize(
    "history, started, message",
    [
        (log(), {"feedback": "votes"}, "history must"),
        (log(), {"clock": "wall"}, "history must"),
        (log(at=EPOCH + np.arange(300)), {}, "ticks as the player .* start the player with clock="),
        (log(arms=("red", "gren", "blue")), {}, r"no arm is called 'gren' \(did you mean green"),
        (log(at=4e9 + np.arange(300)), {"clock": "wall"}, "at must"),
        ("duels.csv", {}, "history must"),
    ],
)
def test_a_history_that_does_not_fit_is_refused_and_nothing_is_booked(history, started, message):
    player = duelay.DoubleThompson().start(ARMS, seed=0, **started)
    with pytest.raises(ValueError, match=message):
        player.replay(history)
    assert player.tick == 0 and player.standing().plays.sum() == 0


def test_only_a_player_that_has_just_started_replays():
    player = duelay.DoubleThompson().start(ARMS, seed=0)
    player.ask()
    with pytest.raises(ValueError, match="^replay .*1 duels"):
        player.replay(log())
    counts = duelay.MRRDBDelay(schedule=(20, 80), feedback="counts").start(ARMS)
    with pytest.raises(ValueError, match="history must"):
        counts.replay(log())


def test_a_replayed_player_pickles_and_copies():
    player = again(by_clock(LEARNS, n=200))
    for one in (copy.deepcopy(player), pickle.loads(pickle.dumps(player))):
        assert_same_history(one.history(), player.history())
        assert one.standing().guarantee == player.standing().guarantee


@pytest.mark.long
@pytest.mark.interpreted
@pytest.mark.parametrize("kind", ["learned", "told"])
def test_counts_of_merged_players_are_the_sums_of_theirs(kind):
    policy = BY_CLOCK[kind]
    one = by_clock(policy, seed=1, n=120)
    other = by_clock(policy, seed=2, n=100, arms=("blue", "red", "green"), start=EPOCH + 777)
    merged = History.merge(one.history(), other.history())
    assert merged.n == 220 and merged.arms == ARMS
    assert merged.chosen_by == f"merge of {policy}" and merged.order == "coin"
    both = policy.start(ARMS, seed=0, clock="wall").replay(merged)
    turned = policy.start(ARMS, seed=0, clock="wall").replay(other.history())
    ledgers = [aged(player, merged.now + 60) for player in (both, one, turned)]
    for name in ("plays", "conversions"):
        of_both, *parts = [getattr(ledger, name) for ledger in ledgers]
        np.testing.assert_array_equal(of_both, sum(parts))
    for name in ("duels", "events", "at_risk", "n_taught"):
        of_both, *parts = [getattr(ledger.assumed, name) for ledger in ledgers]
        np.testing.assert_array_equal(of_both, sum(parts), err_msg=name)


def aged(player, now):
    """The ledger at a time."""
    ledger = copy.deepcopy(player._ledger)
    clock_to(ledger, now)
    age_to(ledger, player.tick + 1)
    return ledger


def test_merged_evidence_is_proved_and_of_both():
    players = [by_clock(duelay.Decide(), seed=seed, n=200) for seed in (1, 2)]
    merged = History.merge(*(player.history() for player in players))
    standing = duelay.Decide().start(ARMS, clock="wall").replay(merged).standing()
    assert standing.guarantee.kind == "proved" and standing.tick == 400
    assert standing.conversions.sum() == sum(p.standing().conversions.sum() for p in players)


@pytest.mark.compiled
def test_a_history_is_booked_compiled_as_interpreted():
    """And not duel by duel: Python calls as much for 100,000 duels as for a tenth of them."""
    player = by_clock(BY_CLOCK["learned"], n=1100)
    assert_same_standing(again(player).standing(), player.standing())
    called = []
    for n in (1000, 10_000, 100_000):  # the first of them compiles
        history, new = log(n, chosen_by="decide"), duelay.DoubleThompson().start(ARMS)
        called.append(calls(lambda new=new, history=history: new.replay(history)))
        COMPILER.wait()
        assert new.tick == n
    assert called[2] < called[1] + 1000, called
