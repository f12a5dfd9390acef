"""One vocabulary for feedback: what each call takes of it, and what it says of the rest."""

import pytest

import duelay
from duelay import theory
from duelay._core.feedback import FEEDBACKS, check_feedback

COUNTED = duelay.MRRDBDelay(schedule=(2, 4), feedback="counts")


def history(feedback):
    return duelay.History(2, [0], [1], [1], [1], feedback=feedback)


# Each call that takes a kind of feedback, and the kinds that it can do.
CALLS = {
    "start": (lambda word: duelay.RUCB().start(3, feedback=word), ("conversions", "votes")),
    "start of counts": (lambda word: COUNTED.start(3, feedback=word), ("counts",)),
    "Setting": (lambda word: duelay.Setting(feedback=word), ("conversions", "votes")),
    "History": (history, ("conversions", "votes")),
    "MRRDBDelay": (lambda word: duelay.MRRDBDelay(feedback=word), ("conversions", "counts")),
    "mrr_schedule": (
        lambda word: theory.mrr_schedule(1000, 5.0, feedback=word),
        ("conversions", "counts"),
    ),
    "mrr_bound": (
        lambda word: theory.mrr_bound(
            duelay.datasets.load("mslr"), horizon=1000, mean_delay=5.0, feedback=word
        ),
        ("conversions", "counts"),
    ),
    "recommend": (lambda word: duelay.recommend(100, feedback=word), FEEDBACKS),
}


@pytest.mark.parametrize("word", FEEDBACKS)
@pytest.mark.parametrize("call", CALLS)
def test_a_call_takes_the_feedback_it_can_do_and_says_why_not_the_rest(call, word):
    make, fit = CALLS[call]
    if word in fit:
        make(word)
        return
    listed = " or ".join(fit)
    with pytest.raises(ValueError, match=rf"^feedback must be {listed} \(.+\), got '{word}'$"):
        make(word)


@pytest.mark.parametrize(
    "word, now",
    [
        ("individual", "'conversions'"),
        ("aggregated", "'counts'"),
        ("corrected-votes", "'votes', with corrects_position"),
    ],
)
@pytest.mark.parametrize("call", CALLS)
def test_a_word_of_earlier_is_refused_with_what_to_write_now(call, word, now):
    with pytest.raises(ValueError, match=f"^feedback '{word}' is now written {now}"):
        CALLS[call][0](word)


@pytest.mark.parametrize("word", ["vote", None, 3, ["votes"]])
def test_no_feedback_at_all_is_refused_with_those_there_are(word):
    with pytest.raises(ValueError, match="feedback"):
        check_feedback(word)


def test_a_player_hears_as_its_policy_has_it_unless_it_is_told():
    assert duelay.RUCB().start(3).feedback == "conversions"
    assert COUNTED.start(3).feedback == COUNTED.start(3).standing().feedback == "counts"
    assert COUNTED.counts_only and not duelay.MRRDBDelay().counts_only
    assert duelay.MRRDBDelay(schedule=(2, 4)).start(3, feedback="votes").feedback == "votes"


@pytest.mark.parametrize("feedback", ["conversions", "counts"])
def test_only_votes_can_be_corrected_for_the_position(feedback):
    policy = COUNTED if feedback == "counts" else duelay.RUCB()
    with pytest.raises(ValueError, match=f"corrects_position .*{feedback}"):
        policy.start(3, corrects_position=True)
    with pytest.raises(ValueError, match="corrects_position"):
        duelay.Setting(corrects_position=True)
    with pytest.raises(ValueError, match="corrects_position"):
        duelay.RUCB().start(3, feedback="votes", corrects_position=1)


def test_a_player_that_corrects_for_the_position_says_so():
    player = duelay.RUCB().start(3, feedback="votes", corrects_position=True)
    assert player.corrects_position and player.standing().corrects_position
    assert player.feedback == player.history().feedback == "votes"
    assert repr(player).endswith("feedback='votes', corrects_position=True)")
    plain = duelay.RUCB().start(3, feedback="votes")
    assert not plain.corrects_position and not plain.standing().corrects_position
