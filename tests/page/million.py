"""A store with many duels, in seconds: rows by bulk insert, and the counters that fit them."""

import importlib
import math
import time

import httpx
import numpy as np
from sqlalchemy import select, text, update

from duelay.ledger.delay_models.continuous_time import learned_ages
from duelay.ledger.evidence.eprocess import GAPS, evidence_weights
from duelay.live import Experiment
from duelay.live.state import to_bytes
from duelay.live.storage import schema
from duelay.live.storage.delay_histogram import write_ages
from duelay.live.storage.schema import MICRO
from duelay.live.storage.statements import upsert

START = 1_700_000_000.0
COUNTS = importlib.import_module("duelay.live.migrations.versions.0003_times")
KAPPA = 0.5  # what each silence is worth here


class Rows:
    """Duels of arms of which the first two are equally good, and the others worse by and by."""

    def __init__(self, n, k, *, days=30.0, seed=0, mean=3600.0, never=0.2, window=7 * 86_400.0,
                 swaps=True):  # fmt: skip
        rng = np.random.default_rng(seed)
        strength = -np.linspace(0.0, 0.3, k)
        strength[1] = strength[0]
        self.n, self.k, self.window = n, k, window
        self.first = rng.integers(0, k, n)
        self.second = (self.first + rng.integers(1, k, n)) % k
        if not swaps:  # then no coin decides the order
            both = self.first, self.second
            self.first, self.second = np.minimum(*both), np.maximum(*both)
        self.asked = np.sort(rng.integers(0, round(days * 86_400 * MICRO), n))
        self.asked += round(START * MICRO)
        self.now = round((START + days * 86_400.0) * MICRO)
        mu = 0.5 + strength[self.first] - strength[self.second]
        delay = np.round(rng.exponential(mean, n) * MICRO).astype(np.int64)
        comes = (rng.random(n) < mu) & (rng.random(n) >= never)
        self.is_told = comes & (self.asked + delay <= self.now) & (delay <= window * MICRO)
        self.told = self.asked + delay
        wait = self.wait = round(4.0 * mean * MICRO)
        self.n_matured = int((self.asked <= self.now - wait).sum())
        self.is_settled = self.is_told | (np.arange(n) < self.n_matured)
        late = self.is_told & (delay > wait)  # silence had settled it
        self.is_silent = self.is_settled & (~self.is_told | late)
        self.n_closed = int((self.asked < self.now - round(window * MICRO)).sum())
        order = np.argsort(np.where(self.is_told, self.told, np.iinfo(np.int64).max), kind="stable")
        self.place = np.zeros(n, dtype=np.int64)
        heard = int(self.is_told.sum())
        self.place[order[:heard]] = np.arange(1, heard + 1)

    def counts(self, which, weights=None):
        """(K, K): how many of them there are by ordered pair."""
        code = (self.first * self.k + self.second)[which]
        weights = None if weights is None else weights[which]
        found = np.bincount(code, weights=weights, minlength=self.k**2)
        return found.reshape(self.k, self.k)


def fill(store, name="million", n=1_000_000, k=6, arms=None, **more):
    """Make an experiment with n duels of k arms; return it, opened at the time of the last."""
    rows = Rows(n, k, **more)
    arms = arms or [f"arm {number}" for number in range(k)]
    made = Experiment.create(store, name, arms, window=f"{rows.window:g}s", clock=lambda: START)
    with made.store.writing() as connection:
        raw = connection.connection.driver_connection
        raw.executemany(
            "insert into duels (id, experiment, number, first, second, asked, enters, told, place,"
            " first_won, settled_by, odds, wait, stake) values (?,?,?,?,?,?,1,?,?,?,?,?,?,?)",
            _values(rows, made._writer.id),
        )
        upsert(connection, schema.pairs, _pairs(rows, made._writer.id))
        _write_ages(connection, rows, made._writer.id)
        _write_head(connection, rows, made)
        for statement in (  # of all experiments, as an older store gets them
            "DELETE FROM pair_times", "DELETE FROM times", COUNTS._PAIR_TIMES, COUNTS._TIMES
        ):  # fmt: skip
            connection.execute(text(statement))
    now = rows.now / MICRO
    made.close()
    return Experiment.open(store, name, clock=lambda: now)


def _values(rows, id):
    columns = [part.tolist() for part in (
        rows.first, rows.second, rows.asked, rows.is_told, rows.told, rows.place, rows.is_settled,
        rows.is_silent)]  # fmt: skip
    for number, row in enumerate(zip(*columns, strict=True), start=1):
        first, second, asked, is_told, told, place, is_settled, is_silent = row
        answer = (told, place, 1.0) if is_told else (None, None, None)
        how = (None, None)
        if is_settled:
            how = (2, KAPPA) if is_silent else (1, 1.0)
        how = (*how, rows.wait, KAPPA)
        yield (f"{id:08x}{number:024x}", id, number, first, second, asked, *answer, *how)


def _pairs(rows, id):
    k, number = rows.k, np.arange(rows.n)
    closed = number < rows.n_closed
    heard = rows.counts(rows.is_told)
    answered = rows.counts(rows.is_settled & ~rows.is_silent)
    silent = rows.counts(rows.is_silent)
    booked = rows.counts(rows.is_settled & ~rows.is_silent & (number < rows.n_matured))
    for_first = answered + KAPPA * silent.T  # in favour of i: its conversions, silence of (j, i)
    wealth = (
        booked[:, :, None] * np.log1p(2 * GAPS) + booked.T[:, :, None] * np.log1p(-2 * GAPS)
        + silent.T[:, :, None] * np.log1p(2 * KAPPA * GAPS)
        + silent[:, :, None] * np.log1p(-2 * KAPPA * GAPS)
    )  # fmt: skip
    evidence = np.logaddexp.reduce(np.log(evidence_weights()) + wealth, axis=2)
    open_ = rows.counts(~rows.is_settled)
    arrays = {
        "plays": rows.counts(number >= 0),
        "conversions": heard,
        "answers": heard,
        "given": heard.astype(float),
        "wins": booked.astype(float),
        "lead": for_first - for_first.T,
        "n": answered + answered.T + KAPPA**2 * (silent + silent.T),
        "closed": rows.counts(closed),
        "closed_conversions": rows.counts(closed & rows.is_told),
        "closed_answers": rows.counts(closed & rows.is_told),
        "closed_given": rows.counts(closed & rows.is_told).astype(float),
        "n_open": open_ + open_.T,
        "log_evidence": evidence,
        "best": np.maximum(evidence, 0.0),
        "seen": booked.astype(float),
    }
    zeros = dict.fromkeys(("late", "repeats", "repeated_answers", "repeated_conversions"), 0)
    zeros |= dict.fromkeys(("tie_near", "tie_far", "log_bar", "best_bar"), 0.0)
    return [
        {"experiment": id, "first": i, "second": j, "version": 1, "passed": None, **zeros,
         "wealth": to_bytes(wealth[i, j]),
         **{name: values[i, j].item() for name, values in arrays.items()}}
        for i in range(k) for j in range(k) if i != j
    ]  # fmt: skip


def _write_ages(connection, rows, id):
    ages = learned_ages(rows.window)
    closed = np.arange(rows.n) < rows.n_closed
    delay = (rows.told - rows.asked)[closed] / MICRO
    told = rows.is_told[closed]
    bucket = np.where(told, np.searchsorted(ages, delay, side="right") - 1, len(ages) - 1)
    asked = np.cumsum(np.bincount(bucket, minlength=len(ages))[::-1])[::-1]
    answered = np.bincount(bucket[told], minlength=len(ages))
    write_ages(connection, schema.ages, id, np.arange(len(ages)), asked, answered)


def _write_head(connection, rows, experiment):
    table, heard, points = schema.experiments, int(rows.is_told.sum()), 200
    width = COUNTS._MINUTE
    while (rows.now - round(START * MICRO)) // width >= COUNTS._MOST:
        width *= 2
    told = rows.is_told & ~rows.is_silent
    head = {
        "asked": rows.n, "heard": heard, "moment": rows.now, "settled": rows.now, "version": 1,
        "matured": rows.n_matured, "closed": rows.n_closed, "kappa": KAPPA,
        "n_matured": rows.n_matured, "n_answered": int(told[: rows.n_matured].sum()),
        "refit": rows.n_matured + rows.n_matured // 20 + 1, "n_heard": int(told.sum()),
        "delays": float((rows.told - rows.asked)[told].sum() / MICRO),
        "stride": max(rows.n // points, 1), "width": width,
    }  # fmt: skip
    connection.execute(update(table).where(table.c.id == experiment._writer.id).values(head))
    level = math.log((rows.k + 1) / 0.05)
    upsert(connection, schema.paths, [
        {"experiment": experiment._writer.id, "tick": (place + 1) * rows.n // points,
         "at": int(rows.asked[(place + 1) * rows.n // points - 1]),
         "evidence": to_bytes(np.linspace(1.0, 0.0, rows.k) * 0.9 * level * place / points)}
        for place in range(min(points, rows.n))
    ])  # fmt: skip


def updates(url, experiment, n=5, path="/e/million"):
    """Let something be told, and fetch what is new, n times; return the seconds of each."""
    found = []
    with httpx.Client(base_url=url, headers={"HX-Request": "true"}) as browser:
        for _ in range(n):
            experiment.tell(experiment.ask().id)
            time.sleep(1.1)  # a view is shown again for a second
            begun = time.perf_counter()
            answer = browser.get(path, params={"seen": "another"})
            found.append(time.perf_counter() - begun)
            assert answer.status_code == 200
    return found


def numbers_of(experiment):
    """Return all rows of the duels, for a slow twin."""
    with experiment.store.reading() as connection:
        return connection.execute(
            select(schema.duels)
            .where(schema.duels.c.experiment == experiment._writer.id)
            .order_by(schema.duels.c.number)
        ).mappings().all()  # fmt: skip
