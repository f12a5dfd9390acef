"""The addresses of the page: what people look at, and the forms that change something."""

from __future__ import annotations

import asyncio
import functools
import gzip
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

from duelay.errors import UnknownExperimentError
from duelay.live import Experiment
from duelay.page import build, duel_log, render, view_models
from duelay.service import admin, models
from duelay.service.errors import RefusedError, cut, in_words, refusal_of
from duelay.service.keys import ANYBODY, create_key, list_keys, revoke_key
from duelay.service.sessions import safe_next
from duelay.service.web.requests import GUARDED, Visit, check_token, greet, read_form, takes_gzip

Handler = Callable[[Visit], Awaitable[Response]]
PAGES: list[Route] = []
_ROWS = 100  # of the log, in one page
_DELAY = 0.5  # seconds that a wrong key waits
_sleep = asyncio.sleep
_FOR_EVER = "public, max-age=31536000, immutable"


def _page(path: str, method: str = "GET", *, is_open: bool = False) -> Callable[[Handler], Handler]:
    """Let a function answer at an address; it knows who the visitor is, unless it `is_open`."""

    def add(answer: Handler) -> Handler:
        async def handle(request: Request) -> Response:
            visit = Visit(request, request.app.state.room)
            request.scope["route"], request.scope["say"] = route, visit.say
            if not is_open:
                await greet(visit)
            if method == "POST":
                await read_form(visit)
                if not is_open:
                    check_token(visit)
            try:
                return await answer(visit)
            except UnknownExperimentError:  # another server has deleted it
                raise await visit.no_experiment(request.path_params.get("name", "")) from None

        route = Route(path, handle, methods=[method])
        PAGES.append(route)
        return answer

    return add


# The list.


@_page("/")
async def listing(visit: Visit) -> Response:
    """All experiments."""
    listed = await _listed(visit)
    if _is_seen(visit, render.list_version(listed)):
        return visit.keep(Response(status_code=204))
    write = render.list_part if visit.is_part else render.list_page
    return await visit.show(lambda: write(listed, visit.viewer()))


@_page("/new", "POST")
async def new(visit: Visit) -> Response:
    """Make an experiment; if it cannot be, what was typed is still there."""
    visit.need()
    said = {name: visit.said(name) for name in ("name", "arms", "goal", "window", "feedback")}
    given: dict[str, Any] = {name: value for name, value in said.items() if value}
    given["arms"] = [arm.strip() for arm in said["arms"].splitlines() if arm.strip()]
    given["window"] = said["window"] or None
    try:
        body = models.NewExperiment(**given)
        await admin.make(visit.room, visit.key, body)
    except (ValidationError, RefusedError, ValueError) as error:
        status, words = _wrong(error)
        listed = await _listed(visit)
        return await visit.show(
            lambda: render.list_page(listed, visit.viewer(), problem=words, said=said), status
        )
    visit.room.glances.forget(body.name)
    return visit.go(_address(visit, body.name))


async def _listed(visit: Visit) -> list[view_models.ListEntry]:
    room = visit.room
    listed = await room.glances.get(
        "", ("list",), lambda: build.build_list(room.store, **room.opened)
    )
    return [each for each in listed if visit.key.covers(each.name)]


# An experiment.


@_page("/e/{name}")
async def experiment(visit: Visit) -> Response:
    """An experiment."""
    view, checked = await _seen(visit)
    if _is_seen(visit, view.version):
        return visit.keep(Response(status_code=204))
    write = render.experiment_part if visit.is_part else render.experiment_page
    return await visit.show_shared(
        view.name, (write.__name__, view.version), lambda viewer: write(view, checked, viewer)
    )


@_page("/e/{name}/pair/{first:int}/{second:int}")
async def pair(visit: Visit) -> Response:
    """Two arms of it."""
    view, _ = await _seen(visit)
    if _is_seen(visit, view.version):
        return visit.keep(Response(status_code=204))
    i, j = visit.request.path_params["first"], visit.request.path_params["second"]
    if i == j or max(i, j) >= len(view.arms):
        raise RefusedError(404, f"There is no such pair: {view.name} has {len(view.arms)} arms.")
    there = await visit.open(view.name)
    found = await visit.room.glances.get(
        view.name, ("pair", i, j), lambda: build.build_pair(there, i, j)
    )
    write = render.pair_part if visit.is_part else render.pair_page
    return await visit.show_shared(
        view.name, (write.__name__, i, j, view.version), lambda viewer: write(view, found, viewer)
    )


@_page("/e/{name}/log")
async def log(visit: Visit) -> Response:
    """Its latest duels; a visitor who may not administer sees none, as over HTTP."""
    name = visit.request.path_params["name"]
    there = await visit.open(name)
    visit.need(name)
    view, _ = await _seen(visit)
    asked = {key: visit.said(key) for key in ("arm", "outcome", "before")}
    if not asked["before"].isdecimal() or len(asked["before"]) > 15:
        asked["before"] = ""
    duels, following = await visit.room.glances.run(
        lambda: duel_log.read_log(
            there,
            before=int(asked["before"]) if asked["before"] else None,
            limit=_ROWS,
            arm=asked["arm"] or None,
            outcome=asked["outcome"] or None,
        )
    )
    return await visit.show(
        lambda: render.log_page(view, duels, asked, str(following or ""), visit.viewer(name))
    )


@_page("/e/{name}/export.csv")
async def export(visit: Visit) -> Response:
    """Every duel that is kept, as `duelay estimate` reads it."""
    name = visit.request.path_params["name"]
    there = await visit.open(name)
    visit.need(name)
    folder = tempfile.TemporaryDirectory(prefix="duelay-export-")
    async with visit.room.exporting:
        path = await visit.room.desks.call(there.export, Path(folder.name) / "duels.csv")
    return visit.keep(
        FileResponse(
            path,
            headers={**GUARDED, "Cache-Control": "no-store"},
            media_type="text/csv",
            filename=f"{name}.csv",
            background=BackgroundTask(folder.cleanup),
        )
    )


@_page("/e/{name}/do", "POST")
async def do(visit: Visit) -> Response:
    """Pause, resume, let an arm come or go."""
    name = visit.request.path_params["name"]
    there = await visit.open(name)
    visit.need(name)
    what, arm = visit.said("what"), visit.said("arm")
    changes: dict[str, dict[str, Any]] = {
        "pause": {"status": "paused"},
        "resume": {"status": "running"},
        "add": {"add_arms": [arm]},
        "retire": {"retire_arms": [arm]},
    }
    try:
        if what not in changes:
            raise RefusedError(422, f"what: one of {', '.join(changes)}")
        if what == "add" and any(each.name == arm for each in await _present(visit)):
            raise RefusedError(409, f"There is an arm {arm!r} already: nothing has changed.")
        await admin.change(visit.room, there, models.Change(**changes[what]))
    except (ValidationError, RefusedError, ValueError) as error:
        status, words = _wrong(error)
        view, checked = await _seen(visit)
        return await visit.show(
            lambda: render.experiment_page(view, checked, visit.viewer(name), notice=words), status
        )
    visit.room.glances.forget(name)
    return visit.go(_address(visit, name))


async def _present(visit: Visit) -> list[view_models.ArmView]:
    view, _ = await _seen(visit)
    return [arm for arm in view.arms if arm.is_present]


async def _seen(visit: Visit) -> tuple[view_models.ExperimentView, view_models.Diagnostics | None]:
    """Return what is known of the experiment of the address."""
    name = visit.request.path_params["name"]
    there = await visit.open(name)
    view = await visit.room.glances.get(
        name, ("experiment",), lambda: build.build_experiment(there)
    )
    heard = f"{view.duels}.{view.heard}.{view.pending}.{view.late}"
    return view, visit.room.checks.latest(there, heard)


# Keys.


@_page("/keys")
async def keys(visit: Visit) -> Response:
    """The keys, without their secrets."""
    return await _keys(visit)


@_page("/keys", "POST")
async def make_key(visit: Visit) -> Response:
    """Make a key, which is shown this once."""
    _need_keys(visit)
    names = [name.strip() for text in visit.form.get("experiments", []) for name in
             text.splitlines() if name.strip()]  # fmt: skip
    scopes = visit.form.get("scopes", [])
    if visit.key is ANYBODY and ("administer" not in scopes or names):
        words = "the first key must administer all experiments: from then on nobody else could"
        return await _keys(visit, problem=words)
    room = visit.room
    try:
        made = await room.desks.call(
            create_key, room.store, visit.said("name"), scopes, names or None
        )
    except ValueError as error:
        return await _keys(visit, problem=str(error))
    room.ring.forget()
    there = await room.desks.call(Experiment.names, room.store)
    unknown = [name for name in names if name not in there]
    warning = ""
    if unknown:
        warning = (
            f"There is no experiment {' or '.join(map(repr, unknown))} yet, only "
            f"{', '.join(map(repr, there)) or 'none'}. The key is good for one that is made under "
            "this name."
        )
    if visit.key is ANYBODY:  # who makes the first key is signed in with it
        await room.desks.call(room.ring.read)
        found = room.ring.find(made)
        assert found is not None
        visit.key, visit.session, visit.is_new = found, room.sessions.begin(found.id), True
    return await _keys(visit, made, warning=warning)


@_page("/keys/revoke", "POST")
async def drop_key(visit: Visit) -> Response:
    """Let a key be good for nothing."""
    _need_keys(visit)
    await visit.room.desks.call(revoke_key, visit.room.store, visit.said("id"))
    visit.room.ring.forget()
    return visit.go(f"{visit.base}/keys")


async def _keys(visit: Visit, made: str = "", problem: str = "", warning: str = "") -> Response:
    _need_keys(visit)
    there = await visit.room.desks.call(list_keys, visit.room.store)
    return await visit.show(
        lambda: render.keys_page(there, visit.viewer(), made, problem, cut(warning)),
        422 if problem else 200,
    )


def _need_keys(visit: Visit) -> None:
    if not visit.may_keys:
        raise RefusedError(403, "Keys are for whoever may administer all experiments.")


# Signing in.


@_page("/login", is_open=True)
async def login(visit: Visit) -> Response:
    """Ask for a key."""
    following = safe_next(visit.said("next"), visit.base)
    return await visit.show(lambda: render.login_page("", following, visit.viewer()))


@_page("/login", "POST", is_open=True)
async def sign_in(visit: Visit) -> Response:
    """Take a key."""
    room, following = visit.room, safe_next(visit.said("next"), visit.base)
    if not room.ring.is_fresh:
        await room.desks.call(room.ring.read)
    key = room.ring.find(visit.said("key"))
    if key is None:
        await _sleep(_DELAY)
        words = "This is no key that is good here."
        return await visit.show(lambda: render.login_page(words, following, visit.viewer()), 401)
    visit.key, visit.session, visit.is_new = key, room.sessions.begin(key.id), True
    return visit.go(following)


@_page("/logout", "POST")
async def sign_out(visit: Visit) -> Response:
    """Forget who it is."""
    response = visit.go(f"{visit.base}/login")
    visit.room.sessions.end(response, visit.request, visit.session)
    return response


# Files.


@_page("/docs", is_open=True)
async def docs(visit: Visit) -> Response:
    """The calls over HTTP, described for people."""
    openapi = visit.request.app.openapi()
    return await visit.show(lambda: render.calls_page(openapi, visit.viewer()))


@_page("/static/{digest}/{file}", is_open=True)
async def static(visit: Visit) -> Response:
    """Scripts and styles: those of one digest are the same for ever."""
    found = render.STATIC.get(visit.request.path_params["file"])
    if found is None or found.digest != visit.request.path_params["digest"]:
        raise RefusedError(404, "There is no such file: load the page again.")
    headers = {**GUARDED, "Cache-Control": _FOR_EVER, "Vary": "Accept-Encoding"}
    if not takes_gzip(visit.request):
        return Response(found.content, 200, headers, found.content_type)
    headers["Content-Encoding"] = "gzip"
    return Response(_packed(found.name), 200, headers, found.content_type)


@functools.cache
def _packed(name: str) -> bytes:
    return gzip.compress(render.STATIC[name].content, 9, mtime=0)


def _is_seen(visit: Visit, version: str) -> bool:
    """Whether the open page shows this version already; a new session needs new tokens in it."""
    return visit.is_part and not visit.is_new and visit.said("seen") == version


def _wrong(error: Exception) -> tuple[int, str]:
    """Return the status and the sentence for something that was typed."""
    if isinstance(error, ValidationError):
        return 422, _typed(error.errors(include_url=False))
    refusal = refusal_of(error)
    assert refusal is not None
    return refusal.status, refusal.sentence


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


def _address(visit: Visit, name: str) -> str:
    return f"{visit.base}/e/{quote(name, safe='')}"
