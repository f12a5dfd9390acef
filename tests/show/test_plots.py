import numpy as np
import pytest

import duelay
from duelay.problems import arithmetic
from duelay.show import plots


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
        plots.save(figure, tmp_path / name)
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
    assert plots._short("x" * 99) == "x" * 67 + "..."
    assert [plots._tick(value) for value in (0.25, 40, 1500, 200_000, 12_500)] == [
        "0.25",
        "40",
        "1,500",
        "200k",
        "12.5k",
    ]


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match="results must hold at least one result"):
        plots.regret_figure([])
