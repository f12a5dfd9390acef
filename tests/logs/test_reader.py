"""Logs of strangers: whatever they are in, the history is the same; bad rows are named."""

import csv
import dataclasses
import datetime
import gzip
import io
import sys
import time
import tracemalloc
import zoneinfo

import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duelay import History
from helpers import calls

UTC = datetime.UTC
NAN = np.nan
NAMES = {"shown_at": "ts", "first": "left", "second": "right", "answered_at": "click"}
FIELDS = ("first", "second", "delay", "first_won", "at", "unit")


def assert_same(found, wanted):
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), err_msg=name)
    for name in ("arms", "window", "feedback", "order", "now"):
        assert getattr(found, name) == getattr(wanted, name), name


def at(text):
    """Seconds since the epoch of a time in UTC."""
    return datetime.datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def columns(**more):
    """A table as a mapping of columns: three duels within a minute."""
    return {
        "shown_at": ["2026-05-01T12:00:00Z", "2026-05-01T12:00:10Z", "2026-05-01T12:00:20Z"],
        "first": ["a", "b", "a"],
        "second": ["b", "a", "c"],
        "answered_at": ["2026-05-01T12:00:05Z", "", "2026-05-01T12:00:20.5Z"],
    } | more


def write(path, *lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


# Every source gives the same.


def in_every_form(folder, table):
    """A mapping of lists as every kind of source."""
    path = folder / "duels.csv"
    rows = [list(table), *zip(*table.values(), strict=True)]
    for mark in ",;\t":
        text = io.StringIO()
        csv.writer(text, delimiter=mark).writerows(rows)
        path = folder / f"by-{ord(mark)}.csv"
        path.write_text(text.getvalue(), encoding="utf-8", newline="")
        yield path
    packed = folder / "duels.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    yield str(packed)
    marked = folder / "excel.csv"
    marked.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    yield marked
    arrow = pyarrow.table(table)
    pyarrow.parquet.write_table(arrow, folder / "duels.parquet")
    pyarrow.parquet.write_table(arrow, folder / "no-ending")
    yield from (folder / "duels.parquet", folder / "no-ending", arrow, table)
    yield pandas.DataFrame(table, index=[7.5, 1.0, 3.0])
    yield polars.DataFrame(table)
    yield {name: np.array(column) for name, column in table.items()}
    yield {name: iter(column) for name, column in table.items()}


def test_every_source_gives_the_same_history(tmp_path):
    table = columns(unit=["x", "y", "x"], page=[1, 2, 3])
    found = [History.read(source) for source in in_every_form(tmp_path, table)]
    assert len(found) == 13
    for history in found:
        assert_same(history, found[0])
    assert found[0].at.tolist() == [at(f"2026-05-01T12:00:{s}") for s in ("00", "10", "20")]
    np.testing.assert_array_equal(found[0].delay, [5, NAN, 0.5])
    assert found[0].arms == ("a", "b", "c") and found[0].unit.tolist() == [0, 1, 0]


def stamps(zone):
    """Two columns of datetimes."""
    given_ = columns()
    read = [
        [datetime.datetime.fromisoformat(text) if text else None for text in given_[name]]
        for name in ("shown_at", "answered_at")
    ]
    if zone is not None:
        read = [[t and t.astimezone(zoneinfo.ZoneInfo(zone)) for t in column] for column in read]
    return dict(zip(("shown_at", "answered_at"), read, strict=True))


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
def test_timestamps_of_frames_are_read_with_their_zone_and_by_the_zone_told_without(zone):
    wanted, table = History.read(columns()), columns(**stamps(zone))
    naive = columns() | {
        name: [t and t.replace(tzinfo=None) for t in column]
        for name, column in stamps(zone).items()
    }
    frame = pandas.DataFrame(table)
    assert str(frame.dtypes["shown_at"].tz) == zone
    arrow = pyarrow.table(table)
    nano = [
        arrow.set_column(k, name, arrow[name].cast(pyarrow.timestamp("ns", tz=zone)))
        for k, name in ((0, "shown_at"), (3, "answered_at"))
    ]
    aware = [table, frame, polars.DataFrame(table), arrow, *nano, frame.astype(object)]
    aware.append(arrow.to_pandas(types_mapper=pandas.ArrowDtype))
    for source in aware:
        assert_same(History.read(source), wanted)
        assert_same(History.read(source, zone="America/Lima"), wanted)  # its own zone is better
    frame = pandas.DataFrame(naive)
    stamped = {
        name: np.array(naive[name], dtype="datetime64[ms]") for name in ("shown_at", "answered_at")
    }
    arrow = pyarrow.table(naive)
    local = [naive, frame, polars.DataFrame(naive), arrow, naive | stamped]
    local.append(arrow.to_pandas(types_mapper=pandas.ArrowDtype))
    for source in local:
        assert_same(History.read(source, zone=zone), wanted)
        with pytest.raises(ValueError, match=r"row 0: shown_at must"):
            History.read(source)


@pytest.mark.parametrize("scale", [1, 10**3, 10**6, 10**9])
def test_numbers_since_the_epoch_are_told_apart_by_their_size(tmp_path, scale):
    wanted = History.read(columns())
    shown = [round(s * scale) for s in wanted.at.tolist()]
    answered = [shown[0] + 5 * scale, None, shown[2] + 2 * scale]
    heard = ["2026-05-01T12:00:05Z", None, "2026-05-01T12:00:22Z"]
    wanted = History.read(columns(answered_at=heard))
    table = columns(shown_at=shown, answered_at=answered)
    for source in in_every_form(tmp_path, table):
        if not (isinstance(source, dict) and isinstance(source["first"], np.ndarray)):
            assert_same(History.read(source), wanted)
    exact = columns(shown_at=[str(s + 1e-6) for s in wanted.at.tolist()], answered_at=[""] * 3)
    assert History.read(exact).at.tolist() == [round(s + 1e-6, 6) for s in wanted.at.tolist()]


@pytest.mark.parametrize("number", [0, 12.5, 99_999_999, -1.7e9, 1e21, "17", "1e300"])
def test_other_numbers_are_no_times(number):
    with pytest.raises(ValueError, match="shown_at must"):
        History.read(columns(shown_at=[number, *columns()["shown_at"][1:]]))
    with pytest.raises(ValueError, match="shown_at must"):
        History.read(columns(shown_at=[number] * 3))


def test_digits_are_a_number_even_where_iso_8601_could_take_them_for_a_date():
    found = History.read(columns(shown_at=[1_712_010_112_345] * 3, answered_at=[""] * 3))
    texts = History.read(columns(shown_at=["1712010112345"] * 3, answered_at=[""] * 3))
    mixed = ["1712010112345", "2024-04-01T22:21:52.345Z", "20240401T222152.345Z"]
    mixed = History.read(columns(shown_at=mixed, answered_at=[""] * 3))
    assert found.at.tolist() == texts.at.tolist() == mixed.at.tolist() == [1_712_010_112.345] * 3


def test_a_format_is_followed(tmp_path):
    path = write(
        tmp_path / "duels.csv",
        "ts;left;right;click",
        "01.05.2026 14:00;a;b;01.05.2026 14:07",
        "01.05.2026 14:01;b;a; ",
    )
    told = {"columns": NAMES, "time_format": "%d.%m.%Y %H:%M"}
    history = History.read(path, zone="Europe/Berlin", **told)
    assert history.at.tolist() == [at("2026-05-01T12:00"), at("2026-05-01T12:01")]
    np.testing.assert_array_equal(history.delay, [420, NAN])
    aware = columns(shown_at=["1/5/26 +0200"] * 3, answered_at=[None] * 3)
    found = History.read(aware, time_format="%d/%m/%y %z")
    assert found.at.tolist() == [at("2026-04-30T22:00")] * 3
    with pytest.raises(ValueError, match=r"line 2: ts \(shown_at\)"):
        History.read(path, **told)
    write(path, "ts;left;right;click", "2026-05-01;a;b;")
    with pytest.raises(ValueError, match="%d.%m.%Y %H:%M.*2026-"):
        History.read(path, zone="Europe/Berlin", **told)
    for wrong in ("", "ISO", 5):
        with pytest.raises(ValueError, match="time_format must"):
            History.read(path, time_format=wrong)


# Zones.


def in_berlin(*rows):
    shown, answered = zip(*rows, strict=True)
    table = {"shown_at": shown, "first": ["a"] * len(rows), "second": ["b"] * len(rows)}
    return table | {"answered_at": answered}


def test_in_the_hour_that_a_clock_shows_twice_an_answer_is_not_before_its_duel():
    rows = [
        ("2026-10-25 01:59", "2026-10-25 02:10"),  # the first 02:10
        ("2026-10-25 02:50", "2026-10-25 02:10"),  # the second
        ("2026-10-25 02:50", "2026-10-25 02:55"),
        ("2026-10-25 02:59", "2026-10-25 03:00"),
        ("2026-10-25 03:00", "2026-10-25T02:30+01:00"),
    ]
    history = History.read(in_berlin(*rows[:4]), zone="Europe/Berlin")
    assert history.delay.tolist() == [11 * 60, 20 * 60, 5 * 60, 61 * 60]
    with pytest.raises(ValueError, match="row 4: answered_at must"):
        History.read(in_berlin(*rows), zone="Europe/Berlin")


def test_a_time_that_clocks_skip_is_a_bad_row():
    table = in_berlin(("2026-03-29 01:59:59", None), ("2026-03-29 02:30", None))
    with pytest.raises(ValueError, match="row 1: shown_at must"):
        History.read(table, zone="Europe/Berlin")
    History.read(table, zone="UTC")
    History.read(table, zone=zoneinfo.ZoneInfo("Africa/Lagos"))


@pytest.mark.parametrize(
    "zone",
    ["Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "America/Havana", "Asia/Gaza",
     "Pacific/Apia", "Africa/Casablanca", "Africa/Monrovia", "America/Sao_Paulo"],
)  # fmt: skip
def test_local_times_are_those_of_zoneinfo(zone):
    """Every quarter of an hour in years of many changes, and some odd seconds."""
    place = zoneinfo.ZoneInfo(zone)
    odd = datetime.datetime(1972, 1, 6, 23, 59, 59), datetime.datetime(1972, 1, 7, 0, 44, 29)
    moments = [*odd]
    for year in (2006, 2011, 2018):
        start = datetime.datetime(year, 1, 1, 0, 1)
        moments += [start + datetime.timedelta(minutes=15 * k) for k in range(0, 366 * 96, 7)]
    wanted, kept = [], []
    for moment in moments:
        first, second = (moment.replace(tzinfo=place, fold=fold) for fold in (0, 1))
        is_skipped = first.timestamp() > second.timestamp()
        kept.append(not is_skipped)
        if not is_skipped:
            wanted.append(first.timestamp())
    n = len(moments)
    table = {"shown_at": moments, "first": ["a"] * n, "second": ["b"] * n, "answered_at": [""] * n}
    found = History.read(table, zone=zone, skip_bad=True)
    assert found.at.tolist() == sorted(wanted)
    assert len(found.skipped) == n - len(wanted)


@pytest.mark.parametrize(
    "zone, hint", [("Berlin", "Europe/Berlin"), ("europe/berlin", "Europe/Berlin"), ("x", "")]
)
def test_an_unknown_zone_is_refused(zone, hint):
    message = "^zone"
    with pytest.raises(ValueError, match=message) as told:
        History.read(columns(), zone=zone)
    assert (f"did you mean {hint}?" in str(told.value)) == bool(hint)
    for wrong in (5, "", "../etc"):
        with pytest.raises(ValueError, match=message):
            History.read(columns(), zone=wrong)


# Columns.


def test_rows_in_any_order_of_time_are_sorted_and_those_of_one_time_stay_as_they_are():
    table = {
        "shown_at": ["2026-05-01T12:00Z", "2026-04-01T12:00Z", "2026-05-01T13:00+01:00"],
        "first": ["a", "b", "c"],
        "second": ["b", "c", "a"],
        "answered_at": ["2026-05-01T12:01Z", "", "2026-05-01T12:02Z"],
        "unit": [3, 1, 2],
    }
    history = History.read(table)
    assert [history.arms[arm] for arm in history.first] == ["b", "a", "c"]
    assert history.unit.tolist() == [1, 3, 2]
    np.testing.assert_array_equal(history.delay, [NAN, 60, 120])


def test_columns_may_have_other_names_and_other_cases_and_blanks_around_them(tmp_path):
    wanted = History.read(columns())
    other = {NAMES.get(name, name): column for name, column in columns().items()}
    assert_same(History.read(other, columns=NAMES), wanted)
    assert_same(History.read({name.title(): col for name, col in columns().items()}), wanted)
    path = write(
        tmp_path / "duels.csv",
        "shown_at, first, second, answered_at",
        "2026-05-01T12:00:00Z, a, b, 2026-05-01T12:00:05Z",
        "",
        "2026-05-01T12:00:10Z, b, a,",
        "2026-05-01T12:00:20Z, a, c, 2026-05-01T12:00:20.5Z",
    )
    assert_same(History.read(path), wanted)


def test_arms_of_a_csv_keep_their_blanks(tmp_path):
    """Duelay writes them so; and two that differ are two."""
    path = write(tmp_path / "duels.csv", "first,second,delay", "a, a,1", "b ,a,")
    assert History.read(path).arms == ("a", " a", "b ")


@pytest.mark.parametrize(
    "left_out, told, message",
    [
        ("shown_at", {}, "'shown_at' is missing.*: first, second, answered_at"),
        ("first", {}, "'first' is missing"),
        ("second", {}, "'second' is missing"),
        ("answered_at", {}, "'answered_at' is missing"),
        ("second", {"first": None}, "'first', 'second' are missing"),
        ("", {"shown": "ts"}, "columns"),
        ("", {"shown_at": "shownat"}, r"no column 'shownat' \(did you mean shown_at\?\) for sho"),
        ("", {"winner": "x"}, "'x' for winner.*: shown_at, first, second"),
    ],
)
def test_a_column_that_is_missing_is_named_with_those_that_are_there(left_out, told, message):
    table = columns()
    table.pop(left_out, None)
    with pytest.raises(ValueError, match=message):
        History.read(table, columns=told)


@pytest.mark.parametrize("name", ["winer", "Winners", "units", "answered-at"])
def test_a_near_miss_is_pointed_out_and_may_be_declared_to_be_another(name):
    table = columns(winner=["first", "", "tie"])
    role = {"winer": "winner", "Winners": "winner", "units": "unit"}.get(name, "answered_at")
    table[name] = table.pop(role, ["x", "y", "z"])
    with pytest.raises(ValueError, match=rf"'{name}' \(did you mean {role}\?\)"):
        History.read(table)
    if role == "winner":
        assert History.read(table, columns={"winner": None}).feedback == "conversions"
        assert History.read(table, columns={"winner": name}).feedback == "votes"
    if role == "unit":
        assert History.read(table, columns={"unit": None}).unit is None


def test_columns_of_one_name_are_refused(tmp_path):
    path = write(tmp_path / "duels.csv", "first,second,delay,first", "a,b,1,c")
    with pytest.raises(ValueError, match="two columns for first"):
        History.read(path)
    twice = columns(First=["x"] * 3)
    assert History.read(twice).arms == ("a", "b", "c")  # the exact name is meant
    twice["FIRST"] = twice.pop("first")
    with pytest.raises(ValueError, match="two columns for first"):
        History.read(twice)


def test_times_go_before_a_delay_that_nobody_asked_for():
    table = columns(delay=[5, 7, 9])
    assert History.read(table).at is not None
    assert History.read(table, columns={"delay": "delay"}).at is None


@pytest.mark.parametrize("source", [5, None, [1, 2], object(), iter([])])
def test_what_is_no_table_is_refused(source):
    with pytest.raises(ValueError, match="source must"):
        History.read(source)
    with pytest.raises(ValueError, match=r"columns must"):
        History.read(columns(first=["a", "b"]))


# Votes.


def votes(winners, **more):
    n = len(winners)
    return {"model_a": ["x"] * n, "model_b": ["y"] * n, "winner": winners} | more


ARENA = {"first": "model_a", "second": "model_b"}


def test_winners_may_be_words_arms_or_columns():
    said = ["model_a", "model_b", "tie", "tie (bothbad)", "FIRST", " second ", "y", "x ", "Draw"]
    history = History.read(votes(said), columns=ARENA)
    assert history.first_won.tolist() == [1, 0, 0.5, 0.5, 1, 0, 0, 1, 0.5]
    words = History.read(votes(["model_b", "tie", "", None, "NaN", "second"]), columns=ARENA)
    np.testing.assert_array_equal(words.first_won, [0, 0.5, NAN, NAN, NAN, 0])


def test_results_alone_are_heard_at_once():
    history = History.read(votes(["x", None, "y"]), columns=ARENA)
    assert history.at is None and history.feedback == "votes"
    np.testing.assert_array_equal(history.delay, [1, NAN, 1])
    timed = votes(["x", "", "y"], ts=["2026-05-01T12:00Z"] * 3)
    history = History.read(timed, columns=ARENA | {"shown_at": "ts"})
    np.testing.assert_array_equal(history.delay, [0, NAN, 0])


@pytest.mark.parametrize(
    "winner, first, second, won",
    [
        ("second", "second", "b", None),  # the arm in first place, or the second
        ("second", "b", "second", 0),
        ("Second", "second", "b", 0),  # the case of an arm is its own
        ("tie", "tie", "b", None),
        ("tie-v2", "tie-v2", "b", 1),  # an arm; a mere beginning is no word
        ("draw", "b", "a", 0.5),
        ("none", "b", "none", 0),
        ("model_a", "b", "model_a", None),
        ("model_a", "model_a", "b", 1),
        ("a", "a", "a", None),
        ("first", "a", "a", 1),
        ("first", "first", "first", 1),
        ("both", "a", "b", None),
        ("1", 1.0, 2.0, 1),
        (2.0, 1, 2, 0),
    ],
)
def test_a_winner_that_may_mean_either_arm_is_refused(winner, first, second, won):
    table = {"model_a": [first, "p"], "model_b": [second, "q"], "winner": [winner, "p"]}
    if won is None:
        with pytest.raises(ValueError, match="row 0: winner must"):
            History.read(table, columns=ARENA)
    else:
        assert History.read(table, columns=ARENA).first_won[0] == won


@pytest.mark.parametrize(
    "nothing", ["", " ", "null", "NULL", "None", "nan", "NaN", "NaT", "NA", "n/a", "<NA>", r"\N"]
)
def test_cells_that_say_nothing(tmp_path, nothing):
    path = tmp_path / "duels.csv"
    write(path, "first,second,delay,winner", f"a,b,{nothing},{nothing}", "b,a,1,tie")
    assert History.read(path).is_heard.tolist() == [False, True]
    shown = "2026-05-01T12:00Z"
    write(path, "shown_at,first,second,answered_at", f"{shown},a,b,{nothing}", f"{shown},b,a,")
    assert not History.read(path).is_heard.any()
    write(path, "first,second,delay,unit", "a,b,,7", f"b,a,1,{nothing}")
    with pytest.raises(ValueError, match="line 3: unit must"):
        History.read(path)


# Units.


@pytest.mark.parametrize(
    "units, numbers",
    [
        ([5, 2**62, 5], [5, 2**62, 5]),
        (["5", "-7", "5"], [5, -7, 5]),
        (["05", "5", "05"], [0, 1, 0]),
        ([1.0, 2.0, 1.0], [1, 2, 1]),
        (["p1", "p2", "p1"], [0, 1, 0]),
        ([str(2**70), "1", str(2**70)], [0, 1, 0]),
    ],
)
def test_units_have_numbers(units, numbers):
    assert History.read(columns(unit=units)).unit.tolist() == numbers


def test_units_are_the_same_across_parts_of_a_table(monkeypatch):
    monkeypatch.setattr("duelay.logs.table.ROWS", 2)
    n = 7
    table = {"first": ["a"] * n, "second": ["b"] * n, "delay": [1] * n}
    found = History.read(table | {"unit": ["4", "9", "4", "9", "x", "4", "x"]})
    assert found.unit.tolist() == [0, 1, 0, 1, 2, 0, 2]


# Bad rows.

GOOD = "2026-05-01T12:00:00Z,a,b,2026-05-01T12:00:05Z,first,u1"
BAD = {  # a row, and what is said of it
    "soon,a,b,,,u1": "shown_at .* 'soon'",
    ",a,b,,,u1": "shown_at .* ''",
    "2026-05-01T12:00:00,a,b,,,u1": "shown_at .*zone",
    "2026-13-01T12:00:00Z,a,b,,,u1": "shown_at .* '2026-13-01T",
    "9999-01-01T12:00:00Z,a,b,,,u1": "shown_at .* '9999",
    "2026-05-03T12:00:00Z,a,b,,,u1": "shown_at .* now.* '2026-05-03T",
    "2026-05-01T12:00:00Z,,b,,,u1": "first .* ''",
    "2026-05-01T12:00:00Z,a, ,,,u1": "second .* ' '",
    "2026-05-01T12:00:00Z,a,d,,,u1": "second .* 'd'",
    "2026-05-01T12:00:00Z,a,b,never,tie,u1": "answered_at .* 'never'",
    "2026-05-01T12:00:00Z,a,b,2026-05-01T11:59Z,tie,u1": "answered_at .* shown_at",
    "2026-05-01T12:00:00Z,a,b,2026-05-01T12:01Z,c,u1": "winner .* 'c'",
    "2026-05-01T12:00:00Z,a,b,2026-05-01T12:01Z,,u1": "winner .* ''",
    "2026-05-01T12:00:00Z,a,b,,a,u1": "winner .* answered_at .* 'a'",
    "2026-05-01T12:00:00Z,a,b,,,": "unit .* ''",
    "2026-05-01T12:00:00Z,a,b,": ".*too short.* winner",
    "2026-05-01T12:00:00Z,a,b,,,u1,": ".*longer",
}
TOLD = {"arms": ("a", "b", "c"), "now": "2026-05-02T00:00Z"}


@pytest.mark.parametrize("row", BAD)
def test_a_bad_row_is_refused_with_its_line_and_column_or_skipped(tmp_path, row):
    header = "shown_at,first,second,answered_at,winner,unit"
    path = write(tmp_path / "duels.csv", header, GOOD, row, GOOD, row)
    with pytest.raises(ValueError, match=rf"duels.csv, line 3: {BAD[row]}"):
        History.read(path, **TOLD)
    history = History.read(path, skip_bad=True, **TOLD)
    assert history.n == 2 and [s.split(":")[0] for s in history.skipped] == ["line 3", "line 5"]
    assert_same(history, History.read(write(path, header, GOOD, GOOD), **TOLD))


def test_bad_rows_have_their_lines_whatever_stands_before_them(tmp_path, monkeypatch):
    """Also where cells have line breaks, and where the table is read in parts."""
    rows = ["first,second,delay", 'a,"b\nc\r\nd",1', "", "a,b,x", 'b,"\n",y', "a,b,1,2", "a,b,z"]
    path = tmp_path / "duels.csv"
    path.write_text("\n".join(rows) + "\n", newline="")
    for size in (1, 2, 3, 100):
        monkeypatch.setattr("duelay.logs.csv_format.ROWS", size)
        history = History.read(path, skip_bad=True)
        lines = [int(sentence.split(":")[0].removeprefix("line ")) for sentence in history.skipped]
        assert lines == [6, 8, 9, 10]
        assert history.arms == ("a", "b\nc\r\nd")


def test_a_bad_row_brings_no_arm():
    table = columns(first=["a", "z", "a"], answered_at=["", "x", ""])
    assert History.read(table, skip_bad=True).arms == ("a", "b", "c")


def test_where_all_rows_are_bad_the_first_says_why():
    with pytest.raises(ValueError, match="3 bad rows .*row 0: shown_at"):
        History.read(columns(shown_at=["x"] * 3), skip_bad=True)
    with pytest.raises(ValueError, match="no duels in it$"):
        History.read({name: [] for name in columns()})
    with pytest.raises(ValueError, match="skip_bad must"):
        History.read(columns(), skip_bad="no")


def test_bad_cells_of_frames_are_shown():
    frame = pandas.DataFrame(columns(first=["a", None, "a"]), index=[5, 6, 7])
    with pytest.raises(ValueError, match="row 1: first"):
        History.read(frame)
    table = pyarrow.table({"first": ["a", "b"], "second": ["b", "a"], "delay": [1.0, 0.5]})
    with pytest.raises(ValueError, match="row 1: delay must"):
        History.read(table)
    shown = np.array(["2026-05-01", "2026-05-02", "9026-05-02"], dtype="datetime64[s]")
    with pytest.raises(ValueError, match="row 2: shown_at must"):
        History.read(columns(shown_at=shown), zone="UTC")


def test_files_that_cannot_be_read_are_refused(tmp_path):
    cut_off = tmp_path / "cut.csv.gz"
    cut_off.write_bytes(gzip.compress(b"first,second,delay\na,b,1\n" * 1000)[:-20])
    broken = tmp_path / "duels.csv"
    broken.write_bytes(b"first,second,delay\n\xff,b,1\n")
    empty = write(tmp_path / "empty.csv")
    empty.write_text("")
    for path in (cut_off, broken, tmp_path / "none.csv", tmp_path):
        with pytest.raises(ValueError, match="cannot read duels from"):
            History.read(path)
    with pytest.raises(ValueError, match=r"'first', .* missing .*none$"):
        History.read(empty)


def test_long_cells_of_other_columns_are_no_trouble(tmp_path):
    limit = csv.field_size_limit()
    path = write(tmp_path / "duels.csv", "first,second,delay,text", f"a,b,1,{'x' * 200_000}")
    assert History.read(path).n == 1 and csv.field_size_limit() == limit


# What is told.


def test_now_may_be_a_time_of_the_table():
    noon = at("2026-05-01T12:00:15")
    told = ["2026-05-01T12:00:15Z", noon, datetime.datetime.fromtimestamp(noon, UTC), str(noon)]
    for now in told:
        with pytest.raises(ValueError, match="row 2: shown_at must"):
            History.read(columns(), now=now)
        assert History.read(columns(), now=now, skip_bad=True).now == noon
    local = History.read(columns(), now="2026-05-01 14:01", zone="Europe/Berlin")
    assert local.now == at("2026-05-01T12:01")
    format_ = {"zone": "Europe/Berlin", "time_format": "%H:%M %d.%m.%Y"}
    table = columns(shown_at=["14:00 01.05.2026"] * 3, answered_at=[""] * 3)
    for now in ("14:01 01.05.2026", "2026-05-01T12:01Z"):
        assert History.read(table, now=now, **format_).now == local.now
    for wrong in ("noon", "2026-05-01 14:01"):
        with pytest.raises(ValueError, match="^now must"):
            History.read(columns(), now=wrong)


def test_an_answer_after_now_is_silence_yet():
    history = History.read(columns(), now="2026-05-01T12:00:20.4Z")
    assert history.is_heard.tolist() == [True, False, False]


def test_a_file_of_duelay_is_read_as_it_was_written_or_in_part(tmp_path):
    path = tmp_path / "duels.parquet"
    written = History.read(columns(unit=[4, 5, 4]), order="coin", window="1h", chosen_by="rmed")
    written.to_parquet(path)
    assert_same(History.read(path), written)
    assert History.read(path).chosen_by == "rmed"
    shorter = History.read(path, window="1s", order="champion", now="2026-05-01T13:00Z")
    assert shorter.is_heard.tolist() == [False, False, True]
    assert (str(shorter.window), shorter.order) == ("1s", "champion")
    assert shorter.now == at("2026-05-01T13:00")
    assert str(History.read(path, now="2026-05-01T13:00Z").window) == "1h"
    for told, message in [
        ({"window": "2h"}, "window .* 1h, .*duels.parquet, got 2h"),
        ({"window": 5}, "window"),
        ({"arms": ("b", "a", "c")}, "arms .*duels.parquet, a, b, c"),
    ]:
        with pytest.raises(ValueError, match=message):
            History.read(path, **told)
    assert_same(
        History.read(path, columns={"first": "second", "second": "first"}, arms="abc"),
        dataclasses.replace(
            written, first=written.second, second=written.first, window=None, order=None
        ),
    )


def test_a_csv_needs_no_pyarrow_and_frames_need_nothing_else(tmp_path, monkeypatch):
    path = write(tmp_path / "duels.csv", "first,second,delay", "a,b,1")
    for name in ("pyarrow", "pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    assert History.read(path).n == History.read(str(path)).n == 1
    with pytest.raises(ModuleNotFoundError, match="needs pyarrow: install it"):
        History.read(tmp_path / "x.parquet")


# Any history, written by anybody.

ARM = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1).filter(
    lambda name: name.strip() and name.strip().lower() not in ("first", "second", "tie", "draw")
)
FORMATS = {None: "us", "%Y-%m-%d %H:%M:%S.%f": "us", "%d/%m/%Y %I:%M:%S %p": "s"}


@st.composite
def logs(draw):
    """A history, its rows as somebody has written them, and what to tell the reader."""
    n = draw(st.integers(1, 12))
    arms = draw(st.lists(ARM, min_size=2, max_size=4, unique_by=str.strip))
    form = draw(st.sampled_from(list(FORMATS)))
    kind = draw(st.sampled_from(["local", "aware", "epoch"])) if form is None else "local"
    zone = zoneinfo.ZoneInfo(draw(st.sampled_from(["UTC", "Asia/Tokyo", "America/Lima"])))
    step = 10**6 if FORMATS[form] == "s" else 1  # in microseconds, as all times here
    whole, parts = st.integers(10**8, 4 * 10**9), st.integers(0, 999_999 if step == 1 else 0)
    moments = st.tuples(whole, parts).map(lambda pair: pair[0] * 10**6 + pair[1])
    rows = []
    for moment in draw(st.lists(moments, min_size=n, max_size=n)):
        heard = draw(st.booleans())
        rows.append({
            "at": moment,
            "first": draw(st.sampled_from(range(len(arms)))),
            "second": draw(st.sampled_from(range(len(arms)))),
            "answered": moment + step * draw(st.integers(0, 10**9)) if heard else None,
            "won": draw(st.sampled_from([0.0, 0.5, 1.0])) if heard else NAN,
            "unit": draw(st.integers(-5, 5)),
        })  # fmt: skip
    is_vote, has_unit = draw(st.booleans()), draw(st.booleans())
    roles = ["shown_at", "first", "second", "answered_at"]
    roles += ["winner"] * is_vote + ["unit"] * has_unit

    def text(moment):
        if kind == "epoch":
            return str(moment)
        moment = datetime.datetime.fromtimestamp(0, UTC) + datetime.timedelta(microseconds=moment)
        moment = moment.astimezone(zone)
        if kind == "local":
            moment = moment.replace(tzinfo=None)
        return moment.strftime(form) if form else moment.isoformat(draw(st.sampled_from("T ")))

    def cells(row):
        names = arms[row["first"]], arms[row["second"]]
        words = {1.0: "First", 0.0: "SECOND", 0.5: "tie (both)"}
        said = words.get(row["won"], "")
        if row["won"] in (0.0, 1.0) and names[0] != names[1] and draw(st.booleans()):
            said = names[row["won"] == 0.0]
        cell = {"shown_at": text(row["at"]), "first": names[0], "second": names[1]}
        cell["answered_at"] = text(row["answered"]) if row["answered"] else ""
        return cell | {"winner": said, "unit": str(row["unit"])}

    written = [cells(row) for row in draw(st.permutations(rows))]
    header = draw(st.permutations([*roles, "extra"]))
    others = draw(st.booleans())
    names = {role: f"my {role[::-1]}" if others else role for role in header}
    mark = draw(st.sampled_from(",;\t"))
    told = {"columns": {role: names[role] for role in roles} if others else None}
    told |= {"zone": str(zone) if kind == "local" else None, "time_format": form, "arms": arms}
    return rows, written, is_vote, has_unit, header, names, mark, told


@pytest.mark.long
@settings(deadline=None, max_examples=150)
@given(logs())
def test_a_history_that_anybody_has_written_is_read_as_it_was(tmp_path_factory, log):
    rows, written, is_vote, has_unit, header, names, mark, told = log
    path = tmp_path_factory.mktemp("log") / "duels.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=mark)
        writer.writerow([names[role] for role in header])
        for cell in written:
            writer.writerow([(cell | {"extra": "x"})[role] for role in header])
    found = History.read(path, **told)
    if not is_vote:
        rows = [row | {"won": 1.0 if row["won"] == row["won"] else NAN} for row in rows]

    def listed(history):
        each = (history.at, history.first, history.second, history.delay, history.first_won)
        units = history.unit if has_unit else np.zeros(history.n)
        return sorted(map(repr, zip(*(c.tolist() for c in (*each, units)), strict=True)))

    rows = sorted(rows, key=lambda row: row["at"])
    delay = [(row["answered"] - row["at"]) / 1e6 if row["answered"] else NAN for row in rows]
    wanted = History(
        n_arms=len(told["arms"]), arms=told["arms"], first=[row["first"] for row in rows],
        second=[row["second"] for row in rows], delay=delay,
        first_won=[row["won"] for row in rows], at=[row["at"] / 1e6 for row in rows],
        feedback="votes" if is_vote else "conversions",
        unit=[row["unit"] for row in rows] if has_unit else None,
    )  # fmt: skip
    assert listed(found) == listed(wanted)
    assert (np.diff(found.at) >= 0).all() and found.arms == wanted.arms
    assert found.now == wanted.now and (found.unit is None) == (wanted.unit is None)


# Speed.


def plain_log(folder, n):
    lines, start = ["shown_at,first,second,answered_at,winner,unit"], datetime.datetime(2026, 1, 1)
    for k in range(n):
        shown = start + datetime.timedelta(seconds=k)
        heard = shown + datetime.timedelta(seconds=9)
        lines.append(f"{shown},a{k % 5},b{k % 3},{heard},tie,v{k % 99}")
    return write(folder / f"{n}.csv", *lines)


@pytest.mark.long
def test_ten_times_the_rows_take_ten_times_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr("duelay.logs.csv_format.ROWS", 1000)
    paths = [plain_log(tmp_path, n) for n in (2000, 20_000)]
    few, many = (
        calls(lambda path=path: History.read(path, zone="Europe/Berlin")) for path in paths
    )
    assert many < 11 * few, (few, many)


@pytest.mark.long
def test_beside_the_arrays_memory_is_what_a_part_needs(tmp_path, monkeypatch):
    monkeypatch.setattr("duelay.logs.csv_format.ROWS", 1000)
    used = []
    for n in (2000, 20_000):
        path = plain_log(tmp_path, n)
        tracemalloc.start()
        History.read(path, zone="Europe/Berlin")
        used.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert used[1] - used[0] < 18_000 * 160, used  # bytes: 20 numbers a row; a row of texts has 400


def test_a_csv_of_another_encoding(tmp_path):
    path = tmp_path / "old.csv"
    path.write_bytes(
        "shown_at,first,second,answered_at\n2026-05-01T12:00:00Z,grün,blau,\n".encode("latin-1")
    )
    with pytest.raises(ValueError, match="encoding"):
        History.read(path)
    assert History.read(path, encoding="latin-1").arms == ("grün", "blau")
    with pytest.raises(ValueError, match="encoding must"):
        History.read(path, encoding="latin-x")


def test_a_quote_that_is_left_open_is_pointed_out_in_few_words(tmp_path):
    path = tmp_path / "open.csv"
    rows = "".join(f"2026-05-01T12:00:{n:02d}Z,a,b,\n" for n in range(50))
    path.write_text('shown_at,first,second,answered_at\n2026-05-01T11:00:00Z,a,"b,\n' + rows)
    with pytest.raises(ValueError, match="a cell has 5. lines") as refused:
        History.read(path)
    assert len(str(refused.value)) < 300


def test_a_lazy_frame_is_collected():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"first": ["a", "b"], "second": ["b", "a"], "winner": ["a", "b"]})
    assert History.read(frame.lazy()).first_won.tolist() == [1.0, 1.0]


ZONED = [
    ("2026-05-01 12:00:00 UTC", None),
    ("2026-05-01T12:00:00 GMT", None),
    ("2026-05-01 12:00:00utc", None),
    ("2026-05-01 14:00:00 +0200", None),
    ("2026-05-01 12:00:00,000 +00:00", None),
    ("2026-05-01 12:00 UTC", "%Y-%m-%d %H:%M %Z"),
    ("2026-05-01 12:00 gmt", "%Y-%m-%d %H:%M %Z"),
    ("2026-05-01 12:00 UTC", "%Y-%m-%d %H:%M UTC"),
    ("Fri, 01 May 2026 12:00:00 GMT", "%a, %d %b %Y %H:%M:%S GMT"),
    ("Fri May 01 2026 14:00:00 GMT+0200", "%a %b %d %Y %H:%M:%S GMT%z"),
]


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("text, time_format", ZONED)
def test_utc_and_gmt_are_zones(text, time_format, zone):
    """A zone that is named for times without one does not change them."""
    table = {"shown_at": [text] * 2, "first": ["a", "b"], "second": ["b", "a"],
             "answered_at": [text, ""]}  # fmt: skip
    found = History.read(table, time_format=time_format, zone=zone)
    assert found.at.tolist() == [at("2026-05-01T12:00")] * 2
    mixed = table | {"shown_at": [text, "1777636800" if time_format is None else text]}
    assert (
        History.read(mixed, time_format=time_format, zone=zone).at.tolist()
        == [at("2026-05-01T12:00")] * 2
    )


def test_other_names_of_zones_are_refused_wherever_the_reader_is(monkeypatch):
    table = {"shown_at": ["2026-05-01 12:00 CET"], "first": ["a"], "second": ["b"],
             "answered_at": [""]}  # fmt: skip
    for zone in ("UTC", "Europe/Berlin"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        with pytest.raises(ValueError, match="%Z is UTC or GMT"):
            History.read(table, time_format="%Y-%m-%d %H:%M %Z", zone="Europe/Berlin")
    monkeypatch.undo()
    time.tzset()
    for text in ("2026-05-01T12:00+02:00 UTC", "UTC", "noon GMT"):
        with pytest.raises(ValueError, match="shown_at must be a time"):
            History.read(table | {"shown_at": [text]})


@pytest.mark.parametrize(
    "columns",
    [
        {"shown_at": ["2026-05-01 12:00", "2026-05-01 12:01"]},  # no zone
        {"shown_at": ["2026-05-01T12:00Z", ""], "answered_at": ["", "2026-05-01T12:00Z"]},
        {"answered_at": ["2026-05-01 12:00", ""]},
    ],
)
def test_times_that_are_missing_where_there_are_winners_are_said_to_be_unnecessary(columns):
    table = {"first": ["a", "b"], "second": ["b", "a"], "winner": ["a", "b"]} | columns
    with pytest.raises(ValueError, match="times"):
        History.read(table)
    found = History.read(table, columns={"shown_at": None})
    assert found.at is None and found.first_won.tolist() == [1.0, 1.0]
    del table["winner"]
    with pytest.raises(ValueError) as refused:
        History.read(table)
    assert "a log with winners" not in str(refused.value)


def test_a_log_without_times_is_told_of_winners():
    with pytest.raises(ValueError, match="column winner"):
        History.read({"first": ["a"], "second": ["b"], "won": ["a"]})


@pytest.mark.parametrize("mark", [";", "\t"])
def test_numbers_may_have_decimal_commas_where_no_comma_parts_the_cells(tmp_path, mark):
    path = tmp_path / "log.csv"
    rows = ["shown_at;first;second;answered_at", "1777636800,5;a,1;b,2;1777636802,25",
            "1777636801;b,2;a,1;"]  # fmt: skip
    path.write_text("\n".join(rows).replace(";", mark) + "\n", encoding="utf-8-sig")
    found = History.read(path)
    assert found.arms == ("a,1", "b,2")  # a name is as it is
    assert found.at.tolist() == [1777636800.5, 1777636801.0] and found.delay[0] == 1.75
    path.write_text("first;second;delay\na;b;1,5\nb;a;\n".replace(";", mark))
    assert History.read(path).delay[0] == 1.5
    for cell in ("1,5,2", "1.000,5", "a,5"):
        path.write_text(f"first;second;delay\na;b;{cell}\nb;a;\n".replace(";", mark))
        with pytest.raises(ValueError, match="line 2: delay"):
            History.read(path)
    path.write_text('first,second,delay\na,b,"1,500"\n')  # of thousands, or of a decimal?
    with pytest.raises(ValueError, match="line 2: delay"):
        History.read(path)


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_a_first_line_may_say_what_parts_the_cells(tmp_path, mark):
    """As spreadsheets write it; lines are counted as files do."""
    path = tmp_path / "log.csv"
    rows = ["first;second;winner", "a;b;a", "b;a;c"]
    text = "\r\n".join([f"sep={mark}", *rows]).replace(";", mark)
    path.write_text(text, encoding="utf-8-sig", newline="")
    with pytest.raises(ValueError, match="line 4: winner must be"):
        History.read(path)
    assert History.read(path, skip_bad=True).first_won.tolist() == [1.0]
    path.write_text("sep=;\n")
    with pytest.raises(ValueError, match="it has: none"):
        History.read(path)


def test_a_display_that_is_told_is_kept(tmp_path):
    assert History.read(columns()).display == "pair"
    told = History.read(columns(), display="one")
    assert told.display == "one"
    told.to_csv(tmp_path / "one.csv")
    assert History.read(tmp_path / "one.csv").display == "one"
    assert History.read(tmp_path / "one.csv", display="pair").display == "pair"


@pytest.mark.parametrize("text", ['{"first": "a", "second": "b"}\n', '[{"first": "a"}]'])
def test_json_is_refused_as_such(tmp_path, text):
    path = tmp_path / "duels.jsonl"
    path.write_text(text)
    with pytest.raises(ValueError, match="must be a CSV or Parquet file, but it looks like JSON"):
        History.read(path)
