"""Sessions: who is signed in to the page, and whether a form is the page's own.

The cookie has the id of a key, not the key, and is signed: nobody else can write one. Once the key
is revoked, the cookie is good for nothing. Where no keys exist, the cookie has no id. It is needed
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
from typing import NamedTuple
from urllib.parse import urlsplit

from itsdangerous import BadData, URLSafeTimedSerializer
from starlette.requests import Request
from starlette.responses import Response

from duelay.errors import InvalidValueError

SECRET = "DUELAY_SECRET"  # of the environment: what signs, for all servers of a store
HOURS = 12  # that somebody stays signed in
_COOKIE = "duelay"
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
