"""Results as text: one line for each case, the ratio to the best peer at its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .probes import OWN_CORES
from .rows import Results, Row, geometric_mean


def table(results: Results) -> str:
    """All cases, with milliseconds of every contender, what we reach of the limit, and peer/ours."""
    contenders = list(dict.fromkeys(row.contender for row in results.rows))
    width = max([12, *(len(case) for case in results.cases())])
    column = max([14, *(len(name) + 2 for name in contenders)])
    heads = "".join(f"{name:>{column}}" for name in contenders)
    lines = [f"{'case':<{width}}{heads}{'GFLOPS':>9}{'% FMA':>7}{'GB/s':>7}{'vs best':>9}   (milliseconds, 20th percentiles)"]
    ratios = []
    for case in results.cases():
        rows = {row.contender: row for row in results.of_case(case)}
        times = "".join(f"{_milliseconds(rows.get(name)):>{column}}" for name in contenders)
        ours = fastest_of_ours(results, case)
        rate, share, bandwidth, ratio = "", "", "", ""
        if ours is not None:
            rate, bandwidth = f"{ours.gflops:.1f}", f"{ours.bandwidth:.1f}"
            share = f"{100 * ours.gflops / results.limits['fma_gflops']:.0f}"
            value = ratio_to_best_peer(results, case)
            if value == value:
                ratios.append(value)
                ratio = f"{value:.2f}x"
        lines.append(f"{case:<{width}}{times}{rate:>9}{share:>7}{bandwidth:>7}{ratio:>9}")
    limits = results.limits
    lines.append("")
    lines.append(
        f"limits in this run: {limits['fma_gflops']:.0f} GFLOPS, read {limits['read_dram']:.0f} / {limits['read_cache']:.0f} GB/s "
        f"and triad {limits['triad_dram']:.0f} / {limits['triad_cache']:.0f} GB/s (memory / caches), {limits['threads']:.0f} threads"
    )
    lines += _conditions(results.machine)
    if ratios:
        lines.append(f"geometric mean of best peer / ours: {geometric_mean(ratios):.2f}, worst {min(ratios):.2f}")
    tuned = [row for row in results.rows if row.tuning]
    if tuned:
        trials, seconds = sum(row.trials for row in tuned), sum(row.tuning or 0.0 for row in tuned)
        lines.append(f"tuned in this run: {len(tuned)} cases, {trials} trials, {seconds:.1f} s")
    for row in results.rows:
        if row.tuning:
            lines.append(f"{row.case}: tuned with {row.trials} trials in {row.tuning:.1f} s")
        if row.note:
            lines.append(f"{row.case}, {row.contender}: {row.note}")
    return "\n".join(lines)


def _conditions(machine: Mapping[str, Any]) -> list[str]:
    """What was measured with: instruction set, priority, peers left out; a warning if the cores weren't ours."""
    lines = [f"{machine['processor']}, instructions: {machine['isa']}, {machine['priority']}"] if "isa" in machine else []
    lines += machine.get("left_out", ())
    # results of a run without probes say nothing, and aren't doubted
    share = machine.get("least_fma_share", 1.0)
    if share < OWN_CORES:
        lines.append(
            f"WARNING: the FMA probe fell to {share:.0%} of its best in this run: other work has the cores, the figures are worth nothing; "
            "--priority realtime takes the cores where that is permitted"
        )
    return lines


def fastest_of_ours(results: Results, case: str) -> Row | None:
    """Our fastest row of a case, if one was measured."""
    rows = [row for row in results.of_case(case) if row.contender.startswith("tensorexpr") and row.median == row.median]
    return min(rows, key=lambda row: row.low, default=None)


def ratio_to_best_peer(results: Results, case: str) -> float:
    """Seconds of the fastest peer that computed what was asked over ours; NaN if one of them is missing."""
    ours = fastest_of_ours(results, case)
    peers = [row for row in results.of_case(case) if not row.contender.startswith("tensorexpr") and row.median == row.median]
    # whoever computes something else may well be faster: sums of bytes that saturate at 16 bits take one instruction less
    right = [row.low for row in peers if not row.is_wrong]
    return min(right) / ours.low if ours is not None and right else float("nan")


def _milliseconds(row: Row | None) -> str:
    if row is None:
        return ""
    return f"{row.low * 1e3:.4f}" if row.low == row.low else "-"
