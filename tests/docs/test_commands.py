"""The commands of the README and of the tutorial, run in their order as from a fresh clone."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import httpx
import pytest

from duelay.cli.main import main
from servers import need
from service.served import ENVIRONMENT, LONG, free_port, is_well, wait_until

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
TUTORIAL = ROOT / "docs" / "tutorials" / "first-ab-test.md"
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MAKEFILE = (ROOT / "Makefile").read_text()
# A clock that goes as fast as the program sleeps, and the same visitors each time.
FAST = """
import random, time
random.seed(1)
now = [time.time()]
time.time = lambda: now[0]
time.sleep = lambda seconds: now.__setitem__(0, now[0] + seconds)
"""


class Reader:
    """Somebody who types the commands of a page, in a folder of their own."""

    def __init__(self, folder):
        self.folder, self.port, self.server = folder, free_port(), None
        (folder / "fast").mkdir()
        (folder / "fast" / "sitecustomize.py").write_text(FAST)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = os.environ | {"PATH": path, "NO_PROXY": "127.0.0.1"}

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def read(self, page, before=lambda command: None):
        """Run all commands of a page; return what each block has printed."""
        shown = []
        for language, title, block in FENCE.findall(page.read_text()):
            block = block.replace("127.0.0.1:8000", f"127.0.0.1:{self.port}")
            if file := re.search(r'title="(.+)"', title):
                (self.folder / file[1]).write_text(block)
            elif language == "sh":
                before(block)
                shown.append(self.run(block))
        return shown

    def run(self, block):
        """Run a block, but for what installs; that must be there."""
        if "curl " in block:
            need("curl")
        commands, kept = block.splitlines(), []
        for line in commands:
            words = shlex.split(line, comments=True) if is_whole(line) else [line]
            if not installs(words):
                kept.append(line)
            if words[:2] == ["duelay", "serve"]:
                assert line is commands[-1], "a server must be the last command of a block"
                self.serve(words)
                kept.pop()
        environment = self.environment
        if kept == ["python visitors.py"]:
            environment = environment | {"PYTHONPATH": str(self.folder / "fast")}
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", "\n".join(kept)], cwd=self.folder,
            env=environment, capture_output=True, text=True, timeout=LONG, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def serve(self, words):
        self.server = subprocess.Popen(
            [*words, "--port", str(self.port)], cwd=self.folder, env=self.environment | ENVIRONMENT,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        wait_until(lambda: self.server.poll() is not None or is_well(self.url))
        assert self.server.poll() is None, "the server has ended"

    def stop(self):
        """Stop the server as Ctrl-C does."""
        if self.server is not None and self.server.poll() is None:
            self.server.send_signal(signal.SIGINT)
            self.server.wait(timeout=LONG)
        self.server = None


def is_whole(line):
    """Whether a line is a command by itself, as those are that install or serve."""
    return line.startswith(("make ", "pip ", "python3 -m venv ", ". ", "duelay serve "))


def installs(words):
    """Whether a command is not run here; what it needs is there."""
    if words[0] == "make":
        assert re.search(rf"^{re.escape(words[1])}:", MAKEFILE, re.MULTILINE), words
    elif words[:2] == ["pip", "install"]:
        (extras,) = re.fullmatch(r"\.(?:\[(.+)\])?", words[2]).groups()
        wanted = set(extras.split(",")) if extras else set()
        assert wanted <= PROJECT["optional-dependencies"].keys(), words
    elif words[:3] == ["python3", "-m", "venv"]:
        assert words[3:] == [".venv"]
    else:
        assert words[0] != "." or words == [".", ".venv/bin/activate"]
        return words[0] == "."
    return True


@pytest.fixture
def reader(tmp_path):
    found = Reader(tmp_path)
    yield found
    found.stop()


@pytest.mark.compiled
@pytest.mark.long
def test_the_commands_of_the_readme_run_in_their_order(reader):
    shown = "".join(reader.read(README))
    assert (reader.folder / "mine" / "report.html").exists()
    assert '"counted"' in shown  # by the service, of the conversion
    assert "red" in shown and "green" in shown and "blue" in shown


@pytest.mark.interpreted
@pytest.mark.long
def test_the_commands_of_the_tutorial_run_in_their_order(reader):
    """The form of the page is filled in by another test, which has a browser."""

    def before(block):
        if "visitors.py" in block:
            made = {"name": "button colour", "arms": ["green", "blue"], "display": "one"}
            httpx.post(f"{reader.url}/experiments", json=made).raise_for_status()
        if "duelay report" in block:
            reader.stop()

    *_, said, _ = reader.read(TUTORIAL, before)
    assert said.startswith("the winner is ")
    winner = said.removeprefix("the winner is ").strip()
    for name in ("slide.svg", "page.html"):
        assert f"{winner} wins" in (reader.folder / name).read_text()


@pytest.mark.parametrize("page", [README, TUTORIAL], ids=lambda page: page.name)
def test_commands_within_sentences_have_the_options_that_they_name(page):
    found = re.findall(r"`duelay ([^`]+)`", FENCE.sub("", page.read_text()))
    assert found
    for words in map(shlex.split, found):
        command = main.commands[words[0]]
        options = {name for param in command.params for name in param.opts}
        assert {word for word in words if word.startswith("--")} <= options, words
        assert isinstance(command, click.Command)
