"""The delays of a log: what is known of them, or why nothing is, and that in words."""

from __future__ import annotations

from duelay._core.duration import in_brief
from duelay.delays.fitting import DelayEstimate, estimate_delays
from duelay.logs.history import History


def find_delays(history: History, error: float = 0.05) -> tuple[DelayEstimate | None, str]:
    """Return what is known of the delays; None and a sentence where nothing is."""
    try:
        found = estimate_delays(history, error)
    except ValueError as why:
        return None, str(why)
    at_once = 0.0 if history.at is not None else 1.0  # the next tick
    if not found.learned.ages.max(initial=0.0) > at_once:
        return None, "every answer was heard at once: there are no delays to learn"
    return found, ""


def describe_curve(found: DelayEstimate) -> str:
    """Say what share of the answers does not come, by the learned curve."""
    known = found.learned
    tau, error = (float(x) for x in known.at(known.last))
    age = in_brief(known.last) if found.in_time else f"{known.last:,.0f} ticks"
    low, high = (min(max(1.0 - tau + s * 1.96 * error, 0.0), 1.0) for s in (-1, 1))
    return (
        f"{100 * min(max(1.0 - tau, 0.0), 1.0):.3g} % [{100 * low:.3g}, {100 * high:.3g}] of "
        f"the answers do not come within {age}"
    )


def describe(found: DelayEstimate) -> str:
    """Say the same, and which law fits best."""
    words = describe_curve(found)
    if not found.fits:
        return words
    best = found.fits[0]
    if not best.fits:
        return f"{words}; no law fits the learned curve, the nearest is {best.law}"
    low, high = best.never_range or (best.never, best.never)
    never = f"{100 * best.never:.3g} % [{100 * low:.3g}, {100 * high:.3g}] never come"
    return f"{words}; {best.name} fits best, {best.law}: by it {never}"
