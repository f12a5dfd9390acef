"""`duelay recommend`: which policy to use, and why."""

from __future__ import annotations

from typing import Any

import click

from duelay import delays
from duelay._core import checks
from duelay._core.feedback import FEEDBACKS
from duelay.cli.common import EPILOG, Command, Whole, Window, feedback_option, wrapped
from duelay.errors import InvalidValueError
from duelay.problems import TARGETS
from duelay.recommendation import GOALS, recommend


@click.command("recommend", cls=Command, epilog=EPILOG)
@click.option("--delay", metavar="LAW", help="The delay law, if it is known (see `duelay "
              "delays`).  [default: not known]")  # fmt: skip
@click.option("--mean-delay", type=float, metavar="TICKS",
              help="The mean of the delay, if only that is known.")  # fmt: skip
@click.option("--order-given", is_flag=True, help="The champion must be shown first.")
@click.option("--arms", type=Whole(2), metavar="K", help="The number of arms.")
@click.option("--window", type=Window(), metavar="M", help="Ticks, or 14d, after which a "
              "conversion does not count.  [default: 10000 where the law is learned]")  # fmt: skip
@click.option("--target", type=click.Choice(TARGETS), default="condorcet", show_default=True,
              help="The winner to find.")  # fmt: skip
@feedback_option(FEEDBACKS, "What is reported: wins of the first arm, the winner, or only the "
                 "number of wins of the first arm.")  # fmt: skip
@click.option("--goal", type=click.Choice(GOALS), default="regret", show_default=True,
              help="Little regret, or few duels until a winner is declared.")  # fmt: skip
@click.option("--error", type=float, metavar="SHARE", help="With --goal decide, the probability "
              "that a declared winner is wrong.  [default: 0.05]")  # fmt: skip
@click.option("--margin", type=float, metavar="SHARE", help="With --goal decide, the smallest "
              "difference from 1/2 that matters, such as 0.05: it also ends when no difference "
              "matters.")  # fmt: skip
@click.option("--two-arms", is_flag=True, help="The two arms of a duel must differ.")
def recommend_command(
    delay: str | None,
    mean_delay: float | None,
    order_given: bool,
    arms: int | None,
    feedback: str,
    goal: str,
    error: float | None,
    margin: float | None,
    two_arms: bool,
    **told: Any,
) -> None:
    """Recommend a policy, with the reason."""
    if delay is not None and checks.is_number(delay):
        raise InvalidValueError(
            f"--delay must be a delay law, got the number {delay}: write --mean-delay {delay} for "
            f"a mean of {delay}, --delay constant:{delay} for {delay} every time"
        )
    if mean_delay is not None:
        checks.number("--mean-delay", mean_delay, least=1)
    if delay is not None and mean_delay is not None:
        raise InvalidValueError("--mean-delay is for an unknown law: pass either it or --delay")
    if feedback == "counts" and delay is None and mean_delay is None:
        raise InvalidValueError(
            "--feedback counts needs --mean-delay, or --delay for the law: the policy's rounds are "
            "made from the mean"
        )
    for option, value in (("--error", error), ("--margin", margin)):
        if value is not None and goal != "decide":
            raise InvalidValueError(
                f"{option} requires --goal decide, since other policies declare no winner"
            )
    advice = recommend(
        mean_delay if delay is None else delays.check(delay),
        order_free=not order_given,
        n_arms=arms,
        feedback=feedback,
        self_duels=not two_arms,
        goal=goal,
        error=error,
        margin=margin,
        **told,
    )
    click.echo(f"{advice.policy}\n")
    click.echo(wrapped("", advice.reason))
    click.echo(f'\nIn Python: duelay.policies.parse("{advice.policy}")')
