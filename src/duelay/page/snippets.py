"""Code that asks and tells, to paste into a program: in Python, for curl, and in JavaScript."""

from __future__ import annotations

import json
import shlex
import urllib.parse

_CONVERSION_COMMENT = "# now or days later, if the first was preferred:"
_VOTE_COMMENT = "# now or days later, the one that was preferred:"
_SHOW_BOTH = "# show both, the first one first; without an id, the winner alone"
_VISITOR_COMMENT = "# now or days later, if the visitor converts:"


def write_python(
    name: str, origin: str, has_keys: bool, is_votes: bool, shows_one: bool = False
) -> str:
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
    show: tuple[str, ...] = (
        "if duel.id is None:  # a winner is declared: show it alone",
        "    print(duel.winner)",
        "else:  # show both, the first one first",
        "    print(duel.first, duel.second)",
    )
    if shows_one:
        show = ("print(duel.arm)  # show it", "if duel.id is not None:  # no winner is declared")
    return "\n".join(
        (
            "from duelay.live import connect",
            "",
            f"service = connect({_quoted(origin)}{key})",
            f"experiment = service.open({_quoted(name)})",
            'duel = experiment.ask(unit="visitor-17")',
            *show,
            f"    {_comment(is_votes, shows_one)}",
            f"    experiment.tell(duel.id{winner})",
        )
    )


def write_curl(
    name: str, origin: str, has_keys: bool, is_votes: bool, shows_one: bool = False
) -> str:
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
            "# show its arm" if shows_one else _SHOW_BOTH,
            r"""printf '%s\n' "$DUEL" """.rstrip(),
            r"""ID=$(printf '%s' "$DUEL" | sed -n 's/.*"id":"\([^"]*\)".*/\1/p')""",
            _comment(is_votes, shows_one),
            f'test -z "$ID" || curl -s -X PUT {here}/duels/"$ID"/'
            + (vote if is_votes else f"conversion{key}"),
        )
    )


def write_javascript(
    name: str, origin: str, has_keys: bool, is_votes: bool, shows_one: bool = False
) -> str:
    r"""Return the same program for a server that runs JavaScript, such as Node.

    >>> print(write_javascript("buttons", "http://127.0.0.1:8000", False, False, True))
    const service = "http://127.0.0.1:8000";
    const headers = {"Content-Type": "application/json"};
    const asked = await fetch(`${service}/experiments/buttons/duels`, {
      method: "POST", headers, body: JSON.stringify({unit: "visitor-17"}),
    });
    const duel = await asked.json();
    console.log(duel.arm); // show it
    // now or days later, if the visitor converts:
    if (duel.id !== null) {
      await fetch(`${service}/duels/${duel.id}/conversion`, {method: "PUT", headers});
    }
    """
    key = ', Authorization: "Bearer duelay_..."' if has_keys else ""
    show = "console.log(duel.arm); // show it"
    if not shows_one:
        show = "console.log(duel.id === null ? [duel.winner] : [duel.first, duel.second]); // show"
    vote = ', body: JSON.stringify({winner: "second"})' if is_votes else ""
    kind = "vote" if is_votes else "conversion"
    path = urllib.parse.quote(name, safe="")
    return "\n".join(
        (
            f"const service = {_quoted(origin)};",
            f'const headers = {{"Content-Type": "application/json"{key}}};',
            f"const asked = await fetch(`${{service}}/experiments/{path}/duels`, {{",
            '  method: "POST", headers, body: JSON.stringify({unit: "visitor-17"}),',
            "});",
            "const duel = await asked.json();",
            show,
            f"//{_comment(is_votes, shows_one)[1:]}",
            "if (duel.id !== null) {",
            f"  await fetch(`${{service}}/duels/${{duel.id}}/{kind}`, "
            f'{{method: "PUT", headers{vote}}});',
            "}",
        )
    )


def _comment(is_votes: bool, shows_one: bool) -> str:
    if shows_one:
        return _VISITOR_COMMENT
    return _VOTE_COMMENT if is_votes else _CONVERSION_COMMENT


def _quoted(text: str) -> str:
    """Return a Python string in double quotes."""
    return json.dumps(text, ensure_ascii=False)
