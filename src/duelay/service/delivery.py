"""Send the events of webhooks: each address apart from the others, within a time, and nowhere else.

An event loop in a thread sends. Of an answer only the status is read.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import httpx

from duelay._core import checks
from duelay._core.patience import at_least
from duelay.errors import InvalidValueError

TIMEOUT = at_least(10.0)  # seconds that an address has for one event, with all that belongs to it
REACHES = ("public", "loopback", "private")  # each includes the ones before it
_MAX_AT_ONCE = 200  # addresses that are sent to
_HELP = "`duelay serve --private-webhooks` allows it"

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def check_url(url: str, reach: str) -> None:
    """Refuse the address of a webhook that is seen to lead where none may.

    Parameters
    ----------
    url : str
        The address. A host name is not resolved here, but each time something is sent.
    reach : str
        ``"public"`` addresses, also those of this machine (``"loopback"``), or also those of
        private networks (``"private"``).
    """
    try:
        found = httpx.URL(url)
    except (httpx.InvalidURL, ValueError) as error:
        raise InvalidValueError(f"url must be an address of http or https: {error}") from None
    if found.scheme not in ("http", "https") or not found.host:
        raise InvalidValueError("url must be an address of http or https, with a host")
    host = "127.0.0.1" if f".{found.host}".endswith(".localhost") else found.host
    try:
        _check_address(ipaddress.ip_address(host), reach)
    except InvalidValueError:
        raise
    except ValueError:
        return  # a name


def _check_address(address: Address, reach: str) -> None:
    inner = getattr(address, "ipv4_mapped", None) or getattr(address, "sixtofour", None) or address
    is_public = inner.is_global and not inner.is_multicast
    if not (is_public or reach == "private" or (reach == "loopback" and inner.is_loopback)):
        raise InvalidValueError(f"url must not lead to {address}, which is not public: {_HELP}")


class _Loop:
    """An event loop in a thread, with threads for what waits."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        # A name that is slow to resolve keeps its thread for a while.
        self._threads = ThreadPoolExecutor(_MAX_AT_ONCE, thread_name_prefix="duelay-delivery")
        self.loop.set_default_executor(self._threads)
        # No connection is kept: the next name may have the same address.
        self.client = httpx.AsyncClient(
            timeout=TIMEOUT, follow_redirects=False, trust_env=False,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
        )  # fmt: skip
        self._thread = threading.Thread(
            target=self.loop.run_forever, name="duelay-deliveries", daemon=True
        )
        self._thread.start()

    def stop(self, seconds: float) -> None:
        asyncio.run_coroutine_threadsafe(self._finish(seconds), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self.loop.close()

    async def _finish(self, seconds: float) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            _, late = await asyncio.wait(others, timeout=seconds)
            for each in late:
                each.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self.client.aclose()


class Deliverer:
    """Sends to many addresses at one time, and to each in a task of its own."""

    def __init__(self, reach: str = "public") -> None:
        self._reach = checks.one_of("webhooks_to", reach, REACHES)
        self._running: _Loop | None = None
        self._tasks: dict[str, Future[None]] = {}

    def start(self, id: str, task: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start a task under an id, unless there are many, or one of that id goes on."""
        if self._running is None:
            self._running = _Loop()
        self._tasks = {each: running for each, running in self._tasks.items() if not running.done()}
        if id not in self._tasks and len(self._tasks) < _MAX_AT_ONCE:
            self._tasks[id] = asyncio.run_coroutine_threadsafe(task(), self._running.loop)

    def wait(self) -> None:
        """Wait until all tasks have ended; raise what one has raised."""
        for running in list(self._tasks.values()):
            running.result()

    def stop(self, seconds: float) -> None:
        """End, after what is being sent, or after so many seconds."""
        if self._running is not None:
            self._running.stop(seconds)

    async def post(self, url: str, body: bytes, headers: dict[str, str]) -> str:
        """Send a body; return what is wrong, empty where the address has taken it."""
        try:
            async with asyncio.timeout(TIMEOUT):
                status = await self._post(httpx.URL(url), body, headers)
        except TimeoutError:
            return f"it did not answer within {TIMEOUT:g} seconds"
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            return f"{type(error).__name__}: {error}"
        return "" if 200 <= status < 300 else f"it answered {status}"

    async def _post(self, url: httpx.URL, body: bytes, headers: dict[str, str]) -> int:
        found = await asyncio.get_running_loop().getaddrinfo(
            url.host, url.port or (443 if url.scheme == "https" else 80), type=socket.SOCK_STREAM
        )
        places = [str(row[4][0]) for row in found]
        for place in places:
            _check_address(ipaddress.ip_address(place.partition("%")[0]), self._reach)
        headers = {**headers, "Host": url.netloc.decode("ascii"), "Accept-Encoding": "identity"}
        # It is sent to an address that was checked: the name could lead elsewhere by now.
        for place in places[:-1]:
            with contextlib.suppress(httpx.ConnectError):
                return await self._send(url, place, body, headers)
        return await self._send(url, places[-1], body, headers)

    async def _send(self, url: httpx.URL, place: str, body: bytes, headers: dict[str, str]) -> int:
        assert self._running is not None
        there = url.copy_with(host=place)
        sending = self._running.client.stream(
            "POST", there, content=body, headers=headers, extensions={"sni_hostname": url.host}
        )
        async with sending as answer:
            return answer.status_code  # the body is not read
