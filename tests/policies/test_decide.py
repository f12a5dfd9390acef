"""Decide's choices: who leads, who is its rival, and that both are blind to open orders."""

import dataclasses
import math

import numpy as np
import pytest

import duelay
from duelay.ledger import age_to, hear, open_ledger, record
from duelay.ledger.delay_models.base import FOREVER
from duelay.ledger.evidence.eprocess import start_eprocess
from duelay.ledger.evidence.silence import worth
from duelay.policies.decide import DecideRule, find_leader, find_rival
from duelay.policies.turn import calm_until, declared, select


class Middle:
    """A generator whose normal numbers are all 0."""

    def random(self):
        return 0.5

    def standard_normal(self):
        return 0.0


def settled(n_arms, counts, still_open=()):
    """A ledger with conversions by ordered pair, all heard, and some open duels."""
    ledger = open_ledger(start_eprocess(0.05, None, n_arms), n_arms, "coin")
    heard = [pair for pair, n in counts.items() for _ in range(n)]
    duels = [*heard, *still_open]
    for t, pair in enumerate(duels, start=1):
        age_to(ledger, t)
        record(ledger, *pair, t)
    for born, pair in enumerate(heard, start=1):  # late enough that nothing is settled by silence
        hear(ledger, *pair, born, len(duels) + 1)
    age_to(ledger, len(duels) + 1)
    return ledger, len(duels) + 1


def declaring():
    """A ledger in which arm 1 has been declared."""
    eprocess = start_eprocess(0.05, None, 2, first_wait=1)
    ledger = open_ledger(eprocess, 2, "coin")
    for t in range(1, 201):
        age_to(ledger, t)
        record(ledger, 1, 0, t)
        hear(ledger, 1, 0, t, t + 1)
    age_to(ledger, 201)
    return ledger, 201


def test_the_leader_has_the_least_against_it():
    counts = {(0, 1): 30, (1, 0): 10, (1, 2): 25, (2, 1): 15, (2, 0): 14, (0, 2): 12}
    ledger, _ = settled(3, counts)
    against = np.zeros(3)
    for i in range(3):
        for j in range(3):
            n = counts.get((i, j), 0) + counts.get((j, i), 0)
            if i != j and (p := counts[i, j] / n) < 0.5:
                against[i] += n * (p * math.log(2 * p) + (1 - p) * math.log(2 * (1 - p)))
    np.testing.assert_allclose(ledger.assumed.doubts, against)
    assert find_leader(ledger.assumed, np.random.default_rng(0)) == against.argmin()


@pytest.mark.interpreted  # compiled, a generator is NumPy's
def test_the_rival_is_the_one_with_the_least_to_show_for_its_duels():
    counts = {(0, 1): 30, (1, 0): 20, (0, 2): 18, (2, 0): 10}
    ledger, _ = settled(3, counts)
    cost = {1: 2 * 50 * 0.1**2, 2: 2 * 28 * (18 / 28 - 0.5) ** 2}
    assert find_rival(ledger.assumed, 0, Middle()) == min(cost, key=cost.get) == 1
    ledger, _ = settled(3, counts, still_open=[(0, 1)] * 80)  # these will tell as well
    assert find_rival(ledger.assumed, 0, Middle()) == 2
    close = {(0, 1): 30, (1, 0): 30, (0, 2): 10, (2, 0): 40}  # 2 seems to beat the leader
    ledger, _ = settled(3, {**close, (0, 1): 34})
    assert find_rival(ledger.assumed, 0, Middle()) == 2
    ledger, _ = settled(4, counts)
    assert find_rival(ledger.assumed, 0, Middle()) == 3  # of whom nothing is known


class Scripted:
    """A generator with normal numbers from a list, which breaks no tie."""

    def __init__(self, normals):
        self.normals = iter(normals)

    def random(self):
        return 0.999

    def standard_normal(self):
        return next(self.normals)


@pytest.mark.interpreted
@pytest.mark.parametrize("seed", range(12))
def test_the_rival_has_the_least_evidence_to_expect_under_a_gap_drawn_from_its_posterior(seed):
    """With few duels, so that some rivals are unknown, and some are passed."""
    rng, k = np.random.default_rng(seed), 6
    eprocess = start_eprocess(0.05, None, k)
    eprocess.n_answered[0], eprocess.n_booked[0], eprocess.kappa[0] = 30, 90, 0.4
    chosen = set()
    for _ in range(30):
        leader = int(rng.integers(k))
        eprocess.n[:] = rng.integers(8, size=(k, k)) * (rng.random((k, k)) < 0.9)
        eprocess.lead[:] = np.round(eprocess.n * rng.uniform(-1, 1, size=(k, k)))
        eprocess.n_open[:] = rng.integers(12, size=(k, k))
        eprocess.best[:] = eprocess.level * rng.choice([0.5, 0.999, 1.0], size=(k, k))
        normals = rng.normal(1.0, 1.0, size=k)
        draws, cost = iter(normals), {}
        for j in range(k):
            if j == leader or eprocess.best[leader, j] >= eprocess.level:
                continue
            n, lead, n_open = (
                eprocess.n[leader, j],
                eprocess.lead[leader, j],
                eprocess.n_open[leader, j],
            )
            still_open = worth(eprocess) * n_open
            if n == 0:
                cost[j] = still_open - 1
                continue
            gap = max(lead / (2 * n) + next(draws) / (2 * math.sqrt(n)), 0)
            cost[j] = 2 * (n + still_open) * gap * gap
        if cost:
            expected = min(cost, key=cost.get)
            assert find_rival(eprocess, leader, Scripted(normals)) == expected
            chosen.add(expected)
    assert len(chosen) == k


@pytest.mark.interpreted
def test_whoever_has_passed_all_others_still_has_a_rival():
    eprocess = start_eprocess(0.05, None, 3)
    eprocess.best[:] = eprocess.level
    assert [find_rival(eprocess, leader, Middle()) for leader in range(3)] == [1, 0, 0]


@pytest.mark.interpreted
def test_of_several_that_are_alike_any_leads_and_any_is_the_rival():
    eprocess, rng = start_eprocess(0.05, None, 5), np.random.default_rng(0)
    eprocess.doubts[1] = 0.1
    leaders = np.bincount([find_leader(eprocess, rng) for _ in range(2000)], minlength=5)
    rivals = np.bincount([find_rival(eprocess, 2, rng) for _ in range(2000)], minlength=5)
    for counts, nobody in ((leaders, 1), (rivals, 2)):
        assert counts[nobody] == 0
        assert np.abs(np.delete(counts, nobody) - 500).max() < 4 * math.sqrt(2000 * 0.25 * 0.75)


@pytest.mark.interpreted
def test_nothing_is_calm_before_a_declaration_and_all_is_after_it():
    rule = DecideRule(0)
    ledger, t = settled(2, {(1, 0): 20, (0, 1): 19})
    assert declared(rule, ledger) < 0 and calm_until(rule, ledger, 1, t) == t
    ledger, t = declaring()
    assert calm_until(rule, ledger, 1, t) == FOREVER


def test_the_choice_does_not_look_at_the_order_of_an_open_duel():
    counts = {(0, 1): 9, (1, 0): 7, (1, 2): 8, (2, 0): 6}
    seen = set()
    for orders in range(32):
        duels = [((0, 1), (1, 0))[orders >> bit & 1] for bit in range(5)]
        ledger, t = settled(3, counts, still_open=duels)
        rng = np.random.default_rng(1)
        seen.add(tuple(int(x) for _ in range(9) for x in select(DecideRule(0), ledger, t, rng)))
    assert len(seen) == 1


def test_whoever_is_declared_duels_itself_from_then_on():
    ledger, t = declaring()
    rule = DecideRule(0)
    assert declared(rule, ledger) == 1
    assert tuple(select(rule, ledger, t, np.random.default_rng(0))) == (1, 1)


def test_no_winner_and_no_self_duel_before_the_declaration():
    player = duelay.Decide().start(3, seed=0)
    for _ in range(500):
        duel = player.ask()
        assert duel.first != duel.second
    assert player.standing().winner is None


@pytest.mark.parametrize("told, duels_itself", [({}, True), ({"self_duels": False}, False)])
def test_a_player_shows_the_winner_alone_unless_self_duels_are_forbidden(told, duels_itself):
    player = duelay.Decide(**told).start(2, seed=0)
    for _ in range(200):
        duel = player.ask()
        if duel.first == 1 and duel.second == 0:
            player.tell(duel)
    assert player.standing().winner == 1
    duels = [player.ask() for _ in range(9)]
    assert {duel.first == duel.second for duel in duels} == {duels_itself}
    assert all(1 in (duel.first, duel.second) for duel in duels)


def test_the_policy_is_a_recipe_that_nobody_changes():
    policy = duelay.Decide()
    assert hash(policy) == hash(duelay.Decide(error=0.05))
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.error = 0.1


def test_an_order_other_than_the_coin_is_refused():
    with pytest.raises(ValueError, match="order must"):
        duelay.Decide(order="champion")
    for error in (0, 1, -0.1, "x"):
        with pytest.raises(ValueError, match="error must be"):
            duelay.Decide(error=error)
    with pytest.raises(ValueError, match="corrects_position"):
        duelay.Decide().start(2, feedback="votes", corrects_position=True)


def test_an_end_requires_a_margin():
    with pytest.raises(ValueError, match="end=.*margin") as caught:
        duelay.Decide(end="good_enough")
    assert caught.value.argument == "end"
    assert duelay.Decide(end="equivalent").margin is None


@pytest.mark.parametrize("wait", [0, -3, 2.5, True, "soon"])
def test_a_first_wait_is_a_number_of_ticks_or_a_duration(wait):
    with pytest.raises(ValueError, match="wait"):
        duelay.Decide(wait=wait)


def test_a_first_wait_fits_the_clock_and_needs_no_law():
    assert duelay.policies.parse("decide:wait=200") == duelay.Decide(wait=200)
    assert duelay.policies.parse("decide:wait=2h") == duelay.Decide(wait="2h")
    with pytest.raises(ValueError, match="wait"):
        duelay.Decide(wait=200).start(2, clock="wall")
    with pytest.raises(ValueError, match="wait"):
        duelay.Decide(wait="2h").start(2)
    with pytest.raises(ValueError, match="wait"):
        duelay.Decide(wait=200, delay="geometric:0.1")
