"""Errors of the HTTP API: their statuses, and one body for all, `{"error": "sentence"}`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from duelay._core import checks
from duelay.errors import (
    ClockError,
    DuelayError,
    InvalidTypeError,
    InvalidValueError,
    PausedError,
    StoreError,
    UnknownDuelError,
    UnknownExperimentError,
)
from duelay.live import Experiment

_SENTENCES = {
    400: "the body: it is not JSON",
    404: "there is nothing here: /docs shows what there is",
    405: "this address does not take this method: /docs shows what there is",
}
UNKNOWN_FIELD = "unknown_field"  # the type of an error of a body
_LOG = logging.getLogger("duelay.service")
_MOST_NAMES = 10  # of experiments, where there is no such one
_LONGEST = 300  # characters of a sentence, which may repeat what was sent


class RefusedError(DuelayError):
    """A call that is refused, with its status."""

    def __init__(self, status: int, sentence: str, **headers: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def answer(status: int, sentence: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """Return an error as it is sent."""
    return JSONResponse({"error": cut(sentence)}, status, headers)


def refusal_of(error: BaseException) -> RefusedError | None:
    """Return how an error of the library is said over HTTP; None for a fault of the program."""
    if isinstance(error, RefusedError):
        return error
    if isinstance(error, UnknownExperimentError):  # its sentence names other experiments
        return RefusedError(404, "there is no such experiment")
    if isinstance(error, UnknownDuelError):
        return RefusedError(404, str(error))
    if isinstance(error, PausedError):
        is_paused = str(error).partition(":")[0]
        return RefusedError(
            409, f"{is_paused}: PATCH its status to running, or show what you would without it"
        )
    if isinstance(error, ClockError):
        return RefusedError(503, str(error), Retry_After="1")
    if isinstance(error, StoreError):
        return RefusedError(503, "the store does not answer: try again", Retry_After="1")
    if isinstance(error, InvalidValueError | InvalidTypeError):
        return RefusedError(422, str(error))
    return None


def install(app: FastAPI, to_people: Callable[[Request], Any]) -> None:
    """Let an application answer with such errors.

    A page answers with a page: it puts its own function into the scope of the request, as `say`.
    Where the address has no page, `to_people` returns such a function for a browser, and None for a
    program.
    """

    def say(request: Request, *words: Any) -> Response:
        found: Response = request.scope.get("say", answer)(*words)
        return found

    async def known(request: Request, error: Exception) -> Response:
        refusal = refusal_of(error)
        if isinstance(error, UnknownExperimentError) and "name" in request.path_params:
            # Another server may have deleted it, and made another one of that name.
            request.app.state.context.registry.forget(request.path_params["name"])
            try:
                refusal = await _unknown_experiment(request)
            except StoreError as away:
                error, refusal = away, refusal_of(away)
        if refusal is None:
            raise error  # the middleware logs it, and answers with 500
        cause = error.__cause__ if isinstance(error, RefusedError) else error
        if refusal.status >= 500 and cause is not None:
            fields = {"request": request.scope.get("id"), "path": request.url.path}
            _LOG.warning("%s: %s", type(cause).__name__, cause, extra={"fields": fields})
        return say(request, refusal.status, refusal.sentence, refusal.headers)

    app.add_exception_handler(DuelayError, known)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return answer(422, in_words(error.errors()))

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        headers = dict(error.headers or {})
        status = 422 if error.status_code == 400 else error.status_code  # a body of no encoding
        sentence = _SENTENCES.get(error.status_code, error.detail)
        words = {404: "There is nothing at this address.", 405: "This address takes no such form."}
        if status in words and (say_to := to_people(request)) is not None:
            return say_to(status, words[status], headers)  # type: ignore[no-any-return]
        return say(request, status, sentence, headers)

    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)


async def _unknown_experiment(request: Request) -> RefusedError:
    """Return the error for an experiment that is not there; it names those that the key is for."""
    context, key = request.app.state.context, request.scope.get("key")
    there = await context.registry.call(Experiment.names, context.store)
    names = [name for name in there if key is not None and key.covers(name)]
    asked = request.path_params["name"]
    shown = ", ".join(names[:_MOST_NAMES]) + (", ..." if len(names) > _MOST_NAMES else "")
    near = checks.nearest(asked, names)
    return RefusedError(404, f"there is no such experiment{near}; there are: {shown or 'none'}")


def in_words(errors: Any) -> str:
    """Say what is wrong with a body or its parts, the first thing first."""
    first = errors[0]
    if first["type"] == "json_invalid":
        return "the body: it is not JSON"
    where = [str(part) for part in first["loc"] if part not in ("body", "query", "path", "header")]
    if first["type"] == UNKNOWN_FIELD:
        return ".".join([*where, str(first["msg"])])
    name = ".".join(where) or "the body"
    words = first["msg"].removeprefix("Value error, ")
    if first["type"] == "too_short":
        words = f"give at least {first['ctx']['min_length']}"
    words = words[:1].lower() + words[1:]
    more = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
    return f"{name}: {words}{more}"


def cut(sentence: str) -> str:
    """Return a sentence that is not too long, and can be sent."""
    shown = sentence.encode("utf-8", "replace").decode()
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"
