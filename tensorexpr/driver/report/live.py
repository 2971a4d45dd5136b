"""A page that shows a search while it runs, on this machine alone: it reads the log that grows, and asks the fleet."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

from ...errors import TensorExprError, TuningError
from ...fleet import Fleet
from .charts import curve_legend, histogram, tuning_curve
from .following import Following
from .page import document
from .run import Run, runs_of

_HOST = "127.0.0.1"
# Tasks whose curves are drawn: those that had results last.
_SHOWN = 3


class LivePage:
    """Serves the page of a log until `close`, from a thread of its own.

        with LivePage("log.json", fleet, trials=1000) as page:
            print(page.url)
            task.tune(options)

    Args:
        log: of the auto-scheduler; it may not be there yet.
        fleet: whose devices are shown; none if None.
        trials: of the whole search, to tell when it ends.
        port: to listen on; any that is free if 0.
        refresh_s: seconds after which the browser asks again.

    Raises:
        TuningError: if the port isn't free.
    """

    def __init__(
        self, log: str | Path, fleet: Fleet | None = None, trials: int | None = None, port: int = 0, refresh_s: float = 5.0
    ) -> None:
        self._following, self._fleet, self._trials, self._refresh_s = Following(Path(log)), fleet, trials, refresh_s
        self._turn = threading.Lock()
        try:
            self._server = ThreadingHTTPServer((_HOST, port), _handler(self))
        except OSError as error:
            raise TuningError(f"the live page can't be served at port {port}: {error.strerror or error}; another one: --port 0") from error
        self.port = int(self._server.server_address[1])
        self.url = f"http://{_HOST}:{self.port}/"
        self._thread = threading.Thread(target=self._server.serve_forever, name="tensorexpr-live", daemon=True)
        self._thread.start()

    def html(self) -> str:
        """The page as it is now."""
        with self._turn:
            try:
                self._following.update()
                body = _body(self._following, self._trials)
            except TensorExprError as error:
                body = f'<p class="empty">{escape(str(error))}</p>'
            devices = "" if self._fleet is None else _devices(self._fleet)
        refresh = f'<meta http-equiv="refresh" content="{self._refresh_s:g}">'
        return document(f"tuning: {self._following.path.name}", f"{body}\n{devices}", refresh)

    def close(self) -> None:
        """Stop serving. Safe to call again."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> LivePage:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _handler(page: LivePage) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            # a page of elsewhere may let its own name mean this machine, and would read what is here
            if (self.headers.get("Host") or "").rpartition(":")[0] not in (_HOST, "localhost"):
                self.send_error(403)
            elif self.path != "/":
                self.send_error(404)
            else:
                data = page.html().encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(data)))
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: a request every few seconds is no news."""

    return Handler


def _body(following: Following, total: int | None) -> str:
    if not following.records:
        return f'<p class="empty">no results yet in {escape(str(following.path))}</p>'
    runs = runs_of(following.records)
    latest = sorted(runs, key=lambda run: max(record.timestamp for record in run.records), reverse=True)[:_SHOWN]
    return "\n".join([_progress(following, runs, total), _tasks(runs) if len(runs) > 1 else "", *(_curve(run) for run in latest)])


def _progress(following: Following, runs: Sequence[Run], total: int | None) -> str:
    trials = following.trials
    failed = sum(run.failures.count for run in runs)
    last = max(record.timestamp for record in following.records)
    rows = [
        ("trials", f"{len(trials)}{'' if total is None else f' of {total}'}"),
        ("a second", f"{following.rate:.2f}" if following.rate else "too few to tell"),
        ("failures", f"{failed} of {len(trials)}"),
        ("last result", f"{_span(max(0.0, time.time() - last))} ago"),
        ("estimated end", _end(following, total)),
    ]
    rows += [("lines that are no records", str(following.skipped))] * bool(following.skipped)
    return _facts(rows)


def _end(following: Following, total: int | None) -> str:
    if total is None:
        return "unknown: --trials says how many there will be"
    if len(following.trials) >= total:
        return "all trials are done"
    end = following.end(total)
    return "unknown yet" if end is None else f"{time.strftime('%H:%M:%S', time.localtime(end))}, in {_span(end - time.time())}"


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _tasks(runs: Sequence[Run]) -> str:
    rows = "".join(
        f"<tr><td>{escape(run.title)}</td><td>{len(run.trials)}</td><td>{run.failures.count}</td><td>{_best(run)}</td></tr>" for run in runs
    )
    head = "<tr><th>task</th><th>trials</th><th>failures</th><th>best</th></tr>"
    return f'<h3>Tasks</h3><table class="numbers">{head}{rows}</table>'


def _best(run: Run) -> str:
    """The best; below the curve, which shows first measurements, if the end of the search timed it again."""
    if run.best is None:
        return "none yet"
    return f"{run.best.median * 1e3:.4g} ms{', timed again' if run.best.is_timed_again else ''}"


def _curve(run: Run) -> str:
    times = [record.median for record in run.trials]
    firsts = "".join(f"<p>First {escape(failure.kind)}: {escape(failure.message)}</p>" for failure in run.failures.first)
    failures = f"<figure>{histogram(run.failures.kinds)}</figure>{firsts}" if run.failures.count else ""
    figure = f"<figure>{tuning_curve(times, run.best_so_far)}{curve_legend(times)}</figure>"
    return f"<h2>{escape(run.title)}: {_best(run)}</h2>\n{figure}\n{failures}"


def _devices(fleet: Fleet) -> str:
    try:
        demands = {key: (count, *fleet.demand(key)) for key, count in fleet.devices().items()}
        workers, dashboard = fleet.workers(), fleet.dashboard
    except TuningError as error:
        return f'<h2>Devices</h2><p class="empty">{escape(str(error))}</p>'
    head = "<tr><th>key</th><th>devices</th><th>free</th><th>jobs that wait</th></tr>"
    rows = "".join(f"<tr><td>{escape(key)}</td>{''.join(f'<td>{number}</td>' for number in of)}</tr>" for key, of in demands.items())
    about = [(worker.host, f"{worker.devices} x {worker.device}, {worker.cores} compilers, {worker.target}") for worker in workers]
    link = f'<p><a href="{escape(dashboard)}">Dask\'s dashboard</a></p>' if dashboard else "<p>The scheduler has no dashboard.</p>"
    return f'<h2>Devices</h2><table class="numbers">{head}{rows}</table>{link}\n<h3>Workers</h3>{_facts(about)}'


def _facts(rows: Sequence[tuple[str, str]]) -> str:
    return "<table>" + "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in rows) + "</table>"
