"""A setting: what a simulation is about counts where settings are compared, how it is done not."""

import dataclasses
import inspect
import pickle

import pytest

import duelay
from duelay.problems import arithmetic
from duelay.simulation.setting import ABOUT

HOW = {"first_run": 3, "pairs": True, "progress": "a bar", "cautious": False}
WHAT = {"target": "borda", "feedback": "votes", "corrects_position": True, "stale": 7, "batch": 2,
        "stop": 0.05, "traffic": "poisson:10s", "by_clock": False,
        "joins": duelay.delays.Duration("7d")}  # fmt: skip


def test_every_field_is_either_what_or_how():
    assert ABOUT == tuple(WHAT)
    assert [field.name for field in dataclasses.fields(duelay.Setting)] == [*WHAT, *HOW]


@pytest.mark.parametrize("name", HOW)
def test_how_runs_are_done_makes_no_other_setting(name):
    setting = duelay.Setting(**{name: HOW[name]})
    assert setting == duelay.Setting() and hash(setting) == hash(duelay.Setting())
    assert str(setting) == "" and repr(setting) == f"Setting({name}={HOW[name]!r})"


@pytest.mark.parametrize("name", ["target", "feedback", "stale", "batch", "traffic"])
def test_what_it_is_about_does(name):
    setting = duelay.Setting(**{name: WHAT[name]})
    assert setting != duelay.Setting() and str(setting) == f"{name}={WHAT[name]}"


def test_evidence_is_held_back_where_it_is_old_or_asked_for_in_batches():
    assert not duelay.Setting().is_held  # so that calm ticks are skipped
    assert duelay.Setting(stale=1).is_held and duelay.Setting(batch=2).is_held


def test_a_setting_prints_and_pickles():
    assert str(duelay.Setting()) == "" and repr(duelay.Setting()) == "Setting()"
    setting = duelay.Setting(**{**WHAT, "traffic": None, "by_clock": True, "joins": None}, **HOW)
    about = "target=borda, feedback=votes, corrects_position=True, stale=7, batch=2, stop=0.05"
    assert str(setting) == about
    again = pickle.loads(pickle.dumps(setting))
    assert again == setting and repr(again) == repr(setting)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setting.stale = 3
    with pytest.raises(TypeError, match="positional"):
        duelay.Setting("borda")


def test_simulate_has_few_parameters_and_any_other_is_pythons_to_refuse():
    assert list(inspect.signature(duelay.simulate).parameters) == [
        "problem", "policy", "delay", "horizon", "runs", "seed", "workers", "checkpoints",
        "stop", "traffic", "setting",
    ]  # fmt: skip
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        duelay.simulate(arithmetic(3, 0.1), duelay.RUCB(), delay="constant", horizon=5, colour=1)


def test_a_result_keeps_its_setting_and_a_warning_points_at_the_caller():
    setting = duelay.Setting(stale=2, pairs=True)
    result = duelay.simulate(
        arithmetic(3, 0.1), duelay.RUCB(), delay="constant", horizon=5, setting=setting
    )
    assert result.setting is setting and "stale=2:" in repr(result)
    with pytest.warns(UserWarning, match="is too short for MRR-DB-Delay") as told:
        duelay.simulate(arithmetic(3, 0.1), duelay.MRRDBDelay(), delay="constant", horizon=50)
    assert told[0].filename == __file__


def test_old_names_still_work_with_a_warning():
    with pytest.warns(DeprecationWarning, match="is_cautious") as told:
        setting = duelay.Setting(is_cautious=False)
    assert setting.cautious is False and told[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="bulk"):
        assert duelay.Setting(bulk=False) == duelay.Setting()
    with pytest.warns(DeprecationWarning), pytest.raises(TypeError, match="cautious"):
        duelay.Setting(is_cautious=False, cautious=False)
