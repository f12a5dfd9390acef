"""What is estimated from a log whose truth is known."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest

import duelay
import made_logs
from duelay import History
from duelay.estimates import figures
from duelay.inference.confidence_sequences import of_shares

AGES = [120.0, 600.0, 1800.0, 7200.0, 36_000.0]
NAN = math.nan
PAIRS = ~np.eye(4, dtype=bool)


@pytest.mark.long
@pytest.mark.parametrize("kind", made_logs.LAWS)
def test_law_and_matrix_are_within_four_standard_errors(kind):
    made = made_logs.make(kind, seed=1, n=9000)
    found = duelay.estimate(made.history)
    off = np.abs(found.mean - made.matrix)
    assert (off[PAIRS] <= 4.0 * found.preferences.error[PAIRS]).all()
    assert found.preferences.error[PAIRS].max() < 0.05
    tau, error = found.delays.learned.at(AGES)
    assert (np.abs(tau - made.law.cdf(AGES)) <= 4.0 * error + 1e-12).all()
    assert error.max() < 0.03
    assert found.leader == int(np.argmax(made.matrix.sum(axis=1)))


@pytest.mark.long
@pytest.mark.parametrize("kind", made_logs.LAWS)
def test_all_intervals_cover_together(kind):
    """A part of what `python -m benchmarks logs` measures."""
    covered = 0
    for seed in range(30):
        made = made_logs.make(kind, seed, n=1000)
        found = duelay.estimate(made.history)
        is_in = (found.lower <= made.matrix) & (made.matrix <= found.upper)
        covered += bool(is_in[PAIRS].all())
    assert covered >= 25  # less than once in a thousand, if 95 % are covered


def test_by_coin_the_estimate_is_the_share_of_conversions():
    made = made_logs.make("never", seed=2, n=600)
    h, found = made.history, duelay.estimate(made.history)
    wins = np.zeros((4, 4))
    for i, j, delay in zip(h.first, h.second, h.delay, strict=True):
        if not math.isnan(delay):
            wins[i, j] += 1
    assert found.mean[0, 1] == wins[0, 1] / (wins[0, 1] + wins[1, 0])
    assert found.lower == pytest.approx(of_shares(wins, 0.05)[0])
    silence_lost = (wins[0, 1] + ((h.first == 1) & (h.second == 0)).sum() - wins[1, 0]) / (
        ((h.first == 0) & (h.second == 1)) | ((h.first == 1) & (h.second == 0))
    ).sum()
    assert found.naive[0, 1] == silence_lost


@pytest.mark.long
def test_what_it_rests_on_is_said():
    made = made_logs.make("clean", seed=0, n=1500)
    proved = duelay.estimate(made.history)
    assert proved.guarantee.kind == "proved" and "the coin" in proved.how_sure
    unknown = duelay.estimate(dataclasses.replace(made.history, chosen_by=""))
    assert unknown.guarantee.kind == "measured" and "`chosen_by` does not say" in unknown.how_sure
    silent = duelay.estimate(dataclasses.replace(made.history, order=None))
    assert silent.order == "coin?" and silent.how_sure != proved.how_sure
    champion = duelay.estimate(made_logs.make("champion first", seed=0).history)
    assert "one delay law for all pairs" in champion.how_sure and champion.evidence is None


@pytest.mark.long
def test_an_uneven_order_that_nobody_says_is_noticed_and_allowed_for():
    made = made_logs.make("champion first", seed=3, n=4000)
    found = duelay.estimate(dataclasses.replace(made.history, order=None))
    assert found.order == "unknown" and found.evidence is None
    assert "order balance" not in found.headline
    assert np.abs(found.mean - made.matrix)[PAIRS].max() < 0.1
    assert np.abs(found.naive - made.matrix)[PAIRS].max() > 0.1


def test_a_law_that_is_told_is_used():
    made = made_logs.make("champion first", seed=4, n=3000)
    found = duelay.estimate(made.history, delay=made.law)
    assert found.guarantee.words == "the delay law being as it was told"
    assert np.abs(found.mean - made.matrix)[PAIRS].max() < 0.1
    assert ((found.lower <= made.matrix) & (made.matrix <= found.upper)).all()


def test_a_law_in_ticks_does_not_fit_a_log_in_time():
    made = made_logs.make("clean", seed=0, n=100)
    with pytest.raises(ValueError, match="delay must"):
        duelay.estimate(made.history, delay="geometric:0.01")


@pytest.mark.long
def test_a_bonus_of_the_first_place_is_found_in_votes():
    found = duelay.estimate(made_logs.make("votes", seed=5, n=6000).history)
    position = found.position
    assert abs(position.bonus - made_logs.BONUS) < 4.0 * position.error < 0.05
    assert "being shown first adds" in str(found)


def test_votes_in_an_uneven_order_are_corrected_for_the_first_place():
    rng = np.random.default_rng(0)
    n, mu, bonus = 6000, 0.6, 0.15
    first = (rng.random(n) < 0.2).astype(int)  # arm 0 is mostly first
    won = rng.random(n) < np.where(first == 0, mu, 1 - mu) + bonus
    log = History(n_arms=2, first=first, second=1 - first, delay=np.zeros(n),
                  first_won=won.astype(float), feedback="votes", at=1e9 + np.arange(n),
                  order="champion")  # fmt: skip
    found = duelay.estimate(log)
    assert found.naive[0, 1] > 0.66 and found.mean[0, 1] == pytest.approx(mu, abs=0.03)
    assert found.lower[0, 1] <= mu <= found.upper[0, 1]


@pytest.mark.long
def test_a_log_in_ticks():
    rng = np.random.default_rng(0)
    n = 3000
    first, delay = rng.integers(2, size=n), rng.geometric(0.05, n).astype(float)
    won = rng.random(n) < np.where(first == 0, 0.7, 0.3)
    heard = won & (delay <= np.arange(n, 0, -1))
    delay = np.where(heard, delay, NAN)
    log = History(n_arms=2, first=first, second=1 - first, order="coin", chosen_by="design",
                  delay=delay, first_won=np.where(heard, 1.0, NAN))  # fmt: skip
    found = duelay.estimate(log)
    assert found.winner == 0 and "ticks" in found.delay_words
    tau, error = found.delays.learned.at([10, 40])
    assert (np.abs(tau - duelay.delays.Geometric(0.05).cdf([10, 40])) < 4 * error).all()


def test_a_log_without_answers_says_so():
    log = History(n_arms=3, first=[0, 1], second=[1, 2], delay=[NAN, NAN], first_won=[NAN, NAN],
                  at=[1e9, 1e9 + 5])  # fmt: skip
    found = duelay.estimate(log)
    assert "nothing has been heard in 2 duels" in found.headline
    assert found.winner is None and found.law is None and "unheard" in str(found)


def test_a_log_of_two_duels_is_no_crash():
    log = History(n_arms=2, first=[0, 1], second=[1, 0], delay=[3.0, NAN], first_won=[1.0, NAN],
                  at=[1e9, 1e9 + 5])  # fmt: skip
    found = duelay.estimate(log)
    assert found.winner is None and found.mean[0, 1] == 1.0


def test_judgements_that_took_no_time_have_no_delays():
    n = 400
    rng = np.random.default_rng(1)
    first = rng.integers(2, size=n)
    log = History(n_arms=2, first=first, second=1 - first, delay=np.zeros(n), feedback="votes",
                  first_won=(rng.random(n) < np.where(first == 0, 0.8, 0.2)).astype(float),
                  at=1e9 + np.arange(n), order="coin", chosen_by="design")  # fmt: skip
    found = duelay.estimate(log)
    assert found.winner == 0 and found.delays is None
    assert "heard at once" in found.delay_words


def test_the_winner_is_declared_as_a_player_would_and_with_all_that_was_told():
    """The evidence of the last look is at the time of the log, not at its last duel."""
    made = made_logs.make("clean", seed=6, n=800)
    late = dataclasses.replace(made.history, now=made.history.now + 86_400)
    found = duelay.estimate(late).evidence
    assert (found.n_open[np.triu_indices(4, 1)] == 0).all()  # every silence is settled


def test_reading_is_for_tables():
    made = made_logs.make("clean", seed=0, n=50)
    with pytest.raises(ValueError, match="zone is for reading a table"):
        duelay.estimate(made.history, zone="UTC")


@pytest.mark.long
def test_files_hold_what_the_estimate_says(tmp_path):
    pyarrow = pytest.importorskip("pyarrow.parquet")
    made = made_logs.make("never", seed=7, n=1500)
    found = duelay.estimate(made.history)
    written = found.save(tmp_path / "out")
    assert all(path.exists() for path in written)
    data = json.loads((tmp_path / "out" / "estimate.json").read_text())
    assert data["leader"] == found.arms[found.leader] and data["duels"] == 1500
    assert data["preferences_table"][0]["beats_it"] == found.mean[0, 1]
    table = pyarrow.read_table(tmp_path / "out" / "preferences.parquet").to_pydict()
    assert table["beats_it"][0] == found.mean[0, 1] and len(table["arm"]) == 6
    page = (tmp_path / "out" / "report.html").read_text()
    assert found.arms[found.leader] in page and "http" not in page.replace("http-equiv", "")
    assert page.count("data:image/svg+xml") == 5
    assert not list((tmp_path / "out").glob(".draft*"))


@pytest.mark.long
def test_names_are_shown_and_never_read_as_markup(tmp_path):
    made = made_logs.make("clean", seed=0, n=300)
    names = ("<script>alert(1)</script>", "=1+1", "a|b *c*", "$x$")
    found = duelay.estimate(dataclasses.replace(made.history, arms=names))
    found.save(tmp_path)
    assert "<script>" not in (tmp_path / "report.html").read_text()
    assert "\n'=1+1" in (tmp_path / "preferences.csv").read_text().replace(",'", "\n'")


@pytest.mark.long
def test_the_figure_has_a_panel_for_each_question():
    pytest.importorskip("matplotlib")
    made = made_logs.make("never", seed=8, n=800)
    titles = [axes.get_title() for axes in duelay.estimate(made.history).plot().axes]
    assert titles[:2] == ["the leader against the others", "preferences"]
    assert any(title.startswith("delays") for title in titles)


def test_the_legend_covers_no_interval_and_no_bar():
    pytest.importorskip("matplotlib")
    found = duelay.estimate(made_logs.make("clean", seed=0, n=300).history)
    drawn = figures.all_of(found)
    panels = [drawn["leader"].axes[0], drawn["traffic"].axes[0], found.plot().axes[0]]
    for axes in panels:
        axes.figure.canvas.draw()
        legend, inner = (part.get_window_extent() for part in (axes.get_legend(), axes.patch))
        assert legend.y0 >= inner.y1
        assert axes.title.get_window_extent().y0 >= legend.y1 - 1.0


def test_an_arm_with_few_duels_does_not_lead():
    """Three wins of a misspelt name are no better than six hundred of two thousand."""
    made = made_logs.make("clean", seed=0, n=4000)
    h = made.history
    best = int(np.argmax(made.matrix.sum(axis=1)))
    first, second = h.first.copy(), h.second.copy()
    rows = np.flatnonzero(h.is_heard & (h.first == best))[:5]
    first[rows] = 4
    odd = dataclasses.replace(h, n_arms=5, arms=(*h.arms, f"{h.arms[best]} "), first=first,
                              second=second)  # fmt: skip
    found = duelay.estimate(odd)
    assert found.mean[4][~np.isnan(found.mean[4])].max() == 1.0
    assert found.leader == best and found.ranking[0] == best
    assert any("differ in case or blanks alone" in note for note in found.notes)


def test_a_stray_time_far_in_the_future_is_noted():
    made = made_logs.make("clean", seed=0, n=2000)
    h = made.history
    assert duelay.estimate(h).notes == ()
    at = h.at.copy()
    at[-1] += 3650 * 86_400.0
    found = duelay.estimate(dataclasses.replace(
        h, at=at, now=None, delay=np.where(np.arange(h.n) == h.n - 1, NAN, h.delay),
        first_won=np.where(np.arange(h.n) == h.n - 1, NAN, h.first_won)))  # fmt: skip
    assert any("after nearly all that is in it" in note for note in found.notes)


def test_copied_answers_are_noted_unless_units_tell_them_apart():
    h = made_logs.make("clean", seed=0, n=2000).history
    rows = np.sort(np.append(np.arange(h.n), np.flatnonzero(h.is_heard)[:50]))
    fields = {
        name: getattr(h, name)[rows] for name in ("first", "second", "delay", "first_won", "at")
    }
    copied = dataclasses.replace(h, **fields)
    (note,) = duelay.estimate(copied).notes
    assert note.startswith(f"50 of {h.is_heard.sum() + 50:,} answers repeat another row")
    assert duelay.estimate(dataclasses.replace(copied, unit=rows)).notes == ()


def _lose_answers(h, starts, ends):
    """Return the history without the answers that came in some times."""
    lost = np.zeros(h.n, dtype=bool)
    for start, end in zip(starts, ends, strict=True):
        lost |= (h.answered >= start) & (h.answered < end)
    return dataclasses.replace(
        h, delay=np.where(lost, NAN, h.delay), first_won=np.where(lost, NAN, h.first_won)
    )


@pytest.mark.parametrize("kind", ["clean", "never", "bursts", "votes"])
def test_a_log_without_an_outage_has_no_note(kind):
    for seed in range(10):
        assert duelay.estimate(made_logs.make(kind, seed=seed, n=2000).history).notes == ()


def test_a_time_without_answers_is_noted_but_not_that_of_every_night():
    h = made_logs.make("clean", seed=0, n=6000).history
    day, begin = 86_400.0, float(h.at[0])
    nights = begin + day * np.arange(4)
    assert duelay.estimate(_lose_answers(h, nights, nights + 6 * 3600)).notes == ()
    start = begin + 1.25 * day
    (note,) = duelay.estimate(_lose_answers(h, [start], [start + 18 * 3600])).notes
    from_, to = (np.datetime64(word) for word in note.split()[4:7:2])
    assert abs((from_ - np.datetime64(int(start), "s")).astype(int)) < 1800
    assert abs((to - np.datetime64(int(start + 18 * 3600), "s")).astype(int)) < 1800
    assert "were due: were some lost" in note


def test_a_headline_does_not_doubt_what_its_intervals_say():
    """Intervals and evidence are two tests: one may be sure of an arm, and not the other."""
    rng, n = np.random.default_rng(54), 500
    first = rng.integers(2, size=n)
    heard = (rng.random(n) < np.where(first == 0, 0.66, 0.34)) & (rng.random(n) < 0.5)
    at = 1.7e9 + 60.0 * np.arange(n)
    delay = np.where(heard, rng.exponential(3600, n), NAN)
    won = np.where(heard, 1.0, NAN)
    h = History(2, first, 1 - first, delay, won, at=at, order="coin", chosen_by="design",
                now=at[-1] + 864_000.0)  # fmt: skip
    found = duelay.estimate(h)
    assert found.winner is None and found.lower[0, 1] > 0.5
    assert "all its intervals are above 1/2" in found.headline
    assert "not sure" not in found.headline


def test_an_order_that_only_seems_even_is_called_measured():
    h = made_logs.make("clean", seed=0, n=1000).history
    found = duelay.estimate(dataclasses.replace(h, order=None, chosen_by="design"))
    assert found.order == "coin?" and found.guarantee.kind == "measured"
    assert "; measured, not proved: it rests on the coin;" in found.how_sure


def test_a_doubt_takes_the_promise_back():
    rng = np.random.default_rng(0)
    n = 3000
    first = rng.integers(2, size=n)
    won = rng.random(n) < 0.5
    slow = np.where(first == 0, 1.0, 6.0)  # wins of arm 1 take longer
    delay = np.where(won, rng.exponential(600, n) * slow, NAN)
    log = History(n_arms=2, first=first, second=1 - first, delay=delay, order="coin",
                  first_won=np.where(won, 1.0, NAN), at=1.7e9 + np.arange(n) * 30.0,
                  now=1.7e9 + n * 30.0 + 1e6, chosen_by="design")  # fmt: skip
    found = duelay.estimate(log)
    assert "but doubtful: delay by winner" in found.headline
    assert "that does not hold here" in found.how_sure


@pytest.mark.long
def test_few_and_no_answers_are_saved_too(tmp_path):
    few = History(n_arms=2, first=[0, 1] * 6, second=[1, 0] * 6, delay=[3.0, NAN] * 6,
                  first_won=[1.0, NAN] * 6, at=1.7e9 + np.arange(12), order="coin")  # fmt: skip
    duelay.estimate(few).save(tmp_path / "few")
    none = dataclasses.replace(few, delay=[NAN] * 12, first_won=[NAN] * 12)
    duelay.estimate(none).save(tmp_path / "none")
    assert (tmp_path / "few" / "report.html").exists()
    page = (tmp_path / "none" / "report.html").read_text()
    assert "nothing has been heard" in page and "data:image" not in page


def test_judgements_in_ticks_have_no_delays():
    table = {"first": ["a", "b"] * 40, "second": ["b", "a"] * 40, "winner": ["a"] * 80}
    found = duelay.estimate(table)
    assert found.delays is None and "heard at once" in str(found)


@pytest.mark.parametrize("feedback", ["conversions", "votes"])
def test_no_share_is_said_to_be_missing_where_all_answers_have_come(feedback):
    """By coin the share of answers is twice that of conversions: by chance it is below 1."""
    rng = np.random.default_rng(1)
    n = 1000
    first = rng.integers(2, size=n)
    won = rng.random(n) < 0.5
    heard = won | (feedback == "votes")
    delay = np.where(heard, rng.exponential(60, n), NAN)
    log = History(n_arms=2, first=first, second=1 - first, delay=delay, order="coin",
                  first_won=np.where(heard, won, NAN), at=1.7e9 + np.arange(n) * 10.0,
                  now=1.7e9 + n * 10.0 + 1e6, feedback=feedback)  # fmt: skip
    found = duelay.estimate(log)
    missing = 1.0 - float(found.delays.learned.at(found.delays.learned.last)[0])
    assert 0.01 < missing < 0.06 or feedback == "votes"
    assert "% [" not in found.delay_words
    assert found.delay_words.startswith("all answers")


def test_what_differs_from_duel_to_duel_is_called_an_average():
    rng = np.random.default_rng(0)
    n = 4000
    first = rng.integers(2, size=n)
    mu = np.where(np.arange(n) < n // 2, 0.8, 0.4)  # of arm 0: it is better in the beginning
    won = rng.random(n) < np.where(first == 0, mu, 1 - mu)
    slow = np.where(np.arange(n) < n // 2, 60.0, 6000.0)
    delay = np.where(won, rng.exponential(1.0, n) * slow, NAN)
    log = History(n_arms=2, first=first, second=1 - first, delay=delay, order="coin",
                  first_won=np.where(won, 1.0, NAN), at=1.7e9 + np.arange(n) * 60.0,
                  now=1.7e9 + n * 60.0 + 1e6, chosen_by="design")  # fmt: skip
    found = duelay.estimate(log)
    assert "averages over duels that differ: law drift" in found.delay_words.replace(
        "delay by winner, ", "")  # fmt: skip
    assert "preferences are averages over duels that differ" in str(found)
    steady = duelay.estimate(made_logs.make("clean", seed=0, n=1000).history)
    assert "averages" not in str(steady)


@pytest.mark.parametrize("outcome, mean", [("tie", 0.5), ("a", 1.0)])
def test_votes_that_are_all_alike_have_intervals_of_some_width(outcome, mean):
    table = {"first": ["a", "b"] * 60, "second": ["b", "a"] * 60, "winner": [outcome] * 120}
    found = duelay.estimate(table)
    assert found.mean[0, 1] == mean and found.upper[0, 1] - found.lower[0, 1] > 0.03
    assert found.lower[0, 1] <= mean <= found.upper[0, 1]


@pytest.mark.parametrize("order", [None, "champion", "coin"])
def test_a_log_without_answers_has_no_leader_in_any_order(order):
    log = History(n_arms=2, first=[0] * 50, second=[1] * 50, delay=[NAN] * 50, order=order,
                  first_won=[NAN] * 50, at=1e9 + np.arange(50))  # fmt: skip
    found = duelay.estimate(log)
    assert found.headline == "nothing has been heard in 50 duels: no arm leads"
    assert found.winner is None and found.law is None
    assert found.guarantee.holds == (order == "coin")
