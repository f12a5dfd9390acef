"""`duelay report`, as somebody types it."""

import pytest

from duelay.live import Experiment

pytestmark = pytest.mark.interpreted


@pytest.fixture
def path(tmp_path):
    with Experiment.create(tmp_path / "duels.db", "buttons", ["red", "green"]) as experiment:
        experiment.tell(experiment.ask())
    return tmp_path / "duels.db"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def test_the_command_writes_it_and_replaces_an_earlier_one(command, path, folder):
    out = folder / "page.html"
    out.write_text("an earlier one")
    status, shown, complaints = command("report", path, "buttons", "--out", out)
    assert (status, shown, complaints) == (0, f"wrote {out}\n", "")
    assert out.read_text("utf-8").startswith("<!doctype html>")
    assert [each.name for each in folder.iterdir()] == ["page.html"]


def test_what_cannot_be_written_is_a_sentence(command, path, folder):
    status, _, complaints = command("report", path, "button", "--out", folder / "page.html")
    assert status == 2 and "no experiment 'button'" in complaints
    status, _, complaints = command("report", path, "buttons", "--out", folder / "a" / "b")
    assert status == 1 and "No such file" in complaints
    status, _, complaints = command("report", "http://127.0.0.1:9", "b", "--out", folder / "b")
    assert status == 2 and "STORE must be a file or a database" in complaints
    assert command("report", path, "buttons")[0] == 2
    assert list(folder.iterdir()) == []
