"""What tests of the service share: an application in process, and its clock."""

import contextlib
import shutil
import warnings

import pytest

from duelay.planning.report import PlanReport
from duelay.service import make_app
from live.hours import Hours

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Starlette would rather have another client
    from starlette.testclient import TestClient


def pytest_collection_modifyitems(items):
    """Run them once, interpreted: compiled they would say the same."""
    for item in items:
        if "/service/" in str(item.path):
            item.add_marker("interpreted")


@pytest.fixture
def hours():
    return Hours()


async def simulate_nothing(said, is_gone):
    """Answer a plan whose arguments are right: to simulate it takes too long for most tests."""
    return PlanReport("a plan", 0, 56.0, "regret", [], [])


@contextlib.contextmanager
def serving():
    """Give what serves a store in process, and returns a client; its application is warm."""
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as stack:
        patch.setattr("duelay.service.app.warm_up", lambda: None)
        patch.setattr("duelay.service.planner.simulate", simulate_nothing)

        def start(store, **said):
            client = TestClient(
                make_app(store, **{"webhooks_to": "loopback"} | said),
                "http://localhost",
                raise_server_exceptions=False,
            )
            return stack.enter_context(client)

        yield start


@pytest.fixture
def serve():
    with serving() as start:
        yield start


def make_buttons(client):
    created = client.post("/experiments", json={"name": "buttons", "arms": ["red", "green"]})
    assert created.status_code == 201
    return client


@pytest.fixture
def client(serve, hours, url):
    """A client of a service without keys, on SQLite, with one experiment."""
    return make_buttons(serve(url, clock=hours))


@pytest.fixture(scope="module")
def shared(empty, tmp_path_factory):
    """The same for a whole file, for tests that change nothing."""
    store = shutil.copy(empty, tmp_path_factory.mktemp("shared"))
    with serving() as start:
        yield make_buttons(start(f"sqlite:///{store}"))
