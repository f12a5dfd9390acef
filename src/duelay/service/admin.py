"""Make and change experiments, with the same checks for programs and for forms of the page."""

from __future__ import annotations

from duelay.errors import InvalidValueError
from duelay.live import Experiment
from duelay.live.changes import make_change
from duelay.live.clock import check_speed
from duelay.service import models
from duelay.service.context import ServiceContext
from duelay.service.errors import RefusedError
from duelay.service.keys import Key


async def make(context: ServiceContext, key: Key, body: models.NewExperiment) -> Experiment:
    """Make an experiment."""
    if not key.covers(body.name):
        raise RefusedError(403, "this key is for other experiments")
    there = await context.registry.call(Experiment.names, context.store)
    taken = RefusedError(409, f"there is an experiment {body.name!r} already")
    if body.name in there:
        raise taken
    check_speed(body.clock)
    said = {**context.opened, **body.model_dump()}
    if body.clock is None:
        said["clock"] = context.opened.get("clock", context.clock)
    try:
        return await context.registry.call(lambda: Experiment.create(context.store, **said))
    except InvalidValueError:
        if body.name in await context.registry.call(Experiment.names, context.store):
            raise taken from None  # somebody else was quicker
        raise


async def apply_change(
    context: ServiceContext, experiment: Experiment, body: models.ExperimentChange, key: Key
) -> None:
    """Make the changes; if a part cannot be done, nothing is changed. Events name the key."""
    change = make_change(
        **body.model_dump(), max_arms=models.MOST_ARMS, by=key.name if key.id else ""
    )
    await context.registry.call(experiment.submit, change)
