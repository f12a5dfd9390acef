import os

import pytest

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT") == "1"


def pytest_collection_modifyitems(config, items):
    """The interpreted run leaves out what is about compiled code, and says how many."""
    if not INTERPRETED:
        return
    left = [item for item in items if item.get_closest_marker("compiled")]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]


@pytest.fixture
def interpreted():
    return INTERPRETED
