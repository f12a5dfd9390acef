"""Middleware of all requests: ids, the limit of the size, times, and the log as JSON lines."""

from __future__ import annotations

import json
import logging
import re
import secrets
import sys
import time
from collections.abc import Callable
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from duelay.service.errors import answer
from duelay.service.metrics import Metrics

LARGEST = 1_000_000  # bytes of a body
_ID = re.compile(r"[\w.:/+=-]{1,100}")
_LOG = logging.getLogger("duelay.service")


class TooLargeError(HTTPException):
    """A body is larger than the service takes."""

    def __init__(self) -> None:
        super().__init__(413, f"a body must be at most {LARGEST:,} bytes")


class RequestMiddleware:
    """Limits, ids, times and logs."""

    def __init__(self, app: ASGIApp, metrics: Metrics, to_people: Callable[[Request], Any]) -> None:
        self.app, self.metrics, self._to_people = app, metrics, to_people

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        given = headers.get(b"x-request-id", b"").decode("latin-1")
        id = scope["id"] = given if _ID.fullmatch(given) else secrets.token_hex(8)
        start, status, size, is_begun = time.perf_counter(), 500, 0, False

        async def limited() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > LARGEST:
                raise TooLargeError
            return message

        async def marked(message: Message) -> None:
            nonlocal status, is_begun
            if message["type"] == "http.response.start":
                status, is_begun = message["status"], True
                message["headers"] = [*message["headers"], (b"x-request-id", id.encode())]
            await send(message)

        try:
            length = headers.get(b"content-length", b"0")
            if length.isdigit() and int(length[:20]) > LARGEST:
                raise TooLargeError
            await self.app(scope, limited, marked)
        except TooLargeError as error:  # by its header; without one, the application answers
            say = scope.get("say") or self._to_people(Request(scope)) or answer
            await say(error.status_code, error.detail)(scope, receive, marked)
        except ClientDisconnect:
            status = 499  # as other servers log it: the client has gone away
        except Exception:
            _LOG.exception("a fault", extra={"fields": {"request": id, "path": scope["path"]}})
            if is_begun:
                raise
            say = scope.get("say", answer)  # a page has its own way
            await say(500, f"something went wrong here: the log has it, under {id}")(
                scope, receive, marked
            )
        finally:
            taken = time.perf_counter() - start
            route = getattr(scope.get("route"), "path", "none")
            self.metrics.seconds.labels(route, str(status)).observe(taken)
            if _LOG.isEnabledFor(logging.INFO):
                _LOG.info("request", extra={"fields": {
                    "request": id, "method": scope["method"], "path": scope["path"],
                    "status": status, "milliseconds": round(1000 * taken, 2),
                }})  # fmt: skip


class JsonLineFormatter(logging.Formatter):
    """A line of JSON for each thing that is logged."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields: dict[str, Any] = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            fields["trace"] = self.formatException(record.exc_info)
        return json.dumps(fields)


def log_lines(level: str = "INFO") -> None:
    """Let the service and its server write JSON lines on standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLineFormatter())
    for name in ("duelay", "uvicorn", "uvicorn.error"):
        log = logging.getLogger(name)
        log.handlers, log.propagate = [handler], False
        log.setLevel(level)
    logging.getLogger("uvicorn.access").handlers = []
    logging.getLogger("uvicorn.access").propagate = False
