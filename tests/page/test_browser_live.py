"""The page of a real service in a real Chromium: as it moves, as it is used, as it is cut off."""

import re

import pytest

from duelay.live import Experiment
from page.browsers import PHONE, Served, Window
from page.conftest import NOW
from page.sample import ARABIC, MARKUP

pytestmark = [pytest.mark.long, pytest.mark.interpreted]
BUTTON = "/e/checkout%20button"


@pytest.fixture(scope="module")
def signed_in(chromium, service, world):
    """What opens a window of somebody who is signed in: the cookie of one login does for all."""
    window = Window(chromium, service.url)
    window.sign_in(world[1])
    state = window.context.storage_state()
    window.close()
    return {"storage_state": state}


@pytest.fixture
def elsewhere(world, hours):
    """Another process, as it were: it opens the same store, asks and tells."""
    experiment = Experiment.open(world[0], "checkout button", clock=hours)

    def ask_and_tell(n=3):
        for _ in range(n):
            experiment.tell(experiment.ask().id)

    yield ask_and_tell
    experiment.close()


def number(window, fact):
    return int(window.page.inner_text(f"#fact-{fact} dd").replace(",", ""))


def test_nothing_jumps_when_a_duel_is_told_elsewhere(look, service, signed_in, elsewhere):
    window = look(service.url, timezone_id="Asia/Tokyo", **signed_in)
    page = window.page
    page.goto(BUTTON)
    page.locator("#tests-list").wait_for()
    assert "06:13" not in page.inner_text("#terms")
    assert page.inner_text("#tests time") == "15 Dec 2023, 07:13"  # 22:13 in Greenwich
    duels = number(window, "duels")
    page.click("#numbers-evidence summary")
    page.fill("#add-arm", "half typed")
    cell = page.locator("#cell-0-2 a")
    cell.focus()
    cell.scroll_into_view_if_needed()
    window.settle()
    page.evaluate("""() => {
        window.kept = ["#plot-evidence .picture", "#cell-0-2 a", "#numbers-evidence"]
            .map((place) => document.querySelector(place));
        getSelection().selectAllChildren(document.querySelector("#terms"));
    }""")
    # Where a line above comes or goes, the browser scrolls by it, and what is read stays in place.
    seen = "[kept[1].getBoundingClientRect().top, String(getSelection())]"
    before = page.evaluate(seen)
    window.shift()
    for _ in range(2):
        window.wait_for_update(elsewhere)
    window.wait_for_duels(duels + 6)
    after = page.evaluate(seen)
    assert after == before
    assert page.evaluate("kept.every((node) => node.isConnected)"), "made anew"
    assert page.evaluate("document.activeElement === kept[1] && kept[2].open")
    assert page.input_value("#add-arm") == "half typed"
    assert window.shift() < 0.02
    assert window.take_troubles() == []


def test_a_page_on_a_phone_does_not_jump_either(look, service, signed_in, elsewhere):
    window = look(service.url, viewport=PHONE, **signed_in)
    window.page.goto(BUTTON)
    window.page.locator("#tests-list").wait_for()
    for place in ("#headline", "#chart-allocation"):
        window.page.locator(place).scroll_into_view_if_needed()
        window.shift()
        window.wait_for_update(elsewhere)
        assert window.shift() < 0.02, place


def test_a_cell_is_reached_and_opened_with_the_keyboard_alone(look, service, signed_in):
    page = look(service.url, **signed_in).page
    page.goto(BUTTON)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.add(place := page.evaluate("document.activeElement.closest('td')?.id ?? ''"))
        if place == "cell-0-1":
            break
    assert "cell-0-1" in seen
    ring = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert ring != "none", "nobody sees where the focus is"
    page.keyboard.press("Enter")
    page.wait_for_url("**/pair/0/1")
    assert page.inner_text("h1") == "green against blue"


def test_a_lost_connection_is_said_and_numbers_go_on_when_it_is_back(
    look, service, signed_in, elsewhere
):
    window = look(service.url, **signed_in)
    page = window.page
    page.goto(BUTTON)
    duels = number(window, "duels")
    window.shift()
    window.context.set_offline(True)
    page.locator("#lost:not([hidden])").wait_for()
    window.keep("lost")
    assert re.search(r"Connection lost.*\d\d:\d\d:\d\d", page.inner_text("#lost"))
    with page.expect_event("requestfailed"):
        elsewhere()
    assert number(window, "duels") == duels
    window.context.set_offline(False)
    page.locator("#lost").wait_for(state="hidden")
    window.wait_for_duels(duels + 3)
    assert window.shift() < 0.02, "the banner pushes the page"
    said = re.compile("INTERNET_DISCONNECTED|htmx:(sendError|afterRequest)")
    assert [each for each in window.take_troubles() if not said.search(each)] == []


def test_without_scripts_there_are_tables_and_forms(look, service, signed_in):
    page = look(service.url, java_script_enabled=False, **signed_in).page
    page.goto(BUTTON)
    assert page.locator("#plot-evidence .picture").is_visible()
    for table in ("#arms-table", "#matrix-table"):
        assert page.locator(table).is_visible()
    numbers = page.locator("#numbers-evidence")
    numbers.locator("summary").click()
    assert numbers.locator("table").is_visible()
    assert page.locator("#tests time").first.inner_text() == "14 Dec 2023, 22:13 UTC"
    page.click("#cell-0-1 a")
    page.wait_for_url("**/pair/0/1")
    assert page.inner_text("h1") == "green against blue"
    page.goto(BUTTON)
    page.click("#pause button")
    page.locator("#status:text-is('paused')").wait_for()
    page.click("#pause button")
    page.locator("#status:text-is('running')").wait_for()
    page.click("text=Log")
    page.select_option("#by-outcome", "first won")
    page.click("text=Filter")
    page.wait_for_url("**outcome=*")
    assert set(page.locator("table.log .outcome").all_inner_texts()) == {"first won"}


def test_an_experiment_is_made_used_and_changed_and_keys_come_and_go(look, tmp_path, hours):
    with Served(f"sqlite:///{tmp_path}/duels.db", clock=hours) as served:
        window = look(served.url)
        page = window.page
        page.goto("/")
        make_an_experiment(page)
        pause_and_resume(page)
        let_arms_come_and_go(page)
        secret = make_keys(page)
        # The name with a slash is refused; the cost of an arm is not waited for.
        expected = re.compile("422|htmx:(sendAbort|afterRequest)")
        assert [each for each in window.take_troubles() if not expected.search(each)] == []
        other = look(served.url).page
        sign_in_with_a_lesser_key(other, secret)
        revoke_it(page)
        other.goto("/")
        assert "/login" in other.url
        page.click("text=Sign out")
        page.wait_for_url("**/login")


def make_an_experiment(page):
    assert "There is no experiment yet" in page.inner_text("#live")
    page.fill("#new-name", "a/b")
    page.fill("#new-arms", f"{MARKUP}\n{ARABIC}\nplain")
    page.fill("#new-window", "7d")
    page.click("#new button.main")
    assert "slash" in page.inner_text("#problem")
    assert page.input_value("#new-arms") == f"{MARKUP}\n{ARABIC}\nplain"
    page.fill("#new-name", "Café 100%?")
    page.click("#new button.main")
    page.wait_for_url("**/e/*")
    assert page.inner_text("h1") == "Café 100%?"
    assert "7 days" in page.inner_text("#terms") or "1 week" in page.inner_text("#terms")
    assert 'service.open("Café 100%?")' in page.inner_text("#code-python")
    assert "Caf%C3%A9%20100%25%3F/duels" in page.inner_text("#code-curl")


def pause_and_resume(page):
    page.click("#pause button")
    page.locator("#status.paused").wait_for()
    page.click("#pause button")
    page.locator("#status.running").wait_for()


def let_arms_come_and_go(page):
    page.fill("#add-arm", "new one")
    page.click("form:has(#add-arm) button")
    page.click("#confirm button[value=yes]")
    page.locator("#arms-table >> text=new one").wait_for()
    page.select_option("#retire-arm", MARKUP)
    page.click("form:has(#retire-arm) button")
    assert page.inner_text("#confirm-words").startswith(f"{MARKUP}: Retire this arm?")
    page.click("#confirm button[value=yes]")
    page.locator("#arms-table tr.is-gone").wait_for()
    assert MARKUP in page.inner_text("#arms-table tr.is-gone")


def make_keys(page):
    """Make one that may do all, which the page goes on with, and one that may ask."""
    page.click("text=Keys")
    page.fill("#key-name", "mine")
    page.check("input[value=administer]")
    page.click("text=Make it")
    page.locator("#made").wait_for()
    assert page.inner_text("header .who") == "Signed in with mine"
    page.fill("#key-name", "shop")
    page.click("text=Make it")
    page.locator("table.keys bdi >> text=shop").wait_for()
    return page.inner_text("#made").strip()


def sign_in_with_a_lesser_key(page, secret):
    page.goto("/")
    page.fill("#key", secret)
    page.click("main button.main")
    page.locator("ul.experiments li a").wait_for()
    assert page.locator("#new").count() == 0 and page.locator("text=Keys").count() == 0
    page.click("ul.experiments li a")
    page.locator("#headline").wait_for()
    assert page.locator("#pause, #add-arm, #retire-arm").count() == 0
    assert page.goto("/keys").status == 403


def revoke_it(page):
    page.goto("/keys")
    page.click("tr:has-text('shop') >> text=Revoke")
    assert page.inner_text("#confirm-words").startswith("Revoke this key?")
    page.click("#confirm button[value=yes]")
    page.locator("tr.is-gone:has-text('shop')").wait_for()


def test_the_server_goes_away_and_comes_back(look, world, hours, tmp_path):
    store = f"sqlite:///{tmp_path}/duels.db"
    Experiment.create(store, "buttons", ["red", "green"], clock=lambda: NOW).close()
    served = Served(store, clock=hours)
    with served:
        window = look(served.url)
        window.page.goto("/e/buttons")
        served.stop()
        window.page.locator("#lost:not([hidden])").wait_for()
        served.start()
        window.page.locator("#lost").wait_for(state="hidden")
