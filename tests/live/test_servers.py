"""The fixture of a store, of either kind, and the server behind it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import servers
from duelay.live import Experiment, Store, verify

HERE = Path(__file__).parent

STARTS = """
import os, signal, sys
sys.path.insert(0, {tests!r})
import servers
print(servers.PostgreSQL().folder, flush=True)
os.kill(os.getpid(), signal.{signal})
"""


def test_a_store_of_either_kind_is_empty_and_takes_an_experiment(store):
    assert Experiment.names(store) == () == verify(store)
    takes_an_experiment(store)


def test_a_store_without_tables_takes_an_experiment_too(bare):
    assert Store(bare).revision() is None
    takes_an_experiment(bare)


def takes_an_experiment(store):
    experiment = Experiment.create(store, "buttons", ["red", "green", "blue"])
    assert experiment.tell(experiment.ask()) == "counted"
    assert Experiment.names(store) == ("buttons",)
    assert verify(store) == ()
    experiment.close()


def test_the_server_writes_to_the_disk_before_it_says_so(postgresql):
    for setting in ("fsync", "synchronous_commit", "full_page_writes"):
        assert postgresql.execute(f"SHOW {setting}") == [("on",)]
    assert postgresql.execute("SHOW listen_addresses") == [("",)]  # nobody else comes in


@pytest.mark.long
@pytest.mark.parametrize("name", ["SIGKILL", "SIGINT"])
def test_the_server_ends_with_the_process_that_started_it_however_that_ends(postgresql, name):
    source = STARTS.format(tests=str(HERE.parent), signal=name)
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=False
    )
    folder = Path(done.stdout.strip())
    assert folder.name.startswith("duelay-pg-") and done.returncode == -getattr(signal, name)
    until = time.monotonic() + 300.0
    while folder.exists() and time.monotonic() < until:
        time.sleep(0.1)
    assert not folder.exists()


def test_a_machine_without_postgresql_is_told_in_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(servers, "_PLACES", ())
    find = servers.importlib.util.find_spec
    monkeypatch.setattr(
        servers.importlib.util, "find_spec", lambda name: find(name) if name == "psycopg" else None
    )
    with pytest.raises(servers.NoServerError, match="not installed, and the wheel pixeltable-pg"):
        servers.find_programs()


@pytest.mark.long
def test_what_is_left_out_for_want_of_a_server_is_said_at_the_end(tmp_path):
    (tmp_path / "conftest.py").write_text(
        f"import sys; sys.path.insert(0, {str(HERE.parent)!r})\n"
        "import servers\n"
        "def none(): raise servers.NoServerError('there is none')\n"
        "servers.find_programs = none\n"
        "import conftest_of_all\n"
        "from conftest_of_all import empty, migrated, postgresql, store, url\n"
        "from conftest_of_all import pytest_terminal_summary\n"
    )
    (tmp_path / "conftest_of_all.py").write_text((HERE.parent / "conftest.py").read_text())
    (tmp_path / "test_it.py").write_text("def test_it(store): pass\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"},
    )  # fmt: skip
    assert "1 passed, 1 skipped" in done.stdout
    assert "1 x NOT TESTED WITH POSTGRESQL: there is none" in done.stdout
