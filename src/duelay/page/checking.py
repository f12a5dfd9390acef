"""What takes longer to find out: the delays, and whether the assumptions of the policy hold."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from duelay.delays import Law
from duelay.delays.fitting import DelayEstimate
from duelay.estimates.notes import describe_curve, find_delays
from duelay.live import Experiment
from duelay.logs.history import History
from duelay.page.charts import values_of
from duelay.page.reading import reader_of
from duelay.page.views import Chart, Checked, Line, Test
from duelay.players.alarms import FEWEST, REMARKS, find_all, level_of

_LATEST = 100_000  # duels that are looked at ...
_NUMBERS = 6_000_000  # ... and fewer if duels times arms are more: tests make such a table
_POINTS = 100  # of the curve
_BAND = 1.96  # standard errors of a 95 % interval
_FAR = 20.0  # a last age above so many middle ones: most points then go to young ages


def check(experiment: Experiment) -> Checked:
    """Go through the latest 100,000 duels; `see` shows what was found from then on."""
    history = experiment._latest(min(_LATEST, _NUMBERS // len(experiment.arms)))
    found, why = (None, "nothing is known of the delays: no duel has been asked")
    if history.n:
        found, why = find_delays(history)
    curve = None if found is None else found.curve
    checked = Checked(
        at=float(experiment._desk.clock()),
        of=history.n,
        delays=None if found is None else _delay_chart(found, history),
        never=None if curve is None else float(curve.never),
        within=None if found is None else float(found.learned.last),
        half=None if curve is None else _half(curve),
        still=None if found is None else _still(found, history),
        delay_words=_sentence(why if found is None else describe_curve(found)),
        tests=_tests(history),
    )
    reader_of(experiment).checked = checked
    return checked


def _half(curve: Law) -> float | None:
    """The age by which half of the answers have come, of those that ever come."""
    age = float(curve.quantile(0.5 * (1.0 - curve.never)))
    return age if math.isfinite(age) else None


def _delay_chart(found: DelayEstimate, history: History) -> Chart:
    learned = found.learned
    place = np.searchsorted(learned.tau, 0.5 * learned.tau[-1])
    middle = float(learned.ages[min(place, learned.ages.size - 1)])
    ages = np.linspace(0.0, learned.last, _POINTS)
    if learned.last > _FAR * middle > 0:
        ages = np.append(0.0, np.geomspace(middle / _FAR, learned.last, _POINTS - 1))
    tau, error = learned.at(ages)
    low, high = (np.clip(tau + sign * _BAND * error, 0.0, 1.0) for sign in (-1, 1))
    answers = "votes" if history.feedback == "votes" else "conversions"
    return Chart(
        "delays",
        "How long answers take",
        f"The share of the {answers} that has come by each age of a duel, learned from what was "
        "heard, with a 95 % band. What is missing from 100 % at the end has not come by then.",
        tuple(ages.tolist()),
        (
            Line("low", values_of(low), "low"),
            Line("high", values_of(high), "high"),
            Line("has come", values_of(np.clip(tau, 0.0, 1.0)), "total"),
        ),
        x_kind="age",
        y_kind="share",
    )


def _still(found: DelayEstimate, history: History) -> tuple[float, float, float]:
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

    low, middle, high = (expect(float(last + sign * _BAND * error)) for sign in (-1, 0, 1))
    noise = _BAND * math.sqrt(float((middle * (1.0 - middle)).sum()))
    return (
        max(float(low.sum()) - noise, 0.0),
        float(middle.sum()),
        min(float(high.sum()) + noise, float(ages.size)),
    )


def _tests(history: History) -> tuple[Test, ...]:
    """Return what each test found, alarms first."""
    declared = None if history.declared is None else history.declared.tick
    level = level_of(history)
    found = [
        Test(
            finding.name,
            _sentence(finding.sentence),
            finding.is_alarm,
            None if math.isnan(finding.p_value) else float(finding.p_value),
            int(finding.n),
            finding.name in REMARKS,
            level,
        )
        for finding in (find_all(history, None, declared) if history.n else ())
    ]
    if not found:
        words = f"The tests begin at {FEWEST} duels, and {history.n} are there."
        return (Test("too early", words, False, None, history.n),)
    return tuple(sorted(found, key=lambda test: (not test.is_alarm, test.is_remark)))


def _sentence(words: str) -> str:
    """Return words as a sentence."""
    return f"{words[:1].upper()}{words[1:].removesuffix('.')}."
