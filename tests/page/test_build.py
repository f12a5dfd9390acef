"""What a page shows, against the rows of the duels."""

import dataclasses
import itertools
import math
import shutil

import numpy as np
import pytest

from duelay.inference.forecast import DuelsLeft
from duelay.inference.posterior import draw_posterior
from duelay.live import Experiment
from duelay.live.arrivals import format_length, format_range, time_left
from duelay.live.events import note
from duelay.live.maintenance import forget
from duelay.live.selection import PairSelector
from duelay.live.storage.schema import MICRO
from duelay.live.storage.time_series import read_totals
from duelay.page import incremental, view_models
from duelay.page.build import _find_gap, build_experiment, build_list, build_pair
from duelay.page.diagnostics import diagnose
from duelay.page.duel_log import read_log
from live.hours import Hours, browser
from page.million import fill, numbers_of

ERROR = 1e-6
ARMS = ["red", "green", "blue"]
MU = np.array([[0.5, 0.55, 0.6], [0.45, 0.5, 0.55], [0.4, 0.45, 0.5]])
CLEAR = np.array([[0.5, 0.9, 0.9], [0.1, 0.5, 0.5], [0.1, 0.5, 0.5]])


@pytest.fixture
def hours():
    return Hours()


def make(url, hours, arms=ARMS, **more):
    return Experiment.create(url, "x", arms, clock=hours, **{"window": "2h"} | more)


@pytest.fixture(scope="module", autouse=True)
def coins():
    """Coins that fall alike in every run: what is compared with a twin here is one experiment."""
    begin = PairSelector.__init__

    def seeded(selector, policy):
        begin(selector, policy)
        selector.rng = np.random.default_rng(0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PairSelector, "__init__", seeded)
        yield


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A store with duels that are closed, open, answered and repeated; and the time."""
    hours, path = Hours(), tmp_path_factory.mktemp("busy") / "duels.db"
    # Coins are of chance: at such an error nobody is ever declared.
    with make(f"sqlite:///{path}", hours, error=ERROR) as experiment:
        browser(experiment, hours, 700, MU, every=30.0, units=lambda k: f"unit {k % 600}")
    return path, hours.now


@pytest.fixture
def busy(template, tmp_path, hours):
    """An experiment of one's own that is like the template."""
    path, hours.now = template
    shutil.copy(path, tmp_path / "duels.db")
    return Experiment.open(f"sqlite:///{tmp_path}/duels.db", "x", clock=hours)


def ask_and_answer(experiment, hours, n):
    """Ask n times whatever is declared; every second duel is answered."""
    for k in range(n):
        hours.pass_by(10.0)
        duel = experiment.ask()
        if k % 2:
            experiment.tell(duel.id)


def charts_of(view):
    return [
        chart
        for chart in (getattr(view, field.name) for field in dataclasses.fields(view))
        if isinstance(chart, view_models.Chart)
    ]


def check_charts(view):
    """Every number is finite or None, each line is as long as the chart, and x never falls."""
    for chart in charts_of(view):
        assert len(chart.x) > 0 and all(type(x) is float and math.isfinite(x) for x in chart.x)
        assert list(chart.x) == sorted(chart.x)
        for line in chart.lines:
            assert len(line.values) == len(chart.x)
            assert all(v is None or (type(v) is float and math.isfinite(v)) for v in line.values)


def line_of(chart, name):
    return next(line.values for line in chart.lines if line.name == name)


def ends_of(chart):
    return np.array(chart.x)


# Counts.


def test_a_page_has_the_guard_rails_of_the_moment(url, hours):
    experiment = make(url, hours, guardrails={"refund": {"bound": 0.1, "within": "1h"}})
    experiment.tell(experiment.ask(), metric="refund", arm="first")
    before = build_experiment(experiment)
    assert sum(arm.duels for arm in before.standing.guardrails[0].arms) == 0
    hours.pass_by(3601)
    after = build_experiment(experiment)
    assert [sum(arm.duels for arm in after.standing.guardrails[0].arms),
            sum(arm.events for arm in after.standing.guardrails[0].arms)] == [2, 1]  # fmt: skip
    assert before.version != after.version
    assert after.standing.guardrails == list(experiment.standing().guardrails)


def test_arms_and_cells_count_what_the_log_has(busy):
    view, rows = build_experiment(busy), numbers_of(busy)
    assert view.standing.duels == len(rows) and view.heard == sum(
        r["told"] is not None for r in rows
    )
    window = round(7200 * MICRO)
    waits = [r for r in rows if r["told"] is None and r["enters"]
             and view.now * MICRO - r["asked"] <= window]  # fmt: skip
    assert view.pending == len(waits) > 0
    silent = [r for r in rows if r["told"] is None]
    assert view.repeats == sum(not r["enters"] for r in silent) > 0
    assert view.silent == sum(r["enters"] for r in silent) - len(waits) > 0
    assert view.standing.duels == view.heard + view.pending + view.silent + view.repeats
    for arm in view.arms:
        mine = [r for r in rows if arm.number in (r["first"], r["second"])]
        assert arm.duels == len(mine)
        assert arm.conversions == sum(r["told"] is not None and r["first"] == arm.number
                                      for r in mine)  # fmt: skip
        assert arm.heard == sum(r["told"] is not None for r in mine)
        assert arm.pending == sum(arm.number in (r["first"], r["second"]) for r in waits)
    for line in view.matrix:
        for cell in filter(None, line):
            mine = [r for r in rows if {r["first"], r["second"]} == {cell.first, cell.second}]
            assert cell.plays == len(mine)
            assert cell.heard == sum(r["told"] is not None for r in mine)
            pair = {cell.first, cell.second}
            assert cell.pending == sum({r["first"], r["second"]} == pair for r in waits)
    assert view.today == sum(r["asked"] > (view.now - 86_400) * MICRO for r in rows)


def test_the_matrix_is_by_rank_and_shades_by_the_mean_and_how_sure_it_is(busy):
    view, standing = build_experiment(busy), busy.standing().without_alarms()
    assert view.standing.leader == view.arms[0].name == standing.arms[standing.leader]
    for i, row in enumerate(view.matrix):
        for j, cell in enumerate(row):
            if i == j:
                assert cell is None
                continue
            assert (cell.first, cell.second) == (view.arms[i].number, view.arms[j].number)
            assert cell.mean == pytest.approx(standing.mean[cell.first, cell.second])
            sure = 1 - (cell.upper - cell.lower)
            assert cell.lower <= cell.upper and cell.shade == round(20 * (cell.mean - 0.5) * sure)
            assert cell.mean + view.matrix[j][i].mean == pytest.approx(1.0)


def test_colours_and_marks_are_those_of_the_arm(busy):
    view = build_experiment(busy)
    for chart in (view.evidence, view.allocation, view.chances):
        for line in chart.lines:
            if line.role == "arm":
                assert line.colour == ARMS.index(line.name)
    assert [arm.is_leader for arm in view.arms] == [True, False, False]
    assert all(arm.mean is None for arm in view.arms[:1]) and view.arms[1].mean is not None


# Charts.


def test_allocation_is_the_share_of_places_among_ten_duels_at_least(busy):
    view, rows = build_experiment(busy), numbers_of(busy)
    chart = view.allocation
    for place, (start, end) in enumerate(itertools.pairwise(chart.x)):
        until = math.inf if place == len(chart.x) - 2 else end
        there = [r for r in rows if start <= r["asked"] / MICRO < until]
        assert len(there) >= 10
        for number, arm in enumerate(ARMS):
            shown = sum((r["first"] == number) + (r["second"] == number) for r in there)
            assert line_of(chart, arm)[place] == pytest.approx(shown / (2 * len(there)))
    assert chart.x[-1] == view.now
    assert all(line.values[-1] == line.values[-2] for line in chart.lines)


def test_the_evidence_ends_with_that_of_now_and_has_the_line_of_a_declaration(busy):
    view, evidence = build_experiment(busy), busy.standing().evidence
    for number, arm in enumerate(ARMS):
        assert line_of(view.evidence, arm)[-1] == pytest.approx(math.exp(evidence.arm[number]))
    assert line_of(view.evidence, "declared") == pytest.approx(
        [4 / (0.9 * ERROR)] * len(view.evidence.x)
    )
    assert view.evidence.x[-1] == view.now and len(view.evidence.x) <= 130


def test_the_evidence_steps_where_an_arm_comes_or_goes_and_says_who(busy, hours):
    before = build_experiment(busy).evidence
    assert before.is_stepped and before.marks == ()
    hours.pass_by(60)
    at = hours.now
    busy.add_arm("new")
    browser(busy, hours, 20, np.full((4, 4), 0.5))
    hours.pass_by(60)
    busy.retire_arm("blue")
    browser(busy, hours, 20, np.full((4, 4), 0.5))
    chart = build_experiment(busy).evidence
    (joined, said), (retired, other) = chart.marks
    assert (said, other) == ("new joined", "blue retired")
    assert joined == pytest.approx(at, abs=1e-3) and {joined, retired} <= set(chart.x)
    assert list(chart.x) == sorted(set(chart.x))
    there = [at >= joined for at in chart.x]
    assert [value is not None for value in line_of(chart, "new")] == there
    step = chart.x.index(joined)
    assert line_of(chart, "red")[step] < line_of(chart, "red")[step - 1]


def settled_at(row):
    """When a duel was answered in time, or silent at its age; None if it still is open."""
    if row["settled_by"] is None:
        return None
    wait = 7200 * MICRO if row["wait"] is None else row["wait"]
    return row["told"] if row["settled_by"] == 1 else row["asked"] + wait


def test_chances_end_with_those_of_now_and_were_about_those_of_what_had_been_settled(busy):
    view, standing, rows = (
        build_experiment(busy),
        busy.standing().without_alarms(),
        numbers_of(busy),
    )
    chart = view.chances
    assert view.chance_of_none == pytest.approx(1 - sum(arm.chance for arm in view.arms))
    assert chart.is_opinion and 3 < len(chart.x) <= 41
    for arm in view.arms:
        assert line_of(chart, arm.name)[-1] == arm.chance
        assert arm.chance == pytest.approx(standing.chances[arm.number])
    for place in range(len(chart.x) // 2, len(chart.x) - 1):
        lead, n = np.zeros((3, 3)), np.zeros((3, 3))
        for r in rows:
            if settled_at(r) is None or settled_at(r) > chart.x[place] * MICRO or not r["enters"]:
                continue
            is_answer = r["settled_by"] == 1
            i, j = (r["first"], r["second"])[:: 1 if is_answer else -1]
            lead[i, j] += r["odds"]
            lead[j, i] -= r["odds"]
            n[i, j] += r["odds"] ** 2
            n[j, i] += r["odds"] ** 2
        then = draw_posterior(lead, n, 0, None, np.ones(3, dtype=bool)).chances
        found = [line_of(chart, arm)[place] for arm in ARMS]
        assert np.abs(then - found).max() < 0.2


def test_past_chances_are_computed_once(busy, hours, monkeypatch):
    calls = []

    def count(*args):
        calls.append(args)
        return draw_posterior(*args)

    monkeypatch.setattr("duelay.page.charts.series.draw_posterior", count)
    first = build_experiment(busy).chances
    n = len(calls)
    hours.pass_by(61.0)
    browser(busy, hours, 3, MU)
    again = build_experiment(busy).chances
    assert n == len(first.x) - 1 and len(calls) <= n + 3
    assert len(set(first.x) & set(again.x)) >= len(first.x) - 1


def test_pending_by_age_adds_up_to_the_silent_duels_that_are_open(url, hours):
    experiment = make(url, hours, window="1d")
    browser(experiment, hours, 200, MU)
    view = build_experiment(experiment)
    values = view.pending_ages.lines[0].values
    assert view.pending_ages.x_kind == "age" and sum(values) == view.pending
    silent = [view.now - r["asked"] / MICRO for r in numbers_of(experiment) if r["told"] is None]
    mean = sum(x * v for x, v in zip(view.pending_ages.x, values, strict=True)) / sum(values)
    assert mean == pytest.approx(np.mean(silent), abs=35.0)


def test_of_duels_that_are_closed_none_is_pending(busy):
    view = build_experiment(busy)
    rows = numbers_of(busy)
    waits = sum(r["told"] is None and view.now * MICRO - r["asked"] <= 7200 * MICRO for r in rows)
    assert sum(view.pending_ages.lines[0].values) == pytest.approx(waits, abs=12)
    assert max(view.pending_ages.x) < 7200 + 300


# Two arms.


def test_a_naive_pair_over_time_is_what_a_reader_of_the_log_would_have_seen(busy):
    build_experiment(busy)
    pair, rows = build_pair(busy, 0, 2), numbers_of(busy)
    chart = pair.over_time
    for place, end in enumerate(chart.x):
        plays, wins = {}, {}
        for r in rows:
            key = (r["first"], r["second"])
            if r["asked"] / MICRO < end or place == len(chart.x) - 1:
                plays[key] = plays.get(key, 0) + 1
            if r["told"] and (r["told"] / MICRO < end or place == len(chart.x) - 1):
                wins[key] = wins.get(key, 0) + 1
        mine, theirs = wins.get((0, 2), 0), wins.get((2, 0), 0)
        of = plays.get((0, 2), 0) + plays.get((2, 0), 0)
        naive = (mine + plays.get((2, 0), 0) - theirs) / of if of else None
        assert line_of(chart, "naive")[place] == pytest.approx(naive)
    assert line_of(chart, "naive")[-1] == pytest.approx(pair.naive)


def test_a_corrected_pair_over_time_weighs_what_was_settled_and_ends_with_the_estimate(busy):
    view, rows = build_experiment(busy), numbers_of(busy)
    leader, rival = view.arms[0].number, view.arms[1].number  # they meet most
    pair = build_pair(busy, leader, rival)
    chart = pair.over_time
    assert line_of(chart, "corrected")[-1] == pair.corrected == pair.cell.mean
    for place in range(len(chart.x) // 2, len(chart.x) - 1):
        lead = n = 0.0
        for r in rows:
            is_settled = settled_at(r) is not None and settled_at(r) <= chart.x[place] * MICRO
            if {r["first"], r["second"]} == {leader, rival} and is_settled and r["enters"]:
                is_first = (r["first"] == leader) == (r["settled_by"] == 1)
                lead += r["odds"] if is_first else -r["odds"]
                n += r["odds"] ** 2
        then = min(max(0.5 + 0.5 * lead / n, 0.0), 1.0)
        assert line_of(chart, "corrected")[place] == pytest.approx(then, abs=0.1)


def test_a_pair_has_its_counts_in_either_order_and_says_how_the_two_compare(busy):
    build_experiment(busy)
    pair, other = build_pair(busy, 0, 2), build_pair(busy, 2, 0)
    rows = numbers_of(busy)
    assert pair.plays == tuple(sum((r["first"], r["second"]) == key for r in rows)
                               for key in ((0, 2), (2, 0)))  # fmt: skip
    assert other.plays == pair.plays[::-1] and other.conversions == pair.conversions[::-1]
    assert pair.corrected == pair.cell.mean == pytest.approx(1.0 - other.corrected)
    assert pair.naive == pytest.approx(1.0 - other.naive)
    assert pair.first.name == "red"


def test_a_pair_that_is_none_is_refused(busy):
    for i, j in ((0, 0), (0, 3), (-1, 1)):
        with pytest.raises(LookupError, match="pair"):
            build_pair(busy, i, j)


def test_naive_is_far_off_where_answers_are_late_and_one_order_was_shown_more(url, hours):
    """Silence speaks for the second: who was shown second more often seems to win."""
    experiment = make(url, hours, arms=["a", "b"], window="30d")
    browser(experiment, hours, 150, np.array([[0.5, 0.5], [0.5, 0.5]]), mean=1e6)
    build_experiment(experiment)
    pair = build_pair(experiment, 0, 1)
    n = sum(pair.plays)
    assert pair.naive == pytest.approx(
        (pair.conversions[0] + pair.plays[1] - pair.conversions[1]) / n
    )


# States.


def test_without_duels_nothing_is_known(url, hours):
    view = build_experiment(make(url, hours))
    assert (view.standing.duels, view.today, view.standing.leader, view.standing.winner) == (
        0,
        0,
        None,
        None,
    )
    assert view.advice.kind == "wait" and charts_of(view) == []
    assert all(arm.mean is None and arm.chance is None for arm in view.arms)
    assert all(cell is None or (cell.mean is None and cell.shade == 0)
               for row in view.matrix for cell in row)  # fmt: skip
    assert [arm.name for arm in view.arms] == ARMS and view.standing.window == "2h"


def test_where_nothing_is_heard_it_waits_and_then_something_is_off(url, hours):
    experiment = make(url, hours)
    browser(experiment, hours, 40, MU, never=1.0)
    view = build_experiment(experiment)
    assert view.advice.kind == "wait" and view.standing.leader is None and view.chances is None
    check_charts(view)
    assert build_pair(experiment, 0, 1).corrected is None
    hours.pass_by(3 * 3600.0)
    view = build_experiment(experiment)
    assert view.pending == 0 and view.advice.kind == "off"


def test_silence_counts_as_time_passes_though_nobody_asks(url, hours):
    experiment = make(url, hours)
    browser(experiment, hours, 150, MU)
    assert build_experiment(experiment).pending > 0
    hours.pass_by(5 * 3600.0)
    view = build_experiment(experiment)
    assert view.pending == 0 and view.pending_ages is None
    assert all(cell.mean is not None for row in view.matrix for cell in row if cell)


def test_what_is_due_is_shown_and_is_not_written(url, hours, monkeypatch):
    experiment = make(url, hours)
    browser(experiment, hours, 20, MU)
    hours.pass_by(9 * 3600.0)
    with monkeypatch.context() as patch:
        patch.setattr(experiment._writer, "submit", None)
        shown = build_experiment(experiment)
        listed = build_list(experiment.store, clock=hours)
    assert shown.pending == listed[0].pending == 0
    experiment.settle()
    settled = build_experiment(experiment)
    assert (settled.matrix, settled.arms) == (shown.matrix, shown.arms)
    assert settled.evidence == shown.evidence


def test_a_declared_winner_means_stop(url, hours):
    experiment = make(url, hours)
    browser(experiment, hours, 2000, CLEAR)
    view = build_experiment(experiment)
    assert view.standing.winner == view.arms[0].name == "red" and view.arms[0].is_winner
    assert view.advice.kind == "stop" and view.standing.winner in view.advice.words
    assert view.standing.status == "running" and view.share == 0.0
    assert view.events[0].kind == "declared" and view.arms[0].evidence == 1.0
    assert max(line_of(view.evidence, "red")) >= line_of(view.evidence, "declared")[0]
    check_charts(view)
    assert view.standing.winner in view.weighed and "50 %" in view.weighed
    experiment.add_arm("late <b>")
    view = build_experiment(experiment)
    assert view.standing.winner is None and {"withdrawn", "joined"} <= {
        event.kind for event in view.events
    }
    assert view.advice.kind != "stop" and "late <b>" in [arm.name for arm in view.arms]


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_the_evidence_crosses_the_line_of_a_declaration_when_it_was_declared(url, hours, share):
    """Also after more duels than there are points in the chart, and duels after the winner."""
    experiment = make(url, hours, share=share)
    browser(experiment, hours, 900, np.full((3, 3), 0.5))
    while experiment.standing().winner is None:
        browser(experiment, hours, 100, CLEAR)
    if share:
        ask_and_answer(experiment, hours, 600)
    hours.pass_by(30 * 86_400.0)
    chart, at = build_experiment(experiment).evidence, next(
        each.at for each in build_experiment(experiment).events if each.kind == "declared"
    )  # fmt: skip
    level = line_of(chart, "declared")[0]
    crossed = [x for x, value in zip(chart.x, line_of(chart, "red"), strict=True) if value >= level]
    assert crossed[0] == pytest.approx(at, abs=1e-3) and len(chart.x) <= 131
    with experiment.reading() as (_, head):
        assert head["stride"] > 1


def test_a_pair_of_the_winner_has_its_evidence_and_is_never_unclear(url, hours):
    experiment = make(url, hours, arms=["a", "b"])
    browser(experiment, hours, 2000, np.array([[0.5, 0.75], [0.25, 0.5]]), never=0.0)
    assert build_experiment(experiment).standing.winner == "a"
    best = math.exp(experiment.standing().without_alarms().eprocess.best[0, 1])
    for pair in (build_pair(experiment, 0, 1), build_pair(experiment, 1, 0)):
        assert f"{best:,.0f} times" in pair.words


def test_retired_arms_come_last(busy):
    busy.retire_arm("red")
    busy.add_arm("new")
    view = build_experiment(busy)
    assert [arm.is_present for arm in view.arms] == [True, True, True, False]
    assert view.arms[-1].name == "red" and view.arms[-1].chance is None
    assert view.arms[-1].evidence is None and view.standing.leader != "red"
    assert [event.kind for event in view.events][:2] in (["joined", "retired"],
                                                         ["retired", "joined"])  # fmt: skip
    assert all(line.name != "red" for line in view.evidence.lines)
    check_charts(view)
    check_charts(build_pair(busy, 0, 3))
    assert build_pair(busy, 0, 3).corrected is None


def test_votes_are_counted_as_they_stand(url, hours):
    experiment = make(url, hours, feedback="votes")
    browser(experiment, hours, 300, MU, votes=True)
    view = build_experiment(experiment)
    assert view.standing.feedback == "votes" and view.heard > 200
    check_charts(view)
    rows = [r for r in numbers_of(experiment) if {r["first"], r["second"]} == {0, 1}]
    told = [r for r in rows if r["told"] is not None]
    wins = sum(r["first_won"] if r["first"] == 0 else 1 - r["first_won"] for r in told)
    pair = build_pair(experiment, 0, 1)
    assert pair.naive == pytest.approx(wins / len(told))
    assert line_of(pair.over_time, "share of votes")[-1] == pytest.approx(wins / len(told))
    assert [line.role for line in pair.over_time.lines] == ["corrected", "level"]
    told = {key: [r["first_won"] for r in told if r["first"] == key] for key in (0, 1)}
    assert pair.heard == (len(told[0]), len(told[1])) and pair.ties == (0, 0)
    assert pair.conversions == (sum(told[0]), sum(told[1]))


def test_ties_are_counted_of_a_pair_in_either_order_and_repeats_are_not(url, hours):
    experiment = make(url, hours, arms=["a", "b"], feedback="votes", window="1m")
    said = {"a": [], "b": []}
    for k in range(60):
        hours.pass_by(61.0)
        duel = experiment.ask(unit=f"unit {k % 50}")
        winner = ("first", "second", "tie")[k % 3]
        experiment.tell(duel.id, winner)
        said[duel.first] += [winner] if k < 50 else []
    pair = build_pair(experiment, 0, 1)
    assert pair.heard == (len(said["a"]), len(said["b"])) and sum(pair.repeats) == 10
    assert pair.ties == (said["a"].count("tie"), said["b"].count("tie"))
    assert pair.conversions == (said["a"].count("first"), said["b"].count("first"))
    assert sum(pair.plays) == pair.cell.heard == 60


def test_pausing_and_resuming_are_among_what_happened_once(busy):
    busy.pause()
    busy.pause()
    busy.resume()
    assert [event.kind for event in build_experiment(busy).events][:2] == ["resumed", "paused"]
    assert len(build_experiment(busy).events) == 2


def test_answers_that_came_late_are_found_in_the_log(busy, hours):
    duel = busy.ask()
    hours.pass_by(3 * 3600)
    assert busy.tell(duel) == "late"
    found, _ = read_log(busy, outcome="late", limit=10_000)
    assert duel.id in [each.id for each in found]
    assert all(each.late is not None and each.outcome == "silent" for each in found)


def test_one_whose_booking_is_held_says_so(busy):
    busy.hold_booking()
    view = build_experiment(busy)
    assert view.advice.kind == "wait" and view.advice.words.startswith("Booking is held: ")
    assert view.standing.booking == "held" and build_experiment(busy).events[0].kind == "held"


def test_a_paused_one_says_so(busy):
    busy.pause()
    view = build_experiment(busy)
    assert view.standing.status == "paused" and view.advice.kind == "paused"


def test_to_save_regret_nothing_needs_stopping(url, hours):
    experiment = make(url, hours, goal="regret")
    browser(experiment, hours, 120, MU)
    view = build_experiment(experiment)
    assert view.goal == "regret" and view.advice.kind == "go-on"
    assert view.advice.duels == ""
    check_charts(view)


def test_duels_that_are_forgotten_still_count(busy, hours):
    before = build_experiment(busy)
    hours.pass_by(10 * 86_400.0)
    build_experiment(busy)
    forget(busy.store, "2d", clock=hours)
    view = build_experiment(busy)
    assert (
        view.standing.duels == before.standing.duels
        and view.heard == before.heard
        and view.today == 0
    )
    assert [arm.duels for arm in view.arms] and build_pair(busy, 0, 1).corrected is not None
    check_charts(view)
    checked = diagnose(busy)
    assert checked.delays is None and checked.of == 0
    assert read_log(busy) == ([], "")


@pytest.mark.parametrize("k", [2, 30, 300])
def test_many_arms_have_a_matrix_of_thirty_and_charts_of_twelve(url, k):
    experiment = fill(url, n=3000, k=k)
    view = build_experiment(experiment)
    assert len(view.arms) == k and len(view.matrix) == min(k, 30)
    assert len(view.evidence.lines) == min(k, 12) + 1
    names = [line.name for line in view.allocation.lines]
    assert ("all others" in names) == (k > 12)
    for values in zip(*(line.values for line in view.allocation.lines), strict=True):
        assert None in values or sum(values) == pytest.approx(1.0)
    check_charts(view)
    assert build_experiment(experiment) is view


def test_names_stay_as_they_are(url, hours):
    arms = ["<script>alert(1)</script>", "مرحبا", "n" * 200, "{{ 7 * 7 }}"]
    experiment = make(url, hours, arms=arms)
    browser(experiment, hours, 60, np.full((4, 4), 0.5))
    view = build_experiment(experiment)
    assert {arm.name for arm in view.arms} == set(arms)
    assert {line.name for line in view.allocation.lines} == set(arms)
    assert build_list(experiment.store, clock=hours)[0].leader in arms


def test_both_kinds_of_stores_show_the_same(store, hours):
    experiment = Experiment.create(store, "x", ARMS, clock=hours, window="1h")
    browser(experiment, hours, 60, MU)
    view = build_experiment(experiment)
    check_charts(view)
    assert view.standing.duels == 60 and build_pair(experiment, 0, 1).over_time is not None
    assert build_list(experiment.store, clock=hours)[0].today == 60
    assert diagnose(experiment).of == 60 and len(read_log(experiment, limit=7)[0]) == 7


# Versions.


def test_the_version_changes_with_what_is_shown_and_else_the_view_is_the_same(busy, hours):
    view = build_experiment(busy)
    assert build_experiment(busy) is view
    duel = busy.ask()
    seen = {view.version, build_experiment(busy).version}
    busy.tell(duel.id)
    seen.add(build_experiment(busy).version)
    busy.pause()
    seen.add(build_experiment(busy).version)
    diagnose(busy)
    seen.add(build_experiment(busy).version)
    hours.pass_by(61.0)
    seen.add(build_experiment(busy).version)
    assert len(seen) == 6


def test_what_another_process_wrote_is_seen(busy, hours):
    build_experiment(busy)
    other = Experiment.open(busy.store.url.render_as_string(hide_password=False), "x", clock=hours)
    other.tell(other.ask().id)
    hours.pass_by(2.0)  # evidence may be a second old
    view = build_experiment(busy)
    assert view.standing.duels == len(numbers_of(busy))
    twin = busy.standing().without_alarms()
    for row in view.matrix:
        for cell in filter(None, row):
            assert cell.mean == pytest.approx(twin.mean[cell.first, cell.second])


# Advice.


def test_it_says_how_long_to_go_on(busy):
    view = build_experiment(busy)
    left = busy.standing().without_alarms().duels_left
    assert view.advice.kind == "go-on" and view.advice.duels == str(left)
    assert view.advice.duels in view.advice.words and "at this traffic" in view.advice.words


def test_where_no_duels_come_it_says_no_time(busy, hours):
    hours.pass_by(400.0)
    assert "at this traffic" in build_experiment(busy).advice.words
    hours.pass_by(500.0)
    advice = build_experiment(busy).advice
    assert advice.kind == "go-on" and "traffic" not in advice.words
    assert "asked lately" in advice.words, "as the time that is left says"


def test_a_long_pause_is_no_traffic(busy, hours):
    """700 duels came in some six hours; the time is by these, and not by a day's mean."""
    with incremental.look(busy) as seen:
        totals = read_totals(seen.connection, seen.id)
        before = _find_gap(seen, 700, totals)
    hours.pass_by(10 * 3600.0)
    browser(busy, hours, 1, MU)
    with incremental.look(busy) as seen:
        totals = read_totals(seen.connection, seen.id)
        after = _find_gap(seen, 701, totals)
    assert before == pytest.approx(30.0, rel=0.2) and after == pytest.approx(before, rel=0.2)


@pytest.mark.parametrize(
    "left, gap, words",
    [((900, 1500, 2700), 60.0, "about 1 day"), ((90, 1500, 9000), 60.0, "90 minutes to 6 days"),
     ((0, 40, 87), 0.2, "less than a minute"), ((0, 40, 87), 60.0, "up to 87 minutes"),
     ((50, 60, 70), 1.0, "up to 1 minute"), ((0, 0, 0), 1.0, ""), ((1, 2, 3), None, "")],
)  # fmt: skip
def test_the_time_left_is_about_a_range_or_an_upper_end(left, gap, words):
    assert time_left(DuelsLeft(*left), gap) == words


def test_alarms_that_were_noted_or_found_are_what_is_off(busy):
    with busy.store.writing() as connection:
        note(connection, busy._writer.id, "alarm", "share by arm", "share by arm: so.", 1)
    assert build_experiment(busy).advice.kind == "go-on"  # a remark
    with busy.store.writing() as connection:
        note(
            connection, busy._writer.id, "alarm", "order balance", "order balance: it is uneven", 2
        )
    view = build_experiment(busy)
    assert view.advice.kind == "off" and "uneven" in view.advice.words
    assert "doubtful: order balance" in view.standing.headline
    assert build_list(busy.store, clock=busy._writer.clock)[0].alarms == ("order balance",)
    checked = diagnose(busy)  # finds nothing, and is later
    assert not any(test.is_alarm for test in checked.tests)
    view = build_experiment(busy)
    assert view.advice.kind == "go-on" and "doubtful" not in view.standing.headline


def test_traffic_that_fell_silent_is_off_until_a_duel_comes(busy, hours):
    last = numbers_of(busy)[-1]["asked"]
    with busy.store.writing() as connection:
        note(connection, busy._writer.id, "silent", str(last), "no duel has been asked for 2h", 1)
    view = build_experiment(busy)
    assert view.advice.kind == "off"
    hours.pass_by(1.0)
    busy.ask()
    assert build_experiment(busy).advice.kind == "go-on"


def test_a_circle_is_off(url, hours):
    experiment = make(url, hours)
    circle = np.array([[0.5, 0.95, 0.05], [0.05, 0.5, 0.95], [0.95, 0.05, 0.5]])
    browser(experiment, hours, 600, circle, never=0.0)
    view = build_experiment(experiment)
    assert view.standing.winner is None and view.advice.kind == "off"


def test_answers_after_the_window_are_off_and_time_is_by_the_clock(url, hours):
    experiment = make(url, hours, window="1m")
    browser(experiment, hours, 100, MU, mean=300.0)
    view = build_experiment(experiment)
    assert view.standing.late > 10 and view.advice.kind == "off"


def test_beside_late_votes_all_that_were_heard_are_said(url, hours):
    experiment = make(url, hours, window="3m", feedback="votes")
    browser(experiment, hours, 100, MU, mean=300.0, votes=True)
    view = build_experiment(experiment)
    assert view.standing.late > 10 and view.advice.kind == "off"
    assert str(view.heard) in view.advice.words


def test_units_that_come_again_are_off(url, hours):
    experiment = make(url, hours, window="10m")
    browser(experiment, hours, 200, MU, units=lambda k: f"unit {k % 5}", every=300.0,
          mean=60.0)  # fmt: skip
    view = build_experiment(experiment)
    assert view.advice.kind == "off"
    assert view.standing.warnings and view.standing.warnings[0] in view.advice.words


@pytest.mark.parametrize(
    "seconds, words",
    [(20, "less than a minute"), (59, "1 minute"), (3600, "1 hour"), (50 * 3600, "2 days"),
     (10 * 86_400, "10 days"), (14 * 86_400, "2 weeks"), (7 * 86_400, "7 days"),
     (90 * 86_400, "3 months"), (3 * 365.25 * 86_400, "3 years")],
)  # fmt: skip
def test_lengths_of_time_are_in_one_unit(seconds, words):
    assert format_length(seconds) == words


def test_two_lengths_share_a_unit():
    assert format_range(3600, 7200) == "1 to 2 hours"
    assert format_range(86_400, 86_400) == "about 1 day"


# The list.


def test_the_list_has_each_experiment_and_forgets_those_that_are_gone(url, hours):
    one = make(url, hours)
    browser(one, hours, 250, MU)
    Experiment.create(one.store, "new", ["a", "b"], clock=hours)
    first, second = build_list(one.store, clock=hours)
    assert (first.name, first.duels, first.today, sum(first.duels_by_time)) == ("x", 250, 250, 250)
    assert first.leader in ARMS and 0 <= first.sure <= 1 and first.words.endswith("left")
    assert (second.name, second.leader, second.sure) == ("new", None, None)
    one.delete()
    again = Experiment.create(one.store, "x", ["c", "d"], clock=hours)
    found = {each.name: each for each in build_list(one.store, clock=hours)}
    assert found["x"].duels == 0 and build_experiment(again).standing.duels == 0
    assert [each.name for each in build_list(one.store, ["new"], clock=hours)] == ["new"]


# The log.


def test_the_log_gives_all_duels_page_by_page(busy):
    found, before = [], None
    while True:
        duels, following = read_log(busy, before, 64)
        found += duels
        if not following:
            break
        before = int(following)
    rows = numbers_of(busy)
    assert [duel.number for duel in found] == [r["number"] for r in reversed(rows)]
    assert [duel.id for duel in found] == [r["id"] for r in reversed(rows)]
    assert {duel.outcome for duel in found} == {"first won", "pending", "silent"}


@pytest.mark.parametrize("outcome", ["first won", "pending", "silent", "tie", "second won"])
def test_the_log_is_filtered_by_arm_and_outcome(busy, outcome):
    every, _ = read_log(busy, limit=10_000)
    mine, following = read_log(busy, limit=10_000, arm="2", outcome=outcome)
    assert following == ""
    assert mine == [d for d in every if "blue" in (d.first, d.second) and d.outcome == outcome]
    assert read_log(busy, arm=77) == ([], "") and read_log(busy, arm="no arm") == ([], "")
    assert read_log(busy, arm="blue", outcome=outcome, limit=10_000)[0] == mine


def test_an_outcome_that_is_none_is_refused(busy):
    with pytest.raises(ValueError, match="outcome"):
        read_log(busy, outcome="lost")


def test_a_rare_outcome_is_looked_for_some_way_at_a_time(busy, monkeypatch):
    monkeypatch.setattr("duelay.page.duel_log._MAX_DUELS_PER_CALL", 100)
    duels, following = read_log(busy, outcome="tie")
    assert duels == [] and following == str(len(numbers_of(busy)) - 99)
