"""The queue of writes of a server."""

import asyncio

import pytest

from duelay.live import Experiment
from duelay.live.writes import writer
from duelay.live.writes.group_commit import Request
from duelay.live.writes.requests import Ask
from duelay.service.write_queue import WriteQueue
from service.served import CallingCommitter, wait_until


def gated(n, *words, commit=lambda group: None):
    """A committer whose first commit waits until n more callers wait, and the groups it writes."""
    groups = []

    def gate(group):
        if not groups:
            wait_until(lambda: len(committer._queue) == n, every=0.001)
        groups.append(group)
        commit(group)

    committer = CallingCommitter(gate, *words)
    return committer, groups


def test_tasks_and_threads_write_in_common_groups_and_hand_over_to_each_other():
    """Each request is a group of its own: tasks lead after threads, and threads after tasks."""
    committer, groups = gated(9, 1)

    async def work():
        found = WriteQueue(committer)
        await asyncio.gather(*(
            asyncio.to_thread(committer.submit, Request()) if k % 2 else found.submit(Request())
            for k in range(10)
        ))  # fmt: skip
        await found.finish()

    asyncio.run(work())
    assert [len(group) for group in groups] == [1] * 10 and committer._queue == []


def test_an_error_of_a_commit_is_raised_by_all_tasks_of_its_group():
    def commit(group):
        raise ValueError("full")

    committer, groups = gated(4, commit=commit)

    async def work():
        found = WriteQueue(committer)
        tasks = (found.submit(Request(), Request()) for _ in range(5))
        return await asyncio.gather(*tasks, return_exceptions=True)

    assert [str(error) for error in asyncio.run(work())] == ["full"] * 5
    assert [len(group) for group in groups] == [2, 8]


def test_what_was_enqueued_is_written_though_its_client_has_gone_away():
    committer, groups = gated(1)

    async def work():
        found = WriteQueue(committer)
        first = asyncio.create_task(found.submit(Request()))
        second = asyncio.create_task(found.submit(Request()))
        await asyncio.sleep(0)
        second.cancel()
        await first
        with pytest.raises(asyncio.CancelledError):
            await second
        await found.finish()

    asyncio.run(work())
    assert [len(group) for group in groups] == [1, 1]


def test_sizes_that_nobody_takes_away_are_not_kept_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "_MAX_SIZES", 3)
    experiment = Experiment.create(f"sqlite:///{tmp_path}/duels.db", "buttons", ["red", "blue"])

    async def ask():
        found = WriteQueue(experiment.writer)
        for n in range(1, 6):
            await found.submit(*(Ask(None, None) for _ in range(n)))
        return list(found.sizes)

    assert asyncio.run(ask()) == [3, 4, 5]
    experiment.close()
