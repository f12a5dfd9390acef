"""Diagnostics of an experiment: its delays, and tests of the assumptions of its policy.

They are computed from the rows of the latest duels, which takes about a second.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from duelay._core.duration import in_brief
from duelay.delays import Law
from duelay.delays.fitted_laws import DelayEstimate
from duelay.estimates.delays import describe_curve, find_delays
from duelay.inference.alarms import FEWEST, REMARKS, find_all, levels_of
from duelay.live import Experiment
from duelay.logs.history import History
from duelay.page.charts.series import list_values
from duelay.page.incremental import reader_of
from duelay.page.view_models import Chart, Diagnostics, Line, TestResult

_MAX_DUELS = 100_000
_MAX_DUELS_TIMES_ARMS = 6_000_000  # the tests make a table of this size
_POINTS_PER_CURVE = 100
_Z_95 = 1.96  # standard errors of a 95 % interval
_LOG_RATIO = 20.0  # if the last age is so many times the middle one, most points are at low ages


def diagnose(experiment: Experiment) -> Diagnostics:
    """Return the delays and the test results of the latest 100,000 duels.

    Alarms among them appear in every later `duelay.page.build.build_experiment`.
    """
    history = experiment.latest(min(_MAX_DUELS, _MAX_DUELS_TIMES_ARMS // len(experiment.arms)))
    unit = "visitors" if history.display == "one" else "duels"
    found, why = (None, f"nothing is known of the delays: there were no {unit} to look at")
    if history.n:
        found, why = find_delays(history)
    curve = None if found is None else found.curve
    checked = Diagnostics(
        at=experiment.now(),
        of=history.n,
        delays=None if found is None else _make_delay_chart(found, history),
        never=None if curve is None or history.display == "one" else float(curve.never),
        within=None if found is None else float(found.learned.last),
        half=None if curve is None else _median_age(curve),
        still=None if found is None else _count_still_to_come(found, history),
        delay_words=_describe_delays(found, why, history),
        tests=_run_tests(history),
    )
    reader_of(experiment).checked = checked
    return checked


def _describe_delays(found: DelayEstimate | None, why: str, history: History) -> str:
    """Return a sentence on the delays; none on the share that never answers, if one arm is shown.

    That share is not known then: a silent visitor may not have wanted to convert.
    """
    if found is None:
        return _sentence(why)
    if history.display == "pair":
        return _sentence(describe_curve(found))
    half, last = (in_brief(age) if age is not None else "" for age in
                  (_median_age(found.curve), found.learned.last))  # fmt: skip
    return _sentence(f"of the conversions that come within {last}, half take {half} or longer")


def _median_age(curve: Law) -> float | None:
    """Return the age by which half of those answers have come that ever come; None if unknown."""
    age = float(curve.quantile(0.5 * (1.0 - curve.never)))
    return age if math.isfinite(age) else None


def _make_delay_chart(found: DelayEstimate, history: History) -> Chart:
    learned = found.learned
    place = np.searchsorted(learned.tau, 0.5 * learned.tau[-1])
    middle = float(learned.ages[min(place, learned.ages.size - 1)])
    ages = np.linspace(0.0, learned.last, _POINTS_PER_CURVE)
    if learned.last > _LOG_RATIO * middle > 0:
        ages = np.append(
            0.0, np.geomspace(middle / _LOG_RATIO, learned.last, _POINTS_PER_CURVE - 1)
        )
    tau, error = learned.at(ages)
    low, high = (np.clip(tau + sign * _Z_95 * error, 0.0, 1.0) for sign in (-1, 1))
    answers = "votes" if history.feedback == "votes" else "conversions"
    words = (
        f"The share of the {answers} that has come by each age of a duel, with a 95 % band. The "
        "rest up to 100 % has not come by the last age."
    )
    lines: tuple[Line, ...] = (
        Line("low", list_values(low), "low"),
        Line("high", list_values(high), "high"),
        Line("has come", list_values(np.clip(tau, 0.0, 1.0)), "total"),
    )
    if history.display == "one":  # known up to a factor: the share of those that come by the end
        tau = np.clip(tau / max(float(tau[-1]), 1e-9), 0.0, 1.0)
        words = "Of the conversions that come by the last age, the share that has come by each age."
        lines = (Line("has come", list_values(tau), "total"),)
    return Chart(
        "delays",
        "How long answers take",
        words,
        tuple(ages.tolist()),
        lines,
        x_kind="age",
        y_kind="share",
    )


def _count_still_to_come(found: DelayEstimate, history: History) -> tuple[float, float, float]:
    """Return how many answers are still to come of the open duels: low, middle, high.

    A duel that is silent at age a will be answered with probability
    chance (tau(end) - tau(a)) / (1 - chance tau(a)). The end is that of its window, or of the
    learned curve. The interval takes in the error of tau(end), and the play of chance.
    """
    learned, chance = found.learned, float(found.chance)
    two = history.first != history.second
    ages = history.ages[two & ~history.is_heard]
    end = learned.last if history.window is None else min(float(history.window), learned.last)
    ages = ages[ages <= (math.inf if history.window is None else float(history.window))]
    (last, error), now = learned.at(end), np.clip(learned.at(ages)[0], 0.0, 1.0)

    def expect(share: float) -> NDArray[np.float64]:
        left = np.maximum(min(max(share, 0.0), 1.0) - now, 0.0)
        return np.asarray(np.minimum(chance * left / np.maximum(1.0 - chance * now, 1e-9), 1.0))

    low, middle, high = (expect(float(last + sign * _Z_95 * error)) for sign in (-1, 0, 1))
    noise = _Z_95 * math.sqrt(float((middle * (1.0 - middle)).sum()))
    return (
        max(float(low.sum()) - noise, 0.0),
        float(middle.sum()),
        min(float(high.sum()) + noise, float(ages.size)),
    )


def _run_tests(history: History) -> tuple[TestResult, ...]:
    """Return the result of each test, alarms first."""
    declared = None if history.declared is None else history.declared.tick
    levels = levels_of(history)
    found = [
        TestResult(
            finding.name,
            _sentence(finding.sentence),
            finding.is_alarm,
            None if math.isnan(finding.p_value) else float(finding.p_value),
            int(finding.n),
            finding.name in REMARKS,
            levels.get(finding.name),
        )
        for finding in (find_all(history, None, declared) if history.n else ())
    ]
    if not found:
        unit = "visitors" if history.display == "one" else "duels"
        words = f"The tests begin at {FEWEST} {unit}, and there were {history.n}."
        return (TestResult("too early", words, False, None, history.n),)
    return tuple(sorted(found, key=lambda test: (not test.is_alarm, test.is_remark)))


def _sentence(words: str) -> str:
    """Return words as a sentence."""
    return f"{words[:1].upper()}{words[1:].removesuffix('.')}."
