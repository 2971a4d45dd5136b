"""Results as one self-contained HTML page: a bar chart of each case and the table behind it."""

from __future__ import annotations

from html import escape

from .rows import Results, geometric_mean
from .table import fastest_of_ours, ratio_to_best_peer

_COLOURS = ("#2563eb", "#f59e0b", "#10b981", "#ef4444", "#8b5cf6", "#6b7280", "#ec4899")
_STYLE = """
body { font: 14px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; color: #111; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: right; padding: .2rem .5rem; border-bottom: 1px solid #e5e7eb; }
th:first-child, td:first-child { text-align: left; } .good { color: #047857; } .bad { color: #b91c1c; }
.legend span { display: inline-block; margin-right: 1.2rem; }
.legend i { display: inline-block; width: .8rem; height: .8rem; margin-right: .3rem; }
svg text { font: 12px system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { body { background: #111; color: #eee; } svg text { fill: #eee; } th, td { border-color: #374151; } }
"""


def page(results: Results, title: str) -> str:
    """The page. Bars show speed relative to ours: longer is faster."""
    contenders = list(dict.fromkeys(row.contender for row in results.rows))
    colours = {name: _COLOURS[n % len(_COLOURS)] for n, name in enumerate(contenders)}
    ratios = [value for case in results.cases() if (value := ratio_to_best_peer(results, case)) == value]
    legend = "".join(f'<span><i style="background:{colours[name]}"></i>{escape(name)}</span>' for name in contenders)
    machine = ", ".join(f"{key} {value}" for key, value in results.machine.items() if key != "versions")
    versions = ", ".join(f"{name} {version}" for name, version in results.machine.get("versions", {}).items())
    limits = results.limits
    mean = (
        f"geometric mean {geometric_mean(ratios):.2f}, worst {min(ratios):.2f}, over {len(ratios)} cases" if ratios else "no peer measured"
    )
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title><style>{_STYLE}</style>
<h1>{escape(title)}</h1>
<p>{escape(machine)}<br>{escape(versions)}</p>
<p>Limits in this run: {limits["fma_gflops"]:.0f} GFLOPS; memory {limits["read_dram"]:.0f} GB/s read, {limits["triad_dram"]:.0f} GB/s triad.
Best peer over ours: <b>{escape(mean)}</b>.</p>
<p class="legend">{legend}</p>
{_chart(results, contenders, colours)}
{_table(results, contenders)}
</html>
"""


def _chart(results: Results, contenders: list[str], colours: dict[str, str]) -> str:
    height, gap, left, width = 13, 10, 260, 560
    rows, y = [], 0
    fastest = max((_speed(results, case, name) for case in results.cases() for name in contenders), default=1.0)
    # bars end at three times our speed: one much faster peer would make all the others too short to tell apart
    scale = width / max(1.0, min(fastest, 3.0))
    for case in results.cases():
        rows.append(f'<text x="{left - 8}" y="{y + height}" text-anchor="end">{escape(case)}</text>')
        for name in contenders:
            speed = _speed(results, case, name)
            if speed:
                length = min(speed, 3.0) * scale
                rows.append(f'<rect x="{left}" y="{y + 2}" width="{length:.1f}" height="{height - 3}" fill="{colours[name]}"/>')
                rows.append(f'<text x="{left + length + 4:.1f}" y="{y + height - 1}">{speed:.2f}</text>')
                y += height
        y += gap
    return f'<svg width="100%" viewBox="0 0 {left + width + 60} {y}" role="img" aria-label="speed relative to ours">{"".join(rows)}</svg>'


def _speed(results: Results, case: str, contender: str) -> float:
    """The contender's speed relative to our fastest; 0 if one of them is missing."""
    ours = fastest_of_ours(results, case)
    row = next((row for row in results.of_case(case) if row.contender == contender), None)
    if ours is None or row is None or row.median != row.median:
        return 0.0
    return ours.low / row.low


def _table(results: Results, contenders: list[str]) -> str:
    heads = "".join(f"<th>{escape(name)}<br>ms (cold)</th>" for name in contenders)
    lines = [f"<tr><th>case</th>{heads}<th>GFLOPS</th><th>% of FMA</th><th>GB/s</th><th>best peer / ours</th></tr>"]
    for case in results.cases():
        rows = {row.contender: row for row in results.of_case(case)}
        cells = []
        for name in contenders:
            row = rows.get(name)
            known = row is not None and row.median == row.median
            cold = f" ({row.cold * 1e3:.3g})" if row is not None and row.cold == row.cold else ""
            cells.append(f"<td>{row.low * 1e3:.4g}{cold}</td>" if row is not None and known else "<td>-</td>")
        ours, ratio = fastest_of_ours(results, case), ratio_to_best_peer(results, case)
        tail = "<td></td>" * 3
        if ours is not None:
            tail = f"<td>{ours.gflops:.1f}</td><td>{100 * ours.gflops / results.limits['fma_gflops']:.0f}</td><td>{ours.bandwidth:.1f}</td>"
        verdict = "" if ratio != ratio else f'<span class="{"good" if ratio >= 1 else "bad"}">{ratio:.2f}</span>'
        lines.append(f"<tr><td>{escape(case)}</td>{''.join(cells)}{tail}<td>{verdict}</td></tr>")
    notes = "".join(f"<li>{escape(row.case)}, {escape(row.contender)}: {escape(row.note)}</li>" for row in results.rows if row.note)
    return f"<table>{''.join(lines)}</table><ul>{notes}</ul>"
