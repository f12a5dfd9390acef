"""What MkDocs does to a page before it is rendered."""

import re
from typing import Any

_SESSION = re.compile(r"^( *```)python\n(?= *>>>)", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Call a session a session, so that prompts and answers look like what they are."""
    return _SESSION.sub(r"\1pycon\n", markdown)
