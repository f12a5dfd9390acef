import copy
import datetime
import math
import pickle

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from duelay._core import checks
from duelay._core.duration import Duration, in_brief, seconds

lengths = st.floats(0, exclude_min=True, allow_infinity=False, allow_subnormal=True)
usual = st.integers(1, 10**13).map(lambda n: n / 1000)


@pytest.mark.parametrize(
    "text, length, printed",
    [
        ("14d", 1_209_600, "14d"),
        ("90s", 90, "1m30s"),
        ("2h30m", 9000, "2h30m"),
        ("1.5h", 5400, "1h30m"),
        ("250ms", 0.25, "250ms"),
        ("1w", 604_800, "7d"),
        ("1w1d1h1m1s1ms", 694_861.001, "8d1h1m1s1ms"),
        (" 0.1s ", 0.1, "100ms"),
        ("0.123456789s", 0.123456789, "0.123456789s"),
        ("0.5ms", 0.0005, "0.0005s"),
        ("1e-9s", 1e-9, "1e-09s"),
        ("0h5m", 300, "5m"),
        ("3 days", 259_200, "3d"),
        ("1 day", 86_400, "1d"),
        ("2 weeks", 1_209_600, "14d"),
        ("1.5 hours", 5400, "1h30m"),
        ("90 minutes", 5400, "1h30m"),
        ("45 seconds", 45, "45s"),
    ],
)
def test_forms_of_durations(text, length, printed):
    assert float(Duration(text)) == length
    assert str(Duration(text)) == f"{Duration(text)}" == printed
    assert repr(Duration(text)) == f"Duration('{printed}')"


@given(lengths | usual)
@example(5e-324)
@example(1.7976931348623157e308)
@example(0.1 + 0.2)
def test_a_duration_reads_back_what_it_prints_to_the_last_bit(length):
    time = Duration.of(length)
    for same in (Duration(str(time)), pickle.loads(pickle.dumps(time)), copy.deepcopy(time)):
        assert type(same) is Duration and float(same) == length and same == time
        assert hash(same) == hash(time)


@given(st.timedeltas(datetime.timedelta(microseconds=1)))
def test_a_timedelta_is_a_duration(delta):
    assert float(Duration(delta)) == delta.total_seconds()
    assert Duration(Duration(delta)) == Duration(delta)


def test_a_duration_equals_no_number_and_is_ordered_like_one():
    minute = Duration("1m")
    assert minute == Duration("60s") and not minute != Duration("60s")
    assert minute != 60 and minute != 60.0 and 60 != minute and 60.0 != minute
    assert not minute == 60.0 and not 60 == minute
    assert minute < 61 and Duration("1h") > minute and min(Duration("1h"), minute) is minute
    assert type(minute + 1) is type(2 * minute) is type(-minute) is type(minute / minute) is float


@pytest.mark.parametrize(
    "value, needs",
    [
        *((bad, "a duration such as '14d', '2h30m' or '90s'") for bad in
          ("", "x", "5", "d", "1h1h", "1m1h", "-1s", "1 h", "1H", "inf", "nan", "1_0s", "٣s",
           "1e9999s", "9" * 200 + "s", 5, 0.5, math.nan, math.inf, None, [], True)),
        *((bad, "a duration such as '14d', '2h30m' or '90s'") for bad in
          ("3 Days", "days", "3 months", "3  days", "2 hours 5m", "0x3 days")),
        *((bad, "a duration that is finite and longer than zero") for bad in
          ("0s", "0h0m", "1e999s", "1e-999s", datetime.timedelta(0), datetime.timedelta(-1))),
    ],
)  # fmt: skip
def test_what_is_no_duration_is_refused_in_one_sentence(value, needs):
    with pytest.raises(ValueError) as refused:
        checks.duration("window", value)
    assert str(refused.value) == f"window must be {needs}, got {value!r}"


@pytest.mark.parametrize("length", [0, -1.0, math.nan, math.inf])
def test_a_length_that_is_none_is_refused(length):
    with pytest.raises(ValueError, match="seconds"):
        Duration.of(length)


def test_a_window_is_none_or_ticks_or_a_duration():
    assert checks.window(None) is None
    assert checks.window(7) == 7 and type(checks.window(7.0)) is int
    for day in ("1d", Duration("24h"), datetime.timedelta(1)):
        assert checks.window(day) == Duration("1d")
    with pytest.raises(ValueError, match="window must"):
        checks.window(0)
    with pytest.raises(ValueError, match="window must"):
        checks.window("soon")


def test_a_duration_is_not_taken_for_a_number():
    with pytest.raises(ValueError, match="n must"):
        checks.whole("n", Duration("1m"))
    with pytest.raises(ValueError, match="p must"):
        checks.number("p", Duration("1m"))


def test_ages_are_read_from_whatever_says_them():
    hours = [1.0, 7200, "1.5h", datetime.timedelta(hours=3), Duration("4h")]
    assert seconds("age", hours).tolist() == [1, 7200, 5400, 10_800, 14_400]
    assert seconds("age", ["0s", "1m"]).tolist() == [0, 60]
    assert seconds("age", np.array([[1, 2]], dtype="m8[m]")).tolist() == [[60, 120]]
    assert seconds("age", "1m").shape == ()
    for bad in ("soon", [object()], ["1m", None, "x"]):
        with pytest.raises(ValueError, match="age must"):
            seconds("age", bad)


def test_lengths_in_brief_have_about_three_digits():
    said = {0.0: "0s", 0.0123: "12.3ms", 1.5: "1.5s", 90.4: "1m30s", 7199: "2h", 100_000: "1d4h"}
    assert {length: in_brief(length) for length in said} == said
    assert in_brief(math.inf) == "∞" and in_brief(1e12) == "1e+12s"
