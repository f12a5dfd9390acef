"""A store: a database that many processes share. SQLite in a file, or PostgreSQL.

With SQLite one process writes at a time, whatever it writes; with PostgreSQL one process an
experiment. A writer sees all that was written before. A commit is on the disk when it is
done: SQLite has a write-ahead log and `synchronous=FULL`.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import math
import os
import random
import sqlite3
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, event, func, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, InvalidatePoolError, SQLAlchemyError

from duelay._core import forks
from duelay._core.extras import need
from duelay._core.patience import at_least
from duelay.errors import InvalidValueError, StoreError
from duelay.live.clock import wall
from duelay.live.storage.statements import DATABASE_TIME
from duelay.live.storage.watchdog import Watchdog

_HERE = Path(__file__).parents[1]
_SUCH_AS = "'sqlite:///duels.db' or 'postgresql+psycopg://user@host/name'"
_CACHE = -64_000  # kibibytes of pages that SQLite keeps in memory, for each connection
VERSIONS = "duelay_version"  # the table of the revision; `alembic_version` may be another program's
_LOCK = 0x6475656C6179  # of PostgreSQL, held while tables are made
_PAUSE = 0.002  # seconds between two tries to write, at the most
_PATIENCE = at_least(30.0)  # seconds that a file which somebody else is writing to is waited for
_CONNECTS = at_least(10.0)  # seconds for which a connection to PostgreSQL is waited for
# Of PostgreSQL: a canceled statement, a lock that is not to be had, a primary that is read-only;
# and classes of errors: of the connection, of transactions that meet, of resources, of the system.
_TEMPORARY = {"57014", "57P01", "57P02", "57P03", "55P03", "25006", "25P03"}
_TEMPORARY_CLASSES = {"08", "40", "53", "58"}
_LEAST = 1.0  # seconds that a transaction has, however little patience there is
_WATCHDOG = Watchdog()
_UNTIL = contextvars.ContextVar("_UNTIL", default=math.inf)  # when the patience of a call ends
_FileId = tuple[int, int]  # device and inode
_STORES: weakref.WeakValueDictionary[int, Store] = weakref.WeakValueDictionary()  # of this process
_BUSY = ("database is locked", "database table is locked", "database is busy")


class Store:
    """A database with experiments. Threads may share one; a forked process opens it again.

    Parameters
    ----------
    url : str or Path
        The address, such as ``"sqlite:///duels.db"``, or the path of an SQLite file.
    """

    def __init__(self, url: str | Path) -> None:
        self.url = _check_url(url)
        self._engine: Engine | None = None
        self._file: _FileId | None = None  # of the open SQLite file
        self._log: _FileId | None = None  # of its write-ahead log, as long as it is open
        _STORES[id(self)] = self
        self._is_torn = False  # whether this process was forked in the middle of a write
        self._lock = forks.lock(self)  # around writes of this process, so that they take turns

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file of SQLite."""
        return self.url.get_backend_name() == "sqlite"

    @property
    def path(self) -> Path | None:
        """The file, of SQLite."""
        return Path(str(self.url.database)) if self.is_sqlite else None

    @property
    def name(self) -> str:
        """Its address, without a password."""
        return self.url.render_as_string(hide_password=True)

    @property
    def engine(self) -> Engine:
        """SQLAlchemy's engine of this process."""
        engine = self._engine
        if engine is None:
            with self._lock:  # another thread may be making it
                engine = self._engine or _make_engine(self.url)
                if self._engine is None:
                    self._engine = engine
                    weakref.finalize(self, _let_go, engine, os.getpid())
        return engine

    def _forked(self, is_whole: bool) -> None:
        """In a child process: leave the connections to the parent.

        SQLite keeps its locks for a whole process. A child that was forked in the middle of a write
        has a copy of that lock, which is never released.
        """
        if self._engine is not None:
            self._engine.dispose(close=False)
        self._engine = None
        self._is_torn = self._is_torn or (self.is_sqlite and not is_whole)

    @contextlib.contextmanager
    def reading(self, patience: float = _PATIENCE) -> Iterator[Connection]:
        """Return a context with a connection that sees one moment of the store.

        Parameters
        ----------
        patience : float
            The seconds to wait for PostgreSQL to connect, and then to answer each statement.
        """
        self._check_file()
        with self.explained(), self._connected(patience, is_long=True) as connection:
            if not self.is_sqlite:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection

    @contextlib.contextmanager
    def writing(self, patience: float = _PATIENCE) -> Iterator[Connection]:
        """Return a context with a connection that writes; it commits at the end, or not at all.

        With SQLite only one process writes at a time.

        Parameters
        ----------
        patience : float
            The seconds to wait for another process that writes to SQLite, and for all that
            PostgreSQL does.
        """
        self._check_file()
        if self._is_torn:
            raise StoreError(
                f"this process was forked while a thread was writing to {self.name}, and cannot "
                "write to it: fork before threads write, or start processes by spawn"
            )
        until = time.monotonic() + patience
        with self._takes_turn(patience), self._connected(patience) as connection:
            connection = connection.execution_options(writes=True)
            while True:
                try:
                    transaction = connection.begin()
                    break
                except DBAPIError as error:
                    if not is_busy(error) or time.monotonic() > until:
                        raise
                    time.sleep(random.uniform(0.0, _PAUSE))
            with transaction:
                yield connection

    @contextlib.contextmanager
    def _takes_turn(self, patience: float) -> Iterator[None]:
        """Let one thread of this process write at a time."""
        if not self._lock.acquire(timeout=max(patience, _LEAST)):
            raise StoreError(
                f"another thread of this process has been writing to {self.name} for long, and "
                "nothing of this was kept: call again"
            )
        try:
            yield
        finally:
            self._lock.release()

    @contextlib.contextmanager
    def _connected(self, patience: float, *, is_long: bool = False) -> Iterator[Connection]:
        """Give a connection; to PostgreSQL it is cut after so many seconds, whatever that does.

        If what is done may be long, the seconds begin anew with each statement.
        """
        until = time.monotonic() + patience
        token = _UNTIL.set(until)
        try:
            connection = self.engine.connect()
        finally:
            _UNTIL.reset(token)
        with connection:
            if self.is_sqlite:
                yield connection
                if self._log is None:
                    self._log = _id_of(self._log_path)
                return
            own: Any = connection.connection.dbapi_connection
            least = max(until, time.monotonic() + _LEAST)
            with _WATCHDOG.watching(own.fileno(), least) as extend:
                if is_long:
                    event.listen(
                        connection, "before_cursor_execute",
                        lambda *_: extend(time.monotonic() + max(patience, _LEAST)),
                    )  # fmt: skip
                yield connection

    def now(self) -> float:
        """Return the time in seconds since the epoch: that of the database, if it has a clock."""
        if self.is_sqlite:
            return wall()
        with self.reading() as connection:
            return float(self.read_time(connection) or 0.0)

    def read_time(self, connection: Connection) -> float | None:
        """Return the time of the database, in seconds since the epoch; None where it has none.

        Parameters
        ----------
        connection : sqlalchemy.Connection
            A connection to the store.

        Returns
        -------
        float or None
            The time.
        """
        if self.is_sqlite:
            return None
        return float(connection.exec_driver_sql(f"SELECT {DATABASE_TIME}").scalar_one())

    def _check_file(self) -> None:
        """Raise if the file was removed or replaced since it was opened.

        A new file beside the write-ahead log of the old one is not to be touched: SQLite would
        write the log into it.
        """
        if self.path is None:
            return
        here = _id_of(self.path)
        if here is None:
            if self._file is None:
                return  # it is about to be made
            raise StoreError(
                f"the file {self.path} is gone, and nothing of this was kept: put it back"
            )
        if here != self._file and (self._file is not None or self._is_beside_log_of_other(here)):
            raise StoreError(
                f"the file {self.path} was replaced while it was open, and nothing of this was "
                f"kept: stop all programs that use it, remove {self.path}-wal and "
                f"{self.path}-shm, which belong to the earlier file, and start them again"
            )
        self._file = here

    @property
    def _log_path(self) -> str:
        return f"{os.path.realpath(str(self.path))}-wal"

    def _is_beside_log_of_other(self, file: _FileId) -> bool:
        """Whether another store of this process has the log beside a file open for another file."""
        log = _id_of(self._log_path)
        others = [other for reference in _STORES.valuerefs() if (other := reference()) is not None]
        return log is not None and any(
            other._log == log and other._file not in (None, file) for other in others
        )

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Turn errors of the database into a sentence."""
        try:
            yield
        except SQLAlchemyError as error:
            raise StoreError(self.explain(error)) from error

    def explain(self, error: SQLAlchemyError) -> str:
        """Explain an error of the database, and what to do about it.

        Parameters
        ----------
        error : sqlalchemy.exc.SQLAlchemyError
            The error.

        Returns
        -------
        str
            A sentence.
        """
        cause = str(getattr(error, "orig", None) or error).strip().split("\n")[0]
        words, does = cause.lower(), "check that it is there and can be written"
        if "not a database" in words:
            return f"{self.name} is not a store ({cause}): check the name of the file"
        if "disk is full" in words or "no space left" in words or "disk i/o" in words:
            does = "free some space on its disk"
        elif any(busy in words for busy in _BUSY):
            does = "another program has been writing to it for long; try again"
        elif "readonly" in words or "read-only" in words:
            does = "let this program write to the file and to its folder"
        elif "no such table" in words or ("relation" in words and "does not exist" in words):
            does = f"run `duelay migrate {self.name}`"
        elif "does not exist" in words or "authentication failed" in words:
            does = "check its address, the database and the user in it"
        elif not self.is_sqlite:
            does = "check that the server runs and lets you in"
        kept = "nothing of this was kept"
        if not self.is_sqlite:  # a connection may break between a commit and the news of it
            kept = "call again: an answer, or a question with its key, counts once"
        return f"the store {self.name} does not answer ({cause}), {kept}: {does}"

    def close(self) -> None:
        """Close its connections; it opens again where it is used again."""
        if self._engine is not None:
            self._engine.dispose()
        if self.path is None or self._log is None:
            return
        if _id_of(self.path) == self._file or _id_of(self._log_path) != self._log:
            self._log = None  # SQLite has removed it, or another process goes on with it
        else:  # it is left beside another file; while it is open, no other file has its inode
            weakref.finalize(self, os.close, os.open(self._log_path, os.O_RDONLY))

    # Schema.

    def revision(self) -> str | None:
        """Return the revision of its schema; None where it has none yet."""
        if self.path is not None and not self.path.exists():
            return None
        with self.reading() as connection:
            context = MigrationContext.configure(connection, opts={"version_table": VERSIONS})
            return context.get_current_revision()

    def migrate(self) -> tuple[str | None, str]:
        """Make or renew its tables; return the revisions before and after."""
        before = self.revision()
        self._check_known(before)
        config = _config()
        with self.explained(), self.writing() as connection:
            if not self.is_sqlite:  # another process may be making them just now
                connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
            config.attributes |= {"connection": connection, "version_table": VERSIONS}
            command.upgrade(config, "head")
        return before, _head()

    def need(self, *, makes: bool = False) -> None:
        """Check that the database has the tables of this version.

        Parameters
        ----------
        makes : bool
            Whether to make the tables if there are none.

        Raises
        ------
        StoreError
            If tables are missing, or of another version.
        """
        found, wanted = self.revision(), _head()
        self._check_known(found)
        if found is None and makes:
            self.migrate()
        elif found is None and self.path is not None and not self.path.exists():
            raise StoreError(f"there is no file {self.path}: check the name of the store")
        elif found is None:
            raise StoreError(
                f"the store {self.name} has no experiments: make one with "
                "duelay.live.Experiment.create(...)"
            )
        elif found != wanted:
            raise StoreError(
                f"the store {self.name} is of an earlier version of duelay (its schema is {found}, "
                f"and this one needs {wanted}): make a backup, and run `duelay migrate {self.name}`"
            )

    def _check_known(self, revision: str | None) -> None:
        if revision not in {None, *(step.revision for step in _script().walk_revisions())}:
            raise StoreError(
                f"the store {self.name} was written by a later version of duelay (its schema is "
                f"{revision}, and this one knows {_head()}): install that version"
            )

    def __repr__(self) -> str:
        return f"Store({self.name!r})"


def _id_of(path: str | Path) -> _FileId | None:
    """Return the device and the inode of a file; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def open_store(store: Store | str | Path) -> Store:
    """Return a store, given itself or its address."""
    return store if isinstance(store, Store) else Store(store)


def is_busy(error: SQLAlchemyError) -> bool:
    """Whether another process is writing, so that waiting helps."""
    return any(words in str(error).lower() for words in _BUSY)


def is_temporary(error: SQLAlchemyError) -> bool:
    """Whether the same call may succeed in a while: the database is busy, away or starting."""
    if not isinstance(error, DBAPIError):
        return False
    if error.connection_invalidated:
        return True
    if isinstance(error.orig, sqlite3.Error):
        return is_busy(error)
    state = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return state in _TEMPORARY or state[:2] in _TEMPORARY_CLASSES
    is_connecting = error.statement is None
    return is_connecting and type(error.orig).__name__ == "OperationalError"


def _check_url(url: Any) -> URL:
    """Return the address of a database that we know; a path is a file of SQLite."""
    if isinstance(url, Path) or (isinstance(url, str) and url and "://" not in url):
        url = f"sqlite:///{url}"
    try:
        found = make_url(url)
    except (ArgumentError, TypeError, ValueError):
        raise InvalidValueError(
            f"store must be an address such as {_SUCH_AS}, got {url!r}"
        ) from None
    if found.get_backend_name() not in ("sqlite", "postgresql"):
        got = found.render_as_string(hide_password=True)
        raise InvalidValueError(
            f"store must be SQLite or PostgreSQL, such as {_SUCH_AS}, got {got!r}"
        )
    if found.get_backend_name() == "postgresql":
        return found.set(drivername="postgresql+psycopg")
    if not found.database or found.database == ":memory:":
        raise InvalidValueError(
            "store must be a file, such as 'sqlite:///duels.db': what is in memory alone is gone "
            "when the program ends"
        )
    return found.set(database=str(Path(found.database).absolute()))


def _let_go(engine: Engine, pid: int) -> None:
    """Close the connections of a store that is no longer used; a fork leaves them to its parent."""
    if pid == os.getpid():
        engine.dispose()


def _make_engine(url: URL) -> Engine:
    if url.get_backend_name() != "sqlite":
        need("stores in PostgreSQL", ["psycopg"], "postgres")
        return _make_postgresql(url)
    folder = Path(str(url.database)).parent
    if not folder.is_dir():
        raise StoreError(f"there is no folder {folder} for the store: make it, or name another one")
    engine = create_engine(url, connect_args={"timeout": 0.0, "check_same_thread": False})

    @event.listens_for(engine, "connect")
    def _set_up(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # we begin transactions ourselves
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON",
                               f"cache_size={_CACHE}"):  # fmt: skip
                    connection.execute(f"PRAGMA {pragma}")
                break
            except sqlite3.OperationalError as error:  # another process is turning the log on
                if str(error) not in _BUSY or time.monotonic() > until:
                    raise
                time.sleep(_PAUSE)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _make_postgresql(url: URL) -> Engine:
    silence = math.ceil(_PATIENCE)  # seconds without a word, after which a connection is lost
    engine = create_engine(
        url,
        pool_size=5,
        max_overflow=20,
        connect_args={
            "keepalives_idle": silence // 2,
            "keepalives_interval": max(silence // 6, 1),
            "keepalives_count": 3,
            "tcp_user_timeout": 1000 * silence,
        },
    )

    @event.listens_for(engine, "do_connect")
    def _limit(_: Any, __: Any, ___: Any, words: dict[str, Any]) -> None:
        left = min(_UNTIL.get() - time.monotonic(), _CONNECTS)
        words.setdefault("connect_timeout", max(math.ceil(left), 2))  # 2 is the least it takes

    @event.listens_for(engine, "checkout")
    def _check(connection: Any, _: Any, __: Any) -> None:
        """See that a connection works; a server that is frozen may have others that do."""
        now = time.monotonic()
        wait = max(min((_UNTIL.get() - now) / 2.0, _CONNECTS), _LEAST / 2.0)
        try:
            with _WATCHDOG.watching(connection.fileno(), now + wait):
                engine.dialect.do_ping(connection)
        except engine.dialect.dbapi.Error as error:  # type: ignore[union-attr]
            raise InvalidatePoolError from error

    return engine


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_HERE / "migrations").replace("%", "%%"))
    return config


@functools.cache  # it reads and compiles every migration
def _script() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


def _head() -> str:
    return str(_script().get_current_head())
