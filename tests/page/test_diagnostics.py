"""Diagnostics: delays and tests of assumptions."""

import math

import numpy as np
import pytest

from duelay.live import Experiment
from duelay.page import render
from duelay.page.build import build_experiment
from duelay.page.diagnostics import diagnose
from live.hours import Hours, browser
from page.million import fill, numbers_of

MU = np.array([[0.5, 0.55, 0.6], [0.45, 0.5, 0.55], [0.4, 0.45, 0.5]])


def test_the_curve_is_that_of_the_delays_with_its_band(url):
    """Delays are exponential with a mean of an hour, and a fifth never comes."""
    checked = diagnose(fill(url, n=20_000, k=3, days=10.0))
    chart = checked.delays
    lines = {line.role: np.array(line.values) for line in chart.lines}
    truth = 0.8 * (1.0 - np.exp(-np.array(chart.x) / 3600.0))
    assert (lines["low"] <= lines["total"]).all() and (lines["total"] <= lines["high"]).all()
    assert np.mean((lines["low"] - 0.01 <= truth) & (truth <= lines["high"] + 0.01)) > 0.9
    assert checked.never == pytest.approx(0.2, abs=0.04)
    assert checked.half == pytest.approx(3600 * math.log(2), rel=0.1)
    assert checked.within == chart.x[-1] and chart.x_kind == "age" and checked.of == 20_000


def test_what_will_still_come_is_about_what_comes(url):
    """By the true law: exponential with a mean of ten minutes, and a fifth never comes."""
    hours = Hours()
    experiment = Experiment.create(url, "x", ["a", "b", "c"], clock=hours, window="1d", error=1e-6)
    browser(experiment, hours, 800, MU, every=2.0, mean=600.0)
    checked = diagnose(experiment)
    low, middle, high = checked.still
    pending = [r for r in numbers_of(experiment) if r["told"] is None]
    ages = np.array([hours.now - r["asked"] / 1e6 for r in pending])
    tau = 0.8 * (1.0 - np.exp(-ages / 600.0))
    expected = float((0.5 * (0.8 - tau) / (1.0 - 0.5 * tau)).sum())
    assert low <= expected <= high and low <= middle <= high <= len(pending)


def test_each_test_has_its_sentence(url):
    checked = diagnose(fill(url, n=3000, k=3, days=10.0))
    assert {test.name for test in checked.tests} == {
        "order balance", "delay by winner", "preference drift", "independence", "share by arm",
    }  # fmt: skip
    assert 0 < sum(test.level for test in checked.tests) < 0.05  # at one of many looks
    for test in checked.tests:
        assert test.sentence and test.level > 0
        assert test.p_value is None or 0 <= test.p_value <= 1
        assert test.is_remark == (test.name == "share by arm")
        assert test.p_value is None or test.is_alarm == (test.p_value < test.level)


def test_a_failed_assumption_alarms_first_and_is_what_is_off(url):
    experiment = fill(url, n=3000, k=3, days=10.0, swaps=False)
    checked = diagnose(experiment)
    assert checked.tests[0].name == "order balance" and checked.tests[0].is_alarm
    is_alarm = [test.is_alarm for test in checked.tests]
    assert is_alarm == sorted(is_alarm, reverse=True)
    view = build_experiment(experiment)
    assert view.advice.kind == "off" and "order balance" in view.advice.words
    assert "doubtful: order balance" in view.standing.headline


def test_before_any_duel_and_before_any_answer_nothing_is_known(url):
    hours = Hours()
    experiment = Experiment.create(url, "x", ["a", "b"], clock=hours, window="1h")
    checked = diagnose(experiment)
    assert checked.delays is None and checked.still is None and checked.never is None
    assert [test.name for test in checked.tests] == ["too early"]
    browser(experiment, hours, 30, MU, never=1.0)
    checked = diagnose(experiment)
    assert checked.delays is None and checked.delay_words and checked.of == 30


def test_where_one_arm_is_shown_no_share_that_never_comes_is_stated(url):
    hours = Hours()
    experiment = Experiment.create(
        url, "x", ["red", "green"], clock=hours, window="3h", display="one", error=1e-9
    )
    browser(experiment, hours, 700, [[0.3, 0.3], [0.5, 0.5]])
    checked, view = diagnose(experiment), build_experiment(experiment)
    assert checked.never is None and "do not come" not in checked.delay_words
    assert checked.delay_words.startswith("Of the conversions that come within")
    assert checked.delays.lines[-1].values[-1] == 1.0 and len(checked.delays.lines) == 1
    assert "share by arm" not in {test.name for test in checked.tests}
    words = render.experiment_page(view, checked, render.Viewer())
    for shown in ("no window has closed", "700"):
        assert shown in words or shown.replace("&#39;", "'") in words, shown
    for hidden in ("Who beats whom", "Won as first", "The leader beats it", "Not within"):
        assert hidden not in words, hidden
    assert "visitors" in view.standing.headline and "duel.arm" in words
    hours.pass_by(4 * 3600)
    experiment.settle()
    words = render.experiment_page(build_experiment(experiment), checked, render.Viewer())
    assert "no window has closed" not in words
