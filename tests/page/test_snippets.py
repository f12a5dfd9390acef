"""The code to paste runs as it stands, also once a winner is declared."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from duelay.live import Experiment
from duelay.page.snippets import write_curl, write_python
from service.served import Server

NAME = 'it\'s "50 %" & more'


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server with conversions, votes, and one that has declared a winner."""
    folder = tmp_path_factory.mktemp("pasted")
    url = f"sqlite:///{folder}/duels.db"
    for name, feedback in ((NAME, "conversions"), ("votes", "votes"), ("over", "conversions")):
        with Experiment.create(url, name, ["red", "green"], feedback=feedback) as experiment:
            for n in range(60 if name == "over" else 0):
                duel = experiment.ask(unit=f"before-{n}")
                if duel.first == "red":
                    experiment.tell(duel)
    with Server(url, folder) as server:
        yield server.url, url


def run(words, *, is_python):
    program = [sys.executable, "-c", words] if is_python else ["/bin/sh", "-euc", words]
    done = subprocess.run(program, capture_output=True, text=True, env=os.environ, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("is_python", [True, False])
@pytest.mark.parametrize("name", [NAME, "votes", "over"])
def test_what_is_pasted_asks_tells_and_shows_a_winner_alone(served, name, is_python):
    if not is_python and shutil.which("curl") is None:
        pytest.skip("there is no curl")
    origin, store = served
    write = write_python if is_python else write_curl
    words = write(name, origin, False, name == "votes").replace("visitor-17", f"by {write}")
    with Experiment.open(store, name) as experiment:
        before = experiment.standing().tick
        said = run(words, is_python=is_python)
        history = experiment.history()
        n = experiment.standing().tick - before
    if name == "over":
        assert n == 0 and "red" in said and (is_python or json.loads(said)["id"] is None)
        return
    assert n == 1 and history.is_heard[-1]
    assert "red" in said and "green" in said
