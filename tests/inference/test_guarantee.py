"""What a standing promises, and the words for it."""

import math

import numpy as np
import pytest

import duelay
import pages
from duelay import delays
from duelay.inference import guarantee
from duelay.inference.evidence import evidence_of, replay_bets
from duelay.inference.forecast import MAX_DUELS, DuelsLeft
from duelay.inference.guarantee import Guarantee
from duelay.inference.posterior import draw_gaps, draw_posterior

PROBLEM = duelay.Problem([[0.5, 0.85, 0.8], [0.15, 0.5, 0.7], [0.2, 0.3, 0.5]], ["a", "b", "c"])


def played(policy, ticks=400, seed=0, **started):
    """A player after some duels; with votes both outcomes are told."""
    rng = np.random.default_rng(seed)
    player = policy.start(PROBLEM.arms, seed=seed, **started)
    due = {}
    for t in range(ticks):
        for duel, winner in due.pop(t, []):
            if player.feedback == "votes":
                player.tell(duel, winner=winner)
            elif winner == "first":
                player.tell(duel)
        duel = player.ask()
        won = rng.random() < PROBLEM.matrix[duel.first, duel.second]
        due.setdefault(t + int(rng.geometric(0.2)), []).append((duel, "first" if won else "second"))
    return player


@pytest.mark.parametrize(
    "policy, kind",
    [
        (duelay.Decide(), "proved"),
        (duelay.RUCBDelay(delay="geometric:0.2"), "proved"),
        (duelay.RRDBDelay(delay="uniform:1,9", order="coin"), "proved"),
        (duelay.DoubleThompson(), "proved"),
        (duelay.RMED(order="coin"), "proved"),
        (duelay.RMED(delay="learn", order="alternate", window=50), "measured"),
        (duelay.RUCB(), "none"),
        (duelay.DoubleThompson(delay="learn-from-self-duels", order="champion"), "none"),
        (duelay.MRRDBDelay(mean_delay=5, feedback="counts", schedule=(3, 9)), "none"),
    ],
    ids=str,
)
def test_a_standing_says_what_it_promises(policy, kind):
    standing = policy.start(3, seed=0).standing()
    assert standing.guarantee.kind == kind
    assert standing.guarantee.holds == (kind != "none") and standing.guarantee.words
    if kind != "measured":
        votes = None if standing.feedback == "counts" else policy.start(3, feedback="votes")
        assert votes is None or votes.standing().guarantee.kind == "proved"


def test_a_winner_is_declared_in_a_sentence_that_says_how_sure_it_is():
    standing = played(duelay.Decide()).standing()
    assert standing.winner == standing.leader == 0 and standing.is_sure and standing.error == 0.05
    assert standing.headline == (
        f"a wins: declared after {standing.evidence.declared} duels (wrong in at most 5 % of "
        "experiments, however often you look)"
    )
    assert standing.duels_left == (0, 0, 0) and standing.chances[0] > 0.99
    assert standing.loss < 0.001


def test_before_that_it_says_how_many_duels_it_may_take():
    standing = played(duelay.Decide(), ticks=60).standing()
    assert standing.winner is None and not standing.is_sure
    left = standing.duels_left
    assert 0 <= left.low <= left.middle <= left.high and left.middle > 0
    assert f"not yet sure at 95 %: {left})" in standing.headline
    assert standing.chances.sum() <= 1 and standing.loss > 0


def test_few_answers_of_many_arms_say_nothing_of_a_winner():
    """The prior alone would: hardly any arm beats hundreds of others, each by chance."""
    player = duelay.Decide().start(1000, seed=0)
    for _ in range(50):
        player.tell(player.ask())
    player.ask()
    assert "too early to say how long it will take" in player.standing().headline


def test_news_that_is_half_told_declares_nobody():
    """100 conversions of either arm, one arm's told first: at the next ask there is no evidence."""
    for policy, feedback in (
        (duelay.Decide(), "conversions"),
        (duelay.DoubleThompson(), "conversions"),
        (duelay.DoubleThompson(), "votes"),
    ):
        player = policy.start(2, seed=0, feedback=feedback)
        duels = [player.ask() for _ in range(300)]
        before = player.standing()
        for arm in (0, 1):
            told = [duel for duel in duels if (duel.first, duel.second) == (arm, 1 - arm)][:100]
            for duel in told:
                player.tell(duel, winner="first" if feedback == "votes" else None)
            half = player.standing()
            assert half.winner is None and (half.upper >= 0.5).all()
            np.testing.assert_array_equal(half.lower, before.lower)
        player.ask()
        assert player.standing().winner is None


def test_the_leader_is_the_one_that_the_table_shows_ahead():
    for seed in range(10):
        player = duelay.Decide().start(2, seed=seed)
        rng = np.random.default_rng(seed)
        for _ in range(150):
            duel = player.ask()
            if rng.random() < 0.5:
                player.tell(duel)
        player.ask()
        standing = player.standing()
        assert standing.mean[standing.leader, 1 - standing.leader] >= 0.5


def test_once_a_winner_is_declared_it_is_the_only_candidate():
    standing = played(duelay.Decide()).standing()
    assert standing.candidates.tolist() == [True, False, False]
    assert "declared from conversions and silence" in str(standing)
    early = played(duelay.Decide(), ticks=20).standing()
    assert early.candidates.all()


def test_a_winner_that_is_taken_for_granted_is_said():
    standing = played(duelay.Decide(winner_exists=True)).standing()
    assert standing.headline.endswith("however often you look, if one arm beats all others)")
    assert standing.guarantee.words.endswith(", if one arm beats all others")


def test_that_no_arm_beats_all_others_is_found_too():
    cycle = duelay.Problem([[0.5, 0.9, 0.1], [0.1, 0.5, 0.9], [0.9, 0.1, 0.5]])
    player, rng = duelay.Decide().start(3, seed=0), np.random.default_rng(0)
    for _ in range(1500):
        duel = player.ask()
        if rng.random() < cycle.matrix[duel.first, duel.second]:
            player.tell(duel)
    standing = player.standing()
    assert standing.winner is None and not standing.candidates.any()
    assert standing.headline.startswith("no arm beats all others, after 1,500 duels")


def test_where_nothing_is_guaranteed_nobody_is_declared():
    standing = played(duelay.RUCB(), ticks=1500).standing()
    assert standing.winner is None and "(not guaranteed)" in standing.headline
    assert "not guaranteed: with the champion first and no law told" in str(standing)
    with pytest.raises(ValueError, match="kind must"):
        standing.plot(kind="evidence")


def test_with_a_told_law_the_intervals_declare():
    standing = played(duelay.RUCBDelay(delay="geometric:0.2"), ticks=1500).standing()
    assert standing.winner == 0 and standing.evidence is None
    assert "a wins by its intervals, after 1,500 duels" in standing.headline
    assert (standing.lower[0, 1:] > 0.5).all() and standing.candidates.tolist() == [1, 0, 0]
    assert standing.chances[0] > 0.95 and standing.loss < 0.01 and standing.duels_left is None


def test_a_policy_that_decides_uses_a_law_that_is_told_and_says_so():
    standing = played(duelay.Decide(delay="geometric:0.2"), ticks=700).standing()
    assert standing.winner == 0 and standing.evidence is not None
    assert standing.guarantee == Guarantee("proved", "the delay law being as it was told")
    assert "intervals are from conversions alone" not in str(standing)
    assert "however often you look, if the law is as told)" in standing.headline
    untold = played(duelay.RUCBDelay(delay="geometric:0.2"), ticks=700).standing()
    assert untold.guarantee.words == standing.guarantee.words
    with pytest.raises(ValueError, match="delay must"):
        duelay.Decide(delay="learn")
    with pytest.raises(ValueError, match="delay must"):
        duelay.Decide(delay=delays.ByPair.of(2, lambda i, j: delays.Geometric(0.1))).start(3)


def test_with_votes_a_law_that_is_told_is_of_no_use():
    told = played(duelay.Decide(delay="geometric:0.2"), ticks=300, feedback="votes")
    untold = played(duelay.Decide(), ticks=300, feedback="votes")
    assert told.standing().evidence.winner == untold.standing().evidence.winner
    np.testing.assert_allclose(
        told.standing().evidence.log_evidence, untold.standing().evidence.log_evidence
    )


def test_what_is_measured_is_what_the_page_says():
    rows = pages.kept("decide-covered")["parts"][0]["rows"]
    false = [row[2] for row in rows if "in turns" in row[0]]  # of 1000 runs each
    assert set(false) == {"0.0 %"}
    assert guarantee.MEASURED.startswith(f"no false winner in {1000 * len(false):,} ")
    assert all(float(row[3].removesuffix(" %")) >= 95 for row in rows)


def test_nobody_is_declared_more_often_than_promised_on_the_page():
    """2000 runs each: 5 % and three standard errors."""
    for row in pages.kept("decide-tied")["parts"][0]["rows"]:
        for share in row[2:]:
            assert share == "-" or float(share.removesuffix(" %")) < 5 + 3 * math.sqrt(
                5 * 95 / 2000
            )


def test_what_is_measured_says_so():
    standing = played(duelay.DoubleThompson(order="alternate"), ticks=100).standing()
    assert "measured, not proved" in standing.headline
    assert "measured, not proved" in str(standing).splitlines()[-1]


def test_a_replay_of_the_history_finds_what_the_player_has_kept():
    for started in ({}, {"feedback": "votes"}):
        player = played(duelay.Decide(), ticks=300, **started)
        kept = player.standing().evidence
        found = evidence_of(replay_bets(player.history(), 0.05))
        assert (found.winner, found.declared) == (kept.winner, kept.declared)
        np.testing.assert_allclose(found.log_evidence, kept.log_evidence)
        np.testing.assert_allclose(found.path, kept.path)
        np.testing.assert_array_equal(found.tick, kept.tick)


def test_votes_declare_with_any_policy():
    standing = played(duelay.DoubleThompson(), ticks=2500, feedback="votes").standing()
    assert standing.guarantee.kind == "proved" and standing.evidence is not None
    decided = played(duelay.Decide(), ticks=400, feedback="votes").standing()
    assert decided.winner == 0


def test_there_is_no_stopping_rule_for_bordas_winner_yet():
    standing = played(duelay.Borda()).standing()
    assert "there is no stopping rule for Borda's winner yet" in standing.headline
    assert standing.winner is None


def test_another_confidence_moves_the_intervals_and_not_the_winner():
    player = played(duelay.Decide())
    narrow, wide = player.standing(0.5), player.standing(0.999)
    assert (narrow.lower[0, 1:] > wide.lower[0, 1:]).all()
    assert narrow.winner == wide.winner and narrow.error == wide.error == 0.05


def test_chances_are_those_of_the_posterior():
    """Two arms: P(gap > 0) of a normal posterior, to the error of 2000 draws."""
    evidence = played(duelay.Decide(), ticks=80).standing().evidence
    lead, n = evidence.lead[:2, :2], evidence.n[:2, :2]
    two = evidence._replace(lead=lead, n=n, lacks=np.ones((2, 2)), winner=None,
                            log_evidence=np.zeros((2, 2)), verdict="running",
                            n_waiting=np.zeros((2, 2), dtype=int))  # fmt: skip
    precision = 4 * n[0, 1] + 0.15**-2
    expected = 0.5 * math.erfc(-2 * lead[0, 1] / precision * math.sqrt(precision / 2))
    posterior = draw_posterior(lead, n, 0, two, np.ones(len(lead), dtype=bool))
    assert posterior.chances[0] == pytest.approx(expected, abs=0.04)


def test_gaps_are_drawn_from_the_posterior_that_is_stated():
    """Strengths of 0.1 and a pair's own 0.05, all pairs at once, to the error of 2000 draws."""
    rng, k = np.random.default_rng(3), 4
    low, high = np.triu_indices(k, 1)
    n, lead = (np.triu(values, 1) for values in rng.integers(1, 200, size=(2, k, k)) / 1.0)
    n[0, 1] = lead[0, 1] = 0.0
    n, lead = n + n.T, (lead - lead.T) / 20
    signs = np.zeros((len(low), k))
    signs[np.arange(len(low)), low] = 1.0
    signs[np.arange(len(low)), high] = -1.0
    prior = 0.1**2 * signs @ signs.T + 0.05**2 * np.eye(len(low))
    covariance = np.linalg.inv(np.linalg.inv(prior) + np.diag(4 * n[low, high]))
    drawn = draw_gaps(lead, n, 0, np.ones(k, dtype=bool), 2000)[1][:, low, high]
    sd = np.sqrt(np.diag(covariance))
    np.testing.assert_array_less(
        np.abs(drawn.mean(axis=0) - covariance @ (2 * lead[low, high])), 4 * sd / math.sqrt(2000)
    )
    np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=6 * sd.max() ** 2 / 44)


def test_of_many_arms_that_are_ordered_somebody_probably_wins():
    """Eight arms in a row, each pair heard ten times: who leads is likely, but not certain."""
    strength = np.arange(8.0)[::-1]
    lead = np.clip(strength[:, None] - strength, -6, 6)
    n = np.where(np.eye(8, dtype=bool), 0.0, 10.0)
    chances = draw_posterior(lead, n, 0, None, np.ones(8, dtype=bool)).chances
    assert 0.3 < chances[0] < 0.95 and chances.sum() > 0.7 and np.argmax(chances) == 0


@pytest.mark.long
@pytest.mark.interpreted
def test_of_many_arms_the_strongest_have_the_chances_that_they_have_among_all(monkeypatch):
    """Forty arms, of which thirty are drawn: as when all are, to the error of the draws."""
    rng, k = np.random.default_rng(5), 40
    strength = np.where(np.arange(k) % 10 == 3, 0.2, -0.1) + 0.02 * rng.standard_normal(k)
    n = np.where(np.eye(k, dtype=bool), 0.0, 40.0)
    lead = n * (strength[:, None] - strength) * 2
    present = np.arange(k) != 13
    some = draw_posterior(lead, n, 3, None, present)
    monkeypatch.setattr("duelay.inference.posterior._MAX_CONTENDERS", k)
    every = draw_posterior(lead, n, 3, None, present)
    np.testing.assert_allclose(some.chances, every.chances, atol=0.06)
    assert some.chances[13] == 0 and some.loss == pytest.approx(every.loss, abs=0.01)


@pytest.mark.parametrize(
    "left, words",
    [
        ((0, 0, 0), "the open duels may be enough"),
        ((0, 0, 30), "the open duels may be enough"),
        ((0, 0, 400), "probably up to 400 more duels"),
        ((900, 1500, 2700), "about 1,500 more duels"),
        ((90, 1500, 9000), "probably 90 to 9,000 more duels"),
        ((90, 1500, 1_000_000), "probably 90 more duels or many more"),
        (
            (90_000, 1_000_000, 1_000_000),
            "probably more than 90,000 more duels: the best arms may be equal",
        ),
    ],
)
def test_duels_that_are_left_are_a_range_unless_it_is_narrow(left, words):
    assert str(DuelsLeft(*left)) == words


@pytest.mark.parametrize("k", [2, 4])
def test_where_arms_are_equal_the_forecast_stops_to_grow(k):
    """As many wins as losses, after more and more duels."""
    evidence = played(duelay.Decide(), ticks=60).standing().evidence
    last = 0
    for n in (100, 10_000, 1_000_000, 100_000_000):
        even = np.full((k, k), n / (k - 1)) * (1 - np.eye(k))
        now = evidence._replace(
            lacks=4.0 * (1 - np.eye(k)), log_evidence=np.zeros((k, k)), winner_exists=False,
            n_waiting=np.zeros((k, k), dtype=np.int64), in_flight=5, worth=1.0,
        )  # fmt: skip
        left = draw_posterior(0.0 * even, even, 0, now, np.ones(k, dtype=bool)).duels_left
        assert last < left.middle or left.middle == MAX_DUELS
        assert left.high <= MAX_DUELS
        last = left.middle
    assert left == (MAX_DUELS, MAX_DUELS, MAX_DUELS) and "may be equal" in str(left)


@pytest.mark.long
@pytest.mark.interpreted
def test_where_nobody_seems_to_win_it_says_so():
    cycle = np.array([[0.5, 0.8, 0.2], [0.2, 0.5, 0.8], [0.8, 0.2, 0.5]])
    player, rng = duelay.Decide().start(3, seed=0), np.random.default_rng(0)
    while player.tick < 2000 and player.standing().duels_left is not None:
        duel = player.ask()
        if rng.random() < cycle[duel.first, duel.second]:
            player.tell(duel)
    standing = player.standing()
    assert standing.winner is None and standing.duels_left is None
    assert "no arm beats all others" in standing.headline


def test_evidence_is_printed_in_a_line():
    shown = repr(played(duelay.Decide()).standing().evidence)
    assert shown.startswith("Evidence(winner=0, declared=") and len(shown) < 300
    assert "log_evidence" in shown  # the names of what there is


def test_before_anything_is_heard_nobody_leads_in_the_table():
    player = duelay.Decide().start(2, seed=0)
    assert "leads" not in str(player.standing()).partition("no arm leads yet")[2]
    player.ask()
    assert "leads" not in str(player.standing()).partition("no arm leads yet")[2]


@pytest.mark.parametrize("policy", [duelay.Decide(), duelay.Decide(winner_exists=True),
                                    duelay.Decide(margin=0.1)], ids=str)  # fmt: skip
def test_a_p_value_is_the_error_at_which_an_arm_would_be_declared(policy):
    early = played(policy, ticks=60).standing().evidence
    assert (early.p_value <= 1).all() and (early.p_value > 0.05).all()
    late = played(policy, ticks=900).standing()
    assert late.winner == 0 and late.evidence.p_value[0] <= 0.05 < late.evidence.p_value[1:].min()
