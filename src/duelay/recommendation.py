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
from duelay.delays.delay import check_delay
from duelay.delays.ticks_or_clock import WAYS, refuse_time
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
    margin: float | None = None,
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
    margin : float, optional
        With ``goal="decide"``, the smallest difference of a win rate from 1/2 that matters, such as
        0.05. The experiment then also ends when no difference matters.

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
    for name, value in (("error", error), ("margin", margin)):
        if value is not None and goal != "decide":
            raise InvalidValueError(
                f"{name} requires the goal 'decide', since other policies declare no winner, got "
                f"{value!r}",
                argument=name,
            )
    is_vote = check_feedback(feedback) == "votes"
    if feedback == "counts":
        if goal == "decide":
            raise InvalidValueError(
                "goal 'decide' does not fit feedback 'counts', since the duel of a conversion is "
                "unknown",
                argument="goal",
            )
        if not order_free:
            raise InvalidValueError(
                "feedback 'counts' does not fit an order that is given (order_free=False), since "
                "MRRDBDelay chooses the order of the two arms",
                argument="feedback",
            )
        if window is not None:
            raise InvalidValueError(
                f"window does not fit feedback 'counts', since the age of a conversion is unknown, "
                f"got {window!r}",
                argument="window",
            )
        if target == "borda":
            raise InvalidValueError(
                "target 'borda' does not fit feedback 'counts', since the duel of a conversion is "
                "unknown",
                argument="target",
            )
        return _by_counts(known, self_duels)
    if goal == "decide":
        is_law = not is_vote and known is not None and not isinstance(known, float)
        law = known if is_law else None
        error = 0.05 if error is None else error
        return _to_decide(law, order_free, target, window, self_duels, error, margin)
    order = "coin" if order_free else "champion"
    law = _law(known, order_free, is_vote, target, self_duels)
    given: dict[str, Any] = {"delay": law, "order": order, "window": window}
    given["self_duels"] = self_duels
    if target == "borda":
        return Recommendation(
            Borda(**given),
            "It compares each arm with all others equally often, as the Borda score requires. "
            "Policies for other winners stop asking the weak arms.",
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
    margin: float | None,
) -> Recommendation:
    """Return `Decide`; raise ValueError where it has no guarantee."""
    if target == "borda":
        raise InvalidValueError(
            "target must be condorcet for the goal 'decide', since there is no stopping rule for "
            "the Borda winner",
            argument="target",
        )
    if not order_free:
        raise InvalidValueError(
            "goal 'decide' does not fit an order that is given (order_free=False), since the "
            "guarantee requires a random order of the two arms",
            argument="goal",
        )
    if margin is not None:
        reason = (
            "It declares a winner, or that the arms differ by less than the margin, once the "
            "evidence suffices. The error bound holds for both statements, however often you look, "
            "for any delay law."
        )
        if law is not None:
            reason += " With a margin it does not use the law."
        policy = Decide(window=window, error=error, self_duels=self_duels, margin=margin)
        return Recommendation(policy, reason)
    return Recommendation(
        Decide(delay=law, window=window, error=error, self_duels=self_duels),
        "It compares the arms that are hardest to separate, and declares a winner once the "
        "evidence suffices. The error bound holds however often you look, "
        + ("for any delay law." if law is None else "if the delay law is correct."),
    )


@text.alias("policy", "recommended")
def recommended() -> Policy:
    """Return the policy that `recommend` gives if nothing is known about the delays."""
    return recommend().policy


_VOTES = {
    "coin": "With votes, silence does not count as a loss, so no delay law is needed, and a random "
    "order cancels the advantage of the first place. Start it with feedback='votes'.",
    "champion": "With votes, silence does not count as a loss, so no delay law is needed. Start it "
    "with feedback='votes'. The champion is always shown first, so its results include any "
    "advantage of the first place.",
}
_REASONS = {
    (True, "coin"): "The order of the arms is random, so silence counts against both alike. The "
    "policy learns the delay law from the conversions.",
    (False, "coin"): "Double Thompson sampling has the least regret of all policies here. The "
    "law corrects its estimates, and a random order of the arms limits the harm of a wrong law.",
    (True, "champion"): "The champion is shown first, so silence counts against it, and only "
    "self-duels teach the delay law. Show each self-duel: the same arm twice, so that "
    "the first place wins half of the time. If that is not possible, pass the law as delay.",
    (False, "champion"): "Double Thompson sampling has the least regret of all policies here, and "
    "the law corrects the bias of silence against the champion.",
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
        why = "the target is Borda's winner" if target == "borda" else "there are no self-duels"
        raise InvalidValueError(
            f"delay must be a law if {why} and the order is not free, since no duel could teach "
            f"it, got {known!r}",
            argument="delay",
        )
    return "learn-from-self-duels"


def _known(delay: Any, n_arms: int | None) -> Any:
    """Return None, a mean, or a law."""
    if delay is None:
        return None
    if isinstance(delay, int | float) and not isinstance(delay, bool | Duration):
        if not (math.isfinite(delay) and delay >= 1):
            raise InvalidValueError(
                f"delay as a mean must be a finite number, at least 1, got {delay!r}",
                argument="delay",
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
            "delay must be given with feedback 'counts', as a law with a finite mean or "
            f"as its mean: MRR-DB-Delay's rounds are made from it, got {known}",
            argument="delay",
        )
    return Recommendation(
        MRRDBDelay(mean_delay=mean, feedback="counts", self_duels=self_duels),
        "Of all policies it alone needs only the number of conversions that arrive, and the mean "
        "of the delay.",
    )
