"""The statistics behind the report, and its verdicts on results made up for the purpose."""

import dataclasses
import math
import warnings

import numpy as np
import pytest
import scipy.stats

import duelay
from duelay import experiments
from duelay.experiments import claims, regret_figures, report, statistics
from duelay.experiments.results import Results
from duelay.simulation import Result

PROBLEM = duelay.datasets.load("mslr")


def made_up(curve, runs=40, noise=1.0, seed=0, problem=PROBLEM):
    """A result whose mean regret follows a curve over 100 checkpoints of T = 200,000."""
    t = np.arange(1, 101) * 2000
    rng = np.random.default_rng(seed)
    regret = np.maximum(curve(t)[None] + noise * rng.standard_normal((runs, 1)), 0.01)
    k = problem.n_arms
    pairs = np.zeros((100, k, k), dtype=np.int64)
    pairs[:, 0, 1] = t * runs
    return Result(
        problem, duelay.RUCB(), duelay.delays.Geometric(0.01), 200_000, 0, t, regret, regret[:, -1],
        np.zeros(runs, dtype=np.int64), np.zeros((runs, k, k), dtype=np.int64), pairs, 0.0,
    )  # fmt: skip


def flat(level):
    return lambda t: level * np.minimum(1, t / 20_000)


def straight(level):
    return lambda t: level * t / 200_000


def slow_at_first(level):
    return lambda t: level * np.minimum(1, t / 30_000) ** 2


@pytest.mark.compiled
def test_the_bootstraps_interval_covers():
    """95 % of intervals hold the true difference of paired samples, give or take."""
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(400):
        common = rng.exponential(size=60)
        a, b = common + rng.standard_normal(60), common + rng.standard_normal(60) + 0.5
        low, high = statistics.bootstrap(lambda x, y: x - y, a, b)[1:]
        hits += low <= -0.5 <= high
    assert abs(hits / 400 - 0.94) < 4 * math.sqrt(0.95 * 0.05 / 400)


def test_the_bootstrap_pairs_runs_and_repeats_itself():
    rng = np.random.default_rng(2)
    common = 100 * rng.standard_normal(50)
    shifted = statistics.bootstrap(lambda x, y: x - y, common + 1, common)
    assert shifted.low == pytest.approx(1) and shifted.high == pytest.approx(1)
    assert statistics.bootstrap(lambda x: x, common) == statistics.bootstrap(lambda x: x, common)
    one = statistics.bootstrap(lambda x: x, np.array([3.0]))
    assert one.value == 3 and math.isinf(one.low) and math.isinf(one.high)
    assert str(statistics.Interval(1234.5, 1000, 1500)) == "1,234 [1,000, 1,500]"
    assert str(statistics.Interval(1.5, 1, 2)) == "1.50 [1.00, 2.00]"


def test_what_counts_as_converged():
    line, level = made_up(straight(1000)), made_up(flat(1000))
    assert statistics.late_share(line).value == pytest.approx(0.5, abs=0.02)
    assert statistics.late_share(level).value == pytest.approx(0, abs=1e-9)
    assert not statistics.has_converged(line) and statistics.has_converged(level)
    assert statistics.converged_at(line) == 200_000
    assert statistics.converged_at(level) == 20_000


@pytest.mark.parametrize("late, has_converged", [(0.14, True), (0.16, False)])
def test_regret_has_converged_when_little_of_it_is_late(late, has_converged):
    result = made_up(lambda t: 1000 * (np.minimum(t, 100_000) * (1 - 2 * late) + t * late) / 1e5)
    share = statistics.late_share(result).value
    assert share == pytest.approx(late, abs=0.01)
    assert statistics.has_converged(result) == has_converged
    assert (statistics.converged_at(result) < 200_000) == has_converged


def test_few_checkpoints_are_no_evidence_of_convergence():
    line = made_up(straight(1000))
    for n in (1, 3, 5, 7):
        at = np.linspace(0, 99, n + 1)[1:].round().astype(int)
        few = dataclasses.replace(line, t=line.t[at], regret=line.regret[:, at])
        share = statistics.late_share(few)
        assert not statistics.has_converged(few)
        assert math.isnan(share.value) if n < 4 else share.value == pytest.approx(0.5, abs=0.02)
    level = made_up(flat(1000))
    for n in (3, 4):
        few = dataclasses.replace(
            level, t=level.t[:: 99 // (n - 1)], regret=level.regret[:, :: 99 // (n - 1)]
        )
        assert statistics.has_converged(few) == (n == 4)
    assert str(statistics.Interval(math.nan, math.nan, math.nan)) == "?"


@pytest.mark.long
def test_the_bootstrap_needs_little_memory():
    import tracemalloc

    tracemalloc.start()
    statistics.bootstrap(lambda x: x, np.arange(10_000.0))  # 320 MB at once
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200e6


def test_the_slope_of_a_power():
    results = [made_up(flat(level), noise=0.1) for level in (10, 20, 40)]
    fit = statistics.slope(results, [1.0, 2.0, 4.0])
    assert fit.value == pytest.approx(1, abs=0.02) and fit.low < fit.value < fit.high


def test_ranks_are_correlated_as_spearman_does_it():
    rng = np.random.default_rng(0)
    x, y = rng.integers(5, size=(20, 8)).astype(float), rng.normal(size=(1, 8))
    for row in range(20):
        found = statistics.rank_correlation(x, y)[row]
        assert found == pytest.approx(scipy.stats.spearmanr(x[row], y[0]).statistic)
    alike = np.ones((1, 8))
    assert statistics.rank_correlation(alike, y) == statistics.rank_correlation(y, alike) == 0


def test_an_estimate_is_shown_with_its_interval_where_it_has_one():
    assert str(statistics.Interval(100.4, 99.4, 101.6)) == "100 [99, 102]"
    assert str(statistics.Interval(-99.96, -101.2, -98)) == "-99.96 [-101.20, -98.00]"
    assert str(statistics.bootstrap(lambda x: x, np.array([1234.5]))) == "1,234.50"


def test_a_verdict_needs_every_reading_or_some():
    claim = claims.Claim("t", "q", "how", [], [], "why")
    assert claim.judge({"a": True, "b": True}).verdict == "holds"
    assert claim.judge({"a": True, "b": False}).verdict == "holds under this reading"
    assert claim.readings == ["a"]
    assert claim.judge({"a": False}).verdict == "does not hold"


def world(levels, curves=lambda grid, label: flat):
    """Results of the paper's whole specification, with a final regret for each label."""
    spec = experiments.built_in("paper")
    by_key = {}
    for grid in spec.grids:
        for problem in grid.problems:
            for number, choice in enumerate(grid.policies):
                level = levels(grid.name, problem, choice.label)
                curve = curves(grid.name, choice.label)(level)
                seed = 0 if grid.name == "no-delay" else number  # one policy under two names
                result = made_up(curve, seed=seed, problem=problem, noise=level / 100)
                by_key[grid.name, problem.name, choice.label, str(grid.delays[0])] = result
    return Results(spec, by_key)


def as_the_paper_says(grid, problem, label):
    """A world in which every claim is true."""
    if grid == "no-delay":
        return 500
    if grid == "gap":
        gap = np.sort(problem.gaps)[1]
        return 1 / gap**2 if label == claims.RUCB_DELAY else 100 / gap
    small = (problem.gaps < 0.1).sum()
    if label == claims.RUCB_DELAY:
        return 1000
    more = 1 + 0.05 * small
    if problem.name == "tennis":
        more = 0.8
    return 1000 * more * (1.1 if label.startswith("MRR") else 1.0)


@pytest.mark.long
def test_a_world_as_the_paper_describes_it_gets_its_verdicts():
    def curves(grid, label):
        if grid == "paper" or grid == "variants":
            if label == claims.RUCB_DELAY:
                return slow_at_first
            if label.startswith("RUCB, "):
                return straight
        return flat

    checked = dict(
        zip(claims.CLAIMS, claims.check_claims(world(as_the_paper_says, curves)), strict=True)
    )
    assert [claim.title for claim in checked.values() if claim.verdict != "holds"] == []
    for claim in checked.values():
        assert {len(row) for row in claim.rows} == {len(claim.columns)}
    rows = {
        claims.rucb_delay_is_best: 8,
        claims.rr_db_is_slightly_ahead: 16,
        claims.rucb_fails: 8,
        claims.window_has_no_effect: 12,
        claims.slower_at_first: 8,
        claims.more_with_small_gaps: 12,
        claims.exponents: 7,
        claims.without_delay: 3,
    }
    assert {claim: len(checked[claim].rows) for claim in rows} == rows
    counted = {row[0]: row[1] for row in checked[claims.more_with_small_gaps].rows}
    assert counted["arithmetic"] == "3"  # 0.025, 0.05 and 0.075


@pytest.mark.long
def test_a_world_that_contradicts_the_paper_gets_the_opposite():
    def contrary(grid, problem, label):
        if grid == "window":
            return 2000
        return 3000 if label == claims.RUCB_DELAY else 500 if label.startswith("MRR") else 1000

    verdicts = {claim.title: claim.verdict for claim in claims.check_claims(world(contrary))}
    for title in (
        "RUCB-Delay has the least regret everywhere but on tennis",
        "RR-DB-Delay is slightly ahead of MRR-DB-Delay on average",
        "RUCB fails to converge on every dataset",
        "The window of 1000 has practically no effect",
        "RUCB-Delay's regret grows more slowly at first",
        "The difference grows with the number of arms with small gaps",
        "Regret grows with the inverse of the smallest gap, for RUCB-Delay with its square",
        "Without delay RUCB-Delay is RUCB",
    ):
        assert verdicts[title] == "does not hold", title


def test_a_claim_with_one_part_false_does_not_hold():
    def one_off(grid, problem, label):
        gap = np.sort(problem.gaps)[1]
        if grid == "gap" and label == claims.RUCB_DELAY:
            return 100 / gap**1.2  # the largest exponent, but far from 2
        return as_the_paper_says(grid, problem, label)

    claim = claims.exponents(world(one_off))
    assert claim.verdict == "does not hold"
    assert ["RUCB-Delay's is the largest", "", "", "", "", "yes"] in claim.rows
    assert claim.rows[3] == ["RUCB-Delay's exponent is nearer to 2 than to 1", "", "", "", "", "no"]

    def rival_ahead(grid, problem, label):
        early = label == claims.RR_DB and problem.name == "mslr"
        return 100 if early else as_the_paper_says(grid, problem, label)

    assert claims.slower_at_first(world(rival_ahead)).verdict == "does not hold"


def test_an_eliminating_policy_must_not_grow_with_the_square():
    def levels(grid, problem, label):
        gap = np.sort(problem.gaps)[1]
        power = {claims.RUCB_DELAY: 2.6, claims.RR_DB: 2.0}.get(label, 1.0)
        return 10 / gap**power if grid == "gap" else 1000

    claim = claims.exponents(world(levels))
    verdicts = {row[0]: row[-1] for row in claim.rows[3:]}
    assert verdicts.pop(f"{claims.RR_DB}'s is nearer to 1 than to 2") == "no"
    assert set(verdicts.values()) == {"yes"} and len(verdicts) == 3
    assert claim.verdict == "does not hold"
    exponents = {row[0]: float(row[-1].split()[0]) for row in claim.rows[:3]}
    assert exponents[claims.RUCB_DELAY] == pytest.approx(2.6, abs=0.05)
    assert exponents[claims.RR_DB] == pytest.approx(2.0, abs=0.05)


@pytest.mark.parametrize("below, holds", [(("RR", "MRR"), True), (("RR",), True), ((), False)])
def test_on_tennis_one_rival_must_be_ahead(below, holds):
    def levels(grid, problem, label):
        if label == claims.RUCB_DELAY:
            return 1000
        return 800 if problem.name == "tennis" and label.startswith(below) else 1200

    verdict = claims.rucb_delay_is_best(world(levels)).verdict
    assert verdict == ("holds" if holds else "does not hold")


@pytest.mark.long
def test_a_rival_that_does_exactly_as_well_is_not_outperformed():
    def ahead(grid, problem, label):
        return 1000 if label == claims.RUCB_DELAY else 800 if problem.name == "tennis" else 1200

    def curves(grid, label):
        return slow_at_first if label == claims.RUCB_DELAY else flat

    results = world(ahead, curves)
    both = (claims.rucb_delay_is_best, claims.slower_at_first)
    assert [claim(results).verdict for claim in both] == ["holds", "holds"]
    for key in list(results.by_key):
        grid, problem, label, law = key
        if (grid, problem, label) == ("paper", "mslr", claims.RR_DB):
            results.by_key[key] = results.by_key[grid, problem, claims.RUCB_DELAY, law]
    assert [claim(results).verdict for claim in both] == ["does not hold", "does not hold"]


def test_early_is_a_twentieth_of_the_horizon():
    results = world(lambda grid, problem, label: 1000, lambda grid, label: straight)
    claim = claims.slower_at_first(results)
    regret = results.get("paper", "mslr", claims.RUCB_DELAY)
    (place,) = np.flatnonzero(regret.t == 10_000)
    (row,) = (row for row in claim.rows if row[0] == "mslr")
    assert row[1] == f"{regret.regret[:, place].mean():,.0f}" and 45 < float(row[1]) < 55


@pytest.mark.parametrize("late, holds", [(0.23, False), (0.27, True)])
def test_rucb_fails_where_more_than_a_quarter_of_the_regret_is_late_on_every_dataset(late, holds):
    def bent(level):
        return lambda t: level * (np.minimum(t, 100_000) * (1 - 2 * late) + t * late) / 1e5

    def curves(grid, label):
        return bent if label == "RUCB, append-only" else flat

    claim = claims.rucb_fails(world(lambda grid, problem, label: 1000, curves))
    assert claim.readings == (["RUCB append-only"] if holds else [])
    assert claim.columns == ["dataset", "corrected", "append-only", "conversions"]


@pytest.mark.parametrize("order, holds", [((0, 1, 2, 3, 4, 5), True), ((3, 1, 4, 0, 2, 5), False)])
def test_a_weak_correlation_with_small_gaps_is_not_enough(order, holds):
    """Differences by the number of small gaps, in that order or in one correlated by less."""
    names = list(claims.SIX)
    problems = {p.name: p for p in experiments.built_in("paper").grids[0].problems}
    small = {name: int((problems[name].gaps < 0.1 - 1e-9).sum()) for name in names}
    ranked = sorted(names, key=small.get)
    more = {name: 100 * (1 + order[place]) for place, name in enumerate(ranked)}
    rho = scipy.stats.spearmanr([small[n] for n in names], [more[n] for n in names]).statistic
    assert rho > 0.5 if holds else 0.05 < rho < 0.5

    def levels(grid, problem, label):
        return 1000 if label == claims.RUCB_DELAY else 1000 + more.get(problem.name, 100)

    claim = claims.more_with_small_gaps(world(levels))
    assert ("MRR-DB-Delay brief; car, sushi" in claim.readings) == holds
    counted = {row[0]: row[1] for row in claim.rows[:8]}
    assert all(counted[name] == str(small[name] - 1) for name in names)
    rows = [int(row[1]) for row in claim.rows[:8]]
    assert rows == sorted(rows)
    (found,) = (row for row in claim.rows if row[0] == "rank correlation; car, sushi")
    assert float(found[2].split()[0]) == pytest.approx(rho, abs=0.01) and found[1] == ""


@pytest.mark.parametrize("what", ["regret", "plays"])
def test_without_delay_every_run_must_be_the_same_in_regret_and_in_plays(what):
    results = world(lambda grid, problem, label: 500)
    assert claims.without_delay(results).verdict == "holds"
    key = next(k for k in results.by_key if k[0] == "no-delay" and k[2] == claims.RUCB_DELAY)
    changed = getattr(results.by_key[key], what).copy()
    changed.flat[-1] += 1
    results.by_key[key] = dataclasses.replace(results.by_key[key], **{what: changed})
    claim = claims.without_delay(results)
    assert claim.verdict == "does not hold"
    told = {row[0]: row[-1] for row in claim.rows}
    assert told.pop(key[1]) == "no" and set(told.values()) == {"every run, to the last bit"}


def test_a_caveat_for_few_runs_and_one_for_another_horizon():
    grid = dataclasses.replace(experiments.built_in("paper").grids[0], runs=20, horizon=200_000)
    assert claims.caveat(grid) == ""
    few = claims.caveat(dataclasses.replace(grid, runs=19))
    assert few.startswith("With 19 runs, fewer than 20") and "horizon" not in few
    for horizon in (199_999, 200_001):
        other = claims.caveat(dataclasses.replace(grid, horizon=horizon))
        assert other.startswith(f"The horizon of {horizon:,} is not the paper's 200,000")


@pytest.mark.parametrize("more, holds", [(1.08, True), (0.92, True), (1.12, False), (0.88, False)])
def test_a_window_has_no_effect_within_ten_per_cent(more, holds):
    def levels(grid, problem, label):
        return 1000 * more if grid == "paper" else 1000

    verdict = claims.window_has_no_effect(world(levels)).verdict
    assert verdict == ("holds" if holds else "does not hold")


@pytest.mark.parametrize("times, holds", [(0.97, False), (1.05, True), (1.4, True), (1.6, False)])
def test_slightly_ahead_is_by_less_than_half(times, holds):
    def levels(grid, problem, label):
        return 1000 * times if label.startswith("MRR") else 1000

    verdict = claims.rr_db_is_slightly_ahead(world(levels)).verdict
    assert verdict == ("holds" if holds else "does not hold")


@pytest.mark.long
def test_the_difference_must_grow_for_both_rivals():
    def only(grows):
        def levels(grid, problem, label):
            small = (problem.gaps < 0.1).sum()
            return 1000 + 50 * small * label.startswith(grows)

        return claims.more_with_small_gaps(world(levels))

    assert only(("RR", "MRR")).verdict == "holds"
    assert only("RR").verdict == only("MRR").verdict == "does not hold"


@pytest.mark.long
def test_readings_are_told_apart():
    def levels(grid, problem, label):
        level = as_the_paper_says(grid, problem, label)
        return 100 if label == "MRR-DB-Delay, brief" and grid == "paper" else level

    first = claims.rucb_delay_is_best(world(levels))
    assert first.verdict == "holds under this reading"
    assert not any("brief;" in reading for reading in first.readings)
    assert any("appendix, ordered; car, sushi" in reading for reading in first.readings)
    text = report.compose(world(levels), [first], {"paper": [("paper-regret", "what it shows")]})
    assert "It holds for:" in text and "![what it shows](figures/paper-regret.svg)" in text
    assert "| six-rankers | RUCB-Delay |" in text and "infinite" in text


def test_pair_shares_add_up():
    k = PROBLEM.n_arms
    result = made_up(flat(10), runs=2)
    pairs = np.zeros((100, k, k), dtype=np.int64)
    t = result.t * 2
    pairs[:, 0, 0], pairs[:, 0, 2], pairs[:, 2, 0] = t // 2, t // 8, t // 8
    pairs[:, 3, 4] = t - t // 2 - 2 * (t // 8)
    ticks, shares = regret_figures.pair_shares(dataclasses.replace(result, pairs=pairs))
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    # the winner with itself, with rivals 1, 2, 3, 4 by their gaps, without the winner
    np.testing.assert_allclose(shares[50], [0.5, 0, 0.25, 0, 0, 0.25])
    assert len(ticks) == 100


def test_a_panel_ends_where_all_that_converge_have():
    right, top = regret_figures._extent([made_up(flat(100)), made_up(straight(5000))])
    assert right == pytest.approx(25_000) and 100 < top < 150
    right, top = regret_figures._extent([made_up(straight(5000))])
    assert right == 200_000 and top > 5000


def test_a_panel_of_single_runs_has_a_top():
    for kind in (flat, straight):
        _, top = regret_figures._extent([made_up(kind(100), runs=1)])
        assert 100 <= top < 150


def test_a_horizon_of_one_is_drawn_without_a_warning(tmp_path):
    """Numbers have no line then, and axes no width."""
    source = """
problems = ["arithmetic:3,0.1"]
policies = ["rucb"]
delays = ["never:1,geometric:0.1"]
horizon = 1
runs = 1
"""
    (tmp_path / "one.toml").write_text(source)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DeprecationWarning)  # between its parts, of old ones
        experiments.run(
            experiments.read(tmp_path / "one.toml"), tmp_path / "out", workers=1, quiet=True
        )
    assert (tmp_path / "out" / "report.html").exists()
