import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numba
import pytest

import duelay
from duelay import rules
from duelay._core.jit import decorators, private_numba
from duelay.ledger import display_order
from duelay.ledger.delay_models import base
from helpers import CODE, answer


@pytest.mark.compiled
def test_compiled_and_interpreted_runs_agree_to_the_last_bit():
    assert answer() == answer(NUMBA_DISABLE_JIT="1")


@pytest.mark.compiled
def test_plain_numba_gives_the_same_numbers_and_keeps_nothing(tmp_path):
    env = {"NUMBA_CACHE_DIR": str(tmp_path), "DUELAY_PLAIN_NUMBA": "1"}
    assert answer(**env) == answer()
    assert not list(tmp_path.iterdir())


def test_a_newer_numba_is_told_from_the_tested_ones():
    assert not private_numba.is_newer(numba.__version__)
    for version in ("0.61.0", "0.68.9", "0.68.0rc1"):
        assert not private_numba.is_newer(version)
    for version in ("0.69.0rc1", "0.100.0", "1.0.0"):
        assert private_numba.is_newer(version)


NEWER = """
import numba, subprocess, sys
numba.__version__ = "9.1.0"
{code}
assert duelay._core.jit.private_numba.IS_PLAIN
worker = "import numba; numba.__version__ = '9.1.0'; import duelay"
subprocess.run([sys.executable, "-c", worker], check=True)
"""


def test_a_newer_numba_is_said_once_and_gives_the_same_duels(tmp_path):
    """Worker processes are silent. Above, the compiled code of the public path is tested."""
    env = {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "1"}
    kept = {key: value for key, value in os.environ.items() if key != "DUELAY_PLAIN_NUMBA"}
    done = subprocess.run(
        [sys.executable, "-c", NEWER.format(code=CODE.format(policy="RUCB"))],
        capture_output=True, text=True, env={**kept, **env},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == answer(**env)
    assert done.stderr.count("\n") == 1 and "9.1.0" in done.stderr


@pytest.mark.long
def test_no_kernel_that_takes_a_generator_is_called_from_python():
    """It would keep the generator for ever: only an `entry` gives it back.

    A generic function runs interpreted where Python calls it, and keeps nothing.
    """
    root = Path(duelay.__file__).parent
    trees = {path: ast.parse(path.read_text()) for path in root.rglob("*.py")}
    functions = [
        (path, node)
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    ]

    def marks(node):
        heads = [d.func.value if isinstance(d, ast.Call) else d for d in node.decorator_list
                 if not isinstance(d, ast.Call) or isinstance(d.func, ast.Attribute)]  # fmt: skip
        return {head.id for head in heads if isinstance(head, ast.Name)}

    compiled = {"kernel", "generic", "entry", "select", "arrange", "calm_until"}
    given = {
        (path, node.name)
        for path, node in functions
        if "kernel" in marks(node) and any("rng" in a.arg for a in node.args.args)
    }
    names = {name for _, name in given}
    assert {"turn", "duel", "play_ticks"} <= names
    known = given | {
        (path, alias.name)
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name in names
    }
    assert not [
        (path.name, node.name, call.func.id)
        for path, node in functions
        if not marks(node) & compiled
        for call in ast.walk(node)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and (path, call.func.id) in known
    ]


def test_an_unknown_type_is_named():

    for function, arguments in (
        (base.advance, (1, 1)),
        (base.enter, (1, 0, 1, 1)),
        (base.expected, (1, None, 0, 1)),
        (base.pair_counts, (1, None, None, 0, 1)),
        (rules.select, (1, None, 1, None)),
        (display_order.arrange, (1, 0, 1, None)),
    ):
        with pytest.raises(TypeError, match="no (ledger keeps|order is called) int|got a int$"):
            function(*arguments)


@pytest.mark.compiled
def test_a_rule_around_one_of_ours_gives_the_same_duels(tmp_path):
    code = """
import dataclasses, typing
import duelay
from duelay.rules import select

class Rule(typing.NamedTuple):
    inner: typing.Any

@select.register(Rule)
def body(rule, ledger, t, rng):
    return select(rule.inner, ledger, t, rng)

@dataclasses.dataclass(frozen=True)
class Outside(duelay.RUCB):
    def rule(self, n_arms):
        return Rule(super().rule(n_arms))

duelay.Outside = Outside
""" + CODE.format(policy="Outside")
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env
    )
    assert done.stdout == answer(NUMBA_CACHE_DIR=str(tmp_path))


@pytest.mark.compiled
def test_a_kernel_within_a_kernel_may_print_and_raise(monkeypatch, capfd):
    monkeypatch.setattr(decorators, "is_outside", lambda part: False)
    monkeypatch.setattr(decorators, "_CACHE", None)

    @decorators.kernel
    def within(x):
        if x > 2:
            raise ValueError("more than two")
        print("this is", x)
        return x + 1

    @decorators.kernel
    def around(x):
        return within(x) + within(x)

    assert around(1) == 4
    assert capfd.readouterr().out == "this is 1\n" * 2
    with pytest.raises(ValueError, match="more than two"):
        around(3)


@pytest.mark.compiled
@pytest.mark.skipif(not private_numba.COMPILES_PARTS, reason="Numba's parts are not used")
def test_a_named_tuple_of_ours_is_passed_whole_and_one_of_others_as_numba_does():
    class Theirs(NamedTuple):
        n: int
        m: int

    ours = numba.typeof(duelay.RUCBDelay().ledger(3))
    passed = private_numba.default_manager.lookup(ours)
    assert passed.get_argument_type() == passed.get_value_type()
    flat = private_numba.default_manager.lookup(numba.typeof(Theirs(1, 2))).get_argument_type()
    assert isinstance(flat, tuple) and len(flat) == 2


@pytest.mark.compiled
@pytest.mark.skipif(not private_numba.COMPILES_PARTS, reason="Numba's parts are not used")
def test_an_error_of_the_compiler_leaves_standard_output_alone(monkeypatch):
    colorama = pytest.importorskip("colorama")

    def exchange(*args, **kwargs):
        raise AssertionError("standard output is exchanged")

    for module in (colorama, numba.core.errors):
        for name in ("init", "reinit", "deinit"):
            monkeypatch.setattr(module, name, exchange, raising=False)

    @numba.njit
    def wrong(text):
        return text.nothing + 1

    with pytest.raises(numba.core.errors.TypingError, match="nothing"):
        wrong("a")
