"""Every view in a real Chromium: by day and by night, on a desk and on a phone."""

import urllib.parse

import pytest

from page.browsers import Window, check_looks
from page.conftest import IMAGE
from page.sample import LONG

pytestmark = [pytest.mark.long, pytest.mark.interpreted]


def at(name, rest=""):
    return f"/e/{urllib.parse.quote(name, safe='')}{rest}"


VIEWS = {
    "list": "/",
    "experiment": at("checkout button"),
    "pair": at("checkout button", "/pair/0/2"),
    "log": at("checkout button", "/log"),
    "keys": "/keys",
    "error": at("there is none"),
    "zero": at("nothing yet"),
    "off": at("one order"),
    "declared": at(LONG),
    "nasty": at(IMAGE),
    "nasty-pair": at(IMAGE, "/pair/0/2"),
    "nasty-log": at(IMAGE, "/log"),
}


@pytest.fixture(scope="module")
def visitor(chromium, service, world):
    """Somebody who is signed in."""
    window = Window(chromium, service.url)
    window.sign_in(world[1])
    yield window
    window.close()


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_well_made_by_day_and_night_on_a_desk_and_a_phone(visitor, name):
    visitor.page.goto(VIEWS[name], wait_until="load")
    if name in ("experiment", "nasty", "off", "declared"):
        visitor.page.locator("#tests-list").wait_for()
    assert check_looks(visitor, name) == {}
    troubles = visitor.take_troubles()
    if name == "error":  # the browser says so itself
        troubles = [each for each in troubles if "404" not in each]
    assert troubles == []


def test_the_way_in_is_well_made(look, service):
    window = look(service.url)
    window.page.goto("/")
    assert urllib.parse.urlsplit(window.page.url).path == "/login"
    assert check_looks(window, "login") == {}
    window.page.fill("#key", "nonsense")
    window.page.click("main button.main")
    window.page.locator("#problem").wait_for()
    assert check_looks(window, "login-refused") == {}
    assert [each for each in window.take_troubles() if "401" not in each] == []
