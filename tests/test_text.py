import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import duelay
from duelay import delays, policies, text
from duelay.delays import (
    ByPair,
    Constant,
    Empirical,
    Geometric,
    LogNormal,
    NegativeBinomial,
    Never,
    Pareto,
    Uniform,
    Weibull,
    Zipf,
)

positive = st.floats(1e-3, 1e3)
share = st.floats(0, 1)
simple = st.one_of(
    st.builds(Geometric, st.floats(1e-9, 1)),
    st.builds(Constant, st.integers(1, 10**6)),
    st.integers(1, 100).flatmap(
        lambda low: st.builds(Uniform, st.just(low), st.integers(low, 999))
    ),
    st.builds(NegativeBinomial, positive, st.floats(0.01, 1)),
    st.builds(Zipf, st.floats(0, 5), st.integers(1, 1000)),
    st.builds(Weibull, positive, positive),
    st.builds(Pareto, positive, positive),
    st.builds(LogNormal, positive, positive),
    st.lists(st.floats(0, 0.1), min_size=1, max_size=8).map(Empirical),
)
laws = st.one_of(
    simple,
    st.builds(Never, share, simple),
    st.builds(Never, share, st.builds(Never, share, simple)),
)
by_pair = st.lists(laws, min_size=4, max_size=4).map(tuple).map(ByPair)
windows = st.none() | st.integers(1, 10**9)
alphas = st.floats(0.5, 9, exclude_min=True)
rising = st.lists(st.integers(1, 10**6), min_size=1, max_size=5, unique=True).map(
    lambda n: tuple(sorted(n))
)
recipes = st.one_of(
    st.builds(duelay.RUCB, alphas, st.sampled_from(["corrected", "append-only"]), windows),
    st.builds(duelay.RUCBDelay, laws | by_pair, windows, alphas),
    st.builds(duelay.RRDBDelay, laws, windows, st.floats(0.001, 0.999)),
    st.builds(
        duelay.MRRDBDelay,
        st.floats(1, 1e6),
        st.none() | st.integers(1, 10**9),
        constants=st.none() | st.tuples(positive, positive, positive),
        pairs=st.sampled_from(["unordered", "ordered"]),
    ),
    st.builds(
        duelay.MRRDBDelay, schedule=rising, feedback=st.sampled_from(["conversions", "counts"])
    ),
)


@given(laws | by_pair)
def test_laws_read_back_what_they_print(law):
    assert delays.parse(str(law)) == law


@given(recipes)
def test_policies_read_back_what_they_print(policy):
    assert policies.parse(str(policy)) == policy


def assert_is_one_sentence(said):
    """On one line, about a law or the brackets in it, and neither Python's words nor a blank."""
    assert re.match(
        r"(unknown law ['\"]|law \S.*(: | needs | has no | gives )|brackets do not)", said
    )
    assert said.isprintable()
    given = r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\""  # may be anything
    own = re.sub(given, "", said)
    assert not re.search("object|class|NoneType|float\\(|int\\(", own)


@given(st.text(max_size=40))
def test_any_text_gives_a_law_or_one_sentence(form):
    try:
        assert isinstance(delays.parse(form), delays.Law | ByPair)
    except ValueError as error:
        assert_is_one_sentence(str(error))


@given(st.text(alphabet="geomtric:=,/()0.19-nw ", max_size=30))
def test_nearly_right_text_gives_a_law_or_one_sentence(tail):
    for head in ("geometric:", "never:0.1,", "empirical:", "uniform:"):
        try:
            assert isinstance(delays.parse(head + tail), delays.Law | ByPair)
        except ValueError as error:
            assert_is_one_sentence(str(error))


@pytest.mark.parametrize(
    "form, law",
    [
        ("geometric:0.01", Geometric(0.01)),
        ("geometric:p=0.01", Geometric(0.01)),
        (" uniform : 1 , high = 5 ", Uniform(1, 5)),
        ("constant", Constant(1)),
        ("empirical:0.5/0.25", Empirical(pmf=(0.5, 0.25))),
        ("empirical:0.5/", Empirical(pmf=(0.5,))),
        ("never:0.3,(uniform:1,5)", Never(0.3, Uniform(1, 5))),
        ("never:law=geometric:0.5,share=0.1", Never(0.1, Geometric(0.5))),
        ("never:0.1,constant", Never(0.1, Constant())),
        ("weibull:0.5,1e2", Weibull(0.5, 100.0)),
    ],
)
def test_forms_of_laws(form, law):
    assert delays.parse(form) == law


def test_forms_of_policies():
    parse = policies.parse
    assert parse("rucb") == duelay.RUCB()
    assert parse("rucb:1,append-only") == duelay.RUCB(1.0, "append-only")
    assert parse("rucb-delay:delay=geometric:0.1,window=none") == duelay.RUCBDelay(
        Geometric(0.1), None
    )
    assert parse("rucb-delay:delay=(weibull:0.5,9)").delay == Weibull(0.5, 9.0)
    assert parse("mrr-db-delay:constants=0.5/0.1/0.1").constants == (0.5, 0.1, 0.1)
    assert parse("mrr-db-delay:mean-delay=50").mean_delay == 50
    # What the text leaves out may come from the world.
    world = {"delay": Constant(5), "mean_delay": 5.0}
    assert parse("rucb-delay", world).delay == Constant(5)
    assert parse("rucb-delay:delay=geometric:0.1", world).delay == Geometric(0.1)
    assert parse("mrr-db-delay", world).mean_delay == 5
    assert parse("rucb", world) == duelay.RUCB()
    assert parse("double-thompson", world).delay is None  # it means to know nothing


@pytest.mark.parametrize(
    "kind, form, message",
    [
        ("law", "geometrc:0.1", r"unknown law 'geometrc' \(did you mean geometric\?\); there are:"),
        ("policy", "rucbdelay", r"unknown policy 'rucbdelay' \(did you mean rucb-delay\?\)"),
        ("law", "", "unknown law ''"),
        ("law", "geometric", "law geometric needs p, got 'geometric'"),
        ("law", "geometric:0", "law 'geometric:0': p must be greater than 0"),
        ("law", "geometric:q=1", r"law geometric has no parameter 'q'.*; it has: p"),
        ("law", "geometric:0.1,0.2", "cannot place '0.2'; write key=value"),
        ("law", "uniform:high=4,1", "cannot place '1'"),
        ("law", "geometric:0.1,p=0.2", "gives p twice"),
        ("law", "never:0.3,uniform:1", "uniform"),
        ("law", "never:0.1,(geometric:0.1", "brackets do not match"),
        ("law", "never:0.1,)geometric:0.1(", "brackets do not match"),
        ("policy", "rucb:alpa=1", r"has no parameter 'alpa' \(did you mean alpha\?\)"),
        ("policy", "rucb:counting=all", "counting"),
    ],
)
def test_wrong_text_is_refused_in_one_sentence(kind, form, message):
    with pytest.raises(ValueError, match=message):
        text.parse(kind, form)


def test_what_a_recipe_gives_itself_is_left_out():
    policy = duelay.DoubleThompson(delay="learn")
    assert policy.window == 10_000 and str(policy) == "double-thompson:delay=learn"
    assert policies.parse(str(policy)) == policy
    policy = duelay.RMED(window=10_000, self_duels=False)
    assert str(policy) == "rmed:window=10000,self_duels=false"
    assert policies.parse(str(policy)) == policy
    with pytest.raises(ValueError, match="self_duels"):
        policies.parse("rmed:self_duels=no")


def test_every_name_is_listed_with_its_parameters():
    ours = {
        name
        for name, cls in text.names("policy").items()
        if cls.__module__.startswith("duelay.policies.")
    }
    assert ours == {getattr(policies, name).text_name for name in policies.__all__}
    assert ours >= {"decide", "double-thompson", "mrr-db-delay", "rucb", "rucb-delay"}
    assert text.parameters(duelay.RUCBDelay) == [
        "delay=geometric:0.01",
        "window=1000",
        "alpha=1",
        "order=champion",
        "self_duels=true",
    ]
    assert text.parameters(Empirical) == ["pmf"]


def deep(n):
    """A share that never answers, of a share that never answers, ... n times."""
    return "(".join(["never:0.1,"] * n) + "geometric:0.1" + ")" * (n - 1)


def test_laws_within_laws_are_read_to_a_depth_and_no_further():
    law = text.parse("law", deep(20))
    assert str(law) == deep(20) and text.parse("law", str(law)) == law
    policy = policies.parse(f"rucb-delay:delay=(by-pair:{'/'.join([f'({law})'] * 4)})")
    assert policies.parse(str(policy)) == policy
    for n in (21, 900, 100_000):
        with pytest.raises(ValueError, match="laws must") as caught:
            text.parse("law", deep(n))
        assert n == 21 or len(str(caught.value)) < 200
    with pytest.raises(ValueError, match="at most 20 deep: one Never says the same as many"):
        Never(0.1, law)


def test_the_old_name_of_full_works_with_a_warning():
    policy = duelay.RUCB()
    with pytest.warns(DeprecationWarning, match="full"):
        assert text.form(policy, is_full=True) == text.form(policy, full=True) != text.form(policy)


def test_the_old_parameter_of_parse_warns_and_changes_nothing():
    with pytest.warns(DeprecationWarning, match="is_nested"):
        law = text.parse("law", "geometric:0.1", is_nested=True)
    assert law == text.parse("law", "geometric:0.1")
    with pytest.raises(ValueError, match="brackets"):
        text.parse("policy", "rucb-delay:delay=uniform:1")
