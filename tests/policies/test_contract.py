"""Every policy, under every check, from the moment it is exported."""

from dataclasses import dataclass

import numpy as np
import pytest

import duelay
from duelay import delays, policies
from duelay.testing import PolicyContract
from helpers import BUILT_IN, FOR_SOME, is_for, with_its_checks

BY_PAIR = delays.ByPair.of(4, lambda i, j: delays.Geometric(0.1 + 0.2 * ((i + j) % 3)))
VARIANTS = [
    duelay.RUCB(alpha=0.6, counting="conversions", window=9),
    duelay.RUCBDelay(delay=delays.Uniform(2, 9), window=20),
    duelay.RUCBDelay(delay=delays.Geometric(0.2), window=None),
    duelay.RUCBDelay(delay=delays.Never(0.3, delays.Geometric(0.1)), window=30, alpha=0.6),
    duelay.RUCBDelay(delay=delays.Never(1.0, delays.Constant(1)), window=5),
    duelay.DoubleThompson(order="alternate", alpha=0.6, window=30),
    duelay.DoubleThompson(delay="learn"),
    duelay.DoubleThompson(ties="regret", order="alternate"),
    duelay.DoubleThompson(delay="learn", window=30, self_duels=False),
    duelay.MRRDBDelay(schedule=(3, 8, 20)),
    duelay.MRRDBDelay(schedule=(2, 4), pairs="ordered"),
    duelay.MRRDBDelay(mean_delay=2, constants=(0.1, 0.1, 0.1)),
    duelay.MRRDBDelay(schedule=(4, 9), feedback="counts"),
    duelay.MRRDBDelay(mean_delay=2, feedback="counts"),
]
# Types of rule, ledger and order that the others have, put together in another way: compiling them
# again would take minutes.
MIXED = [
    duelay.RUCB(alpha=1.0, counting="append-only"),
    duelay.RRDBDelay(delay=delays.Zipf(1.2, 50), window=40, delta=0.5),
    duelay.RUCB(order="coin"),
    duelay.RUCBDelay(delay=delays.Geometric(0.1), window=20, order="alternate"),
    duelay.RRDBDelay(delay=delays.Geometric(0.1), window=20, order="coin"),
    duelay.DoubleThompson(delay=delays.Uniform(1, 9), order="champion"),
    duelay.RMED(order="champion", delay=delays.Geometric(0.2)),
    duelay.DoubleThompson(delay="learn-from-self-duels", order="champion", window=30),
    duelay.RMED(delay="learn", order="alternate", window=60),
    duelay.MaillardSampling(delay=delays.Uniform(1, 9), order="champion", self_duels=False),
    duelay.MaillardSampling(delay=None, order="alternate"),
    duelay.Decide(delay=delays.Uniform(1, 9), error=0.4),
]
POLICIES = [
    *BUILT_IN,
    *(pytest.param(one, marks=pytest.mark.long) for one in VARIANTS),
    *(pytest.param(one, marks=[pytest.mark.long, pytest.mark.interpreted]) for one in MIXED),
]


def pytest_generate_tests(metafunc):
    """Give every check the policies that it is for."""
    if metafunc.cls is TestBuiltIn:
        check = metafunc.function.__name__
        mine = [one for one in POLICIES if is_for(check, getattr(one, "values", [one])[0])]
        metafunc.parametrize("policy", mine, ids=str)


class TestBuiltIn(PolicyContract):
    @pytest.fixture(autouse=True)
    def _give(self, policy):
        self.policy = policy


@with_its_checks
class TestByPair(PolicyContract):
    policy = duelay.RUCBDelay(delay=BY_PAIR, window=25)

    def test_duels_are_numbered_pairs_of_arms(self):
        with pytest.raises(ValueError, match="delay must"):
            self.policy.start(3)


@dataclass(frozen=True)
class Anyone(duelay.Policy):
    """A policy in plain Python."""

    window: int | None = 50

    def choose(self, ledger, t, rng):
        return rng.integers(len(ledger.plays)), rng.integers(len(ledger.plays))


@with_its_checks
class TestPlainPython(PolicyContract):
    policy = Anyone()


class OwnPlayer:
    """The least that a player needs."""

    def __init__(self, n_arms, rng):
        self.n_arms, self.rng, self.asked, self.told = n_arms, rng, [], set()

    def ask(self):
        pair = self.rng.integers(self.n_arms, size=2)
        self.asked.append(duelay.Duel(len(self.asked), int(pair[0]), int(pair[1])))
        return self.asked[-1]

    def tell(self, duel):
        number = duel if isinstance(duel, int) else duel.id
        if not 0 <= number < len(self.asked) or duel not in (number, self.asked[number]):
            raise LookupError(f"no duel {duel}")
        answer = "repeated" if number in self.told else "counted"
        self.told.add(number)
        return answer

    def __copy__(self):
        import pickle

        return pickle.loads(pickle.dumps(self))


@dataclass(frozen=True)
class Foreign:
    """Not one of our classes at all."""

    def start(self, arms, seed):
        n = arms if isinstance(arms, int) else len(arms)
        return OwnPlayer(n, np.random.default_rng(seed))


@with_its_checks
class TestForeign(PolicyContract):
    policy = Foreign()


@pytest.mark.parametrize("check", FOR_SOME)
def test_a_check_that_is_not_for_a_policy_says_why(check):
    """And no check is left out above that has something to say."""
    contract, n = PolicyContract(), 0
    for policy in [*BUILT_IN, *VARIANTS, *MIXED, Anyone(), Foreign()]:
        if not is_for(check, policy):
            contract.policy, n = policy, n + 1
            with pytest.raises(pytest.skip.Exception) as told:
                getattr(contract, check)()
            assert len(str(told.value)) > 10
    assert n > 0


def test_every_policy_has_a_text_name_and_reads_back():
    for policy in BUILT_IN + VARIANTS + MIXED:
        assert policies.parse(str(policy)) == policy


def test_a_policy_that_chooses_no_arm_is_told_so():
    @dataclass(frozen=True)
    class Wrong(duelay.Policy):
        answer: object = (0, 7)
        window: int | None = None

        def choose(self, ledger, t, rng):
            return self.answer

    with pytest.raises(ValueError, match=r"choose must return two arms from 0 to 2, got \(0, 7\)"):
        Wrong(window=None).start(3).ask()
    for answer in ((1.7, 0.9), 1, None, (0, 1, 2), (True, 0), (0, np.True_)):
        with pytest.raises(ValueError, match="^choose "):
            Wrong(answer=answer).start(3).ask()
    with pytest.raises(ValueError, match="window must"):
        Wrong(window=0).start(3)
