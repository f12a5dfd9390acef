"""Intervals that hold at all times together: by definition, and in simulations."""

import dataclasses
import math

import numpy as np
import pytest

import duelay
import naive
from duelay import delays
from duelay.inference.confidence_sequences import (
    _lower_censored,
    _Side,
    at_all_times,
    of_censored,
    of_shares,
    shares,
)
from duelay.ledger import assume, open_ledger
from duelay.ledger.evidence.eprocess import start_eprocess
from duelay.logs.history import History
from helpers import play_beside


@pytest.mark.parametrize("wins, losses", [(1, 0), (0, 3), (7, 2), (40, 60), (300, 250), (2.5, 1.5)])
def test_an_interval_is_where_the_mixture_is_not_much_likelier(wins, losses):
    matrix = np.zeros((3, 3))
    matrix[0, 1], matrix[1, 0] = wins, losses
    lower, upper = of_shares(matrix, 0.05)
    expected = naive.share_interval(wins, losses, 3, 0.05)
    assert (lower[0, 1], upper[0, 1]) == pytest.approx(expected, abs=2e-4)
    assert lower[1, 0] == pytest.approx(1 - upper[0, 1])
    assert lower[0, 2] == -math.inf and upper[0, 2] == math.inf
    assert lower[2, 2] == upper[2, 2] == 0.5


def test_while_arms_join_the_pairs_of_all_share_the_error():
    for first in (2, 3, 7):
        joined = np.append(np.zeros(first, dtype=int), np.arange(1, 400))
        above = np.triu_indices(len(joined), 1)
        total = shares(joined, has_room=True)[above].sum()
        assert 1 - 1 / (300 * first) < total <= 1
        assert shares(joined, has_room=False)[above].sum() <= 1 + 1 / (first + 1)
        early = shares(joined[: first + 3], has_room=True)
        np.testing.assert_allclose(shares(joined, has_room=True)[: first + 3, : first + 3], early)
    wins = np.array([[0.0, 30.0], [10.0, 0.0]])
    for error, share in ((0.05, None), (0.05, shares(np.zeros(2, dtype=int), has_room=False))):
        np.testing.assert_allclose(of_shares(wins, error, share), of_shares(wins, 0.05))
    late = of_shares(wins, 0.06, np.full((2, 2), 0.5))
    np.testing.assert_allclose(late, of_shares(wins, 0.03))


def test_who_joins_or_is_retired_makes_no_interval_narrower():
    player = duelay.DoubleThompson().start(["a", "b", "c"], seed=0, clock="wall", feedback="votes")
    for n in range(60):
        player.tell(player.ask(at=1e9 + n), winner="first", at=1e9 + n)
    player.ask(at=1e9 + 60)
    before = player.standing()
    for change in (lambda: player.retire_arm("c"), lambda: player.add_arm("d")):
        change()
        after = player.standing()
        np.testing.assert_allclose(after.lower[:2, :2], before.lower[:2, :2])
        np.testing.assert_allclose(after.upper[:2, :2], before.upper[:2, :2])


@pytest.mark.parametrize("told", ["uniform:1,12", "geometric:0.2", "never:0.3,geometric:0.2"])
def test_with_a_law_silence_counts_by_its_age(told):
    """Against the likelihood on a fine grid, written down duel by duel."""
    rng = np.random.default_rng(3)
    n, window, law = 80, 9, duelay.delays.parse(told)
    first = rng.integers(2, size=n)
    delay = np.where(
        rng.random(n) < 0.4, np.array([law.sample(seed=rng) for _ in range(n)]), np.inf
    )
    born = np.arange(1, n + 1)
    heard = (delay <= window) & (born + delay <= n)  # as of the last ask
    history = History(
        n_arms=2, first=first, second=1 - first, delay=np.where(heard, delay, np.nan),
        first_won=np.where(heard, 1.0, np.nan), window=window, feedback="conversions",
        order="champion", arms=("a", "b"),
    )  # fmt: skip
    lower, upper = of_censored(history, assume(told, window, 2), 0.1)
    grid = (np.arange(20_000) + 0.5) / 20_000
    total = np.zeros_like(grid)
    for s in range(n):
        mu = grid if first[s] == 0 else 1 - grid
        tau = law.cdf(min(n - born[s], window))
        total += np.log(mu) if heard[s] else np.log1p(-mu * tau)
    mixed = total.max() + math.log(np.exp(total - total.max()).mean())
    kept = grid[mixed - total < math.log(1 / 0.1)]
    assert lower[0, 1] == pytest.approx(kept[0], abs=2e-4)
    assert upper[0, 1] == pytest.approx(kept[-1], abs=2e-4)


def grid_interval(mine, theirs, pairs, error):
    """The ends of the interval of mu_ij on a grid; each side is a list of silences' tau and None.

    `mine` are the duels with i first: None for a conversion, else tau at the age of the silence.
    """
    grid = (np.arange(20_000) + 0.5) / 20_000
    total = np.zeros_like(grid)
    for mu, duels in ((grid, mine), (1 - grid, theirs)):
        for tau in duels:
            total += np.log(mu) if tau is None else np.log1p(-mu * tau)
    mixed = total.max() + math.log(np.exp(total - total.max()).mean())
    kept = grid[mixed - total < math.log(pairs / error)]
    return kept[0], kept[-1]


@pytest.mark.parametrize(
    "law",
    [
        delays.Uniform(1, 12),
        delays.Geometric(0.2),
        delays.Never(0.3, delays.Geometric(0.2)),
        delays.ByPair.of(4, lambda i, j: delays.Geometric(0.05 + 0.1 * (2 * i + j))),
    ],
    ids=str,
)
@pytest.mark.parametrize("decides", [False, True])
def test_all_pairs_share_the_error_and_one_without_duels_is_unknown(law, decides):
    """Of four arms the last duels itself alone."""
    rng = np.random.default_rng(5)
    n, window, k = 150, 9, 4
    first = rng.integers(k - 1, size=n)
    second = np.where(np.arange(n) % 10 == 0, first, (first + rng.integers(1, 3, size=n)) % 3)
    first, second = np.append(first, [3, 3]), np.append(second, [3, 3])
    n, born = n + 2, np.arange(1, n + 3)
    delay = np.array([law.at(i, j).sample(seed=rng) for i, j in zip(first, second, strict=True)])
    heard = (rng.random(n) < 0.5) & (delay <= window) & (born + delay <= n)
    history = History(
        n_arms=k, first=first, second=second, delay=np.where(heard, delay, np.nan),
        first_won=np.where(heard, 1.0, np.nan), window=window,
    )  # fmt: skip
    assumed = start_eprocess(0.1, window, k, delay=law) if decides else assume(law, window, k)
    last = assumed.window if decides else window
    lower, upper = at_all_times(open_ledger(assumed, k, "coin"), history, 0.1)
    for i in range(k):
        for j in range(k):
            if i == j:
                assert lower[i, j] == upper[i, j] == 0.5
                continue
            if 3 in (i, j):
                assert (lower[i, j], upper[i, j]) == (-math.inf, math.inf)
                continue
            sides = []
            for one, other in ((i, j), (j, i)):
                duels = np.flatnonzero((first == one) & (second == other))
                tau = law.at(one, other).cdf(np.minimum(n - born, last))
                sides.append([None if heard[s] and delay[s] <= last else tau[s] for s in duels])
            expected = grid_interval(*sides, 6, 0.1)
            assert (lower[i, j], upper[i, j]) == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("mine", [(0, 0), (1, 0), (6, 0), (0, 5), (900, 700), (3, 400)])
@pytest.mark.parametrize("theirs", [(0, 1), (4, 0), (0, 30), (1000, 300)])
@pytest.mark.parametrize("tau", [0.3, 1.0])
def test_an_interval_with_silence_is_right_for_few_duels_and_for_many(mine, theirs, tau):
    """Each side has conversions and silences."""
    sides = [
        _Side(wins, np.full(min(n, 1), tau), np.full(min(n, 1), n)) for wins, n in (mine, theirs)
    ]
    duels = [[None] * wins + [tau] * n for wins, n in (mine, theirs)]
    expected = grid_interval(*duels, 3, 0.1)
    found = _lower_censored(*sides, math.log(30)), 1 - _lower_censored(*sides[::-1], math.log(30))
    assert found == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("feedback", ["conversions", "votes"])
def test_without_a_law_the_answers_count_that_are_booked_by_the_last_ask(feedback):
    """Ties are half a win for either."""
    rng, n = np.random.default_rng(0), 300
    first = rng.integers(3, size=n)
    second = (first + rng.integers(1, 3, size=n)) % 3
    is_vote = feedback == "votes"
    delay = np.where(rng.random(n) < (0.9 if is_vote else 0.5), rng.geometric(0.2, size=n), np.nan)
    delay[delay > np.arange(n, 0, -1)] = np.nan
    won = rng.choice([1.0, 0.0, 0.5], size=n) if is_vote else np.ones(n)
    history = History(
        n_arms=3, first=first, second=second, delay=delay,
        first_won=np.where(np.isnan(delay), np.nan, won), feedback=feedback,
    )  # fmt: skip
    past = [naive.Past(*row) for row in zip(first, second, delay > 0, delay, strict=True)]
    wins = np.zeros((3, 3))
    for number, is_answered, stake in naive.booked(past, n, None)[0]:
        if is_answered and stake is not None:
            i, j, share = first[number - 1], second[number - 1], won[number - 1]
            wins[i, j] += share
            wins[j, i] += 1 - share
    assert 0.6 * (delay > 0).sum() < wins.sum() < (delay > 0).sum()
    player = duelay.RUCB(order="coin").start(3, feedback=feedback)
    found = at_all_times(player._ledger, history, 0.2)
    np.testing.assert_allclose(found, of_shares(wins, 0.2))


@pytest.mark.parametrize("told", ["uniform:1,12", "geometric:0.2"])
def test_a_policy_that_decides_has_the_intervals_of_the_law_that_it_is_told(told):
    player = duelay.Decide(delay=told, error=0.1).start(2, seed=0)
    law, rng, due = duelay.delays.parse(told), np.random.default_rng(4), {}
    for t in range(300):
        for duel in due.pop(t, []):
            player.tell(duel)
        due.setdefault(t + int(law.sample(seed=rng)), []).append(player.ask())
    last = int(player._ledger.assumed.window)  # what comes later is not heard
    history = player.history()
    heard = history.is_heard & (np.nan_to_num(history.delay) <= last)
    assert (history.delay[history.is_heard] > last).any() == (told == "geometric:0.2")
    cut = dataclasses.replace(
        history, delay=np.where(heard, history.delay, np.nan), window=last,
        first_won=np.where(heard, 1.0, np.nan),
    )  # fmt: skip
    lower, upper = of_censored(cut, assume(told, last, 2), 0.1)
    standing = player.standing()
    np.testing.assert_allclose(standing.lower, lower, atol=1e-9)
    np.testing.assert_allclose(standing.upper, upper, atol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize(
    "policy",
    [
        duelay.Decide(),
        duelay.Decide(delay="geometric:0.2"),
        duelay.RUCBDelay(delay="geometric:0.2"),
    ],
    ids=str,
)
def test_the_intervals_hold_at_every_look(policy):
    problem = duelay.Problem([[0.5, 0.6, 0.7], [0.4, 0.5, 0.55], [0.3, 0.45, 0.5]])
    mu, missed = problem.matrix, set()
    for seed in range(20):

        def look(t, history, pair, player, seed=seed):
            if t % 40 == 0:
                standing = player.standing(0.8)
                if ((standing.lower > mu) | (standing.upper < mu)).any():
                    missed.add(seed)

        play_beside(policy, duelay.delays.Geometric(0.2), 400, look, problem, seed)
    assert len(missed) <= 20 * 0.2 + 3 * math.sqrt(20 * 0.2 * 0.8)


def test_a_bonus_for_the_first_moves_the_intervals_and_no_declaration():
    """They are then for (mu + b) / (1 + 2 b)."""
    mu, bonus = 0.7, 0.2
    rng = np.random.default_rng(0)
    heard = np.zeros((2, 2))
    for _ in range(20_000):
        first = rng.integers(2)
        chance = (mu if first == 0 else 1 - mu) + bonus
        if rng.random() < chance:
            heard[first, 1 - first] += 1
    lower, upper = of_shares(heard, 0.05)
    assert lower[0, 1] < (mu + bonus) / (1 + 2 * bonus) < upper[0, 1] < mu
