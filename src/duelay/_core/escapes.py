"""Escaping: names, titles and labels are shown as plain text, never read as markup.

They come out of files, and files come from other people. HTML, Markdown, figures and spreadsheets
each have their own markup. All that is shown goes through here.
"""

from __future__ import annotations

import html
import re
import unicodedata

_MARKS = re.compile(r"([\\`*_\[\]|#])")
_GITHUB = {
    "$": "&#36;",
    "~": "&#126;",
}  # mathematics and crossed out words on GitHub, nothing elsewhere
_BEGINS = re.compile(r"([-+]|\d+[.)])")  # a list, at the beginning of a line
_FORMULA = ("=", "+", "-", "@")


def in_html(words: str) -> str:
    """Words as HTML, within an element or an attribute."""
    return html.escape(_shown(words))


def in_markdown(words: str) -> str:
    """Words as Markdown, anywhere in a line or a table.

    >>> in_markdown("a|b *c* <i>")
    'a\\\\|b \\\\*c\\\\* &lt;i&gt;'
    """
    plain = html.escape(" ".join(_shown(words).split()), quote=False)
    marked = _MARKS.sub(r"\\\1", plain)
    for mark, entity in _GITHUB.items():
        marked = marked.replace(mark, entity)
    if marked.startswith("="):
        return f"&#61;{marked[1:]}"  # a line below a paragraph would make it a heading
    if begins := _BEGINS.match(marked):
        return f"{marked[: begins.end() - 1]}\\{marked[begins.end() - 1 :]}"
    return marked


def in_code(words: str) -> str:
    """Words as code in Markdown; not in a table, which would take a bar for its own."""
    if re.search(r"[<>&`\\]", words):  # these would end the backticks, or start something else
        return f"<code>{in_markdown(words)}</code>"
    return f"`{' '.join(_shown(words).split())}`"


def in_figure(words: str) -> str:
    """Words for matplotlib: no mathematics, and a label that begins with _ is not hidden."""
    return _shown(words).replace("$", r"\$").lstrip("_")


def in_cell(words: str) -> str:
    """Words for a cell of a CSV: on one line, and no formula, which a spreadsheet would run.

    >>> in_cell("=1+1"), in_cell("six-rankers")
    ("'=1+1", 'six-rankers')
    """
    line = _shown(words)
    return f"'{line}" if line.lstrip().startswith(_FORMULA) else line


def _shown(words: str) -> str:
    """The words, with characters replaced that cannot be shown."""
    return "".join(" " if c in "\n\r\t" else c if _is_shown(c) else "\ufffd" for c in words)


def _is_shown(character: str) -> bool:
    return unicodedata.category(character) not in ("Cc", "Cs") and character not in "\ufffe\uffff"
