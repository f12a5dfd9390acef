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
from duelay._core.sources import own_digest, sources_of

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
from duelay.experiments import work

spec = experiments.read("small.toml")
said = []
with work.opened(Path("out"), spec) as place:
    print(work.execute(spec, place, workers=1, say=said.append))
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
    for shown in ("experiments/report.py", "cli/shell.py", "show/plots.py", "_version.py"):
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


def test_no_kernel_is_in_what_recompiles_nothing_or_called_from_there():
    for path in ROOT.rglob("*.py"):
        source = path.read_text()
        if sources._only_shows(path.relative_to(ROOT)):
            assert "_core.jit" not in source and "@kernel" not in source, path
        elif "duelay._core.jit" in source and path.name != "jit.py":
            names = [name.removesuffix(".py").replace("/", ".") for name in sources._SHOWS]
            assert not [n for n in names if f"from duelay.{n} import" in source], path


def test_what_only_shows_is_there():
    assert [name for name in sources._SHOWS if not (ROOT / name).exists()] == []


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
print(sorted(str(path) for path in ours if path.parts[0] in sources._SHOWS))
"""


@pytest.mark.long
def test_nothing_that_makes_numbers_is_taken_for_what_only_shows(tmp_path):
    """Every file of ours that runs while a cell is computed is among those that name it."""
    n, left_out = in_another_process(
        WATCHED,
        tmp_path,
        ROOT.parent,
    )
    assert int(n) > 20
    assert left_out == "['experiments/cells.py']"  # it names itself


@pytest.mark.long
def test_a_change_of_any_file_that_makes_numbers_changes_the_name(place):
    code = "from duelay._core import sources; print(sources.own_digest())"
    lib = place / "lib"
    assert in_another_process(code, place, lib) == [own_digest()]
    append(lib / "duelay" / "theory" / "bounds.py", "\n")
    assert in_another_process(code, place, lib) != [own_digest()]


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
