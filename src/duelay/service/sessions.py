"""Sessions: who is signed in to the page, and whether a form is the page's own.

The cookie has the id of a key, not the key, and is signed: nobody else can write one, and one of a
key that was revoked is good for nothing. Where no keys exist, it has no id. It is there all the
same, for the tokens of forms are bound to it: no other site can make a browser send one.
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

SECRET = "DUELAY_SECRET"  # of the environment: what signs, for all servers of a store
HOURS = 12  # that somebody stays signed in
_COOKIE = "duelay"
_SHORTEST = 16  # characters of a secret
_SALT = 16  # characters


class Session(NamedTuple):
    """Somebody who looks at pages."""

    key: str  # the id of a key; empty where none is needed
    nonce: str  # by which it differs from any other


class Sessions:
    """Signs cookies and tokens, and reads them."""

    def __init__(self, secret: str | None = None) -> None:
        secret = secret or os.environ.get(SECRET) or secrets.token_hex(32)
        if len(secret) < _SHORTEST:
            raise ValueError(
                f"{SECRET} must have at least {_SHORTEST} characters, such as `openssl rand -hex "
                f"32` prints, got {len(secret)}"
            )
        self._secret = secret.encode()
        self._ended: dict[str, float] = {}  # nonces of those that were signed out here, and when
        self._cookies = URLSafeTimedSerializer(
            secret,
            salt="duelay.session",
            signer_kwargs={"key_derivation": "hmac", "digest_method": hashlib.sha256},
        )

    def begin(self, key: str = "") -> Session:
        """Return a new one."""
        return Session(key, secrets.token_hex(16))

    def read(self, request: Request) -> Session | None:
        """Return that of a request; None if there is none that is good."""
        try:
            key, nonce = self._cookies.loads(
                request.cookies.get(_name(request), ""), max_age=HOURS * 3600
            )
        except (BadData, TypeError, ValueError):
            return None
        return None if nonce in self._ended else Session(str(key), str(nonce))

    def keep(self, response: Response, request: Request, session: Session) -> None:
        """Let the browser keep one."""
        response.set_cookie(
            _name(request),
            self._cookies.dumps(list(session)),
            max_age=HOURS * 3600,
            **_place(request),  # type: ignore[arg-type]
        )

    def end(self, response: Response, request: Request, session: Session | None) -> None:
        """Let the browser forget it, and take it from nobody any longer, in this process."""
        now = time.monotonic()
        self._ended = {nonce: at for nonce, at in self._ended.items() if now - at < HOURS * 3600}
        if session is not None:
            self._ended[session.nonce] = now
        response.delete_cookie(_name(request), **_place(request))  # type: ignore[arg-type]

    def token(self, session: Session) -> str:
        """Return a token for forms.

        Each is another one: what is compressed together with it does not give it away.
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

    `Sec-Fetch-Site` is the browser's word, `Origin` that of earlier ones. What is no browser says
    nothing, and no other site can make it send anything.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host")


def is_here(request: Request) -> bool:
    """Whether the browser was told to go to this machine, by a name that is always its own.

    The name of another site may lead here, too, if its owner says so: then it would be that site,
    to the browser, which reads the pages.
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
    """Return the cookie's name: browsers give one host's to all its ports, so it has the port."""
    _, port = _host(request)
    return _COOKIE if port is None else f"{_COOKIE}_{port}"


def _place(request: Request) -> dict[str, object]:
    return {
        "path": request.scope.get("root_path", "") or "/",
        "httponly": True,
        "samesite": "lax",
        "secure": request.url.scheme == "https",
    }
