"""Make and change experiments, with the same checks for programs and for forms of the page."""

from __future__ import annotations

from duelay.live import Experiment, LiveStanding
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
    said = body.model_dump()
    try:
        return await context.registry.call(
            lambda: Experiment.create(context.store, **said, **context.opened)
        )
    except ValueError:
        if body.name in await context.registry.call(Experiment.names, context.store):
            raise taken from None  # somebody else was quicker
        raise


async def change(
    context: ServiceContext, experiment: Experiment, body: models.ExperimentChange
) -> None:
    """Make the changes; if a part cannot be done, nothing is changed."""

    def do() -> None:
        _check_arms(experiment.standing(), body)
        if body.status is not None:
            (experiment.pause if body.status == "paused" else experiment.resume)()
        if body.booking is not None:
            hold, release = experiment.hold_booking, experiment.release_booking
            (hold if body.booking == "held" else release)()
        for arm in body.add_arms:
            experiment.add_arm(arm)
        for arm in body.retire_arms:
            experiment.retire_arm(arm)

    await context.registry.call(do)


def _check_arms(standing: LiveStanding, body: models.ExperimentChange) -> None:
    known = {*standing.arms, *body.add_arms}
    there = {arm for arm, is_there in zip(standing.arms, standing.present, strict=True) if is_there}
    for arm in body.retire_arms:
        if arm not in known:
            raise RefusedError(422, f"retire_arms: there is no arm {arm!r}")
    if len((there | set(body.add_arms)) - set(body.retire_arms)) < 2:
        raise RefusedError(422, "retire_arms: two arms must stay")
