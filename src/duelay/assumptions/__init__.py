"""Test the assumptions of policies on a history; each test gives a p-value and a sentence.

Policies choose pairs by past answers, answers are late, and some never come. Therefore all tests
share an age A by which most answers have come. Only duels older than A count, and only the answers
that came by age A. Under the null hypothesis the compared quantity then has the same distribution
in every duel, given the past. The documentation says for which tests that is exact.

The tests of delays rank the delays and compare the ranks within strata. Mean and variance are
those over all permutations of a stratum, as in the Kruskal-Wallis test. Preferences are compared
in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from duelay._core.escapes import in_markdown
from duelay.assumptions.answer_shares import share_by_pair
from duelay.assumptions.delays import (
    delay_by_pair,
    delay_by_winner,
    law_drift,
    share_by_arm,
)
from duelay.assumptions.finding import Finding, check_level
from duelay.assumptions.independence import independence
from duelay.assumptions.order import order_balance, position_effect
from duelay.assumptions.preference_drift import preference_drift
from duelay.assumptions.told_law import told_law
from duelay.logs.history import History

__all__ = [
    "Finding",
    "TESTS",
    "check_assumptions",
    "delay_by_pair",
    "delay_by_winner",
    "independence",
    "law_drift",
    "order_balance",
    "position_effect",
    "preference_drift",
    "report",
    "share_by_arm",
    "share_by_pair",
    "told_law",
]

TESTS: tuple[Callable[..., Finding], ...] = (
    order_balance,
    position_effect,
    delay_by_winner,
    delay_by_pair,
    law_drift,
    preference_drift,
    independence,
)


def check_assumptions(history: History, *, level: float = 0.05) -> list[Finding]:
    """Run every test of `TESTS` on a history.

    Parameters
    ----------
    history : History
        The duels and their answers.
    level : float
        The largest probability of any false alarm. The tests share it in equal parts.

    Returns
    -------
    list of Finding
        One for each test; `Finding.is_alarm` says whether an assumption seems to be violated.
    """
    level = check_level(level)
    share = level / len(TESTS)
    return [test(history, level=share).about(history.display) for test in TESTS]


def report(history: History, *, level: float = 0.05) -> str:
    """Run every test and return the findings as Markdown, alarms first.

    Parameters
    ----------
    history : History
        The duels and their answers.
    level : float
        The largest probability of any false alarm.
    """
    findings = check_assumptions(history, level=level)
    alarms = sum(finding.is_alarm for finding in findings)
    told = [finding for finding in findings if not math.isnan(finding.p_value)]
    lines = [
        "# Assumptions",
        "",
        f"{history.n} duels of {history.n_arms} arms, {int(history.is_heard.sum())} answers "
        f"({history.feedback}). {alarms} of {len(told)} tests alarm; in a sound experiment the "
        f"probability of any alarm is {level:g} at most."
        + (f" {len(history.skipped)} bad rows are left out." if history.skipped else ""),
        "",
        "| test | statistic | p | n | |",
        "|---|---|---|---|---|",
    ]
    for finding in sorted(findings, key=lambda finding: not finding.is_alarm):
        known = not math.isnan(finding.p_value)
        numbers = f"{finding.statistic:.2f} | {finding.p_value:.2g}" if known else "- | -"
        name = f"**{finding.name}**" if finding.is_alarm else finding.name
        lines.append(f"| {name} | {numbers} | {finding.n} | {in_markdown(finding.sentence)} |")
    return "\n".join(lines) + "\n"
