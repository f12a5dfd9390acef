"""What a run says when its folder or its disk is taken away."""

import shutil

import pytest

from duelay import experiments
from duelay.experiments.results import export
from helpers import fingerprint, spec

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("undrawn")]


def test_a_folder_removed_in_mid_run_is_one_sentence(tmp_path):
    folder = tmp_path / "out"
    seen = []

    def remove(line):
        seen.append(line)
        if len(seen) == 3:
            shutil.rmtree(folder)

    sentence = "3 of 12 cells: .*out was removed"
    with pytest.raises(experiments.WorkFailedError, match=sentence):
        experiments.run(spec(), folder, workers=1, say=remove)
    experiments.run(spec(), folder, workers=1, quiet=True)
    assert (folder / "report.html").exists()


def test_a_folder_removed_before_the_tables_are_written_is_one_sentence(tmp_path, monkeypatch):
    folder = tmp_path / "out"

    def remove(results, place):
        shutil.rmtree(folder)
        return export(results, place)

    monkeypatch.setattr(experiments, "export", remove)
    with pytest.raises(experiments.WorkFailedError, match="done: .*out was removed"):
        experiments.run(spec(), folder, workers=1, quiet=True)


def test_a_full_disk_while_tables_are_written_is_one_sentence(tmp_path, monkeypatch):
    def full(results, place):
        raise OSError(28, "the disk is full")

    monkeypatch.setattr(experiments, "export", full)
    with pytest.raises(experiments.WorkFailedError, match="all cells done.*full"):
        experiments.run(spec(), tmp_path / "out", workers=1, quiet=True)


def test_a_folder_in_the_place_of_a_cell_is_one_sentence(tmp_path):
    folder = tmp_path / "out"
    experiments.run(spec(), folder, workers=1, quiet=True)
    before = fingerprint(folder)
    cell = next((folder / "cells").glob("*.npz"))
    cell.unlink()
    cell.mkdir()
    with pytest.raises(experiments.WorkFailedError, match="is a folder"):
        experiments.run(spec(), folder, workers=1, quiet=True)
    cell.rmdir()
    experiments.run(spec(), folder, workers=1, quiet=True)
    assert fingerprint(folder) == before
