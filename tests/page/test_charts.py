"""Charts: axes that hold every value, and the shapes and labels on them."""

import math
import re

import pytest

from duelay.page.charts import axes, svg
from duelay.page.view_models import Chart, Line
from page import sample


def make_chart(values, x=None, **said):
    x = x or tuple(float(i) for i in range(len(values)))
    return Chart("c", "Title", "", x, (Line("a", tuple(values)),), **said)


def texts(labels):
    return [label.text for label in labels]


@pytest.mark.parametrize("kind", ["number", "share", "evidence"])
@pytest.mark.parametrize("values", [
    (0.0,), (0.0, 0.0), (0.1, None, 0.3), (None, None), (1.0, 1.0), (1e-9, 1e-300), (0.2, 0.9),
])  # fmt: skip
def test_every_value_is_within_its_axis(kind, values):
    chart = make_chart(values, y_kind=kind)
    axis, drawn = axes.make_y_axis(chart), svg.draw(chart)
    assert axis.low < axis.high
    assert all(axis.low <= tick.value <= axis.high for tick in axis.ticks)
    assert all(0.0 <= label.y <= 100.0 for label in drawn.y_labels)
    assert not any("nan" in shape.path or "inf" in shape.path for shape in drawn.shapes)
    assert len(drawn.rows) == len(values)


@pytest.mark.parametrize("top", [1, 3, 7, 44, 999, 12_345, 1_234_567, 9.9e11])
def test_counts_have_two_to_six_ticks_that_are_whole(top):
    ticks = axes.make_y_axis(make_chart((0.0, float(top)))).ticks
    assert 2 <= len(ticks) <= 6
    assert all(tick.value == int(tick.value) for tick in ticks)


def test_evidence_far_beyond_its_declaration_leaves_the_level_in_sight():
    lines = (Line("a", (1.0, 1e250)), Line("declared", (80.0, 80.0), "level"))
    chart = Chart("c", "", "", (0.0, 1.0), lines, y_kind="evidence")
    axis, drawn = axes.make_y_axis(chart), svg.draw(chart)
    assert 0.4 < axis.locate(80.0) < 0.9
    assert axis.locate(1e250) == 1.0
    assert drawn.rows[-1].values == ("10^250 times", "80 times")
    assert drawn.level.text == "declared, 80 times"


def test_evidence_below_one_is_above_the_end_of_its_axis():
    axis = axes.make_y_axis(make_chart((1.0, 0.5, 0.03), y_kind="evidence"))
    assert axis.locate(0.03) > 0.0 and axis.ticks[0] == axes.Tick(0.01, "0.01")


def test_a_step_is_where_the_value_changed():
    drawn = svg.draw(make_chart((0.0, 0.0, 1.0), is_stepped=True, y_kind="share"))
    assert drawn.shapes[0].path == "M0 1000H500V1000H1000V0"


def test_labels_of_close_marks_are_in_different_rows_and_cut():
    marks = ((1.0, "green joined"), (1.1, "blue retired"), (3.0, "<b> joined"), (4.0, "y" * 99))
    drawn = svg.draw(make_chart((0.1,) * 5, marks=marks))
    assert texts(drawn.marks) == ["green joined", "blue retired", "<b> joined", "y" * 24 + "…"]
    assert [mark.row for mark in drawn.marks] == [0, 1, 0, 0]
    assert [mark.is_left for mark in drawn.marks] == [False, False, True, True]


def test_times_are_to_the_second_where_rows_are_closer_than_a_minute():
    close, far = (
        make_chart((0.1,) * 30, tuple(step * i for i in range(30))) for step in (1.0, 60.0)
    )
    assert svg.draw(close).time_form == "seconds"
    assert svg.draw(far).time_form == "short"


@pytest.mark.parametrize("width", [1.0, 40.0, 3000.0, 86_400.0, 5 * 86_400.0, 900 * 86_400.0])
def test_times_have_few_round_ticks_within_the_chart(width):
    x = tuple(sample.NOW + width * i / 30 for i in range(31))
    labels = svg.draw(make_chart((0.1,) * 31, x)).x_labels
    assert 1 <= len(labels) <= 10
    assert all(0.0 <= label.x <= 100.0 and label.time for label in labels)
    assert len({label.time_form for label in labels}) == 1


def test_a_line_is_interrupted_where_nothing_is_known():
    (line,) = svg.draw(make_chart((0.1, 0.2, None, 0.4, 0.5))).shapes
    assert line.css_class == "line c0"
    assert line.path.count("M") == 2 and line.path.count("L") == 2


def test_ages_over_many_magnitudes_are_on_a_logarithmic_axis_and_others_are_not():
    far = tuple(float(10**i) for i in range(7))
    chart = make_chart((0.1,) * 7, far, x_kind="age", y_kind="share")
    assert axes.make_x_axis(chart, is_bars=False).is_log
    even = tuple(3600.0 * i for i in range(7))
    chart = make_chart((0.1,) * 7, even, x_kind="age", y_kind="share")
    assert not axes.make_x_axis(chart, is_bars=False).is_log
    assert texts(svg.draw(chart).x_labels) == ["0s", "1h", "2h", "3h", "4h", "5h", "6h"]


@pytest.mark.parametrize("last", [0.5, 3.0, 50.0, 4000.0, 90_000.0, 86_400.0 * 14, 86_400.0 * 400])
def test_ages_have_few_ticks(last):
    x = tuple(last * i / 30 for i in range(31))
    drawn = svg.draw(make_chart((0.1,) * 31, x, x_kind="age", y_kind="share"))
    assert 1 <= len(drawn.x_labels) <= 9


def test_a_table_is_thinned_and_has_the_last_numbers():
    for n in (1, 2, 19, 20, 21, 40, 128, 1000):
        rows = svg.draw(make_chart(tuple(float(i) for i in range(n)))).rows
        assert min(n, 10) <= len(rows) <= 20
        assert rows[-1].x == n - 1
        assert n == 1 or rows[-1].place == 100.0


def test_stacked_areas_end_at_the_top():
    drawn = svg.draw(sample.allocation(sample.busy()[0].arms))
    tops = [re.match(r"M0 (\d+)", shape.path)[1] for shape in drawn.shapes]
    assert len(tops) == 4 and tops[-1] == "0"


def test_stacked_areas_have_a_gap_where_nothing_was_shown():
    first = svg.draw(sample.allocation(sample.busy()[0].arms)).shapes[0]
    assert first.css_class == "area a0"
    assert first.path.count("M") == first.path.count("Z") == 2


def test_counts_by_age_keep_their_sum_in_few_bars():
    told = sample.pending_ages(64)
    drawn = svg.draw(told)
    (bars,) = drawn.shapes
    assert bars.path.count("Z") == len(drawn.rows) == 16
    assert sum(drawn.chart.lines[0].values) == sum(told.lines[0].values)
    assert texts(drawn.x_labels) == ["0s", "1d", "2d", "3d", "4d", "5d", "6d"]
    assert drawn.x_labels[0].x == 0.0


def test_a_band_is_one_area_and_one_entry_of_the_legend():
    drawn = svg.draw(sample.delays())
    assert [shape.css_class for shape in drawn.shapes].count("area band") == 1
    assert [entry.name for entry in drawn.legend] == ["interval", "heard by then"]


def test_nothing_is_drawn_of_nothing():
    assert svg.draw(None) is None
    assert svg.draw(make_chart(())) is None
    assert svg.draw_counts(()) == svg.draw_counts((3,)) == ""


def test_intervals_reach_as_far_as_the_arms_do():
    near = [sample.arm(0, "a", 1, lower=0.45, upper=0.58)]
    assert svg.find_half_width(near) == 0.1
    assert svg.find_half_width([sample.arm(0, "a", 0)]) == 0.5
    assert svg.find_half_width([sample.arm(0, "a", 1, lower=-0.1, upper=0.6)]) == 0.5
    dot = re.search(r'cx="([\d.]+)"', svg.draw_interval(0.45, 0.55, 0.58, 0.1))
    assert math.isclose(float(dot[1]), 4 + 124 * 0.75)
    assert "reach" not in svg.draw_interval(None, None, None)
