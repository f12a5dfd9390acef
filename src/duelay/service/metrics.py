"""Metrics for Prometheus: what a server has done, and how long it took."""

from __future__ import annotations

import os
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
_MANY = "PROMETHEUS_MULTIPROC_DIR"  # where several workers add up theirs


class Metrics:
    """The numbers of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        many: dict[str, Any] = {"registry": self.registry}
        self.asks = Counter("duelay_asks", "Duels that were asked for", ["experiment"], **many)
        self.tells = Counter("duelay_tells", "Answers that were told", ["status"], **many)
        self.seconds = Histogram(
            "duelay_request_seconds", "Time of a request", ["route", "status"], buckets=_SECONDS,
            **many,
        )  # fmt: skip
        self.groups = Histogram(
            "duelay_commit_group_size", "Requests in one commit", buckets=_SIZES, **many
        )
        self.evidence = Gauge(
            "duelay_evidence_age_seconds", "Since the evidence was looked at", ["experiment"],
            multiprocess_mode="mostrecent", **many,
        )  # fmt: skip
        self.pending = Gauge(
            "duelay_pending", "Duels that may still be answered", ["experiment"],
            multiprocess_mode="mostrecent", **many,
        )  # fmt: skip

    def text(self) -> bytes:
        """Return all of them as Prometheus reads them, those of all workers together."""
        if os.environ.get(_MANY):
            registry = CollectorRegistry()
            multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
            return bytes(generate_latest(registry))
        return bytes(generate_latest(self.registry))
