"""Render a Markdown report as one HTML file with its pictures inside."""

from __future__ import annotations

import base64
import re
from pathlib import Path

from duelay._core.escapes import in_html

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
       color: #1a1a1a; background: #fff; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { border-bottom: 1px solid #ddd; padding: .3rem .7rem; text-align: left;
         font-size: .9rem; white-space: nowrap; font-variant-numeric: tabular-nums; }
blockquote { border-left: 3px solid #999; margin-left: 0; padding-left: 1rem; color: #444; }
img { max-width: 100%; height: auto; }
code { background: #f3f3f3; padding: 0 .2rem; overflow-wrap: anywhere; }
@media print { body { margin: 0; max-width: none; } }
"""


# The page fetches and runs nothing, even if some text should be read as markup.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def page(source: str, title: str, folder: Path) -> str:
    """Return Markdown as one HTML file, with the pictures of the folder's ``figures`` inside."""
    import markdown

    def inside(picture: re.Match[str]) -> str:
        data = base64.b64encode((folder / picture[2]).read_bytes()).decode()
        return f'{picture[1]}data:image/svg+xml;base64,{data}"'

    body = markdown.markdown(source, extensions=["tables", "sane_lists"])
    body = re.sub(r'(<img [^<>]*src=")(figures/[^"/]+\.svg)"', inside, body)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{in_html(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )
