"""A program drawn: every loop a box around what it repeats, coloured by how it runs."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_ROW, _STEP, _WIDTH = 24, 16, 620
# First word of a line of `state_text` -> the box's colour
_COLOURS = {
    "for": "#94a3b8",
    "parallel": "#2563eb",
    "vectorize": "#059669",
    "unroll": "#d97706",
    "tensorize": "#9333ea",
}
_OTHER = "#0891b2"


def nest_picture(text: str) -> str:
    """The picture of a program.

    Args:
        text: what `auto_scheduler.state_text` made of it.
    """
    lines = [line for line in text.splitlines()[1:] if line.strip()]
    depths = [(len(line) - len(line.lstrip())) // 2 for line in lines]
    boxes = [_box(row, line.strip(), depths) for row, line in enumerate(lines)]
    legend = "".join(f'<span><i style="background:{colour}"></i>{kind}</span>' for kind, colour in _COLOURS.items())
    height = len(lines) * _ROW + 8
    svg = f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="loop nest of the best program">{"".join(boxes)}</svg>'
    return f'<p class="legend">{legend}</p>{svg}'


def _box(row: int, line: str, depths: Sequence[int]) -> str:
    """The box of one line, down to the last line inside it; statements are text only."""
    depth = depths[row]
    x, y = depth * _STEP + 4, row * _ROW + 4
    label = f'<text x="{x + 8}" y="{y + 16}">{escape(line)}</text>'
    if line.endswith("= ...") or " (" not in line:
        return label
    rows = 1
    while row + rows < len(depths) and depths[row + rows] > depth:
        rows += 1
    colour = _COLOURS.get(line.split(" ", 1)[0], _OTHER)
    size = f'width="{_WIDTH - depth * _STEP - x - 4}" height="{rows * _ROW - 3}"'
    return f'<rect x="{x}" y="{y}" {size} rx="4" fill="{colour}" fill-opacity="0.13" stroke="{colour}"/>{label}'
