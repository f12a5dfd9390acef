"""Somebody's words are words: in reports, notebooks, figures and tables, whatever is in them."""

import csv
import dataclasses
import json
import tempfile
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot

import duelay
from duelay import assumptions, experiments
from duelay.experiments import regret_figures, report
from duelay.experiments.results import Results
from duelay.experiments.spec import Choice, Grid, Specification, Sweep
from duelay.show import figure_style, plots
from duelay.show.html_report import page
from duelay.simulation import Setting, write_csv
from duelay.simulation.setting import ABOUT

ODD = [
    "<script>alert(1)</script>",
    "x` <script>alert(1)</script> `y",
    "```",
    "``a`b",
    "\\",
    "ends in \\",
    "\"double\" and 'single'",
    '" onmouseover="alert(1)',
    "a | b || c",
    "=1+1",
    "=",
    "+1",
    "-1",
    "- item",
    "* item",
    "12. item",
    "1) item",
    "@SUM(A1)",
    "# head",
    "> quote",
    "**bold** _slanted_ __x__",
    "[link](javascript:alert(1))",
    "![picture](http://127.0.0.1/x.png)",
    "[x]: http://127.0.0.1",
    "<http://127.0.0.1>",
    "&lt;b&gt; &amp; &#60;",
    "$x^2$ and $\\frac$",
    "one $",
    "~~gone~~",
    "<!-- comment",
    "--> </title></style><b>",
    "</code><b>bold</b>",
    "<img src=x onerror=alert(1)>",
    '<img src="figures/odd-regret.svg">',
    "{: onclick=alert(1)}",
    "_hidden",
    "__",
    "日本 ünï",
]
# What means something to matplotlib, or in an SVG: figures know nothing of Markdown.
DRAWN = ["<script>alert(1)</script>", "--> </title></style><b>", "&lt;b&gt; &amp; &#60;", "\\",
         "ends in \\", "$x^2$ and $\\frac$", "one $", "_hidden", "__"]  # fmt: skip
TAGS = {
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "ul", "li", "strong", "em",
    "code", "table", "thead", "tbody", "tr", "th", "td", "img", "blockquote",
}  # fmt: skip
ATTRIBUTES = {"lang", "charset", "name", "content", "http-equiv", "alt", "src", "style"}


class Page(HTMLParser):
    """What a browser makes of a page: its elements, and the words in each."""

    def __init__(self, source):
        super().__init__()
        self.tags, self.attributes, self.open, self.words = set(), set(), [], {}
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        for name, value in attrs:
            if name in ("alt", "title"):
                self.words.setdefault(name, []).append(value)
        if tag not in ("meta", "img", "br"):
            self.open.append([tag, ""])

    def handle_data(self, data):
        for element in self.open:
            element[1] += data

    def handle_endtag(self, tag):
        if self.open and self.open[-1][0] == tag:
            _, words = self.open.pop()
            self.words.setdefault(tag, []).append(" ".join(words.split()))


@pytest.fixture(scope="module")
def small():
    return duelay.simulate(
        duelay.Problem([[0.5, 0.6], [0.4, 0.5]]), duelay.RUCBDelay(), delay="geometric:0.1",
        horizon=40, runs=2, checkpoints=4, setting=Setting(pairs=True),
    )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Odd(duelay.delays.Geometric):
    """A law that prints whatever it likes."""

    words: str = ""

    def __str__(self):
        return self.words


@dataclasses.dataclass(frozen=True)
class Wordy(duelay.Policy):
    """A policy with a parameter that is a text."""

    words: str = ""
    text_name = "wordy"

    def choose(self):
        return 0, 1


def results_of(result, words, problem=None, sweep=False):
    """A study in which every word that somebody may choose is the same."""
    problem = duelay.Problem([[0.5, 0.6], [0.4, 0.5]], [words, f"{words}'"], name=problem or words)
    law = Odd(0.1, words)
    grid = Grid(words, words, (problem,), (Choice("rucb-delay", words),), (law,), 40, 2, 0, 4, 2)
    swept = Sweep("delays", words, (words,)) if sweep else None
    spec = Specification(words, words, "none", (grid,), swept)
    shown = dataclasses.replace(result, problem=problem, delay=law, policy=Wordy(words))
    return Results(spec, {(words, problem.name, words, words): shown})


def pages(result, words, **options):
    """The report of such a study, with its captions, as Markdown and as HTML."""
    results = results_of(result, words, **options)
    drawn = {words: [("odd-regret", f"Regret under {words}")]}
    source = report.compose(results, [], drawn)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "figures").mkdir()
        for name in ("odd-regret", "sweep"):
            (Path(folder) / "figures" / f"{name}.svg").write_text("<svg/>")
        return source, page(source, words, Path(folder))


def flat(words):
    return " ".join(words.split())


@pytest.mark.parametrize("sweep", [False, True])
@pytest.mark.parametrize("words", ODD)
def test_every_field_of_a_report_shows_the_words_as_they_are(small, words, sweep):
    source, page = pages(small, words, sweep=sweep)
    seen = Page(page)
    assert seen.tags <= TAGS and seen.attributes <= ATTRIBUTES
    assert seen.words["title"] == seen.words["h1"] == [flat(words)]
    assert flat(words) in seen.words["h2"]  # the grid's title
    assert flat(words) in seen.words["code"]  # the specification's name, and the law
    assert f"wordy:words={flat(words)}" in seen.words["code"]
    assert flat(f"{words}: wordy:words={words}") in seen.words["li"]
    assert seen.words["strong"][0] == flat(words)
    assert seen.words["td"].count(flat(words)) >= 2  # problem and label
    assert flat(f"Regret under {words}") in seen.words["em"] and flat(f"Regret under {words}") in [
        flat(alt) for alt in seen.words["alt"]
    ]
    assert any(p.endswith(f"{flat(words)}:") for p in seen.words["p"])
    if sweep:
        assert seen.words["th"].count(flat(words)) >= 2  # the axis and its tick
    assert "<script" not in source and "<img" not in source


@pytest.mark.long
@given(words=st.text(min_size=1).filter(str.strip))
def test_no_text_makes_marks_of_its_own(small, words):
    seen = Page(pages(small, words)[1])
    assert seen.tags <= TAGS and seen.attributes <= ATTRIBUTES


def test_nothing_on_the_page_may_be_fetched_or_run(small):
    head = pages(small, "words")[1].partition("<body>")[0]
    assert (
        "Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src" in head
    )


def toml(words, problem):
    """A specification in which every word is the same."""
    word = json.dumps(words, ensure_ascii=False).replace("\x7f", "\\u007f")
    return f"""
name = {word}
title = {word}
problems = [{json.dumps(problem, ensure_ascii=False)}]
policies = [{{ policy = "rucb", label = {word} }}]
delays = ["geometric:0.1"]
horizon = 60
runs = 2
checkpoints = 6
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "words",
    ["=<script>alert(1)<\\script>|`a`\"b\"'c' $x", "_<!-- --> $\\frac{ $", "-1 ` & ~~ * [x](y)"],
)
@pytest.mark.parametrize("sweep", [False, True])
def test_a_specification_of_odd_words_runs_to_the_end(words, sweep, tmp_path):
    """From the file's name to the last figure."""
    (tmp_path / f"{words}.csv").write_text(
        f'{words[:3].replace(",", "")}a,"<b>"\n0.5,0.6\n0.4,0.5\n'.replace('"<b>"', "<b>")
    )
    source = toml(words, f"{words}.csv").replace(f"name = {json.dumps(words)}\n", "")
    if sweep:
        word = json.dumps(words)
        source += f'[sweep]\nover = "delays"\naxis = {word}\nticks = [{word}]\n'
    path = tmp_path / f"{words}.toml"
    path.write_text(source)
    out = tmp_path / "out"
    experiments.run(experiments.read(path), out, workers=1, quiet=True)
    seen = Page((out / "report.html").read_text())
    assert seen.tags <= TAGS and seen.attributes <= ATTRIBUTES
    assert seen.words["h1"] == [flat(words)] and flat(words) in seen.words["code"]
    drawn = sorted((out / "figures").glob("*.svg"))
    assert len(drawn) == (1 if sweep else 3)
    for picture in drawn:
        assert not [
            e for e in ET.parse(picture).iter() if e.tag.endswith(("script", "foreignObject"))
        ]
    table = pandas.read_csv(out / "results.csv")
    mark = "'" if words[0] in "=-" else ""
    assert set(table.problem) == {mark + words}
    assert set(pandas.read_parquet(out / "results.parquet").problem) == {words}


@pytest.mark.parametrize("words", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", '=a,b"c\n'])
def test_a_spreadsheet_finds_no_formula_in_a_table(small, words, tmp_path):
    problem = duelay.Problem([[0.5, 0.6], [0.4, 0.5]], name=words)
    result = dataclasses.replace(small, problem=problem, delay=Odd(0.1, words))
    write_csv([result], tmp_path / "regret.csv")
    with (tmp_path / "regret.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    shown = "'" + words.replace("\t", " ").replace("\r", " ").replace("\n", " ")
    assert {row["problem"] for row in rows} == {row["law"] for row in rows} == {shown}
    assert not any(cell.startswith(tuple("=+-@\t\r")) for row in rows for cell in row.values())


@pytest.mark.parametrize("words", ODD)
def test_notebooks_show_the_words_as_they_are(small, words):
    results = results_of(small, words)
    problem, law = results.spec.grids[0].problems[0], Odd(0.1, words)
    player = Wordy(words).start([words, f"{words}'"], seed=0)
    player.tell(player.ask())
    result = dataclasses.replace(small, problem=problem, delay=law, policy=Wordy(words))
    by_pair = duelay.delays.ByPair((law, law, law, law))
    for thing in (problem, law, by_pair, player, player.standing(), result, results):
        seen = Page(thing._repr_html_())
        assert not seen.tags & {"script", "img", "a", "i", "code", "title"} - {"title"}
        assert not [name for name in seen.attributes if name.startswith("on")]
        told = [*seen.words["div"], *seen.words.get("title", [])]
        assert any(flat(words)[:8] in flat(part) for part in told), thing


@pytest.mark.long
@pytest.mark.parametrize("words", DRAWN)
def test_figures_show_the_words_as_they_are(small, words, tmp_path):
    results = results_of(small, words)
    grid = results.spec.grids[0]
    player = Wordy(words).start([words, f"{words}'"], seed=0)
    player.tell(player.ask())
    for number, figure in enumerate(
        (
            regret_figures.regret(results, grid, words),
            regret_figures.pairs(results, grid, words),
            plots.regret_figure([next(iter(results.by_key.values()))]),
            plots.draw_problem(None, grid.problems[0]).figure,
            plots.draw_standing(None, player.standing()).figure,
            plots.draw_delay(None, [Odd(0.1, words)]).figure,
        )
    ):
        figure_style.save(figure, tmp_path / f"{number}.svg")
        tree = ET.parse(tmp_path / f"{number}.svg")
        assert not [element for element in tree.iter() if element.tag.endswith("script")]
    pyplot.close("all")


def test_a_name_that_matplotlib_would_hide_is_in_the_legend(small):
    results = results_of(small, "__x")
    figure = regret_figures.regret(results, results.spec.grids[0], "__x")
    assert [label.get_text() for label in figure.legends[0].get_texts()] == ["x"]


def test_a_report_on_assumptions_is_a_table_whatever_is_found(monkeypatch):
    found = assumptions.Finding("a test", 1.0, 0.5, 9, False, "a | b <script>")
    monkeypatch.setattr(assumptions, "check_assumptions", lambda history, level: [found])
    history = duelay.History(2, [0, 1], [1, 0], [1, np.nan], [1, np.nan])
    assert assumptions.report(history).splitlines()[-1].endswith("| 9 | a \\| b &lt;script&gt; |")


def test_the_setting_of_a_study_is_words_of_ours():
    """It stands in reports as it is."""
    for name in ABOUT:
        with pytest.raises(ValueError):
            Setting(**{name: "<script>"})
    assert "<script" not in str(Setting(progress="<script>"))
