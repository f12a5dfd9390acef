"""A player's pickle is for the version that made it."""

import copy
import pickle

import pytest

import duelay
from duelay.players import player as player_module


def test_a_pickle_of_another_version_is_one_sentence(monkeypatch):
    stored = pickle.dumps(duelay.RUCBDelay().start(3, seed=0))
    monkeypatch.setattr(player_module, "__version__", "7.0")
    sentence = rf"by duelay {duelay.__version__}, and this is duelay 7\.0.*and replay it here"
    with pytest.raises(ValueError, match=sentence):
        pickle.loads(stored)


def test_it_is_refused_before_what_no_longer_fits_is_read(monkeypatch):
    """A state with other fields, or of a class that is gone, would be a TypeError or worse."""
    from duelay.ledger import ledger
    from duelay.policies import rucb

    stored = pickle.dumps(duelay.RUCBDelay().start(3, seed=0))
    monkeypatch.delattr(rucb, "RUCBRule")
    monkeypatch.delattr(ledger, "Ledger")
    with pytest.raises(AttributeError):
        pickle.loads(stored)
    monkeypatch.setattr(player_module, "__version__", "7.0")
    with pytest.raises(ValueError, match="pickled by duelay"):
        pickle.loads(stored)


class Mine(player_module.Player):
    """A player of one's own."""


def test_a_player_of_ones_own_class_stays_one():
    mine = Mine(duelay.RUCBDelay(), 3, 0)
    mine.ask()
    for again in (copy.copy(mine), copy.deepcopy(mine)):
        assert type(again) is Mine and again.ask() == copy.copy(mine).ask()
