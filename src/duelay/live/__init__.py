"""Live experiments: a durable store that many processes share.

>>> import duelay.live
>>> duelay.live.Experiment.__name__
'Experiment'
"""

from __future__ import annotations

from duelay._core.extras import need

need("live experiments", ["sqlalchemy", "alembic"], "live")

from duelay.errors import (  # noqa: E402
    ClockError,
    PausedError,
    StoreError,
    UnknownDuelError,
    UnknownExperimentError,
)
from duelay.live.audit.verify import verify  # noqa: E402
from duelay.live.client.clients import connect, connect_async  # noqa: E402
from duelay.live.experiment import Experiment  # noqa: E402
from duelay.live.maintenance import backup, forget, warm_up  # noqa: E402
from duelay.live.standing import LiveStanding  # noqa: E402
from duelay.live.storage.store import Store  # noqa: E402
from duelay.live.writes.requests import LiveDuel, OneArmDuel  # noqa: E402

__all__ = [
    "ClockError",
    "Experiment",
    "LiveDuel",
    "LiveStanding",
    "OneArmDuel",
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
