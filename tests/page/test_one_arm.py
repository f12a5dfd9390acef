"""The page of an A/B test speaks of visitors, in every state."""

import re

import pytest

from duelay.live import Experiment
from duelay.page import render
from duelay.page.build import build_experiment, build_list
from duelay.page.diagnostics import diagnose
from duelay.page.duel_log import read_log
from duelay.page.report import report
from live.hours import Hours

pytestmark = pytest.mark.interpreted


def words_of(html):
    """What a reader of a page sees, hover texts included; what a program reads is left out."""
    html = re.sub(r"<(script|style|code)\b.*?</\1>", "", html, flags=re.S)
    titles = " ".join(re.findall(r'(?:title|aria-label)="([^"]*)"', html))
    return re.sub(r"<[^>]*>", " ", html) + titles


def check_words(experiment, url, hours):
    view, viewer = build_experiment(experiment), render.Viewer(may_change=True)
    standing = experiment.standing()
    said = [
        words_of(render.experiment_part(view, diagnose(experiment), viewer)),
        words_of(render.log_page(view, read_log(experiment)[0], {}, "", viewer)),
        render.summary_picture(view),
        standing.summary.text,
        *standing.warnings,
        standing.headline,
        str(standing),
        "\n".join(map(str, standing.guardrails)),
        *(event.words for event in view.events),
        *(one.words for one in build_list(experiment.store, clock=hours)),
    ]
    for words in said:
        found = re.search(r".{0,60}\bduels?\b.{0,60}", words.replace("duelay", ""), re.S)
        assert found is None, found
    return "\n".join(said)


def test_no_state_of_an_ab_test_speaks_of_duels(url):
    hours = Hours()
    experiment = Experiment.create(
        url, "x", ["red", "green"], display="one", clock=hours, window="1h", budget=40,
        guardrails={"refund": {"bound": 0.1, "within": "30m"}},
    )  # fmt: skip
    assert "No visitor has come yet" in check_words(experiment, url, hours)
    ids = []
    for k in range(12):
        ids.append(experiment.ask(unit=f"v{k}").id)
        hours.pass_by(60)
    assert "None of 12 visitors has converted yet" in check_words(experiment, url, hours)
    experiment.pause()
    check_words(experiment, url, hours)
    experiment.resume()
    experiment.hold_booking()
    check_words(experiment, url, hours)
    experiment.release_booking()
    for id in ids[::2]:
        experiment.tell(id)
        experiment.tell(id, metric="refund")
    check_words(experiment, url, hours)
    while experiment.ask().id is not None:
        hours.pass_by(60)
    assert "Undecided" in check_words(experiment, url, hours)
    experiment.finish("green")
    check_words(experiment, url, hours)


def test_the_report_has_the_alarms_of_its_own_tests(url):
    """A program that writes a report and has run no test before must not leave an alarm out."""
    hours = Hours()
    experiment = Experiment.create(url, "x", ["red", "green"], display="one", clock=hours)
    for _ in range(300):
        duel = experiment.ask()
        hours.pass_by(60)
        if duel.arm == "green":  # red is told hours later
            experiment.tell(duel)
        else:
            experiment.tell(duel, at=hours.now - 59)
    words = words_of(report(experiment))
    assert "Something is off" in words.partition("Assumptions")[0]


def test_diagnostics_say_how_old_they_are(url):
    hours = Hours()
    experiment = Experiment.create(url, "x", ["red", "green"], display="one", clock=hours)
    checked = diagnose(experiment)
    for _ in range(20):
        experiment.ask()
    part = words_of(render.experiment_part(build_experiment(experiment), checked, render.Viewer()))
    assert "no duel" not in part and "from 0 visitors" in part and "there are 20 visitors" in part
