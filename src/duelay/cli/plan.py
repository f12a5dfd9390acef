"""`duelay plan`: how long an experiment will take, before it starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from duelay.cli.common import EPILOG, Command, Whole, import_modules, import_option
from duelay.ledger.evidence.margin import ENDS
from duelay.planning.simulated import BY, plan


@click.command("plan", cls=Command, epilog=EPILOG)
@click.option("--rates", metavar="P,P,...", help="The conversion rate of each arm, such as "
              "0.05,0.06 or 5%,6%, if one arm is shown to each visitor.")  # fmt: skip
@click.option("--preferences", metavar="GAP|NAME|CSV|FORM", help="In place of rates, if each "
              "visitor compares two arms: a gap such as 0.05 for 55 : 45, or as --dataset of "
              "`duelay simulate`.")  # fmt: skip
@click.option("--visitors-per-day", type=float, required=True, metavar="N",
              help="The visitors of a day.")  # fmt: skip
@click.option("--delay", default="exponential:1h", show_default=True, metavar="LAW",
              help="The time from visit to conversion, such as log-normal:6h,1 (see `duelay "
              "delays`).")  # fmt: skip
@click.option("--margin", metavar="SHARE", help="The smallest difference that matters: with "
              "--rates a lift such as 5%, with --preferences a difference from 1/2 such as 0.02. "
              "The experiment then also ends if nothing differs by more.")  # fmt: skip
@click.option("--end", type=click.Choice(ENDS[::-1]), default="equivalent", show_default=True,
              help="The end with a margin.")  # fmt: skip
@click.option("--error", type=float, default=0.05, show_default=True, metavar="SHARE",
              help="The probability of a false verdict.")  # fmt: skip
@click.option("--horizon", default="8w", show_default=True, metavar="TIME",
              help="How long an experiment may last.")  # fmt: skip
@click.option("--by", default=",".join(BY), show_default=True, metavar="TIME,...",
              help="When to count the verdicts.")  # fmt: skip
@click.option("--window", default="14d", show_default=True, metavar="TIME",
              help="After which a conversion does not count; `none` for no limit.")  # fmt: skip
@click.option("--wait", metavar="TIME", help="How long an answer may take to be evidence.  "
              "[default: learned from ten conversions]")  # fmt: skip
@click.option("--feedback", type=click.Choice(["conversions", "votes"]), default="conversions",
              show_default=True, help="With --preferences, what is told.")  # fmt: skip
@click.option("--add-arm-at", metavar="TIME", help="When the last arm joins, and what that "
              "costs.")  # fmt: skip
@click.option("--runs", type=Whole(), metavar="N", help="Simulated experiments of each kind.  "
              "[default: 200, or fewer with very many visitors]")  # fmt: skip
@click.option("--seed", type=Whole(0), default=0, show_default=True, metavar="N",
              help="Same seed, same numbers.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="A folder for plan.csv, plan.png and plan.svg.")  # fmt: skip
@import_option
@click.option("--quiet", is_flag=True, help="No progress bar.")
def plan_command(
    rates: str | None,
    by: str,
    window: str,
    out: Path | None,
    modules: tuple[str, ...],
    quiet: bool,
    **told: Any,
) -> None:
    """Simulate an experiment before it starts: how long until which verdict.

    Two kinds of experiments are simulated: with the arms as stated, and with all arms equal. Prints
    the days until a verdict, the share of experiments with each verdict by some times, the share of
    false ones, and the conversions that are lost until the verdict.
    """
    import_modules(modules)
    if out is not None:
        from duelay.show import figure_style  # needs matplotlib: say so before the work, not after

        figure_style.need_matplotlib()
    planned = plan(
        None if rates is None else rates.split(","),
        by=by.split(","),
        window=None if window == "none" else window,
        progress=False if quiet else None,
        **told,
    )
    click.echo(str(planned))
    if out is not None:
        planned.write(out)
        click.echo(f"\nwrote plan.csv, plan.png and plan.svg to {out}")
