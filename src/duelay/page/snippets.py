"""Code that asks and tells, to paste into a program: in Python, and for curl."""

from __future__ import annotations

import json
import shlex
import urllib.parse

_CONVERSION_COMMENT = "# now or days later, if the first was preferred:"
_VOTE_COMMENT = "# now or days later, the one that was preferred:"


def write_python(name: str, origin: str, has_keys: bool, is_votes: bool) -> str:
    """Return a program that asks and tells, in Python.

    >>> print(write_python("buttons", "http://127.0.0.1:8000", False, False))
    from duelay.live import connect
    <BLANKLINE>
    service = connect("http://127.0.0.1:8000")
    experiment = service.open("buttons")
    duel = experiment.ask(unit="visitor-17")
    if duel.id is None:  # a winner is declared: show it alone
        print(duel.winner)
    else:  # show both, the first one first
        print(duel.first, duel.second)
        # now or days later, if the first was preferred:
        experiment.tell(duel.id)
    """
    key = ', "duelay_..."' if has_keys else ""
    winner = ", winner=duel.second" if is_votes else ""
    return "\n".join(
        (
            "from duelay.live import connect",
            "",
            f"service = connect({_quoted(origin)}{key})",
            f"experiment = service.open({_quoted(name)})",
            'duel = experiment.ask(unit="visitor-17")',
            "if duel.id is None:  # a winner is declared: show it alone",
            "    print(duel.winner)",
            "else:  # show both, the first one first",
            "    print(duel.first, duel.second)",
            f"    {_VOTE_COMMENT if is_votes else _CONVERSION_COMMENT}",
            f"    experiment.tell(duel.id{winner})",
        )
    )


def write_curl(name: str, origin: str, has_keys: bool, is_votes: bool) -> str:
    r"""Return the same program for a shell.

    >>> print(write_curl("it's", "http://127.0.0.1:8000", False, False))
    DUEL=$(curl -s http://127.0.0.1:8000/experiments/it%27s/duels \
      -H 'Content-Type: application/json' \
      -d '{"unit": "visitor-17"}')
    # show both, the first one first; without an id, the winner alone
    printf '%s\n' "$DUEL"
    ID=$(printf '%s' "$DUEL" | sed -n 's/.*"id":"\([^"]*\)".*/\1/p')
    # now or days later, if the first was preferred:
    test -z "$ID" || curl -s -X PUT http://127.0.0.1:8000/duels/"$ID"/conversion
    """
    key = " \\\n  -H 'Authorization: Bearer duelay_...'" if has_keys else ""
    here = shlex.quote(origin)
    asked = shlex.quote(f"{origin}/experiments/{urllib.parse.quote(name, safe='')}/duels")
    body = " \\\n  -H 'Content-Type: application/json' \\\n  -d "
    vote = f"vote{key}{body}" + '\'{"winner": "second"}\''
    return "\n".join(
        (
            f"DUEL=$(curl -s {asked}{key}{body}" + '\'{"unit": "visitor-17"}\')',
            "# show both, the first one first; without an id, the winner alone",
            r"""printf '%s\n' "$DUEL" """.rstrip(),
            r"""ID=$(printf '%s' "$DUEL" | sed -n 's/.*"id":"\([^"]*\)".*/\1/p')""",
            _VOTE_COMMENT if is_votes else _CONVERSION_COMMENT,
            f'test -z "$ID" || curl -s -X PUT {here}/duels/"$ID"/'
            + (vote if is_votes else f"conversion{key}"),
        )
    )


def _quoted(text: str) -> str:
    """Return a Python string in double quotes."""
    return json.dumps(text, ensure_ascii=False)
