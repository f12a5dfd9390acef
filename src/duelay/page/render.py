"""Write view models as HTML, with the templates and the static files of this folder.

A page works without JavaScript. With it, htmx fetches the live part again and idiomorph updates it
in place. There are no inline styles or scripts, so that a strict Content-Security-Policy holds. A
report is one file: its style and script are inline, and its policy names their digests. Third-party
files are in `static/vendor`, and `VENDORED.json` there has their origin and checksums.
"""

from __future__ import annotations

import base64
import hashlib
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from duelay._core.escapes import in_html
from duelay._core.patience import at_least
from duelay._version import __version__
from duelay.inference.verdicts import difference
from duelay.live import summary
from duelay.page import formats, glossary, slide, snippets, view_models
from duelay.page.advice import format_window
from duelay.page.api_docs import read_endpoints
from duelay.page.charts import svg
from duelay.page.duel_log import OUTCOMES, OUTCOMES_OF_CONVERSIONS
from duelay.planning.report import describe_days

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
    "plan_part",
    "summary_picture",
    "words_page",
    "words_part",
]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_FOLDER = resources.files("duelay.page") / "static"
_STYLE = "page.css"
_SCRIPTS = ("htmx.min.js", "idiomorph-ext.min.js", "page.js")
_STATIC_SCRIPTS = "page.js"
_MAX_OPEN_ARMS = 30  # further arms are folded away
_MAX_ARMS_OF_FULL_CELLS = 8  # with more arms, a cell of the matrix has its share alone

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
    "held": "Booking held",
    "released": "Booking released",
    "good_enough": "Good enough",
    "equivalent": "No difference",
    "undecided": "Undecided",
    "finished": "Finished",
    "reopened": "Reopened",
    "archived": "Archived",
    "listed": "On the list again",
    "guardrail": "Guard-rail",
}
STATUSES = {"equivalent": "no difference", "good_enough": "good enough", "undecided": "undecided"}
VERDICTS = {
    "off": "alarm",
    "remark": "worth a look",
    "good": "no alarm",
    "unknown": "not enough heard",
}


@dataclass(frozen=True)
class Asset:
    """A file and its type; the digest of its content is part of its address."""

    name: str
    content: bytes
    content_type: str
    digest: str

    @property
    def address(self) -> str:
        """The path of the file; browsers may cache it for ever."""
        return f"/static/{self.digest}/{self.name}"

    @property
    def text(self) -> str:
        """The content as text."""
        return self.content.decode("utf-8")


def source_of(text: str) -> str:
    """Return the source of an inline style or script for a Content-Security-Policy."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _read() -> dict[str, Asset]:
    found = {}
    folders = (_FOLDER, _FOLDER / "vendor")
    for path in (path for folder in folders for path in folder.iterdir() if path.is_file()):
        suffix = path.name[path.name.rfind(".") :]
        if suffix in _TYPES:
            content = path.read_bytes()
            digest = hashlib.sha256(content).hexdigest()[:16]
            found[path.name] = Asset(path.name, content, _TYPES[suffix], digest)
    return found


STATIC: dict[str, Asset] = _read()


@dataclass(frozen=True)
class Viewer:
    """The reader of a page, and their permissions."""

    may_change: bool = False  # pause, resume, add, retire, new
    may_keys: bool = False  # see, make and revoke keys
    csrf: str = ""  # hidden field of every form that posts
    signed_in: str = ""  # name of the key; empty where none is needed
    base: str = ""  # prefix of addresses
    is_static: bool = False  # a report: no forms, no polling, no links to other pages
    origin: str = "http://127.0.0.1:8000"  # of the service, with the prefix: for code to paste


def list_page(
    listed: Sequence[view_models.ListEntry],
    viewer: Viewer,
    problem: str = "",
    said: Mapping[str, str] | None = None,
    shown: view_models.ListFilter | None = None,
    plan: view_models.PlanView | None = None,
) -> str:
    """Write the list of experiments, with the form for a new one.

    `problem` says what is wrong with the values of the form, `said`, a sentence on each line.
    `shown` says which experiments were asked for; all of them by default. `plan` is that of the
    form.
    """
    shown = shown or view_models.ListFilter(n_found=len(listed), n_all=len(listed))
    return _render(
        "list.html", viewer, listed=listed, problem=problem, said=said or {}, shown=shown,
        plan=plan or view_models.PlanView(), is_part=False,
        polls=_at(viewer) + list_query(shown, shown.page), query=list_query,
    )  # fmt: skip


def list_query(shown: view_models.ListFilter, page: int) -> str:
    """Return the query of the address of a page of the list; empty for the first page of all."""
    asked = {"search": shown.search, "status": shown.status, "page": str(page) if page > 1 else ""}
    said = urllib.parse.urlencode({name: value for name, value in asked.items() if value})
    return f"?{said}" if said else ""


def list_version(
    listed: Sequence[view_models.ListEntry], shown: view_models.ListFilter | None = None
) -> str:
    """Return a text that changes with anything in the list."""
    return hashlib.sha256(repr((*listed, shown)).encode("utf-8", "replace")).hexdigest()[:16]


def list_part(
    listed: Sequence[view_models.ListEntry],
    viewer: Viewer,
    shown: view_models.ListFilter | None = None,
) -> str:
    """Write the live part of the list."""
    shown = shown or view_models.ListFilter(n_found=len(listed), n_all=len(listed))
    return _render("list_part.html", viewer, listed=listed, shown=shown, query=list_query)


def plan_part(plan: view_models.PlanView, said: Mapping[str, str], viewer: Viewer) -> str:
    """Write the fields and the result of a plan, and what is wrong with other fields."""
    return _render("plan_part.html", viewer, plan=plan, said=said, is_part=True)


def experiment_page(
    view: view_models.ExperimentView,
    checked: view_models.Diagnostics | None,
    viewer: Viewer,
    notice: str = "",
) -> str:
    """Write the page of an experiment; `notice` tells the outcome of a form that was just sent."""
    at = _at(viewer, "e", view.standing.name)
    return _render(
        "experiment.html",
        viewer,
        view=view,
        checked=checked,
        notice=notice,
        polls=at,
    )


def experiment_part(
    view: view_models.ExperimentView, checked: view_models.Diagnostics | None, viewer: Viewer
) -> str:
    """Write the live part of the page of an experiment."""
    return _render("experiment_part.html", viewer, view=view, checked=checked)


def pair_page(view: view_models.ExperimentView, pair: view_models.PairView, viewer: Viewer) -> str:
    """Write the page of two arms."""
    at = _at(
        viewer, "e", view.standing.name, "pair", str(pair.first.number), str(pair.second.number)
    )
    return _render("pair.html", viewer, view=view, pair=pair, polls=at)


def pair_part(view: view_models.ExperimentView, pair: view_models.PairView, viewer: Viewer) -> str:
    """Write the live part of the page of two arms."""
    return _render("pair_part.html", viewer, view=view, pair=pair)


def log_page(
    view: view_models.ExperimentView,
    duels: Sequence[view_models.LogEntry],
    filter: Mapping[str, str],
    next: str,
    viewer: Viewer,
) -> str:
    """Write a page of the log; `next` is the `before` of the next one, empty at the end."""
    kept = {name: value for name, value in filter.items() if value and name != "before"}
    older = f"?{urllib.parse.urlencode({**kept, 'before': next})}" if next else ""
    return _render(
        "log.html",
        viewer,
        view=view,
        duels=duels,
        filter=filter,
        older=older,
        outcomes=OUTCOMES if view.standing.feedback == "votes" else OUTCOMES_OF_CONVERSIONS,
    )


def keys_page(
    keys: Iterable[Any], viewer: Viewer, made: str = "", problem: str = "", warning: str = ""
) -> str:
    """Write the list of keys; `made` is a new key, which is shown once, with its `warning`."""
    return _render(
        "keys.html", viewer, keys=tuple(keys), made=made, problem=problem, warning=warning
    )


def login_page(problem: str = "", next: str = "/", viewer: Viewer | None = None) -> str:
    """Write the form that asks for a key; `next` is the address to go to afterwards."""
    return _render("login.html", viewer or Viewer(), problem=problem, next=next)


def error_page(status: int, words: str, viewer: Viewer, again: int = 0) -> str:
    """Write an error; the page loads again after `again` seconds, unless that is 0."""
    return _render("error.html", viewer, status=status, said=words, again=again)


def calls_page(openapi: Mapping[str, Any], viewer: Viewer) -> str:
    """Write the reference of the HTTP API."""
    return _render("calls.html", viewer, calls=read_endpoints(openapi))


def words_part(words: str) -> str:
    """Write a sentence, for a place of a page."""
    return str(_escape(words))


def words_page(viewer: Viewer) -> str:
    """Write the list of words that the page explains."""
    return _render("words.html", viewer)


def summary_picture(view: view_models.ExperimentView) -> str:
    """Write the summary of an experiment as a picture of one slide, in SVG."""
    return slide.draw_slide(view.standing)


def _at(viewer: Viewer, *parts: str) -> str:
    """Return an address, with its parts quoted."""
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


def _escape(value: Any) -> Any:
    """Escape text and replace unprintable characters; return markup as it is."""
    if type(value) is not str:
        return value
    return escape(value) if value.isprintable() else Markup(in_html(value))


def _bounded(values: Sequence[float], most: float) -> tuple[float, ...]:
    """Return numbers that are at most `most`: they are older than it."""
    return tuple(min(value, most) for value in values)


def _sentence(said: str, name: str | None) -> str:
    """Return a text with a capital at its beginning, unless it begins with a name."""
    is_name = name is not None and said.startswith(name)
    return said if is_name else said[:1].upper() + said[1:]


def _moment(value: float | None, form: str = "full") -> Markup:
    """Return a moment in UTC, which `page.js` rewrites in the zone of the reader."""
    if value is None:
        return Markup(formats.NONE)
    at, said = formats.iso(value), formats.utc(value, to_seconds=form == "seconds")
    return Markup(f'<time datetime="{at}" data-form="{form}" title="{said}">{said}</time>')


def _code(text: str) -> Markup:
    """Escape lines of code or of a form, and keep their line breaks."""
    return Markup("\n".join(in_html(line) for line in text.replace("\r\n", "\n").split("\n")))


def _make() -> Environment:
    made = Environment(
        loader=PackageLoader("duelay.page"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_escape,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(
        about=formats.about,
        chance=formats.chance,
        code=_code,
        count=formats.count,
        duration=formats.duration,
        moment=_moment,
        lift=formats.lift,
        one_in=formats.one_in,
        share=formats.share,
        times=formats.times,
        window=format_window,
    )
    made.globals.update(
        ADVICE=ADVICE,
        ANSWERS=round(1000 * at_least(10.0)),  # milliseconds that a poll waits
        PLAN_TIMEOUT=round(1000 * at_least(300.0)),  # and the simulation of a plan
        EVENTS=EVENTS,
        MAX_OPEN_ARMS=_MAX_OPEN_ARMS,
        MAX_ARMS_OF_FULL_CELLS=_MAX_ARMS_OF_FULL_CELLS,
        SCRIPTS=_SCRIPTS,
        STATIC=STATIC,
        STYLE=_STYLE,
        MIN_ANSWERS=summary.MIN_ANSWERS,
        STATUSES=STATUSES,
        VERDICTS=VERDICTS,
        WORDS=glossary.WORDS,
        cost_ends=summary.cost_ends,
        describe_days=describe_days,
        difference=difference,
        draw=svg.draw,
        area_class=svg.area_class,
        bounded=_bounded,
        draw_bar=svg.draw_bar,
        write_curl=snippets.write_curl,
        write_javascript=snippets.write_javascript,
        write_python=snippets.write_python,
        inline=_inline,
        line_class=svg.line_class,
        many=formats.many,
        find_half_width=svg.find_half_width,
        sentence=_sentence,
        span=formats.span,
        draw_counts=svg.draw_counts,
        version=__version__,
        version_of=list_version,
        draw_interval=svg.draw_interval,
    )
    return made


_PAGES = _make()
