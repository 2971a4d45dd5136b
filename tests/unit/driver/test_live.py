"""The page of a search that runs."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tests.v06_workloads  # noqa: F401  (registers the workloads)
from tensorexpr import auto_scheduler
from tensorexpr.auto_scheduler import MeasureInput, SearchTask
from tensorexpr.driver.cli import main
from tensorexpr.driver.report.following import Following
from tensorexpr.driver.report.live import LivePage, _span
from tensorexpr.errors import TuningError
from tensorexpr.schedule.steps import Split
from tensorexpr.schedule.trace import Trace
from tests.effort import share_of
from tests.unit.driver.test_report import TARGET, Checker, result


def write(log: Path, costs: Sequence[float | None], start: float, seconds: float = 1.0, size: int = 8) -> None:
    """Append trials that came so many seconds after one another."""
    task = SearchTask(func="v06_matmul", args=(size, 8, 16), target=TARGET)
    made = [MeasureInput(task, Trace((Split(2, 0, (None, 2 + n)),))) for n in range(len(costs))]
    auto_scheduler.save_records(log, made, [replace(result(cost), timestamp=start + n * seconds) for n, cost in enumerate(costs)])


@pytest.fixture
def page(tmp_path: Path) -> Iterator[LivePage]:
    with LivePage(tmp_path / "log.json", trials=10, refresh_s=2) as made:
        yield made


def fetched(page: LivePage, host: str | None = None, path: str = "") -> str:
    request = urllib.request.Request(page.url + path, headers={} if host is None else {"Host": host})
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.headers["Cache-Control"] == "no-store"
        return str(answer.read().decode())


def test_it_shows_what_came_since_the_last_time(page: LivePage, tmp_path: Path) -> None:
    log, now = tmp_path / "log.json", time.time()
    assert "no results yet" in fetched(page)
    write(log, [0.5, None, 0.2, 0.1], now - 4)
    first = fetched(page)
    checker = Checker()
    checker.feed(first)
    assert checker.open == [] and "script" not in checker.seen and '<meta http-equiv="refresh" content="2">' in first
    assert "<td>trials</td><td>4 of 10</td>" in first and "<td>a second</td><td>1.00</td>" in first
    assert "<td>failures</td><td>1 of 4</td>" in first and "&lt;script&gt;too long" in first and "in 6 s</td>" in first
    assert "v06_matmul(8, 8, 16): 100 ms" in first and "<h3>Tasks</h3>" not in first
    again = replace(result(0.08, rounds=7), timestamp=now)
    task = SearchTask(func="v06_matmul", args=(8, 8, 16), target=TARGET)
    auto_scheduler.save_records(log, [MeasureInput(task, Trace((Split(2, 0, (None, 5)),)))], [again])
    assert "v06_matmul(8, 8, 16): 80 ms, timed again" in fetched(page)
    write(log, [0.3] * 6, now, size=16)
    last = fetched(page)
    assert (
        "all trials are done" in last
        and "<h3>Tasks</h3>" in last
        and last.index("v06_matmul(16") < last.index("v06_matmul(16, 8, 16): 300 ms")
    )


def test_a_page_of_elsewhere_and_other_paths_get_nothing(page: LivePage) -> None:
    for host, path, code in (("evil.example:80", "", 403), (None, "etc/passwd", 404)):
        with pytest.raises(urllib.error.HTTPError) as found:
            fetched(page, host, path)
        assert found.value.code == code
        found.value.close()


def test_a_port_that_is_taken_is_said(page: LivePage, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(TuningError, match="--port 0"):
        LivePage(tmp_path / "log.json", port=page.port)
    assert main(["report", str(tmp_path / "log.json"), "--live", "--refresh", "0"]) == 2
    assert "above 0" in capsys.readouterr().err


@settings(max_examples=share_of(30), deadline=None)
@given(st.lists(st.integers(1, 60), max_size=12))
def test_a_log_is_read_once_however_its_lines_come(pieces: list[int]) -> None:
    """Whole lines count, wherever writing was when it was looked at."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        source, log = Path(folder) / "source.json", Path(folder) / "log.json"
        write(source, [0.5, None, 0.25], 100.0)
        data = source.read_bytes() + b"no record\n"
        following, written = Following(log), 0
        for percent in [*pieces, 100]:
            size = min(len(data), written + len(data) * percent // 100)
            with log.open("ab") as file:
                file.write(data[written:size])
            written = size
            following.update()
            assert len(following.records) + following.skipped == data[:written].count(b"\n")
        assert [record.median for record in following.records] == [0.5, float("inf"), 0.25] and following.skipped == 1
        log.write_bytes(source.read_bytes()[: source.read_bytes().index(b"\n") + 1])
        following.update()
        assert len(following.records) == 1 and following.rate == 0 and following.end(5) is None


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (59.6, "1 min 0 s"), (3600, "1 h 0 min"), (7290, "2 h 1 min")])
def test_spans_of_time(seconds: float, text: str) -> None:
    assert _span(seconds) == text
