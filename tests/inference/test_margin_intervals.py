"""Intervals of a policy with a margin: they agree with its verdict, and rarely miss."""

import math

import numpy as np
import pytest
from scipy.special import betaln

import duelay
import naive
from duelay.inference.confidence_sequences import _pair_levels, of_margin, of_shares
from duelay.ledger.evidence.eprocess import GAPS, evidence_weights, start_eprocess
from duelay.ledger.evidence.margin import GOOD_ENOUGH, WINNER
from duelay.problems import Problem

MARGIN = 0.2
EVEN = Problem(np.full((3, 3), 0.5))
NEAR = Problem([[0.5, 0.6, 0.85], [0.4, 0.5, 0.85], [0.15, 0.15, 0.5]])
SHARP = Problem([[0.5, 0.9, 0.9], [0.1, 0.5, 0.5], [0.1, 0.5, 0.5]])


def agrees(standing, margin=MARGIN):
    """Whether the intervals of a standing say what its verdict says."""
    i = standing.leader if standing.evidence.best is None else standing.evidence.best
    others = np.arange(len(standing.arms)) != i
    lower, upper = standing.lower[i][others], standing.upper[i][others]
    if standing.verdict == "winner":
        return bool((lower > 0.5).all())
    if standing.verdict == "good_enough":
        return bool((lower >= 0.5 - margin).all())
    if standing.verdict == "equivalent":
        is_near = (lower >= 0.5 - margin) & (upper <= 0.5 + margin)
        return bool((is_near | (lower > 0.5)).all())
    return True


@pytest.mark.long
@pytest.mark.interpreted
@pytest.mark.parametrize("end", ["good_enough", "equivalent"])
@pytest.mark.parametrize("problem", [EVEN, NEAR, SHARP], ids=["even", "near", "sharp"])
@pytest.mark.parametrize("feedback", ["votes", "conversions"])
def test_at_every_look_the_intervals_agree_with_the_verdict(problem, end, feedback):
    policy, verdicts = duelay.Decide(margin=MARGIN, end=end, wait=3, error=0.1), set()
    for seed in range(2):
        rng, due = np.random.default_rng(seed), {}
        player = policy.start(3, seed=seed, feedback=feedback)
        for t in range(700):
            for duel, told in due.pop(t, []):
                player.tell(duel, *told)
            duel = player.ask()
            won = rng.random() < problem.matrix[duel.first, duel.second]
            if feedback == "votes" or won:
                told = ("first" if won else "second",) if feedback == "votes" else ()
                due.setdefault(t + int(rng.integers(1, 4)), []).append((duel, told))
            if t % 10 == 0:
                standing = player.standing()
                assert agrees(standing)
                assert (standing.lower <= standing.upper).all()
                verdicts.add(standing.verdict)
    assert len(verdicts) > 1


def with_evidence(k=3, end="equivalent", wins=30.0):
    """Bets in which every pair has so many wins on either side, and no evidence yet."""
    eprocess = start_eprocess(0.05, None, k, margin=0.1, end=end)
    eprocess.seen[:] = wins
    np.fill_diagonal(eprocess.seen, 0.0)
    return eprocess


def test_evidence_cuts_the_interval_of_its_pair_and_no_other():
    eprocess = with_evidence()
    usual = of_shares(eprocess.seen, 0.05 / 4)[0][0, 1]
    level = math.log(3 * 2 / 0.05)
    for best, best_bar, wanted in (
        (0.0, level - 1e-6, usual),
        (0.0, level, 0.4),
        (level, level, math.nextafter(0.5, 1)),
    ):
        eprocess.best[0, 1], eprocess.best_bar[0, 1] = best, best_bar
        lower, upper = of_margin(eprocess, 0.05)
        assert lower[0, 1] == wanted and upper[1, 0] == 1.0 - wanted
        assert lower[0, 2] == lower[1, 0] == usual and upper[0, 2] == 1.0 - usual


def test_a_verdict_of_one_side_cuts_the_intervals_of_its_arm():
    eprocess = with_evidence(k=4, end="good_enough")
    for verdict, wanted in ((GOOD_ENOUGH, 0.4), (WINNER, math.nextafter(0.5, 1))):
        eprocess.verdict[0], eprocess.winner[0] = verdict, 2
        lower, upper = of_margin(eprocess, 0.05)
        assert (lower[2, [0, 1, 3]] == wanted).all() and lower[0, 1] < 0.4
        assert (upper[[0, 1, 3], 2] == 1.0 - wanted).all()


def test_by_the_clock_pairs_of_arms_that_join_have_a_share_of_their_own():
    """Over all pairs, 2 / L adds up to the error at the most."""
    for end in ("equivalent", "good_enough"):
        eprocess = start_eprocess(0.05, None, 3, margin=0.1, end=end, by_clock=True)
        many = 40
        joined = np.append(np.zeros(3, dtype=np.int64), np.arange(1, many - 2))
        level = math.log(3 * 2 / (0.9 * 0.05))  # of a two-sided end, where arms may join
        eprocess = eprocess._replace(joined=joined, best=np.zeros((many, many)), level=level)
        for error in (0.05, 0.01):
            level = _pair_levels(eprocess, error)
            total = (2.0 * np.exp(-level))[np.triu_indices(many, 1)].sum()
            assert 0.8 * error < total <= error * (1 + 1e-9)
            assert level[0, 1] == level[2, 0] < level[0, 3] == level[3, 2] < level[0, 4]


def test_conversions_alone_never_exclude_a_half():
    eprocess = with_evidence()
    eprocess.seen[0, 1], eprocess.seen[1, 0] = 500.0, 100.0
    lower, upper = of_margin(eprocess, 0.05)
    assert lower[0, 1] == 0.5 and upper[0, 1] > 0.85
    eprocess.best[0, 1] = 100.0
    assert 0.7 < of_margin(eprocess, 0.05)[0][0, 1] < 5 / 6


def test_where_conversions_contradict_what_is_proved_the_proof_counts():
    eprocess = with_evidence()
    eprocess.seen[0, 1], eprocess.seen[1, 0] = 10.0, 500.0
    eprocess.best_bar[0, 1] = 100.0  # at an earlier look
    lower, upper = of_margin(eprocess, 0.05)
    assert (lower[0, 1], upper[0, 1]) == (0.4, 0.5)
    eprocess.best[1, 0] = 100.0
    lower, upper = of_margin(eprocess, 0.05)
    assert lower[0, 1] == upper[0, 1] == pytest.approx(0.4)


def test_silence_alone_may_prove_what_an_interval_says():
    eprocess = with_evidence(wins=0.0)
    eprocess.best_bar[0, 1] = 100.0
    lower, upper = of_margin(eprocess, 0.05)
    assert (lower[0, 1], upper[0, 1]) == (0.4, 1.0)
    assert lower[0, 2] == -math.inf and upper[0, 2] == math.inf


@pytest.mark.long
@pytest.mark.interpreted
@pytest.mark.parametrize("mu", [0.5, 0.47, 0.45])
def test_the_interval_of_a_pair_misses_at_any_look_as_rarely_as_it_says(mu):
    """Two arms, 400 experiments of 800 duels, each looked at after every duel."""
    runs, n, margin, error, share, phi = 400, 800, 0.05, 0.2, 0.8, 0.7
    rng, level, m0 = np.random.default_rng(0), 2 / error, 0.5 - margin
    is_first, kappa = rng.random((runs, n)) < 0.5, phi / (2 - phi)
    won = rng.random((runs, n)) < np.where(is_first, mu, 1 - mu)
    heard = won & (rng.random((runs, n)) < share)
    kind = 2 * ~heard + ~is_first  # as in `tie_odds`, for arm 0
    sizes, evidence, bar = 1 + 2 * np.outer(GAPS, [1.0, -1.0, -kappa, kappa]), [], []
    for mine in (kind, kind ^ 1):
        bets = [np.cumprod(row[mine], axis=1) for row in sizes]
        evidence.append(np.tensordot(evidence_weights(), bets, 1))
        odds = [np.array(naive.tie_odds(phi, m0, m0 + h)[0]) for h in (margin, 2 * margin)]
        ties = [np.cumprod(row[mine], axis=1) for row in odds]
        bar.append(evidence[-1] / 2 + (ties[0] + ties[1]) / 4)
    wins, losses = np.cumsum(kind == 0, axis=1), np.cumsum(kind == 1, axis=1)
    ratio = betaln(wins + 0.5, losses + 0.5) - math.log(math.pi)
    ratio -= wins * math.log(mu) + losses * math.log(1 - mu)
    is_missed = evidence[0] >= level
    is_missed |= (mu == 0.5) & (evidence[1] >= level) | (mu <= m0) & (bar[0] >= level)
    is_missed |= (mu != 0.5) & (ratio >= math.log(2 * level))
    missed = is_missed.any(axis=1).mean()
    print(f"misses at {mu}: {100 * missed:.1f} %")
    assert 0 < missed <= error + 3 * math.sqrt(error * (1 - error) / runs)
