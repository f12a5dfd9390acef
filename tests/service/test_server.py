"""`duelay serve`, as somebody types it: it starts, says what it does, and stops in good order."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import types
from contextlib import closing

import httpx
import pytest

from duelay.live import Experiment, Store, StoreError, connect, verify
from duelay.service.keys import create_key
from duelay.service.server import address_of, check_host, open_page
from service.served import ENVIRONMENT, LONG, Server, free_port, wait_until

pytestmark = pytest.mark.long
ARMS = ["red", "green", "blue"]


class Load:
    """Clients that ask and tell until a server does not answer; what it acknowledged is kept."""

    def __init__(self, url, n=6):
        self.url, self.asked, self.told = url, [], []
        self._threads = [threading.Thread(target=self._run) for _ in range(n)]
        for thread in self._threads:
            thread.start()

    def _run(self):
        with connect(self.url, patience=0.0) as service:
            experiment = service.open("buttons")
            try:
                while True:
                    duel = experiment.ask()
                    self.asked.append(duel.id)
                    if len(self.asked) % 3:
                        self.told.append((duel.id, experiment.tell(duel)))
            except StoreError:
                pass

    def join(self):
        for thread in self._threads:
            thread.join()


@pytest.mark.parametrize(("how", "workers"), [("SIGTERM", 1), ("SIGINT", 1), ("SIGTERM", 2)])
def test_it_stops_under_load_and_loses_nothing_that_was_acknowledged(url, tmp_path, how, workers):
    Experiment.create(url, "buttons", ARMS, share=1.0).close()
    with Server(url, tmp_path, "--workers", str(workers)) as server:
        load = Load(server.url)
        wait_until(lambda: len(load.told) > 50)
        status = server.stop(getattr(signal, how))
        load.join()
    assert status in (0, -getattr(signal, how)), server.log
    with closing(Store(url)) as store:
        rows = {row.id: row for row in _duels(store)}
        assert set(load.asked) <= set(rows)
        assert {status for _, status in load.told} == {"counted"}
        assert all(rows[id].told is not None for id, _ in load.told)
        # What was not acknowledged may be there, no more than one of each client.
        assert len(rows) <= len(load.asked) + 6
        assert verify(store) == ()
    assert "fault" not in server.log and "Traceback" not in server.log


def _duels(store):
    from sqlalchemy import select

    from duelay.live.storage import schema

    with store.reading() as connection:
        return connection.execute(select(schema.duels)).all()


def test_it_says_what_it_does_and_logs_lines_of_json(url, tmp_path):
    with Server(url, tmp_path) as server:
        httpx.get(f"{server.url}/experiments", headers={"X-Request-ID": "mine"}, timeout=LONG)
        answered = httpx.get(f"{server.url}/docs", timeout=LONG)
    said, lines = [], []
    for line in server.log.splitlines():
        (lines if line.startswith("{") else said).append(line)
    assert said == [
        f"duelay: serving {url} at {server.url}, see /docs",
        f"duelay: the page is at {server.url}/",
        "duelay: there is no key: it listens on this machine alone",
    ]
    found = [json.loads(line) for line in lines]
    assert [each["path"] for each in found if each.get("request") == "mine"] == ["/experiments"]
    assert "server" not in answered.headers


def test_two_workers_add_up_their_numbers(url, tmp_path):
    Experiment.create(url, "buttons", ARMS).close()
    with Server(url, tmp_path, "--workers", "2", "--log-level", "warning") as server:
        for _ in range(40):  # each has a connection of its own, so that both workers have some
            httpx.post(f"{server.url}/experiments/buttons/duels", timeout=LONG)
        shown = {httpx.get(f"{server.url}/metrics", timeout=LONG).text for _ in range(4)}
    for each in shown:
        assert 'duelay_asks_total{experiment="buttons"} 40.0' in each
    assert '"request"' not in server.log


def test_all_workers_know_who_is_signed_in(url, tmp_path):
    Experiment.create(url, "buttons", ARMS).close()
    key = create_key(url, "k", ["administer"])
    with Server(url, tmp_path, "--workers", "2", "--log-level", "warning") as server:
        with httpx.Client(base_url=server.url, timeout=LONG) as client:
            client.post("/login", data={"key": key, "next": "/"})
            cookies = dict(client.cookies)
        for _ in range(20):  # each has a connection of its own, so that both workers have some
            answered = httpx.get(f"{server.url}/keys", cookies=cookies, timeout=LONG)
            assert answered.status_code == 200, answered.headers
    assert "DUELAY_SECRET" not in os.environ


def test_the_page_of_a_real_server_polls_and_changes(url, tmp_path):
    Experiment.create(url, "buttons", ARMS).close()
    with Server(url, tmp_path) as server, httpx.Client(base_url=server.url, timeout=LONG) as client:
        assert client.get("/").status_code == 200
        text = client.get("/e/buttons", headers={"HX-Request": "true"}).text
        seen = text.split('name="seen" value="')[1].split('"')[0]
        assert client.post("/experiments/buttons/duels").status_code == 200

        def has_changed():
            path = f"/e/buttons?seen={seen}"
            return client.get(path, headers={"HX-Request": "true"}).status_code == 200

        wait_until(has_changed)
    assert "fault" not in server.log and "Traceback" not in server.log


@pytest.mark.parametrize("listens", [True, False])
def test_a_browser_is_opened_once_somebody_listens_and_not_for_ever_waited_for(
    monkeypatch, listens
):
    opened, slept, port = [], [], free_port()

    def sleep(seconds):
        """Let time pass; after two tries somebody listens."""
        slept.append(seconds)
        assert not opened
        if listens and len(slept) == 2:
            stack.enter_context(socket.create_server(("127.0.0.1", port)))

    monkeypatch.setattr("duelay.service.server.webbrowser.open", opened.append)
    monkeypatch.setattr("duelay.service.server._OPENS", 60.0)
    clock = types.SimpleNamespace(monotonic=lambda: sum(slept), sleep=sleep)
    monkeypatch.setattr("duelay.service.server.time", clock)
    with contextlib.ExitStack() as stack:
        open_page("127.0.0.1", port).join()
    assert opened == [f"http://127.0.0.1:{port}/"] * listens
    assert len(slept) == 2 if listens else sum(slept) == pytest.approx(60.0, abs=0.2)


def test_the_address_of_the_page_is_one_that_a_browser_takes():
    assert address_of("127.0.0.1", 80) == "http://127.0.0.1:80"
    assert address_of("0.0.0.0", 80) == "http://127.0.0.1:80"
    assert address_of("::", 80) == "http://[::1]:80"
    assert address_of("10.0.0.1", 80) == "http://10.0.0.1:80"


def run(*words, **environment):
    return subprocess.run(
        [sys.executable, "-m", "duelay", *words], capture_output=True, text=True, timeout=LONG,
        env=os.environ | ENVIRONMENT | environment, check=False,
    )  # fmt: skip


def test_without_a_key_it_refuses_to_listen_for_others(url):
    done = run("serve", "--store", url, "--host", "0.0.0.0", "--port", str(free_port()))
    assert done.returncode == 2 and "serving" not in done.stderr
    assert "host must be of this machine alone" in done.stderr
    assert "duelay key create" in done.stderr


def test_only_loopback_is_this_machine_alone(url):
    for host in ("0.0.0.0", "::", "example.org", "10.0.0.1", "", "127.0.0.1.example.org"):
        with pytest.raises(ValueError, match="^host "):
            check_host(Store(url), host)
    for host in ("127.0.0.1", "::1", "localhost", "127.1.2.3"):
        check_host(Store(url), host)


def test_with_a_key_it_listens_for_others_and_needs_it(url, tmp_path):
    key = create_key(url, "k")
    with Server(url, tmp_path, "--host", "0.0.0.0") as server:
        assert httpx.get(f"{server.url}/experiments", timeout=LONG).status_code == 401
        headers = {"Authorization": f"Bearer {key}"}
        found = httpx.get(f"{server.url}/experiments", headers=headers, timeout=LONG)
        assert found.status_code == 200
    assert "there is no key" not in server.log and key not in server.log


def test_a_port_that_is_taken_is_a_sentence(url):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("serve", "--store", url, "--port", str(port))
    assert done.returncode == 1 and f"port {port}" in done.stderr and "--port" in done.stderr
    assert not any(line.startswith("{") for line in done.stderr.splitlines())


def test_a_short_secret_is_a_sentence(url):
    done = run("serve", "--store", url, "--port", str(free_port()), DUELAY_SECRET="short")
    assert done.returncode == 2 and "DUELAY_SECRET must have at least 16" in done.stderr


def test_a_store_that_does_not_answer_is_a_sentence_without_its_password():
    address = "postgresql+psycopg://me:hidden@127.0.0.1:9/duels"
    done = run("serve", "--store", address, "--port", str(free_port()))
    assert done.returncode == 1 and "does not answer" in done.stderr
    assert "Traceback" not in done.stderr and "hidden" not in done.stderr
