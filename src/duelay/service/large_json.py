"""Large JSON: bodies are parsed, and answers written, in threads and piece by piece.

The event loop serves all callers. While it parses a megabyte, none of the others is answered; nor
are they during one long call of the encoder in a thread, which would keep the interpreter.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute

MAX_BYTES_IN_LOOP = 20_000  # of a body that the event loop parses by itself


async def parse(body: bytes, read: Callable[[bytes], Any]) -> Any:
    """Return what `read` makes of a body, in a thread where it is large."""
    return await asyncio.to_thread(read, body) if len(body) > MAX_BYTES_IN_LOOP else read(body)


class _LargeRequest(Request):
    async def json(self) -> Any:
        """Return the body as JSON."""
        if not hasattr(self, "_json"):
            self._json = await parse(await self.body(), json.loads)
        return self._json


class LargeJsonRoute(APIRoute):
    """A route whose body may be large."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            return await handle(_LargeRequest(request.scope, request.receive))

        return answer


class LargeJsonResponse(JSONResponse):
    """An answer that may be large: it is to be made in a thread."""

    def render(self, content: Any) -> bytes:
        """Return the JSON, written row by row: other threads go on in between."""
        return _write(content).encode("utf-8", "replace")


def _write(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{_write(str(key))}:{_write(value[key])}" for key in value) + "}"
    if isinstance(value, list | tuple) and value and isinstance(value[0], list | tuple | dict):
        return "[" + ",".join(map(_write, value)) + "]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
