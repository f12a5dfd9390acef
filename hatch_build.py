"""A wheel with compiled kernels: ``make wheel``. Other wheels have none, and are for any Python.

The recommended policies, live and simulated, and the paper's policies in the simulator are then
compiled when the wheel is built, for any processor of the builder's kind, and not at their first
use. A wheel is for one version of Python. With another version of Numba than its builder's, and
for what is not among these, kernels are compiled at their first use as ever.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent
SIMULATED = (
    "recommended", "decide", "double-thompson", "maillard", "rmed", "rucb-delay", "rr-db-delay",
    "rucb-delay:delay=(zipf:1.2,1000)", "mrr-db-delay", "mrr-db-delay:constants=0.5/0.1/0.1",
    "rucb:alpha=1", "rucb:alpha=1,counting=append-only", "rucb:alpha=1,counting=conversions",
)  # fmt: skip


def compile_into(folder: Path) -> None:
    """Compile what most people need, and write it into a folder."""
    import duelay
    from duelay import live
    from duelay._core import ahead
    from duelay._core.borders import COMPILER
    from duelay.policies.double_thompson.many_arms import MANY_ARMS_FROM

    duelay.warm_up(MANY_ARMS_FROM)
    live.warm_up(MANY_ARMS_FROM)
    problem, setting = duelay.datasets.load("six-rankers"), duelay.Setting(cautious=False)
    for name in SIMULATED:
        policy = duelay.policies.parse(name)
        stop = policy.error if name == "decide" else None
        duelay.simulate(
            problem, policy, delay="geometric:0.01", horizon=5000, stop=stop, setting=setting
        )
    COMPILER.wait()
    print(ahead.write(folder), "kernels are compiled")


def platform() -> str:
    """Return the tag of this machine's kind: kernels are code for Numba, and link to no library."""
    name = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return name.replace("linux_", "manylinux_2_17_", 1)


if __name__ == "__main__":
    compile_into(Path(sys.argv[1]))
else:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface

    class KernelsHook(BuildHookInterface[Any]):
        """Compiles kernels and puts them into the wheel."""

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            """Compile, in a process whose Numba compiles for any processor."""
            self._folder = tempfile.TemporaryDirectory()
            with tempfile.TemporaryDirectory() as cache:
                env = {
                    **os.environ,
                    "NUMBA_CPU_NAME": "generic",
                    "NUMBA_CACHE_DIR": cache,
                    "PYTHONPATH": str(ROOT / "src"),
                }
                command = [sys.executable, str(Path(__file__).resolve()), self._folder.name]
                subprocess.run(command, check=True, env=env)
            python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
            build_data["pure_python"] = False
            build_data["tag"] = f"{python}-{python}-{platform()}"
            build_data["force_include"][self._folder.name] = "duelay/_kernels"

        def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
            """Throw the copies away."""
            self._folder.cleanup()
