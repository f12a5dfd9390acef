"""The code to paste into one's own program: Python, and curl."""

from __future__ import annotations

import json
import shlex
import urllib.parse


def in_python(name: str, origin: str, has_keys: bool, is_votes: bool) -> str:
    """The program that asks and tells, in Python.

    >>> print(in_python("buttons", "http://127.0.0.1:8000", False, False))
    from duelay.live import connect
    <BLANKLINE>
    service = connect("http://127.0.0.1:8000")
    experiment = service.open("buttons")
    duel = experiment.ask(unit="visitor-17")
    # show duel.first and duel.second; once settled, duel.winner
    # now or days later, if the first was preferred:
    experiment.tell(duel.id)
    """
    key = ', "duelay_..."' if has_keys else ""
    said, tell = _told(is_votes, "experiment.tell(duel.id{})", ", winner=duel.second")
    return "\n".join(
        (
            "from duelay.live import connect",
            "",
            f"service = connect({_quoted(origin)}{key})",
            f"experiment = service.open({_quoted(name)})",
            'duel = experiment.ask(unit="visitor-17")',
            "# show duel.first and duel.second; once settled, duel.winner",
            said,
            tell,
        )
    )


def in_curl(name: str, origin: str, has_keys: bool, is_votes: bool) -> str:
    """The same in the shell.

    >>> print(in_curl("it's", "http://127.0.0.1:8000", False, False))
    curl -s http://127.0.0.1:8000/experiments/it%27s/duels \\
      -H 'Content-Type: application/json' \\
      -d '{"unit": "visitor-17"}'
    # show first, then second
    # now or days later, if the first was preferred:
    curl -s -X PUT http://127.0.0.1:8000/duels/$ID/conversion
    """
    key = " \\\n  -H 'Authorization: Bearer duelay_...'" if has_keys else ""
    asked = shlex.quote(f"{origin}/experiments/{urllib.parse.quote(name, safe='')}/duels")
    kind = " \\\n  -H 'Content-Type: application/json' \\\n  -d "
    lines = [f"curl -s {asked}{key}{kind}" + '\'{"unit": "visitor-17"}\'']
    if is_votes:
        lines.append("# show first, then second\n# now or days later, the one that was preferred:")
        lines.append(f"curl -s -X PUT {origin}/duels/$ID/vote{key}{kind}" + '\'{"winner": "..."}\'')
    else:
        lines.append("# show first, then second\n# now or days later, if the first was preferred:")
        lines.append(f"curl -s -X PUT {origin}/duels/$ID/conversion{key}")
    return "\n".join(lines)


def _told(is_votes: bool, form: str, winner: str) -> tuple[str, str]:
    if is_votes:
        return "# now or days later, the one that was preferred:", form.format(winner)
    return "# now or days later, if the first was preferred:", form.format("")


def _quoted(text: str) -> str:
    """A text of Python's, in the double quotes that people write."""
    return json.dumps(text, ensure_ascii=False)
