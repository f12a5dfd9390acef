"""The commands of `python -m benchmarks`: what each writes, and how long it takes."""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    """Scripts that are run one after the other, by their paths in the repository."""

    scripts: tuple[str, ...]  # each with the arguments that it always gets
    writes: str
    takes: str  # on two cores
    env: dict[str, str] = {}


SLOW_TESTS = "-m pytest -q -n 2 -m slow tests"
COMMANDS = {
    "numbers": Command(
        ("benchmarks/quick_numbers.py",),
        "tables that take seconds; NAME ... makes some of them",
        "2 minutes",
    ),
    "regrets": Command(
        (SLOW_TESTS, "benchmarks/recommended.py"),
        "regret of recommend(), in choosing.md, after the slow tests of regret",
        "10 minutes",
    ),
    "studies": Command(
        ("benchmarks/studies.py",),
        "tables and figures of studies.md, results in studies/; NAME ... runs some of them",
        "1 hour",
    ),
    "scaling": Command(
        ("benchmarks/scaling.py",), "5 to 1000 arms, in studies.md, results in scaling/", "1 hour"
    ),
    "decide": Command(
        ("benchmarks/decide.py",),
        "duels until a winner is declared and error rates, in studies.md",
        "15 minutes",
    ),
    "abtest": Command(
        ("benchmarks/abtest.py",),
        "visitors and false winners of A/B tests, in howto/ab-test.md",
        "15 minutes",
    ),
    "margin": Command(
        ("benchmarks/margin.py",),
        "duels until arms are found alike, in howto/stopping.md, and false verdicts, in studies.md",
        "15 minutes",
    ),
    "attacks": Command(
        ("benchmarks/attacks.py",),
        "attacks on the guarantee, in studies.md, results in attacks/; NAME ... makes some tables",
        "1 hour",
    ),
    "turns": Command(
        ("benchmarks/coin_or_turns.py",), "order by coin or in turns, in choosing.md", "30 minutes"
    ),
    "tried": Command(
        ("benchmarks/tried.py", "benchmarks/tenth.py"),
        "candidates for recommend(), in choosing.md, results in tenth/",
        "hours",
    ),
    "reproduction": Command(
        ("benchmarks/reproduction.py paper",),
        "the paper's evaluation, in reproduction/, results in paper/",
        "2 minutes",
    ),
    "levels": Command(
        ("benchmarks/levels.py",), "false alarm rates of the tests, in assumptions.md", "1 minute"
    ),
    "alarms": Command(
        ("benchmarks/alarms.py",),
        "false alarms of standings and the faults that they name, in assumptions.md",
        "20 minutes",
    ),
    "forecast": Command(
        ("benchmarks/forecast.py",),
        "how often duels_left contains the true number, in howto/stopping.md",
        "5 minutes",
    ),
    "noon": Command(
        ("benchmarks/noon.py",), "bursts of traffic at noon, in howto/clock.md", "5 minutes"
    ),
    "logs": Command(
        ("benchmarks/logs.py --write",),
        "coverage of intervals from logs, in howto/log.md",
        "15 minutes",
    ),
    "bench": Command(
        (
            "benchmarks/duel_cost.py --peers --write",
            "benchmarks/starts.py --write",
            "benchmarks/whole.py --write",
        ),
        "time of a duel, of a first answer, and of the tests, in benchmarks.md",
        "30 minutes",
    ),
    "live": Command(
        ("benchmarks/live_store.py --write",),
        "speed and false winners of live experiments, in benchmarks.md",
        "15 minutes",
    ),
    "load": Command(
        ("benchmarks/load.py --write",),
        "requests per second of the service, in benchmarks.md",
        "2 minutes",
    ),
    "page": Command(
        ("benchmarks/page_cost.py --write",),
        "the page of a million duels in a browser, in benchmarks.md",
        "2 minutes",
    ),
    "list": Command(
        ("benchmarks/list_cost.py --write",),
        "the list of many experiments, in howto/service.md",
        "2 minutes",
    ),
    "pictures": Command(
        ("docs/pictures/make.py",), "figures of the README and of concepts.md", "5 minutes"
    ),
    "tutorial": Command(
        ("-m pytest -q tests/page/test_tutorial.py",),
        "screenshots of the tutorial, with a browser",
        "1 minute",
        {"NUMBA_DISABLE_JIT": "1", "DUELAY_TUTORIAL": "docs/tutorials"},
    ),
    "golden": Command(
        ("tests/simulation/test_golden.py",),
        "the first duels of each policy: tests/simulation/duels.json",
        "5 minutes",
    ),
    "mutants": Command(
        ("benchmarks/mutants.py",),
        "nothing; prints changes to MODULE ... that no test notices (needs the extra mutants)",
        "minutes",
    ),
}
