"""What a further arm costs: the forecast against a slow twin, and against experiments."""

import copy

import numpy as np
import pytest

import duelay
from duelay.inference.arm_cost import forecast_cost
from duelay.inference.evidence import evidence_of
from duelay.inference.forecast import draw_duels
from duelay.inference.posterior import draw_gaps
from duelay.ledger.arms import with_arm


def played(ticks, gap=0.15, k=2, seed=0, **policy):
    """A player that has played so long, with answers at once."""
    player = duelay.Decide(**policy).start(k, seed=seed)
    rng = np.random.default_rng(seed)
    for _ in range(ticks):
        duel = player.ask()
        if rng.random() < 0.5 + gap * (np.sign(duel.second - duel.first)):
            player.tell(duel)
    return player


def cost(player, arm=None):
    standing = player.standing()
    return forecast_cost(standing.eprocess, standing.leader, arm)


def naive_cost(eprocess, leader, n_draws=2000):
    """The same, draw by draw."""
    now, joined = evidence_of(eprocess), with_arm(copy.deepcopy(eprocess), eprocess.error)
    then = evidence_of(joined)
    k = len(eprocess.joined)
    who, gaps = draw_gaps(then.lead, then.n, leader, joined.present, n_draws)
    assert who.tolist() == list(range(k + 1))
    found = []
    for draw in gaps:
        best = [i for i in range(k + 1) if all(draw[i, j] > 0 for j in range(k + 1) if j != i)]
        alone = [i for i in range(k) if all(draw[i, j] > 0 for j in range(k) if j != i)]
        if best and alone:
            found.append((best[0], alone[0], draw))
    with_it = draw_duels(
        then, np.array([best for best, _, _ in found]),
        np.stack([np.where(np.arange(k + 1) == best, 0, draw[best]) for best, _, draw in found]),
    )  # fmt: skip
    wide = now._replace(
        lacks=np.pad(now.lacks, (0, 1)), log_evidence=np.pad(now.log_evidence, (0, 1)),
        n_waiting=np.pad(now.n_waiting, (0, 1)),
    )  # fmt: skip
    gap = []
    for _, alone, draw in found:
        row = draw[alone].copy()
        row[alone], row[k] = 0.0, 1.0
        gap.append(row)
    without = draw_duels(wide, np.array([alone for _, alone, _ in found]), np.stack(gap))
    if now.verdict != "running":
        without[:] = 0.0
    return np.percentile(with_it - without, (11, 50, 89)), np.percentile(with_it, (11, 50, 89))


@pytest.mark.parametrize("ticks, k", [(60, 2), (150, 3)])
def test_the_cost_is_the_difference_of_the_duels_with_the_arm_and_without_it(ticks, k):
    player = played(ticks, k=k)
    standing = player.standing()
    more, with_it = naive_cost(standing.eprocess, standing.leader)
    found = cost(player)
    assert found.more == tuple(int(float(f"{n:.2g}")) for n in np.clip(more, -1e6, 1e6))
    assert found.with_it == tuple(int(float(f"{n:.2g}")) for n in np.clip(with_it, None, 1e6))
    assert found.more.low <= found.more.middle <= found.more.high


def test_a_forecast_changes_nothing():
    player = played(100)
    before = copy.deepcopy(player.standing().eprocess)
    assert cost(player) == cost(player)
    after = player.standing().eprocess
    for name, value in before._asdict().items():
        if isinstance(value, np.ndarray):
            assert np.array_equal(value, getattr(after, name)), name


def test_after_a_verdict_a_further_arm_costs_all_that_is_left_with_it():
    player = played(900, gap=0.4)
    assert player.standing().winner is not None
    found = cost(player)
    assert found.more == found.with_it and found.more.middle > 0


def test_with_a_margin_a_further_arm_has_a_cost_as_well():
    player = played(200, gap=0.0, margin=0.1)
    found = cost(player)
    assert found is not None and found.with_it.high < 1_000_000 and found.more.middle > 0
