"""Mutation testing: change one sign, number or comparison of a module, and some test must fail.

    python -m benchmarks mutants ledger/votes

`mutants.toml` says which tests are to notice, which changes cannot be noticed and why, and what was
found. cosmic-ray makes the mutants. They live in a copy of the tree, interpreted, one at a time,
each in a fork of this process: what it has imported need not be imported again. Quick tests run
first, and the first that fails ends a mutant. What no test notices is printed, before and after.
"""

import argparse
import compileall
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
LONGEST = 1.0  # seconds: a test that takes longer is left out, if the table has no other number
MEMORY = 6 << 30  # bytes that a mutant may ask for
LEFT_OUT = (".*", "__pycache__", "studies", "paper", "site")  # of the copy

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
# In a row of one number the last is the first, and room for two holds one. Tables of pairs are
# square. And the star before arguments by name is no product.
NOISE = re.compile(r"\[-1\]|(zeros|ones|full)\(2[,)]|(plays|law|fresh)\.shape\[1\]| /,")


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
    """Lets the quickest tests run first and leaves the longest out, once it knows how long."""

    def __init__(self, seconds):
        self.seconds, self.took = seconds, Counter()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        if self.seconds:
            items[:] = [item for item in items if item.nodeid in self.seconds]
            items.sort(key=lambda item: self.seconds[item.nodeid])

    def pytest_runtest_logreport(self, report):
        self.took[report.nodeid] += report.duration


def run_tests(tree, tests, seconds, limit, out):
    """In a process of its own: run the tests; send the exit code and how long each one took."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    os.chdir(tree)
    sys.path.insert(0, str(tree / "src"))
    os.environ["PYTHONPATH"] = str(tree / "src")
    phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]  # nobody reads the example
    hypothesis.settings.register_profile("mutants", phases=phases, database=None, derandomize=True)
    hypothesis.settings.load_profile("mutants")
    options = ["-q", "-p", "no:cacheprovider", "-m", "not slow", f"--timeout={limit}"]
    options += ["--assert=plain", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    watch = Quickest(seconds)
    code = pytest.main([*options, *(["-x"] if seconds else []), *tests], plugins=[watch])
    out.send((int(code), watch.took))
    os._exit(0)


def forked(*arguments, limit):
    """Run the tests in a fork of this process; None for the exit code where it hangs or dies."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=run_tests, args=(*arguments, theirs))
    process.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(limit) else (None, Counter())
    except EOFError:
        return None, Counter()
    finally:
        process.kill()
        process.join()


def mutants(path):
    """Every mutant of a file: the line's number, the line before and after, and the whole text."""
    source, found = path.read_text(), {}
    names = [name for name in operator_names() if KINDS.fullmatch(name)]
    nodes = list(ast_nodes(get_ast(source)))
    for operator in [InPlace(), *(get_operator(name)() for name in names)]:
        places = [place for node in nodes for place in operator.mutation_positions(node)]
        for number, ((row, _), _) in enumerate(places):
            text = mutate_code(source, operator, number)
            if text is None or text == source:
                continue
            before, after = (code.splitlines()[row - 1].strip() for code in (source, text))
            after = re.sub(r"(?<=[\[(]) (?=-?\d)", "", after)  # cosmic-ray's numbers begin with one
            if not NOISE.search(after) or NOISE.search(before):
                found.setdefault(text, (row, before, after, text))
    return sorted(found.values())


def try_mutants(module, sample, seed):
    """Print the mutants of a module that no test notices, and return how many are left."""
    table = TABLE[module]
    equivalent = table.get("equivalent", {})
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*LEFT_OUT))
        compileall.compile_dir(tree, quiet=2)
        path = tree / "src" / "duelay" / f"{module}.py"
        code, seconds = forked(tree, table["tests"], {}, 300, limit=3600)
        if code != 0:
            sys.exit(f"{module}: its tests fail as it is, with exit code {code}")
        longest = table.get("longest", LONGEST)
        seconds = {test: took for test, took in seconds.items() if took <= longest}
        every = mutants(path)
        chosen = every
        if sample and sample < len(every):
            chosen = sorted(random.Random(seed).sample(every, sample))
        total = sum(seconds.values())
        told = f"{len(seconds)} tests in {total:.0f} s"
        print(f"{module}: {len(every)} mutants, {len(chosen)} to try; {told}", flush=True)
        limit, killed, known, left = 5 + int(3 * max(seconds.values())), 0, 0, 0
        for row, before, after, text in chosen:
            path.write_text(text)
            code, _ = forked(tree, table["tests"], seconds, limit, limit=20 + 3 * total)
            if code != 0:
                killed += 1
            elif after in equivalent:
                known += 1
            else:
                left += 1
                print(f"{row}: {before}\n  -> {after}", flush=True)
    print(f"{module}: {len(chosen)} tried, {killed} killed, {known} equivalent, {left} left")
    return left


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("module", choices=TABLE, nargs="+", help="such as ledger/votes")
    parser.add_argument("--sample", type=int, default=0, help="so many of them only, at random")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    told = parser.parse_args()
    left = [try_mutants(module, told.sample, told.seed) for module in told.module]
    sys.exit(1 if any(left) else 0)


if __name__ == "__main__":
    main()
