"""The service: live experiments over HTTP, for programs in other languages and on other hosts."""

from __future__ import annotations

from duelay._core.extras import need

need(
    "services",
    ["fastapi", "uvicorn", "prometheus_client", "httpx", "itsdangerous", "jinja2"],
    "service",
)

from duelay.service import keys  # noqa: E402
from duelay.service.app import make_app  # noqa: E402
from duelay.service.demo.run import demonstrate  # noqa: E402
from duelay.service.server import serve  # noqa: E402

__all__ = ["demonstrate", "keys", "make_app", "serve"]
