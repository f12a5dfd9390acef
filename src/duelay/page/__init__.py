"""The web page of an experiment, served by `duelay serve` and written by `duelay report`."""

from __future__ import annotations

from duelay._core.extras import need

need("pages", ["jinja2"], "live")
