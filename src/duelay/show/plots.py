"""Plots of results, problems, standings, laws and traffic by matplotlib."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from duelay._core.escapes import in_figure
from duelay.errors import InvalidValueError
from duelay.show import notebook
from duelay.show.figure_style import (
    COLOURS,
    arm_name,
    frame,
    need_matplotlib,
    new_axes,
    one_legend,
    short,
    style,
    tick_words,
)
from duelay.show.figure_style import save as save

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from duelay.delays import Law
    from duelay.inference.standing import Standing
    from duelay.problems import Problem
    from duelay.simulation.result import Result
    from duelay.traffic import Traffic

_MAX_NAMED_ARMS = 40
_MAX_LAWS = 50  # of a law by pair

BAND_WORDS = {"sd": "mean ± sd", "mean": "mean, 95 % confidence"}


def regret_figure(
    results: Sequence[Result], labels: Sequence[str] | None = None, *, band: str = "sd"
) -> Figure:
    """Draw the mean regret of several results over time, each with a band.

    Parameters
    ----------
    results : sequence of Result
        The results of `duelay.simulate`, at least one.
    labels : sequence of str, optional
        A label for each result; None takes the policies.
    band : str
        ``"sd"`` for one standard deviation, ``"mean"`` for a 95 % interval of the mean.
    """
    figure_class = need_matplotlib()
    if not results:
        raise InvalidValueError("results must hold at least one result, got none")
    figure: Figure = figure_class(figsize=(7.2, 4.5), layout="constrained")
    axes = figure.subplots()
    draw_regret(axes, results, labels, band=band)
    axes.set_title(_title(results[0]))
    if len(results) > 6:
        one_legend(figure, axes)
    else:
        axes.legend(frameon=False, loc="upper left", fontsize="small")
    return figure


def draw_regret(
    axes: Axes,
    results: Sequence[Result],
    labels: Sequence[str] | None = None,
    *,
    band: str = "sd",
) -> None:
    """Draw the mean regret of several results on given axes.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        The axes to draw on.
    results, labels, band : sequence of Result, sequence of str, str
        See `regret_figure`.
    """
    labels = [short(label) for label in labels or [result.label for result in results]]
    if len(labels) != len(results):
        raise InvalidValueError(
            f"labels must be one for each of the {len(results)} results, got {len(labels)}"
        )
    for number, result in enumerate(results):
        look = style(number)
        t = np.concatenate(([0], result.t))
        mean = np.concatenate(([0.0], result.mean))
        half = np.concatenate(([0.0], result.band(band)))
        axes.plot(t, mean, linewidth=1.8, label=labels[number], **look)
        low, high = np.maximum(mean - half, 0), mean + half
        axes.fill_between(t, low, high, color=look["color"], alpha=0.15, linewidth=0)
    axes.set_xlabel("duels")
    words = BAND_WORDS[band] if any(result.runs > 1 for result in results) else "one run"
    axes.set_ylabel(f"cumulative regret ({words})")
    axes.set_xlim(left=0, right=max(result.horizon for result in results))
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_formatter(lambda value, _: tick_words(value))
    axes.yaxis.set_major_formatter(lambda value, _: tick_words(value))
    axes.locator_params(axis="both", nbins=5)
    frame(axes)


def stops_figure(results: Sequence[Result], labels: Sequence[str]) -> Figure:
    """Draw the share of runs with a verdict over time, with a line for each policy."""
    figure: Figure = need_matplotlib()(figsize=(7.2, 4.5), layout="constrained")
    axes = figure.subplots()
    shares = [f"{short(label)}: {_ends(one)}" for label, one in zip(labels, results, strict=True)]
    draw_stops(axes, results, shares)
    axes.set_title(f"{_title(results[0])} of at most {tick_words(results[0].horizon)} duels")
    axes.set(
        xlabel="duels", ylabel="share of runs that have ended with a verdict\n(thin: a false one)"
    )
    one_legend(figure, axes, columns=1)
    return figure


def _ends(result: Result) -> str:
    """How many runs ended with which verdict, and how many with a false one."""
    found = [verdict for verdict in dict.fromkeys(result.verdicts) if verdict != "undecided"]
    shares = [f"{100 * result.share(verdict):.3g} % {verdict.replace('_', ' ')}"
              for verdict in sorted(found, reverse=True) or ["winner"]]  # fmt: skip
    return ", ".join([*shares, f"{_percent(result.is_wrong)} false"])


def draw_stops(axes: Axes, results: Sequence[Result], labels: Sequence[str]) -> None:
    """Draw the times of verdicts, a thin line for false ones, and the error that is allowed.

    If some runs have no verdict, all lines continue to the horizon, which is marked.
    """
    is_cut = not all(result.is_declared.all() for result in results)
    ends = [float(result.measured[result.is_declared].max(initial=1.0)) for result in results]
    last = float(results[0].horizon) if is_cut else 1.03 * max(ends)
    for error in sorted({float(result.setting.stop or 0.0) for result in results}):
        axes.axhline(error, color="#000000", linewidth=0.8, linestyle=":")
        axes.text(0.0, error, f" {100 * error:g} % may be wrong", va="bottom", fontsize="small")
    if is_cut:
        axes.axvline(last, color="#999999", linewidth=1)
        axes.text(last, 0.5, "horizon", rotation=90, va="center", ha="right", fontsize="small")
    for number, (label, result) in enumerate(zip(labels, results, strict=True)):
        thick = {"label": in_figure(label), "linewidth": 1.8}
        for those, look in ((result.is_declared, thick), (result.is_wrong, {"linewidth": 0.9})):
            ticks = np.sort(result.measured[those])
            share = np.arange(len(ticks) + 1) / result.runs
            if look is thick or len(ticks):
                axes.step([0, *ticks, last], [*share, share[-1]], where="post", **look,
                          **style(number))  # fmt: skip
    axes.set_ylim(0, 1.03)
    axes.set_xlim(0, 1.01 * last)
    axes.xaxis.set_major_formatter(lambda value, _: tick_words(value))
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    axes.locator_params(axis="x", nbins=5)
    frame(axes, grid=False)


def draw_result(axes: Axes | None, result: Result, band: str = "sd") -> Axes:
    """Draw the mean regret of one result, with its band.

    Parameters
    ----------
    axes : matplotlib.axes.Axes or None
        The axes to draw on; None makes a figure.
    result : Result
        The result of a simulation.
    band : str
        The kind of band; see `regret_figure`.
    """
    axes = new_axes(6.0, 3.8) if axes is None else axes
    draw_regret(axes, [result], band=band)
    axes.set_title(_title(result))
    axes.legend(frameon=False, loc="upper left", fontsize="small")
    return axes


def draw_problem(axes: Axes | None, problem: Problem) -> Axes:
    """Draw the preference matrix: blue where the row's arm wins, orange where it loses.

    Parameters
    ----------
    axes : matplotlib.axes.Axes or None
        The axes to draw on; None makes a figure.
    problem : Problem
        The preferences.
    """
    winner = problem.winner if problem.has_winner else None
    axes = draw_matrix(axes, problem.matrix, problem.arms, winner)
    found = f"{problem.arms[winner]} wins" if winner is not None else "no Condorcet winner"
    axes.set_title(short(f"{problem.name}: {found}"))
    return axes


def draw_matrix(axes: Axes | None, matrix: Any, arms: Sequence[str], bold: int | None) -> Axes:
    """Draw a preference matrix; nan is white, and the names of one arm are bold."""
    from matplotlib.colors import LinearSegmentedColormap

    k = len(arms)
    side = min(9.0, 2.4 + 0.42 * k)
    axes = new_axes(side + 0.8, side) if axes is None else axes
    most = max(float(np.nanmax(np.abs(matrix - 0.5))), 0.01)
    colours = LinearSegmentedColormap.from_list("duelay", ("#D55E00", "#F7F7F7", "#0072B2"))
    image = axes.imshow(matrix, cmap=colours, vmin=0.5 - most, vmax=0.5 + most)
    bar = axes.figure.colorbar(image, ax=axes, shrink=0.8)
    bar.set_label("how often the row's arm beats the column's", fontsize="small")
    if k > _MAX_NAMED_ARMS:
        return axes
    names = [arm_name(arm) for arm in arms]
    is_upright = max(len(arm) for arm in arms) > 3
    axes.set_xticks(range(k), names, rotation=90 if is_upright else 0, fontsize="small")
    axes.set_yticks(range(k), names, fontsize="small")
    if bold is not None:
        for ticks in (axes.get_xticklabels(), axes.get_yticklabels()):
            ticks[bold].set_fontweight("bold")
    for i in range(k if k <= notebook.MAX_ARMS_SHOWN else 0):
        for j in range(k):
            share = float(matrix[i, j])
            is_dark = abs(share - 0.5) > 0.6 * most
            axes.text(j, i, "" if np.isnan(share) else f"{share:.2f}", ha="center", va="center",
                      fontsize="x-small", color="white" if is_dark else "black")  # fmt: skip
    return axes


def draw_evidence(axes: Axes | None, standing: Standing) -> Axes:
    """Draw each arm's evidence over time, and the line at which the experiment ends."""
    evidence = standing.evidence
    assert evidence is not None
    axes = new_axes(7.2, 4.2) if axes is None else axes
    ends = "declared the winner" if evidence.margin is None else "the experiment ends"
    axes.axhline(np.exp(evidence.level), color="#000000", linewidth=1, linestyle="--")
    axes.text(0.01, np.exp(evidence.level), f"{ends} at {np.exp(evidence.level):,.4g}",
              transform=axes.get_yaxis_transform(), va="bottom", fontsize="small")  # fmt: skip
    strongest = np.lexsort((np.arange(len(evidence.arm)) != standing.leader, -evidence.arm))
    for place, arm in reversed(list(enumerate(strongest))):
        is_named = place < len(COLOURS) - 1
        look = style(place) if is_named else {"color": "#CCCCCC", "linewidth": 0.8}
        label = arm_name(standing.arms[arm]) if is_named else "_"
        axes.plot(evidence.tick, np.exp(evidence.path[:, arm]), label=label, **look)
    if evidence.declared is not None:
        axes.axvline(evidence.declared, color="#999999", linewidth=1)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: tick_words(value))
    axes.set_ylim(0.9, 3 * np.exp(max(evidence.level, evidence.arm.max())))
    axes.set_xlim(0, max(1, int(evidence.tick[-1])))
    axes.set_xlabel("duels")
    axes.set_ylabel("evidence, the highest so far,\nover the rival that it has the least over")
    handles, labels = axes.get_legend_handles_labels()
    if (grey := len(standing.arms) - len(labels)) > 0:
        axes.plot([], [], color="#CCCCCC", linewidth=0.8, label=f"{grey} more arms")
        handles, labels = axes.get_legend_handles_labels()
        handles, labels = [handles[-1], *handles[:-1]], [labels[-1], *labels[:-1]]
    axes.legend(handles[::-1], labels[::-1], fontsize="small", frameon=False, loc="upper left",
                bbox_to_anchor=(1.0, 1.0))  # fmt: skip
    axes.set_title("\n".join(_headline(standing)), fontsize="medium")
    frame(axes, grid=False)
    return axes


def _headline(standing: Standing) -> list[str]:
    """The headline in lines that fit above a figure."""
    said, _, sure = standing.headline.partition(" (")
    return [short(said), *(f"({part}" if place == 0 else part for place, part in
            enumerate(textwrap.wrap(sure, 70)))]  # fmt: skip


def draw_standing(axes: Axes | None, standing: Standing) -> Axes:
    """Draw the leader against every other arm: estimates, intervals, and the line at 1/2.

    If the target is Borda's winner: every arm's score, and a line at the leader's lower bound.

    Parameters
    ----------
    axes : matplotlib.axes.Axes or None
        Where to draw; new axes if None.
    standing : Standing
        The standing of a player.
    """
    is_borda = standing.scores is not None
    rows = [row for row in standing.rows() if is_borda or row.arm != standing.leader]
    rows = rows[:_MAX_NAMED_ARMS]
    line = rows[0].lower if is_borda else 0.5
    axes = new_axes(6.0, 2.1 + 0.28 * len(rows)) if axes is None else axes
    mean, lower, upper = np.array([row[1:4] for row in rows]).reshape(-1, 3).T
    names = [arm_name(standing.arms[row.arm]) for row in rows]
    candidates = [standing.candidates[row.arm] for row in rows] if is_borda else None
    draw_intervals(axes, names, mean, lower, upper, line=line, candidates=candidates)
    is_heard = ~np.isnan(mean)
    axes.set_xlim(min(0.0, *lower[is_heard], 1.0), max(1.0, *upper[is_heard], 0.0))
    leader = arm_name(standing.arms[standing.leader]) if standing.is_heard else "the leader"
    beats = f"how often {leader} beats it"
    measured = "Borda score: how often it beats another one" if is_borda else beats
    axes.set_xlabel(f"{measured}\n{_bars(standing)}", fontsize="small")
    left_out = len(standing.arms) - (0 if is_borda else 1) - len(rows)
    title = _headline(standing)
    title += [f"{left_out} more arms are left out"] if left_out else []
    axes.set_title("\n".join(title), fontsize="medium")
    frame(axes, grid=False)
    return axes


def draw_intervals(
    axes: Axes,
    names: Sequence[str],
    mean: Any,
    lower: Any,
    upper: Any,
    *,
    line: float = 0.5,
    candidates: Sequence[bool] | None = None,
    label: str | None = None,
) -> None:
    """Draw an estimate and its interval for each name; one of nan is unheard.

    An interval above the line is blue, one below orange; with `candidates`, theirs are blue.
    """
    colours = np.where(lower > line, "#0072B2", np.where(upper < line, "#D55E00", "#999999"))
    if candidates is not None:
        colours = np.where(candidates, "#0072B2", "#D55E00")
    places, is_heard = np.arange(len(names)), ~np.isnan(mean)
    axes.axvline(line, color="#999999", linewidth=1, linestyle="--")
    axes.hlines(places[is_heard], lower[is_heard], upper[is_heard], colors=colours[is_heard],
                linewidth=2)  # fmt: skip
    axes.scatter(mean[is_heard], places[is_heard], c=colours[is_heard], s=28, zorder=3, label=label)
    for place in places[~is_heard]:
        axes.text(line, place, " unheard", va="center", fontsize="small", alpha=0.7)
    axes.set_yticks(places, names)
    axes.set_ylim(len(names) - 0.5, -0.5)


def _bars(standing: Standing) -> str:
    """What the bars of a standing are, and their colours."""
    looks = "all at every look" if standing.guarantee.holds else "for one look"
    words = [f"{100 * standing.confidence:g} % intervals, {looks}"]
    if standing.scores is None:
        words.append("blue: above 1/2, orange: below, grey: it may be either")
    else:
        words.append("blue: it may be the winner, orange: it is not")
    return "\n".join([*words, *([standing.weighed] if standing.weighed else [])])


def draw_delay(axes: Axes | None, laws: Sequence[Law]) -> Axes:
    """Draw tau by age, one line for each law; for a single law also bars of when they come.

    Parameters
    ----------
    axes : matplotlib.axes.Axes or None
        Where to draw; new axes if None.
    laws : sequence of Law
        The laws.
    """
    axes = new_axes(6.0, 3.8) if axes is None else axes
    pairs = Counter(laws)
    shown = list(pairs)[:_MAX_LAWS]
    reach = notebook.span(shown)
    ages = reach.ages(400)
    ages = ages[ages >= reach.first] if reach.is_log else ages
    in_time = reach.unit != "ticks"
    if len(pairs) == 1:
        edges = reach.ages(31)
        share = np.diff(shown[0].cdf(edges))
        at, width = edges[:-1] / reach.size + (0.0 if in_time else 0.5), np.diff(edges) / reach.size
        axes.bar(at, share, width, align="edge", color="#56B4E9", alpha=0.6,
                 linewidth=0, label="comes in this span")  # fmt: skip
    for number, law in enumerate(shown):
        look = style(number) if len(shown) <= 6 else {"color": "#0072B2", "alpha": 0.4}
        label = "has come by this age" if len(pairs) == 1 else f"{law} ({pairs[law]} pairs)"
        axes.plot(ages / reach.size, law.cdf(ages), linewidth=1.8, label=short(label),
                  drawstyle="default" if in_time else "steps-post", **look)  # fmt: skip
    never = shown[0].never
    if len(pairs) == 1 and never > 0:
        axes.axhline(1 - never, color="#999999", linewidth=1, linestyle="--",
                     label=f"{100 * never:.3g} % never come")  # fmt: skip
    title = str(shown[0]) if len(pairs) == 1 else f"{len(pairs)} laws by pair of arms"
    axes.set_title(short(title if len(shown) == len(pairs) else f"{title}, {_MAX_LAWS} of them"))
    axes.set_xlabel(f"{reach.unit} since the duel")
    axes.set_ylabel("share of the conversions")
    axes.set_ylim(0, 1.02)
    if reach.is_log:
        axes.set_xscale("log")
    left = (reach.first / reach.size if in_time else 0.5) if reach.is_log else 0
    axes.set_xlim(left, reach.last / reach.size)
    frame(axes)
    if len(shown) <= 6:
        axes.legend(frameon=False, fontsize="small")
    return axes


def draw_traffic(axes: Axes | None, traffic: Traffic) -> Axes:
    """Draw one sample of traffic: how many of the first thousand duels have come, over time."""
    axes = new_axes(6.0, 3.8) if axes is None else axes
    times = traffic.times(1000, np.random.default_rng(0))
    unit, size = notebook.unit_of(float(times[-1]))
    axes.plot(times / size, np.arange(1, len(times) + 1), linewidth=1.5, drawstyle="steps-post")
    axes.set_title(short(str(traffic)))
    axes.set_xlabel(unit)
    axes.set_ylabel("duels so far")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    frame(axes)
    return axes


def _title(result: Result) -> str:
    runs = "1 run" if result.runs == 1 else f"{result.runs} runs"
    return short(f"{result.problem.name}, delay {result.delay}, {runs}")


def _percent(which: Any) -> str:
    return f"{100 * np.mean(which):.3g} %"
