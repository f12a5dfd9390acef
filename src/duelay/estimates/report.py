"""An estimate in files: a page for people, JSON and tables for programs."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from duelay._core import extras
from duelay._core.duration import in_brief
from duelay._core.escapes import in_cell, in_code, in_markdown
from duelay._core.files import write_whole
from duelay._version import __version__
from duelay.inference.leader import beaten
from duelay.show.html_report import page
from duelay.show.text_table import markdown as _lay

if TYPE_CHECKING:
    from duelay.estimates.result import Estimate

Table = dict[str, list[Any]]
_MAX_ROWS = 60  # of a table on the page; the files have them all


def need_packages() -> None:
    """Say what to install, where a package for reports is missing."""
    extras.need("reports", ["markdown", "matplotlib", "pyarrow"], "logs")


def write(estimate: Estimate, folder: Path) -> list[Path]:
    """Write everything; the page comes last: where there is a page, all files are there.

    The packages that `need_packages` asks for must be there.
    """
    from duelay.estimates import figures
    from duelay.show import figure_style

    folder = Path(folder)
    pictures = folder / "figures"
    pictures.mkdir(parents=True, exist_ok=True)
    written = []
    for name, figure in figures.all_of(estimate).items():
        written.append(pictures / f"{name}.svg")
        figure_style.save(figure, written[-1])
    for name, content in tables(estimate).items():
        written += _write_table(content, folder / name)
    written.append(folder / "estimate.json")
    data = json.dumps(as_data(estimate), indent=2, ensure_ascii=False, allow_nan=False)
    write_whole(written[-1], f"{data}\n".encode())
    source = compose(estimate, {path.stem for path in written if path.suffix == ".svg"})
    written.append(folder / "report.html")
    write_whole(written[-1], page(source, "What the log says", folder).encode())
    return written


def tables(estimate: Estimate) -> dict[str, Table]:
    """Return the tables: a row an arm, a pair, an age, a law, a test."""
    if estimate.rates is None:
        found = {"ranking": _ranking(estimate), "preferences": _preferences(estimate)}
    else:
        found = {"ranking": _rates(estimate), "lifts": _lifts(estimate)}
    if estimate.delays is not None:
        found["delays"] = _delays(estimate)
        if estimate.delays.fits:
            found["laws"] = _laws(estimate)
    fields = {"test": "name", "is_alarm": "is_alarm", "p": "p_value",
              "statistic": "statistic", "n": "n", "sentence": "sentence"}  # fmt: skip
    found["assumptions"] = {
        column: [getattr(finding, field) for finding in estimate.findings]
        for column, field in fields.items()
    }
    return found


def _ranking(e: Estimate) -> Table:
    order = e.ranking
    duels = e.counts.duels.sum(axis=1) + e.counts.duels.sum(axis=0) - e.counts.duels.diagonal()
    wins = e.counts.wins.sum(axis=1)
    lead = [arm == e.leader for arm in order]
    return {
        "rank": list(range(1, len(order) + 1)),
        "arm": [e.arms[arm] for arm in order],
        "leader_beats_it": [math.nan if mine else float(e.mean[e.leader, arm])
                            for arm, mine in zip(order, lead, strict=True)],
        "lower": [math.nan if mine else _end(e.lower[e.leader, arm])
                  for arm, mine in zip(order, lead, strict=True)],
        "upper": [math.nan if mine else _end(e.upper[e.leader, arm])
                  for arm, mine in zip(order, lead, strict=True)],
        "naive": [math.nan if mine else float(e.naive[e.leader, arm])
                  for arm, mine in zip(order, lead, strict=True)],
        "beats": beaten(e.mean[:, e.history.present])[order].tolist(),
        "may_be_best": e.candidates[order].tolist(),
        "chance_to_be_best": e.chances[order].tolist(),
        "duels": duels[order].astype(int).tolist(),
        "wins_as_first": wins[order].tolist(),
    }  # fmt: skip


def _rates(e: Estimate) -> Table:
    """Return the arms of an experiment that showed one arm at a time, with the leader's lift."""
    assert e.rates is not None
    order, r = e.ranking, e.rates
    others = np.where(order == e.leader, -1, order)

    def lift(values: Any) -> list[float]:
        return [math.nan if arm < 0 else float(values[e.leader, arm]) for arm in others.tolist()]

    return {
        "rank": list(range(1, len(order) + 1)),
        "arm": [e.arms[arm] for arm in order],
        "shown": r.shown[order].tolist(),
        "conversions": r.conversions[order].tolist(),
        "window_closed": r.closed[order].tolist(),
        "converted_in_time": r.converted[order].tolist(),
        "rate": r.rate[order].tolist(),
        "rate_lower": r.lower[order].tolist(),
        "rate_upper": r.upper[order].tolist(),
        "lift_of_leader": lift(r.lift),
        "lift_lower": lift(r.lift_lower),
        "lift_upper": lift(r.lift_upper),
        "may_be_best": e.candidates[order].tolist(),
        "chance_to_be_best": e.chances[order].tolist(),
    }


def _lifts(e: Estimate) -> Table:
    """Return the lift of each arm over each other one that it was compared with."""
    assert e.rates is not None
    met = (e.counts.duels + e.counts.duels.T) > 0
    np.fill_diagonal(met, False)
    i, j = np.nonzero(met)
    r = e.rates
    return {
        "arm": [e.arms[arm] for arm in i],
        "over": [e.arms[arm] for arm in j],
        "lift": r.lift[i, j].tolist(),
        "lower": r.lift_lower[i, j].tolist(),
        "upper": r.lift_upper[i, j].tolist(),
        "conversions": e.counts.answers[i, j].astype(int).tolist(),
        "conversions_of_the_other": e.counts.answers[j, i].astype(int).tolist(),
        "visitors": e.counts.duels[i, j].astype(int).tolist(),
        "visitors_of_the_other": e.counts.duels[j, i].astype(int).tolist(),
    }


def _preferences(e: Estimate) -> Table:
    low, high = np.triu_indices(len(e.arms), 1)
    met = e.counts.duels[low, high] + e.counts.duels[high, low] > 0
    low, high = low[met], high[met]
    p = e.preferences
    return {
        "arm": [e.arms[i] for i in low],
        "against": [e.arms[j] for j in high],
        "beats_it": p.mean[low, high].tolist(),
        "standard_error": p.error[low, high].tolist(),
        "lower": [_end(x) for x in p.lower[low, high]],
        "upper": [_end(x) for x in p.upper[low, high]],
        "naive": p.naive[low, high].tolist(),
        "duels_as_first": e.counts.duels[low, high].astype(int).tolist(),
        "duels_as_second": e.counts.duels[high, low].astype(int).tolist(),
        "answers_as_first": e.counts.answers[low, high].astype(int).tolist(),
        "answers_as_second": e.counts.answers[high, low].astype(int).tolist(),
    }


def _delays(e: Estimate) -> Table:
    assert e.delays is not None
    known = e.delays.learned
    place = np.unique(np.linspace(0, known.ages.size - 1, min(known.ages.size, 500)).astype(int))
    ages = np.unique(np.append(known.ages[place], known.last))
    tau, error = known.at(ages)
    found = {
        "seconds" if e.delays.in_time else "ticks": ages.tolist(),
        "share": np.clip(tau, 0, 1).tolist(),
        "lower": np.clip(tau - 1.96 * error, 0, 1).tolist(),
        "upper": np.clip(tau + 1.96 * error, 0, 1).tolist(),
    }
    for fit in e.delays.fits:
        found[fit.name.replace("-", "_")] = np.asarray(fit.law.cdf(ages)).tolist()
    return found


def _laws(e: Estimate) -> Table:
    assert e.delays is not None
    ranges = [fit.never_range or (math.nan, math.nan) for fit in e.delays.fits]
    return {
        "law": [fit.name for fit in e.delays.fits],
        "text": [str(fit.law) for fit in e.delays.fits],
        "log_likelihood": [fit.log_likelihood for fit in e.delays.fits],
        "aic": [fit.aic for fit in e.delays.fits],
        "never": [fit.never for fit in e.delays.fits],
        "never_lower": [low for low, _ in ranges],
        "never_upper": [high for _, high in ranges],
        "distance": [fit.distance for fit in e.delays.fits],
        "fits": [fit.fits for fit in e.delays.fits],
    }


def as_data(e: Estimate) -> dict[str, Any]:
    """Return an estimate as what JSON knows."""
    history, position = e.history, e.position
    data: dict[str, Any] = {
        "duelay": __version__,
        "headline": e.headline,
        "duels": history.n,
        "answers": int(history.is_heard.sum()),
        "arms": list(e.arms),
        "retired": list(e.retired),
        "feedback": history.feedback,
        "display": history.display,
        "order": e.order,
        "window": None if history.window is None else str(history.window),
        "error": e.error,
        "leader": e.arms[e.leader],
        "winner": None if e.winner is None else e.arms[e.winner],
        "candidates": [e.arms[arm] for arm in np.flatnonzero(e.candidates)],
        "guarantee": {"kind": e.guarantee.kind, "rests_on": e.guarantee.words},
        "delays": e.delay_words,
        "law": None if e.law is None else str(e.law),
        "position": None if position is None else position._asdict(),
        "units": e.repeated._asdict(),
        "bad_rows": list(history.skipped),
        "notes": list(e.notes),
        "doubts": [doubt.name for doubt in e.doubts],
    }
    for name, content in tables(e).items():
        data["tests" if name == "assumptions" else f"{name}_table"] = _records(content)
    return data


def _records(content: Table) -> list[dict[str, Any]]:
    rows = zip(*content.values(), strict=True)
    return [dict(zip(content, map(_known, row), strict=True)) for row in rows]


def _known(value: Any) -> Any:
    """A number as JSON knows it: None for nan and infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _end(value: float) -> float:
    """An end of an interval, between 0 and 1."""
    return float(min(max(value, 0.0), 1.0))


def compose(e: Estimate, drawn: set[str]) -> str:
    """Return the page as Markdown."""
    history = e.history
    heard = int(history.is_heard.sum())
    span = ""
    if history.at is not None and history.n:
        start, end = (np.datetime64(int(t), "s") for t in (history.at[0], history.now or 0))
        span = f", from {start} to {end} (UTC)"
    parts = [
        "# What the log says",
        f"**{in_markdown(e.headline)}.**",
        f"{_some(history.n, e.unit)} of {history.n_arms} arms, {_some(heard, 'answer')} "
        f"({history.feedback}){span}. {_sentence(e.how_sure)}",
        *(_of_preferences(e, drawn) if e.rates is None else _of_rates(e, drawn)),
    ]
    if e.position is not None:
        low, high = (e.position.bonus + s * 1.96 * e.position.error for s in (-1, 1))
        parts.append(
            f"Being shown first adds {e.position.bonus:+.3f} [{low:+.3f}, {high:+.3f}] to the "
            "chance of winning."
        )
    parts += ["## Delays", _sentence(e.delay_words),
              *_picture("delays", drawn, "The share of answers that has come, by age")]  # fmt: skip
    if e.delays is not None and e.delays.fits:
        parts.append(_laws_table(e))
    if "evidence" in drawn:
        parts += ["## Evidence", *_picture("evidence", drawn, "Evidence for each arm over time")]
    if "traffic" in drawn:
        parts += ["## Traffic", *_picture("traffic", drawn, "Duels and answers over time")]
    parts += ["## Assumptions", *(in_markdown(f"Worth a look: {note}") for note in e.notes)]
    parts += [_findings(e)]
    if e.repeated.units:
        parts += [
            "## Units",
            f"{e.repeated.units:,} units. {e.repeated.duels:,} duels, and "
            f"{e.repeated.answers:,} answers, are of a unit that had met the pair before: each "
            "unit counts once a pair.",
        ]
    if history.skipped:
        lines = [f"- {in_markdown(words)}" for words in history.skipped[:_MAX_ROWS]]
        more = len(history.skipped) - len(lines)
        parts += [f"## Bad rows\n\n{len(history.skipped):,} were left out.", "\n".join(lines)]
        parts += [f"... and {more:,} more."] if more > 0 else []
    parts.append(f"Made by duelay {__version__}; estimate.json and the tables have every number.")
    return "\n\n".join(parts) + "\n"


def _of_preferences(e: Estimate, drawn: set[str]) -> list[str]:
    """Return the parts of the page on the ranking and on each pair."""
    return [
        *_picture("leader", drawn, "How often the leader beats each other arm, with intervals"),
        "## Ranking",
        _markdown(_ranking(e), ("rank", "arm", "leader_beats_it", "lower", "upper", "naive",
                                "beats", "chance_to_be_best", "duels")),
        "*Leader beats it* is how often; *naive* is the same if silence were a win of the second "
        "(of votes: as they stand). *Beats* counts an even or unheard pair as one half. *Chance to "
        "be best* is an opinion, not a guarantee; what is missing from 1 is the chance that no arm "
        "beats all others.",
        *map(_sentence, e.caveats),
        "## Preferences",
        *_picture("preferences", drawn, "How often the row's arm beats the column's"),
        _markdown(_preferences(e)),
    ]  # fmt: skip


def _of_rates(e: Estimate, drawn: set[str]) -> list[str]:
    """Return the same parts, where one arm was shown at a time."""
    return [
        *_picture("leader", drawn, "The leader's lift over each other arm, with intervals"),
        "## Rates",
        _markdown(_rates(e), ("rank", "arm", "shown", "conversions", "rate", "rate_lower",
                              "rate_upper", "chance_to_be_best")),
        "*Rate* is the share of the visitors whose window has closed that converted in time; all "
        "intervals of rates hold together. *Chance to be best* is an opinion, not a guarantee.",
        *map(_sentence, e.caveats),
        "## Lift",
        _markdown(_lifts(e)),
        "*Lift* is how much higher the conversion rate of the first arm is: 0.2 for 12 % against "
        "10 %. It compares conversions of visitors who came at the same time, and needs no window. "
        "All intervals of lifts hold together. They count every conversion of the log, so they may "
        "be narrower than those of a live standing, which count booked conversions only.",
    ]  # fmt: skip


def _sentence(words: str) -> str:
    return in_markdown(words[:1].upper() + words[1:]) + "."


def _some(n: int, what: str) -> str:
    return f"{n:,} {what if n == 1 else what + 's'}"


def _picture(name: str, drawn: set[str], words: str) -> list[str]:
    return [f"![{words}](figures/{name}.svg)"] if name in drawn else []


def _laws_table(e: Estimate) -> str:
    assert e.delays is not None
    rows = [
        [fit.name, in_code(str(fit.law)), f"{fit.aic - e.delays.fits[0].aic:,.1f}",
         f"{100 * fit.never:.3g} %", f"{fit.distance:.3f}", "yes" if fit.fits else "no"]
        for fit in e.delays.fits
    ]  # fmt: skip
    head = ["family", "law", "AIC above the best", "never", "furthest from the curve", "close"]
    half = e.delays.curve.quantile(0.5 * (1.0 - e.delays.curve.never))
    middle = in_brief(float(half)) if e.delays.in_time else f"{half:,.0f} ticks"
    return f"Half of the answers that came, came within {middle}.\n\n" + _lay(head, rows)


def _findings(e: Estimate) -> str:
    rows = []
    for finding in sorted(e.findings, key=lambda f: not f.is_alarm):
        p = "-" if math.isnan(finding.p_value) else f"{finding.p_value:.2g}"
        name = f"**{finding.name}**" if finding.is_alarm else finding.name
        rows.append([name, p, f"{finding.n:,}", in_markdown(finding.sentence)])
    return _lay(["test", "p", "n", ""], rows)


def _markdown(content: Table, names: Sequence[str] = ()) -> str:
    """A table on the page: its first rows."""
    names = names or list(content)
    shown = list(zip(*(content[name] for name in names), strict=True))[:_MAX_ROWS]
    rows = [[_cell(value) for value in row] for row in shown]
    more = len(next(iter(content.values()))) - len(rows)
    tail = f"\n\n... and {more:,} more rows in the files." if more > 0 else ""
    return _lay([name.replace("_", " ") for name in names], rows) + tail


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "" if not math.isfinite(value) else f"{value:.3f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) else in_markdown(str(value))


def _write_table(content: Table, path: Path) -> list[Path]:
    """Write a table as CSV and as Parquet."""
    import csv

    import pyarrow as pa
    import pyarrow.parquet as pq

    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(content)
    for row in zip(*content.values(), strict=True):
        writer.writerow(["" if _known(v) is None else in_cell(v) if isinstance(v, str) else v
                         for v in row])  # fmt: skip
    table, binary = pa.table(content), io.BytesIO()
    pq.write_table(table, binary)
    files = [path.with_suffix(".csv"), path.with_suffix(".parquet")]
    write_whole(files[0], lines.getvalue().encode())
    write_whole(files[1], binary.getvalue())
    return files
