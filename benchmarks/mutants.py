"""Mutation testing: change one sign, number or comparison of a module; some test must fail.

    make mutants MODULE=ledger/votes

`mutants.toml` says which tests are to notice, and which changes cannot be noticed and why. The
work is done in a copy of the tree, interpreted, in one process that forks for each mutant: what
is imported once need not be imported again. Quick tests run first, and the first that fails ends
a mutant. What survives is printed as a line before and after, and written to mutants/MODULE.json.
"""

import argparse
import compileall
import json
import multiprocessing
import os
import random
import re
import resource
import shutil
import sys
import tempfile
import tomllib
from collections import Counter
from pathlib import Path

os.environ |= {"NUMBA_DISABLE_JIT": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
sys.dont_write_bytecode = True  # a mutant's byte code must not outlive it

import hypothesis  # noqa: E402
import numba  # noqa: E402, F401
import numpy  # noqa: E402, F401
import parso  # noqa: E402
import pytest  # noqa: E402
import scipy.stats  # noqa: E402, F401
from cosmic_ray.ast import ast_nodes, get_ast  # noqa: E402
from cosmic_ray.mutating import mutate_code  # noqa: E402
from cosmic_ray.operators.operator import Operator  # noqa: E402
from cosmic_ray.plugins import get_operator, operator_names  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
LONGEST = 1.5  # seconds: a test that takes longer is left out
MEMORY = 6 << 30  # bytes that a mutant may ask for

# Each thing is changed into what is easily mistaken for it, and no further: `+` into `-`, not `>>`.
KINDS = re.compile(
    "core/(NumberReplacer|AddNot|ReplaceAndWithOr|ReplaceOrWithAnd|ZeroIterationForLoop"
    "|ReplaceTrueWithFalse|ReplaceFalseWithTrue|ReplaceBreakWithContinue|ReplaceContinueWithBreak"
    "|ReplaceUnaryOperator_Delete_(Not|USub|Invert)"
    "|ReplaceBinaryOperator_(Add_Sub|Sub_Add|Mul_Div|Div_Mul|Pow_Mul|FloorDiv_Div|Mod_FloorDiv"
    "|BitAnd_BitOr)"
    "|ReplaceComparisonOperator_(Lt_LtE|LtE_Lt|Gt_GtE|GtE_Gt|Lt_GtE|LtE_Gt|Gt_LtE|GtE_Lt"
    "|Eq_NotEq|NotEq_Eq|Is_IsNot|IsNot_Is|In_NotIn|NotIn_In))"
)

# Numbers in a row of one: its last is its first, and room for two holds one. And the star of
# arguments by name is no product.
NOISE = re.compile(r"\[ -1\]|(zeros|ones|full)\( 2[,)]| /,")


class InPlace(Operator):
    """`+=` into `-=` and the like, which cosmic-ray leaves alone."""

    TURNED = {"+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "&=": "|=", "|=": "&="}

    def mutation_positions(self, node):
        if isinstance(node, parso.python.tree.Operator) and node.value in self.TURNED:
            yield node.start_pos, node.end_pos

    def mutate(self, node, index):
        node.value = self.TURNED[node.value]
        return node

    @classmethod
    def examples(cls):
        return ()


class Quickest:
    """Lets the quickest tests run first, and leaves the longest out, once it knows how long."""

    def __init__(self, seconds):
        self.seconds, self.failed = seconds, []

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        if self.seconds:
            items[:] = [x for x in items if self.seconds.get(x.nodeid, 0.0) <= LONGEST]
            items.sort(key=lambda item: self.seconds.get(item.nodeid, 0.0))

    def pytest_runtest_logreport(self, report):
        if not self.seconds or report.failed:
            self.failed.append((report.nodeid, report.duration))


def run_tests(tree, tests, seconds, limit, out):
    """In a process of its own: run the tests, put the exit code and what failed into `out`."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1), os.dup2(null, 2) if 'DEBUG' not in os.environ else 0
    os.chdir(tree)
    sys.path.insert(0, str(tree / "src"))
    os.environ["PYTHONPATH"] = str(tree / "src")
    phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]  # nobody reads the example
    hypothesis.settings.register_profile("mutants", phases=phases, database=None, derandomize=True)
    hypothesis.settings.load_profile("mutants")
    heard = Quickest(seconds)
    options = ["-q", "-p", "no:cacheprovider", "-m", "not slow", f"--timeout={limit}", "--assert=plain", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    code = pytest.main([*options, *(["-x"] if seconds else []), *tests], plugins=[heard])
    out.send((int(code), heard.failed))
    out.close()
    os._exit(0)


def forked(*arguments, limit=600):
    """Run the tests in a fork of this process; a process that hangs or dies has noticed too."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=run_tests, args=(*arguments, theirs))
    process.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(limit) else (-1, [("no end", limit)])
    except EOFError:
        return -1, [("it died", 0.0)]
    finally:
        process.kill()
        process.join()


def mutants(path):
    """Every mutant of a file: the line's number, the line before and after, and the whole text."""
    source, found = path.read_text(), {}
    operators = [InPlace(), *(get_operator(n)() for n in operator_names() if KINDS.fullmatch(n))]
    tree = get_ast(source)
    for operator in operators:
        places = [
            place for node in ast_nodes(tree) for place in operator.mutation_positions(node)
        ]
        for number, ((row, column), _) in enumerate(places):
            text = mutate_code(source, operator, number)
            if text is None or text == source:
                continue
            before, after = source.splitlines()[row - 1], text.splitlines()[row - 1]
            if NOISE.search(after) and not NOISE.search(before):
                continue
            found.setdefault(text, (row, column, before.strip(), after.strip(), text))
    return sorted(found.values())


def test_module(module, sample, seed, lines=None):
    """Return how many mutants were tried, and those that no test has noticed."""
    table = TABLE[module]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(
            ROOT, tree, ignore=shutil.ignore_patterns(".*", "__pycache__", "mutants", "studies")
        )
        path = tree / "src" / "duelay" / f"{module}.py"
        original = path.read_text()
        compileall.compile_dir(tree, quiet=2)
        code, times = forked(tree, table["tests"], {}, 300)
        assert code == 0, f"the tests fail as it is: {code}"
        seconds = Counter()
        for test, took in times:
            seconds[test] += took
        total = sum(x for x in seconds.values() if x <= LONGEST)
        limit = 5 + int(3 * max([x for x in seconds.values() if x <= LONGEST]))
        every = mutants(path)
        chosen = [mutant for mutant in every if not lines or mutant[0] in lines]
        if sample and sample < len(chosen):
            chosen = sorted(random.Random(seed).sample(chosen, sample))
        print(f"{module}: {len(every)} mutants, {len(chosen)} tried; {total:.0f} s of tests", flush=True)
        survivors, killers = [], Counter()
        for number, (row, column, before, after, text) in enumerate(chosen):
            if number % 10 == 9: print(number, flush=True)
            path.write_text(text)
            code, failed = forked(tree, table["tests"], seconds, limit, limit=20 + 3 * total)
            if code == 0:
                survivors.append((row, before, after))
                known = table.get("equivalent", {}).get(after)
                print(f"{number:4} {row}: {before}\n      -> {after}" + (f"  [{known}]" if known else ""), flush=True)
            else:
                killers[failed[0][0] if failed else "import"] += 1
        path.write_text(original)
    return {"mutants": len(every), "tried": len(chosen), "survivors": survivors, "killers": killers}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("module", choices=TABLE, nargs="+")
    parser.add_argument("--sample", type=int, default=0, help="so many mutants, not all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lines", type=int, nargs="*")
    told = parser.parse_args()
    for module in told.module:
        result = test_module(module, told.sample, told.seed, told.lines)
        out = ROOT / "mutants" / f"{module.replace('/', '-')}.json"
        out.parent.mkdir(exist_ok=True)
        out.write_text(json.dumps(result, indent=1))
        print(f"{module}: {len(result['survivors'])} of {result['tried']} survive", flush=True)


if __name__ == "__main__":
    main()
