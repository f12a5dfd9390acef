"""What a newcomer sees first: the recommended policy, bars that say what they are about, Ctrl-C."""

import dataclasses
import importlib.util
import io
import subprocess
import sys
from pathlib import Path

import pytest

import duelay
from duelay import Setting, cli, experiments, policies, text
from duelay.cli import simulate as simulate_cli
from duelay.experiments import claims, execution, regret_figures, spec_parser

ROOT = Path(__file__).parents[2]
SIMULATE = ["simulate", "--dataset", "mslr", "--horizon", "200", "--runs", "2"]
TINY = 'problems = ["mslr"]\npolicies = ["rucb", "recommended"]\nhorizon = 200\nruns = 2\nblock = 2'


class Terminal(io.StringIO):
    """Standard error as a terminal."""

    def isatty(self):
        return True


def command(monkeypatch, *arguments):
    """Run the command; return its status."""
    monkeypatch.setattr(sys, "argv", ["duelay", *map(str, arguments)])
    try:
        cli.run()
    except SystemExit as stop:
        return stop.code or 0
    return 0


def test_recommended_is_what_recommend_gives():
    assert policies.parse("recommended") == duelay.recommend().policy
    assert text.aliases("policy") == {"recommended": duelay.recommend().policy}
    with pytest.raises(ValueError, match="'recomended'.*recommended"):
        policies.parse("recomended")


def test_recommended_takes_the_parameters_of_what_it_stands_for():
    policy = policies.parse("recommended:window=500,order=alternate")
    expected = dataclasses.replace(duelay.recommend().policy, window=500, order="alternate")
    assert policy == expected
    with pytest.raises(ValueError, match="'windw'"):
        policies.parse("recommended:windw=500")


def test_recommended_is_not_told_the_law():
    known = {"delay": duelay.delays.Constant(3), "mean_delay": 3.0}
    assert policies.parse("recommended", known).delay == "learn"
    assert policies.parse("rucb-delay", known).delay == duelay.delays.Constant(3)


@pytest.mark.long
def test_a_table_calls_it_recommended_and_says_what_that_is(monkeypatch, capsys, tmp_path):
    chosen = ["--policy", "recommended", "--policy", "rucb"]
    assert command(monkeypatch, *SIMULATE, *chosen, "--out", tmp_path) == 0
    shown = capsys.readouterr().out
    assert "\nrecommended  " in shown and "\nrucb  " in shown
    assert f"recommended is {duelay.recommend().policy}\n" in shown
    lines = (tmp_path / "regret.csv").read_text().splitlines()
    assert lines[0] == "problem,policy,label,law,setting,run,t,regret"
    assert lines[1].startswith(f"mslr,{duelay.recommend().policy},recommended,geometric:0.01,")


def test_a_specification_may_say_recommended():
    (grid,) = spec_parser.parse(TINY, "tiny.toml", Path()).grids
    assert [choice.label for choice in grid.policies] == ["rucb", "recommended"]
    assert grid.policies[1].under(grid.delays[0], 200) == duelay.recommend().policy


def test_the_policies_are_listed_with_what_is_recommended(monkeypatch, capsys):
    command(monkeypatch, "policies")
    shown = " ".join(capsys.readouterr().out.split())
    assert f"recommended What `duelay recommend` gives: {duelay.recommend().policy}" in shown


def test_the_demo_and_the_readmes_figure_have_what_is_recommended():
    demo = (ROOT / "Makefile").read_text().partition("\ndemo:")[2].partition("\n\n")[0]
    assert "--policy recommended" in demo
    readme = (ROOT / "README.md").read_text()
    assert "](docs/pictures/regret.svg)" in readme
    spec = importlib.util.spec_from_file_location("make", ROOT / "docs" / "pictures" / "make.py")
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    (grid,) = make.evaluation().grids
    first, *others = grid.policies
    assert first.under(grid.delays[0], 100) == duelay.recommend().policy
    assert {choice.label.partition(",")[0] for choice in others} == {
        "RUCB-Delay", "RR-DB-Delay", "MRR-DB-Delay", "RUCB",
    }  # fmt: skip
    assert "regret" in make.PICTURES and (ROOT / "docs" / "pictures" / "regret.svg").exists()


def named_bars(monkeypatch):
    """Return a list that will hold what the bars are called."""
    names = []

    def unseen(problem, policy, *, setting, **options):
        names.append(setting.progress)
        return duelay.simulate(problem, policy, setting=Setting(progress=False), **options)

    monkeypatch.setattr(simulate_cli, "simulate", unseen)
    return names


def test_each_bar_names_its_policy_and_the_whole(monkeypatch, capsys):
    names = named_bars(monkeypatch)
    long = "rucb:alpha=1,counting=append-only,window=100"
    command(monkeypatch, *SIMULATE, "--policy", "rucb", "--policy", long)
    assert names == ["1 of 2, rucb", "2 of 2, rucb:alpha=1,counting…"]
    names.clear()
    command(monkeypatch, *SIMULATE, "--policy", "rucb")
    command(monkeypatch, *SIMULATE, "--policy", "rucb", "--quiet")
    assert names == ["rucb", False]


@pytest.mark.long
def test_a_bar_with_a_name_is_drawn_as_without_after_two_seconds(monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    problem, now = duelay.datasets.load("mslr"), [0.0]
    monkeypatch.setattr("tqdm.std.time", lambda: now[0])

    class Slow(duelay.Policy):
        """Takes its time at one tick."""

        def choose(self, ledger, t, rng):
            now[0] += 2.2 if t == 10 else 0
            return 0, 1

    options = {"delay": "constant:1", "horizon": 20, "setting": Setting(progress="the name")}
    duelay.simulate(problem, duelay.RUCB(), **options)
    assert terminal.getvalue() == ""
    duelay.simulate(problem, Slow(), **options)
    assert "the name: " in terminal.getvalue()


def stopped_at(monkeypatch, last):
    """Let Ctrl-C be pressed in the n-th policy."""
    calls = []

    def until(*arguments, **options):
        calls.append(arguments)
        if len(calls) == last:
            raise KeyboardInterrupt
        return duelay.simulate(*arguments, **options | {"setting": Setting(progress=False)})

    monkeypatch.setattr(simulate_cli, "simulate", until)


def test_ctrl_c_keeps_the_policies_that_are_finished(monkeypatch, capsys, tmp_path):
    stopped_at(monkeypatch, 2)
    chosen = ["--policy", "rucb", "--policy", "rucb-delay", "--policy", "rmed"]
    assert command(monkeypatch, *SIMULATE, *chosen, "--out", tmp_path) == 130
    shown = capsys.readouterr()
    assert "\nrucb  " in shown.out and "rmed" not in shown.out
    assert shown.err == "duelay: stopped after 1 of 3 policies; missing: rucb-delay, rmed\n"
    assert len((tmp_path / "regret.csv").read_text().splitlines()) == 1 + 2 * 200
    assert (tmp_path / "regret.png").exists()


def test_ctrl_c_in_the_first_policy_has_nothing_to_keep(monkeypatch, capsys, tmp_path):
    stopped_at(monkeypatch, 1)
    assert command(monkeypatch, *SIMULATE, "--policy", "rucb", "--out", tmp_path) == 130
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.strip() == "duelay: stopped"
    assert list(tmp_path.iterdir()) == []


PRESSED = """
import os, signal, sys, threading
from duelay import cli
from duelay.cli import simulate as simulate_cli

real, calls = simulate_cli.simulate, []

def simulate(*arguments, **options):
    calls.append(arguments)
    if len(calls) == 2:
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        options["horizon"] = 10**10
    return real(*arguments, **options)

simulate_cli.simulate = simulate
sys.argv = ["duelay", *sys.argv[1:]]
cli.run()
"""


@pytest.mark.long
def test_a_real_ctrl_c_keeps_them_too(tmp_path):
    arguments = [*SIMULATE, "--policy", "rucb", "--policy", "double-thompson", "--workers", "2"]
    done = subprocess.run(
        [sys.executable, "-c", PRESSED, *arguments], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 130, done.stderr
    assert "\nrucb  " in done.stdout and "double" not in done.stdout
    assert "duelay: stopped after 1 of 2 policies; missing: double-thompson" in done.stderr
    assert "Traceback" not in done.stderr


class Bar:
    """A bar that writes down when it began and when it moved."""

    def __init__(self, seen):
        self.seen = seen

    def __call__(self, *, total, unit, **options):
        self.seen.append(f"a bar of {total}{unit}")
        return self

    def update(self, n):
        self.seen.append("a step")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


@pytest.fixture
def seen(monkeypatch):
    """What happened, in order: compiling, bars, and their steps."""
    seen = []
    real = execution.compile_ahead

    def compiling(problem, policy, **options):
        seen.append(f"compiling {policy.text_name}")
        return real(problem, policy, **options)

    monkeypatch.setattr(execution, "tqdm", Bar(seen))
    monkeypatch.setattr(execution, "compile_ahead", compiling)
    return seen


@pytest.mark.long
@pytest.mark.usefixtures("undrawn")
def test_what_is_left_is_told_for_the_figures_too(seen, tmp_path):
    spec = spec_parser.parse(TINY, "tiny.toml", Path())
    experiments.run(spec, tmp_path / "out", workers=1, quiet=True)
    rest = [what for what in seen if not what.startswith("compiling")]  # that is beside the cells
    assert rest[:3] == ["a bar of 2 cells", "a step", "a step"]
    assert rest[3:] == ["a bar of 5 files", *["a step"] * 5]  # tables, three figures, the report
    seen.clear()
    experiments.run(spec, tmp_path / "out", workers=1, quiet=True)
    assert seen == ["a bar of 5 files", *["a step"] * 5]  # nothing to compute, nothing to compile


def test_each_kind_of_cell_is_compiled_once_in_the_order_in_which_they_run(seen):
    spec = spec_parser.parse(TINY, "tiny.toml", Path())
    cells = execution._by_kind([*execution.cells_of(spec), *execution.cells_of(spec)])
    execution.compile_for(cells)
    assert seen == ["compiling rucb", "compiling double-thompson"]
    names = [cell.policy.text_name for cell in cells]
    assert names == ["rucb"] * 2 + ["double-thompson"] * 2


@pytest.mark.long
@pytest.mark.usefixtures("undrawn")
def test_the_bar_counts_every_figure_that_is_drawn(seen, tmp_path):
    grids = """
problems = ["mslr"]
policies = ["rucb"]
horizon = 50
runs = 1
[[grid]]
name = "a"
delays = ["constant:1", "constant:2"]
[[grid]]
name = "b"
target = "borda"
"""
    sweep = TINY + '\ndelays = ["constant:1", "constant:2"]\n[sweep]\nticks = [1, 2]'
    for source, n in ((grids, 2 * 3 + 1), (sweep, 1)):
        seen.clear()
        folder = tmp_path / str(n)
        experiments.run(spec_parser.parse(source, "x.toml", Path()), folder, workers=1, quiet=True)
        files = seen[seen.index(f"a bar of {n + 2} files") + 1 :]
        assert files == ["a step"] * (n + 2)
        assert len(list((folder / "figures").iterdir())) == n * len(regret_figures.FORMATS)


def test_a_terminal_has_a_bar_and_others_a_line_a_step(monkeypatch, capsys):
    with execution.report_progress(2, " files") as step:
        step("one")
        step("two")
    assert capsys.readouterr().err == "1/2 one\n2/2 two\n"
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with execution.report_progress(2, " files", done=1) as step:
        step("two")
    assert "2/2" in terminal.getvalue() and "two" not in terminal.getvalue()


def test_quick_verdicts_are_printed_with_their_caveat(monkeypatch, capsys, tmp_path):
    checked = [claims.Claim("It is so", "", "", [], [], "", verdict="does not hold")]
    monkeypatch.setattr(experiments, "run", lambda *_, **__: checked)
    assert command(monkeypatch, "reproduce", "--quick", "--out", tmp_path) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "does not hold: It is so With 10 runs, fewer than 20, intervals are too narrow" in shown
    assert "The horizon of 40,000 is not the paper's 200,000" in shown
    assert command(monkeypatch, "reproduce", "--out", tmp_path) == 0
    assert "intervals" not in capsys.readouterr().out


def test_the_quick_reproduction_warns_in_one_line(monkeypatch, capsys, tmp_path):
    paper = experiments.built_in("paper").quick()
    with pytest.warns(UserWarning) as caught:
        experiments._caution(paper)
    (only,) = (str(warning.message) for warning in caught)
    assert only == "horizon 40000 is too short for MRR-DB-Delay (6 of 12 problems)"
    assert len(f"duelay: warning: {only}") <= 80
    assert len(paper.cautions()) == 8  # the report has them all
