"""Build the standing of a player from its ledger and its history."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core import checks
from duelay.delays.delay import Delay, check_delay
from duelay.delays.ticks_or_clock import WAYS
from duelay.inference.arm_set import ArmSet, restrict_history
from duelay.inference.borda_scores import Scores, score_bounds
from duelay.inference.confidence_sequences import at_all_times, of_margin, rests_on_law, shares
from duelay.inference.evidence import replay_bets
from duelay.inference.guarantee import Guarantee, Past, find_guarantee
from duelay.inference.leader import intervals, leader_of
from duelay.inference.player_clock import Clock
from duelay.inference.standing import Standing
from duelay.ledger.delay_models.base import is_known
from duelay.ledger.delay_models.continuous_time import ByClock
from duelay.ledger.delay_models.kaplan_meier import LearnedLaw
from duelay.ledger.evidence.eprocess import EProcess
from duelay.ledger.ledger import Ledger, age_to, assumes_delay
from duelay.logs.history import History

if TYPE_CHECKING:
    from duelay.policies.policy import Policy


class PlayerSnapshot(NamedTuple):
    """The state of a player at one moment, from which `build_standing` makes its standing."""

    policy: Policy
    arms: tuple[str, ...]
    feedback: str
    corrects_position: bool
    tick: int
    order: str | None
    error: float | None  # of a policy that decides; None for any other
    ledger: Ledger  # a copy, which may be aged
    arm_set: ArmSet
    active: NDArray[np.bool_]  # by place in the ledger
    pending: NDArray[np.int64] | None
    history: History | None
    past: Past | None
    clock: Clock | None
    late: int


def build_standing(player: PlayerSnapshot, confidence: float | None) -> Standing:
    """Return the estimates, intervals and leader of a player, as `Player.standing` documents."""
    is_deciding = isinstance(player.ledger.assumed, EProcess)
    if confidence is None:
        confidence = 1.0 - player.policy.error if is_deciding else 0.95  # type: ignore[attr-defined]
    confidence = checks.number("confidence", confidence, above=0, below=1)
    ledger, arm_set, history, clock = player.ledger, player.arm_set, player.history, player.clock
    tick, active = player.tick, player.active
    if not is_deciding:
        age_to(ledger, tick + 1)
    estimates = ledger.estimates()
    guarantee = find_guarantee(ledger.assumed, player.feedback, player.order, player.past)
    one_look = intervals(estimates, confidence)
    lower, upper = one_look
    bets = ledger.assumed if is_deciding else None
    if guarantee.holds and history is not None:
        if not is_deciding and not rests_on_law(ledger.assumed):
            bets = replay_bets(history, 1.0 - confidence, arm_set.joined, arm_set.present)
        heard = restrict_history(history, arm_set) if arm_set.has_changed else history
        share = shares(arm_set.joined, has_room=clock is not None)
        if bets is not None and bets.margin > 0.0:
            lower, upper = of_margin(bets, 1.0 - confidence)
        else:
            lower, upper = at_all_times(
                ledger,
                heard,
                1.0 - confidence,
                player.policy.delay,
                share[np.ix_(arm_set.shown, arm_set.shown)],
                None if bets is None else bets.seen[np.ix_(arm_set.shown, arm_set.shown)],
            )
    plays, conversions = ledger.plays, ledger.conversions
    if len(arm_set.shown) < len(arm_set.place) and history is not None:
        plays, conversions = _count_by_pair(history)
    target = player.policy.target
    is_learned = isinstance(ledger.assumed, LearnedLaw) or (
        isinstance(ledger.assumed, ByClock) and ledger.assumed.learns
    )
    return Standing(
        arms=player.arms,
        tick=tick,
        target=target,
        leader=int(arm_set.shown[leader_of(ledger, active, player.policy, estimates)]),
        scores=_spread_scores(score_bounds(ledger, confidence), arm_set)
        if target == "borda"
        else None,
        mean=arm_set.spread(estimates.mean, math.nan),
        lower=arm_set.spread(lower, -math.inf),
        upper=arm_set.spread(upper, math.inf),
        plays=plays,
        conversions=conversions,
        pending=player.pending,
        active=arm_set.spread(active, False),
        present=arm_set.present,
        joined=arm_set.joined,
        confidence=confidence,
        takes_silence_for_defeat=not assumes_delay(ledger),
        is_learning=not is_known(ledger.assumed),
        feedback=player.feedback,
        corrects_position=player.corrects_position,
        order=player.order,
        learns_from=str(player.policy.delay) if is_learned else None,
        told=int(ledger.assumed.n_taught[0]) if is_learned else 0,
        late=player.late,
        backwards=0 if clock is None else clock.backwards,
        backwards_by=0.0 if clock is None else clock.furthest,
        is_frozen=clock is not None and clock.is_own,
        guarantee=guarantee,
        policy_error=player.error,
        counted=arm_set.spread(estimates.expected**2 / np.maximum(estimates.n, 1.0), 0.0),
        one_look=(arm_set.spread(one_look[0], -math.inf), arm_set.spread(one_look[1], math.inf)),
        eprocess=ledger.assumed if is_deciding else None,
        replayed=None if is_deciding else bets,
        history=history,
        law=_find_known_law(player, guarantee),
    )


def _find_known_law(player: PlayerSnapshot, guarantee: Guarantee) -> Delay | None:
    """Return the delay law on which the guarantee rests; None if it does not rest on one."""
    law = player.policy.delay
    is_told = guarantee.holds and player.feedback == "conversions"
    return check_delay(law) if is_told and law is not None and law not in WAYS else None


def _count_by_pair(history: History) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return plays and conversions by ordered pair."""
    k = history.n_arms
    plays, conversions = np.zeros((k, k), dtype=np.int64), np.zeros((k, k), dtype=np.int64)
    np.add.at(plays, (history.first, history.second), 1)
    won = history.is_heard & (history.first_won == 1.0)
    np.add.at(conversions, (history.first[won], history.second[won]), 1)
    return plays, conversions


def _spread_scores(scores: Scores, arm_set: ArmSet) -> Scores:
    fills = (math.nan, -math.inf, math.inf, False)
    return Scores(*(arm_set.spread(part, fill) for part, fill in zip(scores, fills, strict=True)))
