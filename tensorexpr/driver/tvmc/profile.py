"""A page about a run: each kernel with its part of the time, the longest first."""

from __future__ import annotations

from html import escape

from ...relax.runtime.machine import Report

_STYLE = """
body { font: 14px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 90rem; padding: 0 1rem; color: #111; background: #fff; }
h1 { font-size: 1.5rem; } p { color: #6b7280; } div { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; } th { text-align: left; color: #6b7280; font-weight: normal; }
th, td { padding: .15rem .8rem .15rem 0; border-bottom: 1px solid #e5e7eb; vertical-align: top; }
td.number, th.number { text-align: right; white-space: nowrap; } td.text { overflow-wrap: anywhere; font-size: .85rem; }
.bar { background: #2563eb; height: .7rem; min-width: 1px; margin-top: .35rem; } td.wide { width: 9rem; min-width: 5rem; }
td.name { overflow-wrap: anywhere; min-width: 13rem; max-width: 22rem; } td.shapes { min-width: 22rem; }
@media (prefers-color-scheme: dark) {
  body { background: #111; color: #eee; } th, td { border-color: #374151; } .bar { background: #93c5fd; }
}
"""


def page(report: Report, title: str) -> str:
    """The page, which needs nothing else.

    Args:
        report: of `VirtualMachine.profile`.
        title: of the page.
    """
    summed: dict[tuple[str, str], list[float]] = {}
    for name, seconds, shapes in report.calls:
        summed.setdefault((name, shapes), []).append(seconds)
    rows = sorted(summed.items(), key=lambda row: -sum(row[1]))
    inside = sum(seconds for _, seconds, _ in report.calls)
    most = max((sum(times) for _, times in rows), default=0.0) or 1.0
    lines = [
        f'<tr><td class="name">{escape(name)}</td><td class="number">{len(times)}</td><td class="number">{sum(times) * 1e6:,.1f}</td>'
        f'<td class="number">{100 * sum(times) / report.total:.1f} %</td>'
        f'<td class="wide"><div class="bar" style="width:{100 * sum(times) / most:.1f}%"></div></td>'
        f'<td class="text shapes">{escape(shapes)}</td><td class="text">{escape(report.schedules.get(name, ""))}</td></tr>'
        for (name, shapes), times in rows
    ]
    heads = ("kernel", "calls", "&micro;s", "of the run", "", "arguments", "schedule")
    numbers = ("calls", "&micro;s", "of the run")
    head = "".join(f'<th class="number">{one}</th>' if one in numbers else f"<th>{one}</th>" for one in heads)
    whole = f"{len(report.calls)} calls of {len(rows)} kernels, {inside * 1e3:.3f} ms; the whole run {report.total * 1e3:.3f} ms"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title><style>{_STYLE}</style></head><body>
<h1>{escape(title)}</h1>
<p>{whole}. Each call is measured by itself, so that the sum is more than a run without a profile takes. Times are medians of several
runs.</p>
<div><table><tr>{head}</tr>
{chr(10).join(lines)}
</table></div></body></html>
"""
