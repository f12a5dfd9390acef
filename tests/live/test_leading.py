"""Who leads, as somebody sees it who has not looked at the evidence before."""

from contextlib import closing

import pytest

from duelay.live import Experiment, Store


@pytest.mark.parametrize("arms", [["old", "new"], ["new", "old"]])
def test_who_opens_an_experiment_names_its_leader(tmp_path, arms):
    with closing(Store(tmp_path / "duels.db")) as store:
        experiment = Experiment.create(store, "models", arms, feedback="votes")
        experiment.tell_all([(experiment.ask(), "new") for _ in range(6)])
        standing = Experiment.open(store, "models").standing()
        assert standing.winner is None
        assert standing.arms[standing.leader] == "new"
        assert standing.headline.startswith("new leads after 6 duels")


def test_a_process_chooses_by_what_another_has_heard_though_it_never_looks(tmp_path):
    with closing(Store(tmp_path / "duels.db")) as store:
        one = Experiment.create(store, "models", ["a", "b", "c"], feedback="votes")
        other = Experiment.open(store, "models", freshness=1e9)  # somebody else always looks
        other.ask()
        for _ in range(8):
            duel = one.ask()
            one.tell(duel, "c" if "c" in (duel.first, duel.second) else "first")
        looked = one.standing()
        other.ask()
        doubts = other._writer.state.eprocess.doubts
        assert doubts.argmin() == looked.leader == 2
        assert doubts.max() > 0
