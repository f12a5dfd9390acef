"""A command makes every table of numbers on a page, or a test checks it.

Such a table stands between marks (`benchmarks/pages.py`), and agrees with docs/numbers.
"""

import hashlib
import importlib
import json
import re
import subprocess
import sys

import pytest

import duelay
import pages
import quick_numbers
from commands import COMMANDS, SLOW_TESTS
from duelay import experiments
from duelay.cli.simulate import simulate_command
from duelay.live.validation import LONGEST as LONGEST_WORD
from duelay.service import middleware, models, routes

BLOCKS = list(pages.blocks())
DOCS = pages.ROOT / "docs"
PAGES = [page for page in pages.pages() if page.name not in ("changelog.md", "report.md")]
FENCE = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
TABLE = re.compile(r"(?:<!-- checked by: (?P<test>\w+) -->\n\n?)?(?P<rows>(?:^\|.*\|$\n?)+)", re.M)


def title(page):
    return page.relative_to(pages.ROOT).as_posix().removeprefix("docs/")


def test_no_two_blocks_have_one_name_and_all_that_is_kept_is_shown():
    names = sorted(block.name for block in BLOCKS)
    kept = sorted(path.stem for path in (DOCS / "numbers").glob("*.json"))
    assert len(names) == len(set(names)) > 30
    assert kept == sorted([*names, "report"])


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.name)
def test_a_block_is_what_its_command_keeps(block):
    kept = pages.kept(block.name)
    assert block.command == kept["made by"]
    assert block.body == pages.render(kept["parts"])


def test_the_commands_are_there():
    """One of `python -m benchmarks`, or shell commands that stand above on the page."""
    commands = {f"python -m benchmarks {name}" for name in COMMANDS}
    for block in BLOCKS:
        if block.command == quick_numbers.ABOVE:
            before = block.page.read_text().partition(f"<!-- {block.name}, made by")[0]
            *_, last = re.split("^#+ |<!-- end -->", before, flags=re.MULTILINE)
            assert "```sh\nduelay simulate" in last or "    duelay simulate" in last, block.name
        else:
            assert block.command in commands, block.name


@pytest.mark.parametrize("name", COMMANDS)
def test_the_scripts_of_a_command_are_there(name):
    for script in COMMANDS[name].scripts:
        files = [word for word in script.split() if word.endswith(".py")]
        assert files or script == SLOW_TESTS
        assert [file for file in files if not (pages.ROOT / file).is_file()] == []


def test_commands_are_listed_and_an_unknown_one_is_refused():
    def run(*arguments):
        command = [sys.executable, "-m", "benchmarks", *arguments]
        return subprocess.run(command, cwd=pages.ROOT, capture_output=True, text=True)

    listed, refused = run(), run("nothing")
    assert [line.split()[0] for line in listed.stdout.splitlines()] == list(COMMANDS)
    assert (listed.returncode, refused.returncode) == (0, 2)


LONGEST = ("bias", "limits", "second-arm", "two-arm-limits")  # more than ten seconds each


@pytest.mark.compiled
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in LONGEST else ())
        for name in quick_numbers.quick()
    ],
)
def test_what_takes_seconds_is_made_anew(name):
    """After a change that is meant to give other numbers: `python -m benchmarks numbers`."""
    assert pages.render(quick_numbers.make(name)) == pages.render(pages.kept(name)["parts"])


def test_the_whole_report_is_what_its_command_wrote():
    signed = json.loads((DOCS / "numbers" / "report.json").read_text())
    report = (pages.ROOT / signed["page"]).read_bytes()
    assert hashlib.sha256(report).hexdigest() == signed["sha256"], (
        "python -m benchmarks reproduction"
    )
    for claim in pages.kept("claims")["parts"][0]["rows"]:
        assert f"| {' | '.join(claim)} |".encode() in report


def has_numbers(rows):
    """Whether a cell of a table, its head left out, is a number, with a unit perhaps."""
    cells = [cell for row in rows.splitlines()[2:] for cell in row.strip("|").split("|")]
    plain = [re.sub(r"`[^`]*`|\*", "", cell).strip() for cell in cells]
    return any(re.match(r"[-+]?\d[\d,.]*($|,| (?!\+|to ))", cell) for cell in plain)


def loose_tables(page):
    """The tables of a page that stand outside of marks, each with the test that checks it."""
    text = FENCE.sub("", pages.MARK.sub("", page.read_text()))
    return [(found["rows"], found["test"]) for found in TABLE.finditer(text)]


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_a_table_of_numbers_is_made_by_a_command_or_checked_by_a_test(page):
    for rows, test in loose_tables(page):
        assert test in globals() if test else not has_numbers(rows), rows
    for fence in FENCE.findall(pages.MARK.sub("", page.read_text())):
        is_run = "```python" in fence or "```console" in fence  # test_service_pages.py
        assert is_run or not re.search(r"^ *-+(  +-+)+$", fence, re.MULTILINE), fence


def test_a_table_of_numbers_is_known_by_its_cells():
    for cell in ("20", "1,234", "**12**", "4.2 %", "122 ± 8", "1000 unless told", "-0.5"):
        assert has_numbers(f"| a | b |\n|---|---|\n| x | {cell} |\n"), cell
    for cell in ("", "`12`", "1/p", "1 + r (1 - p)", "K×K", "x 12", "5 to 200 arms"):
        assert not has_numbers(f"| a | b |\n|---|---|\n| x | {cell} |\n"), cell


def checked_by(test):
    """The rows of the table that a test checks, each a list of cells."""
    (rows,) = [rows for page in PAGES for rows, name in loose_tables(page) if name == test]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows.splitlines()[2:]]


def test_the_defaults_of_simulate_are_those_of_the_command():
    defaults = {
        option: parameter.default
        for parameter in simulate_command.params
        for option in parameter.opts
    }
    named = 0
    for options, told, _ in checked_by("test_the_defaults_of_simulate_are_those_of_the_command"):
        names = re.findall(r"`(--[\w-]+)`", options)
        for name, default in zip(names, told.split(", "), strict=True):
            if default.strip("`").isdigit() or "`" in default:
                assert default.strip("`") == str(defaults[name]), name
                named += 1
            assert name in defaults
    assert named >= 9


def test_the_defaults_of_a_specification_are_those_that_are_read():
    source = 'problems = ["mslr"]\npolicies = ["rucb"]'
    (grid,) = experiments.parse(source, "mine.toml", DOCS).grids
    named = 0
    for key, told, _ in checked_by("test_the_defaults_of_a_specification_are_those_that_are_read"):
        if re.fullmatch(r"[\d,]+", told):
            assert getattr(grid, key.strip("`")) == int(told.replace(",", "")), key
            named += 1
    assert named == 5


def test_what_each_policy_assumes_is_in_its_recipe():
    known = {"1000": 1000, "none": None}
    windows = {}
    for names, _, window, _ in checked_by("test_what_each_policy_assumes_is_in_its_recipe"):
        if (told := re.split("[ :]", window)[0]) in known:
            windows |= dict.fromkeys(re.findall(r"`(\w+)`", names), known[told])
    assert set(windows) == {"RUCBDelay", "RRDBDelay", "MRRDBDelay"}
    assert {name: getattr(duelay, name)().window for name in windows} == windows


def test_the_limits_of_the_service_are_those_that_it_has():
    has = {
        "bytes of a body": middleware.LARGEST,
        "arms": models.MOST_ARMS,
        "characters of a name, an arm or a unit": LONGEST_WORD,
        "characters of an `Idempotency-Key`": LONGEST_WORD - len("#100"),
        "duels of one ask, `count`": models.MOST_DUELS,
        "answers of one call": models.MOST_ANSWERS,
        "rows of one page of the log": routes._MAX_ROWS_PER_ANSWER,
    }
    rows = checked_by("test_the_limits_of_the_service_are_those_that_it_has")
    assert {what: int(most.replace(",", "")) for what, most in rows} == has


def test_a_block_is_written_wherever_it_stands(tmp_path):
    (tmp_path / "docs").mkdir()
    mark = "<!-- one, made by: nobody -->\nold\n<!-- end -->"
    other = "<!-- two, made by: nobody -->\nold\n<!-- end -->"
    (tmp_path / "README.md").write_text(f"before\n\n{mark}\n\nafter\n{other}\n")
    (tmp_path / "docs" / "a.md").write_text(mark)
    parts = [pages.text("words"), pages.table(["x", ""], [["1", "2"], ["3", "ä|"]], "head")]
    pages.keep("one", "make one", parts, tmp_path)
    body = "words\n\n*head*\n\n| x |  |\n| --- | --- |\n| 1 | 2 |\n| 3 | ä| |"
    made = f"<!-- one, made by: make one -->\n\n{body}\n\n<!-- end -->"
    assert (tmp_path / "README.md").read_text() == f"before\n\n{made}\n\nafter\n{other}\n"
    assert (tmp_path / "docs" / "a.md").read_text() == made
    assert pages.kept("one", tmp_path) == {"made by": "make one", "parts": parts}
    with pytest.raises(SystemExit, match="no page has a place for three"):
        pages.keep("three", "make three", parts, tmp_path)


def test_what_simulate_prints_is_read_as_one_table():
    printed = (
        "six-rankers: 6 arms, winner A\ndelay constant:1, 50 duels a run, runs: 2, seed 0\n\n"
        "policy         regret  ± sd  led by winner  µs a duel\n"
        "------------  -------  ----  -------------  ---------\n"
        "rucb:alpha=1  1,234.5   6.7           50 %       0.12\n"
    )
    (part,) = quick_numbers.printed_tables(printed)
    assert part["columns"] == ["policy", "regret", "± sd", "led by winner"]
    assert part["rows"] == [["`rucb:alpha=1`", "1,234.5", "6.7", "50 %"]]
    (part,) = quick_numbers.printed_tables(printed + printed.replace("six-rankers", "mslr"))
    assert part["columns"][0] == "dataset" and [row[0] for row in part["rows"]] == [
        "six-rankers",
        "mslr",
    ]


BENCHMARKS = {path.stem for path in (pages.ROOT / "benchmarks").glob("*.py")}


@pytest.mark.parametrize(
    "name", sorted(BENCHMARKS - {"__main__", "mutants"})
)  # which needs cosmic-ray
def test_every_benchmark_can_be_imported(name):
    importlib.import_module(name)
