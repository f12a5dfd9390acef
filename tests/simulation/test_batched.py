"""Evidence that is held back: batches and stale ledgers, against the plain loop and slow twins."""

import numpy as np
import pytest

import duelay
from duelay import delays
from duelay.ledger import age_to, hear, record
from duelay.policies.turn import select
from duelay.problems import arithmetic
from duelay.simulation import streams
from duelay.simulation.loops.batched import hold, play_batches_entry
from duelay.simulation.loops.recorder import new_recorder
from duelay.simulation.world import make_world
from helpers import SAMPLE, VOTED, Live

PROBLEM = arithmetic(4, 0.12)
LAW = delays.Uniform(1, 12)
# The loop is one for all: compiled it is tried with a sample.
HELD = [
    policy if policy in SAMPLE else pytest.param(policy, marks=pytest.mark.interpreted)
    for policy in VOTED
]


@pytest.mark.parametrize("policy", HELD, ids=str)
def test_nothing_held_back_is_the_plain_loop(policy):
    policy = policy.for_horizon(300)
    plain = duelay.simulate(PROBLEM, policy, delay=LAW, horizon=300, seed=3)
    rule, ledger, held = policy.rule(4), policy.ledger(4), hold(0, 1, policy.window, 4)
    recorder = new_recorder(PROBLEM.gaps, plain.t)
    world = make_world(PROBLEM, LAW, policy.window, 300, hold=1)
    play_batches_entry(rule, ledger, False, world, held, recorder, 300, *streams(3, 0))
    assert np.array_equal(held.plays, plain.plays[0])
    assert np.array_equal(recorder.regret, plain.regret[0])


@pytest.mark.long
@pytest.mark.parametrize("batch", [2, 7, 100, 1000])
@pytest.mark.parametrize("policy", HELD, ids=str)
def test_a_batch_is_that_of_a_live_program(policy, batch):
    """Which asks for so many duels before it tells what has come."""
    kwargs = {"delay": LAW, "horizon": 300, "runs": 2, "seed": 5, "checkpoints": [40, 300]}
    kwargs["setting"] = duelay.Setting(batch=batch, pairs=True)
    simulated = duelay.simulate(PROBLEM, policy, **kwargs)
    live = duelay.simulate(PROBLEM, Live(policy.for_horizon(300)), **kwargs)
    assert np.array_equal(simulated.plays, live.plays)
    assert np.array_equal(simulated.regret, live.regret)
    assert np.array_equal(simulated.pairs, live.pairs)


@pytest.mark.long
@pytest.mark.interpreted
@pytest.mark.parametrize("stale", [1, 5, 40, 500])
def test_stale_evidence_is_the_ledger_of_some_ticks_ago(stale):
    """The twin writes the ledger anew at every tick, from what was known `stale` ticks before."""
    policy, horizon = duelay.RUCBDelay(delay=LAW, window=None, alpha=0.6), 120
    simulated = duelay.simulate(
        PROBLEM, policy, delay=LAW, horizon=horizon, seed=2, checkpoints=[horizon],
        setting=duelay.Setting(stale=stale),
    )  # fmt: skip
    world_rng, policy_rng = streams(2, 0)
    rule, duels, due = policy.rule(4), [], {}
    tau = LAW.cdf(np.arange(13))
    for t in range(1, horizon + 1):
        ledger = policy.ledger(4)
        for tick in range(1, t - stale + 1):
            for s in due.get(tick, []):
                hear(ledger, *duels[s - 1], s, tick)
            age_to(ledger, tick)
            if tick < t - stale:
                record(ledger, *duels[tick - 1], tick)
        i, j = select(rule, ledger, t, policy_rng)
        duels.append((int(i), int(j)))
        won = world_rng.random() < PROBLEM.matrix[i, j]
        late = int(np.searchsorted(tau, world_rng.random(), side="right"))
        if won:
            due.setdefault(t + late, []).append(t)
    plays = np.zeros((4, 4), dtype=np.int64)
    np.add.at(plays, tuple(np.array(duels).T), 1)
    assert np.array_equal(simulated.plays[0], plays)


def test_a_stale_ledger_knows_all_duels_but_the_last():
    policy, stale = duelay.RUCB(), 6
    rule, ledger, held = policy.rule(4), policy.ledger(4), hold(stale, 1, None, 4)
    recorder = new_recorder(PROBLEM.gaps, np.array([30]))
    world = make_world(PROBLEM, LAW, None, 30, hold=stale + 1)
    rngs, known = streams(0, 0), {0: np.zeros((4, 4))}
    for t in range(1, 31):
        play_batches_entry(rule, ledger, False, world, held, recorder, t, *rngs)
        known[t] = held.plays.copy()
        assert held.plays.sum() == t
        assert np.array_equal(ledger.plays, known[max(0, t - stale)])


def test_every_duel_counts_though_the_policy_has_not_heard_of_it():
    result = duelay.simulate(
        PROBLEM, duelay.RUCB(), delay=LAW, horizon=50, checkpoints=[20, 50],
        setting=duelay.Setting(stale=1000, batch=3, pairs=True),
    )  # fmt: skip
    assert result.plays.sum() == 50 and result.pairs.sum(axis=(1, 2)).tolist() == [20, 50]
    assert result.setting == duelay.Setting(stale=1000, batch=3)


@pytest.mark.parametrize(
    "told, message",
    [
        ({"stale": -1}, "stale must be a whole number of at least 0"),
        ({"batch": 0}, "batch must be a whole number of at least 1"),
        ({"target": "best"}, "target must be one of"),
        ({"first_run": -1}, "first_run must be a whole number of at least 0"),
        ({"pairs": 1}, "pairs must be True or False, got 1"),
        ({"cautious": None}, "cautious must be True or False, got None"),
        ({"progress": 3}, "progress must be True, False, None or a text, got 3"),
        ({"corrects_position": 1}, "corrects_position must be True or False, got 1"),
    ],
)
def test_bad_settings_are_refused(told, message):
    with pytest.raises(ValueError, match=message):
        duelay.Setting(**told)


def test_a_player_cannot_be_kept_from_its_own_duels():
    with pytest.raises(ValueError, match="stale"):
        duelay.simulate(
            PROBLEM, Live(duelay.RUCB()), delay=LAW, horizon=10, setting=duelay.Setting(stale=1)
        )
