"""The page over HTTP: what each address shows, to whom, and with which headers."""

import asyncio
import csv
import dataclasses
import io
import threading

import httpx
import pytest

from duelay.live import Experiment, StoreError
from duelay.page import build, diagnostics, incremental, render, view_models
from duelay.service import make_app
from duelay.service.keys import create_key, list_keys
from duelay.service.view_cache import Checks, ViewCache
from duelay.service.web.pages import _packed
from live.hours import Hours
from service.browser_client import HERE, TOKEN, Browser, sent_to
from service.served import wait_until

ARMS = ["red", "green", "blue"]
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


@pytest.fixture
def made(url, hours):
    """A store with an experiment and some duels."""
    with Experiment.create(url, "buttons", ARMS, clock=hours) as experiment:
        for n in range(12):
            duel = experiment.ask(unit=f"visitor-{n}")
            if n % 3 == 0:
                experiment.tell(duel)
    return url


@pytest.fixture
def browser(made, serve, hours):
    """Somebody with a browser; time stands, so that no check is due again and no age changes."""
    found = Browser(serve(made, clock=hours))
    room_of(found).checks.passed = hours
    return found


def room_of(browser):
    return browser.client.app.state.context


def checked(browser, name="buttons"):
    """Wait until the slow part of a page is there."""
    browser.get(f"/e/{name}")
    wait_until(lambda: room_of(browser).checks._found and not room_of(browser).checks._waiting)
    return browser


# Every view.

VIEWS = ["/", "/e/buttons", "/e/buttons/pair/0/1", "/e/buttons/pair/2/0", "/e/buttons/log",
         "/e/buttons/log?arm=1&outcome=pending&before=9", "/keys", "/words", "/login"]  # fmt: skip


@pytest.mark.parametrize("path", VIEWS)
def test_every_view_is_there_guarded_and_kept_by_nobody(browser, path):
    answered = browser.get(path)
    assert answered.status_code == 200 and answered.text.lstrip().startswith("<!doctype html>")
    assert answered.headers["content-type"] == "text/html; charset=utf-8"
    assert answered.headers["content-security-policy"] == POLICY
    assert answered.headers["x-content-type-options"] == "nosniff"
    assert answered.headers["referrer-policy"] == "same-origin"
    assert answered.headers["cache-control"] == "no-store"
    assert answered.headers["x-request-id"]


@pytest.mark.parametrize("path", VIEWS)
def test_every_view_is_there_in_both_databases(store, serve, path):
    with Experiment.create(store, "buttons", ARMS) as experiment:
        for _ in range(3):
            experiment.tell(experiment.ask())
    assert Browser(serve(store)).get(path).status_code == 200


@pytest.mark.parametrize("path", VIEWS)
def test_pages_are_compressed_for_whom_takes_it(browser, path):
    packed, plain = (
        browser.get(path),
        browser.get(path, **{"Accept-Encoding": "identity, gzip;q=0"}),
    )
    assert packed.headers["content-encoding"] == "gzip" and packed.text.endswith("</html>\n"[:7])
    assert "content-encoding" not in plain.headers
    assert int(packed.headers["content-length"]) < int(plain.headers["content-length"])


def test_addresses_of_the_page_are_no_part_of_the_description(browser):
    paths = browser.client.get("/openapi.json").json()["paths"]
    assert not [path for path in paths if path == "/" or path.startswith(("/e/", "/keys", "/new"))]


@pytest.mark.parametrize("accept", ["text/html", "*/*", "application/json", None])
def test_programs_get_json_whatever_they_accept(browser, accept):
    headers = {} if accept is None else {"Accept": accept}
    for method, path, status in (
        ("GET", "/experiments", 200),
        ("GET", "/experiments/buttons", 200),
        ("GET", "/experiments/nothing", 404),
        ("POST", "/experiments/nothing/duels", 404),
        ("PUT", "/duels/nothing/conversion", 404),
        ("GET", "/duels", 404),
        ("GET", "/experiments/a/b/c", 404),
        ("GET", "/healthz", 200),
    ):
        answered = browser.client.request(method, f"{HERE}{path}", headers=headers)
        assert answered.status_code == status
        assert answered.headers["content-type"] == "application/json", path
        assert status == 200 or list(answered.json()) == ["error"]


def test_names_are_text_and_nothing_else(url, serve):
    name, arm = "<img src=x onerror=alert(1)>", "<script>alert(1)</script>"
    with Experiment.create(url, name, [arm, '"><b>bold', "عربي"]) as experiment:
        experiment.tell(experiment.ask(unit="<i>me</i>"))
    create_key(url, "<u>key</u>", ["administer", "ask", "tell"])
    key = create_key(url, "<u>mine</u>", ["administer", "ask", "tell"])
    browser = Browser(serve(url))
    browser.sign_in(key)
    at = "/e/%3Cimg%20src%3Dx%20onerror%3Dalert%281%29%3E"
    for path in ("/", at, f"{at}/pair/0/1", f"{at}/log", "/keys", "/e/%3Cb%3Ex", "/%3Cb%3Ex",
                 "/login?next=/%22%3E%3Cb%3E"):  # fmt: skip
        text = browser.get(path).text
        for markup in ("<img src=x", "<script>alert", "<b>", "<i>", "<u>"):
            assert markup not in text, (path, markup)
    refused = browser.post("/new", name="<b>x", arms="<b>a", goal="<b>", window="<b>1")
    assert refused.status_code == 422 and "<b>" not in refused.text
    refused = browser.post(f"{at}/do", what="retire", arm="<b>x")
    assert refused.status_code == 422 and "<b>" not in refused.text


def test_the_picture_of_the_summary_is_for_whom_may_see_the_experiment(browser):
    answered = browser.get("/e/buttons/summary.svg")
    assert answered.status_code == 200 and answered.text.startswith("<svg")
    assert answered.headers["content-type"].startswith("image/svg+xml")
    assert answered.headers["content-security-policy"] == POLICY
    assert answered.headers["cache-control"] == "no-store"
    assert browser.get("/e/nothing/summary.svg").status_code == 404


# What is not there, and what is wrong.


def test_an_experiment_that_is_not_there_is_404_with_those_that_are(browser):
    for path in ("/e/button", "/e/button/log", "/e/button/pair/0/1", "/e/button/export.csv"):
        answered = browser.get(path)
        assert answered.status_code == 404 and "buttons" in answered.text
        assert answered.headers["content-security-policy"] == POLICY
    assert browser.post("/e/button/do", what="pause").status_code == 404


def test_an_experiment_that_another_server_deleted_is_404(browser, made, hours):
    assert browser.get("/e/buttons").status_code == 200
    experiment = Experiment.open(made, "buttons")
    experiment.delete()
    experiment.close()
    room_of(browser).view_cache.forget("buttons")
    for _ in range(2):
        assert browser.get("/e/buttons").status_code == 404
    with Experiment.create(made, "buttons", ["x", "y"], clock=hours):
        assert browser.get("/e/buttons").status_code == 200


@pytest.mark.parametrize("path", ["/e/buttons/pair/0/3", "/e/buttons/pair/1/1",
                                  "/e/buttons/pair/a/b", "/e", "/e/", "/nothing", "/e/buttons/x",
                                  "/static/0000/page.css", "/static/x"])  # fmt: skip
def test_where_nothing_is_people_get_a_page_that_says_so(browser, path):
    answered = browser.get(path)
    assert answered.status_code == 404
    assert answered.headers["content-type"] == "text/html; charset=utf-8"
    assert answered.headers["content-security-policy"] == POLICY


def test_while_kernels_are_compiled_the_page_is_there_already(url, monkeypatch):
    from service.conftest import TestClient

    goes_on = threading.Event()
    monkeypatch.setattr("duelay.service.app.warm_up", goes_on.wait)
    with TestClient(make_app(url), HERE) as client:
        try:
            assert Browser(client).get("/").status_code == 200
            assert client.get("/healthz").status_code == 503
        finally:
            goes_on.set()
        wait_until(lambda: client.get("/healthz").status_code == 200)


def test_while_the_store_is_away_the_page_tries_again_by_itself(browser, monkeypatch):
    def fail(*_, **__):
        raise StoreError("the store /secret/place does not answer")

    monkeypatch.setattr(build, "build_experiment", fail)
    answered = browser.get("/e/buttons")
    assert answered.status_code == 503 and 'http-equiv="refresh"' in answered.text
    assert "does not answer" in answered.text and "secret" not in answered.text
    monkeypatch.undo()
    assert browser.get("/e/buttons").status_code == 200


def test_a_fault_is_a_page_that_shows_nothing(browser, monkeypatch, caplog):
    def fail(*_, **__):
        raise RuntimeError("/secret/place")

    monkeypatch.setattr(build, "build_experiment", fail)
    answered = browser.get("/e/buttons", **{"X-Request-Id": "mine"})
    assert answered.status_code == 500 and answered.headers["content-type"].startswith("text/html")
    assert "mine" in answered.text and "secret" not in answered.text
    assert "/secret/place" in caplog.text


# What is polled.


def test_a_page_that_is_open_gets_the_part_that_changes(browser):
    for path in ("/", "/e/buttons", "/e/buttons/pair/0/1"):
        whole, part = browser.get(path), browser.get(path, part=True)
        assert part.status_code == 200
        assert "<html" in whole.text and "<html" not in part.text and len(part.text) > 50
        assert "Cookie" in part.headers["vary"] and "HX-Request" in part.headers["vary"]


def test_what_was_seen_is_not_sent_again(browser, made):
    checked(browser)
    for path in ("/", "/e/buttons", "/e/buttons/pair/0/1"):
        text = browser.get(path, part=True).text
        seen = text.split('name="seen" value="')[1].split('"')[0]
        answered = browser.get(f"{path}?seen={seen}", part=True)
        assert answered.status_code == 204 and answered.content == b""
        assert browser.get(f"{path}?seen=x{seen}", part=True).status_code == 200
        assert browser.get(f"{path}?seen={seen}").status_code == 200  # a whole page is asked for
        browser.client.post(f"{HERE}/experiments/buttons/duels")
        room_of(browser).view_cache.forget("buttons")  # or a second passes
        assert browser.get(f"{path}?seen={seen}", part=True).status_code == 200


def test_a_session_that_is_new_gets_new_tokens_though_nothing_else_changed(browser):
    checked(browser)
    text = browser.get("/e/buttons", part=True).text
    seen = text.split('name="seen" value="')[1].split('"')[0]
    browser.client.cookies.clear()
    answered = browser.get(f"/e/buttons?seen={seen}", part=True)
    assert answered.status_code == 200 and "set-cookie" in answered.headers
    assert browser.get(f"/e/buttons?seen={seen}", part=True).status_code == 204


def test_the_slow_part_comes_later_and_changes_the_page(browser, monkeypatch):
    goes_on, real, calls = threading.Event(), diagnostics.diagnose, []

    def slow(experiment, *args, **said):
        calls.append(experiment.name)
        goes_on.wait(300)
        return real(experiment, *args, **said)

    monkeypatch.setattr("duelay.service.view_cache.diagnostics.diagnose", slow)
    text = browser.get("/e/buttons", part=True).text
    seen = text.split('name="seen" value="')[1].split('"')[0]
    assert browser.get(f"/e/buttons?seen={seen}", part=True).status_code == 204
    goes_on.set()
    wait_until(lambda: browser.get(f"/e/buttons?seen={seen}", part=True).status_code == 200)
    for _ in range(3):
        browser.get("/e/buttons")
    assert calls == ["buttons"]  # nothing has changed since


def test_what_a_check_alarmed_at_is_told_to_programs(browser):
    address = f"{HERE}/experiments/buttons"
    assert browser.client.get(address).json()["alarms"] == []
    with Experiment.open(room_of(browser).store, "buttons") as experiment:
        found = diagnostics.diagnose(experiment)
    alarm = view_models.TestResult("order balance", "The coin is not fair.", True, 1e-9, 12)
    incremental.reader_of(experiment).checked = dataclasses.replace(found, tests=(alarm,))
    told = browser.client.get(address).json()
    assert [each["name"] for each in told["alarms"]] == ["order balance"]
    assert told["headline"].endswith("but doubtful: order balance")


def test_a_check_is_made_again_when_something_changed_and_time_passed(monkeypatch, made):
    calls = []
    monkeypatch.setattr(
        "duelay.service.view_cache.diagnostics.diagnose", lambda e: calls.append(e.name)
    )
    clock = Hours(1000.0)
    checks, experiment = Checks(clock), Experiment.open(made, "buttons")
    for version, later, wanted in (("a", 0, 1), ("b", 1, 1), ("b", 6, 2), ("b", 60, 2),
                                   ("c", 70, 3)):  # fmt: skip
        clock.now = 1000.0 + later
        checks.latest(experiment, version)
        wait_until(lambda: not checks._waiting)
        assert len(calls) == wanted, (version, later)
    checks.close()
    experiment.close()


def test_a_check_that_fails_is_logged_and_leaves_what_was_found(monkeypatch, made, caplog):
    found = iter(["first"])
    checks, experiment = Checks(), Experiment.open(made, "buttons")
    monkeypatch.setattr("duelay.service.view_cache.diagnostics.diagnose", lambda e: next(found))
    monkeypatch.setattr("duelay.service.view_cache._MIN_PAUSE", -1.0)
    monkeypatch.setattr("duelay.service.view_cache._MAX_SHARE", 1e9)
    for version in "ab":
        checks.latest(experiment, version)
        wait_until(lambda: not checks._waiting)
    assert checks.latest(experiment, "b") == "first"
    assert "a fault while checking 'buttons'" in caplog.text
    checks.close()
    experiment.close()


class Threads:
    """Desks that call in the default threads."""

    async def call(self, do, *args):
        return await asyncio.get_running_loop().run_in_executor(None, do, *args)


def test_however_many_look_a_view_is_made_once_a_second():
    calls, clock = [], Hours(1000.0)

    def make(seconds=0.0):
        calls.append(1)
        clock.pass_by(seconds)
        return len(calls)

    async def look():
        view_cache = ViewCache(Threads(), clock)
        found = await asyncio.gather(*(view_cache.get("x", ("a",), make) for _ in range(50)))
        assert set(found) == {1} and await view_cache.get("x", ("a",), make) == 1
        assert await view_cache.get("y", ("a",), make) == 2  # another experiment
        view_cache.forget("x")
        assert await view_cache.get("x", ("a",), make) == 3
        clock.pass_by(0.99)
        assert await view_cache.get("x", ("a",), make) == 3
        clock.pass_by(0.02)
        assert await view_cache.get("x", ("a",), lambda: make(2.0)) == 4
        clock.pass_by(7.9)  # it took two seconds, and rests for eight
        assert await view_cache.get("x", ("a",), make) == 4
        clock.pass_by(0.2)
        assert await view_cache.get("x", ("a",), make) == 5

    asyncio.run(look())


def test_who_goes_away_does_not_take_the_view_from_the_others():
    begun, goes_on = threading.Event(), threading.Event()

    def make():
        begun.set()
        assert goes_on.wait(300)
        return 7

    async def look():
        view_cache = ViewCache(Threads())
        first = asyncio.create_task(view_cache.get("x", (), make))
        second = asyncio.create_task(view_cache.get("x", (), lambda: 8))
        await asyncio.to_thread(begun.wait)
        first.cancel()
        await asyncio.wait([first])
        goes_on.set()
        assert await second == 7

    asyncio.run(look())


def test_a_view_that_fails_fails_for_all_who_wait_and_is_tried_again():
    def fail():
        raise StoreError("away")

    async def look():
        view_cache = ViewCache(Threads())
        found = await asyncio.gather(
            *(view_cache.get("x", (), fail) for _ in range(3)), return_exceptions=True
        )
        assert [str(each) for each in found] == ["away"] * 3
        assert await view_cache.get("x", (), lambda: 1) == 1

    asyncio.run(look())


def test_views_that_are_kept_are_few(monkeypatch):
    monkeypatch.setattr("duelay.service.view_cache._MAX_VIEWS", 5)

    async def look():
        view_cache = ViewCache(Threads())
        for n in range(20):
            await view_cache.get("x", (n,), lambda n=n: n)
        assert len(view_cache._kept) == 5

    asyncio.run(look())


def test_a_server_that_is_stopped_does_not_wait_for_the_compiler(made, monkeypatch, hours):
    compiles, is_compiled = threading.Event(), threading.Event()

    def compile_slowly():
        compiles.set()
        assert is_compiled.wait(300)

    monkeypatch.setattr("duelay.service.app.warm_up", compile_slowly)

    async def run():
        app = make_app(made, clock=hours)
        async with app.router.lifespan_context(app):
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url=HERE) as client:
                assert await asyncio.to_thread(compiles.wait, 300)
                asked = await client.post("/experiments/buttons/duels")
                return asked.json()["id"]

    try:
        id = asyncio.run(run())
        (thread,) = (each for each in threading.enumerate() if each.name == "duelay-warm-up")
        assert thread.is_alive() and thread.daemon  # nor does the end of the process
        assert Experiment.name_of(made, id) == "buttons"
    finally:
        is_compiled.set()
    thread.join()


def test_polling_does_not_stall_asks(made, monkeypatch, hours):
    """However slow a view is, and however many look, duels are asked all the same."""
    real, begun, goes_on = build.build_experiment, [], threading.Event()

    def slow(*args, **said):
        begun.append(1)
        assert goes_on.wait(300)
        return real(*args, **said)

    monkeypatch.setattr("duelay.service.app.warm_up", lambda: None)
    monkeypatch.setattr(build, "build_experiment", slow)
    for n in range(12):
        Experiment.create(made, f"other-{n}", ARMS, clock=hours).close()

    async def run():
        app = make_app(made, clock=hours)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=HERE) as client,
        ):
            await app.state.context.warm
            await client.post("/experiments/buttons/duels")
            polls = [asyncio.create_task(client.get(f"/e/other-{n}")) for n in range(12)]
            while len(begun) < 2:
                await asyncio.sleep(0.01)
            for _ in range(20):  # no view will be there before these are answered
                assert (await client.post("/experiments/buttons/duels")).status_code == 200
            assert not any(poll.done() for poll in polls) and len(begun) == 2
            goes_on.set()
            for poll in polls:
                assert (await poll).status_code == 200

    asyncio.run(run())


# What may be changed, and by whom.


def test_a_new_experiment_is_made_with_what_the_form_says(browser, made):
    answered = browser.post("/new", name=" a b/c".replace("/", "?"), arms="x\r\n\r\n y \r\nz\r\n",
                            goal="regret", window="2h", feedback="votes")  # fmt: skip
    assert sent_to(answered) == "/e/a%20b%3Fc"
    assert browser.get("/e/a%20b%3Fc").status_code == 200
    with Experiment.open(made, "a b?c") as found:
        assert found.arms == ("x", "y", "z")
        shown = browser.client.get(f"{HERE}/experiments/a%20b%3Fc").json()
    assert shown["window"] == "2h" and shown["feedback"] == "votes"
    assert "a b?c" in browser.get("/").text


def test_a_new_experiment_has_the_ends_that_the_form_says(browser):
    given = {"name": "ends", "arms": "a\nb", "margin": "0.05", "end": "good_enough",
             "budget": "900", "until": "30d", "fallback": "a"}  # fmt: skip
    assert sent_to(browser.post("/new", **given)) == "/e/ends"
    found = browser.client.get(f"{HERE}/experiments/ends").json()
    assert (found["margin"], found["end"], found["budget"], found["fallback"]) == (
        0.05, "good_enough", 900, "a",
    )  # fmt: skip
    plain = {"name": "plain", "arms": "a\nb", "margin": "", "end": "equivalent", "budget": ""}
    assert sent_to(browser.post("/new", **plain)) == "/e/plain"
    lift = {"name": "lift", "arms": "a\nb", "display": "one", "margin": "5%"}
    assert sent_to(browser.post("/new", **lift)) == "/e/lift"
    found = browser.client.get(f"{HERE}/experiments/lift").json()
    assert found["margin"] == pytest.approx(1.05 / 2.05 - 0.5)
    for wrong in ("much", "5%"):
        refused = browser.post("/new", **given | {"name": "other", "margin": wrong})
        assert refused.status_code == 422 and "margin" in refused.text


def test_the_form_takes_the_margin_of_one_arm_as_a_lift(browser):
    given = {"name": "ab", "arms": "a\nb", "display": "one", "margin": "20 %"}
    assert sent_to(browser.post("/new", **given)) == "/e/ab"
    found = browser.client.get(f"{HERE}/experiments/ab").json()
    assert found["margin"] == pytest.approx(1.2 / 2.2 - 0.5), "of rates r and 1.2 r, this share"
    assert "a lift of 20 %" in browser.get("/e/ab").text
    for wrong in ("0.2", "much", "-3%", "0%", "nan%", "inf%", "%"):
        refused = browser.post("/new", **given | {"name": "other", "margin": wrong})
        assert refused.status_code == 422 and "margin" in refused.text, wrong
        assert browser.get("/e/other").status_code == 404


def test_a_window_is_understood_as_the_page_writes_it(browser):
    given = {"name": "short", "arms": "a\nb", "window": "3 days"}
    assert sent_to(browser.post("/new", **given)) == "/e/short"
    assert "window of 3 days" in browser.get("/e/short").text


def test_a_new_experiment_without_a_window_waits_for_ever(browser):
    browser.post("/new", name="patient", arms="x\ny", goal="decide", window="", feedback="votes")
    assert browser.client.get(f"{HERE}/experiments/patient").json()["window"] is None


@pytest.mark.parametrize(
    ("wrong", "status", "words"),
    [
        ({"name": ""}, 422, "name: "),
        ({"name": "a/b"}, 422, "name must not have a slash"),
        ({"name": "buttons"}, 409, "already"),
        ({"arms": "one"}, 422, "arms: give at least 2, one on each line"),
        ({"arms": "one\n\ntwo\n" + "y" * 201}, 422, "the arm &#39;" + "y" * 40 + "…&#39;: string"),
        ({"arms": "same\nsame"}, 422, "arms"),
        ({"window": "soon"}, 422, "window"),
        ({"goal": "fun"}, 422, "goal: "),
        ({"name": "x" * 300}, 422, "name: "),
    ],
)
def test_what_is_wrong_with_a_new_one_is_said_and_what_was_typed_is_kept(
    browser, made, wrong, status, words
):
    given = {"name": "fresh", "arms": "kept-one\nkept-two", "goal": "decide", "window": "3d",
             "feedback": "conversions"} | wrong  # fmt: skip
    answered = browser.post("/new", **given)
    assert answered.status_code == status and words in answered.text
    for name in ("name", "window"):
        assert given[name][:200] in answered.text
    for arm in given["arms"].split("\n"):
        assert arm in answered.text
    assert Experiment.names(made) == ("buttons",)


def test_all_that_is_wrong_with_a_new_one_is_said_at_once(browser):
    given = {"name": "a/b", "arms": "same\nsame", "window": "soon", "goal": "fun"}
    text = browser.post("/new", **given).text
    said = text[text.index('id="problem"') :].partition("</p>")[0]
    assert said.count("<br>") == 3
    for name in given:
        assert name in said


def test_where_people_look_they_get_a_page_whatever_is_wrong(browser):
    assert sent_to(browser.get("/new")).startswith("/")
    token = browser.token()
    for answered, status in (
        (browser.post("/new", token=token, name="x" * 1_100_000), 413),
        (browser.post("/new", token="", name="x"), 403),
        (browser.client.post("/new", json={}, headers={"Accept": "text/html"}), 422),
        (browser.client.put("/new", headers={"Accept": "text/html"}), 405),
        (browser.client.post("/", headers={"Accept": "text/html"}), 405),
    ):
        assert answered.status_code == status
        assert answered.headers["content-type"].startswith("text/html"), status
    assert list(browser.client.put("/new").json()) == ["error"]  # a program


def test_an_experiment_is_paused_resumed_and_its_arms_come_and_go(browser, made):
    def do(**fields):
        assert sent_to(browser.post("/e/buttons/do", **fields)) == "/e/buttons"
        return browser.client.get(f"{HERE}/experiments/buttons").json()

    assert do(what="pause")["status"] == "paused"
    assert "paused" in browser.get("/e/buttons").text  # at once, and not after a second
    assert do(what="resume")["status"] == "running"
    assert do(what="finish", arm="blue")["choice"] == "blue"
    assert "blue" in browser.get("/e/buttons").text and do(what="archive")["archived"]
    assert do(what="list")["archived"] is False and do(what="reopen")["status"] == "running"
    assert do(what="finish", arm="")["choice"] in ARMS and do(what="reopen")["choice"] is None
    assert do(what="hold")["booking"] == "held"
    assert ">Release booking</button>" in browser.get("/e/buttons").text
    assert do(what="release")["booking"] == "running"
    assert ">Hold booking</button>" in browser.get("/e/buttons").text
    assert do(what="add", arm=" pink ")["arms"] == [*ARMS, "pink"]
    assert do(what="retire", arm="red")["present"] == [False, True, True, True]
    assert "pink" in browser.get("/e/buttons").text


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"what": "explode"}, "what: one of pause, resume"),
        ({}, "what: one of"),
        ({"what": "add", "arm": ""}, "the arm &#39;&#39;: string"),
        ({"what": "retire", "arm": "nobody"}, "there is no arm"),
        ({"what": "add", "arm": "x" * 300}, "the arm &#39;xxx"),
    ],
)
def test_a_change_that_cannot_be_is_said_on_the_page(browser, fields, words):
    answered = browser.post("/e/buttons/do", **fields)
    assert answered.status_code == 422 and words in answered.text and "buttons" in answered.text


def test_an_arm_that_is_there_is_not_added_and_that_is_said(browser, made):
    answered = browser.post("/e/buttons/do", what="add", arm="red")
    assert answered.status_code == 409
    assert "There is an arm &#39;red&#39; already: nothing has changed." in answered.text
    browser.post("/e/buttons/do", what="retire", arm="red")
    assert sent_to(browser.post("/e/buttons/do", what="add", arm="red")) == "/e/buttons"


def test_a_key_for_an_experiment_that_is_not_there_is_made_and_that_is_said(keyed, made):
    browser = keyed("administer")
    fields = {"name": "shop", "scopes": "ask"}
    answered = browser.post("/keys", **fields, experiments="buttons\nbutons")
    assert answered.status_code == 200 and "duelay_" in answered.text
    assert "There is no experiment &#39;butons&#39; yet, only" in answered.text
    assert "There is no experiment" not in browser.post("/keys", **fields).text
    assert len(list_keys(made)) == 3


def test_where_there_is_no_key_the_first_one_administers_unless_somebody_says_otherwise(browser):
    text = browser.get("/keys").text
    assert 'value="administer" checked' in text


def test_two_arms_stay(browser):
    browser.post("/e/buttons/do", what="retire", arm="red")
    answered = browser.post("/e/buttons/do", what="retire", arm="green")
    assert answered.status_code == 422 and "two arms must stay" in answered.text


@pytest.fixture
def keyed(made, serve, hours):
    """Signs in with a key that is made for it."""
    Experiment.create(made, "veiled", ARMS, clock=hours).close()
    started = []

    def sign_in(*scopes, experiments=None):
        key = create_key(made, "mine", scopes, experiments)
        started[:] = started or [serve(made, clock=hours)]
        browser = Browser(started[0])
        room_of(browser).keys.forget()
        assert sent_to(browser.sign_in(key)) == "/"
        return browser

    return sign_in


@pytest.mark.parametrize("scope", ["ask", "tell"])
def test_a_key_that_may_not_administer_looks_and_changes_nothing(keyed, made, scope):
    browser = keyed(scope)
    for path in ("/", "/e/buttons", "/e/buttons/pair/0/1", "/e/veiled"):
        text = browser.get(path).text
        assert browser.get(path).status_code == 200
        assert '/do"' not in text and '/new"' not in text and "/keys" not in text
        assert "export.csv" not in text and "/log" not in text.replace("/logout", "")
    for path in ("/e/buttons/log", "/e/buttons/export.csv", "/keys"):
        assert browser.get(path).status_code == 403
    for path, fields in (
        ("/new", {"name": "x", "arms": "a\nb"}),
        ("/e/buttons/do", {"what": "pause"}),
        ("/keys", {"name": "x", "scopes": "administer"}),
        ("/keys/revoke", {"id": list_keys(made)[0].id}),
    ):
        answered = browser.post(path, **fields)
        assert answered.status_code == 403, path
        assert answered.headers["content-type"].startswith("text/html")
    assert len(list_keys(made)) == 1 and not list_keys(made)[0].is_revoked
    assert Experiment.names(made) == ("buttons", "veiled")
    with Experiment.open(made, "buttons") as found:
        assert found.status == "running"


@pytest.mark.parametrize("scope", ["ask", "administer"])
def test_experiments_of_other_keys_are_as_unknown_as_those_that_never_were(keyed, scope):
    browser = keyed(scope, experiments=["buttons", "later"])
    assert "veiled" not in browser.get("/").text and "buttons" in browser.get("/").text
    for path in ("", "/log", "/export.csv", "/pair/0/1"):
        there, never = browser.get(f"/e/veiled{path}"), browser.get(f"/e/nobody{path}")
        assert there.status_code == never.status_code == 404
        shown = [TOKEN.sub("", answered.text) for answered in (there, never)]
        assert shown[0].replace("veiled", "nobody") == shown[1]
    assert browser.post("/e/veiled/do", what="pause").status_code == 404


def test_a_key_of_some_experiments_makes_those_and_no_keys(keyed, made):
    browser = keyed("administer", experiments=["buttons", "later"])
    refused = browser.post("/new", name="third", arms="a\nb", feedback="votes")
    assert refused.status_code == 403 and "other experiments" in refused.text
    assert sent_to(browser.post("/new", name="later", arms="a\nb")) == "/e/later"
    assert sent_to(browser.post("/e/buttons/do", what="pause")) == "/e/buttons"
    assert browser.get("/keys").status_code == 403
    assert browser.post("/keys", name="all", scopes="administer").status_code == 403
    assert len(list_keys(made)) == 1


def test_keys_are_made_shown_once_and_revoked(keyed, made):
    browser = keyed("administer")
    answered = browser.post("/keys", name="shop", scopes=["ask", "tell"],
                            experiments="buttons\r\n\r\nveiled\r\n")  # fmt: skip
    assert answered.status_code == 200
    key = answered.text.split("duelay_")[1][: 16 + 1 + 64]
    assert key not in browser.get("/keys").text
    mine, shop = list_keys(made)
    assert (shop.name, shop.scopes, shop.experiments) == (
        "shop", ("ask", "tell"), ("buttons", "veiled"),
    )  # fmt: skip
    asked = browser.client.post(
        f"{HERE}/experiments/buttons/duels", headers={"Authorization": f"Bearer duelay_{key}"}
    )
    assert asked.status_code == 200
    assert sent_to(browser.post("/keys/revoke", id=shop.id)) == "/keys"
    assert [each.is_revoked for each in list_keys(made)] == [False, True]
    for fields in ({"name": "", "scopes": "ask"}, {"name": "x"}, {"name": "x", "scopes": "fly"}):
        refused = browser.post("/keys", **fields)
        assert refused.status_code == 422
    assert len(list_keys(made)) == 2
    assert browser.post("/keys/revoke", id="nobody").status_code == 422


def test_the_first_key_administers_and_whoever_made_it_goes_on_with_it(browser, made):
    refused = browser.post("/keys", name="shop", scopes=["ask", "tell"])
    assert refused.status_code == 422 and "must administer" in refused.text
    refused = browser.post("/keys", name="shop", scopes="administer", experiments="buttons")
    assert refused.status_code == 422 and not list_keys(made)
    answered = browser.post("/keys", name="operator", scopes=["administer"])
    assert answered.status_code == 200 and "duelay_" in answered.text
    assert "operator" in browser.get("/").text
    assert sent_to(browser.post("/e/buttons/do", what="pause")) == "/e/buttons"
    browser.client.cookies.clear()
    assert sent_to(browser.get("/")) == "/login?next=/"


# The log, and all of it as a file.


def test_the_log_is_filtered_and_goes_on(browser, monkeypatch):
    monkeypatch.setattr("duelay.service.web.pages._ROWS", 5)
    seen, path = [], "/e/buttons/log"
    while path:
        text = browser.get(path).text
        seen.append(text.count('scope="row"'))
        more = text.split('rel="next" href="')
        path = more[1].split('"')[0].replace("&amp;", "&") if len(more) > 1 else ""
    assert seen == [5, 5, 2]
    assert browser.get("/e/buttons/log?outcome=first+won").text.count('scope="row"') == 4
    for query in ("arm=99", "arm=x", "outcome=x", "before=x", "before=-1", "before=" + "9" * 30):
        assert browser.get(f"/e/buttons/log?{query}").status_code in (200, 422), query


def test_the_export_is_what_the_library_writes(browser, made, tmp_path):
    answered = browser.get("/e/buttons/export.csv")
    assert answered.status_code == 200
    assert answered.headers["content-type"] == "text/csv; charset=utf-8"
    assert 'filename="buttons.csv"' in answered.headers["content-disposition"]
    assert answered.headers["cache-control"] == "no-store"
    with Experiment.open(made, "buttons") as experiment:
        assert experiment.export(tmp_path / "x.csv").read_text() == answered.text
    assert len(list(csv.DictReader(io.StringIO(answered.text)))) == 12


def test_the_file_of_an_export_is_gone_afterwards(browser, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "here"))
    (tmp_path / "here").mkdir()
    assert browser.get("/e/buttons/export.csv").status_code == 200
    wait_until(lambda: not list((tmp_path / "here").iterdir()))


# Files.


@pytest.mark.parametrize("name", sorted(render.STATIC))
def test_scripts_and_styles_are_kept_for_ever_and_compressed(browser, name):
    file = render.STATIC[name]
    for encoding in ("gzip, br", "identity"):
        answered = browser.get(f"/static/{file.digest}/{name}", **{"Accept-Encoding": encoding})
        assert answered.status_code == 200 and answered.content == file.content
        assert answered.headers["content-type"] == file.content_type
        assert answered.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answered.headers["x-content-type-options"] == "nosniff"
        assert answered.headers.get("content-encoding") == ("gzip" if "gzip" in encoding else None)
    assert _packed(name) is _packed(name)  # compressed once
