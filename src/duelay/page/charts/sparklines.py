"""Inline graphics of tables and lists: a line of counts, an interval, a bar."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from duelay.page.view_models import ArmView
from duelay.show import html

_HALF_WIDTHS = (0.1, 0.2, 0.3, 0.4, 0.5)


def draw_counts(values: Sequence[int], width: int = 120, height: int = 28) -> Markup:
    """Draw a line of counts, without axes."""
    if len(values) < 2:
        return Markup("")
    top = max(*values, 1)
    step = (width - 4) / (len(values) - 1)
    points = [
        (2 + i * step, height - 2 - (height - 4) * value / top) for i, value in enumerate(values)
    ]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    area = f"M2 {height - 2}L{path}L{width - 2} {height - 2}Z"
    return Markup(
        f'<svg class="spark" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'aria-hidden="true" focusable="false"><path class="area" d="{area}"/>'
        f'<path class="line" d="M{path}"/></svg>'
    )


def find_half_width(arms: Sequence[ArmView]) -> float:
    """Return how far a scale reaches from one half to either side, to hold all intervals."""
    ends = [end for arm in arms for end in (arm.lower, arm.upper) if end is not None]
    needed = max((abs(end - 0.5) for end in ends), default=0.5)
    return next((each for each in _HALF_WIDTHS if needed <= each + 1e-9), 0.5)


def draw_interval(
    lower: float | None, mean: float | None, upper: float | None, half_width: float = 0.5
) -> Markup:
    """Draw an interval on a scale around one half, which has a mark."""
    width, height = 132, 18
    parts = [f'<path class="half" d="M{width / 2:g} 1V{height - 1}"/>']
    if lower is not None and mean is not None and upper is not None:
        side = html.side(lower, upper)
        x = html.reach((lower, mean, upper), width, 4, half_width)
        parts.append(f'<path class="reach {side}" d="M{x[0]:.1f} 9H{x[2]:.1f}"/>')
        parts.append(f'<circle class="dot {side}" cx="{x[1]:.1f}" cy="9" r="4"/>')
    return Markup(
        f'<svg class="whisker" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'aria-hidden="true" focusable="false"><path class="base" d="M4 9H{width - 4}"/>'
        f"{''.join(parts)}</svg>"
    )


def draw_bar(share: float | None, css_class: str = "") -> Markup:
    """Draw a bar from 0 to 1."""
    filled = 100 * min(1.0, max(0.0, share or 0.0))
    return Markup(
        f'<svg class="gauge {css_class}" viewBox="0 0 100 6" width="100" height="6" '
        'preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        '<rect class="rest" width="100" height="6" rx="3"/>'
        f'<rect class="full" width="{filled:.1f}" height="6" rx="3"/></svg>'
    )
