"""How long is waited for what does not answer: as long as usual, or longer where it is said."""

import os
import subprocess
import sys

import pytest

from duelay._core.patience import VARIABLE, at_least


@pytest.mark.parametrize(("said", "found"), [
    (None, [2.0, 30.0]), ("", [2.0, 30.0]), ("0", [2.0, 30.0]), ("5", [5.0, 30.0]),
    (" 300.5 ", [300.5, 300.5]),
])  # fmt: skip
def test_what_is_said_is_the_least(monkeypatch, said, found):
    monkeypatch.delenv(VARIABLE, raising=False)
    if said is not None:
        monkeypatch.setenv(VARIABLE, said)
    assert [at_least(2.0), at_least(30.0)] == found


@pytest.mark.parametrize("said", ["soon", "-1", "inf", "nan"])
def test_what_is_no_number_of_seconds_is_a_sentence(monkeypatch, said):
    monkeypatch.setenv(VARIABLE, said)
    with pytest.raises(ValueError, match=f"DUELAY_PATIENCE must be a number of sec.*got '{said}'"):
        at_least(30.0)


PROGRAM = """
from duelay.live import connect
from duelay.live.storage import store
from duelay.live.writes import writer
from duelay.service import delivery, server
print(connect.__kwdefaults__["patience"], writer.PATIENCE, store._PATIENCE, delivery.TIMEOUT,
      server._SHUTDOWN)
"""


@pytest.mark.interpreted
@pytest.mark.parametrize(("said", "found"), [("", "30.0 30.0 30.0 10.0 20"),
                                             ("25", "30.0 30.0 30.0 25.0 25")])  # fmt: skip
def test_it_is_how_long_stores_services_and_webhooks_are_waited_for(said, found):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True,
        env=os.environ | {VARIABLE: said, "NUMBA_DISABLE_JIT": "1"},
    )  # fmt: skip
    assert done.stdout.strip() == found
