"""Bets against their definition, the fairness that they rest on, and false declarations."""

import itertools
import math

import numpy as np
import pytest

import duelay
import naive
from duelay import delays
from duelay.ledger import age_to, clock_to, hear, hear_vote, open_ledger, record
from duelay.ledger.delay_models.base import expected, final_age, pair_counts, vote
from duelay.ledger.evidence.eprocess import GAPS, evidence_weights, start_eprocess
from duelay.ledger.evidence.silence import answered_share, fix_kappa, next_wait, worth
from duelay.problems import Problem
from helpers import play_beside

TIED = Problem([[0.5, 0.5, 0.8, 0.9], [0.5, 0.5, 0.7, 0.8], [0.2, 0.3, 0.5, 0.6],
                [0.1, 0.2, 0.4, 0.5]])  # fmt: skip


@pytest.mark.parametrize("window, wait", [(None, None), (12, None), (None, 9), (20, 30)])
@pytest.mark.parametrize("law", ["geometric:0.3", "never:0.4,(uniform:1,15)", "constant:1"])
def test_the_evidence_is_the_product_of_the_bets_that_are_booked(law, window, wait):
    policy = duelay.Decide(window=window, wait=wait)
    looks = []

    def check(t, history, pair, player):
        if t % 37 == 0:
            eprocess = player._ledger.assumed
            expected, wins, n_open = naive.eprocess(
                history, t, player.n_arms, window, GAPS, evidence_weights(), wait
            )
            off = ~np.eye(player.n_arms, dtype=bool)
            np.testing.assert_allclose(np.exp(eprocess.log_evidence[off]), expected[off], rtol=1e-9)
            np.testing.assert_array_equal(eprocess.wins, wins)
            if pair[0] != pair[1]:  # this tick's duel is open, too
                n_open[pair] += 1
                n_open[pair[::-1]] += 1
            np.testing.assert_array_equal(eprocess.n_open, n_open)
            looks.append(expected.max())

    play_beside(policy, delays.parse(law), 260, check)
    assert max(looks) > 2


@pytest.mark.long
@pytest.mark.interpreted
@pytest.mark.parametrize(
    "law", ["geometric:0.05", "never:0.4,(uniform:1,45)", "constant:1", "zipf:1.2,300"]
)
def test_where_the_law_is_told_the_evidence_is_the_likelihood_of_all_that_is_heard(law):
    policy, looks = duelay.Decide(delay=law), []

    def check(t, history, pair, player):
        eprocess = player._ledger.assumed
        if eprocess.looked[0] == t - 1 and t > 80:
            expected = naive.told_bets(
                history[: t - 1],
                t,
                4,
                delays.parse(law),
                eprocess.window,
                GAPS,
                evidence_weights(),
            )
            off = ~np.eye(4, dtype=bool)
            np.testing.assert_allclose(np.exp(eprocess.log_evidence[off]), expected[off], rtol=1e-9)
            looks.append(expected.max())

    play_beside(policy, delays.parse(law), 130, check)
    assert looks and max(looks) > 1.5


def test_a_told_law_by_pair_bets_with_the_law_of_the_pair():
    law = delays.ByPair.of(4, lambda i, j: delays.Geometric(0.05 + 0.1 * (i + j)))
    looks = []

    def check(t, history, pair, player):
        eprocess = player._ledger.assumed
        if eprocess.looked[0] == t - 1 and t > 80:
            expected = naive.told_bets(
                history[: t - 1], t, 4, law, eprocess.window, GAPS, evidence_weights()
            )
            off = ~np.eye(4, dtype=bool)
            np.testing.assert_allclose(np.exp(eprocess.log_evidence[off]), expected[off], rtol=1e-9)
            looks.append(t)

    play_beside(duelay.Decide(delay=law), law, 90, check)
    assert len(looks) > 2


@pytest.mark.parametrize("mu", [0.5, 0.3, 0.01])
@pytest.mark.parametrize("is_first", [True, False])
def test_under_a_told_law_the_bet_on_the_worse_arm_never_grows(mu, is_first):
    tau = np.array([0.0, 0.1, 0.4, 0.4, 0.9])
    told = start_eprocess(0.05, None, 2, delay=delays.Empirical(np.diff(tau))).told
    won = mu if is_first else 1.0 - mu  # of the arm shown first
    sign = 1.0 if is_first else -1.0
    for g in GAPS:
        worth = 1.0 - sign * 2.0 * g * told.kappa[0]
        for age in range(4):
            silent = (1.0 - won * tau[age + 1]) / (1.0 - won * tau[age])
            after = silent * worth[age + 1] + (1.0 - silent) * (1.0 + sign * 2.0 * g)
            if mu == 0.5:
                assert after == pytest.approx(worth[age], rel=1e-12)
            else:
                assert after <= worth[age] * (1 + 1e-12)


def test_under_a_told_law_nobody_looks_between_two_refreshments():
    eprocess = start_eprocess(0.05, None, 2, delay=delays.Geometric(0.01))
    ledger = open_ledger(eprocess, 2, "coin")
    for t in range(1, 100):
        age_to(ledger, t)
        looked = int(eprocess.looked[0])
        assert (looked + 1) % eprocess.told.period == 0 or looked == 0
        record(ledger, 0, 1, t)
        if t % 2:
            hear(ledger, 0, 1, t, t + 1)
    assert eprocess.told.period > 10 and looked > 80


@pytest.mark.parametrize("law", ["never:1,constant:1", "constant:1"])
def test_a_told_law_that_never_or_at_once_answers_is_played(law):
    player = duelay.Decide(delay=law).start(2, seed=0)
    for _ in range(50):
        player.ask()
    assert player.standing().winner is None or law == "constant:1"
    assert player._ledger.assumed.n_open.max() <= 2


@pytest.mark.parametrize("mu", [0.5, 0.35])
@pytest.mark.parametrize("kappa", [0.0, 0.4, 1.0])
def test_a_bet_is_fair_at_one_half_whatever_the_law(kappa, mu):
    """All that can happen to two duels, by coin, with delays 1, 2, 3 or never."""
    law = {1: 0.2, 2: 0.3, 3: 0.1, 99: 0.4}
    expected = np.zeros(6)
    one = list(itertools.product((True, False), (True, False), law))
    for paths in itertools.product(one, repeat=2):
        chance = 1.0
        eprocess = start_eprocess(0.05, 2, 2, first_wait=2)
        eprocess.refit[0] = 99  # kappa stays
        eprocess.kappa[0] = kappa
        ledger = open_ledger(eprocess, 2, "coin")
        for t in range(1, 7):
            for born, (zero_first, won, delay) in enumerate(paths, start=1):
                if won and born + delay == t and delay <= 2:
                    pair = (0, 1) if zero_first else (1, 0)
                    hear(ledger, *pair, born, t)
            age_to(ledger, t)
            if t <= 2:
                zero_first, won, delay = paths[t - 1]
                first_wins = mu if zero_first else 1 - mu
                chance *= 0.5 * (first_wins if won else 1 - first_wins) * law[delay]
                record(ledger, *((0, 1) if zero_first else (1, 0)), t)
            if t >= 2:
                expected[t - 1] += chance * math.exp(eprocess.log_evidence[0, 1])
    assert (expected[1:] <= 1 + 1e-12).all()
    if mu == 0.5:
        np.testing.assert_allclose(expected[1:], 1.0, rtol=1e-12)
    else:
        assert expected[-1] < 0.99


def test_a_conversion_after_the_silence_was_settled_changes_no_evidence():
    eprocess = start_eprocess(0.05, 3, 2)
    ledger = open_ledger(eprocess, 2, "coin")
    record(ledger, 0, 1, 1)
    for t in range(2, 7):
        age_to(ledger, t)
    before = eprocess.log_evidence.copy()
    hear(ledger, 0, 1, 1, 6)
    age_to(ledger, 7)
    assert eprocess.wins.sum() == 0 and ledger.conversions[0, 1] == 1
    np.testing.assert_array_equal(eprocess.log_evidence, before)


@pytest.mark.parametrize("by_arm", [False, True])
def test_answers_told_line_by_line_are_booked_in_the_order_of_asking(by_arm):
    """A file of answers sorted by arm, with a look after each line."""
    rng = np.random.default_rng(0)
    duels = [(0, 1) if rng.random() < 0.5 else (1, 0) for _ in range(400)]
    heard = [number for number in range(1, 401) if rng.random() < 0.5]
    found = []
    for order in (heard, sorted(heard, key=lambda number: duels[number - 1])):
        eprocess = start_eprocess(0.05, None, 2, by_clock=True, first_wait=100.0)
        ledger = open_ledger(eprocess, 2, "coin")
        clock_to(ledger, 0.0)
        for number, pair in enumerate(duels, start=1):
            record(ledger, *pair, number)
        for n, number in enumerate(order, start=1):
            clock_to(ledger, 50.0 + 50.0 * n / len(order))
            hear(ledger, *duels[number - 1], number, 401)
            age_to(ledger, 401)
        assert eprocess.wins.sum() == (len(heard) if by_arm else eprocess.wins.sum())
        found.append(eprocess.best.copy())
    np.testing.assert_array_equal(*found)


def test_duels_asked_before_enough_is_heard_are_no_bets_unless_a_wait_is_given():
    for wait, n_wins in ((None, 0), (5, 5)):
        eprocess = start_eprocess(0.05, None, 2, first_wait=wait)
        ledger = open_ledger(eprocess, 2, "coin")
        for t in range(1, 10):
            record(ledger, 0, 1, t)
        for born in range(1, 10):
            hear(ledger, 0, 1, born, 10)
        for t in range(10, 40):
            age_to(ledger, t)
        assert eprocess.n[0, 1] >= 5  # for the choice of pairs they count
        assert eprocess.wins[0, 1] == n_wins and eprocess.n_heard[0] == 9


def test_an_answer_is_late_for_the_evidence_by_the_time_of_its_event():
    for at, is_counted in ((107.0, True), (108.5, False)):
        eprocess = start_eprocess(0.05, None, 2, by_clock=True, first_wait=8.0)
        ledger = open_ledger(eprocess, 2, "coin")
        clock_to(ledger, 100.0)
        record(ledger, 0, 1, 1)
        clock_to(ledger, 200.0)
        clock_to(ledger, at)  # told at 200, of an earlier event
        hear(ledger, 0, 1, 1, 2)
        assert eprocess.now[0] == 200.0 and eprocess.delays[0] == at - 100.0
        age_to(ledger, 2)
        assert eprocess.wins[0, 1] == is_counted


def test_late_conversions_count_in_the_waiting_time():
    eprocess = start_eprocess(0.05, None, 2)
    ledger = open_ledger(eprocess, 2, "coin")
    for t in range(1, 200):
        age_to(ledger, t)
        record(ledger, 0, 1, t)
        if t < 100:
            hear(ledger, 0, 1, t, t + 1)
    waits = next_wait(eprocess)
    assert waits < 10
    hear(ledger, 0, 1, 100, 200)  # at age 100
    assert eprocess.n_heard[0] == 100 and eprocess.delays[0] == 99 + 100
    assert eprocess.wins[0, 1] < 99 and next_wait(eprocess) > 1.5 * waits


def test_votes_bet_on_either_outcome_and_ties_on_none():
    ledger = duelay.Decide(wait=3).start(2, feedback="votes")._ledger
    eprocess = ledger.assumed
    for t, first_won in enumerate((1.0, 1.0, 0.0, 0.5), start=1):
        age_to(ledger, t)
        record(ledger, 0, 1, t)
        hear_vote(ledger, 0, 1, first_won, t, t + 1)
    for t in range(5, 8):
        age_to(ledger, t)
    product = (1 + 2 * GAPS) ** 2 * (1 - 2 * GAPS)
    assert math.exp(eprocess.log_evidence[0, 1]) == pytest.approx(
        (evidence_weights() * product).sum()
    )
    assert eprocess.wins.tolist() == [[0.0, 2.5], [1.5, 0.0]]
    for t in range(8, 200):  # silence is no answer, and tells nothing
        record(ledger, 0, 1, t)
        age_to(ledger, t + 1)
    assert eprocess.lead[0, 1] == 1.0


def test_the_weight_of_a_gap_is_the_stretch_around_it_on_a_bell():
    stretch = [0.01, *((GAPS[g + 1] - GAPS[g - 1]) / 2 for g in range(1, 10)), 0.1]
    weight = np.array(
        [math.exp(-0.5 * (gap / 0.1) ** 2) * s for gap, s in zip(GAPS, stretch, strict=True)]
    )
    np.testing.assert_allclose(evidence_weights(), weight / weight.sum(), rtol=1e-12)


@pytest.mark.interpreted
@pytest.mark.parametrize("window, longest", [(None, 65536), (12, 12), (70_000, 65536)])
def test_no_silence_is_waited_for_longer_than_the_window(window, longest):
    eprocess = start_eprocess(0.1, window, 2)
    assert eprocess.window == final_age(eprocess) == longest


@pytest.mark.interpreted
def test_silence_is_settled_at_three_mean_delays_and_later_while_little_is_heard():
    eprocess = start_eprocess(0.05, 500, 2)
    for n, total, age in (
        (0, 0, 500),
        (9, 90, 500),
        (10, 105, 95),
        (40, 403, 46),
        (20, 9999, 500),
    ):
        eprocess.n_heard[0], eprocess.delays[0] = n, total
        assert next_wait(eprocess) == age
    told = start_eprocess(0.05, 500, 2, delay=delays.Constant(7))
    told.n_heard[0], told.delays[0] = 40, 80
    assert next_wait(told) == 7


@pytest.mark.interpreted
def test_the_share_that_answers_is_guessed_as_three_quarters_of_ten_duels_more():
    assert answered_share(0, 0) == 0.75
    assert answered_share(3, 10) == pytest.approx(13.5 / 20)
    assert answered_share(200, 390) == 1.0
    assert start_eprocess(0.05, None, 2).kappa[0] == pytest.approx(0.75 / 1.25)


@pytest.mark.interpreted
def test_an_open_duel_is_worth_what_it_will_tell():
    eprocess = start_eprocess(0.05, None, 2)
    assert worth(eprocess) == pytest.approx(0.375 + 0.625 * 0.6**2)  # before anything is known
    eprocess.n_answered[0], eprocess.n_booked[0], eprocess.kappa[0] = 30, 90, 0.4
    assert worth(eprocess) == pytest.approx(0.3375 + 0.6625 * 0.4**2)
    assert worth(eprocess._replace(is_vote=True)) == 1.0
    for never, told in ((0.2, 0.8 / 1.2), (0.95, 0.1)):
        law = delays.Never(never, delays.Constant(3))
        assert worth(start_eprocess(0.05, None, 2, delay=law)) == pytest.approx(told)


@pytest.mark.interpreted
def test_kappa_is_fixed_anew_after_every_20th_part_more():
    eprocess = start_eprocess(0.05, None, 2)
    eprocess.n_answered[0], eprocess.n_booked[0] = 30, 110
    fix_kappa(eprocess)
    share = 67.5 / 120
    assert eprocess.kappa[0] == pytest.approx(share / (2 - share)) and eprocess.refit[0] == 116


@pytest.mark.interpreted
def test_a_silence_leads_by_kappa_and_counts_its_square():
    eprocess = start_eprocess(0.05, 5, 3)
    eprocess.refit[0] = 99
    eprocess.kappa[0] = 0.4
    ledger = open_ledger(eprocess, 3, "coin")
    for t, pair in enumerate([(0, 1), (0, 1), (1, 0), (2, 2)], start=1):
        age_to(ledger, t)
        record(ledger, *pair, t)
    assert eprocess.n_open.tolist() == [[0, 3, 0], [3, 0, 0], [0, 0, 0]]
    hear(ledger, 0, 1, 1, 5)
    for t in range(5, 11):
        age_to(ledger, t)
    assert not eprocess.n_open.any() and (eprocess.n_booked[0], eprocess.n_answered[0]) == (3, 1)
    assert (eprocess.n_heard[0], eprocess.delays[0], eprocess.oldest[0]) == (1, 4, 10)
    lead, n = 1 - 0.4 + 0.4, 1 + 2 * 0.4**2
    assert eprocess.lead[0, 1] == -eprocess.lead[1, 0] == pytest.approx(lead)
    assert eprocess.n[0, 1] == eprocess.n[1, 0] == pytest.approx(n)
    plays = ledger.plays
    assert pair_counts(eprocess, plays, plays, 0, 1) == pytest.approx((n, n, (n + lead) / 2))
    assert pair_counts(eprocess, plays, plays, 1, 0) == pytest.approx((n, n, (n - lead) / 2))
    assert expected(eprocess, plays, 0, 1) == pytest.approx(n / 2)


@pytest.mark.interpreted
def test_a_vote_after_its_age_counts_for_the_choice_of_pairs_alone():
    eprocess = start_eprocess(0.05, None, 2, first_wait=3)._replace(is_vote=True)
    ledger = open_ledger(eprocess, 2, "coin")
    record(ledger, 0, 1, 1)
    for t in range(2, 7):
        age_to(ledger, t)
    assert not eprocess.n_open.any() and not eprocess.n.any()
    vote(eprocess, 0, 1, 0.0, 1, 6)
    age_to(ledger, 7)
    assert eprocess.lead[1, 0] == eprocess.n[0, 1] == 1 and not eprocess.wins.any()
    assert eprocess.n_heard[0] == 1 and not eprocess.n_open.any()


@pytest.mark.interpreted
def test_votes_close_their_duels_and_a_tie_counts_without_a_lead():
    eprocess = start_eprocess(0.05, None, 3, first_wait=9)._replace(is_vote=True)
    ledger = open_ledger(eprocess, 3, "coin")
    for t, pair in enumerate([(0, 1), (1, 0), (0, 2), (1, 1)], start=1):
        record(ledger, *pair, t)
    assert eprocess.n_open.sum() == 6
    for born, pair, first_won in ((1, (0, 1), 1.0), (2, (1, 0), 0.0), (3, (0, 2), 0.5)):
        vote(eprocess, *pair, first_won, born, 6)
    vote(eprocess, 1, 1, 1.0, 4, 6)
    assert not eprocess.n_open.any() and (eprocess.n_heard[0], eprocess.delays[0]) == (3, 5 + 4 + 3)
    assert eprocess.lead.tolist() == [[0, 2, 0], [-2, 0, 0], [0, 0, 0]]
    assert eprocess.n.tolist() == [[0, 2, 1], [2, 0, 0], [1, 0, 0]]
    assert np.argwhere(eprocess.is_touched).tolist() == [[0, 1], [0, 2]]
    assert not eprocess.wealth.any()  # none is booked yet
    for t in range(6, 15):
        age_to(ledger, t)
    assert eprocess.wins.tolist() == [[0, 2, 0.5], [0, 0, 0], [0.5, 0, 0]]
    np.testing.assert_allclose(eprocess.wealth[0, 1], 2 * np.log1p(2 * GAPS))
    np.testing.assert_allclose(eprocess.wealth[1, 0], 2 * np.log1p(-2 * GAPS))
    assert not eprocess.wealth[:, 2].any()


def test_the_path_keeps_the_past_in_little_room():
    player = duelay.Decide().start(2, seed=0)
    for _ in range(3000):
        player.ask()
    evidence = player.standing().evidence
    assert evidence.tick[0] == 0 and evidence.tick[-1] == 2999  # as of the last ask
    assert 100 < len(evidence.tick) <= 257
    assert len(set(np.diff(evidence.tick[:-1]))) == 1


@pytest.mark.compiled
@pytest.mark.parametrize(
    "law, batch, winner_exists, told",
    [
        ("geometric:0.01", 1, True, None),
        ("never:0.5,geometric:0.1", 100, False, None),
        ("geometric:0.01", 1, False, "geometric:0.01"),
    ],
)
def test_of_two_tied_arms_none_is_declared_more_often_than_promised(
    law, batch, winner_exists, told
):
    """Looked at after every tick; `python -m benchmarks decide` has all laws, with 2000 runs."""
    policy = duelay.Decide(delay=told, error=0.2, winner_exists=winner_exists)
    result = duelay.simulate(
        TIED, policy, delay=law, horizon=20_000, runs=150, seed=5, stop=0.2,
        setting=duelay.Setting(batch=batch),
    )  # fmt: skip
    wrong = result.is_declared if not winner_exists else result.is_declared & (result.leader > 1)
    assert wrong.mean() <= 0.2 + 3 * math.sqrt(0.2 * 0.8 / 150)


@pytest.mark.compiled
@pytest.mark.parametrize("feedback", ["conversions", "votes"])
def test_a_bonus_for_the_first_place_leaves_declarations_valid(feedback):
    problem = Problem([[0.5, 0.5], [0.5, 0.5]], first_bonus=0.2)
    result = duelay.simulate(
        problem, duelay.Decide(error=0.2), delay="geometric:0.1", horizon=4000, runs=200, seed=1,
        stop=0.2, setting=duelay.Setting(feedback=feedback),
    )  # fmt: skip
    assert result.is_declared.mean() <= 0.2 + 3 * math.sqrt(0.2 * 0.8 / 200)
    better = Problem([[0.5, 0.6], [0.4, 0.5]], first_bonus=0.2)
    result = duelay.simulate(
        better, duelay.Decide(), delay="geometric:0.1", horizon=10_000, runs=20, seed=1, stop=0.05,
        setting=duelay.Setting(feedback=feedback),
    )  # fmt: skip
    assert result.is_declared.all() and not result.is_wrong.any()
