"""Draw the README's figure and the pictures of the pages.

    python -m benchmarks pictures [NAME ...]

The same seed gives the same pictures. `regret` takes some minutes, the others seconds; names of
pictures as arguments draw those alone.
"""

import dataclasses
import sys
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

import duelay
from duelay import Decide, Duel, datasets, delays, experiments, theory
from duelay.experiments import execution
from duelay.experiments.spec import Choice, Specification
from duelay.show import figure_style, plots
from duelay.show.plan_figure import plan_figure

HERE = Path(__file__).parent
# Okabe and Ito's colours, which the colour-blind can tell apart; each line has its own dashes too.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#007A5A", "#767676"
SKY, PURPLE = "#9FCBE8", "#A0527F"
MU = 0.6  # the better arm wins with this probability
LAW = delays.Geometric(0.01)
RUNS, TICKS, SEED = 2000, 1000, 0
OURS = "recommended"  # beside what the paper has
THEIRS = (
    "RUCB-Delay", "RR-DB-Delay", "MRR-DB-Delay, brief", "RUCB, corrected", "RUCB, append-only",
)  # fmt: skip


def evaluation() -> Specification:
    """The paper's six datasets, as `duelay reproduce` has them, with what duelay recommends."""
    paper = experiments.built_in("paper")
    grid = paper.grids[0]
    forms = {choice.label: choice for choice in grid.policies}
    chosen = (Choice(OURS, OURS), *(forms[label] for label in THEIRS))
    return dataclasses.replace(
        paper, claims="none", grids=(dataclasses.replace(grid, policies=chosen),)
    )


def regret() -> Figure:
    """What is recommended beside the paper's policies, on the paper's datasets."""
    spec = evaluation()
    (grid,) = spec.grids
    with tempfile.TemporaryDirectory() as place, execution.opened(Path(place), spec) as folder:
        execution.execute(spec, folder)
        results = experiments.load(spec, folder)
    title = f"Mean regret of {grid.runs} runs; conversions come 100 ticks late on average"
    figure, panels = figure_style.panels(2, 3, len(grid.problems), title)
    for axes, problem in zip(panels, grid.problems, strict=True):
        panel = results.panel(grid, problem.name, str(grid.delays[0]))
        plots.draw_regret(axes, list(panel.values()), list(panel), band="mean")
        axes.lines[0].set_linewidth(3.2)
        axes.set_ylim(0, 1.25 * max(panel[label].mean[-1] for label in THEIRS[:2]))
        axes.set_title(f"{problem.name} (K = {problem.n_arms})", fontsize="medium")
    figure_style.name_axes(panels, 3, "duels", "regret")
    figure_style.one_legend(figure, panels[0])
    return figure


def timeline() -> Figure:
    """Five duels, asked at the same time: what happens, and what can be seen of it."""
    rows = [
        ("first won, early answer", 1.5, "conversion", "counted"),
        ("first won, late answer", 5.0, "silence", "counted"),
        ("first won, too late", 9.0, "silence", "not counted"),
        ("first won, no answer", None, "silence", "no conversion"),
        ("second won", None, "silence", "no conversion"),
    ]
    today, window, end = 3.0, 7.5, 10.0
    figure = Figure(figsize=(9.6, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.fill_between([window, end], -0.5, 4.5, color="#eeeeee", lw=0, zorder=0)
    for x, label in ((0.0, "asked"), (today, "today"), (window, "window closes")):
        axes.vlines(x, -0.5, 4.5, color="black", lw=1, ls="-" if x == 0 else "--", zorder=1)
        axes.text(x, -0.65, label, ha="center", va="bottom", fontsize=12)
    for y, (truth, news, seen, fate) in enumerate(rows):
        axes.text(-0.35, y, truth, ha="right", va="center", fontsize=12)
        axes.plot([0, news or end], [y, y], color=GREY, lw=2, ls=(0, (1, 1.5)), zorder=2)
        axes.plot(0, y, "o", ms=9, mfc="white", mec="black", zorder=3)
        if news is not None:
            in_time = news <= window
            axes.plot(news, y, "D" if in_time else "X", ms=11, color=BLUE if in_time else ORANGE)
        colour = BLUE if seen == "conversion" else "black"
        axes.text(10.5, y, seen, va="center", fontsize=12, color=colour, weight="bold")
        axes.text(13.6, y, fate, va="center", fontsize=12)
    axes.text(10.5, -0.65, "seen today", va="bottom", fontsize=12)
    axes.text(13.6, -0.65, "in the end", va="bottom", fontsize=12)
    axes.annotate("", (end, 4.9), (0, 4.9), arrowprops={"arrowstyle": "->", "lw": 1})
    axes.text(end / 2, 5.05, "age of the duel, in ticks", ha="center", va="top", fontsize=12)
    axes.set(xlim=(-4.6, 16.8), ylim=(5.6, -1.2))
    axes.axis("off")
    return figure


def estimates(law: delays.Law) -> dict[str, np.ndarray]:
    """What three ledgers believe of mu after each tick: runs × ticks, one duel a tick."""
    rng = np.random.default_rng(SEED)
    won = rng.random((RUNS, TICKS)) < MU  # did the champion win?
    is_first = rng.random((RUNS, TICKS)) < 0.5  # by coin
    due = np.arange(TICKS) + law.sample((RUNS, TICKS), rng)  # when the news would be heard
    played = np.arange(1, TICKS + 1)
    worth = np.cumsum(law.cdf(played))  # N~: what should have been heard of all duels so far

    def heard(has_news: np.ndarray) -> np.ndarray:
        run, tick = np.nonzero(has_news & (due <= TICKS))
        arrived = np.zeros((RUNS, TICKS + 1))
        np.add.at(arrived, (run, due[run, tick].astype(int)), 1)
        return np.cumsum(arrived[:, 1:], axis=1)

    conversions = heard(won)
    second = np.cumsum(~is_first, axis=1)
    return {
        "better arm first, silence is a loss": conversions / played,
        "better arm first, corrected by the law": conversions / worth,
        "with the coin, silence is a loss": (
            heard(won & is_first) + second - heard(~won & ~is_first)
        )
        / played,
    }


def bias() -> Figure:
    """What silence does to the estimate as time goes by, and what helps."""
    figure = Figure(figsize=(9.6, 4.6), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    styles = [(ORANGE, "--"), (BLUE, "-"), (GREEN, "-.")]
    cases = [
        ("All conversions arrive, after 100 ticks on average", LAW),
        ("The same, but 30 % never arrive", delays.Never(0.3, LAW)),
    ]
    for axes, (title, law) in zip(panels, cases, strict=True):
        shown = np.arange(0, TICKS, 5)
        for (label, runs), (colour, dashes) in zip(estimates(law).items(), styles, strict=True):
            runs = runs[:, shown]
            low, high = np.quantile(runs, [0.1, 0.9], axis=0)
            axes.fill_between(shown + 1, low, high, color=colour, alpha=0.15, lw=0)
            axes.plot(shown + 1, runs.mean(axis=0), color=colour, ls=dashes, lw=2.4, label=label)
        _half(axes)
        axes.axhline(MU, color="black", lw=1.2)
        axes.text(TICKS, MU + 0.01, "true value", ha="right", va="bottom", fontsize=11)
        axes.set_title(title, fontsize=12)
        axes.set(xlim=(0, TICKS), ylim=(0, 1), xlabel="duels so far, one per tick")
    panels[0].set_ylabel("estimated win rate of the better arm")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=3, handlelength=3, frameon=False
    )
    return figure


def coin() -> Figure:
    """Two orders, two errors that point in opposite ways, and their mean."""
    figure = Figure(figsize=(9.6, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.15, 1])
    tau, n = 0.5, 100
    # Of a hundred duels of each order: the parts that the reader takes for the champion's, or not.
    bars = [
        [(n * MU * tau, BLUE), (n * MU * (1 - tau), ORANGE), (n * (1 - MU), "#D9D9D9")],
        [(n * MU, SKY), (n * (1 - MU) * (1 - tau), ORANGE), (n * (1 - MU) * tau, "#D9D9D9")],
    ]
    words = [
        ["won,\nreported", "won,\nlate", "lost"],
        ["won", "lost,\nlate", "lost,\nreported"],
    ]
    read = [n * MU * tau, n * (1 - (1 - MU) * tau)]
    for y, (parts, names) in enumerate(zip(bars, words, strict=True)):
        start = 0.0
        for (width, colour), name in zip(parts, names, strict=True):
            hatch = "//" if colour == ORANGE else None
            left.barh(y, width, 0.42, start, color=colour, ec="white", hatch=hatch, lw=1.5)
            box = {"fc": colour, "ec": "none", "pad": 1.5} if hatch else None
            left.text(
                start + width / 2, y, f"{name}\n{width:.0f}", ha="center", va="center",
                fontsize=11, color="white" if colour in (BLUE, ORANGE) else "black", bbox=box,
            )  # fmt: skip
            start += width
        left.plot([0, read[y]], [y + 0.29] * 2, color="black", lw=1.5, marker="|", ms=9)
        left.text(
            0,
            y + 0.36,
            f"counted as wins of the better arm: {read[y]:.0f} of {n}",
            va="top",
            fontsize=11,
        )
    left.text(0, -0.27, "100 duels with the better arm first", va="bottom", fontsize=12)
    left.text(0, 0.73, "100 duels with the better arm second", va="bottom", fontsize=12)
    left.text(
        0, 1.75, f"with the coin: {sum(read):.0f} of {2 * n}, or {theory.coin_mean(MU, tau):.2f}",
        va="top", fontsize=12, weight="bold", color=GREEN,
    )  # fmt: skip
    left.legend(
        handles=[Patch(fc=ORANGE, ec="white", hatch="//", label="late: counted for the wrong arm")],
        loc="lower left", bbox_to_anchor=(-0.02, 1.0), frameon=False, fontsize=11,
    )  # fmt: skip
    left.set(xlim=(0, 101), ylim=(1.9, -0.5))
    left.axis("off")

    share = np.linspace(0, 1, 101)
    right.plot(share, 1 - (1 - MU) * share, color=PURPLE, lw=2.4, ls=":")
    right.plot(share, [theory.coin_mean(MU, s) for s in share], color=GREEN, lw=2.4, ls="-.")
    right.plot(share, MU * share, color=ORANGE, lw=2.4, ls="--")
    _half(right)
    right.text(0.36, 0.88, "better arm second", fontsize=11, color=PURPLE)
    right.text(0.02, 0.455, "with the coin", fontsize=11, color=GREEN)
    right.text(0.40, 0.19, "better arm first", fontsize=11, color=ORANGE)
    right.axhline(MU, color="black", lw=1.2)
    right.text(0.01, MU + 0.01, "true value", va="bottom", fontsize=11)
    right.set(xlim=(0, 1), ylim=(0, 1), xlabel="share of conversions that have arrived")
    right.set_ylabel("estimated win rate of the better arm")
    return figure


def _half(axes: Axes) -> None:
    """Mark where the wrong arm is taken for the better one."""
    axes.axhspan(0, 0.5, color="#f2f2f2", zorder=0)
    axes.text(0.98, 0.015, "below 1/2 the wrong arm seems better", ha="right", va="bottom",
              fontsize=11, transform=axes.transAxes, color="#444444")  # fmt: skip
    axes.spines[["top", "right"]].set_visible(False)


def evidence() -> Figure:
    """How the evidence grows until a winner is declared: tennis, conversions 100 ticks late."""
    tennis, rng = datasets.load("tennis"), np.random.default_rng(SEED)
    player = Decide().start(tennis.arms, seed=SEED)
    due: dict[int, list[Duel]] = {}
    for tick in range(3000):
        for duel in due.pop(tick, []):
            player.tell(duel)
        duel = player.ask()
        if rng.random() < tennis.matrix[duel.first, duel.second]:
            due.setdefault(tick + int(LAW.sample(seed=rng)), []).append(duel)
    figure = player.standing().plot().figure
    assert isinstance(figure, Figure)
    return figure


def plan() -> Figure:
    """The verdicts of the first example of docs/howto/plan.md."""
    planned = duelay.plan(
        [0.05, 0.06], visitors_per_day=2000, delay="log-normal:6h,1", margin="20%", runs=50
    )
    return plan_figure(planned)


PICTURES = {draw.__name__: draw for draw in (regret, timeline, bias, coin, evidence, plan)}

if __name__ == "__main__":
    for name in sys.argv[1:] or PICTURES:
        figure_style.save(PICTURES[name](), HERE / f"{name}.svg")
