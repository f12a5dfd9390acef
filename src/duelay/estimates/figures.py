"""Pictures of an estimate: who leads, preferences, delays, evidence and traffic."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from duelay._core.escapes import in_figure
from duelay.show import figure_style, notebook, plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from duelay.estimates.result import Estimate

_MAX_ARMS = 30  # arms against the leader
_BINS = 60  # of the traffic


def all_of(estimate: Estimate) -> dict[str, Figure]:
    """Return every picture that there is something to draw for, by name."""
    k = len(estimate.arms)
    side = min(9.0, 2.6 + 0.42 * k)
    if not estimate.history.is_heard.any():
        return {}
    found: dict[str, Figure] = {
        "leader": _alone(
            lambda axes: draw_leader(axes, estimate), 6.6, 1.7 + 0.3 * min(k, _MAX_ARMS)
        ),
    }
    if estimate.rates is None:
        found["preferences"] = _alone(
            lambda axes: draw_preferences(axes, estimate), side + 0.8, side
        )
    if estimate.delays is not None:
        found["delays"] = _alone(lambda axes: draw_delays(axes, estimate), 6.6, 4.0)
    if estimate.evidence is not None:
        found["evidence"] = _alone(lambda axes: draw_evidence(axes, estimate), 7.2, 4.2)
    if estimate.history.at is not None and estimate.history.n > 1:
        found["traffic"] = _alone(lambda axes: draw_traffic(axes, estimate), 6.6, 3.2)
    return found


def overview(estimate: Estimate) -> Figure:
    """Return the leader, the preferences and the delays in one figure; of lifts, one alone."""
    if estimate.rates is not None:
        return _alone(lambda axes: draw_leader(axes, estimate), 6.6, 4.4)
    n = 2 + (estimate.delays is not None)
    figure: Figure = figure_style.need_matplotlib()(figsize=(4.9 * n, 4.4), layout="constrained")
    axes = figure.subplots(1, n)
    draw_leader(axes[0], estimate)
    draw_preferences(axes[1], estimate)
    if estimate.delays is not None:
        draw_delays(axes[2], estimate)
    return figure


def draw_leader(axes: Axes, estimate: Estimate) -> None:
    """Draw how often the leader beats every other arm, corrected and naively; or its lifts."""
    leader = estimate.leader
    others = [int(arm) for arm in estimate.ranking if arm != leader][:_MAX_ARMS]
    if estimate.rates is not None:
        _draw_lifts(axes, estimate, others)
        return
    mean, naive = estimate.mean[leader, others], estimate.naive[leader, others]
    lower = np.clip(estimate.lower[leader, others], 0.0, 1.0)
    upper = np.clip(estimate.upper[leader, others], 0.0, 1.0)
    known = ~np.isnan(mean)
    names = [_name(estimate.arms[arm]) for arm in others]
    plots.draw_intervals(axes, names, mean, lower, upper, label="estimate")
    axes.scatter(naive, range(len(others)), marker="x", c="#000000", s=24, zorder=3, label="naive")
    ends = [0.45, 0.55, *lower[known], *upper[known], *naive[~np.isnan(naive)]]
    axes.set_xlim(max(min(ends) - 0.03, 0.0), min(max(ends) + 0.03, 1.0))
    left_out = len(estimate.arms) - 1 - len(others)
    axes.set_xlabel(f"how often {_name(estimate.arms[leader])} beats it")
    axes.set_title("the leader against the others" + f", {left_out} left out" * (left_out > 0),
                   fontsize="medium", pad=22)  # fmt: skip
    _legend_above(axes)
    figure_style.frame(axes, grid=False)


def _draw_lifts(axes: Axes, estimate: Estimate, others: list[int]) -> None:
    """Draw the lift of the leader over other arms, in percent."""
    rates, leader = estimate.rates, estimate.leader
    assert rates is not None
    lift, lower, upper = (100.0 * ends[leader, others]
                          for ends in (rates.lift, rates.lift_lower, rates.lift_upper))  # fmt: skip
    names = [_name(estimate.arms[arm]) for arm in others]
    known = np.isfinite(lift)
    most = max([10.0, *(3.0 * np.abs(lift[known])), *-lower[known]])
    plots.draw_intervals(axes, names, lift, lower, np.minimum(upper, 2.0 * most), line=0.0)
    axes.set_xlim(-1.1 * most, 1.1 * most)
    left_out = len(estimate.arms) - 1 - len(others)
    axes.set_xlabel(f"how much higher the rate of {_name(estimate.arms[leader])} is, in percent")
    axes.set_title("the lift of the leader" + f", {left_out} left out" * (left_out > 0),
                   fontsize="medium")  # fmt: skip
    figure_style.frame(axes, grid=False)


def draw_preferences(axes: Axes, estimate: Estimate) -> None:
    """Draw the matrix, the arms by their rank."""
    order = estimate.ranking
    arms = [estimate.arms[arm] for arm in order]
    bold = 0 if estimate.winner is not None else None
    plots.draw_matrix(axes, estimate.mean[np.ix_(order, order)], arms, bold)
    axes.set_title("preferences", fontsize="medium")


def draw_delays(axes: Axes, estimate: Estimate) -> None:
    """Draw the learned curve with its band, and the laws that were fitted."""
    found = estimate.delays
    assert found is not None
    learned, unit, size = found.learned, "ticks", 1.0
    rises = learned.ages[learned.ages > 0], learned.tau[learned.ages > 0] / learned.tau[-1]
    early, middle, late = (float(rises[0][np.searchsorted(rises[1], part)])
                           for part in (0.01, 0.5, 0.9))  # fmt: skip
    if found.in_time:
        unit, size = notebook.unit_of(late)
    is_log = learned.last > 20.0 * middle
    first = max(early / 2.0, 1e-6) if found.in_time else 0.5
    ages = np.geomspace(first, learned.last, 400) if is_log else np.linspace(0, learned.last, 400)
    tau, error = learned.at(ages)
    axes.plot(ages / size, tau, color="#0072B2", linewidth=2.2, label="learned, 95 % band",
              drawstyle="steps-post")  # fmt: skip
    axes.fill_between(ages / size, np.clip(tau - 1.96 * error, 0, 1),
                      np.clip(tau + 1.96 * error, 0, 1), color="#0072B2", alpha=0.2,
                      linewidth=0)  # fmt: skip
    for number, fit in enumerate(found.fits, start=1):
        look: dict[str, Any] = figure_style.style(number)
        width = 1.6 if number == 1 else 0.9
        axes.plot(ages / size, fit.law.cdf(ages), linewidth=width, label=fit.name, **look)
    if is_log:
        axes.set_xscale("log")
    axes.set_xlim((first if is_log else 0.0) / size, learned.last / size)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel(f"{unit} since the duel")
    axes.set_ylabel("share of the answers that has come")
    words = "delays"
    if found.fits:
        words += f": {found.fits[0].name} fits best" if found.fits[0].fits else ": no law fits"
    axes.set_title(words, fontsize="medium")
    axes.legend(frameon=False, fontsize="small")
    figure_style.frame(axes)


def draw_evidence(axes: Axes, estimate: Estimate) -> None:
    """Draw each arm's evidence over the duels of the log."""
    plots.draw_evidence(axes, estimate)  # type: ignore[arg-type]
    axes.set_title("evidence", fontsize="medium")


def draw_traffic(axes: Axes, estimate: Estimate) -> None:
    """Draw how many duels were shown, and answers heard, over time."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    history = estimate.history
    assert history.at is not None
    answered = history.answered[history.is_heard]
    end = max(float(history.at[-1]), float(answered.max(initial=history.at[0])))
    edges = np.linspace(float(history.at[0]), end or 1.0, _BINS + 1)
    days = edges / 86_400.0  # matplotlib's dates are days since 1970, in UTC
    for times, label, colour in ((history.at, f"{estimate.unit}s", "#56B4E9"),
                                 (answered, "answers heard", "#D55E00")):  # fmt: skip
        n, _ = np.histogram(times, edges)
        axes.stairs(n, days, label=label, color=colour, fill=colour == "#56B4E9",
                    alpha=0.6 if colour == "#56B4E9" else 1.0, linewidth=1.5)  # fmt: skip
    locator = AutoDateLocator()  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    concise = ConciseDateFormatter(locator)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_formatter(concise)
    axes.set_ylabel("in each of 60 spans")
    axes.set_title("traffic (times are UTC)", fontsize="medium", pad=22)
    _legend_above(axes)
    figure_style.frame(axes, grid=False)


def _legend_above(axes: Axes) -> None:
    """Put the legend between the title and the axes, where it covers nothing."""
    axes.legend(fontsize="small", frameon=False, loc="lower center", ncols=2,
                bbox_to_anchor=(0.5, 1.0), borderaxespad=0.2)  # fmt: skip


def _alone(draw: Callable[[Axes], None], width: float, height: float) -> Figure:
    new_figure = figure_style.need_matplotlib()
    figure: Figure = new_figure(figsize=(width, max(height, 2.4)), layout="constrained")
    draw(figure.subplots())
    return figure


def _name(arm: str) -> str:
    return in_figure(arm if len(arm) <= 24 else f"{arm[:21]}...")
