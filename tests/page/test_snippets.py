"""The code to paste runs as it stands, also once a winner is declared."""

import json
import os
import subprocess
import sys

import pytest

from duelay.live import Experiment
from duelay.page.snippets import write_curl, write_javascript, write_python
from servers import need
from service.served import Server

NAME = 'it\'s "50 %" & more'


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server with conversions, votes, and one that has declared a winner."""
    folder = tmp_path_factory.mktemp("pasted")
    url = f"sqlite:///{folder}/duels.db"
    for name, feedback in ((NAME, "conversions"), ("votes", "votes"), ("over", "conversions"),
                           ("one", "conversions")):  # fmt: skip
        display = "one" if name == "one" else "pair"
        with Experiment.create(
            url, name, ["red", "green"], feedback=feedback, display=display
        ) as experiment:
            for n in range(60 if name == "over" else 0):
                duel = experiment.ask(unit=f"before-{n}")
                if duel.first == "red":
                    experiment.tell(duel)
    with Server(url, folder) as server:
        yield server.url, url


WRITERS = {"python": write_python, "curl": write_curl, "node": write_javascript}


def run(words, how):
    program = {"python": [sys.executable, "-c"], "curl": ["/bin/sh", "-euc"],
               "node": ["node", "--input-type=module", "-e"]}[how] + [words]  # fmt: skip
    done = subprocess.run(program, capture_output=True, text=True, env=os.environ, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("how", WRITERS)
@pytest.mark.parametrize("name", [NAME, "votes", "over", "one"])
def test_what_is_pasted_asks_tells_and_shows_a_winner_alone(served, name, how):
    if how != "python":
        need(how)
    origin, store = served
    words = WRITERS[how](name, origin, False, name == "votes", name == "one")
    words = words.replace("visitor-17", f"by {how}")
    with Experiment.open(store, name) as experiment:
        before = experiment.standing().tick
        said = run(words, how)
        history = experiment.history()
        n = experiment.standing().tick - before
    if name == "over":
        assert n == 0 and "red" in said and (how != "curl" or json.loads(said)["id"] is None)
        return
    assert n == 1 and history.is_heard[-1]
    assert "red" in said or "green" in said
    assert ("red" in said and "green" in said) == (name != "one" or how == "curl")
