"""Hand-made views in a real browser: by day and night, on a desk and a phone.

With DUELAY_SHOTS=FOLDER in the environment, pictures of all are written there, to be looked at.
"""

import pytest

from page import sample
from page.browsers import PHONE, check_looks
from page.page_server import showing

pytestmark = [pytest.mark.long, pytest.mark.interpreted]
# All others are in tests/page/test_browser.py, of a real service.
VIEWS = ("paused", "thirty", "hundreds", "keys", "error", "report/nasty")
LARGE = ("thirty", "hundreds")  # axe-core looks at each cell of a matrix, for seconds


@pytest.fixture(scope="module")
def at():
    with showing() as address:
        yield address


@pytest.fixture
def open_page(look, at):
    """Opens a path; what the browser complains of is in `complaints`."""

    def open_(path, **said):
        window = look(at, **said)
        window.page.goto(f"/{path}")
        window.page.complaints = window.troubles
        return window.page

    return open_


def test_every_view_is_well_made_by_day_and_night_on_a_desk_and_a_phone(look, at):
    window = look(at)
    for name in VIEWS:
        window.page.goto(f"/{name}")
        rules = ["aria-allowed-attr", "label", "link-name"] if name in LARGE else ()
        assert check_looks(window, f"sample-{name.replace('/', '-')}", rules) == {}
        assert window.take_troubles() == [], name


def test_three_hundred_arms_show_the_first_thirty_in_the_matrix(open_page):
    page = open_page("hundreds", viewport=PHONE)
    assert page.locator("#matrix-table tbody tr").count() == 30
    assert page.locator("#arms-table tbody tr").count() == 30
    assert page.locator("#arms-rest tbody tr:visible").count() == 0
    page.click("#arms-more summary")
    assert page.locator("#arms-rest tbody tr:visible").count() == 270


def test_nothing_moves_when_scripts_start(open_page):
    def heights(page):
        return page.locator("section").evaluate_all("all => all.map((one) => one.offsetTop)")

    assert heights(open_page("busy")) == heights(open_page("busy", java_script_enabled=False))


def test_pointing_at_a_chart_says_its_numbers(open_page):
    page = open_page("nasty")
    page.hover("#plot-evidence", position={"x": 70, "y": 50})
    tip = page.locator(".tip", has_text="times")
    tip.wait_for()
    first = tip.inner_text()
    assert sample.MARKUP in first
    page.hover("#plot-evidence", position={"x": 300, "y": 50})
    assert tip.inner_text() != first
    page.evaluate("document.dispatchEvent(new Event('scroll'))")  # of what came before the pointer
    assert tip.is_visible()
    page.evaluate("scrollBy({ top: -40, behavior: 'instant' })")
    tip.wait_for(state="hidden")
    page.hover("#plot-evidence", position={"x": 70, "y": 50})
    tip.wait_for()
    page.hover("h1")
    tip.wait_for(state="hidden")
    assert page.complaints == []


def test_times_beside_a_chart_are_in_the_zone_of_the_viewer(open_page):
    tick = "#plot-evidence .x-labels text >> nth=0"  # midnight of Greenwich
    for zone, day in (("UTC", "8 Nov"), ("America/Los_Angeles", "7 Nov")):
        assert open_page("busy", timezone_id=zone).text_content(tick) == day


@pytest.mark.parametrize("what", ["add", "retire"])
def test_an_arm_comes_or_goes_only_after_a_second_word(open_page, what):
    page = open_page("busy")
    posted = []
    page.on("request", lambda one: one.method == "POST" and posted.append(one.post_data))
    if what == "add":
        page.fill("#add-arm", "blue")
    else:
        page.select_option("#retire-arm", "blue")
    form = f"form:has(#{what}-arm) button"
    page.click(form)
    assert page.inner_text("#confirm-words").startswith(f"blue: {what.capitalize()} this arm?")
    assert page.inner_text("#confirm button[value=yes]") == what.capitalize()
    page.click("#confirm button[value=no]")
    assert posted == []
    page.click(form)
    with page.expect_response(lambda one: one.request.method == "POST"):
        page.click("#confirm button[value=yes]")
    assert posted == [f"csrf=token&what={what}&arm=blue"]


def test_a_word_is_explained_by_keyboard_and_touch_and_the_summary_is_copied(open_page):
    page = open_page("busy", viewport=PHONE)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    word = page.locator("#word-chance")
    assert not word.is_visible()
    page.focus("#fact-chance .term")
    page.keyboard.press("Enter")
    word.wait_for()
    assert word.locator("a").get_attribute("href").endswith("/words#chance")
    page.keyboard.press("Escape")
    word.wait_for(state="hidden")
    page.click("[data-copy=summary-text]")
    page.locator("[data-copy=summary-text]:has-text('Copied')").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("checkout button: green leads") and "Of 100 visitors" in copied
    assert page.complaints == []


def test_a_report_draws_its_charts_under_its_own_policy(open_page):
    page = open_page("report/busy")
    assert page.locator(".picture:visible").count() == 5
    assert page.complaints == []
