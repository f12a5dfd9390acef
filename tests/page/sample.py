"""Hand-made views: what the page must show well, without a store behind it."""

import dataclasses
import math
import random

from duelay.live.guardrails import ReportedGuardrail, ReportedMetricArm
from duelay.live.standing import ReportedEstimates, ReportedGuarantee, StandingReport
from duelay.live.summary import ArmSummary, Difference, Range, Summary
from duelay.page import view_models

NOW = 1_794_838_598.0
DAY = 86_400.0
MARKUP = "<script>alert(1)</script>"
ARABIC = "زر الشراء الأخضر"
LONG = "a name that goes on " * 10  # 200 characters
NASTY = (MARKUP, ARABIC, LONG, '"><img src=x onerror=alert(1)>', "{{ 7 * 7 }} \u202eevil")


def arm(number, name, rank=0, **said):
    given = {
        "is_present": True,
        "is_leader": rank == 0,
        "is_winner": False,
        "chance": max(0.0, 0.62 - 0.17 * rank),
        "evidence": max(0.0, 0.7 - 0.2 * rank),
        "mean": None if rank == 0 else min(0.95, 0.53 + 0.03 * rank),
        "lower": None if rank == 0 else min(0.9, 0.49 + 0.03 * rank),
        "upper": None if rank == 0 else min(0.99, 0.57 + 0.03 * rank),
        "duels": 4200 - 120 * (rank % 30),
        "heard": 1702 - 57 * (rank % 27),
        "conversions": 880 - 31 * (rank % 27),
        "pending": 214 - 3 * (rank % 60),
    }
    return view_models.ArmView(number, name, number % 12, **{**given, **said})


def guardrail(names, metric="refund", bound=0.02):
    """Rates of some arms; the last one alarms."""
    arms = [
        ReportedMetricArm(
            name, 4000 - rank, 200 + 3 * rank, 0.05 + 0.001 * rank, 0.04, 0.0649,
            *((None, None, None) if rank == 0 else (0.001 * rank, -0.02, 0.0212)),
            bound is not None and rank == len(names) - 1,
        )
        for rank, name in enumerate(names)
    ]  # fmt: skip
    return ReportedGuardrail(metric, bound, "2d", names[0], arms)


def matrix(arms, is_heard=True):
    """Cells of the first thirty arms: each beats those below."""
    shown = arms[:30]

    def cell(i, j):
        if i == j:
            return None
        if not is_heard:
            return view_models.MatrixCell(
                shown[i].number, shown[j].number, None, None, None, 0, 0, 0, 0
            )
        mean = 0.5 + max(-0.45, min(0.45, 0.05 * (j - i)))
        shade = round(20 * (mean - 0.5))
        low, high = max(0.0, mean - 0.045), min(1.0, mean + 0.045)
        return view_models.MatrixCell(
            shown[i].number, shown[j].number, mean, low, high, shade, 2411, 1204 + i + j, 38
        )

    return tuple(tuple(cell(i, j) for j in range(len(shown))) for i in range(len(shown)))


def times(n, days=9.0):
    return tuple(NOW - days * DAY + days * DAY * i / (n - 1) for i in range(n))


def evidence(arms, n=96, reach=0.75, level=80.0):
    coin = random.Random(3)
    lines = []
    for rank, one in enumerate(arms[:12]):
        log, values = 0.0, []
        for i in range(n):
            goal = max(0.0, reach - 0.22 * rank) * math.log(level) * i / n
            log += 0.3 * (goal - log) + 0.12 * coin.gauss(0, 1)
            values.append(math.exp(max(0.0, log)))
        lines.append(view_models.Line(one.name, tuple(values), "arm", one.colour))
    lines.append(view_models.Line("declared", (level,) * n, "level"))
    return view_models.Chart(
        "evidence",
        "Evidence",
        "How much speaks for each arm being the winner. It is declared where its line meets the "
        "dotted one.",
        times(n),
        tuple(lines),
        y_kind="evidence",
    )


def allocation(arms, n=64):
    shown = arms[:12]
    raw = [[1.0 + 0.06 * i * max(0, 3 - rank) / 2 for i in range(n)] for rank in range(len(shown))]
    rest = [0.5] * n if len(arms) > 12 else [0.0] * n
    sums = [sum(values[i] for values in raw) + rest[i] for i in range(n)]
    gap = range(n // 2, n // 2 + 3)  # nobody came

    def shares(values):
        return tuple(None if i in gap else values[i] / sums[i] for i in range(n))

    return view_models.Chart(
        "allocation",
        "Who was shown",
        "The share of places that each arm had in the duels of the time.",
        times(n),
        (
            *(
                view_models.Line(one.name, shares(values), "arm", one.colour)
                for one, values in zip(shown, raw, strict=True)
            ),
            *([view_models.Line("all others", shares(rest), "others")] if len(arms) > 12 else []),
        ),
        y_kind="share",
        is_stacked=True,
    )


def chances(arms, n=40):
    shown = arms[:12]
    raw = [[math.exp((1.6 - 0.9 * rank) * i / n) for i in range(n)] for rank in range(len(shown))]
    sums = [sum(values[i] for values in raw) for i in range(n)]
    return view_models.Chart(
        "chances",
        "Chance of being the winner",
        "What somebody would bet who knew nothing before. It may change its mind.",
        times(n),
        tuple(
            view_models.Line(
                one.name, tuple(v / s for v, s in zip(values, sums, strict=True)), "arm", one.colour
            )
            for one, values in zip(shown, raw, strict=True)
        ),
        y_kind="share",
        is_opinion=True,
    )


def pending_ages(n=64):
    return view_models.Chart(
        "pending",
        "Pending, by age",
        "Duels that wait for an answer, by how long they have waited.",
        tuple(7 * DAY * (i + 0.5) / n for i in range(n)),
        (
            view_models.Line(
                "pending", tuple(float(round(90 * math.exp(-4 * i / n))) for i in range(n)), "total"
            ),
        ),
        x_kind="age",
    )


def delays(n=60):
    x = tuple(7 * DAY * i / (n - 1) for i in range(n))
    curve = tuple(0.82 * (1 - math.exp(-at / (1.1 * DAY))) for at in x)
    wide = tuple(0.01 + 0.05 * at / (7 * DAY) for at in x)
    return view_models.Chart(
        "delays",
        "How long answers take",
        "The share of wins that are heard by each age, with the band of a confidence of 95 %.",
        x,
        (
            view_models.Line(
                "lower end", tuple(max(0.0, a - b) for a, b in zip(curve, wide, strict=True)), "low"
            ),
            view_models.Line(
                "upper end",
                tuple(min(1.0, a + b) for a, b in zip(curve, wide, strict=True)),
                "high",
            ),
            view_models.Line("heard by then", curve, "total"),
        ),
        x_kind="age",
        y_kind="share",
    )


def checked(is_off=False):
    drift = "No preference changes over time."
    late = "Wins of all arms come alike."
    if is_off:
        drift = "Preferences change over time: blue beat red by 61 % at first, and by 44 % later."
        late = "Wins of green come later than those of others, by 9h."
    even = "Either arm was shown first as often: 50.3 % of 8,412 duels."
    few = "Fewer than 100 answers: nothing can be said."
    found = (
        view_models.TestResult("order_balance", even, False, 0.61, 8412),
        view_models.TestResult(
            "preference_drift", drift, is_off, 0.00003 if is_off else 0.34, 8412
        ),
        view_models.TestResult("delay_by_winner", late, is_off, 0.0004 if is_off else 0.72, 1630),
        view_models.TestResult("independence", few, False, None, 41),
        view_models.TestResult(
            "share_by_arm", "Duels of red are answered less.", True, 0.001, 900, True
        ),
    )
    return view_models.Diagnostics(
        NOW - 40,
        8412,
        delays(),
        0.18,
        7 * DAY,
        0.9 * DAY,
        (96.0, 131.0, 170.0),
        "Half of the answers come within 22 hours; about 18 % do not come.",
        found,
    )


def events(*kinds):
    said = {
        "declared": "green is the winner.",
        "alarm": "preference drift: preferences change over time.",
        "joined": "violet has joined.",
        "retired": "yellow is retired.",
        "silent": "nothing has been asked for two hours.",
        "withdrawn": "green is no longer declared, since an arm has joined.",
    }
    return tuple(
        view_models.EventView(kind, NOW - 7200.0 * (i + 1), said[kind])
        for i, kind in enumerate(kinds)
    )


def summary(names, **said):
    """Numbers for a manager: the first arm leads, by ever more."""
    arms = [
        ArmSummary(name, 1702 - 57 * (i % 27), 880.0 - 31 * (i % 27), 0.52 - 0.01 * (i % 27),
                   max(0.0, 0.62 - 0.17 * i), None if i == 0 else Range(0.05 * i, -0.02, 0.6))
        for i, name in enumerate(names)
    ]  # fmt: skip
    given = {
        "state": "leads",
        "headline": f"{names[0]} leads, and it is not yet sure",
        "sentences": [
            f"Of 100 visitors, about 5 more choose {names[0]} than {names[1]} (between 2 fewer and "
            "60 more).",
            "Time left at this traffic: about 3 days.",
        ],
        "best": names[0],
        "difference": Difference(names[0], names[1], 0.05, -0.02, 0.6, 0.95),
        "chance": 0.62,
        "expected_loss": 0.004,
        "cost": Range(310.0, 12.0, 702.0),
        "days_left": [2.0, 4.0],
        "time_left": "about 3 days",
        "lacks": "",
        "doubts": [],
        "arms": arms,
    }
    return Summary(**{**given, **said})


def standing(names, **said):
    """The report of a standing: its matrices are not shown, but what is made of them."""
    given = {
        "name": "checkout button",
        "status": "running",
        "headline": f"{names[0]} leads, and is not yet declared",
        "leader": names[0],
        "winner": None,
        "error": 0.05,
        "confidence": 0.95,
        "guarantee": ReportedGuarantee("proved", "the coin"),
        "feedback": "conversions",
        "policy": "decide",
        "window": "7d",
        "now": NOW,
        "arms": list(names),
        "present": [True] * len(names),
        "duels": 8412,
        "late": 17,
        "estimates": ReportedEstimates([], [], []),
        "needed": None,
        "warnings": [],
        "alarms": [],
        "booking": "running",
        "verdict": "running" if said.get("winner") is None else "winner",
        "verdict_words": "",
        "archived": False,
        **dict.fromkeys(
            ("choice", "margin", "end", "budget", "until", "fallback", "loss", "p_value")
        ),
        "summary": summary(names),
        **dict.fromkeys(("plays", "conversions", "pending", "repeats", "evidence"), []),
    }
    given |= {"display": "pair", "rates": None}
    return StandingReport(**{**given, **said})


def experiment(names=("green", "blue", "red", "yellow"), arms=None, **said):
    arms = arms or tuple(arm(i, name, i) for i, name in enumerate(names))
    given = {
        "goal": "decide",
        "created": NOW - 9 * DAY,
        "now": NOW,
        "advice": view_models.Advice(
            "go-on",
            "Go on: about 1,200 more duels, about 3 days at this traffic.",
            "about 1,200 more duels",
        ),
        "guarantee": "proved: the coin, and delays that do not depend on who won",
        "weighed": "",
        "heard": 1630,
        "pending": 412,
        "silent": 6340,
        "repeats": 30,
        "today": 934,
        "chance_of_none": 0.02,
        "arms": arms,
        "matrix": matrix(arms),
        "evidence": evidence(arms),
        "allocation": allocation(arms),
        "chances": chances(arms),
        "pending_ages": pending_ages(),
        "events": events("joined"),
        "version": "v-1",
    }
    ours = {field.name for field in dataclasses.fields(StandingReport)} - {
        "arms",
        "evidence",
        "now",
        "pending",
        "repeats",
        "guarantee",
    }
    report = standing([one.name for one in arms], **{n: said.pop(n) for n in ours & set(said)})
    return view_models.ExperimentView(standing=report, **{**given, **said})


def changed(view, **said):
    """A view whose standing differs."""
    return dataclasses.replace(view, standing=dataclasses.replace(view.standing, **said))


def busy():
    return experiment(), checked()


def declared():
    names = ("green", "blue", "red", "yellow")
    arms = tuple(
        arm(i, name, i, is_winner=i == 0, evidence=1.0 if i == 0 else 0.1)
        for i, name in enumerate(names)
    )
    said = experiment(
        arms=arms,
        headline="green is the winner: it beats every other arm",
        winner="green",
        summary=summary(names, state="winner", headline="green wins", days_left=None, time_left=""),
        weighed="green is declared from more than the intervals are from.",
        advice=view_models.Advice("stop", "Show green to everybody."),
        evidence=evidence(arms, reach=1.3),
        duels=1_234_567,
        heard=301_222,
        silent=932_903,
        events=events("declared", "retired", "joined"),
    )
    return said, checked()


def off():
    names = ("blue", "green", "red")
    unknown = dict.fromkeys(("best", "difference", "chance", "expected_loss", "cost", "days_left"))
    advice = view_models.Advice(
        "off", "Two assumptions of the guarantee do not hold. See the tests below."
    )
    said = experiment(
        names,
        name="search ranking",
        summary=summary(
            names,
            state="off",
            headline="Something is off: do not decide yet",
            time_left="",
            doubts=["Preferences change over time."],
            **unknown,
        ),
        advice=advice,
        warnings=("Preferences change over time: who won so far need not win today.",),
        events=events("alarm", "silent", "withdrawn"),
    )
    return said, checked(is_off=True)


def nothing():
    names = ("red", "green", "blue")
    none = dict.fromkeys(("chance", "mean", "lower", "upper"))
    arms = tuple(
        arm(
            i,
            name,
            i,
            is_leader=False,
            evidence=0.0,
            **none,
            duels=0,
            heard=0,
            conversions=0,
            pending=0,
        )
        for i, name in enumerate(names)
    )
    said = experiment(
        arms=arms,
        headline="nothing has been asked yet",
        summary=summary(
            names,
            state="no_answers",
            headline="No answers yet",
            lacks="No answer has come.",
            **dict.fromkeys(("best", "difference", "chance", "expected_loss", "cost", "days_left")),
        ),
        advice=view_models.Advice("wait", "Ask for the first duel."),
        leader=None,
        chance_of_none=None,
        matrix=matrix(arms, is_heard=False),
        **dict.fromkeys(("evidence", "allocation", "chances", "pending_ages")),
        **dict.fromkeys(("duels", "heard", "pending", "silent", "repeats", "late", "today"), 0),
        events=(),
    )
    return said, None


def paused():
    advice = view_models.Advice(
        "paused", "It asks for no duels until it is resumed. Answers are still heard."
    )
    said = experiment(
        ("A", "B"), status="paused", advice=advice, goal="regret", feedback="votes", window=None
    )
    return said, checked()


def many(n):
    names = [f"variant {i:03}" for i in range(n)]
    arms = tuple(arm(i, name, i, is_present=i < n - 2) for i, name in enumerate(names))
    return experiment(arms=arms, name=f"{n} arms"), checked()


def nasty():
    rails = [guardrail(NASTY, MARKUP), guardrail(NASTY, LONG, None)]
    said = {"name": MARKUP, "headline": f"{NASTY[0]} leads", "guardrails": rails}
    return experiment(NASTY, **said), checked()


SAMPLES = {
    "busy": busy,
    "declared": declared,
    "off": off,
    "nothing": nothing,
    "paused": paused,
    "thirty": lambda: many(30),
    "hundreds": lambda: many(300),
    "nasty": nasty,
}


def pair(view=None):
    view = view or busy()[0]
    n = 50
    corrected = tuple(
        None if i < 3 else 0.56 + 0.2 * math.sin(i / 4) / (1 + i / 3) for i in range(n)
    )
    lines = (
        view_models.Line("corrected", corrected, "corrected"),
        view_models.Line(
            "naive", tuple(None if v is None else v - 0.21 for v in corrected), "naive"
        ),
        view_models.Line("even", (0.5,) * n, "level"),
    )
    chart = view_models.Chart(
        "pair",
        "Estimate over time",
        "Corrected, silence and order do not count against an arm; naive, every silence is a loss.",
        times(n),
        lines,
        y_kind="share",
    )
    first, second = view.arms[:2]
    heard, ties = (
        ((600, 604), (5, 0)) if view.standing.feedback == "votes" else ((268, 213), (0, 0))
    )
    return view_models.PairView(
        first, second, view.matrix[0][1], (1204, 1207), (11, 9), heard, (268, 213), ties, (20, 18),
        0.35, 0.557,
        f"{first.name} beats {second.name} in about 56 % of duels.", chart,
    )  # fmt: skip


def listed():
    coin = random.Random(5)
    spark = tuple(int(40 + 20 * math.sin(i / 4) + 10 * coin.random()) for i in range(40))
    rows = [
        ("checkout button", "green", "green", 1.0, "declared", spark, 12_903, 934),
        (
            "headline",
            "B: Spend less",
            None,
            0.46,
            "about 1,200 more duels",
            spark[::-1],
            8412,
            1204,
        ),
        ("search ranking", "blue", None, 0.71, "something is off", spark, 1_234_567, 20_331),
        ("welcome mail", "short", None, 0.2, "paused", spark[:12], 310, 0),
        ("new one", None, None, None, "nothing heard yet", (), 0, 0),
        (MARKUP, LONG, None, 0.1, "about 40,000 more duels", spark, 310, 12),
        (ARABIC, ARABIC, None, 0.6, "about 900 more duels", spark, 310, 12),
    ]
    alarms = {"search ranking": ("preference drift", "delay by winner")}
    return [
        view_models.ListEntry(
            name, "paused" if words == "paused" else "running", leader, winner, sure, words, counts,
            duels, today, duels // 40, alarms.get(name, ()),
            headline=f"{leader} {'wins' if winner else 'leads'}" if leader else "No answers yet",
        )
        for name, leader, winner, sure, words, counts, duels, today in rows
    ]  # fmt: skip


def duels():
    outcomes = ("first won", "pending", "silent", "second won", "tie")
    return [
        view_models.LogEntry(
            8412 - i, f"{i:032x}", NASTY[i % 5] if i > 8 else "green", "blue", NOW - 61.0 * i,
            NOW - 30.0 * i if i % 5 in (0, 3, 4) else None, NOW if i == 2 else None,
            outcomes[i % 5], None if i % 4 == 0 else f"visitor-{i}", i != 6,
        )
        for i in range(14)
    ]  # fmt: skip
