"""Small pictures in tables and lists: a line of counts, an interval, a bar."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from duelay.page.view_models import Arm
from duelay.show import html


def spark(values: Sequence[int], wide: int = 120, tall: int = 28) -> Markup:
    """A small line of counts, without scales."""
    if len(values) < 2:
        return Markup("")
    top = max(*values, 1)
    step = (wide - 4) / (len(values) - 1)
    at = [(2 + i * step, tall - 2 - (tall - 4) * v / top) for i, v in enumerate(values)]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in at)
    area = f"M2 {tall - 2}L{path}L{wide - 2} {tall - 2}Z"
    return Markup(
        f'<svg class="spark" viewBox="0 0 {wide} {tall}" width="{wide}" height="{tall}" '
        f'aria-hidden="true" focusable="false"><path class="area" d="{area}"/>'
        f'<path class="line" d="M{path}"/></svg>'
    )


def reach(arms: Sequence[Arm]) -> float:
    """How far whiskers reach from one half to either side, so that all arms are within."""
    ends = [end for arm in arms for end in (arm.lower, arm.upper) if end is not None]
    far = max((abs(end - 0.5) for end in ends), default=0.5)
    return next(wide for wide in (0.1, 0.2, 0.3, 0.4, 0.5) if far <= wide + 1e-9 or wide == 0.5)


def whisker(
    lower: float | None, mean: float | None, upper: float | None, far: float = 0.5
) -> Markup:
    """An interval with a mark at one half; the ends are `far` from it."""
    wide, tall = 132, 18
    parts = [f'<path class="half" d="M{wide / 2:g} 1V{tall - 1}"/>']
    if lower is not None and mean is not None and upper is not None:
        name, x = html.side(lower, upper), html.reach((lower, mean, upper), wide, 4, far)
        parts.append(f'<path class="reach {name}" d="M{x[0]:.1f} 9H{x[2]:.1f}"/>')
        parts.append(f'<circle class="dot {name}" cx="{x[1]:.1f}" cy="9" r="4"/>')
    return Markup(
        f'<svg class="whisker" viewBox="0 0 {wide} {tall}" width="{wide}" height="{tall}" '
        f'aria-hidden="true" focusable="false"><path class="base" d="M4 9H{wide - 4}"/>'
        f"{''.join(parts)}</svg>"
    )


def gauge(value: float | None, name: str = "") -> Markup:
    """A bar from 0 to 1."""
    filled = 100 * min(1.0, max(0.0, value or 0.0))
    return Markup(
        f'<svg class="gauge {name}" viewBox="0 0 100 6" width="100" height="6" '
        'preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        '<rect class="rest" width="100" height="6" rx="3"/>'
        f'<rect class="full" width="{filled:.1f}" height="6" rx="3"/></svg>'
    )
