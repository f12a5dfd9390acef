"""A real `duelay serve`, for tests: on loopback, at a port that is free."""

import os
import signal
import socket
import subprocess
import sys
import time

import httpx

from duelay.live.writes.group_commit import Committer

LONG = 300.0  # seconds that a busy machine may take to answer
ENVIRONMENT = {"NUMBA_DISABLE_JIT": "1", "OPENBLAS_NUM_THREADS": "1"}


class CallingCommitter(Committer):
    """Calls a function with each group."""

    def __init__(self, function, *most):
        super().__init__(*most)
        self.commit_with = function

    def commit(self, group):
        self.commit_with(group)


def free_port():
    """Return a port that nobody listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def wait_until(is_so, seconds=300.0, every=0.05):
    """Wait until something is so."""
    until = time.monotonic() + seconds
    while not (found := is_so()):
        assert time.monotonic() < until, f"not within {seconds:g} seconds"
        time.sleep(every)
    return found


def is_well(url):
    """Whether a server says that it can serve."""
    try:
        return httpx.get(f"{url}/healthz", timeout=60.0).status_code == 200
    except httpx.TransportError:
        return False


class Server:
    """A server as somebody types it; its log is in a file."""

    def __init__(self, store, folder, *options, port=None):
        self.port = free_port() if port is None else port
        self.url = f"http://127.0.0.1:{self.port}"
        self._log = folder / f"log-{self.port}"
        self._errors = self._log.open("a")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "duelay", "serve", "--store", store, "--port", str(self.port),
             *options],
            stdout=subprocess.PIPE, stderr=self._errors, stdin=subprocess.DEVNULL,
            env=os.environ | ENVIRONMENT, start_new_session=True,
        )  # fmt: skip

    def wait(self):
        """Wait until it serves."""
        wait_until(lambda: self.process.poll() is not None or is_well(self.url))
        assert self.process.poll() is None, self.log
        return self

    def stop(self, how=signal.SIGTERM):
        """Stop it in good order, or kill it; return its status."""
        self.process.send_signal(how)
        return self.process.wait(timeout=300)

    @property
    def log(self):
        """What it has written."""
        return self._log.read_text()

    def __enter__(self):
        return self.wait()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()
        self.process.stdout.close()
        self._errors.close()
