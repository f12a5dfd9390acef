"""Specifications, cells, resuming: the same bytes whatever happens on the way."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas
import pytest

import duelay
from duelay import cli, experiments
from duelay.delays.ticks_or_clock import WAYS
from duelay.experiments import cells as cells_module
from duelay.experiments import execution, spec_parser
from duelay.experiments.cells import cells_of, compute, read, write
from helpers import SMALL, fingerprint, spec

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A small specification run to the end in one go, with one worker."""
    folder = tmp_path_factory.mktemp("finished") / "out"
    experiments.run(spec(), folder, workers=1, quiet=True)
    return folder


def test_a_finished_folder_holds_tables_figures_and_a_report(finished):
    names = set(fingerprint(finished))
    assert {"results.csv", "results.parquet", "report.md", "report.html", "specification.json"} <= (
        names
    )
    for kind in ("regret", "log", "pairs"):
        for ending in ("svg", "pdf", "png"):
            assert f"figures/small-{kind}.{ending}" in names
    assert sum(name.startswith("cells/") for name in names) == 2 * 2 * 3
    assert not any(".draft" in name for name in names)


def test_the_tables_are_tidy_and_agree_with_the_simulator(finished):
    table = pandas.read_csv(finished / "results.csv")
    assert list(table.columns) == [
        "problem", "policy", "label", "law", "setting", "run", "t", "regret",
    ]  # fmt: skip
    assert set(table["label"]) == {"rucb-delay:window=50", "the baseline"}
    assert table.equals(pandas.read_parquet(finished / "results.parquet").astype(table.dtypes))
    assert len(table) == 2 * 2 * 5 * 10
    rows = table[(table.problem == "mslr") & (table.policy == "rucb:alpha=1")]
    direct = duelay.simulate(
        duelay.datasets.load("mslr"), duelay.RUCB(1.0), delay="geometric:0.1", horizon=300, runs=5,
        seed=3, checkpoints=10,
    )  # fmt: skip
    np.testing.assert_array_equal(rows.regret.to_numpy().reshape(5, 10), direct.regret)
    results = experiments.load(spec(), finished)
    there = results.get("small", "mslr", "the baseline")
    np.testing.assert_array_equal(there.plays, direct.plays)
    assert there.pairs[-1].sum() == 5 * 300


def test_the_page_needs_nothing_but_itself(finished):
    page = (finished / "report.html").read_text()
    assert "data:image/svg+xml;base64," in page
    assert 'src="figures' not in page and 'src="http' not in page and "<script" not in page
    assert "the baseline" in page and "Theorem 1" in page


@pytest.mark.parametrize("workers, backend", [(2, "threads"), (3, "threads"), (2, "processes")])
def test_any_number_of_workers_gives_the_same_bytes(finished, tmp_path, workers, backend):
    experiments.run(spec(), tmp_path / "out", workers=workers, backend=backend, quiet=True)
    assert fingerprint(tmp_path / "out") == fingerprint(finished)


def test_a_rerun_computes_only_what_is_missing_or_damaged(finished, tmp_path, monkeypatch):
    folder = tmp_path / "out"
    shutil.copytree(finished, folder)
    computed = []

    def counting(cell):
        computed.append(cell)
        return compute(cell)

    monkeypatch.setattr(execution, "compute", counting)
    said = []
    experiments.run(spec(), folder, workers=1, say=said.append)
    assert computed == []
    assert [line for line in said if not line.partition("/")[2].startswith("5 ")] == []  # no cells
    first, second, third, *_ = cells_of(spec())
    store = folder / "cells"
    (store / first.file_name).unlink()
    damaged = store / second.file_name
    damaged.write_bytes(damaged.read_bytes()[:-40])
    arrays = read(third, store)
    arrays["regret"] = arrays["regret"] + 1e-9  # a number changed, the file sound: the checksum
    with np.load(store / third.file_name) as stored:
        header = stored["header"]
    np.savez(store / third.file_name, header=header, **arrays)
    experiments.run(spec(), folder, workers=1, say=said.append)
    assert computed == execution._by_kind([first, second, third])
    complaints = [line for line in said if "damaged" in line]
    assert len(complaints) == 2
    assert second.file_name in complaints[0] and third.file_name in complaints[1]
    assert len([line for line in said if line.startswith(("10/", "11/", "12/"))]) == 3
    assert fingerprint(folder) == fingerprint(finished)


@pytest.mark.usefixtures("undrawn")
def test_a_changed_specification_keeps_what_has_not_changed(finished, tmp_path, monkeypatch):
    folder = tmp_path / "out"
    shutil.copytree(finished, folder)
    computed = []
    monkeypatch.setattr(execution, "compute", lambda cell: computed.append(cell) or compute(cell))
    more = SMALL.replace("runs = 5", "runs = 6")
    experiments.run(spec(more), folder, workers=1, quiet=True)
    assert {(cell.start, cell.stop) for cell in computed} == {(4, 6)}
    monkeypatch.setattr(cells_module, "_OURS", "other")
    computed.clear()
    said = []
    experiments.run(spec(more), folder, workers=1, say=said.append)
    assert len(computed) == 12  # other sources may give other numbers
    assert "12 of 12 cells were made by other sources of duelay: they are computed again" in said


def test_cells_of_an_earlier_release_are_known_and_computed_again(finished, tmp_path, monkeypatch):
    """They had no verdicts: they are not damaged, but of other sources."""
    folder = tmp_path / "out"
    shutil.copytree(finished, folder)
    early = cells_module._ARRAYS[:8]
    with monkeypatch.context() as patch:
        patch.setattr(cells_module, "_OURS", "earlier")
        patch.setattr(cells_module, "_ARRAYS", early)
        for cell in cells_of(spec()):
            write(cell, {name: compute(cell)[name] for name in early}, folder / "cells")
        assert read(cells_of(spec())[0], folder / "cells")["stopped"].size
    said = []
    experiments.run(spec(), folder, workers=1, quiet=True, say=said.append)
    assert said[0].startswith("12 of 12 cells were made by other sources of duelay")
    assert fingerprint(folder) == fingerprint(finished)


def test_results_of_other_sources_are_not_loaded(finished, monkeypatch):
    monkeypatch.setattr(cells_module, "_OURS", "other")
    with pytest.raises(ValueError, match="other sources"):
        experiments.load(spec(), finished)


# A run that does not end by itself, however late somebody comes to disturb it: it holds before the
# last of its 96 cells.
HELD = """
import sys, time
from duelay import cli
from duelay.experiments import execution

real = execution.write

def write(cell, arrays, store):
    while len(list(store.glob("[!.]*.npz"))) >= 90:
        time.sleep(0.1)
    real(cell, arrays, store)

execution.write = write
sys.argv[0] = "duelay"
cli.run()
"""
# A run that loses one of its own processes once it has written two cells.
LOSES_A_WORKER = """
import os, signal, sys
from pathlib import Path
from duelay import cli
from duelay.experiments import execution

real, n = execution.write, 0

def write(*given):
    global n
    real(*given)
    n += 1
    if n == 2:
        for child in Path("/proc/self/task").glob("*/children"):
            for pid in child.read_text().split():
                command = Path(f"/proc/{pid}/cmdline").read_text()
                if "loky" in command and "resource_tracker" not in command:
                    os.kill(int(pid), signal.SIGKILL)
                    print("killed", flush=True)
                    return

execution.write = write
sys.argv[0] = "duelay"
cli.run()
"""


def start(folder, specification, *options, code="from duelay import cli; cli.run()"):
    return subprocess.Popen(
        [sys.executable, "-c", code, "run", specification, "--out", folder, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_cells(folder, n, process, seconds=600):
    until = time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        if len(list((folder / "cells").glob("[!.]*.npz"))) >= n:
            return
        time.sleep(0.01)
    raise AssertionError(f"no {n} cells: {process.poll()} {process.stderr.read()}")


@pytest.fixture(scope="module")
def longer(tmp_path_factory):
    """A specification of 96 cells, which take a few seconds, and what it gives in one go."""
    place = tmp_path_factory.mktemp("longer")
    path = place / "small.toml"
    source = SMALL.replace("horizon = 300", "horizon = 60_000").replace("runs = 5", "runs = 24")
    path.write_text(source.replace("block = 2", "block = 1"))
    experiments.run(experiments.read(path), place / "out", workers=2, quiet=True)
    return path, fingerprint(place / "out")


@pytest.mark.compiled
@pytest.mark.parametrize("backend", ["threads", "processes"])
def test_kill_9_loses_nothing_that_was_written(longer, tmp_path, backend):
    path, expected = longer
    folder = tmp_path / "out"
    for n in (3, 30):
        process = start(folder, path, "--backend", backend, "--workers", "2", code=HELD)
        wait_for_cells(folder, n, process)
        process.kill()
        process.communicate(timeout=600)
    kept = {cell.name: cell.stat().st_mtime_ns for cell in (folder / "cells").glob("[!.]*.npz")}
    process = start(folder, path, "--quiet")
    _, complaints = process.communicate(timeout=600)
    assert process.returncode == 0, complaints
    after = {cell.name: cell.stat().st_mtime_ns for cell in (folder / "cells").glob("[!.]*.npz")}
    assert len(kept) >= 30 and kept.items() <= after.items()  # none was computed again
    assert fingerprint(folder) == expected


@pytest.mark.compiled
def test_workers_die_with_their_parent(longer, tmp_path):
    path, _ = longer
    options = ["--backend", "processes", "--workers", "2"]
    process = start(tmp_path / "out", path, *options, code=HELD)
    wait_for_cells(tmp_path / "out", 1, process)
    children = descendants(process.pid)
    assert children
    process.kill()
    process.communicate(timeout=600)
    until = time.monotonic() + 600
    while time.monotonic() < until and any(is_running(child) for child in children):
        time.sleep(0.1)
    assert not any(is_running(child) for child in children)


def descendants(pid):
    children = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            children += [int(child), *descendants(int(child))]
    return children


def is_running(pid):
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


@pytest.mark.compiled
def test_ctrl_c_stops_a_run_cleanly(longer, tmp_path):
    path, _ = longer
    process = start(tmp_path / "out", path, "--workers", "2", code=HELD)
    wait_for_cells(tmp_path / "out", 2, process)
    process.send_signal(signal.SIGINT)
    _, complaints = process.communicate(timeout=600)
    assert process.returncode == 130
    assert "duelay: stopped" in complaints and "Traceback" not in complaints


def test_two_processes_do_not_share_a_folder(tmp_path):
    with (
        execution.opened(tmp_path / "out", spec()),
        pytest.raises(ValueError, match="another duelay process"),
        execution.opened(tmp_path / "out", spec()),
    ):
        raise AssertionError("both got in")
    with execution.opened(tmp_path / "out", spec()):
        pass  # let go


def test_drafts_of_a_killed_process_are_swept_up(tmp_path):
    with execution.opened(tmp_path / "out", spec()):
        pass
    draft = tmp_path / "out" / "cells" / ".draft-1-x.npz"
    draft.write_bytes(b"half")
    with execution.opened(tmp_path / "out", spec()):
        assert not draft.exists()


def test_a_folder_of_something_else_is_refused(finished, tmp_path):
    other = spec(SMALL.replace('"small"', '"other"'))
    with pytest.raises(ValueError, match="specification 'small'"):
        experiments.run(other, finished)
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(ValueError, match="not empty"):
        experiments.run(spec(), tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="cannot work in .*file"):
        experiments.run(spec(), tmp_path / "file")


def test_a_folder_without_permission_is_one_sentence(tmp_path, capfd):
    """Root may write everywhere: a child that is somebody else tries it."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o755)
    for folder in (tmp_path, *tmp_path.parents[:3]):
        if folder != Path("/tmp"):
            folder.chmod(folder.stat().st_mode | 0o055)
    child = os.fork()
    if child == 0:  # pragma: no cover (another process)
        if os.geteuid() == 0:
            os.setegid(65534)
            os.seteuid(65534)
        else:
            locked.chmod(0o555)
        sys.argv = ["duelay", "run", str(path), "--out", str(locked / "out"), "--quiet"]
        status = 99
        try:
            cli.run()
        except SystemExit as stop:
            status = int(stop.code or 0)
        finally:
            sys.stderr.flush()
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 2
    assert "cannot work in" in capfd.readouterr().err


def test_a_process_stopped_while_it_takes_hold_can_begin_again(tmp_path, monkeypatch):
    def full(path, content):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr(execution, "write_whole", full)
        with pytest.raises(ValueError, match="No space left"):
            experiments.run(spec(), tmp_path / "out")
    (tmp_path / "out" / "cells").mkdir(exist_ok=True)
    (tmp_path / "out" / ".draft-1-specification.json").write_text("{")
    with execution.opened(tmp_path / "out", spec()):
        pass
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "specification.json").write_text("[1, 2, 3]")
    with pytest.raises(ValueError, match="not one of"):
        experiments.run(spec(), foreign)


@pytest.mark.compiled
def test_a_worker_that_is_killed_is_one_sentence(longer, tmp_path):
    path, _ = longer
    options = ["--backend", "processes", "--workers", "2"]
    process = start(tmp_path / "out", path, *options, code=LOSES_A_WORKER)
    out, complaints = process.communicate(timeout=600)
    assert process.returncode == 1 and "killed" in out
    assert "cells, which are kept" in complaints and "Traceback" not in complaints


def test_a_worker_with_other_sources_is_refused(tmp_path, monkeypatch):
    def elsewhere(cell, parent):
        return cell.file_name, compute(cell), {"duelay": "0.0.1, sources 12ab"}, 0.0

    monkeypatch.setattr(execution, "_work", elsewhere)
    message = r"another duelay \(0.0.1, sources 12ab\)"
    with pytest.raises(experiments.WorkFailedError, match=message):
        experiments.run(spec(), tmp_path / "out", workers=1, quiet=True)


@pytest.mark.usefixtures("undrawn")
def test_nobody_need_read_the_progress(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    experiments.run(spec(), tmp_path / "out", workers=1)
    assert (tmp_path / "out" / "report.html").exists()


def test_words_are_words(tmp_path):
    """Labels and titles with HTML, Markdown and mathematics in them."""
    label = "<script>alert(1)</script> $\\\\foo$ *x* | y"
    source = SMALL.replace("the baseline", label).replace("runs = 5", 'runs = 1\ntitle = "a <b>"')
    source = source.replace("rucb-delay:window=50", "rucb-delay:window=50,alpha=2")
    source = source.replace('problems = ["mslr", "arithmetic:3,0.1"]', 'problems = ["mslr"]')
    experiments.run(spec(source), tmp_path / "out", workers=1, quiet=True)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<script" not in page and "&lt;script&gt;" in page and "a &lt;b&gt;" in page
    assert "alpha = 2 and a window of 50" in page
    assert "± -" in page  # one run has no spread
    shown = experiments.load(spec(source), tmp_path / "out")._repr_html_()
    assert "regret, 1 run of 300 duels" in shown and "±" not in shown


@pytest.mark.usefixtures("undrawn")
def test_grids_that_share_cells_give_each_row_once(tmp_path):
    source = SMALL + '[[grid]]\nname = "a"\nruns = 3\n[[grid]]\nname = "b"\n'
    experiments.run(spec(source), tmp_path / "out", workers=1, quiet=True)
    table = pandas.read_csv(tmp_path / "out" / "results.csv")
    assert len(table) == 2 * 2 * 5 * 10
    assert not table.duplicated(["problem", "policy", "law", "run", "t"]).any()
    results = experiments.load(spec(source), tmp_path / "out")
    assert results.get("a", "mslr", "the baseline").runs == 3
    assert results.get("b", "mslr", "the baseline").runs == 5


@pytest.mark.usefixtures("undrawn")
def test_a_horizon_that_is_too_short_is_said_once(tmp_path):
    source = SMALL.replace("rucb:alpha=1", "mrr-db-delay")
    message = r"^horizon 300 .*\(2 of 2 problems\)$"
    with pytest.warns(UserWarning, match=message) as caught:
        experiments.run(spec(source), tmp_path / "out", workers=2, quiet=True)
    assert len(caught) == 1  # for both problems
    page = (tmp_path / "out" / "report.md").read_text()
    assert "- mslr, the baseline: horizon 300 is too short" in page
    assert "- arithmetic:3,0.1, the baseline: horizon 300 is too short" in page


@pytest.mark.usefixtures("undrawn")
def test_a_full_disk_keeps_what_was_computed(tmp_path, monkeypatch):
    written = []

    def filling_up(cell, arrays, folder):
        if len(written) == 4:
            raise OSError(28, "No space left on device")
        written.append(cell)
        write(cell, arrays, folder)

    with monkeypatch.context() as context:
        context.setattr(execution, "write", filling_up)
        with pytest.raises(experiments.WorkFailedError, match="4 of 12 cells"):
            experiments.run(spec(), tmp_path / "out", workers=1, quiet=True)
    assert len(list((tmp_path / "out" / "cells").iterdir())) == 4
    experiments.run(spec(), tmp_path / "out", workers=1, quiet=True)


def test_an_incomplete_folder_cannot_be_loaded(tmp_path):
    with execution.opened(tmp_path / "out", spec()) as folder:
        pass
    with pytest.raises(ValueError, match="mslr, rucb-delay"):
        experiments.load(spec(), folder)


@pytest.mark.parametrize(
    "change, message",
    [
        (("horizon", "horizn"), r"small.toml, line 6: unknown key 'horizn' \(did you mean horizon"),
        (('"mslr"', '"mlsr"'), r"line 3: unknown problem 'mlsr' \(did you mean mslr\?\)"),
        (('"mslr"', '"none.csv"'), "line 3: .*none.csv"),
        (('"mslr"', '"arithmetic:3"'), "line 3: problem 'arithmetic:3'"),
        (('"mslr"', "7"), "problems"),
        (("rucb-delay:", "rucb-dely:"), r"line 4: unknown policy 'rucb-dely' \(did you mean"),
        (("window=50", "windw=50"), r"line 4: .*no parameter 'windw' \(did you mean window\?\)"),
        (("alpha=1", "alpha=0.1"), "line 4: .*alpha .*0.5"),
        (("geometric:0.1", "geometric:7"), "line 5: .*: p "),
        (
            ("geometric:0.1", "exponential:1h"),
            "line 5: delay",
        ),
        (("window=50", "window=50s"), "line 4: window"),
        (("horizon = 300", "horizon = 0"), "line 6: horizon"),
        (("runs = 5", 'runs = "many"'), "line 7: runs"),
        (("runs = 5", "runs = 1_000_000_000"), "runs and block"),
        (('"the baseline"', '"two\\nlines"'), "label must"),
        (("seed = 3", 'claims = "paper"'), "grids of paper.toml, .*'paper'"),
        (
            ("seed = 3", 'seed = 3\n[[grid]]\nname = "a"\n[[grid]]\nname = "b"\nseed = 4'),
            "grid 'b' repeats mslr, rucb-delay:window=50, geometric:0.1",
        ),
        (
            ("seed = 3", 'seed = 3\n[[grid]]\nname = "a b"\n[[grid]]\nname = "a-b"'),
            "grids 'a b' and 'a-b'",
        ),
        (
            ("seed = 3", 'seed = 3\n[[grid]]\nname = "a"\nhorizon = 0'),
            "line 13: horizon",
        ),
        (("seed = 3", "x = " + "[" * 5000), "small.toml: "),
        (("label", "lable"), r"line 4: unknown key 'lable' \(did you mean label\?\)"),
        (("seed = 3", 'seed = 3\nclaims = "papr"'), "claims"),
        (('delays = ["geometric:0.1"]', "delays = []"), "line 5: delays"),
        (('"mslr", ', '"mslr", "mslr", '), "line 3: problems"),
        (('name = "small"', "name = 3"), "line 2: name"),
        (("seed = 3", "seed = "), "small.toml: Invalid value"),
        (
            ("seed = 3", "seed = 3\nstop = 0.05"),
            "line 4: stop",
        ),
        (('{ policy = "rucb:alpha=1", label = "the baseline" }', "5"), "policies"),
        (("seed = 3", "grid = 3"), "grid must"),
        (
            ("seed = 3", 'seed = 3\n[[grid]]\nname = "a"\n[[grid]]\nname = "a"'),
            "each grid",
        ),
        (
            ('"geometric:0.1"', '"by-pair:constant/constant/constant/constant"'),
            "delay must",
        ),
    ],
)
def test_a_wrong_specification_is_refused_with_its_line(change, message):
    source = SMALL.replace(*change)
    assert source != SMALL
    with pytest.raises(ValueError, match=message):
        spec(source)


def test_a_problem_without_a_winner_is_refused_before_anything_runs(tmp_path):
    (tmp_path / "circle.csv").write_text("0.5,0.9,0.1\n0.1,0.5,0.9\n0.9,0.1,0.5\n")
    with pytest.raises(ValueError, match="line 3: circle"):
        spec_parser.parse(SMALL.replace('"mslr"', '"circle.csv"'), "small.toml", tmp_path)


def test_an_unreadable_specification_is_named(tmp_path):
    with pytest.raises(ValueError, match="none.toml"):
        experiments.read(tmp_path / "none.toml")


def test_the_papers_specification():
    paper = experiments.built_in("paper")
    grids = {grid.name: grid for grid in paper.grids}
    assert [len(grids[name].problems) for name in ("paper", "variants")] == [6, 2]
    assert len(grids["paper"].policies) == 9
    assert (grids["paper"].horizon, grids["paper"].runs) == (200_000, 100)
    quick = paper.quick()
    assert quick.name == "paper-quick"
    assert (quick.grids[0].horizon, quick.grids[0].runs) == (40_000, 10)


def test_grids_inherit_from_the_top():
    source = SMALL + '[[grid]]\nname = "a"\n[[grid]]\nname = "b"\nruns = 2\nproblems = ["tennis"]\n'
    a, b = spec(source).grids
    assert (a.runs, b.runs) == (5, 2)
    assert [problem.name for problem in b.problems] == ["tennis"]
    assert a.policies == b.policies


def test_a_csv_of_ones_own_gives_a_figure_in_two_commands(tmp_path, monkeypatch, capsys):
    """The README's two commands."""
    monkeypatch.chdir(tmp_path)
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    block = next(part for part in readme.split("```") if "cat > mine.toml" in part)
    Path("mine.csv").write_text("old,new,newer\n0.5,0.4,0.3\n0.6,0.5,0.4\n0.7,0.6,0.5\n")
    script = block.removeprefix("sh\n").replace("runs = 20", "runs = 2")
    script = script.replace("horizon = 50_000", "horizon = 300")
    script = script.replace("duelay run", f"{sys.executable} -m duelay run")
    subprocess.run(["sh", "-e", "-c", script], check=True, capture_output=True)
    assert (tmp_path / "mine" / "figures" / "mine-regret.png").exists()


@pytest.mark.usefixtures("undrawn")
def test_progress_is_a_line_a_cell_where_nobody_watches(tmp_path, monkeypatch, capsys):
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    for options, lines in (([], 12 + 5), (["--quiet"], 0)):  # tables, three figures, the report
        out = tmp_path / f"out{lines}"
        monkeypatch.setattr(
            sys, "argv", ["duelay", "run", str(path), "--out", str(out), "--workers", "2", *options]
        )
        cli.run()
        shown = capsys.readouterr()
        assert len(shown.err.splitlines()) == lines
        assert f"report.html to {out}" in shown.out
    assert "mslr, rucb-delay" in str(cells_of(spec())[0])


def test_a_study_that_comes_with_duelay_is_read_by_its_name():
    ablation = experiments.read("ablation")
    assert ablation == experiments.built_in("ablation")
    assert len({str(law) for grid in ablation.grids for law in grid.delays}) == 6
    first, *others = ([c.label for c in grid.policies] for grid in ablation.grids)
    assert all(labels == first for labels in others)
    for grid in ablation.grids:  # those that are told a law are told the true one
        for choice in grid.policies:
            told = getattr(choice.under(grid.delays[0], grid.horizon), "delay", None)
            assert told in (None, *WAYS, grid.delays[0]), choice


def test_a_study_misspelt_is_guessed():
    with pytest.raises(ValueError, match="did you mean ablation"):
        experiments.read("ablatoin")
