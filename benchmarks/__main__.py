"""Run a command that writes numbers, figures or golden files of the repository.

    python -m benchmarks             list the commands
    python -m benchmarks NAME ...    run one of them; further arguments go to its script

Run it in the root of the checkout, with the Python of the environment that `make setup` makes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.commands import COMMANDS, SLOW_TESTS

ROOT = Path(__file__).parent.parent


def main() -> int:
    """Run the command that is named, or list all of them."""
    name, *arguments = sys.argv[1:] or [""]
    if name not in COMMANDS:
        for known, command in COMMANDS.items():
            print(f"{known:13} {command.takes:11} {command.writes}")
        return 2 if name else 0
    command = COMMANDS[name]
    for script in command.scripts:
        words = script.split() + ([] if script == SLOW_TESTS else arguments)
        done = subprocess.run([sys.executable, *words], cwd=ROOT, env=os.environ | command.env)
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
