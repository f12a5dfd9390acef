"""Compiled policies of one's own; the worked example of the documentation is one."""

import importlib.util
import math
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

import duelay
from duelay import experiments, text
from duelay.experiments.cells import cells_of, compute
from duelay.policies import user_rule_errors
from duelay.policies.user_rule_errors import refuse
from duelay.rules import select
from duelay.testing import PolicyContract, compiled_duels, live_duels
from helpers import calls, with_its_checks

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "examples" / "relative_confidence.py"
PAGE = ROOT / "docs" / "howto" / "own-policy.md"
SPEC = """
import = ["relative_confidence"]
problems = ["mslr"]
policies = ["plain-relative-confidence", "relative-confidence", "relative-confidence:alpha=1"]
delays = ["geometric:0.1"]
horizon = 60
runs = 4
block = 2
checkpoints = 3
"""


def bring_in():
    """The example, by its name; the names that it gives to text are taken back."""
    before = {kind: dict(names) for kind, names in text._KINDS.items()}
    spec = importlib.util.spec_from_file_location(FILE.stem, FILE)
    module = sys.modules[FILE.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for kind, names in before.items():
        text._KINDS[kind].clear()
        text._KINDS[kind].update(names)
    return module


example = bring_in()


def test_the_page_shows_the_example_as_it_is():
    (shown,) = re.findall(
        rf"<!-- docs/examples/{FILE.name} -->\n```python\n(.*?)```\n", PAGE.read_text(), re.DOTALL
    )
    assert shown == FILE.read_text()


@with_its_checks
class TestCompiled(PolicyContract):
    policy = example.RelativeConfidence()


@with_its_checks
class TestPlain(PolicyContract):
    policy = example.PlainRelativeConfidence()


@pytest.mark.long
@pytest.mark.interpreted
@pytest.mark.parametrize(
    "knobs, told",
    [({}, "constant:1"), ({}, "never:0.3,geometric:0.05"), ({"window": 20}, "geometric:0.05"),
     ({"order": "champion", "delay": "geometric:0.05", "window": 30, "alpha": 1.0},
      "geometric:0.05"), ({"delay": "learn", "window": 30}, "uniform:1,20")],
)  # fmt: skip
def test_plain_and_compiled_give_the_same_duels(knobs, told):
    problem = duelay.datasets.load("six-rankers")
    told = duelay.delays.parse(told)
    there = live_duels(example.PlainRelativeConfidence(**knobs), problem, told, 300, seed=4)
    assert compiled_duels(example.RelativeConfidence(**knobs), problem, told, 300, seed=4) == there


@pytest.mark.long
@pytest.mark.interpreted
def test_the_example_finds_the_winner():
    problem = duelay.problems.bradley_terry([5.0, 1.0, 3.0, 2.0])
    result = duelay.simulate(
        problem, example.RelativeConfidence(), delay="geometric:0.1", horizon=3000, runs=4
    )
    assert (result.leader == problem.winner).all()
    with pytest.raises(ValueError, match="alpha"):
        example.RelativeConfidence(alpha=0.5)


@pytest.mark.compiled
def test_compiled_python_has_nothing_to_do_at_a_duel(monkeypatch):
    problem = duelay.datasets.load("six-rankers")
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)  # of which the length of slices depends

    def per_duel(policy, most):
        told = {"delay": "geometric:0.01", "workers": 1}
        duelay.simulate(problem, policy, horizon=3000, **told)  # it is compiled here
        few, many = (
            calls(lambda n=n: duelay.simulate(problem, policy, horizon=n, **told))
            for n in (3000, most)
        )
        return (many - few) / (most - 3000)

    assert per_duel(example.PlainRelativeConfidence(), 4000) > 10
    assert per_duel(example.RelativeConfidence(), 60_000) < 0.1


# In specifications, wherever the work is done.


@pytest.fixture
def spec(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, FILE.stem)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setitem(text._KINDS, "policy", dict(text._KINDS["policy"]))
    (tmp_path / FILE.name).write_text(FILE.read_text())
    yield experiments.parse(SPEC, "small.toml", tmp_path)


@pytest.mark.long
@pytest.mark.interpreted
@pytest.mark.parametrize("backend", ["threads", "processes"])
def test_the_example_reaches_the_workers(spec, tmp_path, backend):
    from duelay.experiments import execution

    with execution.opened(tmp_path / "out", spec) as place:
        execution.execute(spec, place, workers=2, backend=backend, quiet=True)
    results = experiments.load(spec, tmp_path / "out")
    plain, compiled = (
        results.get("small", "mslr", name).regret
        for name in ("plain-relative-confidence", "relative-confidence")
    )
    assert plain.shape == (4, 3) and np.array_equal(plain, compiled)


RECEIVE = """
import pickle, sys
cell = pickle.load(open(sys.argv[1], "rb"))
from duelay.experiments.cells import compute
print(compute(cell)["regret"].tolist())
"""


@pytest.mark.long
@pytest.mark.interpreted
def test_a_cell_brings_its_rule_along(spec, tmp_path):
    """As to a worker on another machine, which does not have the module."""
    import pickle

    cell = cells_of(spec)[2]
    (tmp_path / "cell").write_bytes(pickle.dumps(cell))
    away = tmp_path / "away"
    away.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", RECEIVE, str(tmp_path / "cell")],
        cwd=away, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout.strip() == str(compute(cell)["regret"].tolist()), done.stderr


# What cannot be compiled is one sentence.


class Unregistered(NamedTuple):
    n_arms: int


class Allocates(NamedTuple):
    n_arms: int


@select.register(Allocates)
def allocate(rule, ledger, t, rng):
    return np.zeros(rule.n_arms, dtype=np.int64)[0], 1  # (made)


class AllocatesWithin(NamedTuple):
    n_arms: int


@duelay.rules.kernel
def first_of(n):
    return np.zeros(n, dtype=np.int64)[0]  # (made within)


@select.register(AllocatesWithin)
def allocate_within(rule, ledger, t, rng):
    return first_of(rule.n_arms), 1


class Lists(NamedTuple):
    n_arms: int


@select.register(Lists)
def list_arms(rule, ledger, t, rng):
    arms = [arm + 1 for arm in range(rule.n_arms)]  # (listed)
    return arms[0], 0


class Adds(NamedTuple):
    scores: Any


@select.register(Adds)
def add(rule, ledger, t, rng):
    return (rule.scores + 1).argmax(), 1  # (added)


class Counts(NamedTuple):
    n_arms: int


@select.register(Counts)
def count(rule, ledger, t, rng):
    rule.n_arms += 1
    return 0, 1


@dataclass(frozen=True)
class Of(duelay.CompiledPolicy):
    make: object

    def rule(self, n_arms):
        return self.make(n_arms)


def test_a_rule_without_a_function_is_named():
    problem = duelay.datasets.load("mslr")
    for make, message in (
        (Unregistered, "Unregistered.*select"),
        (float, r"rule\(\) .*NamedTuple.* got a float$"),
        (lambda n_arms: (n_arms, 1), r"rule\(\) .*NamedTuple.* got a tuple$"),
    ):
        with pytest.raises(TypeError, match=message):
            Of(make).start(3, seed=0).ask()
        with pytest.raises(TypeError, match=message):
            duelay.simulate(problem, Of(make), delay="constant:1", horizon=5)


def test_a_file_of_ones_own_in_a_folder_of_our_name_is_ones_own():
    ours, numbas = (
        Path(user_rule_errors.__file__),
        Path(numba.__file__).parent / "core" / "errors.py",
    )
    words = "".join(f'File "{path}", line 7' for path in ("/home/me/duelay/mine.py", ours, numbas))
    assert user_rule_errors._line_in(words) == "mine.py, line 7"


@pytest.mark.compiled
def test_a_rule_that_allocates_is_told_so():
    if not duelay._core.jit.private_numba.WITHOUT_RUNTIME:
        pytest.skip("this Numba lets kernels allocate")
    for make, mark in (
        (Allocates, "made"),
        (AllocatesWithin, "made within"),
        (Lists, "listed"),
        (lambda n_arms: Adds(np.zeros(n_arms)), "added"),
    ):
        message = rf"\(\S+.py, line {line_of(mark)}\): .*array"
        with pytest.raises(TypeError, match=message):
            Of(make).start(3, seed=0).ask()


@pytest.mark.compiled
@pytest.mark.skipif(duelay._core.jit.private_numba.IS_PLAIN, reason="Numba's own words stand")
def test_a_rule_that_changes_a_number_is_told_so():
    for call in (
        lambda policy: policy.start(3, seed=0).ask(),
        lambda policy: duelay.simulate(
            duelay.datasets.load("mslr"), policy, delay="constant:1", horizon=5
        ),
    ):
        with pytest.raises(TypeError, match="Counts .*number"):
            call(Of(Counts))


class Misspelt(NamedTuple):
    n_arms: int


@select.register(Misspelt)
def misspell(rule, ledger, t, rng):
    return leest_asked(ledger), 1  # noqa: F821 (here)


@duelay.rules.kernel
def root(t):
    return math.sqroot(t)


class Rootless(NamedTuple):
    n_arms: int


@select.register(Rootless)
def find_root(rule, ledger, t, rng):
    return int(root(t)), 1  # (found)


class Halves(NamedTuple):
    n_arms: int


@select.register(Halves)
def halve(rule, ledger, t, rng):
    return 0.5 * rule.n_arms, 1  # (halved)


class Draws(NamedTuple):
    n_arms: int


@select.register(Draws)
def draw(rule, ledger, t, rng):
    arm = rng.choice(rule.n_arms)  # (drawn)
    return arm, (arm + 1) % rule.n_arms


class Triples(NamedTuple):
    n_arms: int


@select.register(Triples)
def triple(rule, ledger, t, rng):
    return 0, 1, 2  # (tripled)


class Holds(NamedTuple):
    """Something in a field with a long name; the functions below are of its kinds."""

    candidates: Any


class HoldsWithin(Holds):
    pass


class AsksLedger(Holds):
    pass


class AsksArray(Holds):
    pass


class ReadsAny(Holds):
    pass


class CallsPlain(Holds):
    pass


class Differs(Holds):
    pass


class DiffersWithin(Holds):
    pass


@select.register(Holds)
def hold(rule, ledger, t, rng):
    return rule.candidat[0], 1  # (held)


@duelay.rules.kernel
def held_first(rule):
    n = 0
    return rule.candidats[n]  # (held within)


@select.register(HoldsWithin)
def hold_within(rule, ledger, t, rng):
    arm = held_first(rule)
    return arm, 1


@duelay.rules.kernel
def asked(ledger):
    return ledger.playes[0, 1]  # (ledger)


@select.register(AsksLedger)
def ask_ledger(rule, ledger, t, rng):
    return asked(ledger), 1


@select.register(AsksArray)
def ask_array(rule, ledger, t, rng):
    return rule.candidates.argmaxx(), 1  # (array)


@select.register(ReadsAny)
def read_any(rule, ledger, t, rng):
    return rule.candidates[0], 1  # (read)


def plain(n):
    return n


@select.register(CallsPlain)
def call_plain(rule, ledger, t, rng):
    return plain(0), 1  # (called)


@select.register(Differs)
def differ(rule, ledger, t, rng):
    if t < 3:
        return 0
    return 0, 1  # (two arms)


@duelay.rules.kernel
def unlike(t):
    if t < 3:
        return 0
    return 0, 1  # (pair)


@select.register(DiffersWithin)
def differ_within(rule, ledger, t, rng):
    return unlike(t)


def holding(kind, make=np.zeros):
    return lambda n_arms: kind(make(n_arms))


@pytest.mark.compiled
@pytest.mark.skipif(duelay._core.jit.private_numba.IS_PLAIN, reason="Numba's own words stand")
@pytest.mark.parametrize(
    ("make", "mark", "why"),
    [
        (holding(Holds), "held", "'candidat'"),
        (holding(HoldsWithin), "held within", "'candidats'"),
        (holding(AsksLedger), "ledger", "'playes' of type Ledger"),
        (holding(AsksArray), "array", "'argmaxx' of type array"),
        (
            holding(ReadsAny, lambda n_arms: list(range(n_arms))),
            "read",
            "the rule must be a NamedTuple of numbers and arrays",
        ),
        (holding(CallsPlain), "called", "'plain'.*duelay.rules.kernel"),
        (holding(Differs), "two arms", "return type"),
        (holding(DiffersWithin), "pair", "return type"),
        (Misspelt, "here", "'leest_asked'"),
        (Rootless, "found", "'math' has no attribute 'sqroot'"),
        (Draws, "drawn", "'choice'"),
        (Halves, "halved", "select.* two arms"),
        (Triples, "tripled", "select.* two arms"),
    ],
)
def test_the_line_that_cannot_be_compiled_is_named(make, mark, why):
    name, place = type(make(3)).__name__, str(line_of(mark))
    if why == "return type":
        place = f"({line_of(mark) - 1}|{place})"  # Numba may name either
    message = rf"{name} .*\(\S+\.py, line {place}\): .*{why}"
    with pytest.raises(TypeError, match=message):
        Of(make).start(3, seed=0).ask()
    problem = duelay.datasets.load("mslr")
    with pytest.raises(TypeError, match=message):
        duelay.simulate(problem, Of(make), delay="constant:1", horizon=5)


class Single(NamedTuple):
    n_arms: int


@select.register(Single)
def show_one(rule, ledger, t, rng):
    return 0  # (single)


class Arrays(NamedTuple):
    pair: Any


@select.register(Arrays)
def fill(rule, ledger, t, rng):
    return rule.pair  # (filled)


class Absent(NamedTuple):
    n_arms: int


@select.register(Absent)
def forget(rule, ledger, t, rng):
    rule.n_arms  # noqa: B018 (absent)


class Few(NamedTuple):
    n_arms: int


@select.register(Few)
def take_three(rule, ledger, t):
    return 0, 1  # (few)


class Farther(NamedTuple):
    n_arms: int


@select.register(Farther)
def go_far(rule, ledger, t, rng):
    if t < 3:
        return 0, 1  # (near)
    return 0, 1 + rule.n_arms  # (far)


class Throws(NamedTuple):
    n_arms: int


@select.register(Throws)
def throw(rule, ledger, t, rng):
    raise ValueError("mine")


def ask_thrice(policy):
    player = policy.start(3, seed=0)
    return [player.ask() for _ in range(3)]


def simulate_three(policy):
    problem = duelay.problems.arithmetic(3, 0.1)
    duelay.simulate(problem, policy, delay="constant:1", horizon=5, runs=2)


def line_of(mark):
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return 1 + next(n for n, line in enumerate(lines) if line.endswith(f"({mark})"))


@pytest.mark.long
@pytest.mark.parametrize("do", [ask_thrice, simulate_three])
def test_an_arm_that_is_not_there_is_refused_with_the_rule_and_its_lines(do):
    places = rf"\(test_own_compiled.py, line {line_of('near')} or {line_of('far')}\)"
    message = f"Farther .*{places}: .* from 0 to 2"
    with pytest.raises(ValueError, match=message) as error:
        do(Of(Farther))
    assert "\n" not in str(error.value)


@pytest.mark.compiled
@pytest.mark.skipif(duelay._core.jit.private_numba.IS_PLAIN, reason="Numba's own words stand")
@pytest.mark.parametrize(
    ("make", "mark"),
    [
        (Single, "single"),
        (Absent, "absent"),
        (Few, "few"),
        (lambda n_arms: Arrays(np.zeros(2, dtype=np.int64)), "filled"),
    ],
)
@pytest.mark.parametrize("do", [ask_thrice, simulate_three])
def test_a_rule_that_does_not_choose_two_arms_is_named_with_its_line(do, make, mark):
    name, place = type(make(3)).__name__, line_of(mark)
    with pytest.raises(TypeError, match=rf"{name} .*\(\S+, line {place}\): .*select\(rule, ledger"):
        do(Of(make))


@pytest.mark.compiled
@pytest.mark.skipif(duelay._core.jit.private_numba.IS_PLAIN, reason="Numba's own words stand")
@pytest.mark.parametrize("value", [{0: 1}, {0}, object()])
@pytest.mark.parametrize("do", [ask_thrice, simulate_three])
def test_a_field_that_no_compiler_takes_is_refused(do, value):
    with pytest.raises(TypeError, match="ReadsAny .* NamedTuple of numbers and arrays"):
        do(Of(lambda n_arms: ReadsAny(value)))


class Returns(NamedTuple):
    until: int


@select.register(Returns)
def return_at_first(rule, ledger, t, rng):
    if t < rule.until:
        return 0, 1


@pytest.mark.parametrize("do", [ask_thrice, simulate_three])
def test_a_branch_that_returns_nothing_is_refused_when_it_is_taken(do):
    with pytest.raises(ValueError, match="Returns .*0 to 2$"):
        do(Of(lambda n_arms: Returns(2)))


@pytest.mark.interpreted
@pytest.mark.parametrize("do", [ask_thrice, simulate_three])
@pytest.mark.parametrize(
    ("make", "mark", "what"),
    [
        (Single, "single", "not chosen two arms"),
        (Absent, "absent", "not chosen two arms"),
        (Triples, "tripled", "not chosen two arms"),
        (Halves, "halved", "chosen an arm that is no whole number"),
    ],
)
def test_interpreted_a_pair_that_is_none_is_refused_in_a_sentence(do, make, mark, what):
    place = rf"\(test_own_compiled.py, line {line_of(mark)}\)"
    message = f"{make.__name__} has {what} {place}: .* from 0 to 2"
    with pytest.raises(ValueError, match=message):
        do(Of(make))


@pytest.mark.interpreted
@pytest.mark.parametrize("do", [ask_thrice, simulate_three])
def test_an_error_of_the_rules_own_stays_what_it_is(do):
    with pytest.raises(ValueError, match="^mine$"):
        do(Of(Throws))


def test_an_error_that_is_not_the_compilers_stays_what_it_is():
    for words in (
        "'Ledger' object has no attribute 'missing'",
        "module 'math' has no attribute 'x'",
    ):
        with pytest.raises(AttributeError, match=words):
            refuse(Halves(3), AttributeError(words))


def test_what_is_wrong_is_found_in_coloured_words_too():
    """Where colorama is installed, Numba's words have colours."""
    words = (
        "\x1b[1mUnknown attribute \x1b[1m'arms' of type\x1b[0m Halves(int64 x 1)\x1b[0m\n"
        '\x1b[1mFile "mine.py", line 7:\x1b[0m'
    )
    with pytest.raises(TypeError, match=r"Halves .*\(mine.py, line 7\): Unknown attribute 'arms'"):
        refuse(Halves(3), Exception(words))


def one_pair(second):
    """A rule that always shows arm 0 and another one; each call defines it anew."""

    class OnePairRule(NamedTuple):
        n_arms: int

    @select.register(OnePairRule)
    def choose(rule, ledger, t, rng):
        return 0, second

    @dataclass(frozen=True)
    class OnePair(duelay.CompiledPolicy):
        order: str = "champion"

        def rule(self, n_arms):
            return OnePairRule(n_arms)

    return OnePair()


@pytest.mark.long
def test_a_rule_that_is_defined_again_runs_its_new_code():
    problem = duelay.problems.arithmetic(4, 0.1)
    for second in (1, 3):
        policy = one_pair(second)
        result = duelay.simulate(problem, policy, delay="constant", horizon=40)
        assert result.plays[0, 0, second] == 40
        assert policy.start(4, seed=0).ask() == (0, 0, second)


@pytest.mark.long
@pytest.mark.parametrize("second", [4, -1])
def test_an_arm_that_there_is_not_ends_the_simulation(second):
    problem = duelay.problems.arithmetic(4, 0.1)
    with pytest.raises(ValueError, match="select .*two arms"):
        duelay.simulate(problem, one_pair(second), delay="constant", horizon=40)
    with pytest.raises(ValueError, match="select .*two arms"):
        one_pair(second).start(4, seed=0).ask()
