import functools
import gc
import os
import shutil
import signal
import ssl
import sys
import types
from pathlib import Path

import hypothesis
import pytest

import left_out

# A shell that starts the tests in the background has Ctrl-C ignored, by them and their children.
signal.signal(signal.SIGINT, signal.default_int_handler)

# To compile makes many objects that stay, and Python would look through them again and again for
# what can go: up to a seventh of the time.
gc.set_threshold(50_000, 20, 100)

# Every client of httpx reads all certificates that there are, also one that calls no https.
ssl.create_default_context = functools.cache(ssl.create_default_context)

# How fast the machine is decides nothing that a test looks at: neither what is said on standard
# error, here or in a child, nor whether hypothesis is content.
os.environ["DUELAY_COMPILE_NOTICE"] = "never"
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT") == "1"

TESTS = Path(__file__).parent
# However slow this machine is, nothing is given up before so many seconds, here and in all programs
# that tests start. It is read where ours is imported.
os.environ.setdefault("DUELAY_PATIENCE", "300")
# Of the rooms with kernels, what is quick is run interpreted and what is long compiled. These are
# run both ways: golden duels, and the contract of every policy.
BOTH = ("simulation/test_golden.py", "policies/test_contract.py")
KERNELS = (
    "simulation",
    "estimates",
    "inference",
    "ledger",
    "players",
    "policies",
    "test_recommendation.py",
)
# The files that take longest, compiled or interpreted, come first: so both workers end together.
# And those that wait for servers, while the other stage has something to compile.
FIRST = (
    "service/test_service_chaos.py",
    "docs/test_service_pages.py",
    "cli/test_demo_live.py",
    "page/test_browser_live.py",
    "live/test_chaos.py",
    "service/test_server.py",
    "page/test_browser.py",
    "live/test_time_buckets.py",
    "policies/test_contract.py",
    "_core/test_background.py",
    "policies/test_many_arms.py",
    "assumptions/test_assumptions.py",
    "simulation/test_shortcuts.py",
    "experiments/test_experiments.py",
    "_core/test_escapes.py",
    "experiments/test_cluster.py",
    "assumptions/test_by_clock.py",
    "policies/test_rules.py",
    "docs/test_numbers.py",
    "page/test_browser_budget.py",
    "_core/test_user_kernels.py",
    "problems/test_winners.py",
    "_core/test_cache.py",
    "ledger/test_eprocess.py",
    "ledger/test_kaplan_meier.py",
    "ledger/test_known_law.py",
    "theory/test_bounds.py",
    "experiments/test_claims.py",
    "experiments/test_studies.py",
    "_core/test_jit.py",
    "policies/test_own_compiled.py",
)


_NO_PARAMETERS = types.SimpleNamespace(id="")


def pytest_configure(config):
    """Leave the order of the files to `FIRST`: pytest-xdist's own is by the number of tests.

    Interpreted, nobody looks for the examples of docstrings: they are run as their reader does.
    """
    config.option.loadscopereorder = False
    if INTERPRETED:
        config.option.doctestmodules = False


def pytest_collection_modifyitems(config, items):
    """Mark what is run how, and leave out what this run is not for; it is said how many.

    The run with plain Numba leaves out what is about compiled code on disk.
    """
    from duelay._core.jit.private_numba import IS_PLAIN

    for item in items:
        if "postgresql" in getattr(item, "callspec", _NO_PARAMETERS).id.split("-"):
            item.add_marker("long")  # `make check` has the same with SQLite, in a fraction of it
        if isinstance(item, pytest.DoctestItem):
            item.add_marker("compiled")  # an example is run as its reader runs it
        elif _is_in(item, BOTH) or (_is_in(item, KERNELS) and item.get_closest_marker("long")):
            item.add_marker("kernels")
    marks = ["compiled" if INTERPRETED else "interpreted"] + ["kept"] * IS_PLAIN
    left = {item for item in items if any(map(item.get_closest_marker, marks))}
    config.hook.pytest_deselected(items=list(left))
    places = {TESTS / name: place for place, name in enumerate(FIRST)}
    items[:] = sorted(
        (item for item in items if item not in left),
        key=lambda item: places.get(item.path, len(places)),
    )
    gc.freeze()  # what all tests share


def _is_in(item, rooms):
    return any(item.path.is_relative_to(TESTS / room) for room in rooms)


@pytest.fixture
def interpreted():
    return INTERPRETED


@pytest.fixture
def undrawn(monkeypatch):
    """Figures are files with nothing in them: to write real ones takes most of a run's time."""
    from duelay.show import figure_style

    monkeypatch.setattr(figure_style, "save", lambda figure, path: Path(path).write_text("<svg/>"))


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes modules into a folder; what they leave behind is taken back."""
    from duelay import text
    from duelay._core import user_modules
    from own import MINE

    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setattr(user_modules, "_OURS", {})
    for kind in ("policy", "law"):
        monkeypatch.setitem(text._KINDS, kind, dict(text._KINDS[kind]))

    def write(name="mine", step=1, folder=tmp_path, source=None):
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.py").write_text(
            (MINE if source is None else source).format(name=name, step=step)
        )
        return folder / f"{name}.py"

    yield write
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "").is_relative_to(tmp_path):
            del sys.modules[name]


# Of what is tested with PostgreSQL or in a browser, and cannot be.
WITHOUT = "NOT TESTED WITH POSTGRESQL"
UNSEEN = "NOT TESTED IN A BROWSER"


@pytest.fixture(scope="session")
def postgresql():
    """Give a server for the whole run; `servers.PostgreSQL` says how it is found."""
    import servers

    try:
        server = servers.PostgreSQL()
    except servers.NoServerError as error:
        pytest.skip(f"{WITHOUT}: {error}")
    yield server
    server.close()


@pytest.fixture(scope="session")
def empty(tmp_path_factory):
    """A file of SQLite with the tables of a store, and nothing in them: to be copied."""
    from duelay.live import Store

    path = tmp_path_factory.mktemp("empty") / "duels.db"
    Store(path).migrate()
    return path


@pytest.fixture
def url(empty, tmp_path):
    """The address of an empty store of the test's own, of SQLite."""
    return f"sqlite:///{shutil.copy(empty, tmp_path / 'duels.db')}"


@pytest.fixture(scope="session")
def migrated(postgresql):
    """A database of PostgreSQL with the tables of a store, and nothing in them: to be copied."""
    from duelay.live import Store

    with postgresql.database() as url:
        store = Store(url)
        store.migrate()
        store.close()
        yield store.url.database


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request):
    """Give the address of an empty store of the test's own: of SQLite, and of PostgreSQL."""
    if request.param == "sqlite":
        yield request.getfixturevalue("url")
    else:
        migrated = request.getfixturevalue("migrated")
        with request.getfixturevalue("postgresql").database(migrated) as url:
            yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def bare(request, tmp_path):
    """Give the address of a store that has not even tables, and no file of SQLite."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/duels.db"
    else:
        with request.getfixturevalue("postgresql").database() as url:
            yield url


def pytest_terminal_summary(terminalreporter):
    """Say what was skipped and why, in at most ten lines; `make test` says it once more."""
    counts = left_out.reasons(terminalreporter.stats.get("skipped", []))
    left_out.write(counts)
    if counts:
        terminalreporter.section(left_out.TITLE, sep="!", red=True, bold=True)
        for line in left_out.lines(counts):
            terminalreporter.line(line)
