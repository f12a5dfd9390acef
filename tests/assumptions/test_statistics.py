"""Every test's statistic against its definition, duel by duel, and the edges of what is told."""

import itertools
import math
from collections import Counter, defaultdict

import numpy as np
import pytest
import scipy.stats

from duelay.assumptions import (
    TESTS,
    check_assumptions,
    delay_by_pair,
    delay_by_winner,
    law_drift,
    order_balance,
    position_effect,
    preference_drift,
    report,
)
from duelay.assumptions.delays import spread
from duelay.assumptions.finding import Finding, silent
from duelay.assumptions.score_tests import chi_squared, cut, part_of_time, scores
from duelay.logs.history import History

NAN = math.nan


def a_history(seed, *, votes, order="coin", n=400, n_arms=4):
    """Arms at random, some of them rarely, with ties among the votes; delays of 1 to 30."""
    rng = np.random.default_rng(seed)
    often = np.array([0.4, 0.3, 0.2, 0.1]) if n_arms == 4 else np.full(n_arms, 1 / n_arms)
    first, second = rng.choice(n_arms, size=(2, n), p=often)
    won = rng.choice([0.0, 0.5, 1.0], size=n, p=[0.4, 0.1, 0.5])
    delay = rng.integers(1, 31, size=n).astype(float)
    is_heard = (delay <= np.arange(n, 0, -1)) & (rng.random(n) < 0.9)
    if not votes:
        is_heard &= won == 1.0
    return History(
        n_arms=n_arms,
        first=first,
        second=second,
        delay=np.where(is_heard, delay, NAN),
        first_won=np.where(is_heard, won, NAN),
        feedback="votes" if votes else "conversions",
        order=order,
    )


def duels(history):
    """(number, first, second, delay, who won) of each duel of two arms, None for silence."""
    rows = zip(history.first, history.second, history.delay, history.first_won, strict=True)
    return [
        (s, int(i), int(j), None if math.isnan(d) else int(d), None if math.isnan(w) else float(w))
        for s, (i, j, d, w) in enumerate(rows)
        if i != j
    ]


def compare_at_one_age(history):
    """A, the duels older than A at the last ask, and those of them heard by age A."""
    every = duels(history)
    delays = sorted(d for *_, d, _ in every if d is not None)
    age = next(a for a in delays if sum(d <= a for d in delays) >= 0.95 * len(delays))
    age = min(age, history.n // 2)
    old = [duel for duel in every if history.n - 1 - duel[0] >= age]
    return age, old, [duel for duel in old if duel[3] is not None and duel[3] <= age]


def stratified(rows):
    """How x goes with y within strata, and its variance over all orders, from (x, y, stratum)."""
    strata = defaultdict(list)
    for x, y, stratum in rows:
        strata[stratum].append((np.asarray(x, dtype=float), y))
    p = len(rows[0][0])
    score, variance = np.zeros(p), np.zeros((p, p))
    for members in strata.values():
        m = len(members)
        if m == 1:
            continue
        x_mean = sum(x for x, _ in members) / m
        y_mean = sum(y for _, y in members) / m
        score += sum((x - x_mean) * (y - y_mean) for x, y in members)
        spread_x = sum(np.outer(x - x_mean, x - x_mean) for x, _ in members)
        variance += spread_x * sum((y - y_mean) ** 2 for _, y in members) / (m - 1)
    return score, variance


def squared(*parts):
    """The chi-squareds of all parts added up, and the p-value."""
    total = df = 0
    for score, variance in parts:
        total += score @ np.linalg.pinv(variance, rcond=1e-9, hermitian=True) @ score
        df += np.linalg.matrix_rank(variance, tol=1e-9 * np.abs(variance).max(), hermitian=True)
    return total, scipy.stats.chi2.sf(total, df)


def unit(place, size):
    return [float(k == place) for k in range(size)]


def pair(i, j):
    return min(i, j), max(i, j)


def two_scores(delays):
    """The rank of each delay, and the sum of 1 / (delays not below the one of each rank so far).

    Equal delays share the mean of their ranks' scores. Both are scaled to mean 0 and variance 1.
    """
    n, order = len(delays), sorted(delays)
    savage = [sum(1 / (n - one) for one in range(rank + 1)) for rank in range(n)]
    total = np.zeros(n)
    for score in (range(n), savage):
        own = [np.mean([score[r] for r in range(n) if order[r] == delay]) for delay in delays]
        total += scipy.stats.zscore(own)
    return total


def winner_twin(history):
    _, _, heard = compare_at_one_age(history)
    used = [duel for duel in heard if duel[4] != 0.5]
    rows = []
    for (_, i, j, _, won), score in zip(used, two_scores([d for *_, d, _ in used]), strict=True):
        winner = i if won == 1.0 else j
        rows.append(([*unit(winner, history.n_arms), won], score, pair(i, j)))
    return len(used), squared(stratified(rows))


def pair_twin(history):
    age, old, heard = compare_at_one_age(history)
    told = set(heard)
    answers = Counter(pair(i, j) for _, i, j, _, _ in heard)
    groups = sorted(p for p, n in answers.items() if n >= 20)
    ticks = sum(history.n - 1 - s >= age for s in range(history.n))

    def group(i, j):
        place = groups.index(pair(i, j)) if pair(i, j) in groups else len(groups)
        return unit(place, len(groups) + 1)

    ranks = scipy.stats.rankdata([d for *_, d, _ in heard])
    parts = [
        stratified(
            [
                (group(i, j), rank, 10 * s // ticks)
                for (s, i, j, _, _), rank in zip(heard, ranks, strict=True)
            ]
        )
    ]
    if history.feedback == "votes" or history.order != "champion":
        rows = [(group(i, j), (s, i, j, d, w) in told, 10 * s // ticks) for s, i, j, d, w in old]
        parts.append(stratified(rows))
    return len(heard), squared(*parts)


def drift_twin(history):
    _, old, heard = compare_at_one_age(history)
    told = set(heard)
    ranks = scipy.stats.rankdata([d for *_, d, _ in heard])
    parts = [
        stratified(
            [
                ([s / history.n], rank, (i, j, won))
                for (s, i, j, _, won), rank in zip(heard, ranks, strict=True)
            ]
        )
    ]
    if history.feedback == "votes" or history.order != "champion":
        rows = [([s / history.n], (s, i, j, d, w) in told, pair(i, j)) for s, i, j, d, w in old]
        parts.append(stratified(rows))
    return len(heard), squared(*parts)


def preference_twin(history):
    age, old, heard = compare_at_one_age(history)
    told = set(heard)
    ticks = sum(history.n - 1 - s >= age for s in range(history.n))
    plays, wins = Counter(), Counter()
    for s, i, j, d, w in old:
        plays[i, j] += 1
        wins[i, j] += (s, i, j, d, w) in told

    def weight(i, j):
        """1 - mu_ij, as far as conversions tell of mu."""
        mine, others = (wins[p] / max(plays[p], 1) for p in ((i, j), (j, i)))
        return 1 - mine / (mine + others)

    rows = []
    for s, i, j, d, w in heard if history.feedback == "votes" else old:
        low, high = pair(i, j)
        is_late = 2 * s >= ticks
        x = [is_late * (float(k == low) - float(k == high)) for k in range(history.n_arms)]
        if history.feedback == "votes":
            y = w if i == low else 1 - w
        elif (s, i, j, d, w) in told:
            y = weight(i, j) if i == low else -weight(i, j)
        else:
            y = 0.0
        rows.append((x, y, (i, j)))
    return len(heard), squared(stratified(rows))


TWINS = {
    delay_by_winner: winner_twin,
    delay_by_pair: pair_twin,
    law_drift: drift_twin,
    preference_drift: preference_twin,
}


@pytest.mark.parametrize("order", ["coin", "champion", "alternate"])
@pytest.mark.parametrize("votes", [True, False], ids=["votes", "conversions"])
@pytest.mark.parametrize("test", TWINS, ids=lambda test: test.__name__)
def test_the_statistic_is_the_one_defined(test, votes, order):
    for seed in range(3):
        history = a_history(seed, votes=votes, order=order)
        n, (statistic, p_value) = TWINS[test](history)
        found = test(history)
        assert found.n == n
        assert found.statistic == pytest.approx(statistic, rel=1e-7)
        assert found.p_value == pytest.approx(p_value, rel=1e-6)
        assert found.is_alarm == (p_value < 0.05)


@pytest.mark.parametrize(
    "test", [*TWINS, order_balance, position_effect], ids=lambda test: test.__name__
)
def test_an_alarm_is_a_p_value_below_the_level_and_not_at_it(test):
    for history in (
        a_history(0, votes=True),
        *([a_few(101, 60)] if test is position_effect else []),
    ):
        p = test(history).p_value
        at, above = test(history, level=p), test(history, level=p * (1 + 1e-9))
        assert not at.is_alarm and at.sentence.startswith("No sign of ")
        assert above.is_alarm and not above.sentence.startswith("No sign of ")


def test_a_small_bonus_helps_too():
    k = np.arange(100)
    for wins, word in ((52, "helps"), (48, "hurts")):
        won = np.where(k < wins, 1.0, 0.0)
        history = History(
            n_arms=2, first=k % 2, second=1 - k % 2, delay=np.ones(100), first_won=won,
            feedback="votes", order="coin",
        )  # fmt: skip
        found = position_effect(history, level=0.9)
        assert found.is_alarm and f"Being shown first {word}" in found.sentence


def test_order_balance_adds_up_the_leads_of_all_arms():
    """Leads L_i against V, the matrix of who met whom: L V^+ L, with one degree less than arms."""
    history = a_history(3, votes=True)
    lead, meetings = np.zeros(4), np.zeros((4, 4))
    for _, i, j, _, _ in duels(history):
        lead[i] += 1
        lead[j] -= 1
        meetings[[i, j], [i, j]] += 1
        meetings[[i, j], [j, i]] -= 1
    found = order_balance(history)
    statistic = lead @ np.linalg.pinv(meetings) @ lead
    arms = scipy.stats.chi2.sf(statistic, 3)
    by_pair, cells = 0.0, 0
    rows = [(i, j) for _, i, j, _, _ in duels(history)]
    for half in (rows[: (len(rows) + 1) // 2], rows[(len(rows) + 1) // 2 :]):
        for i, j in itertools.combinations(range(4), 2):
            there, back = half.count((i, j)), half.count((j, i))
            if there + back >= 20:
                by_pair += (there - back) ** 2 / (there + back)
                cells += 1
    pairs = scipy.stats.chi2.sf(by_pair, cells)
    assert found.statistic == pytest.approx(by_pair if pairs < arms else statistic)
    assert found.p_value == pytest.approx(min(1.0, 2 * min(pairs, arms)))
    assert found.n == len(duels(history))


def test_the_most_lopsided_arm_is_named_with_its_share():
    """Arm 2 is first in 27 of 30 duels; arm 3 is never shown."""
    first = np.repeat([2, 0, 1], [27, 30, 33])
    second = np.concatenate(
        [np.repeat([0, 1], [14, 13]), np.repeat([1, 2], [28, 2]), [2], [0] * 32]
    )
    one = np.full(90, NAN)
    history = History(n_arms=4, first=first, second=second, delay=one, first_won=one)
    found = order_balance(history)
    assert found.is_alarm and found.sentence.startswith("Arm 2 is shown first in 90% of its duels.")


def a_few(n, heard, delay=None, **more):
    """Arms 0 and 1 in turns; the first `heard` duels convert, at once unless said."""
    first = np.arange(n) % 2
    late = np.where(np.arange(n) < heard, 1.0 if delay is None else delay, NAN)
    won = np.where(np.isnan(late), NAN, 1.0)
    return History(n_arms=2, first=first, second=1 - first, delay=late, first_won=won, **more)


def test_the_cut_is_the_age_by_which_95_percent_have_come():
    late = np.r_[np.arange(1.0, 21.0), np.ones(80)]
    old, heard, age = cut(a_few(100, 20, delay=late))
    assert age == 19 and old.sum() == 81 and heard.sum() == 19


@pytest.mark.parametrize(
    "n, delays, age, old, heard",
    [
        (4, [], 1, 3, 0),  # nothing heard
        (1, [1.0], 1, 0, 0),
        (2, [2.0], 1, 1, 0),
        (9, [9.0, 8.0], 4, 5, 0),  # half of the duels at the most
        (9, [4.0, 4.0], 4, 5, 2),
    ],
)
def test_the_cut_of_a_small_history(n, delays, age, old, heard):
    late = np.r_[delays, np.ones(n - len(delays))]
    told = cut(a_few(n, len(delays), delay=late))
    assert (told[2], told[0].sum(), told[1].sum()) == (age, old, heard)


def test_stretches_of_time_end_where_duels_are_too_young():
    assert part_of_time(a_few(9, 0), 1, 2).tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 2]
    assert part_of_time(a_few(2, 0), 1, 2).tolist() == [0, 2]
    assert part_of_time(a_few(1, 0), 1, 2).tolist() == [0]


def test_strata_of_one_duel_each_tell_nothing():
    assert all(
        math.isnan(x) for x in chi_squared(*scores(np.zeros((0, 1)), np.zeros(0), np.zeros(0, int)))
    )


def told_apart(n, votes=True):
    """n answers that no cut takes away, and delays, pairs and winners that vary."""
    k = np.arange(n + 3)
    first, late = k % 3, np.where(k < n, 1.0 + k % 3 % 2, NAN)
    won = np.where(k < n, np.where(k % 5 < 2, 1.0, 0.0) if votes else 1.0, NAN)
    kind = "votes" if votes else "conversions"
    second = (first + 1 + k // 3 % 2) % 3
    return History(
        n_arms=3, first=first, second=second, delay=late, first_won=won, feedback=kind, order="coin"
    )


@pytest.mark.parametrize(
    "test",
    [position_effect, delay_by_winner, law_drift],
    ids=lambda test: test.__name__,
)
def test_twenty_answers_are_enough_and_nineteen_are_not(test):
    assert not math.isnan(test(told_apart(20)).p_value)
    few = test(told_apart(19))
    assert math.isnan(few.p_value) and few.n == 19
    assert few.sentence.startswith("Needs 20 ") and few.sentence.endswith("has 19.")


def test_a_pair_with_twenty_answers_is_compared_and_one_with_nineteen_is_not():
    """Of arms 0 and 1 all is heard, of 0 and 2 nothing."""
    k = np.arange(61)

    def heard_of(n):
        one = np.where((k % 3 == 0) & (k < 3 * n), 1.0, NAN)
        second = np.where(k % 3 == 0, 1, 2)
        return History(
            n_arms=3, first=0 * k, second=second, delay=one, first_won=one, feedback="votes"
        )

    assert delay_by_pair(heard_of(20)).is_alarm
    assert delay_by_pair(heard_of(19)).sentence == "Needs 20 answers by old duels, has 19."


def test_twenty_duels_are_enough_for_the_order_and_nineteen_are_not():
    assert not math.isnan(order_balance(a_few(20, 0)).p_value)
    assert order_balance(a_few(19, 0)).sentence == "Needs 20 duels of two arms, has 19."


def test_preferences_need_twenty_answers_in_either_half():
    """Forty duels old enough, cut in the middle."""
    won = np.where(np.arange(41) % 3 == 0, 1.0, 0.0)
    first = np.zeros(41, dtype=int)

    def at_once(silent_duels):
        is_heard = ~np.isin(np.arange(41), silent_duels)
        late, told = np.where(is_heard, 1.0, NAN), np.where(is_heard, won, NAN)
        return History(
            n_arms=2, first=first, second=first + 1, delay=late, first_won=told, feedback="votes"
        )

    assert not math.isnan(preference_drift(at_once([])).p_value)
    early, late = preference_drift(at_once([7])), preference_drift(at_once([39]))
    assert early.sentence.endswith("each half of the time, has 19 and 20.")
    assert late.sentence.endswith("each half of the time, has 20 and 19.") and late.n == 39


def votes_at_once(first, second, won, n_arms):
    """Votes that come at once, and a last duel that is too young."""
    one = np.ones(len(first) + 1)
    return History(
        n_arms=n_arms, first=np.r_[first, 0], second=np.r_[second, 1], delay=one,
        first_won=np.r_[won, 1.0], feedback="votes", order="coin",
    )  # fmt: skip


def test_the_arm_that_changes_most_clearly_is_named():
    """0 turns from winning all of 60 duels to losing; 2 goes from 60 % to 45 % of 600."""
    k = np.arange(660)
    is_rare, is_late = k % 11 == 0, k >= 330
    share = np.where(is_late, 0.45, 0.6)
    won = np.where(is_rare, ~is_late, (k * 7919 % 1000) < 1000 * share).astype(float)
    found = preference_drift(votes_at_once(2 * ~is_rare, 2 * ~is_rare + 1, won, 5))
    assert found.is_alarm and "arm 0 loses most clearly" in found.sentence


@pytest.mark.parametrize("late, verb", [(26, "gains"), (24, "loses")])
def test_a_small_change_is_a_gain_or_a_loss_too(late, verb):
    """25 wins of 50 early."""
    k = np.arange(100)
    won = np.where(k < 50, k < 25, k < 50 + late).astype(float)
    found = preference_drift(votes_at_once(0 * k, 0 * k + 1, won, 2), level=0.99)
    assert found.is_alarm and f"arm 0 {verb} most clearly" in found.sentence


def test_conversions_tell_of_a_bonus_from_twenty_duels_on():
    assert math.isnan(position_effect(a_few(20, 19, order="coin")).p_value)  # 19 are old enough
    found = position_effect(a_few(21, 20, order="coin"))
    assert found.n == 20 and found.statistic == pytest.approx((20 - 10) / math.sqrt(5))


def test_under_another_order_no_duel_of_two_arms_tells_of_a_bonus():
    found = position_effect(a_few(100, 90, order="champion"))
    assert found.n == 0 and math.isnan(found.p_value)


def test_only_groups_with_ten_answers_are_named_slowest_or_quickest():
    group = np.repeat([0, 1, 2], [10, 10, 9])
    delay = np.repeat([3.0, 5.0, 9.0], [10, 10, 9])
    assert spread(group, delay, ["a", "b", "c"]) == "a median of 5 ticks for b, 3 for a"
    assert spread(group[10:], delay[10:], ["a", "b", "c"]) == "none has many answers"


def test_the_medians_of_a_drift_are_of_the_halves_of_the_answers():
    """Delays grow by one every ten duels; those of 20 ticks are beyond the cut: 190 answers."""
    found = law_drift(a_few(230, 200, delay=1.0 + np.arange(230) // 10, order="coin"))
    assert found.n == 190 and found.is_alarm
    assert "by age 19 the median delay went from 5 to 15 ticks" in found.sentence


def test_a_finding_in_words_and_as_data():
    told = Finding("x", 3.0, 0.0123, 7, True, "So it is.")
    assert str(told) == "x (p = 0.012, n = 7): So it is."
    assert str(told._replace(p_value=0.0)) == "x (p < 1e-300, n = 7): So it is."
    quiet = silent("x", 3, "needs more.")
    assert str(quiet) == "x: Needs more." and not quiet.is_alarm
    assert quiet.as_data() == {
        "name": "x",
        "statistic": None,
        "p_value": None,
        "n": 3,
        "is_alarm": False,
        "sentence": "Needs more.",
    }


def test_the_report_shows_alarms_first_and_dashes_for_what_cannot_be_told():
    history = a_few(101, 60, order="coin")
    page = report(history).splitlines()
    rows = [line for line in page if line.startswith("| ") and not line.startswith("| test")]
    findings = {finding.name: finding for finding in check_assumptions(history)}
    for row in rows:
        name, statistic, p_value, n = (cell.strip(" *") for cell in row.split("|")[1:5])
        found = findings.pop(name)
        assert row.startswith("| **") == found.is_alarm and int(n) == found.n
        if math.isnan(found.p_value):
            assert (statistic, p_value) == ("-", "-")
        else:
            assert float(statistic) == pytest.approx(found.statistic, abs=0.005)
            assert float(p_value) == pytest.approx(found.p_value, rel=0.05)
    alarms = sum(row.startswith("| **") for row in rows)
    silent_ones = sum("| - | - |" in row for row in rows)
    assert not findings and all(row.startswith("| **") for row in rows[:alarms])
    assert 0 < alarms and 0 < silent_ones < len(TESTS) == len(rows)
    assert f"{alarms} of {len(TESTS) - silent_ones} tests alarm; " in page[2]
    assert page[2].startswith("101 duels of 2 arms, 60 answers (conversions). ")


def test_the_report_counts_the_tests_that_can_tell():
    """Of twenty silent duels in turns only the order can be told."""
    assert "0 of 1 tests alarm" in report(a_few(20, 0, order="coin"))
