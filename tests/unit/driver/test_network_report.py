"""The page of a tuned network."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tensorexpr.driver.report.network import network_page
from tensorexpr.relax.tuning import NetworkTuning, TaskOutcome


def test_rows_add_up_to_the_whole() -> None:
    made: Any = None
    tasks = (
        TaskOutcome("fused_conv2d_relu", "key", ("fused_conv2d_relu", "conv<3>"), 2, 4e-3, 2e-3, 12, "record"),
        TaskOutcome("pool", "other", ("pool",), 1, 1e-3, 1.1e-3, 3, "rule"),
        TaskOutcome("reshape (NumPy)", "", ("reshape (NumPy)",), 1, 1e-4, 1e-4, 0, "no kernel"),
    )
    tuning = NetworkTuning(
        tasks, 5e-3, 3e-3, 61.0, 60.0, 15, True, Path("net.json"), Path("net.best.json"), made, ("old.json: 3 <records>",)
    )
    page = network_page(tuning, "A <net>")
    assert "A &lt;net&gt;" in page and "1.67x as fast" in page and "interrupted" in page and "pool (3 programs)" in page
    assert "old.json: 3 &lt;records&gt;" in page and "4.000 → 2.000 ms, 78.4 %, 2.00x" in page and "1.000 ms, 19.6 %" in page
    svg = ElementTree.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])
    bars = [[float(rect.get(one) or "0") for one in ("x", "width")] for rect in svg.iter("rect")]
    # Each row has what is left of it and what changed; the next begins where it ends, and what is left is in proportion.
    ends = [bars[n + 1][0] + bars[n + 1][1] for n in range(0, len(bars), 2)]
    assert [round(bars[n][0]) for n in range(2, len(bars), 2)] == [round(end) for end in ends[:-1]]
    assert abs(bars[0][1] / bars[2][1] - 2.0) < 0.01 and "conv<3>" in "".join(svg.itertext())
