"""What a server acknowledged is there, once, whatever is killed.

DUELAY_KILLS says how often; CONTRIBUTING.md has a command that kills more often.
"""

import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from duelay.live import Experiment, StoreError, connect
from duelay.live.client.clients import RemoteExperiment
from live.crowd import WINDOW, check
from live.worker import EXPERIMENTS, Thread, read_lines
from service.served import ENVIRONMENT, free_port, is_well, wait_until

KILLS = int(os.environ.get("DUELAY_KILLS", "5"))
PROGRAM = Path(__file__).with_name("forked.py")
N_CLIENTS = 8

pytestmark = pytest.mark.long


class Servers:
    """Servers of one store, which can be killed and started again."""

    def __init__(self, store, folder, n=1):
        for name in EXPERIMENTS:
            Experiment.create(
                store, name, ["red", "green", "blue"], goal=name, window=WINDOW, share=1.0
            ).close()
        self._errors = (folder / "errors").open("w+")
        path = os.pathsep.join([str(PROGRAM.parents[1]), os.environ.get("PYTHONPATH", "")])
        self._program = subprocess.Popen(
            [sys.executable, PROGRAM, store], text=True, bufsize=1, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self._errors,
            env=os.environ | ENVIRONMENT | {"PYTHONPATH": path},
        )  # fmt: skip
        self.ports = [free_port() for _ in range(n)]
        self.urls = [f"http://127.0.0.1:{port}" for port in self.ports]
        for port in self.ports:
            self.do("start", port)
        for url in self.urls:
            wait_until(lambda url=url: is_well(url))

    def do(self, command, port):
        """Start, kill or stop one."""
        self._program.stdin.write(f"{command} {port}\n")
        return self._program.stdout.readline().strip()

    def finish(self):
        """Stop them; nothing went wrong in any."""
        codes = {self.do("stop", port) for port in self.ports}
        self._errors.seek(0)
        assert codes <= {"0", "-15"} and "Traceback" not in self._errors.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._program.stdin.close()
        self._program.wait(timeout=300)
        self._program.stdout.close()
        self._errors.close()


class Either:
    """An experiment of several servers: where one does not answer, the next call is to another."""

    def __init__(self, experiments):
        self._experiments = experiments

    def ask(self, **said):
        return self._do(lambda each: each.ask(**said))

    def tell(self, id):
        return self._do(lambda each: each.tell(id))

    def _do(self, call):
        try:
            return call(self._experiments[0])
        except StoreError:
            self._experiments = self._experiments[1:] + self._experiments[:1]
            raise


class Clients:
    """Threads that ask and tell over HTTP, and write down what was acknowledged."""

    def __init__(self, urls, folder, patience=30.0):
        self.folder, self.stop, self.errors = folder, threading.Event(), []
        folder.mkdir()
        self._threads = [threading.Thread(target=self._run, args=(urls, n, patience))
                         for n in range(N_CLIENTS)]  # fmt: skip
        for thread in self._threads:
            thread.start()

    def _run(self, urls, n, patience):
        shifted = urls[n % len(urls) :] + urls[: n % len(urls)]
        services = [connect(url, patience=patience) for url in shifted]
        name = EXPERIMENTS[n // len(urls) % 2]
        remote = Either([RemoteExperiment(service, name) for service in services])
        caller = Thread(remote, self.folder, "ab"[n // 4], n % 4)
        try:
            while not self.stop.is_set():
                caller.step()
            for id in caller.waiting:
                caller.tell(id)
        except Exception as error:
            self.errors.append(error)
        finally:
            os.close(caller.out)
            for service in services:
                service.close()

    def n_told(self):
        lines = [words for file in self.folder.glob("?-?") for words in read_lines(file)]
        return sum(words[:1] == ["told"] for words in lines)

    def wait_for_more(self, n=20):
        before = self.n_told()
        wait_until(lambda: self.n_told() >= before + n or self.errors)

    def finish(self):
        self.stop.set()
        for thread in self._threads:
            thread.join()
        assert self.errors == []


@pytest.mark.timeout(1500 + 60 * KILLS)
def test_what_a_server_acknowledged_before_it_was_killed_is_there_once(store, tmp_path):
    with Servers(store, tmp_path) as servers:
        clients = Clients(servers.urls, tmp_path / "acknowledged")
        try:
            for _ in range(KILLS):
                clients.wait_for_more(random.randint(20, 40))
                assert servers.do("kill", servers.ports[0]) == "-9"
                assert servers.do("start", servers.ports[0]) == "started"
            clients.wait_for_more()
        finally:
            clients.finish()
        servers.finish()
    counts = check(store, clients.folder)
    print(counts)
    assert counts["asked"] > 20 * KILLS


@pytest.mark.timeout(1500 + 60 * KILLS)
def test_where_one_of_two_servers_is_killed_the_other_goes_on(postgresql, tmp_path):
    with postgresql.database() as store, Servers(store, tmp_path, n=2) as servers:
        clients = Clients(servers.urls, tmp_path / "acknowledged", patience=0.2)
        try:
            for kill in range(min(KILLS, 10)):
                clients.wait_for_more()
                port = servers.ports[kill % 2]
                assert servers.do("kill", port) == "-9"
                clients.wait_for_more()
                assert servers.do("start", port) == "started"
                wait_until(lambda url=servers.urls[kill % 2]: is_well(url))
        finally:
            clients.finish()
        servers.finish()
        counts = check(store, clients.folder)
        print(counts)
        assert counts["asked"] > 40
