"""Traffic: when duels come, its texts, and what is refused."""

import pickle

import numpy as np
import pytest

import duelay
from duelay import text, traffic

FORMS = ["steady:10s", "poisson:1m30s", "daily:10s,0.9", "bursts:100,1h,10ms"]


@pytest.mark.parametrize("form", FORMS)
def test_traffic_is_read_from_its_text_and_printed_as_it(form):
    made = traffic.parse(form)
    assert str(made) == form and traffic.check(form) == made == traffic.check(made)
    assert pickle.loads(pickle.dumps(made)) == made and hash(made) == hash(traffic.parse(form))


def test_every_kind_has_a_form():
    assert sorted(text.names("traffic")) == sorted(form.partition(":")[0] for form in FORMS)
    assert str(traffic.parse("bursts:100,1h")) == "bursts:100,1h,10ms"
    assert str(traffic.parse("daily:10s")) == "daily:10s,0.9"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n", [1, 99, 101, 3000])
def test_times_never_fall_and_are_of_their_seed(form, n):
    made = traffic.parse(form)
    times = made.times(n, np.random.default_rng(3))
    assert times.shape == (n,) and times[0] >= 0 and (np.diff(times) >= 0).all()
    assert np.array_equal(times, made.times(n, np.random.default_rng(3)))


@pytest.mark.parametrize("form, apart", [("steady:10s", 10), ("poisson:10s", 10),
                                         ("daily:10s,1", 10), ("bursts:50,1h", 72)])  # fmt: skip
def test_duels_are_as_far_apart_on_average_as_they_say(form, apart):
    n = 40_000
    mean = traffic.parse(form).times(n, np.random.default_rng(0))[-1] / n
    assert abs(mean - apart) < 4 * apart / np.sqrt(n) + 86_400 / n  # four errors, and half a day


def test_a_poisson_process_has_exponential_gaps():
    gaps = np.diff(traffic.Poisson("10s").times(40_000, np.random.default_rng(1)))
    for age in (1.0, 10.0, 30.0):
        share = np.exp(-age / 10)
        assert abs((gaps > age).mean() - share) < 4 * np.sqrt(share * (1 - share) / len(gaps))


def test_a_day_has_its_high_after_six_hours_and_its_low_after_eighteen():
    times = traffic.Daily("10s", 0.9).times(80_000, np.random.default_rng(0))
    days = times[-1] // 86_400
    hour = times[times < days * 86_400] % 86_400 / 3600
    counts = np.histogram(hour, 24, (0, 24))[0] / days
    edges = 2 * np.pi * np.arange(25) / 24
    expected = 360 * (1 - 0.9 * np.diff(np.cos(edges)) / (2 * np.pi / 24))
    assert (abs(counts - expected) < 4 * np.sqrt(expected / days)).all()
    assert counts.argmax() in (4, 5, 6, 7) and counts.argmin() in (16, 17, 18, 19)


def test_each_stretch_has_one_burst():
    times = traffic.Bursts(50, "1h", "100ms").times(500, np.random.default_rng(0))
    assert np.array_equal(times // 3600, np.repeat(np.arange(10), 50))
    assert np.allclose(np.diff(times.reshape(10, 50), axis=1), 0.1)


@pytest.mark.parametrize(
    "form, why",
    [
        ("steady:10", "every"),
        ("poisson", r"traffic poisson needs every"),
        ("poison:10s", r"unknown traffic 'poison' \(did you mean poisson\?\)"),
        ("daily:10s,1.5", "swing"),
        ("bursts:0,1h", "size must"),
        ("bursts:100,1s,1m", "every"),
        (10, "traffic"),
    ],
)
def test_what_is_no_traffic_is_refused(form, why):
    with pytest.raises(ValueError, match=why):
        traffic.check(form)


class Backwards(traffic.Traffic):
    """Time that falls."""

    def times(self, n, rng):
        return -np.arange(float(n))


def test_times_that_fall_are_refused():
    with pytest.raises(ValueError, match="^traffic "):
        traffic.draw_times(Backwards(), 3, np.random.default_rng(0))


def test_traffic_is_drawn():
    pytest.importorskip("matplotlib")
    axes = traffic.Bursts(100, "1h").plot()
    assert axes.get_title() == "bursts:100,1h,10ms" and axes.get_xlabel() == "hours"
    assert duelay.traffic is traffic
