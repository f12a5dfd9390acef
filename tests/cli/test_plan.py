"""`duelay plan`."""

import duelay

ASKED = ("plan", "--visitors-per-day", 60, "--horizon", "2w", "--runs", 2, "--quiet")


def test_plan_prints_the_plan_and_writes_it(command, tmp_path):
    status, out, err = command(
        *ASKED, "--rates", "30%,0.6", "--margin", "50%", "--by", "1w,2w", "--out", tmp_path
    )
    assert (status, err) == (0, "")
    planned = duelay.plan(
        [0.3, 0.6], margin=0.5, visitors_per_day=60, horizon="2w", runs=2, by=["1w", "2w"]
    )
    assert str(planned) in out
    assert {path.name for path in tmp_path.iterdir()} == {"plan.csv", "plan.png", "plan.svg"}


def test_what_is_wrong_is_said_by_the_name_of_the_option(command):
    for option, value in (("--rates", "5,6"), ("--margin", "x"), ("--window", "3")):
        told = {"--rates": "0.1,0.2", option: value}
        status, out, err = command(*ASKED, *[word for pair in told.items() for word in pair])
        assert (status, out) == (2, "") and option in err
    assert command(*ASKED)[0] == 2
