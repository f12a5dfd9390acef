"""Authentication: keys of programs, sessions of browsers, and what each of them may do.

A cookie has the id of a key, not the key, and is signed: nobody else can write one. Once the key is
revoked, the cookie is good for nothing. Where no keys exist, the cookie has no id. It is needed
all the same: the tokens of forms are bound to it, and so no other site can make a browser send a
form that is accepted.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import secrets
import time
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple
from urllib.parse import urlsplit

from fastapi import Depends, Header, Request
from itsdangerous import BadData, URLSafeTimedSerializer
from starlette.responses import Response

from duelay.errors import InvalidValueError
from duelay.service.errors import RefusedError
from duelay.service.keys import ANYBODY, Key

if TYPE_CHECKING:
    from duelay.service.context import ServiceContext

SECRET = "DUELAY_SECRET"  # of the environment: what signs, for all servers of a store
HOURS = 12  # that somebody stays signed in
_COOKIE = "duelay"
_SCHEME = "Bearer"
_SHORTEST = 16  # characters of a secret
_SALT = 16  # characters


class Session(NamedTuple):
    """Somebody who looks at pages."""

    key: str  # the id of a key; empty where none is needed
    nonce: str  # random: no two sessions have the same


class Sessions:
    """Signs cookies and tokens, and reads them."""

    def __init__(self, secret: str | None = None) -> None:
        secret = secret or os.environ.get(SECRET) or secrets.token_hex(32)
        if len(secret) < _SHORTEST:
            raise InvalidValueError(
                f"{SECRET} must have at least {_SHORTEST} characters, such as `openssl rand -hex "
                f"32` prints, got {len(secret)}"
            )
        self._secret = secret.encode()
        self._ended: dict[str, float] = {}  # nonces of sessions that were signed out here, and when
        self._cookies = URLSafeTimedSerializer(
            secret,
            salt="duelay.session",
            signer_kwargs={"key_derivation": "hmac", "digest_method": hashlib.sha256},
        )

    def begin(self, key: str = "") -> Session:
        """Return a new session."""
        return Session(key, secrets.token_hex(16))

    def read(self, request: Request) -> Session | None:
        """Return the session of a request; None if it has none that is valid."""
        try:
            key, nonce = self._cookies.loads(
                request.cookies.get(_name(request), ""), max_age=HOURS * 3600
            )
        except (BadData, TypeError, ValueError):
            return None
        return None if nonce in self._ended else Session(str(key), str(nonce))

    def keep(self, response: Response, request: Request, session: Session) -> None:
        """Let the browser keep a session."""
        response.set_cookie(
            _name(request),
            self._cookies.dumps(list(session)),
            max_age=HOURS * 3600,
            **_place(request),  # type: ignore[arg-type]
        )

    def end(self, response: Response, request: Request, session: Session | None) -> None:
        """Let the browser forget its session, and refuse it from now on in this process."""
        now = time.monotonic()
        self._ended = {nonce: at for nonce, at in self._ended.items() if now - at < HOURS * 3600}
        if session is not None:
            self._ended[session.nonce] = now
        response.delete_cookie(_name(request), **_place(request))  # type: ignore[arg-type]

    def token(self, session: Session) -> str:
        """Return a token for forms.

        Each call returns another text: so the size of a compressed page does not give a token away.
        """
        salt = secrets.token_hex(_SALT // 2)
        return salt + self._sign(session, salt)

    def is_token(self, session: Session, text: str) -> bool:
        """Whether a token is of this session."""
        salt, given = text[:_SALT], text[_SALT:]
        return hmac.compare_digest(self._sign(session, salt).encode(), given.encode())

    def _sign(self, session: Session, salt: str) -> str:
        words = f"csrf.{salt}.{session.key}.{session.nonce}"
        return hmac.new(self._secret, words.encode(), hashlib.sha256).hexdigest()


def is_own(request: Request) -> bool:
    """Whether a form was sent by a page of this server, as far as the browser says.

    Browsers say so by `Sec-Fetch-Site`, older ones by `Origin`. Other programs send neither header,
    and no site can make them send a form.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host")


def is_here(request: Request) -> bool:
    """Whether the browser was sent here by a name that always means this machine.

    The owner of another site can make its name lead to this machine as well. To the browser our
    pages are then pages of that site, whose scripts may read them.
    """
    host, _ = _host(request)
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.endswith(".localhost")


def safe_next(address: str, base: str = "") -> str:
    """Return where to go on after signing in: an address of this server, whatever is asked for."""
    is_plain = address.isprintable() and "\\" not in address
    is_own = is_plain and address.startswith(f"{base}/") and address[1:2] != "/"
    return address if is_own else f"{base}/"


def _host(request: Request) -> tuple[str, int | None]:
    """Return the name and the port by which the browser knows this server."""
    try:
        found = urlsplit(f"//{request.headers.get('host', '')}")
        return found.hostname or "", found.port
    except ValueError:
        return "", None


def _name(request: Request) -> str:
    """Return the cookie's name, with the port: browsers send a host's cookies to all its ports."""
    _, port = _host(request)
    return _COOKIE if port is None else f"{_COOKIE}_{port}"


def _place(request: Request) -> dict[str, object]:
    return {
        "path": request.scope.get("root_path", "") or "/",
        "httponly": True,
        "samesite": "lax",
        "secure": request.url.scheme == "https",
    }


# Programs: a key in the header of each request.

Given = Annotated[str | None, Header(alias="Authorization", description="Bearer KEY")]


def check_nearby(request: Request) -> None:
    """Refuse requests that may come from elsewhere; called as long as there is no key.

    Somebody on this machine may look at another site in a browser. That site must not be able to
    act as this person, even if its name leads to this machine.
    """
    if not is_here(request):
        raise RefusedError(
            403, "as long as there is no key, this is for this machine alone, at 127.0.0.1 or "
            "localhost: make one with `duelay key create`",
        )  # fmt: skip
    if not is_own(request):
        raise RefusedError(403, "this was sent by a page of another site: make a key")


async def caller(request: Request, authorization: Given = None) -> Key:
    """Find out who calls; errors name only what this key is for."""
    request.scope["key"] = key = await _find_caller(request, authorization)
    return key


async def _find_caller(request: Request, authorization: str | None) -> Key:
    context: ServiceContext = request.app.state.context
    if not context.keys.is_fresh:
        await context.registry.call(context.keys.read)
    if context.keys.is_empty and not context.needs_key:
        check_nearby(request)
        return ANYBODY
    scheme, _, text = (authorization or "").partition(" ")
    key = context.keys.find(text.strip()) if scheme.lower() == _SCHEME.lower() else None
    if key is None:
        raise RefusedError(
            401, "send a key that is good: the header Authorization: Bearer duelay_...",
            WWW_Authenticate=_SCHEME,
        )  # fmt: skip
    return key


async def check_key(request: Request, scope: str | None = None, name: str | None = None) -> Key:
    """Return the key of a caller that may do something with an experiment."""
    return _check(await caller(request, request.headers.get("authorization")), scope, name)


def _check(key: Key, scope: str | None, name: str | None) -> Key:
    if name is not None and not key.covers(name):
        raise RefusedError(403, "this key is for other experiments")
    if scope is not None and not key.may(scope, name):
        raise RefusedError(403, f"this key may not {scope} here")
    return key


def needing(scope: str | None) -> Any:
    """Need a key that is for the experiment of the address, and may do something with it."""

    async def check_scope(request: Request, name: str, authorization: Given = None) -> Key:
        return _check(await caller(request, authorization), scope, name)

    return Depends(check_scope)


async def administering(request: Request, authorization: Given = None) -> Key:
    """Need a key that may administer."""
    key = await caller(request, authorization)
    if not key.may("administer"):
        raise RefusedError(403, "this key may not administer")
    return key


Caller = Annotated[Key, Depends(caller)]
Maker = Annotated[Key, Depends(administering)]
Reader = Annotated[Key, needing(None)]
Teller = Annotated[Key, needing("tell")]
Keeper = Annotated[Key, needing("administer")]
