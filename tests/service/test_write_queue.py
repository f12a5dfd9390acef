"""The queue of writes of a server."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from duelay.live import Experiment
from duelay.live.writes.requests import Ask
from duelay.service import registry


def test_sizes_that_nobody_takes_away_are_not_kept_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_MAX_SIZES", 3)
    experiment = Experiment.create(f"sqlite:///{tmp_path}/duels.db", "buttons", ["red", "blue"])

    async def ask():
        with ThreadPoolExecutor(1) as threads:
            found = registry.WriteQueue(experiment, threads)
            for n in range(1, 6):
                await found.submit(*(Ask(None, None) for _ in range(n)))
            await found.finish()
            return list(found.sizes)

    assert asyncio.run(ask()) == [3, 4, 5]
    experiment.close()
