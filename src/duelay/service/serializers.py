"""How things of the library are shown over HTTP."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from duelay.live.standing import LiveStanding
from duelay.live.storage.schema import MICRO
from duelay.live.writes.requests import LiveDuel


def duel(given: LiveDuel) -> dict[str, Any]:
    """Return a duel; without an id, only the winner is shown."""
    return given._asdict()


def standing(given: LiveStanding) -> dict[str, Any]:
    """Return a standing."""
    evidence, arms = given.evidence, given.arms
    winner = given.winner
    return {
        "name": given.name,
        "status": given.status,
        "headline": given.headline,
        "leader": arms[given.leader] if given.is_heard else None,
        "winner": None if winner is None else arms[winner],
        "error": given.error,
        "confidence": given.confidence,
        "guarantee": {"kind": given.guarantee.kind, "words": given.guarantee.words},
        "feedback": given.feedback,
        "policy": given.policy,
        "window": None if given.window is None else str(given.window),
        "now": given.now,
        "arms": list(arms),
        "present": given.present.tolist(),
        "duels": given.tick,
        "plays": given.plays.tolist(),
        "conversions": given.conversions.tolist(),
        "pending": [] if given.pending is None else given.pending.tolist(),
        "repeats": [] if given.repeats is None else given.repeats.tolist(),
        "late": given.late,
        "estimates": {
            "mean": numbers(given.mean),
            "lower": numbers(given.lower),
            "upper": numbers(given.upper),
        },
        "evidence": None if evidence is None else numbers(evidence.arm),
        "needed": None if evidence is None else number(evidence.level),
        "warnings": list(given.warnings),
        "alarms": [{"name": alarm.name, "words": str(alarm)} for alarm in given.alarms],
    }


def numbers(values: Any) -> Any:
    """Return arrays as lists, null for what is not a number or not finite."""
    return [numbers(value) if isinstance(value, np.ndarray) else number(value) for value in values]


def number(value: float) -> float | None:
    """Return a number, or None for one that JSON has no word for."""
    return float(value) if math.isfinite(value) else None


def row(given: Any, arms: tuple[str, ...]) -> dict[str, Any]:
    """Return a duel of the log."""
    return {
        "number": given["number"],
        "id": given["id"],
        "first": arms[given["first"]],
        "second": arms[given["second"]],
        "asked_at": given["asked"] / MICRO,
        "answered_at": None if given["told"] is None else given["told"] / MICRO,
        "late_at": None if given["late"] is None else given["late"] / MICRO,
        "first_won": given["first_won"],
        "unit": given["unit"],
        "enters": given["enters"],
    }
