"""What figures' bands show, and what tables of results hold."""

import csv
import math

import numpy as np
import pytest
import scipy.stats

import duelay
from duelay import cli, experiments
from duelay.experiments import regret_figures, spec_parser, sweep
from duelay.show import plots
from duelay.simulation import BANDS, write_csv
from duelay.simulation.result import half_width, spread

SMALL = """
problems = ["mslr"]
policies = ["rucb", { policy = "rucb:alpha=1", label = "the baseline" }]
horizon = 100
runs = 4
checkpoints = 5
"""


@pytest.fixture(scope="module")
def result():
    problem = duelay.Problem([[0.5, 0.6], [0.4, 0.5]])
    return duelay.simulate(problem, duelay.RUCB(), delay="uniform:1,5", horizon=300, runs=6,
                           checkpoints=10, setting=duelay.Setting(batch=2))  # fmt: skip


@pytest.mark.parametrize("runs", [2, 3, 4, 5, 20, 100])
def test_the_interval_of_a_mean_is_students(runs):
    values = np.random.default_rng(runs).normal(size=(runs, 3))
    error = scipy.stats.sem(values, axis=0)
    low, high = scipy.stats.t.interval(0.95, runs - 1, loc=0, scale=error)
    np.testing.assert_allclose(half_width(values), high, rtol=1e-12)
    np.testing.assert_allclose(half_width(values), -low, rtol=1e-12)
    np.testing.assert_allclose(spread(values), values.std(axis=0, ddof=1))


def test_a_single_run_has_no_band(result):
    assert half_width(np.array([[3.0, 4.0]])).tolist() == [0.0, 0.0]
    one = duelay.simulate(result.problem, duelay.RUCB(), delay="constant:1", horizon=50)
    for kind in BANDS:
        assert not one.band(kind).any()


def test_the_mean_is_known_better_than_a_run(result):
    np.testing.assert_array_equal(result.band(), result.std)
    student = scipy.stats.t.ppf(0.975, 5)
    np.testing.assert_allclose(result.band("mean"), student * result.std / math.sqrt(6), rtol=1e-12)
    with pytest.raises(ValueError, match=r"band must be one of sd, mean \(did you mean mean\?\)"):
        result.band("men")


@pytest.mark.parametrize("band, words", [("sd", "mean ± sd"), ("mean", "mean, 95 % confidence")])
def test_a_figures_band_is_what_it_says(result, band, words):
    for axes in (plots.regret_figure([result], band=band).axes[0], result.plot(band=band)):
        assert words in axes.get_ylabel()
        (drawn,) = axes.collections
        (path,) = drawn.get_paths()
        assert path.vertices[:, 1].max() == pytest.approx((result.mean + result.band(band)).max())
        axes.figure.clear()


def test_a_figure_has_the_labels_it_is_given(result):
    axes = plots.regret_figure([result, result], ["one", "two"]).axes[0]
    assert [line.get_label() for line in axes.lines] == ["one", "two"]
    with pytest.raises(ValueError, match="labels"):
        plots.regret_figure([result, result], ["one"])


@pytest.mark.long
def test_a_specification_chooses_the_band(tmp_path):
    spec = spec_parser.parse(SMALL + 'band = "mean"', "small.toml", tmp_path)
    assert spec.band == "mean" and spec.normal_form()["band"] == "mean"
    assert spec.quick().band == "mean"
    assert spec_parser.parse(SMALL, "small.toml", tmp_path).band == "sd"
    with pytest.raises(ValueError, match="small.toml, line 7: band"):
        spec_parser.parse(SMALL + 'band = "quantile"', "small.toml", tmp_path)
    experiments.run(spec, tmp_path / "out", workers=1, quiet=True)
    assert "Cumulative regret, mean with its 95 % interval" in (
        tmp_path / "out" / "report.md"
    ).read_text(encoding="utf-8")
    results = experiments.load(spec, tmp_path / "out")
    axes = regret_figures.regret(results, spec.grids[0], "geometric:0.01").axes[0]
    assert axes.get_ylabel() == "regret (mean, 95 % confidence)"
    band = axes.collections[0].get_paths()[0].vertices[:, 1]
    first = results.get("small", "mslr", "rucb")
    assert band.max() == pytest.approx((first.mean + first.band("mean")).max())
    assert sweep.half_width(first) == pytest.approx(float(half_width(first.final)))


@pytest.mark.long
def test_the_command_line_chooses_the_band_too(tmp_path, monkeypatch, capsys):
    (tmp_path / "small.toml").write_text(SMALL)
    monkeypatch.chdir(tmp_path)
    simulated = ["simulate", "--dataset", "mslr", "--policy", "rucb", "--horizon", "50"]
    made = {}
    for band in BANDS:
        for arguments, file in (
            (["run", "small.toml", "--quiet"], "figures/small-regret.svg"),
            ([*simulated, "--runs", "3"], "regret.svg"),
        ):
            out = f"{arguments[0]}-{band}"
            monkeypatch.setattr("sys.argv", ["duelay", *arguments, "--out", out, "--band", band])
            cli.run()
            made[out] = (tmp_path / out / file).read_bytes()
    assert made["run-sd"] != made["run-mean"] and made["simulate-sd"] != made["simulate-mean"]
    page = (tmp_path / "run-mean" / "report.md").read_text(encoding="utf-8")
    assert "mean with its 95 % interval" in page


def test_a_table_says_the_setting_and_the_label(result, tmp_path):
    write_csv([result, result], tmp_path / "own.csv")
    write_csv([result], tmp_path / "given.csv", ["mine, and yours"])
    with (tmp_path / "own.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == 2 * 6 * 10
    assert set(rows[0]) == {"problem", "policy", "label", "law", "setting", "run", "t", "regret"}
    assert rows[0]["setting"] == "batch=2" and rows[0]["label"] == "rucb"
    assert float(rows[13]["regret"]) == result.regret[1, 3] and rows[13]["run"] == "1"
    with (tmp_path / "given.csv").open(newline="") as lines:
        assert {row["label"] for row in csv.DictReader(lines)} == {"mine, and yours"}
    with pytest.raises(ValueError, match="labels"):
        write_csv([result, result], tmp_path / "none.csv", ["one"])
    assert not (tmp_path / "none.csv").exists()


@pytest.mark.long
def test_a_policy_with_two_labels_stands_in_the_table_under_each(tmp_path):
    source = (
        SMALL
        + """
[[grid]]
name = "a"
[[grid]]
name = "b"
runs = 2
policies = [
    { policy = "rucb", label = "plain" },
    { policy = "rucb:alpha=1", label = "the baseline" },
]
"""
    )
    spec = spec_parser.parse(source, "small.toml", tmp_path)
    experiments.run(spec, tmp_path / "out", workers=1, quiet=True)
    with (tmp_path / "out" / "results.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    count = {label: sum(row["label"] == label for row in rows)
             for label in ("rucb", "the baseline", "plain")}  # fmt: skip
    assert count == {"rucb": 4 * 5, "the baseline": 4 * 5, "plain": 2 * 5}
    assert len(rows) == sum(count.values())
