"""Small charts as SVG text, without any library or font from elsewhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from ...dataclass import dataclass

_WIDTH, _HEIGHT = 620, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 16, 14, 40
_BAR, _GAP, _LABELS = 22, 8, 220
_TICKS = 6
_COLOURS = ("#2563eb", "#d97706", "#dc2626", "#059669", "#9333ea", "#0891b2")
# Trials that took more than so many times the best are drawn at the edge.
_SLOWEST = 20.0


@dataclass(frozen=True)
class Axis:
    """A scale: values from `low` to `high`, in a line of pixels from `start` to `end`; logarithmic, or of whole numbers."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False
    whole: bool = False

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        low, high, value = (math.log(v) for v in (self.low, self.high, value)) if self.logarithmic else (self.low, self.high, value)
        return self.start + (value - low) / ((high - low) or 1.0) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Some round values to mark: 1, 2 and 5 times powers of ten where the scale is logarithmic, else multiples of such a number."""
        if self.logarithmic:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            fine = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
            inside = [value for value in fine if self.low <= value <= self.high]
            tens = [value for value in inside if f"{value:e}".startswith("1.")]
            found = tens if len(tens) >= _TICKS - 1 else inside
            if len(found) > 2:
                return found
        step = _round_step((self.high - self.low) / (_TICKS - 1), whole=self.whole)
        first = math.ceil(self.low / step - 1e-9)
        return [n * step for n in range(first, math.floor(self.high / step + 1e-9) + 1)]


def _round_step(least: float, whole: bool) -> float:
    """The smallest of 1, 2, 5, 10, ... times a power of ten that isn't below `least`."""
    if least <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(least))
    # 1e-9: rounding may put a `least` that is meant to be 0.2 a little above 2 * 0.1
    step = next(digit * power for digit in (1, 2, 5, 10) if digit * power >= least * (1 - 1e-9))
    return max(1.0, step) if whole else step


def tuning_curve(times: Sequence[float], best: Sequence[float]) -> str:
    """Milliseconds of each trial as dots and of the best so far as a line, on a logarithmic scale.

    What is many times slower than the best stands as a triangle at the upper edge, so that the scale shows the others apart.

    Args:
        times: seconds of each trial; infinite for those that failed.
        best: the least so far after each.
    """
    known = [value * 1e3 for value in times if math.isfinite(value)]
    if not known:
        return _empty("no trial ran")
    x = Axis(1, max(2, len(times)), _LEFT, _WIDTH - _RIGHT, whole=True)
    y = Axis(min(known) / 1.08, min(max(known), _SLOWEST * min(known)) * 1.08, _HEIGHT - _BOTTOM, _TOP, logarithmic=True)
    dots = [_dot(x(n), y, n, value * 1e3) for n, value in enumerate(times, 1) if math.isfinite(value)]
    crosses = [
        f'<text class="cross" x="{x(n):.1f}" y="{_HEIGHT - _BOTTOM - 3}" text-anchor="middle">x<title>trial {n} failed</title></text>'
        for n, value in enumerate(times, 1)
        if not math.isfinite(value)
    ]
    line = f'<polyline class="line" points="{_steps(x, y, best)}"/>'
    return _chart(x, y, [*dots, *crosses, line], "trial", "ms", "time of each trial, and of the best so far")


def _steps(x: Axis, y: Axis, best: Sequence[float]) -> str:
    """The corners of a line of the best so far, in milliseconds; seconds in."""
    corners: list[str] = []
    for n, value in enumerate(best, 1):
        if math.isfinite(value):
            # a step, not a slope: the best stays what it is until the trial that beats it
            corners += [f"{x(n):.1f},{y(min(best[n - 2] * 1e3, y.high)):.1f}"] if corners else []
            corners.append(f"{x(n):.1f},{y(min(value * 1e3, y.high)):.1f}")
    return " ".join(corners)


def best_curves(curves: Mapping[str, Sequence[float]]) -> str:
    """Milliseconds of the best so far of several searches, a line each, on one logarithmic scale; with a legend that says where they end.

    Args:
        curves: name -> seconds of the best after each trial; infinite before one ran.
    """
    known = [value * 1e3 for best in curves.values() for value in best if math.isfinite(value)]
    if not known:
        return _empty("no trial ran")
    x = Axis(1, max(2, *map(len, curves.values())), _LEFT, _WIDTH - _RIGHT, whole=True)
    y = Axis(min(known) / 1.08, max(known) * 1.08, _HEIGHT - _BOTTOM, _TOP, logarithmic=True)
    lines, words = [], []
    for place, (name, best) in enumerate(curves.items()):
        colour = _COLOURS[place % len(_COLOURS)]
        end = f"{name}: {best[-1] * 1e3:.4g} ms" if best and math.isfinite(best[-1]) else f"{name}: no trial ran"
        style = f"fill:none;stroke:{colour};stroke-width:2;stroke-opacity:.85"
        lines.append(f'<polyline style="{style}" points="{_steps(x, y, best)}"><title>{escape(end)}</title></polyline>')
        words.append(f'<span><i style="background:{colour}"></i>{escape(end)}</span>')
    chart = _chart(x, y, lines, "trial", "ms", "the best time so far of each search")
    return f'<figure>{chart}<p class="legend">{"".join(words)}</p></figure>'


def curve_legend(times: Sequence[float]) -> str:
    """What the marks of `tuning_curve` mean, those that it has; with the number of trials that its scale leaves out."""
    known = [value for value in times if math.isfinite(value)]
    if not known:
        return ""
    edge = _SLOWEST * min(known) * 1.08
    slow, failed = sum(value > edge for value in known), len(times) - len(known)
    words = ["dots: trials", "line: the best so far"]
    words += [f"triangles at the upper edge: {slow} of more than {edge * 1e3:.4g} ms"] * bool(slow)
    words += [f"crosses: {failed} that failed"] * bool(failed)
    return f"<figcaption>{'; '.join(words)}</figcaption>"


def _dot(x: float, y: Axis, number: int, value: float) -> str:
    """A trial; at the upper edge if it took longer."""
    title = f"<title>trial {number}: {value:.4g} ms</title>"
    if value <= y.high:
        return f'<circle class="dot" cx="{x:.1f}" cy="{y(value):.1f}" r="2.5">{title}</circle>'
    return f'<path class="dot" d="M{x - 3.5:.1f} {y.end + 6:.1f} L{x:.1f} {y.end:.1f} L{x + 3.5:.1f} {y.end + 6:.1f} Z">{title}</path>'


def scatter(points: Sequence[tuple[float, float]], x_label: str, y_label: str) -> str:
    """Points with their axes."""
    if len(points) < 2:
        return _empty("fewer than two programs were predicted and ran")
    xs, ys = zip(*points, strict=True)
    x = _padded(xs, _LEFT, _WIDTH - _RIGHT)
    y = _padded(ys, _HEIGHT - _BOTTOM, _TOP)
    dots = [f'<circle class="dot" cx="{x(a):.1f}" cy="{y(b):.1f}" r="3"/>' for a, b in points]
    return _chart(x, y, dots, x_label, y_label, f"{y_label} against {x_label}")


def histogram(counts: Sequence[tuple[str, int]]) -> str:
    """A bar for each kind with its count."""
    if not counts:
        return _empty("nothing failed")
    most = max(count for _, count in counts)
    scale = (_WIDTH - _LABELS - 60) / most
    rows = []
    for n, (name, count) in enumerate(counts):
        y = n * (_BAR + _GAP) + 4
        rows.append(f'<text x="{_LABELS - 8}" y="{y + 16}" text-anchor="end">{escape(name)}</text>')
        rows.append(f'<rect class="bar" x="{_LABELS}" y="{y}" width="{count * scale:.1f}" height="{_BAR}"/>')
        rows.append(f'<text x="{_LABELS + count * scale + 6:.1f}" y="{y + 16}">{count}</text>')
    height = len(counts) * (_BAR + _GAP) + 8
    return f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="failures by kind">{"".join(rows)}</svg>'


def _padded(values: Sequence[float], start: float, end: float) -> Axis:
    low, high = min(values), max(values)
    margin = (high - low) * 0.06 or 1.0
    return Axis(low - margin, high + margin, start, end)


def _chart(x: Axis, y: Axis, marks: Sequence[str], x_label: str, y_label: str, description: str) -> str:
    frame = [f'<line class="axis" x1="{_LEFT}" y1="{_HEIGHT - _BOTTOM}" x2="{_WIDTH - _RIGHT}" y2="{_HEIGHT - _BOTTOM}"/>']
    frame.append(f'<line class="axis" x1="{_LEFT}" y1="{_TOP}" x2="{_LEFT}" y2="{_HEIGHT - _BOTTOM}"/>')
    for value in y.ticks():
        frame.append(f'<line class="grid" x1="{_LEFT}" y1="{y(value):.1f}" x2="{_WIDTH - _RIGHT}" y2="{y(value):.1f}"/>')
        frame.append(f'<text x="{_LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.4g}</text>')
    for value in x.ticks():
        frame.append(f'<text x="{x(value):.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">{value:.4g}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    frame.append(f'<text x="{middle:.0f}" y="{_HEIGHT - 6}" text-anchor="middle">{escape(x_label)}</text>')
    frame.append(
        f'<text x="14" y="{_HEIGHT / 2:.0f}" transform="rotate(-90 14 {_HEIGHT / 2:.0f})" text-anchor="middle">{escape(y_label)}</text>'
    )
    body = "".join([*frame, *marks])
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(description)}">{body}</svg>'


def _empty(text: str) -> str:
    return f'<p class="empty">{escape(text)}</p>'
