"""A Generator by its addresses is the Generator."""

import os
import subprocess
import sys

import numpy as np
import pytest

from duelay._core import numba_parts
from duelay._core.generators import ByAddress, by_address, generator_at
from duelay._core.jit import entry_by_address
from helpers import CODE, answer


def test_python_is_given_the_generator_itself():
    rng = np.random.default_rng(0)
    assert generator_at(by_address(rng)) is rng
    assert generator_at(rng) is rng
    assert isinstance(by_address(rng), ByAddress) == numba_parts.CAN_ADDRESS


@entry_by_address
def _draw(place, out):
    rng = generator_at(place)
    for n in range(out.size):
        out[n] = rng.random() + rng.beta(2.0, 3.0) + rng.standard_normal()


@pytest.mark.compiled
def test_a_kernel_draws_what_numpy_draws():
    one, two = (np.random.default_rng(7) for _ in range(2))
    out = np.zeros(50)
    _draw(by_address(one), out)
    assert out.tolist() == [
        two.random() + two.beta(2.0, 3.0) + two.standard_normal() for _ in range(50)
    ]
    assert one.bit_generator.state == two.bit_generator.state


@pytest.mark.compiled
@pytest.mark.skipif(numba_parts.IS_PLAIN, reason="plain Numba is given the Generator")
def test_a_kernel_without_the_runtime_refuses_a_generator():
    with pytest.raises(numba_parts.NumbaError, match="generator_at"):
        _draw(np.random.default_rng(0), np.zeros(1))


WITHOUT = """
from numba.core import cgutils
used = cgutils.unpack_tuple
del cgutils.unpack_tuple
from duelay._core import numba_parts
cgutils.unpack_tuple = used
assert not numba_parts.CAN_ADDRESS
"""


@pytest.mark.compiled
def test_without_addresses_the_generator_is_passed_and_given_back(tmp_path):
    """Whoever has it, the references to it stay the same."""
    counted = """
rng = player._rng
before = sys.getrefcount(rng)
for _ in range(100):
    player.ask()
assert sys.getrefcount(rng) == before
"""
    done = subprocess.run(
        [sys.executable, "-c", "import sys" + WITHOUT + CODE.format(policy="RUCB") + counted],
        capture_output=True, text=True, check=False,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == answer()
