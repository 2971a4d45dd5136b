"""A tuning log as a page."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tests.v06_workloads  # noqa: F401  (registers the workloads)
from tensorexpr import auto_scheduler
from tensorexpr.auto_scheduler import MeasureInput, SearchTask
from tensorexpr.driver.cli import main
from tensorexpr.driver.report.charts import Axis, best_curves, curve_legend, histogram, scatter, tuning_curve
from tensorexpr.driver.report.nest import nest_picture
from tensorexpr.driver.report.run import runs_of
from tensorexpr.schedule.steps import Annotate, Split
from tensorexpr.schedule.trace import Trace
from tensorexpr.tune.measure import FAILED_COST, MeasureErrorNo, MeasureResult
from tests.effort import share_of

TARGET = "llvm -mcpu=x86-64-v3 -num-cores=2"
INF = float("inf")
SVG = re.compile(r"<svg.*?</svg>", re.S)


def result(cost: float | None, predicted: float | None = None, rounds: int = 0) -> MeasureResult:
    error = MeasureErrorNo.NO_ERROR if cost is not None else MeasureErrorNo.RUN_TIMEOUT
    policy = {**({"predicted": predicted} if predicted is not None else {}), **({"rounds": rounds} if rounds else {})}
    message = "" if cost is not None else "<script>too long</script>"
    return MeasureResult((cost or FAILED_COST,), error, message, 0.1, 1.0, cost is not None, policy)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of two tasks, one of a workload that is unknown here."""
    path, task = tmp_path / "log.json", SearchTask(func="v06_matmul", args=(8, 8, 16), target=TARGET)
    split = Trace((Split(2, 0, (None, 4)),))
    tiled = Trace((Split(2, 0, (None, 2)), Annotate(2, 3, "parallel")))
    traces = [Trace(), split, tiled, split.append(Annotate(2, 1, "vectorize")), tiled, split.append(Annotate(2, 4, "unroll"))]
    results = [result(0.5), result(0.4, 1.0), result(0.1, 3.0), result(None, 2.0), result(0.2, rounds=7), result(0.3, 2.0)]
    auto_scheduler.save_records(path, [MeasureInput(task, trace) for trace in traces], results)
    lines = path.read_text()
    path.write_text(lines + lines.splitlines()[1].replace("v06_matmul", "<b>nowhere</b>") + "\n")
    return path


class Checker(HTMLParser):
    """Fails on tags that are never closed, and on anything from elsewhere."""

    VOID = ("meta", "br", "circle", "rect", "line", "polyline", "i")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        assert not {"src", "href", "onload", "onclick"} & {name for name, _ in attrs}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_the_legend_says_which_trials_the_scale_leaves_out() -> None:
    assert "triangles at the upper edge: 2 of more than 21.6 ms" in curve_legend([0.001, 0.0216, 0.03, 1.0])
    assert tuning_curve([0.001, 0.0216, 0.03, 1.0], [0.001] * 4).count("<path") == 2
    assert "triangle" not in curve_legend([0.001, 0.002]) and curve_legend([INF]) == ""


def test_a_run_in_numbers(log: Path) -> None:
    run, other = runs_of(auto_scheduler.load_records(log, repeats=True))
    assert len(run.records) == 6 and len(run.trials) == 5
    assert run.best_so_far == [0.5, 0.4, 0.1, 0.1, 0.1]
    assert run.best is not None and run.best.median == 0.2
    assert run.plain is not None and run.plain.median == 0.5
    assert run.failures.kinds == (("RunTimeoutError", 1),)
    assert [predicted for predicted, _ in run.predictions] == [1.0, 3.0, 2.0]
    assert [item.correlation for item in run.qualities.values()] == [pytest.approx(1.0)]
    assert run.title == "v06_matmul(8, 8, 16)"
    assert run.dag is not None and other.dag is None


def test_the_page_is_whole_and_safe(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = log.parent / "report.html"
    assert main(["report", str(log), "-o", str(out)]) == 0
    assert "6 trials of 2 tasks, 1 timed again at the end: " in capsys.readouterr().out
    page = out.read_text()
    checker = Checker()
    checker.feed(page)
    assert checker.open == [] and "script" not in checker.seen
    assert "http" not in page and "url(" not in page
    assert "&lt;script&gt;too long&lt;/script&gt;" in page and "&lt;b&gt;nowhere" in page
    assert "<td>trials</td><td>5; 1 timed again at the end</td>" in page
    assert "<figcaption>dots: trials; line: the best so far; crosses: 1 that failed</figcaption>" in page
    assert "s[matmul].parallel(" in page and "parallel i.0 (0,4)" in page
    assert "unscheduled program</td><td>500 ms; the best is 2.50x as fast" in page
    assert "default schedule</td><td>400 ms; the best is 2.00x as fast" in page
    assert "Repeats trial 4, which failed with RunTimeoutError" in page
    assert "<td>1</td><td>3</td><td>1.00</td><td>1.00</td><td>1.00</td>" in page
    assert "The workload is not registered here" in page
    for picture in SVG.findall(page):
        ElementTree.fromstring(picture)


def test_the_name_of_the_page_and_messages(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(log), "--import", "tests.v06_workloads"]) == 0
    assert log.with_suffix(".html").is_file()
    assert main(["report", str(log), "--import", "no.such.module"]) == 2
    assert "error: --import no.such.module:" in capsys.readouterr().err
    empty = tmp_path / "empty.json"
    empty.write_text("")
    assert main(["report", str(empty)]) == 2
    assert "holds no records, so there is nothing to report" in capsys.readouterr().err
    assert main(["report", str(tmp_path / "missing.json")]) == 2
    assert "can't be read" in capsys.readouterr().err


def test_the_curve_steps_down_with_the_best() -> None:
    text = tuning_curve([0.004, INF, 0.002, 0.003], [0.004, 0.004, 0.002, 0.002])
    root = ElementTree.fromstring(text)
    points = [tuple(map(float, point.split(","))) for point in root.find("polyline").attrib["points"].split()]  # type: ignore[union-attr]
    assert [x for x, _ in points] == sorted(x for x, _ in points)
    heights = [y for _, y in points]
    assert heights == sorted(heights) and len(set(heights)) == 2
    assert len(root.findall("circle")) == 3
    assert text.count("failed") == 1


def test_curves_of_several_searches_share_one_scale() -> None:
    text = best_curves({"a<b": [INF, 0.004, 0.002], "union": [0.008, 0.001, 0.001], "none": [INF, INF]})
    first, second, nothing = ElementTree.fromstring(text).findall("svg/polyline")
    corners = [[tuple(map(float, point.split(","))) for point in one.attrib["points"].split()] for one in (first, second)]
    assert corners[0][-1][0] == corners[1][-1][0] and corners[0][0][0] > corners[1][0][0]
    # halves are as high wherever they stand on a logarithmic scale, and lower pixels are faster programs
    assert corners[0][-1][1] - corners[0][0][1] == pytest.approx((corners[1][-1][1] - corners[1][0][1]) / 3, abs=0.2)
    assert nothing.attrib["points"] == "" and "none: no trial ran" in text and "a&lt;b: 2 ms" in text


def test_what_is_far_slower_than_the_best_stands_at_the_edge() -> None:
    root = ElementTree.fromstring(tuning_curve([4.0, 0.004, 0.002], [4.0, 0.004, 0.002]))
    assert len(root.findall("circle")) == 2 and len(root.findall("path")) == 1
    points = root.find("polyline").attrib["points"].split()  # type: ignore[union-attr]
    assert min(float(point.split(",")[1]) for point in points) == pytest.approx(14.0)


@settings(deadline=None, derandomize=True, max_examples=share_of(80))
@given(st.floats(1e-6, 1e6), st.floats(1.001, 1e5), st.booleans())
def test_marks_of_a_scale_are_few_and_within_it(low: float, ratio: float, logarithmic: bool) -> None:
    axis = Axis(low, low * ratio, 0.0, 100.0, logarithmic)
    marks = axis.ticks()
    assert 2 <= len(marks) <= 14 and marks == sorted(set(marks))
    assert all(-0.01 <= axis(mark) <= 100.01 for mark in marks)


def test_scores_of_several_rounds_are_moved_onto_each_other(tmp_path: Path) -> None:
    path, task = tmp_path / "log.json", SearchTask(func="v06_matmul", args=(8, 8, 16), target=TARGET)
    for number, offset in enumerate((-20.0, 3.0)):
        for cost in (0.1, 0.2, 0.4):
            made = result(cost, offset - math.log(cost))
            made = replace(made, policy={**made.policy, "round": number})
            auto_scheduler.save_records(path, [MeasureInput(task, Trace())], [made])
    (run,) = runs_of(auto_scheduler.load_records(path))
    assert all(predicted == pytest.approx(measured) for predicted, measured in run.predictions)
    assert [(number, item.count, item.correlation) for number, item in run.qualities.items()] == [(0, 3, 1.0), (1, 3, 1.0)]


@pytest.mark.parametrize("times", [[], [INF, INF]])
def test_charts_of_nothing_say_so(times: list[float]) -> None:
    assert "no trial ran" in tuning_curve(times, times) and "no trial ran" in best_curves({"one": times, "other": []})
    assert "nothing failed" in histogram([])
    assert "fewer than two programs" in scatter([(1.0, 1.0)], "x", "y")


def test_charts_of_one_value_stay_finite() -> None:
    for text in (tuning_curve([0.5], [0.5]), scatter([(1.0, 2.0), (1.0, 2.0)], "x", "y"), histogram([("a<b", 3)])):
        ElementTree.fromstring(text)
        assert "nan" not in text and "inf" not in text


def test_bars_are_as_long_as_their_counts() -> None:
    root = ElementTree.fromstring(histogram([("a", 4), ("b", 1)]))
    widths = [float(bar.attrib["width"]) for bar in root.findall("rect")]
    assert widths[0] == pytest.approx(4 * widths[1], rel=0.01)


def test_loops_are_boxes_around_what_they_repeat() -> None:
    text = "Placeholder: A\nparallel i (0,4)\n  B auto_unroll: 16\n  for k (0,8)\n    B = ...\nfor j (0,2)\n  C = ...\n"
    picture = SVG.search(nest_picture(text))
    assert picture is not None
    root = ElementTree.fromstring(picture[0])
    boxes = [{name: float(box.attrib[name]) for name in ("x", "y", "width", "height")} for box in root.findall("rect")]
    assert len(boxes) == 3
    outer, inner, after = boxes
    assert outer["x"] < inner["x"] and inner["x"] + inner["width"] < outer["x"] + outer["width"]
    assert outer["y"] < inner["y"] and inner["y"] + inner["height"] <= outer["y"] + outer["height"] <= after["y"]
    assert [label.text for label in root.findall("text")][1] == "B auto_unroll: 16"


def test_steps_of_an_unknown_workload_stand_as_recorded(log: Path) -> None:
    assert main(["report", str(log)]) == 0
    page = log.with_suffix(".html").read_text()
    assert json.dumps(["split", 2, 0, [None, 4]]).replace('"', "&quot;") in page
