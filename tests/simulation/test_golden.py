"""The first duels of each policy for seed 0; `python -m benchmarks golden` writes them."""

import json
from pathlib import Path

import pytest

import duelay
from duelay import datasets, delays, policies, problems
from duelay.testing import compiled_duels, live_duels

PATH = Path(__file__).parent / "duels.json"
LAW = delays.Geometric(0.1)
FORMS = [
    "rucb:alpha=1",
    "rucb:alpha=1,counting=append-only",
    "rucb:alpha=1,counting=conversions",
    "rucb-delay:delay=geometric:0.1,window=20",
    "rucb-delay:delay=(uniform:1,30),window=20,alpha=0.6",
    "rr-db-delay:delay=geometric:0.1,window=20,delta=0.5",
    "rucb:alpha=1,order=coin",
    "double-thompson",
    "decide",
    "decide:winner_exists=true,window=50",
    "decide:delay=geometric:0.1",
    "double-thompson:order=alternate,window=20",
    "rmed",
    "double-thompson:delay=learn,window=10",
    "borda",
    "maillard:window=10",
    "mrr-db-delay:schedule=2/5/9",
    "mrr-db-delay:schedule=1/2/4,pairs=ordered",
    "mrr-db-delay:schedule=2/5/9,feedback=counts",
]
# A policy without a form in the list above is played with its defaults.
NAMES = [getattr(policies, name).text_name for name in policies.__all__]
FORMS += [name for name in NAMES if name not in {form.partition(":")[0] for form in FORMS}]
# Types that the others have, put together in another way: compiling them again takes long.
MIXED = ["double-thompson:order=alternate,ties=regret,delay=geometric:0.1"]


# Many arms of equal evidence: a rule must not choose between them by the last bit of a number, for
# compiled and interpreted logarithms differ in it.
MANY = "double-thompson:delay=learn,window=50, 36 arms"


def duels_of_many():
    policy, problem = policies.parse(MANY.partition(", ")[0]), problems.arithmetic(36, 0.012)
    return [list(pair) for pair in compiled_duels(policy, problem, LAW, 300)]


def duels_of(form, play):
    policy = policies.parse(form).for_horizon(1000)
    return [list(pair) for pair in play(policy, datasets.load("tennis"), LAW, 50)]


@pytest.mark.parametrize("play", [live_duels, compiled_duels])
@pytest.mark.parametrize(
    "form", [*FORMS, *(pytest.param(form, marks=pytest.mark.interpreted) for form in MIXED)]
)
def test_the_first_duels_are_those_written_down(form, play):
    assert duels_of(form, play) == json.loads(PATH.read_text())[form]


@pytest.mark.long
@pytest.mark.kernels
def test_the_first_duels_of_many_arms_are_those_written_down():
    assert duels_of_many() == json.loads(PATH.read_text())[MANY]


@pytest.mark.long
def test_a_seed_gives_the_regret_written_down():
    result = duelay.simulate(
        datasets.load("six-rankers"), duelay.RUCBDelay(), delay="geometric:0.01", horizon=1000,
        runs=3, seed=0,
    )  # fmt: skip
    assert result.final.tolist() == json.loads(PATH.read_text())["final regrets"]


if __name__ == "__main__":
    golden = {form: duels_of(form, live_duels) for form in [*FORMS, *MIXED]}
    result = duelay.simulate(
        datasets.load("six-rankers"), duelay.RUCBDelay(), delay="geometric:0.01", horizon=1000,
        runs=3, seed=0,
    )  # fmt: skip
    golden[MANY] = duels_of_many()
    golden["final regrets"] = result.final.tolist()
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in golden.items()]
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")
