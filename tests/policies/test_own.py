"""Policies of somebody's own, in plain Python: in a program, in the shell, in specifications."""

import ast
import copy
import inspect
import pickle
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import duelay
from duelay import cli, experiments, text
from duelay._core import user_modules
from duelay.experiments.cells import cells_of, compute
from duelay.ledger import age_to, assume
from duelay.testing import PolicyContract, contract
from helpers import with_its_checks
from own import MINE, finish, small

# In a program: what `choose` is given, what a policy assumes, who is shown first.


def mean_first(policy, n=400):
    """How often the smaller arm of a pair is shown first."""
    player = policy.start(3, seed=1)
    duels = [player.ask() for _ in range(n)]
    return np.mean([duel.first < duel.second for duel in duels if duel.first != duel.second])


@dataclass(frozen=True)
class Fixed(duelay.Policy):
    order: str | None = None
    delay: object = None
    window: int | None = None

    def choose(self, t):
        return 0, 1 + t % 2


def test_the_order_of_a_plain_policy_is_kept():
    assert mean_first(Fixed()) == mean_first(Fixed("champion")) == 1
    assert mean_first(Fixed("alternate")) == 0.5
    assert 0.4 < mean_first(Fixed("coin")) < 0.6 and mean_first(Fixed("coin")) != 0.5
    assert Fixed("coin").start(3, seed=0).history().order == "coin"
    with pytest.raises(ValueError, match="order must"):
        Fixed("turns").start(3)


def test_the_order_holds_in_the_simulator_too():
    problem = duelay.datasets.load("mslr")
    result = duelay.simulate(problem, Fixed("alternate"), delay="constant:1", horizon=300)
    plays = result.plays[0]
    assert abs(plays - plays.T).max() <= 1 and plays.sum() == 300


@pytest.mark.parametrize("law", ["geometric:0.05", "uniform:3,9", duelay.delays.Constant(5)])
def test_a_plain_policy_assumes_the_law_that_it_says(law):
    player = Fixed(delay=law, window=40).start(3, seed=0)
    for duel in [player.ask() for _ in range(60)][::3]:
        player.tell(duel)
    assert not player.standing().takes_silence_for_defeat
    ledger = copy.deepcopy(player._ledger)
    age_to(ledger, 61)
    ages = np.minimum(61 - np.arange(1, 61), 40)
    heard = np.sum(duelay.delays.check(law).cdf(ages))
    assert np.isclose(np.triu(ledger.estimates().expected).sum(), heard)


@pytest.mark.long
def test_a_plain_policy_learns_the_law():
    policy = Fixed("coin", "learn", 50)
    problem = duelay.Problem([[0.5, 0.7, 0.6], [0.3, 0.5, 0.5], [0.4, 0.5, 0.5]])
    player = policy.start(3, seed=0)
    rng, due = np.random.default_rng(1), {}
    for t in range(1, 6001):
        for duel in due.pop(t, []):
            player.tell(duel)
        duel = player.ask()
        if rng.random() < problem.matrix[duel.first, duel.second]:
            due.setdefault(t + int(rng.geometric(0.1)), []).append(duel)
    there, here = duelay.delays.Geometric(0.1).cdf(10), player.learned_law().cdf(10)
    assert abs(there - here) < 4 * np.sqrt(0.25 / 6000) * 2
    assert duelay.simulate(problem, policy, delay="geometric:0.1", horizon=200).regret.size


def test_a_law_as_text_and_learn_are_taken_by_assume():
    assert type(assume("geometric:0.01", 10, 3)) is type(
        assume(duelay.delays.Geometric(0.01), 10, 3)
    )
    assert type(assume("learn", 10, 3, "coin")) is type(
        duelay.DoubleThompson(delay="learn").ledger(3).assumed
    )
    with pytest.raises(ValueError, match=r"unknown law 'lern'"):
        assume("lern", 10, 3)
    with pytest.raises(ValueError, match="window must"):
        Fixed("coin", "learn", None).start(3)
    with pytest.raises(ValueError, match="order"):
        Fixed("champion", "learn", 50).start(3)
    with pytest.raises(ValueError, match="delay must"):
        Fixed(delay=7).start(3)


@dataclass(frozen=True)
class Remembers(duelay.Policy):
    """Goes through the arms in an order of its own, drawn at its first duel."""

    def state(self, n_arms):
        return {"order": None, "asked": 0}

    def choose(self, rng, state, n_arms, ledger):
        if state["order"] is None:
            state["order"] = rng.permutation(n_arms)
        state["asked"] += 1
        assert state["asked"] == ledger.plays.sum() + 1
        return state["order"][state["asked"] % n_arms], rng.integers(n_arms)


@with_its_checks
class TestRemembers(PolicyContract):
    policy = Remembers()


@with_its_checks
class TestCoin(PolicyContract):
    policy = Fixed("coin", "geometric:0.1", 30)

    def test_duels_are_numbered_pairs_of_arms(self):
        """The contract asks it of two arms, too, and this policy needs three."""
        for arms in (3, 11):
            duels = self._play(self.start(arms=arms), 60)
            assert [duel.id for duel in duels] == list(range(60))
            assert {frozenset(duel[1:]) for duel in duels} == {frozenset({0, 1}), frozenset({0, 2})}


def test_the_contract_notices_a_memory_that_players_share():
    shared = {"asked": 0}

    @dataclass(frozen=True)
    class Shares(duelay.Policy):
        def state(self, n_arms):
            return shared

        def choose(self, state, n_arms):
            state["asked"] += 1
            return state["asked"] % n_arms, 0

    mine = PolicyContract()
    mine.policy = Shares()
    with pytest.raises(AssertionError, match=r"duel 0 is Duel\(id=0"):
        mine.test_players_of_one_policy_do_not_disturb_each_other()


@pytest.mark.parametrize("order", ["coin", "alternate"])
def test_the_contract_notices_an_order_that_is_not_kept(order):
    @dataclass(frozen=True)
    class Claims(Fixed):
        def ledger(self, n_arms):
            return Fixed().ledger(n_arms)

    mine = PolicyContract()
    mine.policy = Claims(order)
    with pytest.raises(AssertionError, match=f"with order='{order}' .* must .*, but"):
        mine.test_the_order_is_as_the_policy_says()


class Faulty:
    """A player whose duels or answers are wrong in one way."""

    def __init__(self, fault, seed):
        self.fault, self.asked = fault, 0
        self.rng = np.random.default_rng(None if fault == "seed" else seed)

    def ask(self):
        self.asked += 1
        number = 0 if self.fault == "id" else self.asked - 1
        return duelay.Duel(number, 9 if self.fault == "arm" else int(self.rng.integers(2)), 1)

    def tell(self, duel):
        return "taken"

    def __copy__(self):
        return self if self.fault == "copy" else copy.deepcopy(self)


class Starts:
    """A policy that is no dataclass, with players that have a fault."""

    window = 5

    def __init__(self, fault):
        self.fault = fault

    def start(self, arms, seed):
        return Faulty(self.fault, seed)


@pytest.mark.parametrize(
    "fault, test, message",
    [
        ("", "a_policy_is_a_recipe_that_prints_and_hashes", "dataclass"),
        ("id", "duels_are_numbered_pairs_of_arms", r"ids .* got \[0, 0"),
        ("arm", "duels_are_numbered_pairs_of_arms", r"from 0 to 1, got Duel\(id=0, first=9"),
        (
            "seed",
            "the_same_seed_gives_the_same_duels",
            "same seed .*; duel . is Duel",
        ),
        (
            "",
            "a_conversion_told_twice_counts_once",
            "tell .*'counted' .*got 'taken'",
        ),
        (
            "",
            "a_late_conversion_is_not_counted",
            "tell .*'counted'",
        ),
        ("id", "a_player_never_told_anything_goes_on", "told nothing"),
        ("", "an_unknown_duel_raises", "tell .*LookupError .* 1"),
        ("copy", "a_player_pickles_and_copies_and_goes_on_alike", "copy"),
    ],
)
def test_a_failure_of_the_contract_says_what_a_policy_must_do(fault, test, message):
    mine = PolicyContract()
    mine.policy = Starts(fault)
    with pytest.raises(AssertionError, match=message):
        getattr(mine, f"test_{test}")()


@dataclass
class Loose(duelay.Policy):
    """A dataclass that is not frozen."""

    rival: int = 0

    def choose(self, n_arms):
        return n_arms - 1, self.rival


def test_a_policy_that_is_not_frozen_is_refused_at_the_front_door():
    problem = duelay.problems.arithmetic(3, 0.1)
    message = r"^policy .*frozen.* Loose$"
    with pytest.raises(ValueError, match=message):
        Loose().start(3)
    compiled = dataclass(type("Loose", (duelay.CompiledPolicy,), {"rule": None}))()
    for policy in (Loose(), compiled):
        with pytest.raises(ValueError, match=message):
            duelay.simulate(problem, policy, delay="constant:1", horizon=5)
    mine = PolicyContract()
    mine.policy = Loose()
    with pytest.raises(AssertionError, match=r"dataclass\(frozen=True\)"):
        mine.test_a_policy_is_a_recipe_that_prints_and_hashes()


def test_what_is_no_policy_of_ours_need_not_be_frozen():
    @dataclass
    class Lends:
        rival: int = 0

        def start(self, arms, seed):
            return Fixed().start(arms, seed)

    class Plain(duelay.Policy):
        def choose(self):
            return 0, 1

    problem = duelay.problems.arithmetic(3, 0.1)
    for policy in (Lends(), Plain()):
        duelay.simulate(problem, policy, delay="constant:1", horizon=5)
    assert Plain().start(3).ask() == (0, 0, 1)


def test_every_assertion_of_the_contract_has_a_message():
    tree = ast.parse(inspect.getsource(contract))
    asserts = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    assert len(asserts) > 10 and all(node.msg is not None for node in asserts)


@dataclass(frozen=True)
class Drops(Fixed):
    kept: tuple[bool, ...] = (True, False)

    def active(self, state, n_arms):
        return self.kept


def test_arms_are_dropped_by_a_value_for_each():
    shown = str(Drops(kept=(True, False, True)).start(list("abc"), seed=0).standing())
    assert "b (dropped)" in shown and "a (dropped)" not in shown
    with pytest.raises(ValueError, match="active"):
        Drops().start(3)
    problem = duelay.datasets.load("mslr")
    with pytest.raises(ValueError, match="active"):
        duelay.simulate(problem, Drops(), delay="constant:1", horizon=9)


@dataclass(frozen=True)
class DropsCompiled(duelay.RUCB):
    def active(self, rule, n_arms):
        return np.ones(n_arms + 1)


def test_a_compiled_policy_that_drops_no_such_arm_is_refused_before_its_runs():
    with pytest.raises(ValueError, match="active"):
        duelay.simulate(
            duelay.datasets.load("mslr"), DropsCompiled(), delay="constant:1", horizon=9
        )


def test_players_have_memories_of_their_own():
    one, two = Remembers().start(5, seed=0), Remembers().start(5, seed=1)
    for _ in range(12):
        one.ask()
    two.ask()
    assert one._rule["asked"] == 12 and two._rule["asked"] == 1
    stored = pickle.dumps(one)
    ahead = [one.ask() for _ in range(20)]
    assert [player.ask() for player in [pickle.loads(stored)] for _ in range(20)] == ahead


def test_choose_is_given_what_it_asks_for_by_name():
    seen = []

    @dataclass(frozen=True)
    class Asks(duelay.Policy):
        def choose(self, rng, *, n_arms, t, mine=3, ledger):
            seen.append((n_arms, t, mine, ledger.plays.sum(), type(rng)))
            return 0, 1

    player = Asks().start(4, seed=0)
    player.ask()
    player.ask()
    assert seen == [(4, 1, 3, 0, np.random.Generator), (4, 2, 3, 1, np.random.Generator)]

    @dataclass(frozen=True)
    class Everything(duelay.Policy):
        def choose(self, **given):
            seen.append(sorted(given))
            return 0, 1

    Everything().start(4).ask()
    assert seen[-1] == ["ledger", "n_arms", "rng", "state", "t"]


def test_what_choose_cannot_have_is_refused_at_the_start():
    @dataclass(frozen=True)
    class Wrong(duelay.Policy):
        def choose(self, leger):
            return 0, 1

    with pytest.raises(ValueError, match=r"'leger'.* \(did you mean led"):
        Wrong().start(3)

    @dataclass(frozen=True)
    class Forgets(duelay.Policy):
        def choose(self, state):
            return 0, 1

    with pytest.raises(ValueError, match="Forgets .*state"):
        Forgets().start(3)


# By its name in text.


def test_a_name_is_a_word_and_not_one_of_ours(monkeypatch):
    monkeypatch.setitem(text._KINDS, "policy", dict(text._KINDS["policy"]))
    for name in ("=cmd", "a b", "a:b", "", "1st", None, "<b>"):
        with pytest.raises(ValueError, match="name must"):
            text.named("policy", name)
    with pytest.raises(ValueError, match="kind must"):
        text.named("polcy", "mine")
    with pytest.raises(ValueError, match="name must"):
        text.named("policy", "rucb")(Fixed)
    with pytest.raises(ValueError, match="named"):
        text.named("policy", "mine")(type("Mine", (), {}))
    assert text.names("policy")["rucb"] is duelay.RUCB
    text.named("policy", "mine")(Fixed)
    text.named("policy", "mine")(Remembers)  # defined again, as in a notebook
    assert isinstance(duelay.policies.parse("mine"), Remembers)


# In the shell.


def shell(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["duelay", *map(str, arguments)])
    try:
        cli.run()
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def test_the_shell_simulates_a_policy_of_ones_own(module, tmp_path, monkeypatch, capsys):
    module()
    monkeypatch.chdir(tmp_path)
    asked = ["simulate", "--dataset", "mslr", "--horizon", 50, "--runs", 2, "--policy", "mine"]
    assert shell(monkeypatch, *asked) == 2
    assert "unknown policy 'mine'" in (said := capsys.readouterr().err)
    assert "must be imported first" in said
    assert shell(monkeypatch, *asked, "--policy", "mine:rival=1", "--import", "mine") == 0
    assert "mine:rival=1" in capsys.readouterr().out
    assert shell(monkeypatch, "policies", "--import", "mine") == 0
    assert "mine:rival=0,order=alternate" in capsys.readouterr().out


MISSPELT = """
import duelay
from dataclasses import dataclass

@duelay.text.named("policy", "mine")
@dataclass(frozen=True)
class Mine(duelay.CompiledPolicy):
    def {method}(self, n_arms):
        return None
"""


@pytest.mark.parametrize(
    "method, hint", [("rulle", " (is it rulle?)"), ("Rule", " (is it Rule?)"), ("other", "")]
)
def test_a_method_that_is_missing_is_one_sentence(
    module, tmp_path, monkeypatch, capsys, method, hint
):
    module(source=MISSPELT.format(method=method))
    monkeypatch.chdir(tmp_path)
    asked = ["simulate", "--dataset", "mslr", "--policy", "mine", "--import", "mine"]
    assert shell(monkeypatch, *asked) == 2
    said = f"duelay: policy mine must have a method rule, and Mine has none{hint}\n"
    assert capsys.readouterr().err == said


@pytest.mark.long
def test_the_shell_runs_a_policy_of_ones_own(module, tmp_path, monkeypatch, capsys):
    module(folder=tmp_path / "specs")
    module("here")
    (tmp_path / "specs" / "small.toml").write_text(
        small().replace('import = ["mine"]', "").replace('"rucb"', '"rucb", "here"')
    )
    monkeypatch.chdir(tmp_path)
    asked = ["run", "specs/small.toml", "--out", "out", "--quiet"]
    assert shell(monkeypatch, *asked, "--import", "mine") == 2
    assert "line 4: unknown policy 'here'" in capsys.readouterr().err
    assert shell(monkeypatch, *asked, "--import", "mine", "--import", "here") == 0
    assert "`mine:rival=2,order=alternate`" in (tmp_path / "out" / "report.md").read_text()


@pytest.mark.parametrize(
    "source, name, message",
    [
        ("", "absent", "^import 'absent'"),
        ("", "mine.absent", "^import 'mine.absent'"),
        ("", "mine.py", r"^import .*\(mine\), got 'mine.py'"),
        ("", "../mine", "^import"),
        ("import absent", "mine", "import 'mine': ModuleNotFoundError: .*'absent'"),
        ("\n\n1 / 0", "mine", r"import 'mine': ZeroDivisionError: .* \(mine.py, line 3\)"),
        ("def", "mine", r"import 'mine': SyntaxError: .*\(mine.py, line 1\)"),
        ("", "json", "^import 'json'"),
    ],
)
def test_a_module_that_cannot_be_imported_is_one_sentence(module, tmp_path, source, name, message):
    module(source=source)
    if name == "json":
        module("json", source="")
    with pytest.raises(ValueError, match=message):
        user_modules.bring_in(name, [tmp_path])
    spec = small().replace('import = ["mine"]', f'import = ["{name}"]')
    with pytest.raises(ValueError, match="small.toml, line 2: "):
        experiments.parse(spec, "small.toml", tmp_path)


def test_import_must_be_a_list(tmp_path):
    spec = small().replace('import = ["mine"]', 'import = "mine"')
    with pytest.raises(ValueError, match="line 2: import"):
        experiments.parse(spec, "small.toml", tmp_path)
    with pytest.raises(ValueError, match="line 2: import .*got 7"):
        experiments.parse(spec.replace('"mine"', "[7]", 1), "small.toml", tmp_path)


# In specifications, wherever the work is done.


def test_a_module_is_sought_beside_the_specification(module, tmp_path):
    module()
    (tmp_path / "small.toml").write_text(small())
    spec = experiments.read(tmp_path / "small.toml")
    assert spec.modules == ("mine",) and spec.normal_form()["import"] == ["mine"]
    direct = duelay.simulate(
        duelay.datasets.load("mslr"), sys.modules["mine"].Mine(), delay="geometric:0.1",
        horizon=60, runs=4, checkpoints=3,
    )  # fmt: skip
    assert finish(spec, tmp_path / "out")[0] == direct.regret.tolist()


@pytest.mark.long
@pytest.mark.interpreted
@pytest.mark.parametrize("backend", ["threads", "processes"])
def test_a_module_reaches_the_workers(module, tmp_path, backend):
    module()
    spec = experiments.parse(small(), "small.toml", tmp_path)
    there = finish(spec, tmp_path / "there", workers=2, backend=backend)
    assert there == finish(spec, tmp_path / "here", workers=1)


def test_a_module_edited_in_a_notebook_is_imported_anew(module, tmp_path):
    module()
    first = cells_of(experiments.parse(small(), "small.toml", tmp_path))[1]
    again = cells_of(experiments.parse(small(), "small.toml", tmp_path))[1]
    assert again.made_by == first.made_by and type(again.policy) is type(first.policy)
    module(step=200 + 1)
    edited = cells_of(experiments.parse(small(), "small.toml", tmp_path))[1]
    assert edited.made_by["mine"] != first.made_by["mine"]
    assert first.made_by == again.made_by  # what was imported before is still what it was
    elsewhere = tmp_path / "elsewhere"
    module(step=5, folder=elsewhere)
    other = cells_of(experiments.parse(small(), "small.toml", elsewhere))[1]
    regrets = [compute(cell)["regret"].tolist() for cell in (first, edited, other)]
    assert regrets[0] == regrets[1] != regrets[2]  # 201 = 1 modulo 5


RECEIVE = """
import pickle, sys
from pathlib import Path
for name in sys.argv[1:]:
    from duelay.experiments.cells import compute
    cell = pickle.loads(Path(name).read_bytes())
    print(compute(cell)["regret"].tolist(), cell.made_by["mine"])
"""


@pytest.mark.long
def test_a_cell_brings_its_module_along(module, tmp_path):
    """As to a worker on another machine, which has neither the module nor its earlier edits."""
    expected = []
    for step in (1, 2, 1):
        module(step=step).with_name("helper.py").write_text(f"STEP = {step}  # {'x' * step}")
        source = MINE.replace("import duelay", "import duelay\nimport helper", 1)
        module(source=source.replace("{step}", "helper.STEP"))
        cell = cells_of(experiments.parse(small(), "small.toml", tmp_path))[1]
        (tmp_path / f"{len(expected)}.cell").write_bytes(pickle.dumps(cell))
        expected.append(f"{compute(cell)['regret'].tolist()} {cell.made_by['mine']}")
    assert expected[0] != expected[1] and expected[0] == expected[2]
    away = tmp_path / "away"
    away.mkdir()
    cells = [str(tmp_path / f"{number}.cell") for number in range(3)]
    done = subprocess.run(
        [sys.executable, "-c", RECEIVE, *cells], cwd=away, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == expected, done.stderr


def test_a_cell_that_was_stored_needs_no_module(module, tmp_path):
    """Not even in a process that had it, and has it no more."""
    path = module()
    cell = cells_of(experiments.parse(small(), "small.toml", tmp_path))[1]
    stored, expected = pickle.dumps(cell), compute(cell)["regret"]
    path.unlink()
    sys.path.remove(str(tmp_path))
    del sys.modules["mine"], user_modules._OURS["mine"]
    again = pickle.loads(stored)
    assert type(again.policy) is not type(cell.policy) and again.made_by == cell.made_by
    np.testing.assert_array_equal(compute(again)["regret"], expected)
    sys.modules.pop("mine")


@pytest.mark.parametrize("backend", ["threads", "processes"])
def test_a_policy_that_fails_says_where(module, tmp_path, backend):
    module(source=MINE.replace("        return state", "        return [][3]; return state"))
    spec = experiments.parse(small(), "small.toml", tmp_path)
    message = r"mine.* failed: IndexError: .* \(mine.py, line 20\)"
    with pytest.raises(experiments.WorkFailedError, match=message):
        experiments.run(spec, tmp_path / "out", workers=1, backend=backend, quiet=True)


def test_a_policy_that_fails_leaves_those_that_are_finished(module, tmp_path, monkeypatch, capsys):
    module(source=MINE.replace("        return state", "        return [][3]; return state"))
    monkeypatch.chdir(tmp_path)
    asked = ["simulate", "--dataset", "mslr", "--horizon", 50, "--runs", 2, "--import", "mine"]
    three = ["--policy", "rucb", "--policy", "mine", "--policy", "rucb:alpha=1"]
    assert shell(monkeypatch, *asked, *three) == 2
    said = capsys.readouterr()
    assert "\nrucb  " in said.out
    assert "stopped after 1 of 3 policies: mine failed: IndexError" in said.err
    assert "(mine.py, line 20); missing: mine, rucb:alpha=1" in said.err
    assert shell(monkeypatch, *asked, "--policy", "mine") == 2
    said = capsys.readouterr()
    assert said.out == "" and "mine failed: IndexError" in said.err


@pytest.mark.parametrize(
    ("kind", "value", "needs"),
    [
        ("float", "x", "scale"),
        ("int", "inf", "scale"),
        ("int", "0.5", "scale"),
        ("bool", "7", "scale"),
    ],
)
def test_a_value_of_another_kind_is_refused_at_the_front_door(module, kind, value, needs):
    @dataclass(frozen=True)
    class Scaled(Fixed):
        scale: Any = None

    Scaled.__dataclass_fields__["scale"].type = kind
    text.named("policy", "scaled")(Scaled)
    with pytest.raises(ValueError, match=needs):
        duelay.policies.parse(f"scaled:scale={value}")


def test_a_policy_says_who_leads():
    @dataclass(frozen=True)
    class Last(duelay.Policy):
        by: tuple[float, ...] = (0.0, 1.0, 2.0)

        def choose(self, n_arms):
            return 1, 2

        def leads_by(self, estimates):
            return self.by

    assert Last().start(3, seed=0).standing().leader == 2
    result = duelay.simulate(
        duelay.problems.arithmetic(3, 0.1), Last(), delay="constant:1", horizon=5
    )
    assert result.leader.tolist() == [2]
    with pytest.raises(ValueError, match="leads_by"):
        Last((1.0, 2.0)).start(3, seed=0).standing()
