"""Charts: scales that hold every value, and pictures on them."""

import math
import re

import pytest

from duelay.page import view_models
from duelay.page.charts import drawing, sparklines
from page import sample


def chart(values, x=None, **said):
    x = x or tuple(float(i) for i in range(len(values)))
    return view_models.Chart("c", "Title", "", x, (view_models.Line("a", tuple(values)),), **said)


@pytest.mark.parametrize("kind", ["number", "share", "evidence"])
@pytest.mark.parametrize("values", [
    (0.0,), (0.0, 0.0), (0.1, None, 0.3), (None, None), (1.0, 1.0), (1e-9, 1e-300), (0.2, 0.9),
])  # fmt: skip
def test_every_value_is_within_its_scale(kind, values):
    drawn = drawing.draw(chart(values, y_kind=kind))
    assert drawn.y.low < drawn.y.high
    assert all(drawn.y.low <= at <= drawn.y.high for at, _ in drawn.y.ticks)
    assert "nan" not in drawn.picture and "inf" not in drawn.picture
    assert len(drawn.rows) == len(values)


@pytest.mark.parametrize("top", [1, 3, 7, 44, 999, 12_345, 1_234_567, 9.9e11])
def test_counts_have_two_to_six_ticks_that_are_whole(top):
    ticks = drawing.draw(chart((0.0, float(top)))).y.ticks
    assert 2 <= len(ticks) <= 6
    assert all(at == int(at) for at, _ in ticks)


def test_evidence_far_beyond_its_declaration_leaves_the_line_in_sight():
    level = view_models.Line("declared", (80.0, 80.0), "level")
    lines = (view_models.Line("a", (1.0, 1e250)), level)
    drawn = drawing.draw(view_models.Chart("c", "", "", (0.0, 1.0), lines, y_kind="evidence"))
    assert 0.4 < drawn.height(80.0) < 0.9
    assert drawn.height(1e250) == 1.0
    assert drawn.say(1e250) == "10^250 times"


def test_evidence_below_one_is_above_the_end_of_its_scale():
    drawn = drawing.draw(chart((1.0, 0.5, 0.03), y_kind="evidence"))
    assert drawn.height(0.03) > 0.0 and drawn.y.ticks[0] == (-2.0, "0.01")


def test_a_step_is_where_the_value_changed():
    drawn = drawing.draw(chart((0.0, 0.0, 1.0), is_stepped=True, y_kind="share"))
    assert 'd="M0 1000H500V1000H1000V0"' in drawn.picture


def test_marks_are_upright_lines_whose_words_do_not_cover_each_other():
    marks = ((1.0, "green joined"), (1.1, "blue retired"), (3.0, "<b> joined"), (4.0, "y" * 99))
    drawn = drawing.draw(chart((0.1,) * 5, marks=marks))
    assert [said[:12] for _, said, _ in drawn.marks] == ["green joined", "blue retired",
                                                         "<b> joined", "y" * 12]  # fmt: skip
    assert [row for _, _, row in drawn.marks] == [0, 1, 0, 0]
    assert drawn.picture.count('class="upright"') == 4 and "&lt;b&gt; joined" in drawn.picture
    assert max(len(said) for _, said, _ in drawn.marks) == 25


def test_times_are_to_the_second_where_rows_are_closer_than_a_minute():
    close, far = (chart((0.1,) * 30, tuple(step * i for i in range(30))) for step in (1.0, 60.0))
    assert drawing.draw(close).form == "seconds" and drawing.draw(far).form == "short"


def test_a_line_is_interrupted_where_nothing_is_known():
    path = re.search(
        r'class="line c0" d="([^"]*)"', drawing.draw(chart((0.1, 0.2, None, 0.4, 0.5))).picture
    )
    assert path[1].count("M") == 2 and path[1].count("L") == 2


def test_ages_over_many_sizes_are_on_a_logarithmic_scale_and_others_are_not():
    far = tuple(float(10**i) for i in range(7))
    assert drawing.draw(chart((0.1,) * 7, far, x_kind="age", y_kind="share")).is_far
    even = tuple(3600.0 * i for i in range(7))
    drawn = drawing.draw(chart((0.1,) * 7, even, x_kind="age", y_kind="share"))
    assert not drawn.is_far
    assert [word for _, word in drawn.x.ticks] == ["0s", "1h", "2h", "3h", "4h", "5h", "6h"]


@pytest.mark.parametrize("last", [0.5, 3.0, 50.0, 4000.0, 90_000.0, 86_400.0 * 14, 86_400.0 * 400])
def test_ages_have_few_ticks(last):
    x = tuple(last * i / 30 for i in range(31))
    drawn = drawing.draw(chart((0.1,) * 31, x, x_kind="age", y_kind="share"))
    assert 1 <= len(drawn.x.ticks) <= 9


def test_a_table_is_thinned_and_has_the_last_numbers():
    for n in (1, 2, 19, 20, 21, 40, 128, 1000):
        drawn = drawing.draw(chart(tuple(float(i) for i in range(n))))
        assert min(n, 10) <= len(drawn.rows) <= 20
        assert drawn.rows[-1][0] == n - 1


def test_stacked_areas_end_at_the_top():
    drawn = drawing.draw(sample.allocation(sample.busy()[0].arms))
    tops = re.findall(r'class="area a\d+" d="M0 (\d+)', drawn.picture)
    assert len(tops) == 4 and tops[-1] == "0"


def test_stacked_areas_have_a_gap_where_nothing_was_shown():
    drawn = drawing.draw(sample.allocation(sample.busy()[0].arms))
    (first, *_) = re.findall(r'class="area a0" d="([^"]*)"', drawn.picture)
    assert first.count("M") == first.count("Z") == 2


def test_counts_by_age_keep_their_sum_in_few_bars():
    told = sample.pending_ages(64)
    drawn = drawing.draw(told)
    assert drawn.picture.count("<rect") == len(drawn.rows) == 16
    assert sum(drawn.chart.lines[0].values) == sum(told.lines[0].values)
    assert [word for _, word in drawn.x.ticks] == ["0s", "1d", "2d", "3d", "4d", "5d", "6d"]
    assert drawn.x.ticks[0][0] == -0.5


def test_a_band_is_one_area_and_one_entry_of_the_legend():
    drawn = drawing.draw(sample.delays())
    assert drawn.picture.count('class="area band"') == 1
    assert [name for _, name, _ in drawn.legend] == ["interval", "heard by then"]


def test_nothing_is_drawn_of_nothing():
    assert drawing.draw(None) is None
    assert drawing.draw(chart(())) is None
    assert sparklines.spark(()) == sparklines.spark((3,)) == ""


def test_whiskers_reach_as_far_as_the_arms_do():
    near = [sample.arm(0, "a", 1, lower=0.45, upper=0.58)]
    assert sparklines.reach(near) == 0.1
    assert sparklines.reach([sample.arm(0, "a", 0)]) == 0.5
    assert sparklines.reach([sample.arm(0, "a", 1, lower=-0.1, upper=0.6)]) == 0.5
    dot = re.search(r'cx="([\d.]+)"', sparklines.whisker(0.45, 0.55, 0.58, 0.1))
    assert math.isclose(float(dot[1]), 4 + 124 * 0.75)
    assert "reach" not in sparklines.whisker(None, None, None)
