"""Pages as HTML: from the data of `duelay.page.view_models` to what a browser shows.

A page works without JavaScript. With it, its live part is fetched again and morphed in place. There
is no inline style and no inline script, so that a strict Content-Security-Policy holds. A report is
the same page in one file: style and script are inline there, and its policy names their digests.
"""

from __future__ import annotations

import hashlib
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from duelay._core.waiting import at_least
from duelay._core.words import in_html
from duelay._version import __version__
from duelay.page import formats, snippets, view_models
from duelay.page.api_docs import read_calls
from duelay.page.assets import STATIC, source_of
from duelay.page.charts import drawing, sparklines
from duelay.page.duel_log import OF_CONVERSIONS, OUTCOMES

__all__ = [
    "POLICY",
    "STATIC",
    "Viewer",
    "calls_page",
    "error_page",
    "experiment_page",
    "experiment_part",
    "keys_page",
    "list_page",
    "list_part",
    "list_version",
    "log_page",
    "login_page",
    "pair_page",
    "pair_part",
]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_STYLE = "page.css"
_SCRIPTS = ("htmx.min.js", "idiomorph-ext.min.js", "page.js")
_STATIC_SCRIPTS = "page.js"
_LONG = 30  # arms beyond these are folded away
_NARROW = 8  # arms up to which a cell of the matrix says everything

ADVICE = {
    "wait": "Wait",
    "go-on": "Go on",
    "stop": "Stop",
    "off": "Something is off",
    "paused": "Paused",
}
EVENTS = {
    "declared": "Winner declared",
    "withdrawn": "Declaration taken back",
    "alarm": "Alarm",
    "silent": "Traffic is silent",
    "joined": "Arm added",
    "retired": "Arm retired",
    "paused": "Paused",
    "resumed": "Resumed",
}
VERDICTS = {
    "off": "alarm",
    "remark": "worth a look",
    "good": "no alarm",
    "unknown": "not enough heard",
}


@dataclass(frozen=True)
class Viewer:
    """Who looks, and what they may do."""

    may_change: bool = False  # pause, resume, add, retire, new
    may_keys: bool = False  # see, make and revoke keys
    csrf: str = ""  # hidden field of every form that posts
    signed_in: str = ""  # name of the key; empty where none is needed
    base: str = ""  # prefix of addresses
    is_static: bool = False  # a report: no forms, no polling, no links to other pages
    origin: str = "http://127.0.0.1:8000"  # of the service, with the prefix: for code to paste


def list_page(
    listed: Sequence[view_models.Listed],
    viewer: Viewer,
    problem: str = "",
    said: Mapping[str, str] | None = None,
) -> str:
    """All experiments, and the form for a new one; `problem` is what was wrong with `said`."""
    return _render(
        "list.html", viewer, listed=listed, problem=problem, said=said or {}, polls=_at(viewer)
    )


def list_version(listed: Sequence[view_models.Listed]) -> str:
    """A text that changes with anything in the list."""
    return hashlib.sha256(repr(list(listed)).encode("utf-8", "replace")).hexdigest()[:16]


def list_part(listed: Sequence[view_models.Listed], viewer: Viewer) -> str:
    """The part of the list that is fetched again."""
    return _render("list_part.html", viewer, listed=listed)


def experiment_page(
    view: view_models.Experiment,
    checked: view_models.Checked | None,
    viewer: Viewer,
    notice: str = "",
) -> str:
    """An experiment; `notice` is a sentence on what was just done or refused."""
    at = _at(viewer, "e", view.name)
    return _render(
        "experiment.html",
        viewer,
        view=view,
        checked=checked,
        notice=notice,
        polls=at,
    )


def experiment_part(
    view: view_models.Experiment, checked: view_models.Checked | None, viewer: Viewer
) -> str:
    """The part of it that is fetched again."""
    return _render("experiment_part.html", viewer, view=view, checked=checked)


def pair_page(view: view_models.Experiment, pair: view_models.Pair, viewer: Viewer) -> str:
    """Two arms of an experiment."""
    at = _at(viewer, "e", view.name, "pair", str(pair.first.number), str(pair.second.number))
    return _render("pair.html", viewer, view=view, pair=pair, polls=at)


def pair_part(view: view_models.Experiment, pair: view_models.Pair, viewer: Viewer) -> str:
    """The part of it that is fetched again."""
    return _render("pair_part.html", viewer, view=view, pair=pair)


def log_page(
    view: view_models.Experiment,
    duels: Sequence[view_models.Duel],
    filter: Mapping[str, str],
    next: str,
    viewer: Viewer,
) -> str:
    """The latest duels; `next` is the `before` of the older ones, empty where there are none."""
    kept = {name: value for name, value in filter.items() if value and name != "before"}
    older = f"?{urllib.parse.urlencode({**kept, 'before': next})}" if next else ""
    return _render(
        "log.html",
        viewer,
        view=view,
        duels=duels,
        filter=filter,
        older=older,
        outcomes=OUTCOMES if view.feedback == "votes" else OF_CONVERSIONS,
    )


def keys_page(
    keys: Iterable[Any], viewer: Viewer, made: str = "", problem: str = "", warning: str = ""
) -> str:
    """The keys; `made` is one that was just made, shown this once, with what is odd about it."""
    return _render(
        "keys.html", viewer, keys=tuple(keys), made=made, problem=problem, warning=warning
    )


def login_page(problem: str = "", next: str = "/", viewer: Viewer | None = None) -> str:
    """Ask for a key; `next` is where to go then."""
    return _render("login.html", viewer or Viewer(), problem=problem, next=next)


def error_page(status: int, words: str, viewer: Viewer, again: int = 0) -> str:
    """Say what went wrong; the page tries again after so many seconds, unless 0."""
    return _render("error.html", viewer, status=status, said=words, again=again)


def calls_page(openapi: Mapping[str, Any], viewer: Viewer) -> str:
    """The calls of the service, for people who write programs."""
    return _render("calls.html", viewer, calls=read_calls(openapi))


def _at(viewer: Viewer, *parts: str) -> str:
    """An address; what is in a name is quoted."""
    return f"{viewer.base}/{'/'.join(urllib.parse.quote(part, safe='') for part in parts)}"


def _render(name: str, viewer: Viewer, **said: Any) -> str:
    def at(*parts: Any) -> str:
        return _at(viewer, *map(str, parts))

    return _PAGES.get_template(name).render(viewer=viewer, at=at, **said)


def _inline() -> dict[str, Markup]:
    """Return the style and the script of a report, and the policy that allows these alone."""
    style = STATIC[_STYLE].text
    script = STATIC["page.js"].text.replace("</script", "<\\/script")
    policy = (
        f"default-src 'none'; style-src {source_of(style)}; script-src {source_of(script)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return {"style": Markup(style), "script": Markup(script), "policy": Markup(policy)}


def _shown(value: Any) -> Any:
    """Text made safe, with unprintable characters replaced; markup as it is."""
    if type(value) is not str:
        return value
    return escape(value) if value.isprintable() else Markup(in_html(value))


def _sentence(said: str, name: str | None) -> str:
    """Words as a sentence; but a name at its beginning is written as it is."""
    is_name = name is not None and said.startswith(name)
    return said if is_name else said[:1].upper() + said[1:]


def _moment(value: float | None, form: str = "full") -> Markup:
    """A moment, which `page.js` writes in the viewer's zone."""
    if value is None:
        return Markup(formats.NONE)
    at, said = formats.iso(value), formats.utc(value, to_seconds=form == "seconds")
    return Markup(f'<time datetime="{at}" data-form="{form}" title="{said}">{said}</time>')


def _code(text: str) -> Markup:
    """Lines of code, or of a form that was sent: as they are, with their line breaks."""
    return Markup("\n".join(in_html(line) for line in text.replace("\r\n", "\n").split("\n")))


def _make() -> Environment:
    made = Environment(
        loader=PackageLoader("duelay.page"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(
        about=formats.about,
        code=_code,
        count=formats.count,
        duration=formats.duration,
        moment=_moment,
        one_in=formats.one_in,
        share=formats.share,
        times=formats.times,
    )
    made.globals.update(
        ADVICE=ADVICE,
        ANSWERS=round(1000 * at_least(10.0)),  # milliseconds that a poll waits
        EVENTS=EVENTS,
        LONG=_LONG,
        NARROW=_NARROW,
        SCRIPTS=_SCRIPTS,
        STATIC=STATIC,
        STYLE=_STYLE,
        VERDICTS=VERDICTS,
        draw=drawing.draw,
        area_class=drawing.area_class,
        draw_bar=sparklines.draw_bar,
        in_curl=snippets.in_curl,
        in_python=snippets.in_python,
        inline=_inline,
        line_class=drawing.line_class,
        many=formats.many,
        find_half_width=sparklines.find_half_width,
        sentence=_sentence,
        span=formats.span,
        draw_counts=sparklines.draw_counts,
        version=__version__,
        version_of=list_version,
        draw_interval=sparklines.draw_interval,
    )
    return made


_PAGES = _make()
