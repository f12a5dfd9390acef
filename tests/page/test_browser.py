"""The page in a real browser: every view, in light and dark, on a desk and on a phone.

With DUELAY_PICTURES=FOLDER in the environment, pictures of all are written there, to be looked at.
"""

import os
from pathlib import Path

import pytest

from page import sample
from page.showing import CHROMIUM, SIZES, Stage, showing

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = [
    pytest.mark.long,
    pytest.mark.interpreted,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="there is no chromium"),
]
VIEWS = (*sample.SAMPLES, "list", "pair", "log", "keys", "login", "error", "report/nasty")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture
def stage():
    return Stage()


@pytest.fixture
def at(stage):
    with showing(stage) as address:
        yield address


@pytest.fixture
def open_page(browser, at):
    """Opens a path; what the browser complains of is in `complaints`."""
    contexts = []

    def open_(path, **said):
        context = browser.new_context(
            **{"viewport": SIZES["desktop"], "reduced_motion": "reduce", **said}
        )
        contexts.append(context)
        page = context.new_page()
        page.complaints = []
        page.on("console", lambda one: one.type == "error" and page.complaints.append(one.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("dialog", lambda dialog: page.complaints.append(f"a dialog: {dialog.message}"))
        page.goto(f"{at}/{path}")
        return page

    yield open_
    for context in contexts:
        context.close()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_fits_and_the_browser_has_no_complaint(open_page, scheme, size):
    folder = os.environ.get("DUELAY_PICTURES")
    for name in VIEWS:
        page = open_page(name, color_scheme=scheme, viewport=SIZES[size])
        assert page.complaints == [], name
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, name
        plots, drawn = page.locator(".plot").count(), page.locator(".plot canvas").count()
        assert plots == drawn, name
        if folder:
            path = Path(folder) / f"{name.replace('/', '-')}-{scheme}-{size}.png"
            page.screenshot(path=path, full_page=True)


def test_charts_take_the_place_of_their_first_pictures(open_page):
    def heights(page):
        places = "[...document.querySelectorAll('section')].map(one => one.offsetTop)"
        return page.evaluate(places)

    without = open_page("busy", java_script_enabled=False)
    assert without.locator(".first").count() == 5 and without.locator("canvas").count() == 0
    assert without.locator("table:visible").count() >= 2
    bare = without.locator("section").evaluate_all("all => all.map(one => one.offsetTop)")
    assert heights(open_page("busy")) == bare


def test_what_moves_leaves_the_rest_alone(open_page, stage):
    page = open_page("e/checkout%20button", timezone_id="Asia/Tokyo")
    assert page.inner_text("#events time") == "16 Nov 2026, 21:16"
    page.click("#numbers-evidence summary")
    page.fill("#add-arm", "typed")
    page.focus("#cell-0-1 a")
    page.evaluate("""() => {
        window.canvas = document.querySelector("#plot-evidence canvas");
        getSelection().selectAllChildren(document.querySelector("#terms"));
        window.shifts = 0;
        new PerformanceObserver((list) => list.getEntries().forEach((one) => (shifts += one.value)))
            .observe({ type: "layout-shift" });
    }""")
    selected = page.evaluate("getSelection().toString()")
    before = page.evaluate("scrollY")
    page.wait_for_selector("#headline:text-is('moved 2 times')")
    assert page.inner_text("#fact-duels dd") == "9,002"
    assert stage.fetched[:2] == ["seen=v-1", "seen=v-2"]
    assert page.evaluate("document.querySelector('#numbers-evidence').open")
    assert page.input_value("#add-arm") == "typed"
    assert page.evaluate("document.activeElement.closest('td').id") == "cell-0-1"
    assert page.evaluate("canvas === document.querySelector('#plot-evidence canvas')")
    assert page.evaluate("getSelection().toString()") == selected
    assert page.evaluate("scrollY") == before and page.evaluate("shifts") == 0
    assert page.inner_text("#events li:first-child time") == "16 Nov 2026, 21:16"
    assert page.complaints == []


def test_a_lost_connection_is_said_and_so_is_its_return(open_page, stage):
    page = open_page("e/checkout%20button")
    assert page.locator("#lost").is_hidden()
    stage.is_cut = True
    page.wait_for_selector("#lost:not([hidden])")
    assert "Connection lost, trying again" in page.inner_text("#lost")
    stage.is_cut = False
    page.wait_for_selector("#lost", state="hidden")


def test_pointing_at_a_chart_says_its_numbers(open_page):
    page = open_page("nasty")
    page.hover("#plot-evidence .u-over")
    said = page.inner_text("#plot-evidence .tip")
    assert sample.MARKUP in said and "times" in said
    assert page.complaints == []


def test_an_arm_is_retired_only_after_a_second_word(open_page):
    page = open_page("busy")
    posted = []
    page.on("request", lambda one: one.method == "POST" and posted.append(one.post_data))
    page.select_option("#retire-arm", "blue")
    page.click("form[data-confirm] button")
    assert page.inner_text("#confirm-words").startswith("blue: Retire this arm?")
    page.click("#confirm button[value=no]")
    assert posted == []
    page.click("form[data-confirm] button")
    page.click("#confirm button[value=yes]")
    page.wait_for_load_state()
    assert posted == ["csrf=token&what=retire&arm=blue"]


def test_a_report_draws_its_charts_under_its_own_policy(open_page):
    page = open_page("report/busy")
    assert page.locator("canvas").count() == 5
    assert page.complaints == []
