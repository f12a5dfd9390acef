"""The routes of the HTTP API, and what each of them answers.

Duels are asked and told most often, so two routes are also served by a short cut, which skips the
framework's search for parameters: see `shortcuts`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel, ValidationError
from starlette.routing import Route

from duelay.errors import InvalidValueError, StoreError, UnknownDuelError
from duelay.live import Experiment
from duelay.live.arm_cost import ArmCostReport
from duelay.live.client.protocol import INVALID, UNKNOWN_DUEL
from duelay.live.export import ExportedSettings
from duelay.live.standing import StandingReport, pending_of
from duelay.live.state import ExperimentState, read_arms
from duelay.live.storage.schema import MICRO
from duelay.live.storage.statements import duels_after
from duelay.live.validation import LONGEST, check_word
from duelay.live.writes.group_commit import MAX_GROUP
from duelay.live.writes.metrics import TellMetric
from duelay.live.writes.requests import Ask, LiveDuel, Tell
from duelay.page.incremental import known_alarms
from duelay.planning.report import PlanReport
from duelay.service import admin, models
from duelay.service.auth import Caller, Keeper, Maker, Reader, Teller, check_key, check_nearby
from duelay.service.context import Here, ServiceContext, check_warm
from duelay.service.delivery import check_url
from duelay.service.errors import RefusedError, refusal_of
from duelay.service.experiment_list import find_experiments, read_summaries
from duelay.service.keys import Key
from duelay.service.large_json import LargeJsonResponse, LargeJsonRoute, parse
from duelay.service.registry import ExperimentRegistry
from duelay.service.webhooks import add_hook, list_hooks, remove_hook

B = TypeVar("B", bound=BaseModel)
ROUTES = APIRouter(route_class=LargeJsonRoute)
_MAX_ROWS_PER_ANSWER = 10_000  # of the log, in one answer
_WORDS = {
    401: "no key, or a wrong one",
    403: "the key may not do that",
    404: "there is no such thing",
    409: "not now, or not twice",
    413: "the body is too large",
    422: "what was sent is not right",
    503: "the store does not answer",
}


def _refused(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {
        status: {"model": models.ErrorBody, "description": _WORDS[status]}
        for status in (401, 403, 413, 422, 503, *statuses)
    }


@ROUTES.post("/experiments", status_code=201, response_model=StandingReport,
          responses=_refused(409), tags=["experiments"])  # fmt: skip
async def create(body: models.NewExperiment, context: Here, key: Maker) -> Any:
    """Make an experiment."""
    experiment = await admin.make(context, key, body)
    return await context.registry.call(_report, experiment, 201)


@ROUTES.post("/plan", response_model=PlanReport, responses=_refused(), tags=["experiments"])
async def plan(body: models.NewPlan, request: Request, context: Here, key: Maker) -> Any:
    """Simulate an experiment before it starts: how long until a verdict, and which one.

    It takes some seconds. Two worlds are simulated, the arms as stated and all arms equal. `words`
    of each says how long it takes, `days` until a tenth, half and nine tenths of the experiments
    have a verdict, and `winner`, `equivalent`, `good_enough` and `wrong` the shares of experiments
    with such a verdict `by_days`. Nothing is stored.
    """
    found = await context.planner.plan(body.model_dump(), request.is_disconnected)
    return JSONResponse(found.to_json())


@ROUTES.get("/experiments", response_model=models.Experiments, responses=_refused(),
         tags=["experiments"])  # fmt: skip
async def listed(
    context: Here,
    key: Caller,
    search: Annotated[str, Query(max_length=LONGEST)] = "",
    status: Annotated[
        Literal["running", "paused", "declared", "finished", "archived"] | None, Query()
    ] = None,
    offset: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int | None, Query(ge=1, le=_MAX_ROWS_PER_ANSWER)] = None,
) -> Any:
    """List the experiments, in the order in which they were made.

    `search` is a part of the name. One with a verdict is `declared`, unless it is finished. Those
    that are archived are listed with the status `archived` alone.
    """

    def read() -> Response:
        found = find_experiments(
            context.store, key, search=search, status=status or "", offset=offset, limit=limit
        )
        return LargeJsonResponse({"experiments": read_summaries(context.store, found.names)})

    return await context.registry.call(read)


@ROUTES.get("/experiments/{name}", response_model=StandingReport, responses=_refused(404),
         tags=["experiments"])  # fmt: skip
async def standing(name: str, context: Here, key: Reader) -> Any:
    """Where an experiment stands: who leads, who is declared, counts and estimates."""
    experiment, _ = await context.registry.open(name)
    return await context.registry.call(_report, experiment)


@ROUTES.get("/experiments/{name}/arm-cost", response_model=ArmCostReport,
         responses=_refused(404), tags=["experiments"])  # fmt: skip
async def arm_cost(
    name: str,
    context: Here,
    key: Reader,
    arm: Annotated[str | None, Query(min_length=1, max_length=LONGEST)] = None,
) -> Any:
    """Forecast what a further arm costs: how many more duels, and days, until a verdict.

    `duels` and `days` have the low end, the median and the high end of the difference, `left` those
    of the duels until a verdict with the arm. They are null where nothing can be told, and `words`
    says why. A retired arm, named in `arm`, comes back with its earlier duels.
    """
    experiment, _ = await context.registry.open(name)
    found = await context.registry.call(experiment.cost_of_arm, arm)
    return JSONResponse(found.to_json())


@ROUTES.patch("/experiments/{name}", response_model=StandingReport, responses=_refused(404),
           tags=["experiments"])  # fmt: skip
async def change(name: str, body: models.ExperimentChange, context: Here, key: Keeper) -> Any:
    """Pause, resume, finish, reopen, hold or release booking, let arms come or go."""
    experiment, _ = await context.registry.open(name)
    await admin.apply_change(context, experiment, body, key)
    return await context.registry.call(_report, experiment)


@ROUTES.delete("/experiments/{name}", status_code=204, responses=_refused(404),
            tags=["experiments"])  # fmt: skip
async def remove(name: str, context: Here, key: Keeper) -> Response:
    """Delete an experiment and all its duels."""
    experiment, _ = await context.registry.open(name)
    await context.registry.call(experiment.delete)
    context.registry.forget(name)
    return Response(status_code=204)


def _by_hand(body: type[BaseModel], *headers: str) -> dict[str, Any]:
    """Describe a body and headers that a route reads by itself.

    Duels are asked and told most often: to let the framework find each header, the key and the body
    takes as long as all the rest.
    """
    words = {"type": "string", "minLength": 1, "maxLength": LONGEST - 4}
    return {
        "requestBody": {"content": {"application/json": {"schema": body.model_json_schema()}}},
        "parameters": [
            {"name": name, "in": "header", "required": False, "schema": words} for name in headers
        ],
    }


async def _read(request: Request, kind: type[B]) -> B:
    """Return the body of a request; where it is left out, all its fields are."""
    body = await request.body()
    if not body or body == b"null":
        return kind()
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise RefusedError(422, "the body: it must be JSON, with its Content-Type")
    try:
        found: B = await parse(body, kind.model_validate_json)
        return found
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False)) from None


# Describes the route for OpenAPI: `shortcuts` serves it, by the same function.
@ROUTES.post("/experiments/{name}/duels", response_model=models.DuelAnswer | models.DuelAnswers,
          responses=_refused(404, 409), tags=["duels"],
          openapi_extra=_by_hand(models.Question, "Idempotency-Key", "Authorization"))  # fmt: skip
async def ask(name: str, request: Request) -> Any:
    """Ask for a duel, or for several with `count`.

    With the same Idempotency-Key it is the same duel again.
    """
    context: ServiceContext = request.app.state.context
    await check_key(request, "ask", name)
    question = await _read(request, models.Question)
    own = request.headers.get("idempotency-key") or None
    check_word("unit", question.unit)
    if own is not None and len(own) > LONGEST - 4:
        raise RefusedError(422, f"Idempotency-Key: at most {LONGEST - 4} characters")
    check_word("Idempotency-Key", own)
    if question.count is not None and question.unit is not None:
        raise RefusedError(422, "count: a unit has one open duel, leave count or unit out")
    _, write_queue = await context.registry.open(name)
    asks = [
        Ask(question.unit, own if own is None or not place else f"{own}#{place}")
        for place in range(question.count or 1)
    ]
    await write_queue.submit(*asks)
    found = [_duel(context.registry, name, each.outcome()) for each in asks]
    context.metrics.asks.labels(name).inc(sum(each["id"] is not None for each in found))
    return JSONResponse(found[0] if question.count is None else {"duels": found})


async def _tell(
    context: ServiceContext, id: str, winner: str | None, at: float | None, key: Key,
    metric: str | None = None, arm: str | None = None,
) -> JSONResponse:  # fmt: skip
    """Tell an answer to a duel, or an event, whichever experiment the duel belongs to."""
    _check_text("id", id)
    name = await context.registry.experiment_of(id)
    if not key.covers(name):
        raise RefusedError(404, f"no duel {id!r} has been asked here")
    if not key.may("tell", name):
        raise RefusedError(403, "this key may not tell here")
    experiment, write_queue = await context.registry.open(name)
    request: Tell | TellMetric = experiment.make_tell(id, winner, at)
    if metric is not None:
        request = experiment.make_metric(id, metric, arm, at)
    await write_queue.submit(request)
    status = request.outcome()
    if metric is None:
        context.metrics.tells.labels(status).inc()
    return JSONResponse({"id": id, "status": status})


# Describes the route for OpenAPI: `shortcuts` serves it, by the same function.
@ROUTES.put("/duels/{id}/conversion", response_model=models.Told, responses=_refused(404),
         tags=["duels"],
         openapi_extra=_by_hand(models.Conversion, "Authorization"))  # fmt: skip
async def convert(id: str, request: Request) -> Any:
    """Tell that the first arm of a duel won; telling it twice counts once."""
    key = await check_key(request)
    body = await _read(request, models.Conversion)
    return await _tell(request.app.state.context, id, None, body.at, key)


@ROUTES.put("/duels/{id}/vote", response_model=models.Told, responses=_refused(404),
         tags=["duels"])  # fmt: skip
async def vote(id: str, body: models.Vote, context: Here, key: Caller) -> Any:
    """Tell who won a duel; the first vote stands."""
    return await _tell(context, id, body.winner, body.at, key)


@ROUTES.put("/duels/{id}/metrics/{metric}", response_model=models.Told, responses=_refused(404),
         tags=["duels"])  # fmt: skip
async def tell_metric(id: str, metric: str, body: models.Event, context: Here, key: Caller) -> Any:
    """Tell that the event of a metric followed a duel; telling it twice counts once."""
    return await _tell(context, id, None, body.at, key, metric, body.arm)


@ROUTES.post("/experiments/{name}/answers", response_model=models.AllTold,
             responses=_refused(404), tags=["duels"])  # fmt: skip
async def tell_all(name: str, body: models.Answers, context: Here, key: Teller) -> Any:
    """Tell several answers as the news of one moment: no winner is declared halfway.

    One that is wrong has an `error` in the place of its `status`, and the others count. Its `code`
    is "unknown_duel" or "invalid".
    """
    experiment, write_queue = await context.registry.open(name)
    is_large = len(body.answers) > MAX_GROUP  # such a batch is written alone, and asks wait for it
    async with context.telling if is_large else contextlib.nullcontext():
        tells = await context.registry.call(
            lambda: [_tell_or_error(experiment, each) for each in body.answers]
        )
        await write_queue.submit(*(tell for tell in tells if isinstance(tell, Tell)))
        return await context.registry.call(_tell_results, context, body.answers, tells)


@ROUTES.get("/experiments/{name}/log", response_model=models.Log, responses=_refused(404),
         tags=["duels"])  # fmt: skip
async def log(
    name: str,
    context: Here,
    key: Keeper,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=_MAX_ROWS_PER_ANSWER)] = 1000,
) -> Any:
    """Duels in the order in which they were asked, some at a time; give `next` as `after`.

    The last part says in `experiment` what an export needs besides: when arms came and went, and
    who is declared.
    """
    experiment, _ = await context.registry.open(name)
    return await context.registry.call(_log, experiment, after, limit)


@ROUTES.get("/experiments/{name}/webhooks", response_model=models.Webhooks,
         responses=_refused(404), tags=["webhooks"])  # fmt: skip
async def webhooks(name: str, context: Here, key: Keeper) -> Any:
    """List the addresses that are told of events."""
    experiment, _ = await context.registry.open(name)
    return JSONResponse({"webhooks": await context.registry.call(list_hooks, experiment)})


@ROUTES.post("/experiments/{name}/webhooks", status_code=201, response_model=models.Webhook,
          responses=_refused(404), tags=["webhooks"])  # fmt: skip
async def add_webhook(name: str, body: models.NewWebhook, context: Here, key: Keeper) -> Any:
    """Tell an address of events, such as a verdict or an alarm. Its secret signs them."""
    _check_text("url", body.url)
    check_url(body.url, context.webhooks_to)
    experiment, _ = await context.registry.open(name)
    return JSONResponse(await context.registry.call(add_hook, experiment, body.url), 201)


@ROUTES.delete("/experiments/{name}/webhooks/{id}", status_code=204, responses=_refused(404),
            tags=["webhooks"])  # fmt: skip
async def remove_webhook(name: str, id: str, context: Here, key: Keeper) -> Response:
    """Tell an address no more."""
    _check_text("id", id)
    experiment, _ = await context.registry.open(name)
    if not await context.registry.call(remove_hook, experiment, id):
        raise RefusedError(404, f"no webhook {id!r} here")
    return Response(status_code=204)


@ROUTES.get("/healthz", responses={503: {"model": models.ErrorBody}}, tags=["running it"])
async def health(context: Here) -> Any:
    """Whether kernels are compiled and the store answers."""
    check_warm(context)
    try:
        await asyncio.wait_for(context.registry.call(context.store.need), 5.0)
    except (StoreError, TimeoutError) as error:
        raise RefusedError(503, "the store does not answer", Retry_After="1") from error
    return JSONResponse({"status": "ok"})


@ROUTES.get("/metrics", response_class=PlainTextResponse, tags=["running it"])
async def numbers(context: Here, request: Request) -> Response:
    """Numbers for Prometheus."""
    if context.keys.is_empty and not context.needs_key:
        check_nearby(request)
    for name, write_queue in context.registry.write_queues:
        while write_queue.sizes:
            context.metrics.groups.observe(write_queue.sizes.popleft())
        state = write_queue.writer.state
        if state is not None:
            age = write_queue.writer.clock() - state.head["settled"] / MICRO
            context.metrics.evidence.labels(name).set(max(age, 0.0))
            context.metrics.pending.labels(name).set(int(pending_of(state).sum()))
    return Response(context.metrics.text(), media_type="text/plain; version=0.0.4")


def _tell_results(
    context: ServiceContext, answers: list[models.Answer], tells: list[Tell | InvalidValueError]
) -> Response:
    found: list[dict[str, Any]] = []
    statuses: Counter[str] = Counter()
    for each, tell in zip(answers, tells, strict=True):
        error = tell.error if isinstance(tell, Tell) else tell
        if error is not None and refusal_of(error) is None:
            raise error
        status = str(tell.result) if isinstance(tell, Tell) and error is None else "refused"
        statuses[status] += 1
        code = UNKNOWN_DUEL if isinstance(error, UnknownDuelError) else INVALID
        said = {"status": status} if error is None else {"error": str(error), "code": code}
        found.append({"id": each.id, **said})
    for status, n in statuses.items():
        context.metrics.tells.labels(status).inc(n)
    return LargeJsonResponse({"answers": found})


def _tell_or_error(experiment: Experiment, answer: models.Answer) -> Tell | InvalidValueError:
    try:
        return experiment.make_tell(answer.id, answer.winner, answer.at)
    except InvalidValueError as error:
        return error


def shortcuts() -> list[Route]:
    """Return routes for asks and conversions that skip the framework's search for parameters.

    They come before the framework's routes of the same addresses, and call the same functions.
    """

    def route(path: str, method: str, parameter: str, call: Any) -> Route:
        async def handle(request: Request) -> Response:
            request.scope["route"] = found
            answer: Response = await call(request.path_params[parameter], request)
            return answer

        found = Route(path, handle, methods=[method])
        return found

    return [
        route("/experiments/{name}/duels", "POST", "name", ask),
        route("/duels/{id}/conversion", "PUT", "id", convert),
    ]


def _check_text(name: str, value: str | None) -> None:
    if value is not None and ("\0" in value or len(value) > 2000):
        raise RefusedError(422, f"{name}: it must have no NUL character, and be shorter")


def _duel(registry: ExperimentRegistry, name: str, found: LiveDuel) -> dict[str, Any]:
    if found.id is not None:
        registry.remember(found.id, name)
    return found.to_json()


def _report(experiment: Experiment, status: int = 200) -> Response:
    """Return the standing with alarms found before; to run the tests takes too long for a call."""
    standing = experiment.standing().with_alarms(known_alarms(experiment))
    return LargeJsonResponse(StandingReport.of(standing).to_json(), status)


def _log(experiment: Experiment, after: int, limit: int) -> Response:
    columns = ("number", "id", "first", "second", "asked", "told", "late", "first_won", "unit",
               "enters")  # fmt: skip
    with experiment.reading() as (connection, head):
        arms = read_arms(connection, head["id"])
        rows = connection.execute(
            duels_after(*columns),
            {"experiment": head["id"], "after": after, "n": limit},
        ).mappings()
        found = [models.log_row(row, arms) for row in rows]
        last = found[-1]["number"] if len(found) == limit else None
        state = ExperimentState.load(connection, head) if last is None else None
    about = None if state is None else ExportedSettings.of(state).to_json()
    return LargeJsonResponse({"duels": found, "next": last, "experiment": about})
