"""The plan on the form of a new experiment, and the cost of a further arm, in a real Chromium."""

import asyncio
import re
import threading

import numpy as np
import pytest

from duelay.delays import Duration
from duelay.live import Experiment
from duelay.planning import Plan, PlannedWorld
from duelay.planning.report import PlanReport
from duelay.planning.simulated import prepare
from live.hours import Hours, browser
from page.browsers import Served, check_looks

pytestmark = [pytest.mark.long, pytest.mark.interpreted]
MU = np.array([[0.5, 0.8], [0.2, 0.5]])


def made_plan():
    """A plan as a simulation makes it."""
    rng = np.random.default_rng(0)
    worlds = []
    for name, verdict, days in (("as stated", "winner", 8.0), ("all equal", "equivalent", 30.0)):
        ends = rng.gamma(6.0, days / 6.0, 100)
        verdicts = tuple(verdict if day <= 56 else "undecided" for day in ends)
        is_false = (rng.random(100) < 0.04) & (ends <= 56)
        ends[ends > 56] = np.inf
        arms = ("1",) * 100
        worlds.append(PlannedWorld(name, ends, verdicts, arms, is_false, 12.0 * rng.random(100)))
    return PlanReport.of(
        Plan(
            "rates 10 %, 15 %; 860 visitors a day; delay log-normal:2h,1; error 0.05; margin 20 % "
            "of the rate", Duration("8w"), (), tuple(worlds), "lost conversions",
        )
    )  # fmt: skip


class FakePlanner:
    """Checks what it is asked and notes it, and answers when it is allowed to."""

    def __init__(self):
        self.asked, self.may_answer = [], threading.Event()

    async def plan(self, said, is_gone):
        prepare(**said)
        self.asked.append(said)
        while not self.may_answer.is_set():
            await asyncio.sleep(0.01)
        return made_plan()


@pytest.fixture
def served(tmp_path):
    with Served(f"sqlite:///{tmp_path}/duels.db", clock=Hours()) as found:
        found.app.state.context.planner = FakePlanner()
        yield found


def test_the_form_says_how_long_the_experiment_will_take(look, served):
    planner = served.app.state.context.planner
    window = look(served.url)
    page = window.page
    page.goto("/")
    page.fill("#new-name", "button colour")
    page.fill("#new-arms", "green\nblue")
    page.click("text=How long will this take?")
    assert page.is_visible("#plan-prefer") and not page.is_visible("#plan-rates")
    page.check("[name=display][value=one]")
    assert not page.is_visible("#plan-prefer") and page.is_visible("#plan-rates")
    page.fill("#new-margin", "much")
    page.click("text=How long?")
    page.locator("#wrong-visitors:not(:empty)").wait_for()
    assert page.get_attribute("#plan-visitors", "aria-invalid") == "true"
    page.fill("#plan-visitors", "860")
    page.click("text=How long?")
    page.locator("#wrong-rates:not(:empty)").wait_for()
    assert not page.is_visible("#wrong-visitors")
    page.fill("#plan-rates", "10, 15")
    page.click("text=How long?")
    page.locator("#wrong-margin:not(:empty)").wait_for()
    window.keep("plan-wrong")
    page.fill("#new-margin", "20%")
    assert planner.asked == []

    page.click("text=How long?")
    page.locator("#plan-wait.htmx-request").wait_for()
    assert page.context.request.get("/experiments").json() == {"experiments": []}  # meanwhile
    window.keep("plan-waits")
    planner.may_answer.set()
    page.locator("#plan-table").wait_for()
    assert not page.is_visible("#wrong-margin") and not page.is_visible("#plan-wait")
    assert page.input_value("#plan-rates") == "10, 15"
    assert planner.asked[0]["rates"] == ["10%", "15%"] and planner.asked[0]["margin"] == "20%"
    assert page.locator("#plan-result .plot .picture").count() == 2
    assert page.input_value("#new-name") == "button colour" and page.url.endswith("/")
    assert check_looks(window, "plan") == {}
    assert window.take_troubles() == []

    page.focus("#new-name")  # Enter makes the experiment, as ever
    page.keyboard.press("Enter")
    page.wait_for_url("**/e/*")
    assert page.inner_text("h1") == "button colour"


def test_the_form_plans_without_scripts(look, served):
    served.app.state.context.planner.may_answer.set()
    page = look(served.url, java_script_enabled=False).page
    page.goto("/")
    page.fill("#new-arms", "green\nblue")
    page.click("#new-plan summary")
    page.fill("#plan-visitors", "860")
    page.fill("#plan-prefer", "60")
    page.click("text=How long?")
    page.locator("#plan-table").wait_for()
    assert page.input_value("#new-arms") == "green\nblue"
    page.fill("#plan-visitors", "none")
    page.click("text=How long?")
    assert page.locator("#wrong-visitors:not(:empty)").count() == 1


def test_an_arm_is_added_once_its_cost_is_said(look, tmp_path):
    store, hours = f"sqlite:///{tmp_path}/duels.db", Hours()
    with Experiment.create(store, "x", ["a", "b"], clock=hours, window="1h") as experiment:
        browser(experiment, hours, 150, MU, never=0.0)
        words = experiment.cost_of_arm("new").words
    assert words.startswith("new probably costs")
    with Served(store, clock=hours) as served:
        window = look(served.url)
        page = window.page
        page.goto("/e/x")
        page.fill("#add-arm", "new")
        page.press("#add-arm", "Enter")
        page.wait_for_function(
            "(words) => document.getElementById('confirm-more').textContent === words", arg=words
        )
        assert page.inner_text("#confirm-words").startswith("new: Add this arm?")
        assert check_looks(window, "arm-cost", ("color-contrast",)) == {}
        page.click("#confirm button[value=no]")
        page.fill("#add-arm", "a")
        page.press("#add-arm", "Enter")
        page.locator("#confirm-more >> text=compared already").wait_for()
        page.click("#confirm button[value=no]")
        page.fill("#add-arm", "new")
        page.press("#add-arm", "Enter")
        page.click("#confirm button[value=yes]")
        page.locator("#arms-table >> text=new").wait_for()
        given_up = re.compile("htmx:(sendAbort|afterRequest)")  # the third cost is not waited for
        assert [each for each in window.take_troubles() if not given_up.search(each)] == []
        plain = look(served.url, java_script_enabled=False).page
        plain.goto("/e/x")
        plain.click("text=What will it cost?")
        assert "further arm" in plain.inner_text(".notice")
