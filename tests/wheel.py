"""`make test-wheel`: the wheel, installed alone into an empty environment, and tried there.

It has the core dependencies and no extra, and runs outside of the checkout: what is missing from
the wheel, or imported without being asked for, shows here. With a folder (`make wheel`) the wheel
is copied there.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src"

TRIAL = """
import sys
from importlib import metadata, resources

import duelay

assert metadata.version("duelay") == duelay.__version__
extras = {"click", "matplotlib", "joblib", "pyarrow", "distributed"}
assert not extras & set(sys.modules), extras & set(sys.modules)

for name in duelay.datasets.names():
    problem = duelay.datasets.load(name)
result = duelay.simulate(duelay.datasets.load("six-rankers"), duelay.RUCBDelay(),
                         delay="geometric:0.1", horizon=300, runs=2, seed=0)
player = duelay.RUCBDelay().start(["red", "green", "blue"], seed=0)
assert player.tell(player.ask()) == "counted"
print(player.standing())
assert duelay.recommend().policy.order == "coin"

studies = resources.files("duelay") / "experiments" / "studies"
assert sum(path.name.endswith(".toml") for path in studies.iterdir()) > 10
assert (resources.files("duelay") / "py.typed").is_file()

for needs, give in {
    "duelay.experiments": lambda: __import__("duelay.experiments"),
    "matplotlib": result.plot,
}.items():
    try:
        give()
    except (ImportError, ValueError) as error:
        assert "pip install 'duelay[" in str(error), error
    else:
        raise AssertionError(f"{needs} is there, and should not be")
print("tried:", duelay.__file__)
"""


def run(*command, status=0, **options):
    """Run a command that must end with a status; return what it said."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != status:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def check_content(wheel):
    """The wheel must have every file of the sources, and no other."""
    names = zipfile.ZipFile(wheel).namelist()
    there = {name for name in names if ".dist-info/" not in name}
    wanted = {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    if there != wanted:
        sys.exit(f"the wheel differs from the sources: {sorted(there ^ wanted)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="copy the wheel there")
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory(prefix="duelay-wheel-") as place:
        folder = Path(place)
        pip = ["-m", "pip", "--disable-pip-version-check"]
        run(sys.executable, *pip, "wheel", "--quiet", "--no-deps", "-w", place, str(ROOT))
        (wheel,) = folder.glob("duelay-*.whl")
        check_content(wheel)
        run(sys.executable, "-m", "venv", folder / "env")
        python, command = (folder / "env" / "bin" / name for name in ("python", "duelay"))
        run(python, *pip, "install", "--quiet", str(wheel))
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        env["XDG_CACHE_HOME"] = str(folder / "cache")
        print(run(python, "-c", TRIAL, cwd=place, env=env), end="")
        said = run(command, "--version", status=2, cwd=place, env=env)
        if said != "the command line needs click: pip install 'duelay[cli,plots]'\n":
            sys.exit(f"duelay without click says {said!r}")
        if out:
            out.mkdir(exist_ok=True)
            shutil.copy(wheel, out)
        print(f"{wheel.name}: passed")


if __name__ == "__main__":
    main()
