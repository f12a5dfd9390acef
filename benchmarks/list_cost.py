"""What the list of many experiments costs: ``python -m benchmarks list``.

That a page of it does not read the other experiments is tested, by what is counted:
`tests/service/test_experiment_list.py`. Seconds are those of the processor, of the service and of
its client in one process.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from sqlalchemy import insert, select

import pages
from duelay.live import Experiment
from duelay.live.storage import schema
from duelay.live.writes.requests import Ask
from duelay.service import make_app

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Starlette would rather have another client
    from starlette.testclient import TestClient

SIZES, DUELS, LOADS = (25, 500, 4000), 40, 5
HERE = "http://127.0.0.1:8000"


def fill(url: str, n: int) -> None:
    """Make an experiment with some duels, all of them booked, and copies of it."""
    arms = ["red", "green", "blue"]
    with Experiment.create(url, "test 0000", arms, window=None, clock="1000x") as experiment:
        asks = [Ask(None, None) for _ in range(DUELS)]
        experiment.submit_all(asks)
        experiment.tell_all([ask.result.id for ask in asks[::3]])
        head: dict[str, Any] = {"asked": DUELS, "matured": 0}
        while head["matured"] < head["asked"]:  # else the server would be busy with it
            experiment.settle()
            with experiment.reading() as (_, row):
                head = dict(row)
        with experiment.store.writing() as connection:
            others = range(head["id"] + 1, head["id"] + n)
            connection.execute(
                insert(schema.experiments),
                [head | {"id": id, "name": f"test {id - head['id']:04}"} for id in others],
            )
            for table in schema.TABLES:
                rows = [dict(row) for row in connection.execute(select(table)).mappings()]
                if rows:
                    connection.execute(
                        insert(table),
                        [row | {"experiment": id} | _own_id(row, id) for id in others
                         for row in rows],
                    )  # fmt: skip


def _own_id(row: dict[str, Any], experiment: int) -> dict[str, str]:
    return {"id": f"{experiment:08x}{row['id'][8:]}"} if "id" in row else {}


def seconds(do: Callable[[], Any], prepare: Callable[[], Any] = lambda: None) -> float:
    """Return the seconds of the processor, the median of some."""
    found = []
    for _ in range(LOADS):
        prepare()
        begun = time.process_time()
        do()
        found.append(time.process_time() - begun)
    return median(found)


def measure(folder: Path, n: int) -> list[str]:
    """Return a row: seconds of a first view, of later ones, of a search and of the list as JSON."""
    url = f"sqlite:///{folder}/{n}.db"
    fill(url, n)
    app = make_app(url)
    with TestClient(app, HERE) as client:
        while client.get("/healthz").status_code != 200:
            time.sleep(0.1)

        def forget() -> None:
            app.state.context.view_cache.forget("")

        def get(path: str) -> Callable[[], None]:
            def do() -> None:
                answered = client.get(path, headers={"Accept": "text/html"})
                assert answered.status_code == 200, answered.text

            return do

        begun = time.process_time()
        get("/")()
        first = time.process_time() - begun
        later = seconds(get("/"), forget)
        last = seconds(get(f"/?page={n // 25}"), forget)
        search = seconds(get("/?search=0007"), forget)
        whole = seconds(get("/experiments"))
    return [f"{n:,}", *(f"{each:.2f}" for each in (first, later, last, search, whole))]


def main() -> None:
    """Measure, and keep the table."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(Path(folder), n) for n in SIZES]
    columns = ["experiments", "first page, s: the first time", "later", "last page", "a search",
               "all of them as JSON"]  # fmt: skip
    pages.show("list", "list", [pages.table(columns, rows)])


if __name__ == "__main__":
    main()
