"""The report of a tuned network as one HTML page: where its time is, what each kernel gained, and how both add up to the whole."""

from __future__ import annotations

from html import escape

from ...relax.tuning import NetworkTuning, TaskOutcome
from .page import document

_WIDTH, _LABELS, _NUMBERS, _ROW, _BAR = 880, 270, 280, 22, 16
_CHARACTERS = 34  # of a label
_CHANGE = 0.55  # how opaque a gain or a loss is drawn


def network_page(tuning: NetworkTuning, title: str = "A tuned network") -> str:
    """The page.

    Args:
        tuning: what `relax.tune_network` returned.
        title: of the page.
    """
    return document(
        title, "\n".join([_facts(tuning), "<h2>Where the time is</h2>", _waterfall(tuning), _legend(), _left_alone(tuning), _notes(tuning)])
    )


def _facts(tuning: NetworkTuning) -> str:
    kept = [one for one in tuning.tasks if one.origin == "record"]
    rows = [
        ("a run by rules", f"{tuning.untuned_s * 1e3:.3f} ms"),
        ("a run with what was found", f"{tuning.tuned_s * 1e3:.3f} ms, {tuning.speedup:.2f}x as fast; both timed in turn"),
        ("found programs that it runs", f"{len(kept)} of {len(tuning.tasks)} kernels and calls"),
        ("searched", f"{tuning.trials} programs in {tuning.seconds:.0f} s of {tuning.budget_s:g}{', interrupted' * tuning.is_interrupted}"),
        ("log", str(tuning.records)),
        ("chosen programs", str(tuning.best_records)),
    ]
    return "<table>" + "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in rows) + "</table>"


def _waterfall(tuning: NetworkTuning) -> str:
    """A row for each kernel: its bar begins where those before it end, in time by rules, so that the last one ends at the whole."""
    total = sum(one.before_s for one in tuning.tasks) or 1.0
    scale = (_WIDTH - _LABELS - _NUMBERS) / (sum(max(one.before_s, _after_s(one)) for one in tuning.tasks) or 1.0)
    drawn, begin = [], 0.0
    for number, one in enumerate(tuning.tasks):
        drawn.append(_row(one, number, _LABELS + begin * scale, scale, total))
        begin += max(one.before_s, _after_s(one))
    height = len(tuning.tasks) * _ROW + 4
    return f'<figure><svg viewBox="0 0 {_WIDTH} {height}" style="min-width: 46rem">{"".join(drawn)}</svg></figure>'


def _row(one: TaskOutcome, number: int, left: float, scale: float, total: float) -> str:
    y = number * _ROW + 2
    after_s = _after_s(one)
    inside, apart = min(one.before_s, after_s) * scale, abs(one.before_s - after_s) * scale
    colour = "#16a34a" if after_s <= one.before_s else "#dc2626"
    calls = f" x{one.calls}" if one.calls > 1 else ""
    room = _CHARACTERS - len(calls)
    name = one.name if len(one.name) <= room else one.name[: room - 1] + "…"
    text = y + _BAR - 4
    times = f"{one.before_s * 1e3:.3f}" + (f" → {after_s * 1e3:.3f}" if one.origin == "record" else "")
    said = f"{times} ms, {100 * one.before_s / total:.1f} %" + (f", {one.gain}" if one.origin == "record" else "")
    hint = f"{', '.join(one.kernels)}: {said} ({one.origin}); {one.trials} programs"
    fill = "#2563eb" if one.origin == "record" else "#9ca3af"
    return (
        f"<g><title>{escape(hint)}</title>"
        f'<text x="{_LABELS - 6}" y="{text}" text-anchor="end">{escape(name + calls)}</text>'
        f'<rect x="{left:.1f}" y="{y}" width="{max(inside, 0.5):.1f}" height="{_BAR}" fill="{fill}"/>'
        f'<rect x="{left + inside:.1f}" y="{y}" width="{apart:.1f}" height="{_BAR}" fill="{colour}" fill-opacity="{_CHANGE}"/>'
        f'<text x="{_WIDTH - _NUMBERS + 6}" y="{text}">{escape(said)}</text></g>'
    )


def _after_s(one: TaskOutcome) -> float:
    """What isn't a found program is the same before and after: how its two times differ is noise."""
    return one.after_s if one.origin == "record" else one.before_s


def _legend() -> str:
    words = (("#2563eb", 1, "a found program"), ("#9ca3af", 1, "by rules"), ("#16a34a", _CHANGE, "gained"), ("#dc2626", _CHANGE, "lost"))
    keys = (f'<span><i style="background:{colour}; opacity:{opacity}"></i>{word}</span>' for colour, opacity, word in words)
    return f'<p class="legend">{"".join(keys)}</p>'


def _left_alone(tuning: NetworkTuning) -> str:
    """Kernels that were searched and stay as they were."""
    same = [one for one in tuning.tasks if one.trials and one.origin != "record"]
    if not same:
        return ""
    listed = "; ".join(f"{one.name} ({one.trials} programs)" for one in same)
    return f"<p>Searched, and nothing was faster within the network: {escape(listed)}.</p>"


def _notes(tuning: NetworkTuning) -> str:
    return "<ul>" + "".join(f"<li>{escape(note)}</li>" for note in tuning.notes) + "</ul>" if tuning.notes else ""
