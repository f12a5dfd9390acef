"""The view models of the page: plain data, which the templates read without computing anything.

Times are seconds since the epoch. Numbers are raw, and `duelay.page.formats` turns them into text.
None stands for an unknown number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from duelay.live.standing import StandingReport
from duelay.planning.report import PlanReport

Values = tuple[float | None, ...]


@dataclass(frozen=True)
class Line:
    """A line of a chart."""

    name: str  # an arm, or what it is
    values: Values  # as many as the chart has x
    # Or "level", "low" and "high" of a band, "naive", "corrected", "total", "others" (all arms
    # that have no line).
    role: str = "arm"
    colour: int = 0  # of the palette: an arm has the same one in every chart


@dataclass(frozen=True)
class Chart:
    """Lines over time or age; the table below a chart shows the same numbers."""

    id: str  # "evidence", "allocation", "chances", "delays", "pending", "pair"
    title: str
    words: str  # a sentence: what it shows, and how to read it
    x: tuple[float, ...]
    lines: tuple[Line, ...]
    x_kind: str = "time"  # or "age", in seconds
    y_kind: str = "number"  # or "share" of 0 to 1, "evidence" (times, on a logarithmic scale)
    is_stacked: bool = False  # lines on top of each other, adding up to one
    is_stepped: bool = False  # a value holds until the next one
    marks: tuple[tuple[float, str], ...] = ()  # what happened, and when
    is_opinion: bool = False  # marked as such: no guarantee holds for it


@dataclass(frozen=True)
class Advice:
    """What the reader should do next."""

    kind: str  # "wait" (no answers yet), "go-on", "stop", "off" (something is wrong), "paused"
    words: str  # a sentence
    duels: str = ""  # "about 1,200 more duels", or visitors, where it is "go-on"


@dataclass(frozen=True)
class ArmView:
    """A row of the table of arms."""

    number: int
    name: str
    colour: int
    is_present: bool  # not retired
    is_leader: bool
    is_winner: bool
    chance: float | None  # of being the winner: an opinion
    evidence: float | None  # as a share of what a declaration needs, on a logarithmic scale
    mean: float | None  # how often the leader beats it; None for the leader, and before news
    lower: float | None
    upper: float | None
    duels: int  # of the arm, in either place; so are all counts here but `conversions`
    heard: int
    conversions: int  # won as first
    pending: int
    shown_pending: int = 0  # pending duels with the arm as first


@dataclass(frozen=True)
class MatrixCell:
    """A cell of the matrix: how often the arm of the row beats the arm of the column."""

    first: int  # numbers of arms
    second: int
    mean: float | None
    lower: float | None
    upper: float | None
    shade: int  # -10, the row's arm always loses, to 10, it always wins; fainter where unsure
    plays: int  # duels in either order
    heard: int  # answers in either order
    pending: int


@dataclass(frozen=True)
class TestResult:
    """The result of a test of an assumption."""

    name: str
    sentence: str
    is_alarm: bool
    p_value: float | None
    n: int
    is_remark: bool = False  # what it finds is allowed: worth a look, but no cause for doubt
    level: float | None = None  # it alarms below this p-value, at this look


@dataclass(frozen=True)
class EventView:
    """An entry of the history: declared, withdrawn, alarm, silent, joined, paused, ..."""

    kind: str
    at: float
    words: str


@dataclass(frozen=True)
class LogEntry:
    """A row of the log of duels."""

    number: int
    id: str
    first: str
    second: str
    asked: float
    told: float | None
    late: float | None
    outcome: str  # "first won", "second won", "tie", "pending", "silent" (its window has closed)
    unit: str | None
    enters: bool


@dataclass(frozen=True)
class Diagnostics:
    """The delays and the tests of assumptions, computed from the latest duels at one moment."""

    at: float
    of: int  # duels that were looked at
    delays: Chart | None  # the share that has answered by each age, with its band
    never: float | None  # the share of answers that do not come ...
    within: float | None  # ... by this age, the last that is known
    half: float | None  # the age by which half of those that come have come
    still: tuple[float, float, float] | None  # answers of pending duels still to come: low, ...
    delay_words: str  # a sentence on the delays, or why nothing is known of them
    tests: tuple[TestResult, ...]


@dataclass(frozen=True)
class ExperimentView:
    """The page of an experiment, without its diagnostics."""

    standing: StandingReport
    goal: str
    created: float
    now: float
    advice: Advice
    guarantee: str  # a sentence on the guarantee of the standing
    weighed: str  # a sentence: why intervals are wider than a declaration needs; or empty
    heard: int  # heard, pending, silent and repeats add up to the duels
    pending: int
    silent: int  # the window has closed without an answer, or with one that was late
    repeats: int  # silent duels of units that had had the pair before: they do not count
    today: int  # duels of the last 24 hours
    chance_of_none: float | None  # the chance that no arm beats all others: an opinion
    arms: tuple[ArmView, ...]  # all, by rank
    matrix: tuple[tuple[MatrixCell | None, ...], ...]  # of the first arms of `arms`, at most 30
    evidence: Chart | None
    allocation: Chart | None
    chances: Chart | None
    pending_ages: Chart | None
    events: tuple[EventView, ...]  # the latest first
    version: str  # changes with anything that is shown
    share: float = 0.0  # of asks that get a duel once a winner is declared
    speed: str = ""  # "1000": its own clock goes so many times as fast as the world


@dataclass(frozen=True)
class PlanView:
    """The plan of a new experiment: what is wrong with its fields, or what was simulated."""

    wrong: Mapping[str, str] = field(default_factory=dict)  # a sentence for each field
    report: PlanReport | None = None
    charts: tuple[Chart, ...] = ()  # one for each world
    is_open: bool = False  # whether somebody has asked for it


@dataclass(frozen=True)
class PairView:
    """The page of two arms."""

    first: ArmView
    second: ArmView
    cell: MatrixCell
    plays: tuple[int, int]  # with `first` shown first, and with `second` shown first
    repeats: tuple[int, int]  # of a unit that had had the pair before: not in what follows
    heard: tuple[int, int]
    conversions: tuple[int, int]  # wins of the arm that was shown first
    ties: tuple[int, int]
    pending: tuple[int, int]
    naive: float | None  # how often the first wins if silence were a win of the second shown
    corrected: float | None
    words: str  # a sentence on the two
    over_time: Chart | None  # lines "corrected" and "naive"


@dataclass(frozen=True)
class ListEntry:
    """A row of the list of experiments."""

    name: str
    status: str
    leader: str | None
    winner: str | None
    sure: float | None  # the leader's evidence, as `Arm.evidence`; None if something is off
    words: str  # "declared", "2 to 3 days left", "no answers yet", ...
    duels_by_time: tuple[int, ...]  # duels in each of the latest buckets of time
    duels: int
    today: int
    pending: int
    alarms: tuple[str, ...]  # names of tests that alarm, as far as is known
    problem: str = ""  # why nothing else is known of it
    headline: str = ""  # who wins or leads, or that it is too early to say
    unit: str = "duel"  # what is counted; "visitor" where one arm is shown at a time


@dataclass(frozen=True)
class ListFilter:
    """Which experiments the list shows, and how many there are."""

    search: str = ""  # a part of their names
    status: str = ""  # "running", "paused", "declared"; empty for all
    page: int = 1
    n_pages: int = 1
    n_found: int = 0  # on all pages
    n_all: int = 0  # whatever their names and statuses are
