"""What a look costs, counted: the same on every machine, however busy it is."""

import contextlib
import dataclasses
import sys

from sqlalchemy import event

from duelay.live import Experiment
from duelay.page import incremental
from duelay.page.build import build_experiment, build_list, build_pair
from page.million import fill

STEP = 10  # instructions of SQLite that are counted at a time


@dataclasses.dataclass
class Cost:
    """What was done."""

    statements: int = 0  # that the database was given
    instructions: int = 0  # of SQLite, which takes some for each row that it looks at
    calls: int = 0  # of functions, in this thread

    def least(self, other):
        """The least of both, number by number."""
        return Cost(*map(min, dataclasses.astuple(self), dataclasses.astuple(other)))


@contextlib.contextmanager
def counted(store):
    """Count what this thread does with a store in a file."""
    cost = Cost()

    def take_step():
        cost.instructions += STEP

    def take_out(connection, *_):
        connection.set_progress_handler(take_step, STEP)

    def give_back(connection, *_):
        connection.set_progress_handler(None, STEP)

    def execute(*_):
        cost.statements += 1

    def profile(frame, what, _):
        cost.calls += what in ("call", "c_call")

    listened = {"checkout": take_out, "checkin": give_back, "before_cursor_execute": execute}
    for name, do in listened.items():
        event.listen(store.engine, name, do)
    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield cost
    finally:
        sys.setprofile(before)
        for name, do in listened.items():
            event.remove(store.engine, name, do)


def looks(path, n, k):
    """Make an experiment of n duels; return what lets twenty more come, and the looks at it."""
    filled = fill(f"sqlite:///{path}", n=n, k=k)
    now = [filled._writer.clock()]
    experiment = Experiment.open(filled.store, "million", clock=lambda: now[0])
    build_experiment(experiment)

    def go_on():
        for _ in range(20):
            experiment.tell(experiment.ask().id)
        now[0] += 1.0
        incremental.reader_of(experiment).settled = -1e18

    return filled.store, go_on, {
        "see": lambda: build_experiment(experiment),
        "pair": lambda: build_pair(experiment, 0, 1),
        "list": lambda: build_list(filled.store, clock=lambda: now[0]),
    }  # fmt: skip
