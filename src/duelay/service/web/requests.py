"""Visits: somebody with a browser, who they are, and how they are answered."""

from __future__ import annotations

import dataclasses
import gzip
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, quote, urlencode

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from duelay.errors import UnknownExperimentError
from duelay.live import Experiment
from duelay.page import render
from duelay.service.context import ServiceContext
from duelay.service.errors import RefusedError, cut
from duelay.service.keys import ANYBODY, Key
from duelay.service.sessions import Session, is_here, is_own

GUARDED = {
    "Content-Security-Policy": render.POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}
_HEADERS = {**GUARDED, "Cache-Control": "no-store", "Vary": "Cookie, HX-Request, Accept-Encoding"}
_FORM = "application/x-www-form-urlencoded"
_MOST_FIELDS = 100
_MOST_NAMES = 20  # of experiments, on the page that says that there is no such one
_AGAIN = 2  # seconds after which a page tries again while the service is not ready
_PACKED = 500  # bytes from which on a page is compressed
_LATER = secrets.token_hex(16)  # stands in a shared page for the token, which is put in later
_STRANGER = Key("", "", (), ())


@dataclass
class BrowserRequest:
    """A request of a browser."""

    request: Request
    context: ServiceContext
    key: Key = _STRANGER
    session: Session | None = None
    is_new: bool = False  # its session began with this request
    form: Mapping[str, list[str]] = field(default_factory=dict)

    @property
    def base(self) -> str:
        """What all addresses begin with."""
        return str(self.request.scope.get("root_path", ""))

    @property
    def is_part(self) -> bool:
        """Whether a page that is open asks for what has changed."""
        return self.request.headers.get("hx-request") == "true"

    def said(self, name: str) -> str:
        """Return a field of the form, or of the address; empty where it is left out."""
        if self.request.method == "POST":
            return self.form.get(name, [""])[0].strip()
        return self.request.query_params.get(name, "").strip()

    def viewer(self, name: str | None = None) -> render.Viewer:
        """Return what the visitor may do: with an experiment, or at all if none is named."""
        may = self.key.may("administer", name)
        return render.Viewer(
            may_change=may,
            may_keys=self.may_keys,
            csrf="" if self.session is None else self.context.sessions.token(self.session),
            signed_in="" if self.key in (ANYBODY, _STRANGER) else self.key.name,
            base=self.base,
            origin=str(self.request.base_url).rstrip("/"),
        )

    @property
    def may_keys(self) -> bool:
        """Whether they may make keys: a key for some experiments must not make one for all."""
        return self.key.may("administer") and self.key.experiments is None

    def need(self, name: str | None = None) -> None:
        """Refuse a visitor who may not administer: an experiment, or at all if none is named."""
        if not self.key.may("administer", name):
            raise RefusedError(403, "This key may look, and not administer.")

    async def open(self, name: str) -> Experiment:
        """Return an experiment; one that the visitor may not see is said not to be there."""
        try:
            if self.key.covers(name):
                return (await self.context.registry.open(name))[0]
        except UnknownExperimentError:
            pass
        raise await self.no_experiment(name)

    async def no_experiment(self, name: str) -> RefusedError:
        """Return the error for an unknown experiment; it names those that the visitor may see."""
        self.context.registry.forget(name)
        there = await self.context.registry.call(Experiment.names, self.context.store)
        names = [each for each in there if self.key.covers(each)]
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        shown = ", ".join(names[:_MOST_NAMES]) + more
        words = f"There is no experiment “{cut(name)}” here"
        return RefusedError(404, f"{words}. There are: {shown}." if names else f"{words}, nor any.")

    async def show(self, write: Callable[[], str], status: int = 200) -> Response:
        """Answer with a page, written in a thread: long ones hold up nobody who asks and tells."""
        return self.keep(
            await self.context.registry.call(lambda: _answer(self.request, write(), status, {}))
        )

    async def show_shared(
        self, name: str, what: tuple[Any, ...], write: Callable[[render.Viewer], str]
    ) -> Response:
        """Answer with a page of an experiment, written once for all who see the same.

        Each visitor has another token: it is put in afterwards.
        """
        viewer = dataclasses.replace(self.viewer(name or None), csrf=_LATER)
        text = await self.context.view_cache.get(name, (*what, viewer), lambda: write(viewer))
        token = self.viewer().csrf
        return await self.show(lambda: text.replace(_LATER, token))

    def go(self, address: str) -> Response:
        """Send them to another page."""
        return self.keep(RedirectResponse(address, 303, headers=_HEADERS))

    def keep(self, response: Response) -> Response:
        """Let a session that is new be kept."""
        if self.is_new and self.session is not None:
            self.context.sessions.keep(response, self.request, self.session)
        return response

    def say(self, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
        """Answer with what is wrong."""
        if status == 401:
            return self._ask_for_key()
        again = _AGAIN if status == 503 and self.request.method == "GET" else 0
        text = render.error_page(status, cut(sentence), self.viewer(), again)
        return self.keep(_answer(self.request, text, status, headers or {}))

    def _ask_for_key(self) -> Response:
        url = self.request.url
        left = [pair for pair in self.request.query_params.multi_items() if pair[0] != "seen"]
        here = url.path + (f"?{urlencode(left)}" if left else "")
        goes_on = here if self.request.method == "GET" else f"{self.base}/"
        address = f"{self.base}/login?next={quote(goes_on, safe='/')}"
        if self.is_part:  # the whole page must go there, not only a part of it
            return Response(status_code=401, headers={**_HEADERS, "HX-Redirect": address})
        return RedirectResponse(address, 303, headers=_HEADERS)


async def greet(browser: BrowserRequest) -> None:
    """Find out who the visitor is; refuse one who is not known."""
    context = browser.context
    if not context.ring.is_fresh:
        await context.registry.call(context.ring.read)
    session = context.sessions.read(browser.request)
    if context.ring.is_empty and not context.needs_key:
        if not is_here(browser.request):
            raise RefusedError(
                403, "As long as there is no key, the page is for this machine alone, at 127.0.0.1 "
                "or localhost: make a key with `duelay key create`, and sign in with it.",
            )  # fmt: skip
        browser.key = ANYBODY
        browser.is_new = session is None or session.key != ""
        browser.session = context.sessions.begin() if browser.is_new else session
        return
    key = None if session is None else context.ring.get(session.key)
    if key is None:
        raise RefusedError(401, "Sign in with a key.")
    browser.key, browser.session = key, session


async def read_form(browser: BrowserRequest) -> None:
    """Read what a form has sent; refuse what another site may have sent."""
    request = browser.request
    if not is_own(request):
        raise RefusedError(403, "This was sent from another site, and nothing was changed.")
    if not request.headers.get("content-type", "").startswith(_FORM):
        raise RefusedError(422, "This takes what the page's form sends.")
    try:
        body = (await request.body()).decode()
        browser.form = parse_qs(body, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise RefusedError(422, "This takes what the page's form sends.") from None


def check_token(browser: BrowserRequest) -> None:
    """Refuse a form that is not of a page that was shown in this session."""
    if (
        browser.session is None
        or browser.is_new
        or not browser.context.sessions.is_token(browser.session, browser.said("csrf"))
    ):
        raise RefusedError(
            403, "The page was open for too long, and nothing was changed: load it again, and do "
            "it there.",
        )  # fmt: skip


def to_people(request: Request) -> Any:
    """Return a function that answers a browser where nothing is found; None for a program."""
    is_call = request.url.path.startswith(("/experiments", "/duels"))
    if is_call or "text/html" not in request.headers.get("accept", ""):
        return None
    return BrowserRequest(request, request.app.state.context).say


def takes_gzip(request: Request) -> bool:
    """Whether a browser takes compressed answers."""
    for part in request.headers.get("accept-encoding", "").split(","):
        name, _, weight = part.partition(";")
        if name.strip().lower() == "gzip":
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def _answer(request: Request, text: str, status: int, headers: Mapping[str, Any]) -> Response:
    body, said = text.encode("utf-8", "replace"), {**_HEADERS, **headers}
    if len(body) > _PACKED and takes_gzip(request):
        body = gzip.compress(body, 5, mtime=0)
        said["Content-Encoding"] = "gzip"
    return Response(body, status, said, "text/html")
