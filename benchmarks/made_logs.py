"""Logs whose true preferences and delays are known, for tests and for `logs.py`."""

from __future__ import annotations

import datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay import History
from duelay.delays import Exponential, Law, LogNormal, Never, Weibull

START = datetime.datetime(2026, 3, 2, tzinfo=datetime.UTC).timestamp()
DAY = 86_400.0
BONUS = 0.06  # of the first place, in votes
LAWS: dict[str, Law] = {
    "clean": Exponential("30m"),
    "never": Never(0.3, LogNormal("20m", 1.0)),
    "heavy tail": Never(0.1, Weibull(0.45, "1h")),
    "bursts": Never(0.2, LogNormal("10m", 1.2)),
    "votes": Never(0.25, Exponential("45m")),
    "champion first": Never(0.2, LogNormal("15m", 0.8)),
}


class Made(NamedTuple):
    """A log, and what it should say."""

    history: History
    matrix: NDArray[np.float64]
    law: Law


def make(kind: str, seed: int, n: int = 4000, n_arms: int = 4, days: float = 4.0) -> Made:
    """Return a log of a kind; the last answers may still be on their way."""
    rng, law = np.random.default_rng(seed), LAWS[kind]
    score = 0.9 * rng.permutation(n_arms) / n_arms
    matrix = 1.0 / (1.0 + np.exp(score[None, :] - score[:, None]))
    at = np.sort(_times(kind, rng, n, days))
    delay = np.where(rng.random(n) < law.never, np.inf, _conditional(law, rng, n))
    now = days * DAY
    if kind == "champion first":
        first, second, won = _by_champion(rng, matrix, at, delay)
    else:
        first = rng.integers(n_arms, size=n)
        second = (first + rng.integers(1, n_arms, size=n)) % n_arms
        bonus = BONUS if kind == "votes" else 0.0
        won = rng.random(n) < matrix[first, second] + bonus
    heard = (at + delay <= now) & (won | (kind == "votes"))
    history = History(
        n_arms=n_arms,
        first=first,
        second=second,
        delay=np.where(heard, delay, np.nan),
        first_won=np.where(heard, won.astype(float), np.nan),
        feedback="votes" if kind == "votes" else "conversions",
        order="champion" if kind == "champion first" else "coin",
        arms=tuple(f"arm {letter}" for letter in "ABCDEFGHIJKLMNOP"[:n_arms]),
        at=START + at,
        now=START + now,
        chosen_by="" if kind == "champion first" else "design",
    )
    return Made(history, matrix, law)


def _conditional(law: Law, rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    """Delays of answers that come, by the inverse of the law."""
    return np.asarray(law.quantile((1.0 - law.never) * rng.random(n)))


def _times(kind: str, rng: np.random.Generator, n: int, days: float) -> NDArray[np.float64]:
    """When duels are shown: evenly; or, in bursts, most of them within minutes of a noon."""
    even = rng.uniform(0.0, days * DAY, n)
    if kind != "bursts":
        return even
    noon = DAY * (rng.integers(int(days), size=n) + 0.5)
    return np.where(rng.random(n) < 0.8, noon + rng.uniform(0.0, 300.0, n), even)


def _by_champion(rng, matrix, at, delay):  # type: ignore[no-untyped-def]
    """Show the champion of what was heard so far first, against anybody; sometimes two others."""
    n, k = len(at), len(matrix)
    first, second = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    won, plays, champion = np.zeros(n, dtype=bool), np.zeros((k, k)), 0
    for t in range(n):
        if t % 50 == 0 and t:
            heard = won[:t] & (at[:t] + delay[:t] <= at[t])
            conversions = np.zeros((k, k))
            np.add.at(conversions, (first[:t][heard], second[:t][heard]), 1)
            rate = conversions / np.maximum(plays, 1)
            champion = int(np.argmax((rate > rate.T).sum(axis=1) + rng.random(k)))
        i = champion if rng.random() < 0.7 else int(rng.integers(k))
        j = int((i + rng.integers(1, k)) % k)
        first[t], second[t], won[t] = i, j, rng.random() < matrix[i, j]
        plays[i, j] += 1
    return first, second, won
