"""Plans of a service: what they take, how long they may take, and who waits for them."""

import asyncio
import json
import sys

import pytest
from starlette.requests import ClientDisconnect

from duelay.errors import InvalidValueError
from duelay.planning import plan
from duelay.planning.report import PlanReport
from duelay.service import planner
from duelay.service.errors import RefusedError
from service.browser_client import Browser

SAID = {"rates": ["30%", "60%"], "visitors_per_day": 60, "horizon": "2w"}
FORM = {
    "display": "one", "arms": "red\ngreen", "window": "14d", "margin": "50%", "plan-visitors": "60",
    "plan-rates": "30, 60", "plan-delay": "1h", "feedback": "conversions", "end": "equivalent",
}  # fmt: skip
READS_AND_WAITS = "import sys, time; sys.stdin.read(); time.sleep(3600)"


@pytest.fixture(scope="module")
def report():
    return PlanReport.of(plan(**SAID, runs=2, progress=False))


@pytest.fixture
def asked(monkeypatch, report):
    """What is simulated, as a list; nothing is."""
    found = []

    async def simulate(said, is_gone):
        found.append(said)
        return report

    monkeypatch.setattr(planner, "simulate", simulate)
    return found


async def here():
    return False


async def gone():
    return True


def use_process(monkeypatch, code):
    """Let a plan be made by another program; return the processes that are started."""
    started, start = [], asyncio.create_subprocess_exec

    async def noted(*args, **options):
        started.append(await start(*args, **options))
        return started[-1]

    monkeypatch.setattr(planner, "_WORKER", (sys.executable, "-c", code))
    monkeypatch.setattr(planner.asyncio, "create_subprocess_exec", noted)
    return started


def test_a_plan_is_that_of_the_library_and_is_made_by_another_process(report):
    found = asyncio.run(planner.Planner().plan({**SAID, "runs": 2}, here))
    assert (
        found == report and PlanReport.from_json(json.loads(json.dumps(found.to_json()))) == found
    )


def test_other_requests_are_answered_while_a_plan_is_made(monkeypatch, report, tmp_path):
    answer = json.dumps(report.to_json())
    goes_on = tmp_path / "goes on"
    code = (
        "import sys, time, pathlib; sys.stdin.read()\n"
        f"while not pathlib.Path({str(goes_on)!r}).exists(): time.sleep(0.01)\n"
        f"print({answer!r})"
    )
    use_process(monkeypatch, code)

    async def both():
        task = asyncio.create_task(planner.Planner().plan(SAID, here))
        await asyncio.sleep(0)  # anything else that the server does
        assert not task.done()
        goes_on.touch()  # what the plan waits for: it would wait for ever if it held up the loop
        return await task

    assert asyncio.run(both()) == report


def test_a_caller_who_goes_away_ends_the_simulation(monkeypatch):
    started = use_process(monkeypatch, READS_AND_WAITS)
    answers = iter([False, True])

    async def goes():
        return next(answers)

    monkeypatch.setattr(planner, "_POLL_INTERVAL", 0.01)
    with pytest.raises(ClientDisconnect):
        asyncio.run(planner.Planner().plan(SAID, goes))
    (process,) = started
    assert process.returncode not in (None, 0)
    with pytest.raises(ClientDisconnect):  # one who is gone before: nothing is started
        asyncio.run(planner.Planner().plan(SAID, gone))
    assert len(started) == 1


def test_a_simulation_that_takes_too_long_is_ended_and_said(monkeypatch):
    started = use_process(monkeypatch, READS_AND_WAITS)
    monkeypatch.setattr(planner, "_LIMIT", 0.05)
    with pytest.raises(RefusedError, match="too long") as caught:
        asyncio.run(planner.Planner().plan(SAID, here))
    assert caught.value.status == 503 and started[0].returncode not in (None, 0)


def test_a_simulation_that_fails_is_an_error_of_the_server(monkeypatch, caplog):
    use_process(monkeypatch, "import sys; sys.exit('no memory')")
    with pytest.raises(RefusedError, match="failed"):
        asyncio.run(planner.Planner().plan(SAID, here))
    assert "no memory" in caplog.text


def test_one_plan_is_made_at_a_time_and_few_wait(monkeypatch, report):
    running, most, ends = 0, 0, asyncio.Event()

    async def simulate(said, is_gone):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await ends.wait()
        running -= 1
        return report

    monkeypatch.setattr(planner, "simulate", simulate)

    async def several():
        there = planner.Planner()
        tasks = [asyncio.create_task(there.plan(SAID, here)) for _ in range(planner._MAX_WAITING)]
        while there._n_waiting < planner._MAX_WAITING or not running:
            await asyncio.sleep(0.001)
        with pytest.raises(RefusedError) as caught:
            await there.plan(SAID, here)
        ends.set()
        await asyncio.gather(*tasks)
        assert there._n_waiting == 0
        return caught.value

    refused = asyncio.run(several())
    assert refused.status == 503 and refused.headers["Retry-After"] and most == 1


def test_the_work_of_a_plan_is_limited(asked):
    def made(**said):
        asyncio.run(planner.Planner().plan({**SAID, **said}, here))
        return asked[-1]["runs"]

    assert made() == planner.MAX_RUNS and made(runs=7) == 7 and made(runs=5000) == planner.MAX_RUNS
    visitors = planner.MAX_VISITORS / 14 / 50  # of a day: fifty runs of two weeks
    assert made(visitors_per_day=visitors) in (49, 50)
    with pytest.raises(InvalidValueError) as caught:
        made(visitors_per_day=2 * visitors)
    assert caught.value.argument == "visitors_per_day"


def test_a_plan_over_http_is_the_report_of_the_plan(client, asked, report):
    found = client.post("/plan", json={"rates": [0.3, "60%"], "visitors_per_day": 60})
    assert found.status_code == 200 and found.json() == report.to_json()
    assert asked[0]["rates"] == [0.3, "60%"] and asked[0]["window"] == "14d"
    assert client.post("/plan", json={"preferences": 0.1, "visitors_per_day": 9}).status_code == 200


@pytest.mark.parametrize(
    "said, named",
    [
        ({"rates": [0.3, 1.5]}, "rates"),
        ({"rates": [0.3]}, "rates"),
        ({"rates": [0.1, 0.2], "preferences": 0.1}, "rates"),
        ({"preferences": "duels.csv"}, "preferences"),  # no file of the server is read
        ({"preferences": [[0.5] * 11] * 11}, "preferences"),
        ({"rates": [0.1, 0.2], "delay": "geometric:0.1"}, "delay"),
        ({"rates": [0.1, 0.2], "horizon": "-1d"}, "horizon"),
        ({"rates": [0.1, 0.2], "add_arm_at": "1d"}, "add_arm_at"),
        ({"rates": [0.1, 0.2], "feedback": "votes"}, "feedback"),
        ({"rates": [0.1, 0.2], "visitors_per_day": 1e9}, "horizon"),
    ],
)
def test_what_cannot_be_planned_is_a_sentence_that_names_it(client, asked, said, named):
    found = client.post("/plan", json={"visitors_per_day": 60, **said})
    assert found.status_code == 422 and named in found.json()["error"] and not asked


# The form of the page.


@pytest.fixture
def browser(client):
    return Browser(client, "http://localhost")


def test_the_form_plans_the_experiment_that_it_describes(browser, asked):
    found = browser.post("/new/plan", **FORM)
    assert found.status_code == 200 and 'id="plan-table"' in found.text
    assert found.text.count('class="picture"') == 2
    for value in ('value="60"', 'value="30, 60"', "red\ngreen</textarea>"):
        assert value in found.text  # what was typed is still there
    assert asked[0] == {
        "visitors_per_day": 60.0, "window": "14d", "margin": "50%", "end": "equivalent",
        "feedback": "conversions", "delay": "log-normal:1h,1", "rates": ["30%", "60%"],
        "runs": planner.MAX_RUNS,
    }  # fmt: skip
    assert browser.client.get("/experiments?search=green").json()["experiments"] == []


def test_two_arms_at_a_time_are_planned_with_their_share_of_answers(browser, asked):
    form = FORM | {"display": "pair", "plan-prefer": "60", "plan-answers": "75", "margin": "0.05",
                   "arms": "red\ngreen\nblue", "feedback": "votes"}  # fmt: skip
    assert browser.post("/new/plan", **form).status_code == 200
    said = asked[0]
    assert said["delay"] == "never:0.25,(log-normal:1h,1)" and said["feedback"] == "votes"
    assert said["preferences"] == [[0.5, 0.6, 0.6], [0.4, 0.5, 0.5], [0.4, 0.5, 0.5]]


@pytest.mark.parametrize(
    "field, value, place",
    [
        ("plan-visitors", "", "visitors"),
        ("plan-visitors", "many", "visitors"),
        ("plan-visitors", "1e9", "visitors"),
        ("plan-rates", "5", "rates"),
        ("plan-rates", "5, 600", "rates"),
        ("plan-delay", "soon", "delay"),
        ("plan-delay", "never:0.5,exponential:1h", "delay"),
        ("margin", "much", "margin"),
        ("window", "x", "window"),
        ("feedback", "votes", ""),
    ],
)
@pytest.mark.parametrize("is_part", [True, False])
def test_what_is_wrong_is_said_beside_its_field(browser, asked, field, value, place, is_part):
    headers = {"HX-Request": "true"} if is_part else {}
    found = browser.post("/new/plan", headers=headers, **FORM | {field: value})
    assert found.status_code == (200 if is_part else 422) and not asked
    assert found.text.lstrip().startswith("<!doctype html>") != is_part
    if not place:
        assert 'role="alert"' in found.text
        return
    begin = found.text.index(f'id="wrong-{place}"')
    (said, *_) = found.text[begin:].split(">", 1)[1].split("</p>")
    assert said.strip()


def test_the_form_of_a_plan_needs_its_token(browser, asked):
    assert browser.post("/new/plan", token="", **FORM).status_code == 403 and not asked
