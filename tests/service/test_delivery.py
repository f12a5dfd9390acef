"""Webhooks at addresses that are slow, large, hostile or private."""

import asyncio
import contextlib
import gzip
import socket
import threading

import pytest

from duelay.live import Experiment
from duelay.service import delivery, webhooks
from duelay.service.background_worker import BackgroundWorker
from duelay.service.delivery import Deliverer, check_url
from service.served import wait_until
from service.test_webhooks import ARMS, happen, hooks_of, local, receiver  # noqa: F401


class Odd:
    """A server that reads what it is sent, and then does something odd with the connection."""

    def __init__(self, do):
        self.do, self.asked, self.is_over = do, [], threading.Event()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}/hook"
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self):
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection):
        with connection, contextlib.suppress(OSError):
            self.asked.append(connection.recv(65536))
            self.do(self, connection)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for thread in self._threads:
            thread.join()


def post(deliverer, url):
    """Send something, and return what is wrong."""
    found = []

    async def send():
        found.append(await deliverer.post(url, b"{}", {}))

    deliverer.start("one", send)
    deliverer.wait()
    return found[0]


@pytest.fixture
def deliverer():
    made = Deliverer("loopback")
    yield made
    made.stop(60.0)


def test_of_an_answer_only_the_status_is_read(deliverer):
    """A body that is packed and has no end is never unpacked, nor waited for."""

    def answer(server, connection):
        bomb = gzip.compress(b"\0" * 10_000_000)
        head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head)
        with contextlib.suppress(OSError):
            while not server.is_over.is_set():
                connection.sendall(b"%x\r\n%b\r\n" % (len(bomb), bomb))

    with Odd(answer) as odd:
        assert post(deliverer, odd.url) == ""
        wait_until(lambda: len(odd._threads) == 2 and not odd._threads[1].is_alive())  # hung up
    assert b"Accept-Encoding: identity" in odd.asked[0]


def drip(server, connection):
    """Send the head of an answer byte by byte, for ever: no pause is long."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    while not server.is_over.wait(0.01):
        connection.sendall(b"x")


def say_nothing(server, connection):
    server.is_over.wait()


@pytest.mark.parametrize("do", [drip, say_nothing])
def test_a_delivery_has_an_end_however_its_address_behaves(deliverer, monkeypatch, do):
    monkeypatch.setattr(delivery, "TIMEOUT", 0.3)
    with Odd(do) as odd:
        assert "within 0.3 seconds" in post(deliverer, odd.url)


@pytest.mark.parametrize("do", [drip, say_nothing])
def test_a_slow_address_delays_no_other(local, receiver, do):  # noqa: F811
    """Others are told of event after event while it is still being waited for."""
    experiment = Experiment.create(local, "buttons", ARMS)
    with Odd(do) as odd:
        for _ in range(20):
            webhooks.add_hook(experiment, odd.url)
        webhooks.add_hook(experiment, receiver.url)
        watcher = BackgroundWorker(local, every=0.01, webhooks_to="loopback")
        watcher.start()
        for n in range(5):
            happen(experiment, str(n))
            wait_until(lambda: receiver.told[-1:] == [("alarm", str(n))])  # noqa: B023
        assert len(odd.asked) == 20  # one delivery at a time to each
        assert {row.trouble for row in hooks_of(local)} == {None}
        odd.is_over.set()
        watcher.stop()


# Where it may be sent.

PRIVATE = ["10.0.0.1", "192.168.1.1", "172.16.0.9", "169.254.169.254", "[fd00::1]", "0.0.0.0",
           "[fe80::1]", "[::ffff:10.0.0.1]", "[2002:a00:1::]",
           "224.0.0.1", "100.64.0.1"]  # fmt: skip
LOOPBACK = ["127.0.0.1", "127.9.9.9", "[::1]", "[::ffff:127.0.0.1]", "localhost", "a.localhost"]


@pytest.mark.parametrize("host", [*PRIVATE, *LOOPBACK])
@pytest.mark.parametrize("reach", delivery.REACHES)
def test_an_address_that_is_not_public_is_refused_unless_it_is_allowed(host, reach):
    check_url("https://example.org/x", reach)
    check_url("http://8.8.8.8/x", reach)
    if reach == "private" or (reach == "loopback" and host in LOOPBACK):
        check_url(f"http://{host}:8000/x", reach)
    else:
        with pytest.raises(ValueError, match="url must not lead to"):
            check_url(f"http://{host}:8000/x", reach)


@pytest.mark.parametrize("url", ["ftp://example.org", "http://", "file:///etc/x", "x"])
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(ValueError, match="url"):
        check_url(url, "private")


def test_a_name_that_leads_to_a_private_address_is_not_called(receiver, monkeypatch):  # noqa: F811
    """What is connected to is what was checked, and so a name cannot change in between."""
    found, port = [["127.0.0.1"]], receiver.url.split(":")[2].split("/")[0]

    async def resolve(self, host, port, **_):
        assert host == "hooks.example"
        return [(0, 0, 0, "", (place, port)) for place in found[0]]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", resolve)
    for reach, wrong in (("public", True), ("loopback", False), ("private", False)):
        deliverer = Deliverer(reach)
        said = post(deliverer, f"http://hooks.example:{port}/x")
        assert ("must not lead to" in said) == wrong
        assert len(receiver.received) == (0 if wrong else 1)
        if not wrong:
            assert receiver.received.pop()[0]["Host"] == f"hooks.example:{port}"
        deliverer.stop(60.0)
    found[0] = ["127.0.0.1", "10.0.0.1"]  # one bad address is enough
    deliverer = Deliverer("loopback")
    assert "must not lead to 10.0.0.1" in post(deliverer, f"http://hooks.example:{port}/x")
    deliverer.stop(60.0)
    assert receiver.received == []


def test_a_redirect_is_not_followed(deliverer, receiver):  # noqa: F811
    receiver.answers = [302]
    assert post(deliverer, receiver.url) == "it answered 302"
    assert len(receiver.received) == 1


def test_a_webhook_is_refused_where_it_is_made(client, serve, url):
    public = serve(url, webhooks_to="public")
    for address in ("http://127.0.0.1:9/x", "http://169.254.169.254/latest", "http://localhost/"):
        made = public.post("/experiments/buttons/webhooks", json={"url": address})
        assert made.status_code == 422 and "--private-webhooks" in made.json()["error"]
    assert public.get("/experiments/buttons/webhooks").json() == {"webhooks": []}
    with pytest.raises(ValueError, match="webhooks_to"):
        serve(url, webhooks_to="anywhere")
