"""Live experiments: a durable store that many processes share.

>>> import duelay.live
>>> duelay.live.Experiment.__name__
'Experiment'
"""

from __future__ import annotations

from duelay._core.extras import need

need("live experiments", ["sqlalchemy", "alembic"], "live")

from duelay.live.booking import LiveDuel  # noqa: E402
from duelay.live.desk import PausedError, UnknownExperimentError  # noqa: E402
from duelay.live.experiment import Experiment  # noqa: E402
from duelay.live.remote import connect, connect_async  # noqa: E402
from duelay.live.standing import LiveStanding  # noqa: E402
from duelay.live.store import Store, StoreError  # noqa: E402
from duelay.live.upkeep import backup, forget  # noqa: E402
from duelay.live.verifying import verify  # noqa: E402
from duelay.live.warming import warm_up  # noqa: E402
from duelay.players.player import UnknownDuelError  # noqa: E402

__all__ = [
    "Experiment",
    "LiveDuel",
    "LiveStanding",
    "PausedError",
    "Store",
    "StoreError",
    "UnknownDuelError",
    "UnknownExperimentError",
    "backup",
    "connect",
    "connect_async",
    "forget",
    "verify",
    "warm_up",
]
