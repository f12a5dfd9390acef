"""Parameters of policies: those of the first version may be given by place, all others by name."""

import inspect

import pytest

import duelay
from duelay import policies, text
from duelay.delays import Geometric

OURS = [getattr(policies, name) for name in policies.__all__]
# A new policy has none: its knobs are given by name.
BY_PLACE = {
    duelay.RUCB: ["alpha", "counting", "window"],
    duelay.RUCBDelay: ["delay", "window", "alpha"],
    duelay.RRDBDelay: ["delay", "window", "delta"],
    duelay.MRRDBDelay: ["mean_delay", "horizon"],
    duelay.DoubleThompson: ["delay", "order"],
}


def test_every_policy_is_here():
    assert set(BY_PLACE) <= set(OURS) <= set(text.names("policy").values())


@pytest.mark.parametrize("policy", OURS, ids=lambda cls: cls.__name__)
def test_what_is_given_by_place_is_no_more_than_it_was(policy):
    given = inspect.signature(policy).parameters.values()
    by_place = [p.name for p in given if p.kind is not p.KEYWORD_ONLY]
    assert by_place == BY_PLACE.get(policy, []), "write kw_only=True: knobs are given by name"


def test_what_is_given_by_place_is_what_it_was():
    law = Geometric(0.1)
    assert duelay.RUCB(1.0, "append-only", 50) == duelay.RUCB(
        alpha=1.0, counting="append-only", window=50
    )
    assert duelay.RUCBDelay(law, 50, 0.7) == duelay.RUCBDelay(delay=law, window=50, alpha=0.7)
    assert duelay.RRDBDelay(law, 50, 0.1) == duelay.RRDBDelay(delay=law, window=50, delta=0.1)
    assert duelay.MRRDBDelay(50, 1000) == duelay.MRRDBDelay(mean_delay=50, horizon=1000)
    assert duelay.DoubleThompson(law, "alternate") == duelay.DoubleThompson(
        delay=law, order="alternate"
    )


@pytest.mark.parametrize("policy", OURS, ids=lambda cls: cls.__name__)
def test_text_gives_by_place_what_python_does(policy):
    values = {
        "alpha": "0.7", "counting": "append-only", "window": "50", "delay": "geometric:0.1",
        "delta": "0.1", "mean_delay": "50", "horizon": "1000", "order": "alternate",
    }  # fmt: skip
    places = BY_PLACE.get(policy, [])
    by_place = ",".join(values[name] for name in places)
    by_name = ",".join(f"{name}={values[name]}" for name in places)
    name = policy.text_name
    assert policies.parse(f"{name}:{by_place}") == policies.parse(f"{name}:{by_name}")
    one_more = f"{by_place},champion" if by_place else "champion"
    with pytest.raises(ValueError, match="'champion'"):
        policies.parse(f"{name}:{one_more}")
    with pytest.raises(TypeError, match="positional"):
        policy(*[None] * (len(places) + 1))
