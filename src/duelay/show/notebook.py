"""Notebook views of problems, laws, players, standings and results as HTML.

The `_repr_html_` methods call these functions. They need only the core install, give a small page
for any number of arms, and fall back to text instead of raising.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core.duration import DAY, HOUR, MINUTE, in_brief
from duelay._core.escapes import in_html
from duelay.show import html as h

if TYPE_CHECKING:
    from duelay.delays import ByPair, Law
    from duelay.experiments.results import Results
    from duelay.inference.standing import Standing
    from duelay.players.player import Player
    from duelay.problems import Problem
    from duelay.simulation.result import Result

MAX_ARMS_SHOWN = 16  # arms that are shown; of a larger matrix, a corner
_LINES = 50  # laws by pair that are drawn
_POINTS = 120  # of a curve
_CLOCK = {"days": DAY, "hours": HOUR, "minutes": MINUTE, "seconds": 1.0}
_MAX_NAME_LENGTH = 40  # characters of a name beside its row


def _never_raises(show: Callable[[Any], str]) -> Callable[[Any], str]:
    """Fall back on the repr if a thing cannot be shown: a user's own law may be wrong."""

    @functools.wraps(show)
    def safe(thing: Any) -> str:
        try:
            return show(thing)
        except Exception:
            try:
                words = repr(thing)
            except Exception:
                words = f"<{type(thing).__name__}>"
            return h.block(f"<pre>{in_html(words[:2000])}</pre>")

    return safe


@_never_raises
def show_problem(problem: Problem) -> str:
    """The matrix as coloured cells: blue where the row's arm wins, orange where it loses."""
    winner = problem.winner if problem.has_winner else None
    head = f"<b>{h.short(problem.name)}</b>: {problem.n_arms} arms, "
    if winner is None:
        head += "no Condorcet winner"
    else:
        row = np.delete(problem.matrix[winner], winner)
        wins = f"<b>{h.short(problem.arms[winner], _MAX_NAME_LENGTH)}</b>"
        head += f"{wins} beats every other one, with {row.min():g} or more"
    shown = _corner(problem.n_arms, winner)
    gaps = problem.matrix - 0.5
    share = gaps / max(float(np.abs(gaps).max()), 1e-9)
    form = "{:.3f}".format if len(shown) <= 10 else "{:.2f}".format
    cells = _heat(
        shown,
        problem.arms,
        lambda i, j: form(problem.matrix[i, j]),
        lambda i, j: f"{problem.arms[i]} beats {problem.arms[j]}: {problem.matrix[i, j]:g}",
        lambda i, j: float(share[i, j]),
        winner,
    )
    note = _note("how often the row's arm beats the column's", problem.n_arms, len(shown))
    return h.block(h.line(head), cells, note)


@_never_raises
def show_law(law: Law) -> str:
    """The law's text, mean and quantiles, and the share that has come by each age."""
    return h.block(h.line(f"<b>{h.short(str(law))}</b>"), _law(law))


@_never_raises
def show_by_pair(delay: ByPair) -> str:
    """The ticks until half has come, for each pair, and the curves of the distinct laws."""
    laws, k = tuple(dict.fromkeys(delay.laws)), delay.n_arms
    shown = _corner(k)
    corner = {delay.at(i, j) for i in shown for j in shown}
    halves = {law: law.quantile(0.5) for law in corner}
    means = {law: law.mean for law in corner}
    titles = {law: f"{law!s:.150}, mean {_length(means[law], law)}" for law in corner}
    finite = [half for half in halves.values() if math.isfinite(half)] or [1.0]
    low, high = min(finite), max(finite)

    def share(i: int, j: int) -> float:
        half = halves[delay.at(i, j)]
        return 1.0 if math.isinf(half) else (half - low) / (high - low) if high > low else 0.0

    cells = _heat(
        shown,
        [str(arm) for arm in range(k)],
        lambda i, j: _age(halves[delay.at(i, j)], laws[0]),
        lambda i, j: titles[delay.at(i, j)],
        share,
    )
    least, most = (_length(end(means.values()), laws[0]) for end in (min, max))
    note = "time " if delay.in_time else "ticks "
    note += "until half has come, with the row's arm first and the column's second; "
    note += f"mean delay {least}" if least == most else f"mean delays from {least} to {most}"
    never = max(law.never for law in laws)
    if never > 0:
        note += f"; up to {h.percent(never)} never come"
    kinds = "the same law" if len(laws) == 1 else f"{len(laws):,} different laws"
    head = h.line(f"<b>by-pair</b>: {k} × {k} pairs of arms, {kinds}")
    return h.block(head, h.side_by_side(cells, _cdf_chart(laws)), _note(note, k, len(shown)))


@_never_raises
def show_standing(standing: Standing) -> str:
    """Who leads and how sure that is; the leader against every other arm; evidence over time."""
    return h.block(_standing(standing), _evidence(standing))


@_never_raises
def show_player(player: Player) -> str:
    """The policy at work, and where it stands; the delay law too, if it is learning one."""
    head = h.line(f"<b>{h.short(str(player.policy))}</b> at work on {player.n_arms} arms")
    standing, learned = player.standing(), ""
    learns = getattr(player.policy, "delay", None) == "learn" and player.feedback != "votes"
    if learns and standing.conversions.any():
        learned = h.line("the delays, as learned so far") + _law(player.learned_law())
    return h.block(head, _standing(standing), learned)


@_never_raises
def show_result(result: Result) -> str:
    """Final regret, how often the true winner leads, and mean regret over time with its band."""
    runs = "1 run" if result.runs == 1 else f"{result.runs:,} runs"
    head = (
        f"<b>{h.short(result.label)}</b> on <b>{h.short(result.problem.name)}</b>, "
        f"delay {h.short(str(result.delay))}: {runs} of {result.horizon:,} duels"
    )
    if str(result.setting):
        head += f"; {h.short(str(result.setting))}"
    facts = {"regret" if result.runs == 1 else "regret ± sd": final_regret(result)}
    if result.problem.has_winner or result.setting.target != "condorcet":
        led = result.led_by_winner
        facts["led by the winner"] = "not known" if math.isnan(led) else h.percent(led)
    if result.seconds > 0:
        facts["µs a duel"] = h.number(result.microseconds)
    return h.block(h.line(head), h.side_by_side(_facts(facts), _regret_chart(result)))


@_never_raises
def show_results(results: Results) -> str:
    """Final regrets, a table a grid: a row a policy, a column a problem and law."""
    parts = [h.line(f"<b>{h.short(results.spec.title)}</b>")]
    for grid in results.spec.grids:
        columns = [(problem.name, str(law)) for problem in grid.problems for law in grid.delays]
        rows = []
        for choice in grid.policies[:_LINES]:
            cells = [results.get(grid.name, name, choice.label, law) for name, law in columns]
            row = [h.td(final_regret(result)) for result in cells]
            rows.append([h.td(h.short(choice.label, _MAX_NAME_LENGTH), align="left"), *row])
        names = [
            h.heading(name) + (f"<br/>{h.heading(law)}" if len(grid.delays) > 1 else "")
            for name, law in columns
        ]
        title = "" if grid.title == results.spec.title else f"{h.short(grid.title)}: "
        runs = "regret, 1 run" if grid.runs == 1 else f"regret ± sd, {grid.runs:,} runs"
        what = f"{title}{runs} of {grid.horizon:,} duels"
        note = _note("", len(grid.policies), len(rows), "policies")
        parts += [h.line(what), h.table(("policy", *names), rows, left=(0,)), note]
    return h.block(*parts)


class Span(NamedTuple):
    """The ages that show a law: up to `last`, on a logarithmic scale or not."""

    last: float
    is_log: bool
    first: float = 1.0  # where a logarithmic scale begins
    unit: str = "ticks"  # of the axis
    size: float = 1.0  # of the unit, in ticks or in seconds

    def ages(self, most: int) -> NDArray[Any]:
        """Ages from 0 to the last, at most so many, even on their scale; whole ones for ticks."""
        if self.unit != "ticks":
            if self.is_log:
                return np.array([0, *np.geomspace(self.first, self.last, most - 1)])
            return np.linspace(0, self.last, most)
        if self.last < most:
            return np.arange(self.last + 1)
        if not self.is_log:
            return np.unique(np.linspace(0, self.last, most).astype(np.int64))
        return np.unique([0, *np.geomspace(1, self.last, most - 1).astype(np.int64)])


def span(laws: Iterable[Law]) -> Span:
    """The ages to draw: a little beyond the 99 % quantile of the conversions that come."""
    last, is_log, in_time, first = 4.0, False, False, math.inf
    for law in laws:
        if law.in_time and not in_time:
            in_time, last = True, 0.0
        early, middle, far = law.quantile(np.array([0.01, 0.5, 0.99]) * (1.0 - law.never))
        if math.isfinite(far):
            last = max(last, 1.1 * far)
            is_log = is_log or far > 50 * middle
            first = min(first, early)
    if not in_time:
        return Span(math.ceil(last), is_log)
    last = last or 1.0
    unit, size = unit_of(last)
    return Span(last, is_log and 0 < first < last, first, unit, size)


def unit_of(length: float) -> tuple[str, float]:
    """The unit in which to draw a length of time, and its seconds."""
    return next(((u, s) for u, s in _CLOCK.items() if length >= 2 * s), ("milliseconds", 1e-3))


def final_regret(result: Result) -> str:
    """Mean and standard deviation of the regret at the horizon."""
    mean = h.number(float(result.final.mean()))
    return mean if result.runs == 1 else f"{mean} ± {h.number(float(result.final.std(ddof=1)))}"


def _law(law: Law) -> str:
    quantiles = law.quantile([0.5, 0.9, 0.99])
    facts = {"mean delay": _length(law.mean, law)}
    for name, value in zip(("half by", "90 % by", "99 % by"), quantiles, strict=True):
        facts[name] = _age(value, law)
    facts["never come"] = h.percent(law.never) if law.never else "none"
    return h.side_by_side(_facts(facts), _cdf_chart([law]))


def _cdf_chart(laws: Iterable[Law]) -> str:
    """The share of conversions that have come by each age."""
    laws = list(laws)[:_LINES]
    reach = span(laws)
    ages = reach.ages(_POINTS)
    lines = []
    for law in laws:
        tau = np.nan_to_num(np.asarray(law.cdf(ages), dtype=np.float64))
        x = ages.astype(np.float64)
        if reach.unit == "ticks" and len(ages) == reach.last + 1:  # every age: show the steps
            x, tau = np.repeat(x, 2)[1:], np.repeat(tau, 2)[:-1]
        if reach.is_log:
            is_drawn = x >= reach.first
            x, tau = np.log(x[is_drawn] / reach.first), tau[is_drawn]
            x = x / math.log(reach.last / reach.first)
        else:
            x = x / reach.last
        lines.append((x, tau))
    never = laws[0].never if len(laws) == 1 else 0.0
    end = f"{h.number(reach.last / reach.size)} {reach.unit}"
    return h.chart(
        "share of the conversions that have come by each age",
        lines,
        x_ends=(h.number(reach.first / reach.size), f"{end} (log)") if reach.is_log else ("0", end),
        y_end="100 %",
        level=1.0 - never if never > 0 else None,
    )  # fmt: skip


def _regret_chart(result: Result) -> str:
    picked = np.unique(np.linspace(0, len(result.t) - 1, _POINTS).astype(np.int64))
    t = np.concatenate(([0], result.t[picked])) / result.horizon
    mean = np.concatenate(([0.0], result.mean[picked]))
    std = np.concatenate(([0.0], result.band()[picked]))
    top = float(np.max(mean + std)) or 1.0
    band = None if result.runs == 1 else (t, (mean - std) / top, (mean + std) / top)
    return h.chart(
        "mean regret, with a band of one standard deviation",
        [(t, mean / top)],
        x_ends=("0", f"{result.horizon:,} duels"),
        y_end=h.number(top),
        band=band,
    )


def _standing(standing: Standing) -> str:
    rows = []
    for row in standing.rows()[:MAX_ARMS_SHOWN]:
        name = h.short(standing.arms[row.arm], _MAX_NAME_LENGTH)
        if not standing.active[row.arm]:
            name = f'<span style="opacity:0.6">{name} (dropped)</span>'
        if row.arm == standing.leader and standing.is_heard:
            name = f"<b>{name}</b>"
        if row.arm == standing.leader and standing.scores is None:
            picture = h.td("leads" if standing.is_heard else "", align="left")
            estimate = h.td("")
        elif math.isnan(row.mean):
            estimate, picture = h.td("unheard", align="left"), h.td(h.whisker(0, math.nan, 1))
        else:
            words = f"{row.mean:.3f} [{row.lower:.3f}, {row.upper:.3f}]"
            estimate = h.td(words, align="left")
            picture = h.td(h.whisker(row.lower, row.mean, row.upper))
        waits = "?" if row.pending is None else f"{row.pending:,}"
        counts = (f"{row.beats:g}", f"{row.duels:,}", f"{row.conversions:,}", waits)
        cells = [h.td(name, align="left"), picture, estimate, *(h.td(count) for count in counts)]
        rows.append(cells)
    shown = "leader beats it" if standing.scores is None else "Borda score"
    head = ("arm", shown, "", "beats", "duels", "conversions", "pending")
    note = _note("the mark of each interval is at 1/2", len(standing.arms), len(rows))
    said = "".join(h.line(in_html(f"warning: {words}")) for words in standing.warnings)
    return h.line(in_html(standing.headline)) + h.table(head, rows, left=(0, 1, 2)) + note + said


def _evidence(standing: Standing) -> str:
    """How the evidence of each arm grew, and the line at which one is declared."""
    evidence = standing.evidence
    if evidence is None or not standing.is_heard or evidence.tick[-1] < 1:
        return ""
    top = max(1.25 * evidence.level, float(evidence.arm.max()))
    strongest = np.argsort(-evidence.arm, kind="stable")[:MAX_ARMS_SHOWN]
    x = evidence.tick / evidence.tick[-1]
    chart = h.chart(
        "evidence of each arm",
        [(x, evidence.path[:, arm] / top) for arm in strongest],
        x_ends=("0", f"{evidence.tick[-1]:,} duels"),
        y_begin="1",
        y_end=h.number(math.exp(top)) if top < 700 else "∞",
        level=evidence.level / top,
    )
    ends = "an arm wins" if evidence.margin is None else "the experiment ends"
    words = f"evidence, on a logarithmic scale; at {h.number(math.exp(evidence.level))} {ends}"
    return h.line(words, is_faint=True) + chart


def _heat(
    shown: Sequence[int],
    arms: Sequence[str],
    word: Callable[[int, int], str],
    title: Callable[[int, int], str],
    share: Callable[[int, int], float],
    winner: int | None = None,
) -> str:
    """A corner of a matrix as cells, coloured by a share in [-1, 1]."""
    rows = []
    for i in shown:
        name = h.short(arms[i], _MAX_NAME_LENGTH)
        cells = [h.td(f"<b>{name} ★</b>" if i == winner else name, align="left")]
        for j in shown:
            cells.append(h.td(word(i, j), style=h.shade(share(i, j)), title=title(i, j)))
        rows.append(cells)
    return h.table(("", *(h.heading(arms[j]) for j in shown)), rows, left=(0,))


def _age(age: float, law: Law) -> str:
    return "never" if math.isinf(age) else _length(age, law)


def _length(length: float, law: Law) -> str:
    """Ticks as a number, seconds as a duration."""
    return in_brief(length) if law.in_time else h.number(length)


def _facts(facts: dict[str, str]) -> str:
    return h.table(list(facts), [[h.td(value) for value in facts.values()]])


def _corner(n_arms: int, winner: int | None = None) -> list[int]:
    """The arms to show: the first ones, the winner always among them."""
    shown = list(range(min(n_arms, MAX_ARMS_SHOWN)))
    if winner is not None and winner not in shown:
        shown[-1] = winner
    return shown


def _note(note: str, n: int, shown: int, what: str = "arms") -> str:
    """A faint line below; it says what is left out."""
    parts = [note] if note else []
    if n > shown:
        parts.append(f"{n - shown:,} more {what} are left out")
    return h.line("; ".join(parts), is_faint=True) if parts else ""
