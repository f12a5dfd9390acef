import re
import subprocess
import sys

import pytest

from duelay import cli
from duelay.cli import simulate as simulate_cli
from duelay.experiments.spec_parser import BUILT_IN


def duelay_command(*arguments, capsys=None):
    """Run the command in this process; return status, standard output and standard error."""
    sys.argv = ["duelay", *map(str, arguments)]
    try:
        cli.run()
        status = 0
    except SystemExit as stop:
        status = stop.code or 0
    shown = capsys.readouterr()
    return status, shown.out, shown.err


@pytest.fixture
def command(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", sys.argv)
    import warnings

    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        yield lambda *arguments: duelay_command(*arguments, capsys=capsys)


@pytest.mark.long
def test_simulate_prints_a_table_and_writes_a_figure_and_a_csv(command, tmp_path):
    out = tmp_path / "new" / "folder"
    status, shown, complaints = command(
        "simulate", "--dataset", "six-rankers", "--policy", "rucb-delay",
        "--policy", "mrr-db-delay", "--delay", "geometric:0.5", "--horizon", 2000, "--runs", 2,
        "--out", out,
    )  # fmt: skip
    assert status == 0
    assert "six-rankers: 6 arms, winner A" in shown
    for word in ("regret", "± sd", "led by winner", "µs a duel", "rucb-delay "):
        assert word in shown
    # They were told the true law and its mean, which need not be said again.
    assert "mrr-db-delay " in shown
    assert "mean_delay=2,horizon=2000" in (out / "regret.csv").read_text()
    assert sorted(path.name for path in out.iterdir()) == [
        "regret.csv",
        "regret.png",
        "regret.svg",
    ]
    assert (out / "regret.png").read_bytes().startswith(b"\x89PNG")
    assert len((out / "regret.csv").read_text().splitlines()) == 1 + 2 * 2 * 200
    assert complaints == ""


def test_simulate_takes_a_csv_of_ones_own(command, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("old,new\n0.5,0.4\n0.6,0.5\n")
    status, shown, _ = command("simulate", "--dataset", path, "--policy", "rucb", "--horizon", 50)
    assert status == 0 and "mine: 2 arms, winner new" in shown


def test_a_law_by_pair_lends_its_largest_mean(command):
    law = "by-pair:constant:1/constant:5/constant:2/constant:1"
    status, shown, _ = command(
        "simulate", "--dataset", "mslr", "--policy", "mrr-db-delay:schedule=2/3", "--delay",
        "by-pair:" + "/".join(["constant:1"] * 24 + ["constant:5"]), "--horizon", 50,
    )  # fmt: skip
    assert status == 0 and "mrr-db-delay:schedule=2/3 " in shown  # mean_delay=5 is the law's own
    status, _, complaints = command("simulate", "--dataset", "mslr", "--policy", "rucb",
                                    "--delay", law)  # fmt: skip
    assert status == 2 and "delay must have laws for 5 arms, got them for 2" in complaints


def test_a_short_horizon_is_a_warning_that_says_how_long_the_round_is(command):
    status, _, complaints = command(
        "simulate", "--dataset", "mslr", "--policy", "mrr-db-delay", "--horizon", 500, "--runs", 1
    )
    assert status == 0
    (only,) = complaints.splitlines()
    assert only.startswith("duelay: warning: horizon 500 is too short")
    assert "takes 7020 ticks (702 duels for each of 10 pairs)" in only


def test_a_law_whose_mean_no_float_can_say_is_no_trouble(command):
    arguments = ("--delay", "log-normal:1,1e200", "--runs", 1)
    status, shown, _ = command(*SIMULATE, *arguments)
    assert status == 0 and "rucb " in shown and " - " in shown  # no spread of one run


def test_lists(command):
    for what, words in (
        ("datasets", ("tennis", "Pete Sampras", "0.070")),
        (
            "policies",
            ("rucb-delay:delay=geometric:0.01,window=1000,alpha=1,order=champion", "mrr-db-delay"),
        ),
        ("delays", ("geometric:p", "never:share,law", "zipf:exponent,cutoff")),
        ("traffic", ("bursts:size,every,apart=10ms", "daily:every,swing=0.9", "poisson:every")),
    ):
        status, shown, _ = command(what)
        assert status == 0
        for word in words:
            assert word in shown


SIMULATE = ["simulate", "--dataset", "mslr", "--policy", "rucb", "--horizon", "10"]


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([*SIMULATE[:2], "msl", *SIMULATE[3:]], "unknown problem 'msl' (did you mean mslr?)"),
        ([*SIMULATE[:4], "rucbb"], "unknown policy 'rucbb' (did you mean rucb?)"),
        ([*SIMULATE, "--delay", "geometrik:0.1"], "(did you mean geometric?); there are:"),
        ([*SIMULATE, "--delay", "geometric:0"], "p must be greater than 0 and at most 1, got 0"),
        ([*SIMULATE, "--policy", "rucb:alpha=0.5"], "alpha must be greater than 0.5"),
        ([*SIMULATE, "--policy", "rucb-delay:window=0"], "window must be None"),
        ([*SIMULATE, "--horizon", "0"], "horizon must be a whole number of at least 1, got 0"),
        ([*SIMULATE, "--horizon", "x"], "--horizon must be a whole number of at least 1, got 'x'"),
        ([*SIMULATE[:2], "none.csv", *SIMULATE[3:]], "cannot read a matrix from none.csv"),
        ([*SIMULATE, "--colour"], "duelay: no such option"),
        ([*SIMULATE, "--horizon", "9" * 20], "horizon must be at most 2^53"),
        ([*SIMULATE, "--delay", "by-pair:geometric:0.1"], "laws must be K×K"),
        ([*SIMULATE, "--delay", "by-pair:3"], "laws must be K×K"),
        ([*SIMULATE, "--delay", "negative-binomial:1e308,1e-10"], "r and p must give a table"),
        (
            [*SIMULATE, "--policy", "rucb-delay:delay=never:0.3,geometric:0.01"],
            "within another form a law with a comma needs brackets, (never:0.3,...)",
        ),
        (["simulate"], "duelay: missing option '--dataset'"),
        (["simulat"], "duelay: no such command 'simulat'"),
        (
            [*SIMULATE, "--policy", "mrr-db-delay", "--delay", "never:0.5,constant"],
            "mean_delay must be a finite number at least 1 (the law's mean), got inf",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(command, arguments, message):
    status, shown, complaints = command(*arguments)
    assert status == 2 and shown == ""
    assert message in complaints
    assert "Traceback" not in complaints


def test_a_folder_that_cannot_be_made_is_said_before_the_work(command, tmp_path):
    (tmp_path / "file").write_text("in the way")
    status, _, complaints = command(*SIMULATE, "--out", tmp_path / "file" / "below")
    assert status == 2 and complaints.startswith("duelay: --out cannot be made a folder")


def test_a_disk_that_fills_up_is_status_1(command, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(simulate_cli, "write_csv", full)
    status, _, complaints = command(*SIMULATE, "--out", tmp_path)
    assert status == 1 and "No space left on device" in complaints


def test_ctrl_c_is_status_130(command, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(simulate_cli, "simulate", interrupted)
    status, _, complaints = command(*SIMULATE)
    assert status == 130 and complaints.strip() == "duelay: stopped"


def test_the_help_of_run_names_every_study(command):
    words = command("run", "--help")[1]
    named = words.partition("Studies:")[2].partition(".")[0].replace(",", " ").split()
    assert named == sorted(BUILT_IN)


def test_help_and_version(command):
    assert command("--version")[1].startswith("duelay, version ")
    status, shown, _ = command("simulate", "--help")
    assert status == 0 and "--policy" in shown and "geometric:0.01" in shown


@pytest.mark.long
def test_the_command_is_installed_and_answers():
    out = subprocess.run(
        [sys.executable, "-m", "duelay", "datasets"], capture_output=True, text=True, check=True
    )
    assert "six-rankers" in out.stdout


@pytest.mark.long
@pytest.mark.parametrize(
    "missing, arguments, message",
    [
        ("click", ["datasets"], "the command line needs click: pip install 'duelay[cli,plots]'"),
        ("matplotlib", [*SIMULATE, "--out", "x"], "pip install 'duelay[plots]'"),
        (
            "pyarrow",
            ["reproduce"],
            "experiments need pyarrow: install it with pip install 'duelay[",
        ),
        (
            "joblib",
            ["reproduce"],
            "experiments need joblib: install it with pip install 'duelay[ex",
        ),
    ],
)
def test_a_missing_extra_is_named(missing, arguments, message, tmp_path):
    code = (
        f"import sys; sys.modules[{missing!r}] = None; sys.modules['{missing}.figure'] = None;"
        f"sys.argv = ['duelay', *{arguments!r}];"
        "from duelay.__main__ import main; main()"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert out.returncode == 2, out.stderr
    assert message in out.stderr and "Traceback" not in out.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_experiments_without_their_extra_say_what_to_install():
    code = """
import sys
names = ("filelock", "joblib", "markdown", "matplotlib", "pyarrow")
for hidden in (*((name,) for name in names), names):
    for name in hidden:
        sys.modules[name] = None
    try:
        from duelay import experiments
    except ModuleNotFoundError as error:
        print(error.name, error, sep=": ")
    for name in hidden:
        del sys.modules[name]
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *each, together = out.stdout.splitlines()
    assert [line.partition(":")[0] for line in each] == [
        "filelock", "joblib", "markdown", "matplotlib", "pyarrow",
    ]  # fmt: skip
    assert each[1] == (
        "joblib: experiments need joblib: install it with pip install 'duelay[experiments]'"
    )
    assert together.endswith(
        "experiments need filelock, joblib, markdown, matplotlib, pyarrow: install them with pip "
        "install 'duelay[experiments]'"
    )


@pytest.mark.long
def test_importing_the_library_loads_neither_plots_nor_the_command_line():
    code = (
        "import sys, duelay;"
        "print([name for name in ('matplotlib', 'click') if name in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_recommend_says_what_to_use_and_why(command):
    _, shown, _ = command("recommend")
    assert shown.startswith("double-thompson:delay=learn\n")
    assert "delay law" in shown and 'duelay.policies.parse("double-thompson:delay=learn")' in shown
    counted = command("recommend", "--feedback", "counts", "--mean-delay", 50)[1]
    assert "mrr-db-delay:mean_delay=50" in counted
    assert "geometric:0.1" in command("recommend", "--delay", "geometric:0.1")[1]
    assert "order=champion" in command("recommend", "--order-given")[1]


@pytest.mark.long
def test_simulate_may_stop_when_a_winner_is_declared(command, tmp_path):
    asked = ("simulate", "--dataset", "leader:3,9", "--policy", "decide", "--delay",
             "geometric:0.5", "--horizon", 3000, "--runs", 2)  # fmt: skip
    status, shown, complaints = command(*asked, "--stop", "0.05", "--out", tmp_path)
    assert (status, complaints) == (0, "")
    for word in ("duels", "winner", "undecided", "false", "100 %", "0 %", "stop=0.05"):
        assert word in shown
    assert len((tmp_path / "stops.csv").read_text().splitlines()) == 3
    assert "evidence" in (tmp_path / "evidence.csv").read_text().splitlines()[0]
    assert "share of runs that have ended with a verdict" in (tmp_path / "stops.svg").read_text()
    assert "wrote stops.csv, stops.png, stops.svg, evidence.csv, regret.csv" in shown
    written = {path.name for path in tmp_path.iterdir() if path.is_file()}
    assert written == set(re.findall(r"\w+\.(?:csv|png|svg)", shown.rpartition("wrote")[2]))
    nobody = command("simulate", "--dataset", "cyclic:3,0.1", "--policy", "decide", "--delay",
                     "constant:1", "--horizon", 50, "--runs", 2, "--stop", "0.05",
                     "--out", tmp_path / "nobody")  # fmt: skip
    assert nobody[0] == 0 and (tmp_path / "nobody" / "stops.svg").exists()
    one = command("simulate", "--dataset", "cyclic:3,0.1", "--policy", "decide:margin=0.01",
                  "--horizon", 200, "--runs", 1, "--stop", "0.05")[1]  # fmt: skip
    assert "equivalent" in one and "undecided" in one and "any-time p-value of" in one
    status, _, complaints = command(*asked, "--stop", "0.1")
    assert status == 2 and "error, 0.05 of decide, got 0.1: take decide:error=0.1" in complaints


def test_recommend_has_a_goal(command):
    shown = command("recommend", "--goal", "decide", "--margin", "0.05")[1]
    assert shown.startswith("decide:margin=0.05\n")
    status, _, complaints = command("recommend", "--margin", "0.05")
    assert status == 2 and "--margin requires --goal decide" in complaints
    _, shown, _ = command("recommend", "--goal", "decide")
    assert shown.startswith("decide\n") and "however often you look" in shown
    assert command("recommend", "--goal", "decide", "--error", "0.01")[1].startswith(
        "decide:error=0.01"
    )
    status, _, complaints = command("recommend", "--error", "0.01")
    assert status == 2 and "--error requires --goal decide" in complaints


def test_policies_are_simulated_as_traffic_brings_their_duels(command):
    asked = ["simulate", "--dataset", "mslr", "--policy", "double-thompson", "--horizon", "30",
             "--runs", "2", "--delay", "exponential:1m", "--quiet"]  # fmt: skip
    status, shown, _ = command(*asked, "--traffic", "bursts:10,1h")
    assert status == 0 and "seed 0, traffic=bursts:10,1h,10ms\n" in shown
    status, shown, _ = command(*asked, "--traffic", "poisson:10s", "--in-ticks")
    assert status == 0 and "traffic=poisson:10s, by_clock=False" in shown
    status, _, complaint = command(*asked, "--in-ticks")
    assert status == 2 and complaint.startswith("duelay: --in-ticks needs --traffic")
    status, _, complaint = command(*asked, "--traffic", "steady:10s", "--batch", "2")
    assert status == 2 and complaint.startswith("duelay: --batch does not fit traffic")


def test_with_traffic_the_time_until_a_winner_is_declared_is_told_in_days(command):
    asked = ["simulate", "--dataset", "leader:3,9", "--policy", "decide", "--horizon", "400",
             "--runs", "2", "--delay", "exponential:1m", "--quiet", "--stop", "0.05"]  # fmt: skip
    _, shown, _ = command(*asked, "--traffic", "steady:6h")
    head, _, row = shown.splitlines()[3:6]
    assert head.split() == ["policy", "duels", "±", "sd", "days", "winner", "undecided", "false",
                            "µs", "a", "duel"]  # fmt: skip
    cells = row.split()
    assert cells[4:6] == ["100", "%"]
    assert float(cells[3]) == pytest.approx((float(cells[1]) - 1) / 4, abs=0.2)


@pytest.mark.parametrize(
    "more, words",
    [
        (["--policy", "decide", "--delay", "exponential:2h"],
         "--delay exponential:2h is in time"),
        (["--policy", "decide", "--traffic", "poisson:10s"],
         "--delay geometric:0.01 is in ticks, and traffic is in time"),
        (["--policy", "decide:window=14d"], "--policy decide:window=14d: window 14d is in time"),
        (["--policy", "double-thompson:delay=exponential:2h"],
         "--policy double-thompson:delay=exponential:2h: delay exponential:2h is in time"),
        (["--policy", "decide:window=9", "--traffic", "poisson:1s", "--delay", "exponential:2h"],
         "--policy decide:window=9: window 9 is in ticks"),
        (["--policy", "mrr-db-delay", "--traffic", "poisson:1s", "--delay", "exponential:2h"],
         "--traffic does not fit mrr-db-delay"),
        (["--policy", "double-thompson:delay=learn-from-self-duels", "--traffic", "poisson:1s",
          "--delay", "exponential:2h"], "learn-from-self-duels: delay"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_unit_of_time_is_said_in_options(command, more, words):
    status, _, complaint = command("simulate", "--dataset", "mslr", "--horizon", "9", *more)
    assert status == 2 and words in complaint
