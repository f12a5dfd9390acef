"""`duelay demo-live`, as somebody types it: it moves, it ends, and it leaves nothing behind."""

import contextlib
import os
import signal
import socket
import subprocess
import sys

import httpx
import pytest

from duelay.service.demo import run
from live.hours import Hours
from service.served import ENVIRONMENT, LONG, free_port, wait_until

pytestmark = [pytest.mark.interpreted, pytest.mark.long]


@contextlib.contextmanager
def shown(folder, *options):
    """Give a demonstration that runs: its process and its address."""
    port = free_port()
    command = [sys.executable, "-m", "duelay", "demo-live", "--port", str(port), *options]
    environment = os.environ | ENVIRONMENT | {"TMPDIR": str(folder)}
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield process, f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def duels(address):
    """How many duels each experiment has had; empty as long as nobody answers."""
    try:
        found = httpx.get(f"{address}/experiments", timeout=LONG).json()
    except httpx.TransportError:
        return {}
    return {each["name"]: each["duels"] for each in found["experiments"]}


def moves(address):
    """Wait until visitors have come who were not made up beforehand."""
    return wait_until(lambda: (n := duels(address)) and min(n.values()) > 100 and n)


def test_it_moves_and_a_signal_stops_it_in_good_order(tmp_path):
    with shown(tmp_path, "--minutes", "1000") as (process, address):
        before = moves(address)
        assert list(before) == ["checkout button", "headline", "search ranking"]
        page = httpx.get(f"{address}/", timeout=LONG)
        assert page.status_code == 200 and "checkout button" in page.text
        later = wait_until(lambda: (n := duels(address)) and n["headline"] > before["headline"])
        assert later
        process.send_signal(signal.SIGTERM)
        has_ended(process, address)
        assert list(tmp_path.iterdir()) == []


def test_it_ends_by_itself_and_leaves_nothing(tmp_path):
    with shown(tmp_path, "--minutes", "0.05") as (process, address):
        has_ended(process, address)
        assert list(tmp_path.iterdir()) == []


def has_ended(process, address):
    """Wait until it has ended in good order."""
    words, _ = process.communicate(timeout=LONG)
    assert process.returncode == 0, words
    assert f"the page: {address}/" in words and "stopped, and nothing is left" in words
    assert "Traceback" not in words and "warning" not in words


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGHUP])
def test_it_stops_at_once_before_anything_is_there(tmp_path, how):
    with shown(tmp_path) as (process, address):
        # Its own folder: to find out where temporary files go, Python makes one of its own before.
        wait_until(lambda: list(tmp_path.glob(f"{run._FOLDER}*")))
        process.send_signal(how)
        words, _ = process.communicate(timeout=LONG)
        assert process.returncode == 0 and "Traceback" not in words, words
        assert list(tmp_path.iterdir()) == []


def test_a_signal_that_comes_first_of_all_stops_it_too(monkeypatch):
    said = []
    monkeypatch.setattr(run, "remove_left", lambda: signal.raise_signal(signal.SIGINT))
    run.demonstrate(1000.0, 0, say=said.append)
    assert said[-1] == "stopped, and nothing is left"


def test_what_a_killed_one_left_is_removed_by_the_next(tmp_path, monkeypatch):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = tmp_path / f"{run._FOLDER}{ended.pid}-abc"
    here = tmp_path / f"{run._FOLDER}{os.getpid()}-abc"
    other = tmp_path / f"{run._FOLDER}notes"
    for folder in (left, here, other):
        folder.mkdir()
        (folder / "duels.db").touch()
    monkeypatch.setattr(run.tempfile, "tempdir", str(tmp_path))
    run.remove_left()
    assert not left.exists() and here.exists() and other.exists()


def test_a_port_that_is_taken_is_a_sentence(command):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        status, _, complaints = command("demo-live", "--port", port)
    assert status == 2 and f"port {port} cannot be had" in complaints


@pytest.mark.parametrize("wrong", [("--minutes", "0"), ("--minutes", "soon"), ("--port", "-1")])
def test_what_makes_no_sense_is_refused(command, wrong):
    assert command("demo-live", *wrong)[0] == 2


def test_another_port_is_taken_where_the_usual_one_is_not_free(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setattr(run, "PORT", taken.getsockname()[1])
        with contextlib.closing(run._listen(None)) as found:
            assert found.getsockname()[1] not in (0, run.PORT)


def test_the_clock_stands_until_it_is_let_go_and_then_races():
    world = Hours(50.0)
    clock = run.FastClock(1e9, passed=world)
    world.pass_by(3.0)
    assert clock() == 1e9
    clock.hold(2e9)
    assert clock() == 2e9
    clock.run()
    world.pass_by(0.5)
    assert clock() == 2e9 + 500.0
    assert clock.seconds_to(2e9 + 600.0) == 0.1
