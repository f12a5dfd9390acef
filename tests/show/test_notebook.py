"""What notebooks show, and the `plot` of every type."""

import dataclasses
import itertools
import re
import sys
import xml.etree.ElementTree as ET

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import duelay
from duelay import delays
from duelay.delays import ByPair, Constant, Empirical, Geometric, LogNormal, Never, Uniform
from duelay.experiments import spec_parser
from duelay.experiments.results import Results
from duelay.problems import Problem, arithmetic
from duelay.show import html, notebook

ODD_NAMES = ("<b>bold</b>", "$5 & $6", '"quoted"', "very " * 30, "\x00\ud800", "太郎", "_hidden")
LAWS = (
    Geometric(0.01),
    Constant(),
    Constant(1000),
    Uniform(5, 20),
    Never(0.3, Geometric(0.01)),
    Never(1.0, Geometric(0.5)),
    LogNormal(100, 3),
    LogNormal(1e6, 8),
    Empirical([0.5, 0, 0.3]),
    Empirical([0.0]),
    Empirical(np.full(5000, 1 / 5000)),
)


def parse(thing):
    """What a notebook shows: sound as XML, hence as HTML."""
    shown = thing._repr_html_()
    assert len(shown) < 200_000
    return ET.fromstring(shown)


def words(thing):
    return re.sub(r"\s+([:,])", r"\1", " ".join(" ".join(parse(thing).itertext()).split()))


def is_plain(thing):
    """Whether it fell back on its text."""
    return parse(thing).find(".//pre") is not None


def cells(thing):
    return [
        ["".join(cell.itertext()).strip() for cell in row] for row in parse(thing).iterfind(".//tr")
    ]


@pytest.fixture(autouse=True)
def figures_are_closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def result():
    return duelay.simulate(
        arithmetic(3, 0.1), duelay.RUCB(), delay="uniform:1,5", horizon=300, runs=3, checkpoints=20
    )


@pytest.fixture(scope="module")
def standing():
    player = duelay.RUCB().start(["red", "<green>", "blue"], seed=0)
    for _ in range(200):
        duel = player.ask()
        if duel.first <= duel.second:
            player.tell(duel)
    return player.standing()


def large(k, winner):
    matrix = np.full((k, k), 0.5)
    matrix[winner], matrix[:, winner] = 0.75, 0.25
    matrix[winner, winner] = 0.5
    return Problem(matrix, [f"arm {i}" for i in range(k)], name="large")


def test_a_problem_shows_its_matrix_and_marks_the_winner():
    problem = Problem([[0.5, 0.4], [0.6, 0.5]], arms=["old", "new"], name="mine")
    assert cells(problem) == [
        ["", "old", "new"],
        ["old", "0.500", "0.400"],
        ["new ★", "0.600", "0.500"],
    ]
    assert "mine: 2 arms, new beats every other one, with 0.6 or more" in words(problem)
    colours = [cell.get("style") for cell in parse(problem).iterfind(".//td")]
    assert html.ORANGE in colours[2] and html.BLUE in colours[4]


def test_a_problem_without_a_winner_says_so():
    cycle = Problem([[0.5, 0.6, 0.4], [0.4, 0.5, 0.6], [0.6, 0.4, 0.5]])
    assert "no Condorcet winner" in words(cycle) and "★" not in words(cycle)
    assert cycle.plot().get_title() == "problem: no Condorcet winner"
    even = Problem(np.full((2, 2), 0.5))
    assert "no Condorcet winner" in words(even) and not is_plain(even)
    assert even.plot().get_title() == "problem: no Condorcet winner"


@pytest.mark.long
def test_of_many_arms_a_corner_is_shown_with_the_winner_in_it():
    shown = words(large(200, 150))
    assert "184 more arms are left out" in shown and "arm 150 ★" in shown
    assert len(cells(large(200, 150))) == 1 + notebook.MAX_ARMS_SHOWN
    assert "left out" not in words(large(notebook.MAX_ARMS_SHOWN, 3))
    wide = ByPair.of(200, lambda i, j: Geometric(1 / (2 + i + 200 * j)))
    assert "200 × 200 pairs of arms, 40,000 different laws" in words(wide)
    assert "184 more arms are left out" in words(wide)
    player = duelay.RUCBDelay(window=10).start(200, seed=0)
    player.tell(player.ask())
    assert "184 more arms are left out" in words(player)
    assert len(player.plot().get_yticks()) == 40 and "159 more arms" in player.plot().get_title()


@pytest.mark.parametrize("law", LAWS, ids=lambda law: str(law)[:30])
def test_every_law_shows_its_numbers_and_its_curve(law):
    assert not is_plain(law)
    head, row = cells(law)
    shown = dict(zip(head, row, strict=True))
    assert shown["mean delay"] == html.number(law.mean)
    half = law.quantile(0.5)
    assert shown["half by"] == ("never" if np.isinf(half) else html.number(half))
    assert (shown["never come"] == "none") == (law.never == 0)
    assert len(parse(law).findall(".//svg")) == 1
    axes = law.plot()
    assert len(axes.lines) == (2 if law.never else 1)
    axes.figure.draw_without_rendering()


def test_the_bars_of_a_law_are_all_that_comes_in_view():
    law = Never(0.2, Uniform(3, 300))
    axes = law.plot()
    assert sum(bar.get_height() for bar in axes.patches) == pytest.approx(0.8)
    np.testing.assert_allclose(axes.lines[0].get_ydata(), law.cdf(axes.lines[0].get_xdata()))
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "has come by this age",
        "20 % never come",
        "comes in this span",
    ]
    assert LogNormal(100, 3).plot().get_xscale() == "log"


def test_laws_by_pair_show_each_pair_and_a_line_a_law():
    law = ByPair.of(3, lambda i, j: Geometric(0.1 if i == j else 0.5))
    assert cells(law)[1:] == [["0", "7", "1", "1"], ["1", "1", "7", "1"], ["2", "1", "1", "7"]]
    assert "2 different laws" in words(law) and "mean delays from 2 to 10" in words(law)
    assert len(law.plot().lines) == 2
    assert "the same law" in words(ByPair((Geometric(0.5),) * 4))
    never = ByPair.of(2, lambda i, j: Never(1.0, Geometric(0.5)) if i else Geometric(0.5))
    assert "up to 100 % never come" in words(never) and not is_plain(never)
    long = ByPair.of(20, lambda i, j: Empirical(np.full(3000 + i + j, 1 / 4000)))
    assert not is_plain(long)
    many = ByPair.of(8, lambda i, j: Geometric(1 / (2 + i + 8 * j)))
    axes = many.plot()
    assert len(axes.lines) == 50 and axes.get_title() == "64 laws by pair of arms, 50 of them"
    assert axes.get_legend() is None


def test_a_standing_shows_the_leader_against_the_others(standing):
    rows = cells(standing)
    assert rows[0] == ["arm", "leader beats it", "", "beats", "duels", "conversions", "pending"]
    for shown, row in zip(rows[1:], standing.rows(), strict=True):
        assert shown[0] == standing.arms[row.arm]
        assert shown[4:] == [str(row.duels), str(row.conversions), str(row.pending)]
        if row.arm == standing.leader:
            assert shown[1] == "leads"
        else:
            assert shown[2] == f"{row.mean:.3f} [{row.lower:.3f}, {row.upper:.3f}]"
    assert standing.headline in words(standing) and standing.headline in str(standing)
    assert len(parse(standing).findall(".//svg")) == 2


def test_a_standing_with_evidence_shows_how_it_grew():
    player = duelay.Decide().start(["red", "green"], seed=0)
    assert "an arm wins" not in player.standing()._repr_html_()
    for _ in range(60):
        duel = player.ask()
        if duel.first == 0:
            player.tell(duel)
    shown = player.standing()._repr_html_()
    assert "evidence of each arm" in shown and "an arm wins" in shown
    assert "stroke-dasharray" in shown  # the line at which one is declared


@pytest.mark.parametrize(("margin", "is_of_a_winner"), [(None, True), (0.2, False)])
def test_the_line_of_the_evidence_is_that_of_a_winner_only_without_a_margin(margin, is_of_a_winner):
    player = duelay.Decide(margin=margin).start(["red", "green"], seed=0)
    for _ in range(20):
        player.tell(player.ask())
    standing = player.standing()
    [line] = standing.plot(kind="evidence").texts
    assert ("winner" in line.get_text()) == is_of_a_winner
    assert ("an arm wins" in standing._repr_html_()) == is_of_a_winner


def test_a_standing_is_drawn_as_intervals_about_one_half(standing):
    axes = standing.plot()
    intervals, points = axes.collections
    rows = [row for row in standing.rows() if row.arm != standing.leader]
    np.testing.assert_allclose(points.get_offsets()[:, 0], [row.mean for row in rows])
    ends = [list(segment[:, 0]) for segment in intervals.get_segments()]
    np.testing.assert_allclose(ends, [[row.lower, row.upper] for row in rows])
    assert list(axes.lines[0].get_xdata()) == [0.5, 0.5]
    assert axes.get_title().replace("\n", " ") == standing.headline
    assert [tick.get_text() for tick in axes.get_yticklabels()] == [
        standing.arms[row.arm] for row in rows
    ]


def test_a_player_that_has_heard_nothing_has_no_leader():
    player = duelay.RUCBDelay().start(2, seed=0)
    assert "nothing has been heard after 0 duels" in words(player)
    assert "leads" not in cells(player)[1] and not is_plain(player)
    axes = player.plot()
    assert axes.get_xlabel().startswith(
        "how often the leader beats it\n95 % intervals, all at every"
    )
    assert [text.get_text().strip() for text in axes.texts] == ["unheard"]


def test_a_player_shows_what_it_is_and_what_it_has_learned():
    player = duelay.recommend().policy.start(["red", "green"], seed=0)
    assert "as learned so far" not in words(player) and not is_plain(player)
    for _ in range(50):
        player.tell(player.ask())
    shown = words(player)
    assert "double-thompson:delay=learn at work on 2 arms" in shown
    assert "after 50 duels" in shown and "as learned so far" in shown
    before = player.ask()
    assert before.id == 50  # looking has asked nothing


def test_what_cannot_be_known_of_counts_is_a_question_mark():
    player = duelay.MRRDBDelay(schedule=(20, 80), feedback="counts").start(3)
    for _ in range(5):
        player.ask()
    player.tell_count(2)
    assert all(row[-1] == "?" for row in cells(player)[1:])


def test_a_dropped_arm_is_marked():
    player = duelay.RRDBDelay(delay=Constant(), delta=0.5).start(2, seed=0)
    for _ in range(400):
        duel = player.ask()
        if duel.first == 0:
            player.tell(duel)
    assert "1 (dropped)" in words(player)


def test_a_result_shows_regret_and_who_leads(result):
    head, row = cells(result)
    assert head == ["regret ± sd", "led by the winner", "µs a duel"]
    assert row[0] == f"{result.final.mean():.3g} ± {result.final.std(ddof=1):.3g}"
    assert row[1] == html.percent(result.led_by_winner)
    assert "rucb on arithmetic, delay uniform:1,5: 3 runs of 300 duels" in words(result)
    axes = result.plot()
    assert len(axes.lines) == len(axes.collections) == 1
    np.testing.assert_allclose(axes.lines[0].get_ydata()[1:], result.mean)


def test_a_single_run_has_no_band():
    one = duelay.simulate(
        arithmetic(2, 0.1), duelay.RUCB(), delay="constant:1", horizon=20, checkpoints=[20]
    )
    assert "±" not in words(one) and "1 run of 20 duels" in words(one) and not is_plain(one)
    assert len(parse(one).findall(".//svg/path")) == 2  # the frame and the line
    assert "nan" not in one._repr_html_() and np.isnan(one.std).all()
    axes = one.plot()
    assert axes.get_ylabel() == "cumulative regret (one run)"
    axes.figure.draw_without_rendering()


def test_what_is_not_known_of_a_result_is_left_out(result):
    nobody = dataclasses.replace(result, leader=np.full(3, -1), seconds=0.0)
    assert cells(nobody)[1][1:] == ["not known"]
    cycle = Problem([[0.5, 0.6, 0.4], [0.4, 0.5, 0.6], [0.6, 0.4, 0.5]])
    assert cells(dataclasses.replace(nobody, problem=cycle))[0] == ["regret ± sd"]
    flat = dataclasses.replace(result, regret=0 * result.regret, final=0 * result.final)
    assert "0 ± 0" in words(flat) and not is_plain(flat)


def test_plots_draw_on_given_axes(result, standing):
    figure, grid = plt.subplots(1, 5)
    things = (result, standing, Geometric(0.1), ByPair((Geometric(0.5),) * 4), arithmetic(3, 0.1))
    for axes, thing in zip(grid, things, strict=True):
        assert thing.plot(axes) is axes and thing.plot(ax=axes) is axes
    assert plt.get_fignums() == [figure.number]


def test_a_heat_map_has_a_number_a_cell_and_the_winner_in_bold():
    problem = duelay.datasets.load("tennis")
    axes = problem.plot()
    assert len(axes.texts) == problem.n_arms**2
    bold = [tick.get_text() for tick in axes.get_yticklabels() if tick.get_fontweight() == "bold"]
    assert bold == [problem.arms[problem.winner]]
    assert len(large(200, 3).plot().texts) == 0


def test_without_matplotlib_html_is_shown_and_plot_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert not is_plain(arithmetic(3, 0.1)) and not is_plain(Geometric(0.1))
    with pytest.raises(ValueError, match=r"figures need matplotlib: .*duelay\[plots\]"):
        Geometric(0.1).plot()


def test_names_are_shown_as_they_are_and_never_as_marks():
    k = len(ODD_NAMES)
    problem = Problem(np.full((k, k), 0.5), ODD_NAMES, name="<script>alert(1)</script>")
    assert "<script>alert(1)</script>: 7 arms" in words(problem)
    assert "<script" not in problem._repr_html_() and "<b>bold" not in problem._repr_html_()
    assert "mathjax_ignore" in parse(problem).get("class")
    player = duelay.RUCB().start(ODD_NAMES, seed=0)
    for _ in range(40):
        player.tell(player.ask())
    assert "<b>bold</b>" in words(player) and "太郎" in words(player) and not is_plain(player)
    sound = [name for name in ODD_NAMES if name.isascii() and name.isprintable()]
    Problem(np.full((len(sound),) * 2, 0.5), sound).plot().figure.draw_without_rendering()


def test_a_law_that_is_wrong_is_shown_as_text():
    @dataclasses.dataclass(frozen=True)
    class Wrong(delays.Law):
        def cdf(self, t):
            raise RuntimeError("no")

    @dataclasses.dataclass(frozen=True, repr=False)
    class Worse(Wrong):
        def __repr__(self):
            raise RuntimeError("no")

    assert is_plain(Wrong()) and "Wrong()" in words(Wrong())
    assert is_plain(Worse()) and words(Worse()) == "<Worse>"
    assert is_plain(ByPair((Wrong(),) * 4))


def test_long_names_are_broken_and_not_cut():
    """A name above a column was once cut to ten letters: "Pete S…ras"."""
    problem = duelay.datasets.load("tennis")
    page = problem._repr_html_()
    assert "…" not in page
    for arm in problem.arms:
        assert page.count(f">{arm}</span></th>") == 1  # above its column
    assert "white-space:normal" in page and "overflow-wrap:anywhere" in page
    endless = duelay.Problem(problem.matrix[:2, :2], arms=["x" * 300, "y"])._repr_html_()
    assert endless.count("…") >= 2 and f'title="{"x" * 300}"' in endless


@given(st.text(max_size=100))
def test_any_text_is_safe(text):
    ET.fromstring(html.block(html.short(text), html.td("", title=text)))
    shown = "".join(ET.fromstring(f"<p>{html.escape(text)}</p>").itertext())
    assert shown == text or not text.isprintable()


@pytest.mark.long
@settings(max_examples=50, deadline=None)
@given(st.integers(2, 20), st.data())
def test_any_problem_is_shown(k, data):
    upper = data.draw(st.lists(st.floats(0, 1), min_size=k * (k - 1) // 2, max_size=None))
    matrix = np.full((k, k), 0.5)
    rows, columns = np.triu_indices(k, 1)
    matrix[rows, columns] = upper[: len(rows)]
    matrix[columns, rows] = 1 - matrix[rows, columns]
    assert not is_plain(Problem(matrix))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.floats(0, 1))
def test_any_table_of_delays_is_shown(masses, share):
    law = Empirical(share * np.array(masses) / max(sum(masses), 1.0))
    assert not is_plain(law) and not is_plain(Never(0.5, law)) and not is_plain(ByPair((law,) * 4))


def test_a_tiny_share_that_never_comes_is_shown():
    law = Empirical([0.5, 0.5 - 1e-6])
    assert not is_plain(law) and "< 0.1 %" in words(law)


def test_the_ages_of_a_span_are_few_and_reach_its_ends():
    for span in (notebook.Span(5, False), notebook.Span(5000, False), notebook.Span(10**12, True)):
        ages = span.ages(31)
        assert ages[0] == 0 and ages[-1] == span.last and len(ages) <= 31
        assert (np.diff(ages) > 0).all()


def test_a_study_shows_a_table_of_regrets(tmp_path, result):
    source = """
        name = "small"
        title = "A small <study>"
        problems = ["arithmetic:3,0.1", "arithmetic:2,0.1"]
        policies = ["rucb", { policy = "rucb-delay", label = "ours" }]
        delays = ["geometric:0.5", "constant:2"]
    """
    spec = spec_parser.parse(source, "small.toml", tmp_path)
    keys = itertools.product(
        ["small"],
        ["arithmetic:3,0.1", "arithmetic:2,0.1"],
        ["rucb", "ours"],
        ["geometric:0.5", "constant:2"],
    )
    by_key = {
        key: dataclasses.replace(result, final=result.final + n) for n, key in enumerate(keys)
    }
    head, *rows = cells(Results(spec, by_key))
    assert len(head) == 5 and [row[0] for row in rows] == ["rucb", "ours"]
    ours = by_key["small", "arithmetic:2,0.1", "ours", "geometric:0.5"]
    assert rows[1][3] == notebook.final_regret(ours)
    assert "A small <study>" in words(Results(spec, by_key))
