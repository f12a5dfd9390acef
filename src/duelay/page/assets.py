"""Static files of the page: our own, and third-party files beside their licences.

`static/vendor/VENDORED.json` has the origin and the checksum of each third-party file.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from importlib import resources

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_FOLDER = resources.files("duelay.page") / "static"


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
