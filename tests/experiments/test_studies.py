"""Studies: their specifications, the figure over what varies, and reports of other targets."""

import re
from pathlib import Path

import numpy as np
import pytest

import duelay
import pages
import studies
from duelay import experiments
from duelay.experiments import sweep
from duelay.experiments.cells import cells_of
from duelay.experiments.spec_parser import BUILT_IN, parse
from duelay.recommendation import recommend

POLICIES = 'policies = ["rucb:alpha=1", "double-thompson"]\nhorizon = 60\nruns = 3\n'
STUDIES = [name for name in BUILT_IN if name not in ("paper", "ablation")]


KINDS = {"RUCB", "RUCBDelay", "RRDBDelay", "MRRDBDelay", "DoubleThompson", "RMED"}


def advised(grid):
    """The label under which a grid has what `recommend` gives for its target and its window."""
    found, target = {}, grid.setting.target
    for choice in grid.policies:
        policy = choice.under(grid.delays[0], grid.horizon)
        wanted = recommend(target=target, window=policy.window).policy
        if policy == wanted:
            return choice.label  # played in ticks as well it comes second
        found[choice.label] = str(policy)
    raise AssertionError(
        f"grid {grid.name!r} lacks what recommend(target={target!r}, window=...) gives, such as "
        f"{wanted}, under any label; it has {found}"
    )


@pytest.mark.long
@pytest.mark.parametrize("name", STUDIES)
def test_every_study_has_every_policy_and_a_hundred_runs(name):
    spec = experiments.built_in(name)
    assert experiments.read(name) == spec and spec.name == name
    for grid in spec.grids:
        if grid.setting.traffic is not None:  # a duel by the clock takes ten times as long
            assert grid.runs >= 20, f"grid {grid.name!r}: at least 20 runs by the clock"
            ways = {choice.by_clock for choice in grid.policies}
            said = f"grid {grid.name!r}: policies by the clock, and some with by_clock = false"
            assert ways == {None, False}, said
            continue
        assert grid.runs == 100, f"grid {grid.name!r}: the page says 100 runs of everything"
        chosen = [choice.under(grid.delays[0], grid.horizon) for choice in grid.policies]
        kinds = {type(policy).__name__ for policy in chosen}
        if grid.setting.stop is not None:
            lacking = {"Decide", "RRDBDelay"} - kinds
            assert not lacking, f"grid {grid.name!r} lacks a policy of each of {sorted(lacking)}"
            said = f"grid {grid.name!r}: every policy has an error of stop, {grid.setting.stop}"
            assert {policy.error for policy in chosen} == {grid.setting.stop}, said
            continue
        lacking = KINDS - kinds
        assert not lacking, f"grid {grid.name!r} lacks a policy of each of {sorted(lacking)}"
        assert advised(grid)  # and what is recommended, once


@pytest.mark.long
@pytest.mark.parametrize(
    "varies, panels",
    [
        ('problems = ["mslr", "tennis"]\n'
         'delays = ["constant:1", "geometric:0.1", "geometric:0.01"]\n'
         '[sweep]\nover = "delays"\naxis = "mean"\nticks = [1, 10, 100]', ["mslr", "tennis"]),
        ('problems = ["arithmetic:3,0.1", "arithmetic:5,0.1"]\n'
         '[sweep]\nover = "problems"\naxis = "K"\nticks = ["3", "5"]', ["geometric:0.01"]),
        ('[sweep]\nover = "grids"\naxis = "bonus"\nticks = ["0", "0.1"]\n'
         '[[grid]]\nname = "a"\nproblems = ["first-bonus:0,mslr", "leader:3,1.5", "tennis"]\n'
         '[[grid]]\nname = "b"\nstale = 7\nbatch = 2\nfeedback = "votes"\n'
         'problems = ["first-bonus:0.1,mslr", "leader:4,1.5", "tennis"]',
         ["mslr", "leader", "tennis"]),
    ],
    ids=["delays", "problems", "grids"],
)  # fmt: skip
def test_a_sweep_is_drawn_and_tabled(tmp_path, varies, panels):
    spec = parse(POLICIES + varies, "mine.toml", Path())
    experiments.run(spec, tmp_path / "out", workers=1, quiet=True)
    results = experiments.load(spec, tmp_path / "out")
    tables = sweep.tables(results)
    assert list(tables) == panels
    columns, rows = tables[panels[0]]
    assert columns == [spec.sweep.axis, *spec.sweep.ticks]
    assert [row[0] for row in rows] == ["rucb:alpha=1", "double-thompson"]
    assert all(any("**" in row[place] for row in rows) for place in range(1, len(columns)))
    assert (tmp_path / "out" / "figures" / "sweep.svg").exists()
    report = (tmp_path / "out" / "report.md").read_text()
    assert "figures/sweep.svg" in report
    last = (tmp_path / "out" / "results.csv").read_text().splitlines()
    assert last[0] == '"problem","policy","label","law","setting","run","t","regret"'
    if spec.sweep.over == "grids":
        assert '"feedback=votes, stale=7, batch=2"' in last[-1]
        bonus = results.get("b", "first-bonus:0.1,mslr", "double-thompson")
        assert bonus.problem.first_bonus == 0.1 and bonus.setting.stale == 7


@pytest.mark.long
def test_a_study_of_stops_is_tabled_by_duels_until_declared(tmp_path):
    source = """
        policies = ["decide", "rr-db-delay"]
        horizon = 1500
        runs = 3
        stop = 0.05
        problems = ["leader:3,9", "cyclic:3,0.2"]
        delays = ["geometric:0.3"]
        [sweep]
        over = "problems"
        axis = "problem"
        ticks = ["a winner", "none"]"""
    spec = parse(source, "mine.toml", Path())
    experiments.run(spec, tmp_path / "out", workers=1, quiet=True)
    results = experiments.load(spec, tmp_path / "out")
    ((columns, rows),) = sweep.tables(results).values()
    decided = results.get(spec.grids[0].name, "leader:3,9", "decide")
    assert f"{decided.stopped.mean():,.0f}" in rows[0][1] and "undeclared" not in rows[0][1]
    assert rows[0][2].startswith(">") and "100 % undeclared" in rows[0][2]
    stops = (tmp_path / "out" / "stops.csv").read_text().splitlines()
    assert len(stops) == 1 + 2 * 2 * 3
    report = (tmp_path / "out" / "report.md").read_text()
    assert "duels until a verdict" in report and "nan" not in report
    cells = {
        (row[1], row[2]): row[3:-1]
        for row in (re.split(r" *\| *", line) for line in report.splitlines())
        if len(row) == 11
    }
    assert cells["dataset", "policy"][2:6] == ["winner", "undecided", "false", "no arm beats all"]
    mean, longest, *shares = cells["cyclic:3,0.2", "decide"]
    assert mean == ">1,501" and longest == ">1,500"  # the horizon ended them: no spread
    assert shares[:4] == ["0 %", "100 %", "0 %", "100 %"] and 0.05 < float(shares[4]) <= 1
    assert cells["cyclic:3,0.2", "rr-db-delay"][-1] == "-"  # it has no evidence
    assert f"± {decided.stopped.std(ddof=1):,.0f}" in cells["leader:3,9", "decide"][0]


@pytest.mark.long
def test_a_run_with_a_margin_has_the_verdicts_of_simulate(tmp_path):
    """Equal arms: "equivalent" is no wrong winner, in memory, in the folder and on its pages."""
    source = """
        policies = ["decide:margin=0.15", "decide:margin=0.15,end=good_enough", "decide"]
        horizon = 900
        runs = 4
        block = 3
        stop = 0.05
        problems = ["even.csv"]
        delays = ["geometric:0.3"]"""
    (tmp_path / "even.csv").write_text("red,green\n0.5,0.5\n0.5,0.5\n")
    spec = parse(source, "mine.toml", tmp_path)
    out = tmp_path / "out"
    experiments.run(spec, out, workers=1, quiet=True)
    (grid,) = spec.grids
    results = experiments.load(spec, out)
    report, stops = (out / "report.md").read_text(), (out / "stops.csv").read_text()
    ends = set()
    for choice in grid.policies:
        found = results.get(grid.name, "even", choice.label)
        direct = duelay.simulate(
            grid.problems[0], found.policy, delay=grid.delays[0], horizon=900, runs=4, seed=0,
            stop=0.05, checkpoints=grid.checkpoints,
        )  # fmt: skip
        assert found.verdicts == direct.verdicts
        for name in ("is_wrong", "beaten", "p_value", "stopped"):
            np.testing.assert_array_equal(getattr(found, name), getattr(direct, name))
        assert repr(found) == repr(direct)
        ends |= set(found.verdicts)
        if found.policy.margin is not None:
            assert found.is_declared.all() and not found.is_wrong.any()
    assert {"equivalent", "good_enough", "undecided"} <= ends
    assert "| winner | good enough | equivalent | undecided | false |" in report
    alike = results.get(grid.name, "even", "decide:margin=0.15")
    assert stops.count(",equivalent,") == alike.verdicts.count("equivalent") > 0


@pytest.mark.long
def test_a_report_without_a_condorcet_winner(tmp_path):
    source = POLICIES + 'problems = ["cyclic:3,0.2", "no-winner:5,1"]\ntarget = "copeland"'
    spec = parse(source, "mine.toml", Path())
    experiments.run(spec, tmp_path / "out", workers=1, quiet=True)
    report = (tmp_path / "out" / "report.md").read_text()
    assert "target=copeland" in report and "theorems" not in report
    assert not list((tmp_path / "out" / "figures").glob("*-log.svg"))


@pytest.mark.parametrize(
    "source, message",
    [
        ('problems = ["cyclic:3,0.2"]', "line 4: .*Condorcet"),
        ('problems = ["mslr"]\ntarget = "best"', "line 5: target"),
        ('problems = ["mslr"]\nstale = -1', "line 5: stale"),
        ('problems = ["mslr"]\nfeedback = "vote"', "feedback"),
        ('problems = ["mslr"]\nfeedback = "corrected-votes"',
         "line 5: .*feedback"),
        ('problems = ["mslr"]\nfeedback = "conversions"\ncorrects_position = true',
         "line 6: corrects_position"),
        ('problems = ["mslr"]\nbulk = false', "line 5: unknown key 'bulk'"),
        ('problems = ["mslr"]\ntraffic = "poison:10s"', "line 5: unknown traffic 'poison'"),
        ('problems = ["mslr"]\ntraffic = "poisson:10s"', "delay"),
        ('problems = ["mslr"]\ndelays = ["exponential:1h"]', "line 5: delay .* is in time"),
        ('problems = ["mslr"]\ntraffic = "poisson:10s"\nbatch = 2', "batch"),
        ('problems = ["first-bonus:x,mslr"]', "first-bonus .*'x'"),
        ('problems = ["first-bonus:0.1,mslt"]', r"unknown problem 'mslt' \(did you mean mslr"),
        ('problems = ["mslr"]\nsweep = 3', "sweep"),
        ('problems = ["mslr"]\n[sweep]\nover = "laws"\nticks = [1]', "over must"),
        ('problems = ["mslr"]\n[sweep]\nover = "delays"\nticks = [1, 2]',
         "ticks must"),
        ('problems = ["mslr"]\n[sweep]\naxes = "x"\nticks = [1]', "unknown key 'axes'"),
        ('problems = ["mslr"]\n[sweep]\nover = "grids"\nticks = [1, 2]\n[[grid]]\nname = "a"\n'
         '[[grid]]\nname = "b"\npolicies = ["rmed"]', "same labels"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_study_is_said_with_its_line(source, message):
    with pytest.raises(ValueError, match=message):
        parse(POLICIES + source, "mine.toml", Path())


@pytest.mark.long
def test_the_advice_agrees_with_the_page():
    """In most columns of the tables, what `recommend` gives has the least regret, or may have."""
    cells = []
    for name in STUDIES:
        spec = experiments.built_in(name)
        if spec.grids[0].setting.stop is not None:
            continue
        parts = [part for part in pages.kept(name)["parts"] if "rows" in part]
        grids = spec.grids if spec.sweep is None else [spec.grids[0]] * len(parts)
        said = f"{name}: the page has {len(parts)} tables of {len(grids)} grids: {studies.COMMAND}"
        assert len(parts) == len(grids), said
        for grid, part in zip(grids, parts, strict=True):
            rows = {row[0]: row[1:] for row in part["rows"]}
            label = advised(grid)
            said = f"{name}: no row {label!r} in the table {part['title']!r}: {studies.COMMAND}"
            assert label in rows, said
            cells += rows[label]
    assert len(cells) > 100
    assert sum("**" in cell for cell in cells) / len(cells) > 0.85


def test_every_study_has_its_place_on_the_page():
    page = Path(__file__).parents[2] / "docs" / "studies.md"
    made = {block.name for block in pages.blocks() if block.page == page}
    others = {"scaling", "decide-declared", "decide-tied", "decide-covered", "decide-broken",
              "attacks-operations", "attacks-policies", "attacks-live", "margin-false"}  # fmt: skip
    assert made - others == set(STUDIES), "the marks of docs/studies.md, against BUILT_IN"
    assert others <= made


def test_a_folder_of_results_may_have_the_name_of_its_study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "never").mkdir()
    assert experiments.read("never").name == "never"


TRAFFIC = """
horizon = 60
runs = 2
problems = ["arithmetic:3,0.2"]
delays = ["exponential:1m", "never:0.3,exponential:1m"]
policies = [
    { policy = "double-thompson", label = "by the clock" },
    { policy = "double-thompson", label = "in ticks", by_clock = false },
]
[sweep]
over = "delays"
axis = "never"
ticks = ["0", "30 %"]
[[grid]]
name = "steady"
traffic = "steady:10s"
[[grid]]
name = "bursts"
traffic = "bursts:20,1h"
"""


@pytest.mark.long
def test_a_study_by_the_clock_has_a_panel_a_grid_and_names_its_traffic(tmp_path):
    spec = parse(TRAFFIC, "mine.toml", Path())
    cells = cells_of(spec)
    assert len({cell.file_name for cell in cells}) == 8  # two grids, laws and policies
    assert {cell.asked["setting"] for cell in cells} == {
        "traffic=steady:10s",
        "traffic=steady:10s, by_clock=False",
        "traffic=bursts:20,1h,10ms",
        "traffic=bursts:20,1h,10ms, by_clock=False",
    }
    experiments.run(spec, tmp_path, quiet=True)
    results = experiments.load(spec, tmp_path)
    assert list(sweep.panels_of(results)) == [
        "steady, arithmetic:3,0.2",
        "bursts, arithmetic:3,0.2",
    ]
    assert "traffic=bursts:20,1h,10ms" in (tmp_path / "report.md").read_text()
    assert '"traffic=steady:10s, by_clock=False"' in (tmp_path / "results.csv").read_text()


@pytest.mark.long
def test_grids_by_the_clock_without_a_sweep_have_their_figures(tmp_path):
    source = TRAFFIC.replace(TRAFFIC[TRAFFIC.index("[sweep]") :], 'traffic = "steady:10s"\n')
    experiments.run(parse(source, "mine.toml", Path()), tmp_path, quiet=True)
    assert (tmp_path / "figures").is_dir()


def test_the_old_name_of_checked_works_with_a_warning():
    with pytest.warns(DeprecationWarning, match="checked"):
        old = experiments.built_in("paper", is_checked=False)
    assert old == experiments.built_in("paper", checked=False)
