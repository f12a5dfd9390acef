"""The page of an A/B test speaks of visitors, in every state."""

import re

import numpy as np
import pytest

from duelay.assumptions import Finding
from duelay.live import Experiment
from duelay.live.standing import LiveStanding, StandingReport
from duelay.live.summary import Summary
from duelay.page import render
from duelay.page.build import build_experiment, build_list
from duelay.page.diagnostics import diagnose
from duelay.page.duel_log import read_log
from duelay.page.report import picture, report, write_report
from duelay.page.slide import draw_slide
from live.hours import Hours
from page.browsers import PHONE

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
        found = re.search(
            r".{0,60}\b(duels?|Duels with\w*)\b.{0,60}", words.replace("duelay", ""), re.S
        )
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


def test_where_no_winner_can_be_found_the_advice_names_what_the_page_has(harmful, monkeypatch):
    """Most visitors convert, and that is no doubt, either: half is no bound of a rate."""
    monkeypatch.setattr(LiveStanding, "harms", ())
    assert harmful.standing().warnings == ()
    monkeypatch.setattr(LiveStanding, "duels_left", None)
    words = build_experiment(harmful).advice.words
    assert "may never be declared" in words and "lifts" in words and "matrix" not in words


def test_of_arms_that_do_not_differ_the_slide_and_the_table_prefer_none(url):
    hours = Hours()
    experiment = Experiment.create(
        url, "x", ["red", "green"], display="one", clock=hours, margin=0.1, window="2h"
    )
    rng = np.random.default_rng(3)
    while (shown := experiment.ask()).id is not None:
        hours.pass_by(60)
        if rng.random() < 0.9:
            experiment.tell(shown)
    hours.pass_by(3 * 3600)
    assert experiment.standing().verdict == "equivalent"
    slide = picture(experiment)
    assert "Loss" not in slide and 'font-weight="600">\u2068green' not in slide
    assert slide.count('fill="#1b6e42"') == 1  # the edge, and no bar
    assert "a verdict is wrong" in slide and "declared winner is wrong" not in slide
    experiment.finish("red")
    headline = experiment.standing().summary.headline
    assert headline == "No difference that matters: red is shown to everybody"
    table = words_of(report(experiment)).partition("Arms by rank")[2].partition("Evidence")[0]
    assert "Chance" not in table


LONG = "a headline with a long name that says it all"


@pytest.fixture(scope="module")
def harmful(tmp_path_factory):
    """Arms that are close, one of which leads to refunds."""
    path, hours = tmp_path_factory.mktemp("harmful") / "duels.db", Hours()
    experiment = Experiment.create(
        path, "x", ["green", LONG], display="one", clock=hours, window="1h",
        guardrails={"refund": {"bound": 0.1, "within": "10m"}},
    )  # fmt: skip
    rng = np.random.default_rng(3)
    experiment.writer._selector.rng = np.random.default_rng(0)
    for _ in range(90):
        duel = experiment.ask()
        hours.pass_by(60)
        if rng.random() < 0.8:
            experiment.tell(duel)
        if duel.arm == LONG and rng.random() < 0.9:
            experiment.tell(duel, metric="refund")
    hours.pass_by(3700)
    experiment.settle()
    yield experiment
    experiment.close()


def test_a_guard_rail_that_alarms_is_on_the_slide_and_in_the_summary(harmful):
    summary = harmful.standing().summary
    assert len(summary.harms) == 1 and "refund" in summary.harms[0] and LONG in summary.harms[0]
    assert "Guard-rail, refund" in summary.text
    assert Summary.from_json(summary.to_json()) == summary
    assert "Guard-rail, refund" in picture(harmful) and "#a63a00" in picture(harmful)


def test_of_arms_that_are_close_no_lift_is_stated(harmful):
    """The rates of all visitors may be in the other order, and then two numbers contradict."""
    summary = harmful.standing().summary
    gap = summary.difference
    assert summary.state == "close" and gap.lower < 0 < gap.upper and not gap.is_stated
    assert gap.amount not in summary.text.replace(gap.ends, "")
    assert " may be from " in summary.text
    page = words_of(report(harmful))
    assert "no clear difference" in page and gap.amount not in page.partition("Arms")[0]
    assert "may be from" in re.sub(r"<[^>]*>", " ", picture(harmful))


def test_a_slide_with_doubts_makes_no_promise(harmful):
    finding = Finding("delay by winner", 9.0, 1e-9, 100, True, "Answers take longer for some arms.")
    for alarms in ((), (finding,)):
        slide = draw_slide(StandingReport.of(harmful.standing().with_alarms(alarms)))
        assert ("is wrong in at most" in slide) == (not alarms)


def test_no_bar_of_a_slide_covers_another(harmful):
    words = (
        "Most conversions of one of the arms came at another time than those of the others. " * 5
    )
    finding = Finding("preference drift", 9.0, 1e-9, 100, True, words)
    slide = draw_slide(StandingReport.of(harmful.standing().with_alarms((finding,))))
    bars = [float(y) for y in re.findall(r'<rect x="390" y="([\d.]+)" width="500"', slide)]
    texts = [float(y) for y in re.findall(r'y="([\d.]+)" font-size="24"', slide)]
    assert texts and bars[0] > max(texts) + 24
    assert np.diff(bars).tolist() == [36.0]  # there is room where numbers are left out


def test_without_traffic_the_advice_and_the_time_left_agree(harmful):
    clock = harmful.writer.clock._own
    before = clock.now
    try:
        clock.pass_by(5 * 3600)
        view = build_experiment(harmful)
        assert view.standing.summary.time_left == "no visitors have come lately"
        assert view.advice.kind == "off"  # the guard-rail comes first
    finally:
        clock.now = before


def test_on_a_phone_what_decides_is_in_sight(harmful, chromium, tmp_path):
    file = write_report(harmful, tmp_path / "page.html")
    tab = chromium.new_page(viewport=PHONE)
    tab.goto(file.as_uri())
    for table in ("#arms-table", "#guardrail-1"):
        for row in tab.locator(f"{table} tbody tr").all():
            box = row.locator(".range").first.bounding_box()
            assert box["x"] + box["width"] <= PHONE["width"], table
        boxes = [head.bounding_box() for head in tab.locator(f"{table} thead th").all()]
        highest = max(box["height"] for box in boxes if box is not None)
        assert highest < 80, table  # no word is broken into letters
    tab.close()
