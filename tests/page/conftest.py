"""What tests of the page share: a store with experiments of all kinds, served, and a browser."""

import pytest

import page.browsers as browsers
from conftest import UNSEEN
from duelay.live import Experiment
from duelay.service.keys import create_key
from live.hours import Hours
from page.million import START, fill
from page.sample import ARABIC, LONG, MARKUP

NOW = START + 30 * 86_400.0
IMAGE = "<img src=x onerror=alert(1)>"
COLOURS = ["green", "blue", "red", "yellow", "violet"]


@pytest.fixture(scope="module")
def chromium():
    """Give a browser for a file of tests."""
    try:
        browsers.find_chromium()
    except browsers.NoBrowserError as error:
        pytest.skip(f"{UNSEEN}: {error}")
    with browsers.chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def hours():
    return Hours(NOW)


@pytest.fixture
def look(chromium):
    """Give what opens windows, which are closed afterwards."""
    opened = []

    def open_window(url, **said):
        opened.append(browsers.Window(chromium, url, **said))
        return opened[-1]

    yield open_window
    for window in opened:
        window.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A store with experiments of all kinds, and a key that may do everything."""
    store = f"sqlite:///{tmp_path_factory.mktemp('world')}/duels.db"
    fill(store, "checkout button", 8000, 5, arms=COLOURS).close()
    fill(store, IMAGE, 3000, 4, arms=[MARKUP, ARABIC, LONG, "b" * 200]).close()
    fill(store, "one order", 4000, 3, arms=["Newest", "Best", "Nearest"], swaps=False).close()
    Experiment.create(store, "nothing yet", ["red", "green"], clock=lambda: NOW).close()
    hours = Hours(NOW - 7200.0)
    votes = Experiment.create(store, LONG, [ARABIC, "B", "C"], feedback="votes", clock=hours)
    while not (duel := votes.ask()).settled:
        hours.pass_by(20.0)
        votes.tell(duel.id, ARABIC if ARABIC in (duel.first, duel.second) else "B")
    votes.close()
    return store, create_key(store, "Ada's laptop", ("ask", "tell", "administer"))


@pytest.fixture(scope="module")
def service(world, hours):
    """Give a server of that store."""
    with browsers.Served(world[0], clock=hours) as served:
        yield served
