"""Contests among many arms, step by step: hand-made states, given numbers, and slow twins.

What the steps come to, the law of the pairs, is tested in `test_many_arms`.
"""

import copy
import math

import numpy as np
import pytest

import duelay
from duelay import delays
from duelay.ledger import age_to, assume, hear, open_ledger, record
from duelay.policies.double_thompson import many_arms
from duelay.policies.double_thompson.beta_posterior import (
    beats_for_certain,
    chance_above_half,
    draw_above_half,
)
from duelay.policies.double_thompson.many_arms import (
    ManyArmsRule,
    best_drawn,
    best_of_all,
    contest,
    end_quiet,
    first_arm,
    many_arms_rule,
    propose,
    put_in,
    second_arm,
    take_floors,
    take_out,
)
from duelay.policies.double_thompson.row_samples import note_news, tilted
from duelay.policies.double_thompson.self_duel_runs import is_quiet, loses_some, quiet_turns
from duelay.policies.pair_statistics import wins_and_count
from duelay.policies.turn import select

pytestmark = pytest.mark.interpreted


class Given:
    """A generator that draws the numbers given, and no more."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)

    def random(self):
        return self.numbers.pop(0)


def same(seed):
    """Two generators of the same draws: the second is the twin's."""
    return np.random.default_rng(seed), np.random.default_rng(seed)


def at_once(n_arms):
    """A ledger without duels, where answers come at once."""
    return open_ledger(assume(None, None, n_arms), n_arms)


def bounded(n_arms, seed):
    """A rule with random bounds: of a pair of arms those of both sides agree."""
    rng, rule = np.random.default_rng(seed), many_arms_rule(0.51, n_arms)
    for i in range(n_arms):
        for j in range(i):
            rule.low[i, j], rule.high[i, j] = np.sort(rng.random(2))
            rule.low[j, i], rule.high[j, i] = 1.0 - rule.high[i, j], 1.0 - rule.low[i, j]
    for i in range(n_arms):
        rule.weight[i] = math.prod(tilted(rule, p) for p in np.delete(rule.high[i], i))
    return rule


def aged(n_arms, seed, law=delays.Uniform(1, 60)):  # noqa: B008
    """A ledger and a rule whose bounds are too wide by now, since nothing is heard for a while."""
    rng, ledger = np.random.default_rng(seed), open_ledger(assume(law, None, n_arms), n_arms)
    for t in range(1, 90):
        age_to(ledger, t)
        i, j = rng.choice(n_arms, size=2, replace=False)
        record(ledger, i, j, t)
        if t > 3 and rng.random() < 0.5:
            hear(ledger, i, j, t - 3, t)
    age_to(ledger, 90)
    rule = many_arms_rule(0.51, n_arms)
    note_news(rule, ledger)
    for t in range(91, 111):
        age_to(ledger, t)
    return ledger, rule


def test_from_thirty_two_arms_on_rows_are_drawn_with_a_tilt_of_eight():
    assert isinstance(duelay.DoubleThompson().rule(32), ManyArmsRule)
    assert not isinstance(duelay.DoubleThompson().rule(31), ManyArmsRule)
    rule = many_arms_rule(0.51, 64)
    assert (rule.tilt, rule.up, rule.down) == pytest.approx((1.0, math.exp(0.5), math.exp(-0.5)))
    assert rule.weight == pytest.approx(np.full(64, math.cosh(0.5) ** 63))
    assert sum(int(word).bit_count() for word in rule.fresh[7]) == 64
    assert sorted(rule.beater) == list(range(64)) and (rule.beater != np.arange(64)).all()


def test_floors_are_the_favourites_lower_bounds_if_together_they_are_a_half():
    rule = many_arms_rule(0.51, 4)
    rule.favourite[0] = 2
    for low, together in (
        ([0.9, 0.8, 0.1, 0.75], 0.54),
        ([0.9, 0.8, 0.1, 0.6], 0.0),
        ([1.0, 1.0, 0.1, 0.501], 0.501),
        ([1.0, 1.0, 0.1, 0.5], 0.0),  # the last bit of a half decides nothing
        ([1.0, 1.0, 0.1, 1.0], 1.0),
    ):
        rule.low[2] = low
        assert take_floors(rule) == pytest.approx(together)
        if together:
            assert np.delete(rule.floor, 2).tolist() == np.delete(low, 2).tolist()


def test_a_row_is_taken_out_of_bounds_as_a_chance_and_put_in_as_coins():
    for seed in range(5):
        rule = bounded(6, seed)
        rule.bound[:] = rule.weight
        take_out(rule, 4)
        for i in range(6):
            others = [tilted(rule, rule.high[i, j]) for j in range(6) if j not in (i, 4)]
            assert rule.bound[i] == pytest.approx(math.prod(others) if i != 4 else 0.0)
        before = rule.bound.copy()
        rule.rows[3] = [True, False, False, True, True, False]
        put_in(rule, 3)
        up, down = math.exp(0.5 * rule.tilt), math.exp(-0.5 * rule.tilt)
        assert rule.bound == pytest.approx(before * [down, up, up, down, down, up])


def test_the_end_of_a_quiet_stretch_keeps_the_row_and_lays_bounds_anew():
    """Those of the pairs whose floor did not hold, and no others."""
    n_laid, n_lost = 0, 0
    for seed in range(30):
        ledger, rule = aged(4, seed % 6)
        fresh = many_arms_rule(0.51, 4)
        note_news(fresh, ledger)
        arm, floors = seed % 4, np.minimum(rule.low[seed % 4], 0.9)
        rule.favourite[0], rule.floor[:] = arm, floors
        rule.together[0] = np.delete(floors, arm).prod()
        before, row, rest = rule.low.copy(), np.zeros(4, dtype=bool), floors.copy()
        rng, twin = same(seed)
        loses = loses_some(ledger, arm, rest, float(rule.together[0]), row, twin)
        assert end_quiet(rule, ledger, rng) == loses and rng.random() == twin.random()
        assert (rule.rows[0] == row).all() and (rule.row == row).all() and row[arm]
        assert rule.won[0] == row.sum() - 1
        for j in {0, 1, 2, 3} - {arm}:
            is_anew = rest[j] == 0.0
            wanted = (fresh.low if is_anew else before)[arm, j]
            assert rule.low[arm, j] == pytest.approx(wanted, rel=1e-9)
            n_laid += is_anew and abs(fresh.low[arm, j] - before[arm, j]) > 1e-6
        n_lost += loses
    assert n_laid > 10 and 0 < n_lost < 30


def test_a_proposed_row_is_drawn_from_tilted_coins():
    """By a twin with the same draws; drawn rows decide, and a chance between bounds is computed."""
    accepted, won, states = 0, set(), [aged(7, seed) for seed in range(4)]
    for seed in range(120):
        ledger, rule = copy.deepcopy(states[seed % 4])
        rule = rule._replace(tilt=1.0, up=math.exp(0.5), down=math.exp(-0.5))
        n_drawn, arm, best = seed % 3, 3, 1 + seed % 5
        rule.waits[:] = True
        for place, other in enumerate((5, 0)[:n_drawn]):
            rule.drawn[place] = other
            rule.rows[place] = np.random.default_rng(seed + place).random(7) < 0.5
        rng, twin = same(seed)
        row, ratio = np.ones(7, dtype=bool), 1.0
        for j in range(7):
            if j in rule.drawn[:n_drawn]:
                row[j] = not rule.rows[list(rule.drawn[:n_drawn]).index(j), arm]
            elif j != arm:
                p, high = chance_above_half(*wins_and_count(ledger, arm, j)), rule.high[arm, j]
                up, down = p * math.exp(rule.tilt), 1.0 - p
                row[j] = twin.random() < up / (up + down)
                ratio *= (up + down) / (1.0 - high + high * math.exp(rule.tilt))
        n = row.sum() - 1
        is_taken = n >= best and twin.random() < ratio * math.exp(-rule.tilt * (n - best))
        assert propose(rule, ledger, arm, n_drawn, best, rng) == is_taken
        assert (rule.rows[n_drawn] == row).all()
        assert (rule.drawn[n_drawn], rule.won[n_drawn]) == (arm, n)
        assert rng.random() == twin.random()
        accepted += is_taken
        won.add(int(n - best))
    assert 10 < accepted < 110 and {-1, 0, 1} <= won


def test_there_is_room_for_a_proposal_after_eight_rows():
    rule = many_arms_rule(0.51, 12)
    rule.waits[:], rule.drawn[:8], rule.rows[:8] = True, range(8), False
    assert propose(rule, at_once(12), 9, 8, 3, Given(*[0.0] * 4))
    assert rule.rows[8].all() and (rule.drawn[8], rule.won[8]) == (9, 11)


@pytest.mark.parametrize("won", [[0, 0, 0], [1], [2, 2, 1, 2], [1, 3, 3], [0], [3, 1, 1]])
def test_of_the_rows_drawn_the_best_is_first_and_of_several_any(won):
    """The n-th of those alike takes the place with the chance 1 / n."""
    rule, best = many_arms_rule(0.51, 6), [k for k in range(len(won)) if won[k] == max(won)]
    rule.drawn[: len(won)], rule.won[: len(won)] = [4, 2, 5, 1][: len(won)], won
    for seed in range(30):
        rng, twin = same(seed)
        first = best[0]
        for n, place in enumerate(best[1:], start=2):
            first = place if twin.random() < 1 / n else first
        assert best_drawn(rule, len(won), rng) == rule.drawn[first]
        assert rng.random() == twin.random()


def test_an_arm_of_c_that_beats_nobody_may_be_the_best_of_it():
    rule = many_arms_rule(0.51, 4)
    rule.score[:], rule.in_c[:] = [5, 9, 0, 9], [False, False, True, False]
    assert best_of_all(rule, Given()) == 2
    rule.score[:], rule.in_c[:] = [0, 1, 1, 3], [True, True, True, False]
    assert best_of_all(rule, Given(0.49)) == 2 and best_of_all(rule, Given(0.51)) == 1
    rule.score[:], rule.in_c[:] = [1, 1, 1, 2], [True, True, True, True]
    assert best_of_all(rule, Given(0.9, 0.9)) == 3


def bounds_by_hand(rule, struck):
    """A contest's bounds from the definitions, without exp(-tilt s): 0 of a row that is drawn."""
    k, drawn = len(rule.bound), [int(arm) for arm in struck["drawn"]]
    bound = np.zeros(k)
    for i in set(range(k)) - set(drawn) - struck["beaten"]:
        bound[i] = math.prod(
            math.exp(rule.tilt * (0.0 if rule.rows[drawn.index(j), i] else 1.0))
            if j in drawn
            else 1.0 - struck["high"][i, j] + struck["high"][i, j] * math.exp(rule.tilt)
            for j in range(k)
            if j != i
        )
    return bound


def with_leaders(n_arms, tilt, strong, seed):
    """A rule with random bounds: arms 3 and 8 beat most others where `strong` is near 1."""
    rule = bounded(n_arms, seed)
    rule = rule._replace(tilt=tilt, up=math.exp(0.5 * tilt), down=math.exp(-0.5 * tilt))
    for i in range(n_arms):
        for j in range(i):
            side = (i in (3, 8)) - (j in (3, 8))
            low, high = rule.low[i, j], rule.high[i, j]
            if side and strong:
                high = 1.0 - (1.0 - strong) * (1.0 - high) if side > 0 else (1.0 - strong) * high
                low = min(low, high)
            rule.low[i, j], rule.high[i, j] = low, high
            rule.low[j, i], rule.high[j, i] = 1.0 - high, 1.0 - low
    for i in range(n_arms):
        rule.weight[i] = math.prod(tilted(rule, p) for p in np.delete(rule.high[i], i))
    return rule


def test_a_contest_goes_the_way_of_the_definitions(monkeypatch):
    """Which rows are drawn, when one draw decides, who is proposed, and who is first in the end.

    Rows, the whole sample and proposals are given; bounds and choices are the contest's own.
    """
    ways = []
    for seed in range(250):
        rng = np.random.default_rng(seed)
        k, c = ((14, 8.0), (14, 2.0), (6, 2.0), (6, 1.2))[seed % 4]
        rule = with_leaders(k, c / math.sqrt(k), float(rng.choice([0.0, 0.5, 0.9, 0.98])), seed)
        beaten = set(np.flatnonzero(rng.random(k) < 0.2)) - {3}
        rows = rng.random((k, k)) < rng.choice([0.5, 0.8])
        rule.favourite[0] = rule.drawn[0] = 3
        rule.rows[0] = rng.random(k) < rng.choice([0.6, 0.8, 0.9])
        rule.rows[0, 3] = True
        rule.won[0] = rule.rows[0].sum() - 1
        score, in_c = rng.integers(k, size=k), rng.random(k) < 0.7
        is_taken, chosen, calls = bool(rng.random() < 0.8), int(rng.integers(k)), []

        def sample_row(rule, ledger, arm, row, n_drawn, rng, rows=rows, calls=calls):
            calls.append(("row", int(arm), n_drawn))
            assert rule.drawn[n_drawn] == arm and row is not None
            row[:] = rows[arm]
            row[arm] = True
            return row.sum() - 1

        def offer(rule, ledger, arm, n_drawn, best, rng, is_taken=is_taken, calls=calls):
            assert rule.waits.all()
            calls.append(("propose", int(arm), n_drawn, int(best)))
            return is_taken

        def sample_and_choose(
            rule, ledger, width, n_drawn, rng, score=score, in_c=in_c, chosen=chosen, calls=calls
        ):
            calls.append(("all", n_drawn))
            rule.score[:], rule.in_c[:] = score, in_c
            return chosen

        def is_unbeaten(rule, ledger, arm, width, beaten=beaten):
            assert width == 2.5
            return arm not in beaten

        for name, fake in (("sample_row", sample_row), ("propose", offer),
                           ("sample_and_choose", sample_and_choose),
                           ("best_drawn", lambda rule, n_drawn, rng: ("drawn", n_drawn)),
                           ("is_unbeaten", is_unbeaten)):  # fmt: skip
            monkeypatch.setattr(many_arms, name, fake)
        twin = copy.deepcopy(rule)
        struck, wanted = {"drawn": [3], "beaten": set(), "high": rule.high.copy()}, []
        won, numbers = [int(rule.won[0])], []
        while True:
            bound, best, n = bounds_by_hand(twin, struck), max(won), len(won)
            chance = bound * math.exp(-rule.tilt * best)
            if chance.sum() <= 0.5:
                way = "quiet"
                break
            likeliest = int(np.argmax(bound))
            if n == 8 or bound[likeliest] < 0.12 * bound.sum():
                wanted.append(("all", n))
                way = "all"
                break
            if likeliest in beaten:
                struck["beaten"].add(likeliest)
                continue
            wanted.append(("row", likeliest, n))
            twin.rows[n] = rows[likeliest]
            twin.rows[n, likeliest] = True
            struck["drawn"].append(likeliest)
            won.append(int(twin.rows[n].sum()) - 1)
        first = chosen
        if way == "quiet":
            numbers, is_first = (
                [chance.sum() * rng.choice([rng.random(), rng.normal(1, 0.1)])],
                False,
            )
            (number,) = numbers
            if number < chance.sum():
                arm = int(np.searchsorted(chance.cumsum(), number, side="right"))
                way = "beaten"
                if arm not in beaten:
                    wanted.append(("propose", arm, n, best))
                    way = "refused"
                    if is_taken:
                        wanted.append(("all", n + 1))
                        others = set(range(k)) - set(struck["drawn"])
                        reach = sum(in_c[i] and score[i] >= best for i in others)
                        numbers.append(rng.random())
                        is_first = numbers[1] * reach < 1.0
                        way = f"reach {min(reach, 3)} {is_first}"
            first = chosen if is_first else ("drawn", n)
        scarce = Given(*numbers)
        assert contest(rule, None, 2.5, scarce) == first
        assert calls == wanted and scarce.numbers == []
        ways.append((way, len(won)))
    kinds = {way for way, _ in ways}
    assert {"quiet", "all", "beaten", "refused", "reach 1 True", "reach 2 False"} <= kinds
    assert len({n for _, n in ways}) > 4


def test_what_rounding_leaves_beyond_all_bounds_is_the_last_arms(monkeypatch):
    """A number just below the sum of all bounds; one after the other they may be less."""
    proposed = []
    monkeypatch.setattr(many_arms, "is_unbeaten", lambda *told: True)
    monkeypatch.setattr(many_arms, "best_drawn", lambda *told: 0)
    monkeypatch.setattr(many_arms, "propose", lambda *told: proposed.append(int(told[2])))
    for seed in range(100):
        rule = with_leaders(9, 3.0, 0.0, seed)
        rule.drawn[0], rule.rows[0] = 3, np.arange(9) != 6
        rule.bound[:] = rule.weight
        take_out(rule, 3)
        put_in(rule, 0)
        total = 0.0
        for bound in rule.bound:
            total += bound
        rule.won[0] = 4 + math.ceil(math.log(2.0 * total) / 3.0)  # a proposal is rare
        chance = total * math.exp(-3.0 * (rule.won[0] - 4.0))
        contest(rule, None, 2.5, Given(np.nextafter(chance, 0.0)))
    assert proposed == 100 * [8]


def test_the_first_arm_is_the_favourite_if_it_beats_all_and_else_of_a_contest(monkeypatch):
    """A row that is known is not drawn again; a favourite that is beaten has no row."""
    calls = []
    monkeypatch.setattr(many_arms, "contest", lambda *told: calls.append(("contest", told[2])) or 2)
    monkeypatch.setattr(
        many_arms,
        "sample_and_choose",
        lambda *told: calls.append(("all", told[2], told[3])) or 2,
    )
    width = 0.51 * math.log(50)
    for favourite, won, is_beaten, is_known, wanted in (
        (1, 3, False, True, []),
        (1, 2, False, True, [("contest", width)]),
        (1, 3, True, True, []),
        (1, 0, True, False, [("all", width, 0)]),
        (1, 3, False, False, ["row"]),
        (1, 1, False, False, ["row", ("contest", width)]),
        (2, 1, False, True, [("contest", width)]),
    ):
        rule, ledger = many_arms_rule(0.51, 4), at_once(4)
        if is_beaten:
            ledger.plays[0, 1] = ledger.conversions[0, 1] = 50
            ledger.news[:2] += 1
            note_news(rule, ledger)
        rule.favourite[0], rule.floor_news[0], rule.drawn[0] = favourite, 7, 3
        calls.clear()

        def sample_row(rule, ledger, arm, row, n_drawn, rng, won=won, favourite=favourite):
            assert arm == favourite and n_drawn == 0 and np.shares_memory(row, rule.rows[0])
            calls.append("row")
            return won

        monkeypatch.setattr(many_arms, "sample_row", sample_row)
        rule.won[0] = won if is_known else 0
        first = first_arm(rule, ledger, 50, is_known, None)
        assert calls == wanted
        assert first == rule.favourite[0] == (2 if ("row" not in wanted[-1:] and wanted) else 1)
        if ("all", width, 0) not in wanted:
            assert rule.drawn[0] == favourite and rule.won[0] == won
        assert rule.floor_news[0] == (7 if first == favourite else -1)


def test_a_new_favourite_has_no_floors_whatever_its_news(monkeypatch):
    monkeypatch.setattr(many_arms, "contest", lambda *told: 2)
    for news in range(4):
        rule, ledger = many_arms_rule(0.51, 3), at_once(3)
        ledger.news[:], rule.floor_epoch[0] = news, 0
        first_arm(rule, ledger, 50, True, None)
        assert rule.favourite[0] == 2 and not is_quiet(rule, ledger)


def test_the_second_arm_beats_the_first_by_the_most():
    """By a twin with the same draws; of those that never met the first, the best of as many."""
    kinds = set()
    for seed in range(150):
        rng, k, first = np.random.default_rng(seed), 7, 2
        rule, ledger = many_arms_rule(0.51, k), at_once(k)
        for i in set(range(k)) - {first}:
            kind = rng.choice(["fresh", "met", "sure"], p=[0.35, 0.5, 0.15])
            if kind != "fresh":
                n, won = (60, 58) if kind == "sure" else (8, int(rng.integers(3, 8)))
                there, back = ((n, 0), (n // 2, n // 2), (0, n))[rng.integers(3)]
                ledger.plays[i, first], ledger.plays[first, i] = there, back
                ledger.conversions[i, first] = min(won, there)
                ledger.conversions[first, i] = back - (won - min(won, there))
        rule.row[:] = rng.random(k) < rng.choice([0.3, 0.8])
        rule.row[first] = True
        t, width = 60, 0.51 * math.log(60)
        mine, twin = same(seed)
        losers = np.flatnonzero(~rule.row)
        fresh = [i for i in losers if ledger.plays[i, first] + ledger.plays[first, i] == 0]
        met = [i for i in losers if i not in fresh]
        met = [i for i in met if not beats_for_certain(ledger, i, first, width)]
        second, strongest = first, 0.5
        for n, i in enumerate(fresh, start=1):
            second = i if twin.random() < 1 / n else second
        if fresh and met:
            strongest = 0.5 + 0.5 * (1.0 - twin.random()) ** (1 / len(fresh))
        for i in met:
            theta = draw_above_half(ledger, i, first, twin)
            second, strongest = (i, theta) if theta > strongest else (second, strongest)
        assert second_arm(rule, ledger, first, t, mine) == second
        assert mine.random() == twin.random()
        kinds.add((min(len(fresh), 2), min(len(met), 2), second in fresh))
    assert len(kinds) > 9


def fakes(monkeypatch, calls, *, loses=False, beats_all=False):
    """Let the parts of a turn say what they are asked; arm 1 is first, and arm 3 second."""

    def end(rule, ledger, rng):
        calls.append("end")
        return loses

    def first(rule, ledger, t, is_known, rng):
        calls.append(("first", t, bool(is_known)))
        return 1

    def sample_row(rule, ledger, arm, row, n_drawn, rng):
        assert np.shares_memory(row, rule.row) and n_drawn == 0
        calls.append(("row", arm))
        return row.size - 1 if beats_all else row.size - 2

    def second(rule, ledger, arm, t, rng):
        calls.append(("second", int(arm), t))
        return 3

    def news(rule, ledger):
        calls.append("news")

    for name, fake in (("end_quiet", end), ("first_arm", first), ("sample_row", sample_row),
                       ("second_arm", second), ("note_news", news)):  # fmt: skip
        monkeypatch.setattr(many_arms, name, fake)


def quiet_rule(together, quiet, floor_news=5):
    """A rule whose favourite, 2, has floors, and as many quiet turns to come."""
    rule, ledger = many_arms_rule(0.51, 4), at_once(4)
    ledger.news[:] = 5
    rule.favourite[0], rule.floor_news[0], rule.floor_epoch[0] = 2, floor_news, 0
    rule.together[0], rule.quiet[0] = together, quiet
    return rule, ledger


def test_in_a_quiet_stretch_the_favourite_duels_itself_and_nothing_is_drawn(monkeypatch):
    calls = []
    fakes(monkeypatch, calls)
    rule, ledger = quiet_rule(0.8, 2)
    for left in (1, 0):
        assert select(rule, ledger, 9, Given()) == (2, 2) and rule.quiet[0] == left
    assert calls == []


@pytest.mark.parametrize("loses", [False, True])
@pytest.mark.parametrize("beats_all", [False, True])
@pytest.mark.parametrize("number, is_ahead", [(0.55, False), (0.56, True), (0.9, True), (0, False)])
def test_a_quiet_stretch_ends_in_one_of_the_two_samples(
    monkeypatch, number, is_ahead, loses, beats_all
):
    """In the second one if all floors held in the first: together / (1 + together) = 4 / 9."""
    calls = []
    fakes(monkeypatch, calls, loses=loses, beats_all=beats_all)
    rule, ledger = quiet_rule(0.8, 0)
    pair = select(rule, ledger, 9, Given(number))
    wanted = ["news", "end"]
    if is_ahead:
        assert pair == ((2, 3) if loses else (2, 2))
        wanted += [("second", 2, 9)] if loses else []
    else:
        assert pair == ((1, 1) if beats_all else (1, 3))
        wanted += [("first", 9, True), ("row", 1)] + ([] if beats_all else [("second", 1, 9)])
    assert calls == wanted
    for news in range(4):
        ledger.news[:] = news
        assert not is_quiet(rule, ledger)


def test_without_floors_both_samples_are_drawn(monkeypatch):
    for is_old in (False, True):
        for beats_all in (False, True):
            calls = []
            fakes(monkeypatch, calls, beats_all=beats_all)
            rule, ledger = quiet_rule(0.0, 3, 5 if is_old else 4)  # at the start all bounds are 1/2
            assert select(rule, ledger, 9, Given()) == ((1, 1) if beats_all else (1, 3))
            last = [] if beats_all else [("second", 1, 9)]
            assert calls == ["news", ("first", 9, False), ("row", 1), *last]
            assert rule.floor_news[0] == 5 and rule.together[0] == 0.0


def test_floors_are_laid_where_there_is_news_and_turns_are_drawn_for_them(monkeypatch):
    seen = set()
    for seed in range(40):
        calls = []
        fakes(monkeypatch, calls)
        rule, ledger = quiet_rule(0.0, 77, 4)
        rule.floor_epoch[0] = -1
        rule.low[2] = [0.95, 0.97, 0.5, 0.9]
        rng, twin = same(seed)
        together = 0.95 * 0.97 * 0.9
        turns = quiet_turns(together, twin)
        pair = select(rule, ledger, 9, rng)
        assert rule.together[0] == pytest.approx(together)
        if turns > 0:
            assert pair == (2, 2) and rule.quiet[0] == turns - 1 and calls == ["news"]
            assert (rule.floor_news[0], rule.floor_epoch[0]) == (5, 0)
            assert rng.random() == twin.random()
        else:
            assert calls[1] == "end" and rule.floor_news[0] == -1
        seen.add(min(turns, 2))
    assert seen == {0, 1, 2}


def test_a_law_learned_anew_ends_a_quiet_stretch(monkeypatch):
    calls = []
    fakes(monkeypatch, calls)
    rule, ledger = quiet_rule(0.8, 3)
    rule.floor_epoch[0] = 1
    select(rule, ledger, 9, np.random.default_rng(0))
    assert calls[0] == "news" and rule.together[0] == 0.0


def test_by_the_clock_a_deaf_ledger_asks_the_pair_asked_least():
    policy = duelay.DoubleThompson(delay="learn", window="30s")
    rule, ledger = many_arms_rule(0.51, 3), policy.ledger(3, by_clock=True)
    ledger.plays[:] = [[0, 1, 1], [1, 0, 0], [1, 0, 0]]
    assert set(select(rule, ledger, 1, np.random.default_rng(0))) == {1, 2}
