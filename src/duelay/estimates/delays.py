"""The delays of a log: estimate their law, and describe it in a sentence."""

from __future__ import annotations

from duelay._core.duration import in_brief
from duelay.delays.fitted_laws import BAND, DelayEstimate, estimate_delays
from duelay.logs.history import History


def find_delays(history: History, error: float = 0.05) -> tuple[DelayEstimate | None, str]:
    """Estimate the delays of a log; return None and the reason where that is not possible."""
    try:
        found = estimate_delays(history, error)
    except ValueError as why:
        return None, str(why)
    at_once = 0.0 if history.at is not None else 1.0  # the next tick
    if not found.learned.ages.max(initial=0.0) > at_once:
        return None, "every answer was heard at once: there are no delays to learn"
    return found, ""


def describe_curve(found: DelayEstimate) -> str:
    """Describe the share of answers that do not come, by the learned curve.

    The curve ends where few duels are watched any longer: answers that came later are counted.
    Where the interval of the share contains 0, all answers may have come, and only its upper end is
    said: the estimate itself is then chance.
    """
    known, watched = found.learned, found.watched
    if watched.is_heard.all():
        return f"all answers came, the last after {_age(found, float(watched.exit.max()))}"
    tau, error = (float(x) for x in known.at(known.last))
    age = _age(found, known.last)
    low, missing, high = (min(max(1.0 - tau + s * BAND * error, 0.0), 1.0) for s in (-1, 0, 1))
    later = int((watched.exit[watched.is_heard] > known.last).sum())
    after = f" ({later:,} came later)" if later else ""
    if low == 0.0:
        return f"all answers may come within {age}: at most {100 * high:.3g} % do not{after}"
    return (
        f"{100 * missing:.3g} % [{100 * low:.3g}, {100 * high:.3g}] of the answers do not come "
        f"within {age}{after}"
    )


def _age(found: DelayEstimate, age: float) -> str:
    return in_brief(age) if found.in_time else f"{age:,.0f} ticks"


def describe_delays(found: DelayEstimate) -> str:
    """Describe that share and the law that fits best."""
    words = describe_curve(found)
    if not found.fits:
        return words
    best = found.fits[0]
    if not best.fits:
        return f"{words}; no law fits the learned curve, the nearest is {best.law}"
    low, high = best.never_range or (best.never, best.never)
    never = f"{100 * best.never:.3g} % [{100 * low:.3g}, {100 * high:.3g}] never come"
    if low == 0.0:
        never = f"at most {100 * high:.3g} % never come"
    return f"{words}; {best.name} fits best, {best.law}: by it {never}"
