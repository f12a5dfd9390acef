"""Which policy to use, and why: `recommend`. It rests on the ablation study."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from duelay import text
from duelay._core import checks
from duelay._core.deprecation import accept_old_names
from duelay._core.duration import Duration
from duelay._core.feedback import check_feedback
from duelay.delays import Delay
from duelay.delays import check as check_delay
from duelay.delays.time_units import WAYS, refuse_time
from duelay.errors import InvalidValueError
from duelay.policies import Borda, Decide, DoubleThompson, MRRDBDelay
from duelay.policies.policy import Policy
from duelay.problems import TARGETS

GOALS = ("regret", "decide")


class Recommendation(NamedTuple):
    """A policy, and the reason for it.

    Attributes
    ----------
    policy : Policy
        The recommended policy, which can be started or simulated.
    reason : str
        The reason, in a sentence.
    """

    policy: Policy
    reason: str

    def __str__(self) -> str:
        return f"{self.policy}: {self.reason}"


@accept_old_names(is_order_free="order_free")
def recommend(
    delay: Delay | str | float | None = None,
    *,
    order_free: bool = True,
    n_arms: int | None = None,
    window: int | str | Duration | None = None,
    target: str = "condorcet",
    feedback: str = "conversions",
    self_duels: bool = True,
    goal: str = "regret",
    error: float | None = None,
) -> Recommendation:
    """Recommend a policy for what is known about the delay, with the reason.

    Parameters
    ----------
    delay : Law, ByPair, str or float, optional
        What is known of the delay: None for nothing, a number for its mean, a law or its text.
    order_free : bool
        Whether you may choose which of the two arms is shown first. If not, it is the champion of
        the policy.
    n_arms : int, optional
        K, where it is known: a law by pair is checked against it.
    window : int, str or Duration, optional
        Ticks after which a conversion is no longer counted, or a duration such as ``"14d"`` with a
        clock; None for no limit.
    target : str
        The winner to find: ``"condorcet"``, ``"copeland"`` (the same policy, since a Condorcet
        winner is also a Copeland winner) or ``"borda"``.
    feedback : str
        ``"conversions"``, if only a win of the first arm is reported; ``"votes"``, if both outcomes
        are; or ``"counts"``, if only the number of conversions is reported, without the duels that
        they belong to.
    self_duels : bool
        Whether an arm may be shown alone, or twice. If not, the two arms of a duel always differ,
        and regret never stops growing.
    goal : str
        ``"regret"`` for little regret; or ``"decide"`` to find the winner in few duels and to
        declare it with a guarantee. A policy with little regret stops comparing once the winner
        seems clear, and can then almost never declare it.
    error : float, optional
        With ``goal="decide"``, the probability with which a declared winner may be wrong; None is
        0.05.

    Returns
    -------
    A `Recommendation` with the `policy` and the `reason`.

    Raises
    ------
    ValueError
        If an argument is invalid, or no policy fits all of them.

    Examples
    --------
    >>> recommend().policy
    DoubleThompson(delay='learn', order='coin', window=10000, alpha=0.51, ties='random',
                   self_duels=True)
    >>> recommend("geometric:0.01", order_free=False).policy.order
    'champion'
    >>> str(recommend(100, feedback="counts").policy)
    'mrr-db-delay:mean_delay=100,feedback=counts'
    """
    if n_arms is not None:
        n_arms = checks.whole("n_arms", n_arms, least=2)
    known = _known(delay, n_arms)
    window = checks.window(window)
    checks.one_of("target", target, TARGETS)
    checks.one_of("goal", goal, GOALS)
    if error is not None and goal != "decide":
        raise InvalidValueError(
            f"error is for goal='decide': with little regret nobody is declared, got {error!r}"
        )
    is_vote = check_feedback(feedback) == "votes"
    if feedback == "counts":
        if goal == "decide":
            raise InvalidValueError(
                "goal='decide' needs conversions that say from which duel they are, got "
                "feedback='counts'"
            )
        if not order_free:
            raise InvalidValueError(
                "feedback='counts' and an order that is given do not go together: MRRDBDelay "
                "shows the two arms in an order of its own"
            )
        if window is not None:
            raise InvalidValueError(
                f"window does not fit feedback='counts': the age of a conversion is unknown, got "
                f"{window!r}"
            )
        if target == "borda":
            raise InvalidValueError(
                "target borda needs conversions that say from which duel they are"
            )
        return _by_counts(known, self_duels)
    if goal == "decide":
        is_law = not is_vote and known is not None and not isinstance(known, float)
        law = known if is_law else None
        error = 0.05 if error is None else error
        return _to_decide(law, order_free, target, window, self_duels, error)
    order = "coin" if order_free else "champion"
    law = _law(known, order_free, is_vote, target, self_duels)
    given: dict[str, Any] = {"delay": law, "order": order, "window": window}
    given["self_duels"] = self_duels
    if target == "borda":
        return Recommendation(
            Borda(**given),
            "It compares every arm with all others alike, which is what a Borda score is; policies "
            "for other winners leave out the opponents that it needs.",
        )
    reason = _VOTES[order] if is_vote else _REASONS[law in WAYS, order]
    return Recommendation(DoubleThompson(**given), reason)


def _to_decide(
    law: Delay | None,
    order_free: bool,
    target: str,
    window: int | Duration | None,
    self_duels: bool,
    error: float,
) -> Recommendation:
    """Return `Decide`; raise ValueError where it has no guarantee."""
    if target == "borda":
        raise InvalidValueError(
            "target must be condorcet for goal='decide': there is no stopping rule for Borda's "
            "winner yet"
        )
    if not order_free:
        raise InvalidValueError(
            "goal='decide' needs an order that is free: its policy shows the two arms by coin, on "
            "which its guarantee rests unless a law is told"
        )
    return Recommendation(
        Decide(delay=law, window=window, error=error, self_duels=self_duels),
        "It asks where evidence is missing and declares the winner once there is enough, "
        + ("whatever the delays are" if law is None else "the law being as it is told")
        + " and however often you look.",
    )


@text.alias("policy", "recommended")
def recommended() -> Policy:
    """Return the policy that `recommend` gives if nothing is known about the delays."""
    return recommend().policy


_VOTES = {
    "coin": "With votes silence is no answer, so that nothing needs to be known about the delays, "
    "and the coin cancels a position effect: start it with feedback='votes'.",
    "champion": "With votes silence is no answer, so that nothing needs to be known about the "
    "delays: start it with feedback='votes'. But nothing cancels a position effect: the champion, "
    "shown first, has it in every duel.",
}
_REASONS = {
    (True, "coin"): "By coin, silence counts against both arms alike, so that nothing needs to be "
    "known about the delays, and the law itself is learned from what is heard.",
    (False, "coin"): "Double Thompson sampling has the least regret of all rules here; the law "
    "corrects its estimates, and the coin keeps a wrong law from doing harm.",
    (True, "champion"): "With the champion first, silence speaks against it, and only self-duels "
    "can teach the law: each must really be shown, the arm twice, the first place winning half of "
    "the time. If that is not possible, tell the law.",
    (False, "champion"): "Double Thompson sampling has the least regret of all rules here, and the "
    "law corrects the bias of silence against the champion.",
}


def _law(known: Any, order_free: bool, is_vote: bool, target: str, self_duels: bool) -> Any:
    """Return the delay law that the policy shall assume."""
    if is_vote:
        return None
    if known is not None and not isinstance(known, float):
        return known
    if order_free:
        return "learn"
    if target == "borda" or not self_duels:
        why = "Borda's winner is sought" if target == "borda" else "there are no self-duels"
        raise InvalidValueError(
            f"delay must be a law where {why} and the order is not free: no duel could teach it, "
            f"got {known!r}"
        )
    return "learn-from-self-duels"


def _known(delay: Any, n_arms: int | None) -> Any:
    """Return None, a mean, or a law."""
    if delay is None:
        return None
    if isinstance(delay, int | float) and not isinstance(delay, bool | Duration):
        if not (math.isfinite(delay) and delay >= 1):
            raise InvalidValueError(
                f"delay as a mean must be a finite number, at least 1, got {delay!r}"
            )
        return float(delay)
    return check_delay(delay, n_arms)


def _by_counts(known: Any, self_duels: bool) -> Recommendation:
    mean = math.inf if known is None else known
    refuse_time("delay", known)
    if not isinstance(mean, float):  # where the law depends on the pair, the largest mean
        mean = float(np.max(known.mean))
    if not math.isfinite(mean):
        raise InvalidValueError(
            "delay must be given with feedback='counts', as a law with a finite mean or "
            f"as its mean: MRR-DB-Delay's rounds are made from it, got {known}"
        )
    return Recommendation(
        MRRDBDelay(mean_delay=mean, feedback="counts", self_duels=self_duels),
        "Of all policies it alone needs only the number of conversions that arrive, and the mean "
        "of the delay.",
    )
