"""Neither kernels nor cells outlive the code that made them."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import duelay
from duelay._core import sources
from duelay._core.jit import decorators
from duelay._core.sources import sources_of

ROOT = Path(duelay.__file__).parent
MINE = """
from dataclasses import dataclass

import duelay
import helper


@duelay.text.named("policy", "mine")
@dataclass(frozen=True)
class Mine(duelay.Policy):
    def choose(self, t):
        return helper.first(), 0
"""
SPECIFICATION = """
name = "small"
import = ["mine"]
problems = ["mslr"]
policies = ["rucb:alpha=1", "mine"]
delays = ["geometric:0.1"]
horizon = 40
runs = 2
block = 1
checkpoints = 4
"""
RUN = """
import sys
from pathlib import Path
from duelay import experiments
from duelay.experiments import execution

spec = experiments.read("small.toml")
said = []
with execution.opened(Path("out"), spec) as place:
    print(execution.execute(spec, place, workers=1, say=said.append))
print(experiments.load(spec, "out").get("small", "mslr", "mine").final.sum())
print(*[line for line in said if "other sources" in line])
"""


def in_another_process(code, folder, *path):
    """What a program prints; interpreted, since nothing here is worth compiling."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(map(str, path))},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def place(tmp_path):
    """A copy of duelay that may be edited, a policy of somebody's own, and a specification."""
    shutil.copytree(ROOT, tmp_path / "lib" / "duelay", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "small.toml").write_text(SPECIFICATION)
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "helper.py").write_text("def first():\n    return 1\n")
    return tmp_path


def append(path, line):
    path.write_text(path.read_text() + line)


@pytest.mark.long
def test_an_edit_recomputes_what_it_may_change_and_nothing_else(place):
    def run():
        computed, regret, said = in_another_process(RUN, place, place / "lib")
        return int(computed), float(regret), said

    n, before, said = run()
    assert (n, said) == (4, "")
    assert run() == (0, before, "")
    ours = place / "lib" / "duelay"
    for shown in ("experiments/report.py", "cli/common.py", "show/plots.py", "_version.py"):
        append(ours / shown, "\n# edited\n")
    assert run() == (0, before, "")
    append(ours / "policies" / "rucb.py", "\n# edited\n")
    again = "4 of 4 cells were made by other sources of duelay: they are computed again"
    assert run() == (4, before, again)
    again = "2 of 4 cells were made by other sources of mine: they are computed again"
    (place / "mine.py").write_text(MINE.replace("helper.first(), 0", "helper.first(), 2"))
    n, after, said = run()
    assert (n, said) == (2, again) and after != before
    (place / "helper.py").write_text("def first():\n    return int('4')\n")
    n, last, said = run()
    assert (n, said) == (2, again) and last != after
    append(place / "small.toml", "\n# edited\n")
    assert run() == (0, last, "")


DIGESTS = """
from pathlib import Path
from duelay._core.jit import decorators
from duelay.experiments import cells
print(decorators._DIGEST, cells._OURS)
"""
LAYERS_ABOVE = ("live", "service", "page", "cli")


def test_an_edit_of_what_makes_no_number_leaves_kernels_and_cells(place):
    """It may be of a docstring, and of every file there."""
    before = in_another_process(DIGESTS, place, place / "lib")
    ours = place / "lib" / "duelay"
    for layer in LAYERS_ABOVE:
        for path in (ours / layer).rglob("*.py"):
            append(path, "\n# edited\n")
    for name in ("_version.py", "__init__.py", "theory/bounds.py"):
        append(ours / name, "\n# edited\n")
    assert in_another_process(DIGESTS, place, place / "lib") == before


@pytest.mark.parametrize(
    ("edited", "is_of_kernels"),
    [
        ("policies/rucb.py", True),
        ("ledger/delay_models/base.py", True),
        ("players/player.py", False),
        ("inference/leader.py", False),
        ("simulation/runs.py", False),
    ],
)
def test_an_edit_of_what_makes_numbers_changes_their_digest(place, edited, is_of_kernels):
    (before,) = in_another_process(DIGESTS, place, place / "lib")
    append(place / "lib" / "duelay" / edited, "\n# edited\n")
    (after,) = in_another_process(DIGESTS, place, place / "lib")
    changed = [one != two for one, two in zip(before.split(), after.split(), strict=True)]
    assert changed == [is_of_kernels, True]


def test_every_kernel_is_in_a_module_of_the_digest(monkeypatch):
    """Also those that are imported late, and those that stand in a layer above."""
    taken = []
    monkeypatch.setattr(sources, "_digest", lambda files: taken.extend(dict(files)))
    sources.digest_of_kernels(decorators.__name__)
    assert not [name for name in taken if name.partition("/")[0] in LAYERS_ABOVE]
    for path in ROOT.rglob("*.py"):
        if "\n@kernel\n" in path.read_text() or "\n@entry\n" in path.read_text():
            assert path.relative_to(ROOT).as_posix() in taken


WATCHED = """
import sys
from dataclasses import dataclass
from pathlib import Path
import duelay
from duelay import experiments
from duelay._core import sources
from duelay.experiments.cells import cells_of, compute

@duelay.text.named("policy", "mine")
@dataclass(frozen=True)
class Mine(duelay.Policy):
    delay: object = "learn"
    order: str = "coin"
    window: int = 50
    def choose(self, ledger, rng):
        return rng.integers(5), 0

source = '''
problems = ["mslr"]
policies = ["mine", "rucb", "rucb-delay", "rr-db-delay", "mrr-db-delay:mean_delay=9,schedule=3/9",
            "double-thompson:delay=learn", "rmed", "borda"]
delays = ["geometric:0.1", "never:0.3,(weibull:0.5,9)"]
horizon = 150
runs = 1
checkpoints = 3
[[grid]]
name = "plain"
[[grid]]
name = "votes"
feedback = "votes"
batch = 4
'''
cells = cells_of(experiments.parse(source, "watched.toml", Path()))
called = set()
def watch(frame, event, argument):
    called.add(frame.f_code.co_filename)
sys.setprofile(watch)
for cell in cells:
    compute(cell)
sys.setprofile(None)
root = Path(duelay.__file__).parent
ours = {Path(name).relative_to(root) for name in called if Path(name).is_relative_to(root)}
print(len(ours))
taken = []
sources._digest = lambda files: taken.extend(Path(name) for name, _ in files)
sources.digest_of_modules(root / "experiments" / "cells.py")
print(sorted(str(path) for path in ours - set(taken)))
"""


@pytest.mark.long
def test_every_file_that_runs_while_a_cell_is_computed_is_in_its_digest(tmp_path):
    n, left_out = in_another_process(WATCHED, tmp_path, ROOT.parent)
    assert int(n) > 20
    assert left_out == "[]"


def test_a_class_of_a_prompt_is_named_by_itself():
    def define(body):
        names = {"dataclass": dataclass, "duelay": duelay, "__name__": "__main__"}
        exec(compile(body, "<prompt>", "exec"), names)
        return names["Mine"]()

    body = MINE.replace("import helper", "").replace('@duelay.text.named("policy", "mine")', "")
    first, second = define(body), define(body)
    (one,), (again,), (other,) = (sources_of(p).values() for p in (first, first, second))
    assert one == again != other and not one.is_sent
    assert one.digest != other.digest


def test_parts_count_too():
    """A law of somebody's own within one of ours within a policy of ours."""

    @dataclass(frozen=True)
    class Tomorrow(duelay.delays.Geometric):
        pass

    law = duelay.delays.Never(0.1, Tomorrow(0.5))
    assert list(sources_of(duelay.RUCBDelay(law))) == list(sources_of(Tomorrow(0.5)))
    assert sources_of(Tomorrow(0.5)) and not sources_of(duelay.RUCBDelay("geometric:0.5"))
    by_pair = duelay.delays.ByPair((law, law, law, law))
    assert sources_of(by_pair) == sources_of(law)
