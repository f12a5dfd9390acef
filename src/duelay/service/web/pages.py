"""The routes of the web pages, and of their forms."""

from __future__ import annotations

import asyncio
import functools
import gzip
import math
import re
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import Request
from pydantic import ValidationError
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from duelay.errors import InvalidValueError, UnknownExperimentError
from duelay.live import Experiment
from duelay.live.validation import check_length, check_name
from duelay.page import build, diagnostics, duel_log, plan, render, view_models
from duelay.problems import check_arms
from duelay.service import admin, models
from duelay.service.auth import safe_next
from duelay.service.errors import RefusedError, cut, in_words, refusal_of
from duelay.service.experiment_list import STATUSES, FoundExperiments, find_experiments
from duelay.service.keys import ANYBODY, create_key, list_keys, revoke_key
from duelay.service.web.browser import (
    GUARDED,
    BrowserRequest,
    check_token,
    greet,
    read_form,
    takes_gzip,
)

Handler = Callable[[BrowserRequest], Awaitable[Response]]
PAGES: list[Route] = []
_ROWS = 100  # of the log, in one page
_MAX_ENTRIES = 25  # experiments on one page of the list
_MAX_SEARCH = 200  # characters
_FIELDS_OF_NEW = ("name", "arms", "goal", "window", "feedback", "display", "margin", "end",
                  "budget", "until", "fallback")  # fmt: skip
_NUMBERS = ("margin", "budget")  # fields of a new experiment
_DELAY = 0.5  # seconds that a wrong key waits
_sleep = asyncio.sleep
_FOR_EVER = "public, max-age=31536000, immutable"


def _page(path: str, method: str = "GET", *, is_open: bool = False) -> Callable[[Handler], Handler]:
    """Let a function answer at an address; it knows who the visitor is, unless it `is_open`."""

    def add(answer: Handler) -> Handler:
        async def handle(request: Request) -> Response:
            browser = BrowserRequest(request, request.app.state.context)
            request.scope["route"], request.scope["say"] = route, browser.say
            if not is_open:
                await greet(browser)
            if method == "POST":
                await read_form(browser)
                if not is_open:
                    check_token(browser)
            try:
                return await answer(browser)
            except UnknownExperimentError:  # another server has deleted it
                raise await browser.no_experiment(request.path_params.get("name", "")) from None

        route = Route(path, handle, methods=[method])
        PAGES.append(route)
        return answer

    return add


# The list.


@_page("/")
async def listing(browser: BrowserRequest) -> Response:
    """All experiments."""
    listed, shown = await _listed(browser)
    if _is_seen(browser, render.list_version(listed, shown)):
        return browser.keep(Response(status_code=204))
    write = render.list_part if browser.is_part else render.list_page
    return await browser.show(lambda: write(listed, browser.viewer(), shown=shown))


@_page("/new")
async def new_form(browser: BrowserRequest) -> Response:
    """Lead to the form, which is on the list."""
    return browser.go(f"{browser.base}/#new")


@_page("/new", "POST")
async def new(browser: BrowserRequest) -> Response:
    """Make an experiment; if it cannot be, what was typed is still there."""
    browser.need()
    said = {name: browser.said(name) for name in _FIELDS_OF_NEW}
    given: dict[str, Any] = {name: value for name, value in said.items() if value}
    given |= {name: _number(value) for name, value in given.items() if name in _NUMBERS}
    wrong: list[str] = []
    if "margin" not in given:
        given.pop("end", None)  # the form always has one
    elif said["display"] == "one" and not said["margin"].endswith("%"):
        del given["margin"]
        wrong.append(
            "smallest difference: where one arm is shown, give a lift in percent, such as 20%"
        )
    given["arms"] = [arm.strip() for arm in said["arms"].splitlines() if arm.strip()]
    given["window"] = said["window"] or None
    try:
        if wrong:
            raise InvalidValueError(wrong[0], argument="margin")
        body = models.NewExperiment(**given)
        await admin.make(browser.context, browser.key, body)
    except (ValidationError, RefusedError, InvalidValueError) as error:
        status, words = _wrong(error)
        if status == 422:
            words = "\n".join(_all_wrong(given) + wrong) or words
        listed, shown = await _listed(browser)
        said |= {name: browser.said(f"plan-{name}") for name in plan.FIELDS}
        return await browser.show(
            lambda: render.list_page(listed, browser.viewer(), words, said, shown), status
        )
    browser.context.view_cache.forget(body.name)
    return browser.go(_address(browser, body.name))


@_page("/new/plan", "POST")
async def plan_new(browser: BrowserRequest) -> Response:
    """Simulate the experiment of the form; nothing is made, and what was typed is still there."""
    browser.need()
    said = {name: browser.said(name) for name in _FIELDS_OF_NEW}
    said |= {name: browser.said(f"plan-{name}") for name in plan.FIELDS}
    try:
        report = await browser.context.planner.plan(
            plan.read_fields(said), browser.request.is_disconnected
        )
        found = plan.make_view(report)
    except (RefusedError, InvalidValueError) as error:
        place = plan.field_of(getattr(error, "argument", None))
        found = view_models.PlanView(wrong={place: _wrong(error)[1]}, is_open=True)
    if browser.is_part:  # htmx takes no page with an error
        return await browser.show(lambda: render.plan_part(found, said, browser.viewer()))
    listed, shown = await _listed(browser)
    return await browser.show(
        lambda: render.list_page(listed, browser.viewer(), "", said, shown, found),
        422 if found.wrong else 200,
    )


def _number(text: str) -> Any:
    """Return a number that was typed; a text that is none is refused later."""
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        return text


async def _listed(
    browser: BrowserRequest,
) -> tuple[list[view_models.ListEntry], view_models.ListFilter]:
    """Return a page of the list; only what is on it is read."""
    context = browser.context
    is_get = browser.request.method == "GET"  # a form has fields of the same names
    asked = {name: browser.said(name) if is_get else "" for name in ("search", "status", "page")}
    search = asked["search"][:_MAX_SEARCH]
    status = asked["status"] if asked["status"] in STATUSES else ""
    page = int(asked["page"]) if re.fullmatch("[1-9][0-9]{0,5}", asked["page"]) else 1

    def find() -> FoundExperiments:
        return find_experiments(
            context.store, browser.key, search=search, status=status,
            offset=(page - 1) * _MAX_ENTRIES, limit=_MAX_ENTRIES,
        )  # fmt: skip

    place = ("find", browser.key.experiments, search, status, page)
    found = await context.view_cache.get("", place, find)
    listed = await context.view_cache.get(
        "",
        ("list", found.names),
        lambda: build.build_list(context.store, found.names, **context.opened),
    )
    n_pages = max(math.ceil(found.n_found / _MAX_ENTRIES), 1)
    return listed, view_models.ListFilter(
        search, status, page, max(n_pages, page), found.n_found, found.n_all
    )


# An experiment.


@_page("/e/{name}")
async def experiment(browser: BrowserRequest) -> Response:
    """An experiment."""
    view, checked = await _seen(browser)
    if _is_seen(browser, view.version):
        return browser.keep(Response(status_code=204))
    write = render.experiment_part if browser.is_part else render.experiment_page
    return await browser.show_shared(
        view.standing.name,
        (write.__name__, view.version),
        lambda viewer: write(view, checked, viewer),
    )


@_page("/e/{name}/pair/{first:int}/{second:int}")
async def pair(browser: BrowserRequest) -> Response:
    """Two arms of it."""
    view, _ = await _seen(browser)
    if _is_seen(browser, view.version):
        return browser.keep(Response(status_code=204))
    i, j = browser.request.path_params["first"], browser.request.path_params["second"]
    if i == j or max(i, j) >= len(view.arms):
        raise RefusedError(
            404, f"There is no such pair: {view.standing.name} has {len(view.arms)} arms."
        )
    there = await browser.open(view.standing.name)
    found = await browser.context.view_cache.get(
        view.standing.name, ("pair", i, j), lambda: build.build_pair(there, i, j)
    )
    write = render.pair_part if browser.is_part else render.pair_page
    return await browser.show_shared(
        view.standing.name,
        (write.__name__, i, j, view.version),
        lambda viewer: write(view, found, viewer),
    )


@_page("/e/{name}/log")
async def log(browser: BrowserRequest) -> Response:
    """Its latest duels; a visitor who may not administer sees none, as over HTTP."""
    name = browser.request.path_params["name"]
    there = await browser.open(name)
    browser.need(name)
    view, _ = await _seen(browser)
    asked = {key: browser.said(key) for key in ("arm", "outcome", "before")}
    if not asked["before"].isdecimal() or len(asked["before"]) > 15:
        asked["before"] = ""
    duels, following = await browser.context.view_cache.run(
        lambda: duel_log.read_log(
            there,
            before=int(asked["before"]) if asked["before"] else None,
            limit=_ROWS,
            arm=asked["arm"] or None,
            outcome=asked["outcome"] or None,
        )
    )
    return await browser.show(
        lambda: render.log_page(view, duels, asked, str(following or ""), browser.viewer(name))
    )


@_page("/e/{name}/export.csv")
async def export(browser: BrowserRequest) -> Response:
    """Every duel that is kept, as `duelay estimate` reads it."""
    name = browser.request.path_params["name"]
    there = await browser.open(name)
    browser.need(name)
    folder = tempfile.TemporaryDirectory(prefix="duelay-export-")
    async with browser.context.exporting:
        path = await browser.context.registry.call(there.export, Path(folder.name) / "duels.csv")
    return browser.keep(
        FileResponse(
            path,
            headers={**GUARDED, "Cache-Control": "no-store"},
            media_type="text/csv",
            filename=f"{name}.csv",
            background=BackgroundTask(folder.cleanup),
        )
    )


@_page("/e/{name}/summary.svg")
async def summary(browser: BrowserRequest) -> Response:
    """Its summary as a picture, for a slide."""
    view, checked = await _seen(browser)
    if checked is None:  # a picture is kept: it must not lack an alarm that is found a second later
        there = await browser.open(view.standing.name)
        await browser.context.view_cache.run(lambda: diagnostics.diagnose(there))
        browser.context.view_cache.forget(view.standing.name)
        view, _ = await _seen(browser)
    text = await browser.context.registry.call(lambda: render.summary_picture(view))
    headers = {**GUARDED, "Cache-Control": "no-store", "Vary": "Cookie"}
    return browser.keep(Response(text, 200, headers, "image/svg+xml"))


@_page("/e/{name}/arm-cost")
async def arm_cost(browser: BrowserRequest) -> Response:
    """What a further arm costs, in a sentence; without scripts, on the page of the experiment."""
    name, arm = browser.request.path_params["name"], browser.said("arm") or None
    there = await browser.open(name)
    browser.need(name)
    try:
        found = await browser.context.view_cache.get(
            name, ("arm-cost", arm), lambda: there.cost_of_arm(arm)
        )
        words = found.words
    except InvalidValueError as error:
        words = _wrong(error)[1]
    if browser.is_part:
        return await browser.show(lambda: render.words_part(words))
    view, checked = await _seen(browser)
    return await browser.show(
        lambda: render.experiment_page(view, checked, browser.viewer(name), notice=words)
    )


@_page("/e/{name}/do", "POST")
async def do(browser: BrowserRequest) -> Response:
    """Pause, resume, finish, reopen, hold or release booking, let an arm come or go."""
    name = browser.request.path_params["name"]
    there = await browser.open(name)
    browser.need(name)
    what, arm = browser.said("what"), browser.said("arm")
    changes: dict[str, dict[str, Any]] = {
        "pause": {"status": "paused"},
        "resume": {"status": "running"},
        "finish": {"status": "finished", "arm": arm or None},
        "reopen": {"status": "running"},
        "archive": {"archived": True},
        "list": {"archived": False},
        "hold": {"booking": "held"},
        "release": {"booking": "running"},
        "add": {"add_arms": [arm]},
        "retire": {"retire_arms": [arm]},
    }
    try:
        if what not in changes:
            raise RefusedError(422, f"what: one of {', '.join(changes)}")
        if what == "add" and any(each.name == arm for each in await _present(browser)):
            raise RefusedError(409, f"There is an arm {arm!r} already: nothing has changed.")
        change = models.ExperimentChange(**changes[what])
        await admin.apply_change(browser.context, there, change, browser.key)
    except (ValidationError, RefusedError, InvalidValueError) as error:
        status, words = _wrong(error)
        view, checked = await _seen(browser)
        return await browser.show(
            lambda: render.experiment_page(view, checked, browser.viewer(name), notice=words),
            status,
        )
    browser.context.view_cache.forget(name)
    return browser.go(_address(browser, name))


async def _present(browser: BrowserRequest) -> list[view_models.ArmView]:
    view, _ = await _seen(browser)
    return [arm for arm in view.arms if arm.is_present]


async def _seen(
    browser: BrowserRequest,
) -> tuple[view_models.ExperimentView, view_models.Diagnostics | None]:
    """Return what is known of the experiment of the address."""
    name = browser.request.path_params["name"]
    there = await browser.open(name)
    view = await browser.context.view_cache.get(
        name, ("experiment",), lambda: build.build_experiment(there)
    )
    heard = f"{view.standing.duels}.{view.heard}.{view.pending}.{view.standing.late}"
    return view, browser.context.checks.latest(there, heard)


# Keys.


@_page("/keys")
async def keys(browser: BrowserRequest) -> Response:
    """The keys, without their secrets."""
    return await _keys(browser)


@_page("/keys", "POST")
async def make_key(browser: BrowserRequest) -> Response:
    """Make a key, which is shown this once."""
    _need_keys(browser)
    names = [name.strip() for text in browser.form.get("experiments", []) for name in
             text.splitlines() if name.strip()]  # fmt: skip
    scopes = browser.form.get("scopes", [])
    if browser.key is ANYBODY and ("administer" not in scopes or names):
        words = (
            "the first key must administer all experiments, since from then on only a key can "
            "administer them"
        )
        return await _keys(browser, problem=words)
    context = browser.context
    try:
        made = await context.registry.call(
            create_key, context.store, browser.said("name"), scopes, names or None
        )
    except InvalidValueError as error:
        return await _keys(browser, problem=str(error))
    context.keys.forget()
    there = await context.registry.call(Experiment.names, context.store)
    unknown = [name for name in names if name not in there]
    warning = ""
    if unknown:
        warning = (
            f"There is no experiment {' or '.join(map(repr, unknown))} yet, only "
            f"{', '.join(map(repr, there)) or 'none'}. The key is good for one that is made under "
            "this name."
        )
    if browser.key is ANYBODY:  # who makes the first key is signed in with it
        await context.registry.call(context.keys.read)
        found = context.keys.find(made)
        assert found is not None
        browser.key, browser.session, browser.is_new = found, context.sessions.begin(found.id), True
    return await _keys(browser, made, warning=warning)


@_page("/keys/revoke", "POST")
async def drop_key(browser: BrowserRequest) -> Response:
    """Let a key be good for nothing."""
    _need_keys(browser)
    await browser.context.registry.call(revoke_key, browser.context.store, browser.said("id"))
    browser.context.keys.forget()
    return browser.go(f"{browser.base}/keys")


async def _keys(
    browser: BrowserRequest, made: str = "", problem: str = "", warning: str = ""
) -> Response:
    _need_keys(browser)
    there = await browser.context.registry.call(list_keys, browser.context.store)
    return await browser.show(
        lambda: render.keys_page(there, browser.viewer(), made, problem, cut(warning)),
        422 if problem else 200,
    )


def _need_keys(browser: BrowserRequest) -> None:
    if not browser.may_keys:
        raise RefusedError(403, "Only a key that administers all experiments can manage keys.")


# Signing in.


@_page("/login", is_open=True)
async def login(browser: BrowserRequest) -> Response:
    """Ask for a key."""
    following = safe_next(browser.said("next"), browser.base)
    return await browser.show(lambda: render.login_page("", following, browser.viewer()))


@_page("/login", "POST", is_open=True)
async def sign_in(browser: BrowserRequest) -> Response:
    """Take a key."""
    context, following = browser.context, safe_next(browser.said("next"), browser.base)
    if not context.keys.is_fresh:
        await context.registry.call(context.keys.read)
    key = context.keys.find(browser.said("key"))
    if key is None:
        await _sleep(_DELAY)
        words = "This is no key that is good here."
        return await browser.show(
            lambda: render.login_page(words, following, browser.viewer()), 401
        )
    browser.key, browser.session, browser.is_new = key, context.sessions.begin(key.id), True
    return browser.go(following)


@_page("/logout", "POST")
async def sign_out(browser: BrowserRequest) -> Response:
    """Forget who it is."""
    response = browser.go(f"{browser.base}/login")
    browser.context.sessions.end(response, browser.request, browser.session)
    return response


# Files.


@_page("/words", is_open=True)
async def words(browser: BrowserRequest) -> Response:
    """The words of the page, explained."""
    return await browser.show(lambda: render.words_page(browser.viewer()))


@_page("/docs", is_open=True)
async def docs(browser: BrowserRequest) -> Response:
    """The calls over HTTP, described for people."""
    openapi = browser.request.app.openapi()
    return await browser.show(lambda: render.calls_page(openapi, browser.viewer()))


@_page("/static/{digest}/{file}", is_open=True)
async def static(browser: BrowserRequest) -> Response:
    """Scripts and styles: those of one digest are the same for ever."""
    found = render.STATIC.get(browser.request.path_params["file"])
    if found is None or found.digest != browser.request.path_params["digest"]:
        raise RefusedError(404, "There is no such file: load the page again.")
    headers = {**GUARDED, "Cache-Control": _FOR_EVER, "Vary": "Accept-Encoding"}
    if not takes_gzip(browser.request):
        return Response(found.content, 200, headers, found.content_type)
    headers["Content-Encoding"] = "gzip"
    return Response(_packed(found.name), 200, headers, found.content_type)


@functools.cache
def _packed(name: str) -> bytes:
    return gzip.compress(render.STATIC[name].content, 9, mtime=0)


def _is_seen(browser: BrowserRequest, version: str) -> bool:
    """Whether the open page shows this version already; a new session needs new tokens in it."""
    return browser.is_part and not browser.is_new and browser.said("seen") == version


def _wrong(error: Exception) -> tuple[int, str]:
    """Return the status and the sentence for something that was typed."""
    if isinstance(error, ValidationError):
        return 422, _typed(error.errors(include_url=False))
    refusal = refusal_of(error)
    assert refusal is not None
    return refusal.status, refusal.sentence


def _all_wrong(given: dict[str, Any]) -> list[str]:
    """Return everything that is wrong with the form of a new experiment, field by field."""
    found: dict[Any, str] = {}
    try:
        models.NewExperiment(**given)
    except ValidationError as error:
        for each in error.errors(include_url=False):
            found.setdefault(each["loc"][0], _typed([each]))
    for name, check in (
        ("name", lambda: check_name(given.get("name", ""))),
        ("arms", lambda: check_arms(given["arms"])),
        ("window", lambda: given["window"] and check_length("window", given["window"])),
    ):
        if name not in found:
            try:
                check()
            except InvalidValueError as error:
                found[name] = str(error)
    return list(found.values())


def _typed(errors: Any) -> str:
    """Say what is wrong with a form; an arm is named by what was typed, and not by a number."""
    name, *at = first = errors[0]["loc"]
    words = in_words(errors)
    if name == "arms" and errors[0]["type"] == "too_short":
        return f"{words}, one on each line"
    if name not in ("arms", "add_arms", "retire_arms") or not at:
        return words
    typed = str(errors[0]["input"])
    typed = f"{typed[:40]}…" if len(typed) > 40 else typed
    return words.replace(".".join(map(str, first)), f"the arm {typed!r}", 1)


def _address(browser: BrowserRequest, name: str) -> str:
    return f"{browser.base}/e/{quote(name, safe='')}"
