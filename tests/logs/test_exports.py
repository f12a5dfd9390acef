"""Histories written and read: CSV and Parquet, in ticks and by the clock; and merged."""

import contextlib
import dataclasses
import datetime
import json
import math
import sys

import numpy as np
import pandas as pd
import pytest

import duelay
from duelay import History, cli
from duelay._core import timestamps
from duelay._core.duration import Duration

NAN = math.nan
START = 1_763_294_400.123456  # 2025-11-16, noon
UTC = datetime.UTC


def by_clock(n=200, seed=0, *, votes=False, **more):
    """Duels at times to the microsecond, many at one time; a fourth arm is never shown."""
    rng = np.random.default_rng(seed)
    at = START + np.sort(rng.integers(0, 50, size=n) * 1800.333333)
    first, second = rng.integers(3, size=(2, n))
    heard = rng.random(n) < 0.6
    won = rng.choice([0.0, 0.5, 1.0], size=n) if votes else np.ones(n)
    delay = rng.exponential(600, size=n)
    given = {
        "window": "2h",
        "order": "coin",
        "now": at[-1] + 7000.5,
        "chosen_by": "decide:window=2h",
        "feedback": "votes" if votes else "conversions",
        "arms": ("red", "grün, hell", 'the "new"\none', "4"),
    }
    heard &= delay <= 7000
    return History(
        n_arms=4,
        first=first,
        second=second,
        delay=np.where(heard, delay, NAN),
        first_won=np.where(heard, won, NAN),
        at=at,
        **given | more,
    )


def in_ticks(*, votes=False, window=None, delay=(3.0, NAN, 100_001.5, 0.1 + 1.1, 1)):
    n = 100_100
    rows = np.zeros(n, dtype=np.int64)
    heard = np.full(n, NAN)
    heard[: len(delay)] = delay
    return History(
        n_arms=3,
        first=rows,
        second=rows + 1,
        delay=heard,
        first_won=np.where(np.isnan(heard), NAN, 0.5 if votes else 1.0),
        feedback="votes" if votes else "conversions",
        window=window,
        arms=("a", "b", "c"),
    )


def assert_same(found, wanted):
    for name in ("first", "second", "delay", "first_won", "at", "unit"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), err_msg=name)
    for name in ("n_arms", "arms", "window", "feedback", "order", "now", "chosen_by", "skipped",
                 "changes", "declared", "n_earlier"):  # fmt: skip
        one, other = getattr(found, name), getattr(wanted, name)
        assert one == other and type(one) is type(other), name


@pytest.mark.parametrize("votes", [False, True])
def test_by_the_clock_a_csv_and_parquet_give_the_same_history_back(tmp_path, votes):
    history = by_clock(votes=votes)
    history.to_csv(tmp_path / "duels.csv")
    assert_same(History.from_csv(tmp_path / "duels.csv"), history)
    history.to_parquet(tmp_path / "duels.parquet")
    assert_same(History.from_parquet(tmp_path / "duels.parquet"), history)


@pytest.mark.long
@pytest.mark.parametrize("votes", [False, True])
def test_in_ticks_a_csv_and_parquet_give_the_same_history_back(tmp_path, votes):
    """Delays that six digits would not hold, too."""
    history = in_ticks(votes=votes)
    history.to_parquet(tmp_path / "duels.parquet")
    assert_same(History.from_parquet(tmp_path / "duels.parquet"), history)
    history.to_csv(tmp_path / "duels.csv")
    assert_same(History.from_csv(tmp_path / "duels.csv"), history)


def come_and_gone():
    """Arms with names that a CSV must quote join, one that is never shown, too."""
    history = by_clock(100)
    number = np.flatnonzero((history.first != 1) & (history.second != 1))[0]
    changes = [(0, "4", "retired"), (number, "grün, hell", "retired", START),
               (number + 1, "grün, hell", "joined", START + 1), (100, "4", "joined")]  # fmt: skip
    return dataclasses.replace(
        history,
        changes=changes,
        declared=("red", 100, "decide:window=2h"),
        n_earlier=195,
    )


def test_who_came_and_went_is_the_same_after_a_csv_and_parquet(tmp_path):
    history = come_and_gone()
    assert history.joined.tolist() == [0, 0, 0, 0] and history.present.all()
    history.to_csv(tmp_path / "duels.csv")
    assert_same(History.from_csv(tmp_path / "duels.csv"), history)
    history.to_parquet(tmp_path / "duels.parquet")
    assert_same(History.from_parquet(tmp_path / "duels.parquet"), history)


def test_what_a_caller_says_of_a_csv_counts_more_than_what_it_says(tmp_path):
    history, path = by_clock(100), tmp_path / "duels.csv"
    history.to_csv(path)
    told = {"window": "1h", "order": "alternate", "now": history.now + 60.0, "chosen_by": "design",
            "arms": history.arms[::-1]}  # fmt: skip
    found = History.from_csv(path, **told)
    assert {name: getattr(found, name) for name in told} == told | {"window": Duration("1h")}
    by_clock(100, votes=True).to_csv(path)
    ticks = History.from_csv(path, columns={"shown_at": None, "answered_at": None})
    assert ticks.at is None and ticks.window is None


def test_a_csv_of_an_earlier_version_says_of_itself_who_came_and_went(tmp_path):
    history, path = come_and_gone(), tmp_path / "duels.csv"
    history.to_csv(path)
    table = pd.read_csv(path)
    about = json.loads(table["duelay"][0])
    table["duelay"] = table["duelay"].astype(object)
    table.loc[0, "duelay"] = json.dumps({name: about[name] for name in ("changes", "declared")})
    table.to_csv(path, index=False)
    found = History.from_csv(path)
    assert set(found.arms) == set(history.arms) and found.changes == history.changes
    assert found.declared == history.declared
    assert (found.window, found.order, found.chosen_by, found.n_earlier) == (None, None, "", 0)


def test_a_csv_without_duels_is_refused(tmp_path):
    (tmp_path / "duels.csv").write_text("shown_at,first,second,answered_at,duelay\n")
    with pytest.raises(ValueError, match="there are no duels in it"):
        History.from_csv(tmp_path / "duels.csv")


@pytest.mark.parametrize("votes", [False, True])
def test_a_csv_and_parquet_have_the_same_estimate(tmp_path, votes):
    history = by_clock(400, votes=votes)
    history.to_csv(tmp_path / "duels.csv")
    history.to_parquet(tmp_path / "duels.parquet")
    found = [duelay.estimate(tmp_path / f"duels.{end}").as_data() for end in ("csv", "parquet")]
    assert json.dumps(found[0]) == json.dumps(found[1])


def test_a_csv_in_which_arms_come_and_go_has_still_a_row_a_duel(tmp_path):
    history = come_and_gone()
    history.to_csv(tmp_path / "duels.csv")
    table = pd.read_csv(tmp_path / "duels.csv")
    assert list(table) == ["shown_at", "first", "second", "answered_at", "duelay"]
    assert len(table) == history.n and table["duelay"].notna().tolist() == [True] + [False] * 99
    assert History.from_csv(tmp_path / "duels.csv").n == 100
    text = (tmp_path / "duels.csv").read_text()
    (tmp_path / "duels.csv").write_text(text.replace("declared", "deklared"))
    with pytest.raises(ValueError, match="duels.csv: duelay"):
        History.from_csv(tmp_path / "duels.csv")


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"changes": [(3, "z", "joined")]}, "'z' joined after 3 duels, and no arm is called so"),
        ({"changes": [(3, "c", "left")]}, "kind of a change must be one of joined, retired"),
        ({"changes": [(9, "c", "joined")]}, "after 9 duels, of 4, must not come before"),
        ({"changes": [(4, "c", "joined"), (3, "c", "retired")]}, "must not come before the last"),
        ({"changes": [(3, "c", "joined"), (3, "c", "joined")]}, "which was there before"),
        ({"changes": [(3, "c", "retired"), (3, "c", "retired")]}, "which was away before"),
        ({"changes": [(0, "b", "joined"), (0, "c", "joined")]}, "two arms must stay, and be the"),
        ({"changes": [(4, "b", "retired"), (4, "c", "retired")]}, "after 4 duels, and two arms"),
        ({"changes": [(1, "b", "joined")]}, "duel 0 shows 'b', which was away"),
        ({"changes": [(1, "b", "retired"), (3, "b", "joined")]}, "duel 1 shows 'b'"),
        ({"changes": [(1.5, "c", "retired")]}, "tick of a change must be a whole number"),
        ({"declared": ("z", 1, "decide")}, "declared"),
        (
            {"changes": [(2, "c", "retired")], "declared": ("c", 2, "decide")},
            "declared",
        ),
        (
            {"changes": [(2, "c", "retired")], "declared": ("a", 1, "decide")},
            "from the last change, after 2 duels, to the last of 4, got 1",
        ),
    ],
)
def test_changes_that_cannot_have_been_are_refused(fields, words):
    with pytest.raises(ValueError, match=words):
        History(
            n_arms=3, first=[0, 1, 0, 0], second=[1, 0, 1, 0], delay=[NAN] * 4,
            first_won=[NAN] * 4, arms=("a", "b", "c"), **fields,
        )  # fmt: skip


def test_what_is_not_said_is_not_made_up(tmp_path):
    for history in (
        by_clock(window=None, order=None, now=None, chosen_by="", arms=()),
        History(n_arms=2, first=[0, 1], second=[1, 0], delay=[1, NAN], first_won=[1, NAN]),
        History(n_arms=2, first=[], second=[], delay=[], first_won=[], at=[]),
        by_clock(3, unit=[2**60, -1, 0], skipped=("line 3: a", "line 9: b")),
        by_clock(1),
    ):
        history.to_parquet(tmp_path / "duels.parquet")
        assert_same(History.from_parquet(tmp_path / "duels.parquet"), history)


def test_a_players_history_is_the_same_after_a_csv(tmp_path):
    player = duelay.DoubleThompson(delay="learn").start(["a", "b"], seed=0, clock="wall")
    for _ in range(50):
        duel = player.ask()
        if duel.first == 0:
            player.tell(duel)
    history = player.history()
    history.to_csv(tmp_path / "duels.csv")
    assert_same(History.from_csv(tmp_path / "duels.csv"), history)


def test_a_csv_by_the_clock_reads_like_this(tmp_path):
    history = History(
        n_arms=2, first=[0, 1], second=[1, 0], delay=[90.5, NAN], first_won=[0, NAN],
        feedback="votes", at=[0.25, 60], arms=("old", "new"),
    )  # fmt: skip
    history.to_csv(tmp_path / "duels.csv")
    header, first, second = (tmp_path / "duels.csv").read_text().splitlines()
    assert header == "shown_at,first,second,answered_at,winner,duelay"
    shown = "1970-01-01T00:00:00.250000Z,old,new,1970-01-01T00:01:30.750000Z,second,"
    assert first.startswith(shown + '"{""order"": null')
    assert second == "1970-01-01T00:01:00.000000Z,new,old,,,"


def write(path, *rows, header="shown_at,first,second,answered_at"):
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_times_of_any_zone_are_read(tmp_path):
    path = write(
        tmp_path / "duels.csv",
        "2026-11-16T12:00:00+01:00,a,b,2026-11-16 11:00:01.5Z",
        "2026-11-16T11:00:00Z,b,a,",
    )
    history = History.from_csv(path)
    noon = datetime.datetime(2026, 11, 16, 11, tzinfo=UTC).timestamp()
    assert history.at.tolist() == [noon, noon] and history.now == noon + 1.5
    np.testing.assert_array_equal(history.delay, [1.5, NAN])
    later = datetime.datetime(2026, 11, 16, 12, tzinfo=UTC)
    assert History.from_csv(path, now=later).ages.tolist() == [3600, 3600]
    assert not History.from_csv(path, now=noon + 1).is_heard.any()
    assert not History.from_csv(path, window="1s").is_heard.any()
    assert History.from_csv(path, window="1s500ms").is_heard.sum() == 1


def test_a_column_of_delays_in_ticks_goes_before_times(tmp_path):
    path = write(tmp_path / "duels.csv", "a,b,1,noon", header="first,second,delay,shown_at")
    assert History.from_csv(path).at is None


T = "2026-11-16T12:00:0"


@pytest.mark.parametrize(
    "rows, message",
    [
        ([f"{T}0Z,a,b,", "soon,a,b,"], "line 3: shown_at must be a time with .* got 'soon'"),
        ([f"{T}0,a,b,"], "line 2: shown_at must be a time with its time zone"),
        ([f"{T}0Z,a,b,{T}1"], "line 2: answered_at must be a time with its time zone"),
        ([",a,b,"], "line 2: shown_at must be a time with its time zone, .* got ''"),
        ([f"{T}0Z,a,b,2026-11-16"], "line 2: answered_at must be a time"),
        ([f"{T}1Z,a,b,{T}0Z"], "line 2: answered_at must not be before shown_at, got"),
        ([f"{T}1Z,a,b"], "line 2: the row is too short, answered_at is missing"),
        ([f"{T}1Z,a,b,,,"], "line 2: the row is longer than the first line"),
        ([f'{T}1Z,"a\n1",b,', f"{T}x,b,b,"], "line 4: shown_at must be"),
    ],
)
def test_a_bad_row_is_refused_with_its_line_and_column(tmp_path, rows, message):
    with pytest.raises(ValueError, match=message):
        History.from_csv(write(tmp_path / "duels.csv", *rows))


@pytest.mark.parametrize(
    "header, told, message",
    [
        ("first,second,answered_at", {}, "the column 'shown_at' is missing"),
        ("shown_at,first,second", {}, "the column 'answered_at' is missing"),
        ("first,second,delay", {"now": 5}, "now needs"),
        ("first,second,delay", {"window": "2h"}, "window"),
        ("first,second,delay", {"arms": ("x", "1")}, "first must"),
    ],
)
def test_a_log_that_does_not_fit_what_is_told_is_refused(tmp_path, header, told, message):
    row = ",".join(["1"] * 3)
    path = write(tmp_path / "duels.csv", row.replace("1", "a", 1), header=header)
    with pytest.raises(ValueError, match=message):
        History.from_csv(path, **told)


def test_a_duel_after_now_is_refused(tmp_path):
    path = write(tmp_path / "duels.csv", f"{T}1Z,a,b,")
    with pytest.raises(ValueError, match="line 2: shown_at must"):
        History.from_csv(path, now=1.7e9)
    with pytest.raises(ValueError, match="window must"):
        History.from_csv(write(path, f"{T}1Z,a,b,"), window=5)


def test_another_parquet_is_refused(tmp_path):
    import pyarrow
    import pyarrow.parquet

    with pytest.raises(ValueError, match="none.parquet"):
        History.from_parquet(tmp_path / "none.parquet")
    (tmp_path / "text.parquet").write_text("no table")
    with pytest.raises(ValueError, match="cannot read duels from"):
        History.from_parquet(tmp_path / "text.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"first": [1]}), tmp_path / "other.parquet")
    with pytest.raises(ValueError, match="other.parquet: the columns"):
        History.from_parquet(tmp_path / "other.parquet")


def test_without_pyarrow_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for call in (by_clock().to_parquet, History.from_parquet):
        with pytest.raises(ModuleNotFoundError, match=r"pyarrow: install .*duelay\[logs\]"):
            call(tmp_path / "duels.parquet")


def test_times_are_whole_microseconds_and_say_so_exactly():
    rng = np.random.default_rng(0)
    at = timestamps.whole(rng.uniform(-1e9, 4e9, size=10_000))
    np.testing.assert_array_equal(timestamps.whole(at), at)
    read = [timestamps.read("at", text) / 1e6 for text in timestamps.write(at)]
    np.testing.assert_array_equal(read, at)
    for second in at[:100].tolist():
        moment = datetime.datetime.fromtimestamp(0, UTC) + datetime.timedelta(seconds=second)
        assert timestamps.seconds("at", second) == timestamps.seconds("at", moment) == second


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"at": [0.0]}, "at must"),
        ({"at": [5.0, 4.0]}, "at must"),
        ({"at": [1.7e12, 1.7e12]}, "at and delay must be in seconds, and not in milliseconds"),
        ({"now": 1.0}, "now must"),
        ({"now": "noon"}, "now must"),
        ({"now": datetime.datetime(2026, 1, 1)}, "now must"),
        ({"window": 5}, "window must"),
        ({"window": "1s"}, "duel 0 may have at most 1.0, got 2"),
        ({"delay": [-1.0, NAN]}, "delay must"),
    ],
)
def test_a_wrong_history_by_the_clock_is_refused(wrong, message):
    right = {"n_arms": 2, "first": [0, 1], "second": [1, 0], "at": [0.0, 4.0]}
    right |= {"delay": [2.0, NAN], "first_won": [1.0, NAN]}
    History(**right)
    with pytest.raises(ValueError, match=message):
        History(**right | wrong)


def test_merged_histories_are_in_the_order_of_time():
    one = History(
        n_arms=2, first=[0, 1], second=[1, 1], delay=[1.0, NAN], first_won=[1, NAN],
        at=[0, 10], arms=("a", "b"), order="coin", chosen_by="rmed",
    )  # fmt: skip
    other = History(
        n_arms=2, first=[0, 0], second=[1, 0], delay=[NAN, 3.0], first_won=[NAN, 1],
        at=[10, 20], arms=("b", "a"), order="alternate", chosen_by="decide", now=99.0,
    )  # fmt: skip
    found = History.merge(one, other)
    assert found.at.tolist() == [0, 10, 10, 20] and found.now == 99
    assert found.first.tolist() == [0, 1, 1, 1] and found.second.tolist() == [1, 1, 0, 1]
    np.testing.assert_array_equal(found.delay, [1, NAN, NAN, 3])
    assert (found.order, found.chosen_by) == ("alternate", "merge of rmed and decide")
    assert_same(History.merge(one), one)


def test_merged_units_are_different_ones_and_none_where_one_does_not_say():
    one, other = by_clock(4, unit=[7, 7, 2, 7], skipped=("line 3",)), by_clock(3, seed=1)
    both = History.merge(one, dataclasses.replace(other, unit=[2, 7, 2]))
    assert both.skipped == ("line 3",)
    shown = [sorted(np.flatnonzero(both.unit == number)) for number in range(4)]
    assert sorted(map(len, shown)) == [1, 1, 2, 3]
    assert History.merge(one, other).unit is None
    assert_same(History.merge(one), one)


@pytest.mark.parametrize("unit", [[1], [0.5] * 4, ["a"] * 4])
def test_units_are_a_whole_number_for_each_duel(unit):
    with pytest.raises(ValueError, match="unit must"):
        by_clock(4, unit=unit)


def test_a_merged_history_says_where_each_duel_went():
    parts = [by_clock(60, seed=seed) for seed in (1, 2, 3)]
    found = History.merge(*parts)
    assert len(found.numbers) == 3
    for part, number in zip(parts, found.numbers, strict=True):
        for name in ("first", "second", "at", "delay"):
            np.testing.assert_array_equal(getattr(found, name)[number], getattr(part, name))
    assert sorted(np.concatenate(found.numbers)) == list(range(180))


def test_an_open_duel_is_told_to_the_player_that_has_replayed_both():
    players = [duelay.Decide().start(2, seed=seed, clock="wall") for seed in (0, 1)]
    duels = [player.ask(at=START + n) for n in range(10) for player in players]
    both = History.merge(*(player.history() for player in players))
    merged = duelay.Decide().start(2, seed=0, clock="wall").replay(both)
    duel = duels[7]  # the fourth of the second player
    assert duel.id == 3 and merged.tell(both.numbers[1][duel.id], at=START + 50) == "counted"
    heard = np.flatnonzero(merged.history().is_heard)
    assert heard.tolist() == [7] and merged.history().at[7] == round(START + 3, 6)
    assert (merged.history().first[7], merged.history().second[7]) == duel[1:]


def test_in_a_merged_history_an_arm_is_there_as_long_as_it_is_in_any():
    rows = {"second": [1] * 4, "delay": [NAN] * 4, "first_won": [NAN] * 4}
    one = History(
        n_arms=4, first=[0, 0, 2, 0], at=START + np.array([0, 2, 4, 6.0]), arms=tuple("abcd"),
        changes=[(1, "c", "joined"), (1, "d", "retired"), (3, "c", "retired")], **rows,
    )  # fmt: skip
    other = History(
        n_arms=4, first=[0, 0, 2, 3], at=START + np.array([1, 3, 5, 7.0]), arms=tuple("abcd"),
        changes=[(2, "c", "joined"), (4, "d", "retired")], **rows,
    )  # fmt: skip
    found = History.merge(one, other)
    assert [change[:3] for change in found.changes] == [(1, "c", "joined"), (8, "d", "retired")]
    assert found.joined.tolist() == [0, 0, 1, 0] and found.declared is None
    without = History(
        n_arms=3, first=[0] * 4, at=START + np.arange(4.0), arms=("a", "b", "d"), **rows
    )
    assert History.merge(without, one).arms == ("a", "b", "d", "c")
    with pytest.raises(ValueError, match="got 'd' not in all"):
        History.merge(one, dataclasses.replace(without, arms=("a", "b", "c")))


@pytest.mark.parametrize(
    "other, message",
    [
        (by_clock(arms=("red", "x", "y", "z")), "must have the same arms to be merged, got"),
        (by_clock(window="3h"), "must have the same window to be merged, got 2h and 3h"),
        (by_clock(votes=True), "must have the same feedback to be merged"),
        (
            History(n_arms=2, first=[0], second=[1], delay=[NAN], first_won=[NAN]),
            "must go by the clock to be merged",
        ),
    ],
)
def test_what_cannot_be_merged_is_refused(other, message):
    with pytest.raises(ValueError, match=message):
        History.merge(by_clock(), other)
    with pytest.raises(ValueError, match="^merge "):
        History.merge()


def test_the_command_checks_a_log_with_times(tmp_path, monkeypatch, capsys):
    by_clock(votes=True).to_csv(tmp_path / "duels.csv")
    asked = ["duelay", "check", str(tmp_path / "duels.csv"), "--window", "1h30m", "--json"]
    monkeypatch.setattr("sys.argv", asked)
    with contextlib.suppress(SystemExit):
        cli.run()
    told = json.loads(capsys.readouterr().out)
    assert (told["duels"], told["window"], told["feedback"]) == (200, "1h30m", "votes")
    monkeypatch.setattr("sys.argv", [*asked[:4], "soon"])
    with pytest.raises(SystemExit):
        cli.run()
    assert "--window must be a duration such as '14d'" in capsys.readouterr().err
