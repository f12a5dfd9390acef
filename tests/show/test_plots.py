import dataclasses

import numpy as np
import pytest

import duelay
from duelay.problems import arithmetic
from duelay.show import figure_style, plots


@pytest.fixture(scope="module")
def results():
    problem = arithmetic(3, 0.1)
    return [
        duelay.simulate(problem, policy, delay="uniform:1,5", horizon=300, runs=3, checkpoints=20)
        for policy in (
            duelay.RUCB(alpha=1.0),
            duelay.RUCBDelay(delay=duelay.delays.Uniform(1, 5)),
            duelay.MRRDBDelay(schedule=(2, 9)),
        )
    ]


@pytest.mark.long
def test_the_figure_shows_mean_and_band_of_each_policy(results, tmp_path):
    figure = plots.regret_figure(results)
    (axes,) = figure.axes
    assert len(axes.lines) == len(axes.collections) == 3
    for line, result in zip(axes.lines, results, strict=True):
        np.testing.assert_allclose(line.get_ydata()[1:], result.mean)
        assert line.get_ydata()[0] == 0
    assert len({line.get_color() for line in axes.lines}) == 3
    assert len({str(line.get_linestyle()) for line in axes.lines}) == 3
    for name in ("a.png", "a.svg", "a.pdf"):
        figure_style.save(figure, tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pdf", "a.png", "a.svg"]


def test_labels_leave_out_what_the_title_says(results):
    assert [result.label for result in results] == [
        "rucb:alpha=1",
        "rucb-delay",
        "mrr-db-delay:mean_delay=100,schedule=2/9",  # not the true mean, 3
    ]


def test_many_long_names_do_not_cover_the_curves(results):
    figure = plots.regret_figure(results * 4)
    assert figure.legends and not figure.axes[0].get_legend()
    assert figure_style.short("x" * 99) == "x" * 67 + "..."
    assert [
        figure_style.tick_words(value) for value in (0.25, 40, 1500, 200_000, 12_500, 2e9, 1e40)
    ] == [
        "0.25",
        "40",
        "1,500",
        "200k",
        "12.5k",
        "2e9",
        "1e40",
    ]


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match="results must"):
        plots.regret_figure([])


def test_a_figure_of_stops_shows_wrong_runs_the_horizon_and_the_error(results):
    one = dataclasses.replace(
        results[0], setting=duelay.Setting(stop=0.05), stopped=np.array([100, 200, 301]),
        leader=np.array([0, 1, 0]), verdicts=("winner", "winner", "undecided"),
    )  # fmt: skip
    figure = plots.stops_figure([one], ["mine"])
    (axes,) = figure.axes
    words = [text.get_text() for text in axes.texts]
    assert " 5 % may be wrong" in words and "horizon" in words
    assert "66.7 % winner, 33.3 % false" in figure.legends[0].get_texts()[0].get_text()
    declared, wrong = (
        line.get_xydata().tolist() for line in axes.lines if len(line.get_xdata()) > 2
    )
    assert declared == [[0, 0], [100, 1 / 3], [200, 2 / 3], [300, 2 / 3]]
    assert wrong == [[0, 0], [200, 1 / 3], [300, 1 / 3]]
    all_ = dataclasses.replace(
        one, stopped=np.array([100, 200, 250]), leader=np.zeros(3, dtype=int),
        verdicts=("winner",) * 3,
    )  # fmt: skip
    axes = plots.stops_figure([all_], ["mine"]).axes[0]
    assert "horizon" not in [text.get_text() for text in axes.texts]
