"""The command line speaks of options, not of Python's arguments, and reads numbers as TOML does."""

import pickle

import click
import pytest

from duelay import cli
from duelay._core import checks
from duelay.cli.common import Command, Whole
from duelay.errors import InvalidValueError

SIMULATE = ["simulate", "--dataset", "mslr", "--policy", "rucb"]
BY_PAIR = "by-pair:" + "/".join(["constant:1"] * 4)


def test_whole_numbers_are_read_as_toml_reads_them(command):
    numbers = ["--horizon", "2e2", "--runs", "2.0", "--seed", "1e0", "--checkpoints", "1_0"]
    more = ["--stale", "0e0", "--batch", "1e0", "--workers", "1e0"]
    status, shown, _ = command(*SIMULATE, *numbers, *more)
    assert status == 0 and "200 duels a run, runs: 2, seed 1\n" in shown
    assert (
        command("recommend", "--window", "1e3", "--arms", "1e1")[1]
        .splitlines()[0]
        .endswith(",window=1000")
    )


def test_every_whole_number_among_the_options_is_read_so():
    for name, of in cli.main.main.commands.items():
        for option in of.params:
            assert not isinstance(option.type, click.types.IntParamType), (name, option.name)


@pytest.mark.parametrize("typed", ["1.5", "x", "0", "-1e5", "nan", "1e400", "", "1e-1"])
def test_what_is_no_whole_number_is_refused_by_the_options_name(command, typed):
    status, _, complaints = command(*SIMULATE, "--horizon", typed)
    assert status == 2
    assert complaints.startswith("duelay: --horizon must be a whole number of at least 1, got ")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["recommend", "--arms", 1], "--arms must be a whole number of at least 2, got 1"),
        (["recommend", "--window", 0], "--window must be a whole number of at least 1, got 0"),
        (["recommend", "--delay", BY_PAIR, "--arms", 3], "--delay must have laws for 3 arms"),
        (
            ["recommend", "--feedback", "counts"],
            "--feedback counts needs --mean-delay, or --delay for the law",
        ),
        (
            ["recommend", "--feedback", "counts", "--mean-delay", 5, "--window", 7],
            "--window does not fit feedback 'counts'",
        ),
        (
            ["recommend", "--feedback", "counts", "--mean-delay", 5, "--target", "borda"],
            "--target 'borda' does not fit feedback 'counts'",
        ),
        (["recommend", "--mean-delay", 0.5], "--mean-delay must be at least 1, got 0.5"),
        (
            ["recommend", "--mean-delay", 5, "--delay", "constant:5"],
            "--mean-delay is for an unknown law",
        ),
        ([*SIMULATE, "--seed", -1], "--seed must be a whole number of at least 0, got -1"),
        ([*SIMULATE, "--delay", BY_PAIR], "--delay must have laws for 5 arms, got them for 2"),
        (
            ["simulate", "--dataset", "no-winner:5,1", "--policy", "rucb"],
            "the targets copeland and borda measure it against another (see --target)",
        ),
        (
            ["simulate", "--dataset", "arithmetic:1,0.1", "--policy", "rucb"],
            "problem 'arithmetic:1,0.1': K must be a whole number of at least 2",
        ),
        (
            ["simulate", "--dataset", "arithmetic:3", "--policy", "rucb"],
            "problem 'arithmetic:3' must be written arithmetic:K,step",
        ),
        (
            [*SIMULATE[:3], "--policy", "mrr-db-delay:feedback=counts", "--feedback", "votes"],
            "--feedback must be conversions for a policy that hears counts, got 'votes'",
        ),
        (
            [*SIMULATE, "--feedback", "corrected-votes"],
            "--feedback 'corrected-votes' is now written 'votes'",
        ),
        (
            [*SIMULATE, "--correct-position"],
            "--correct-position needs votes as feedback",
        ),
        (
            [*SIMULATE, "--feedback", "counts"],
            "--feedback must be conversions or votes (these are for a policy that hears no more, "
            "such as mrr-db-delay:feedback=counts), got 'counts'",
        ),
        ([*SIMULATE, "--feedback", "vote"], "--feedback must be one of conversions, votes (did"),
        (
            ["recommend", "--feedback", "aggregated"],
            "--feedback 'aggregated' is now written 'counts'",
        ),
        (["reproduce", "--address", "x"], "--address is for the backends dask and ray"),
        (["check", "duels.csv", "--level", 2], "--level must be greater than 0 and less than 1"),
        (["check", "duels.csv", "--window", 0], "--window must be a whole number of at least 1"),
    ],
)
def test_errors_name_options(command, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "duels.csv").write_text("first,second,delay\na,b,1\n")
    status, shown, complaints = command(*arguments)
    assert status == 2 and shown == ""
    assert message in complaints and "n_arms" not in complaints and "is_" not in complaints


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["check"], "missing argument 'LOG' (duelay check --help tells more)"),
        (["run"], "missing argument 'SPEC' (duelay run --help tells more)"),
        (["simulate"], "missing option '--dataset' (duelay simulate --help tells more)"),
        (["recommend", "more"], "got unexpected extra argument (more) (duelay recommend --help te"),
        (["simulat"], "no such command 'simulat'"),
        ([*SIMULATE, "--horizn", "3"], "no such option"),
        ([*SIMULATE, "--horizon"], "option '--horizon' requires an argument"),
    ],
)
def test_what_click_refuses_is_one_line_of_ours_too(command, arguments, said):
    status, shown, complaints = command(*arguments)
    assert status == 2 and shown == "" and complaints.count("\n") == 1
    assert complaints.startswith(f"duelay: {said}")


def test_a_command_without_anything_shows_its_help(command):
    _, shown, complaints = command()
    assert (shown + complaints).startswith("Usage: duelay [OPTIONS] COMMAND")


@pytest.mark.parametrize(
    "argument, sentence, shown",
    [
        ("delay", "delay must be a law", "--delay must be a law"),
        ("n_arms", "n_arms must be 2", "--arms must be 2"),
        ("window", "window must be 2", "window must be 2"),  # it has no such option
        ("columns", "six: no column x", "six: no column x (see --column ROLE=NAME)"),
        ("delay", "delays are long", "delays are long (see --delay)"),
        (None, "delay must be a law", "delay must be a law"),  # of a column, say
    ],
)
def test_an_error_names_the_option_of_its_argument(argument, sentence, shown):
    def fail(**_):
        raise InvalidValueError(sentence, argument=argument)

    options = [
        click.Option(["--delay"]),
        click.Option(["--arms"]),
        click.Option(["--column", "columns"], metavar="ROLE=NAME"),
    ]
    command = Command("x", params=options, callback=fail)
    with pytest.raises(InvalidValueError) as error:
        command.main([], standalone_mode=False)
    assert str(error.value) == shown and error.value.argument == argument


@pytest.mark.parametrize(
    "fails",
    [
        lambda: checks.whole("runs", 0),
        lambda: checks.number("runs", "x"),
        lambda: checks.one_of("runs", "x", ["y"]),
        lambda: checks.yes_or_no("runs", 2),
        lambda: checks.duration("runs", "x"),
    ],
)
def test_an_error_of_a_check_carries_the_name_of_the_argument(fails):
    with pytest.raises(InvalidValueError) as error:
        fails()
    assert error.value.argument == "runs"
    assert pickle.loads(pickle.dumps(error.value)).argument == "runs"


def test_a_number_is_no_law_and_the_sentence_has_both_ways_to_write_it(command):
    for arguments in ([*SIMULATE, "--delay", "100"], [*SIMULATE, "--delay", "1e2"]):
        status, _, complaints = command(*arguments)
        assert status == 2 and complaints.startswith(
            "duelay: --delay must be a delay law, got the number"
        )
        assert "write geometric:0.01 for a mean of" in complaints
        assert "constant:100 for" in complaints
    status, _, complaints = command("recommend", "--delay", 100)
    assert status == 2 and "write --mean-delay 100 for a mean of 100" in complaints
    assert "--delay constant:100 for 100 every time" in complaints
    status, shown, _ = command("recommend", "--feedback", "counts", "--mean-delay", 100)
    assert status == 0 and shown.startswith("mrr-db-delay:mean_delay=100,feedback=counts\n")


def test_a_whole_number_of_no_option_is_refused_too():
    with pytest.raises(ValueError, match="number must"):
        Whole(3).convert("2", None, None)


def test_sentences_are_broken_between_words_on_a_terminal(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    _, _, complaints = command(*SIMULATE, "--delay", "geometrik:0.1")
    assert max(len(line) for line in complaints.splitlines()) <= 80
    joined = " ".join(complaints.split())
    assert joined.startswith(
        "duelay: unknown law 'geometrik' (did you mean geometric?); there are:"
    )
