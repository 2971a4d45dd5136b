"""The report as one HTML page that needs nothing else: no script, no font, no picture from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape

from ...auto_scheduler.compute_dag import ComputeDAG
from ...auto_scheduler.failures import Failure, repeating_program
from ...auto_scheduler.state_views import state_text
from ...errors import TensorExprError
from ...target import Target
from .charts import curve_legend, histogram, scatter, tuning_curve
from .nest import nest_picture
from .run import Run

_STYLE = """
body { font: 14px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 46rem; padding: 0 1rem; color: #111; background: #fff; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; word-break: break-all; }
h3 { font-size: 1rem; margin: 1.5rem 0 .3rem; }
figure { margin: 0; overflow-x: auto; } figcaption { color: #6b7280; font-size: .85rem; }
svg { width: 100%; min-width: 28rem; height: auto; }
svg text { font: 12px system-ui, sans-serif; fill: #111; }
pre { background: #f3f4f6; padding: .7rem; overflow-x: auto; font-size: 12px; border-radius: 4px; }
table { border-collapse: collapse; } td { padding: .15rem 1rem .15rem 0; vertical-align: top; overflow-wrap: anywhere; }
td:first-child { white-space: nowrap; } .numbers th, .numbers td { text-align: right; padding: .1rem .8rem .1rem 0; font-weight: normal; }
.numbers th { color: #6b7280; border-bottom: 1px solid #e5e7eb; }
.axis { stroke: #6b7280; } .grid { stroke: #e5e7eb; } .dot { fill: #2563eb; fill-opacity: .55; } .bar { fill: #dc2626; }
.line { fill: none; stroke: #dc2626; stroke-width: 2; } .cross { fill: #dc2626 !important; } .empty { color: #6b7280; }
.legend span { display: inline-block; margin-right: 1rem; }
.legend i { display: inline-block; width: .8rem; height: .8rem; margin-right: .3rem; }
@media (prefers-color-scheme: dark) {
  body { background: #111; color: #eee; } svg text { fill: #eee; } pre { background: #1f2937; } .grid { stroke: #374151; }
  .dot { fill: #93c5fd; } .line { stroke: #f87171; } .numbers th { color: #9ca3af; border-color: #374151; } .empty { color: #9ca3af; }
}
"""


def page(runs: Sequence[Run], title: str) -> str:
    """The page.

    Args:
        runs: one section each.
        title: of the page.
    """
    return document(title, "\n".join(_section(run) for run in runs))


def document(title: str, body: str, head: str = "") -> str:
    """A page in the style of reports.

    Args:
        title: of the page, as text.
        body: its HTML.
        head: HTML for its head.
    """
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>{head}<style>{_STYLE}</style></head><body>
<h1>{escape(title)}</h1>
{body}
</body></html>
"""


def _section(run: Run) -> str:
    times = [record.median for record in run.trials]
    parts = [
        f"<h2>{escape(run.title)}</h2>",
        _facts(run),
        "<h3>Tuning curve</h3>",
        f"<figure>{tuning_curve(times, run.best_so_far)}{curve_legend(times)}</figure>",
        "<h3>Failures</h3>",
        f"<figure>{histogram(run.failures.kinds)}</figure>",
        *(_failure(run, failure) for failure in run.failures.first),
        "<h3>Predicted against measured</h3>",
        _prediction(run),
        "<h3>Best program</h3>",
        _best(run),
    ]
    return "\n".join(parts)


def _facts(run: Run) -> str:
    timed_again = len(run.records) - len(run.trials)
    again = f"; {timed_again} timed again at the end" if timed_again else ""
    rows = [
        ("workload", run.workload_key),
        ("target", run.target),
        ("threads", str(run.num_threads)),
        ("trials", f"{len(run.trials)}{again}"),
        ("failures", str(run.failures)),
    ]
    if run.best is not None:
        flops = run.dag.flop_ct if run.dag is not None else -1
        speed = f", {flops / run.best.median / 1e9:.2f} GFLOPS" if flops > 0 else ""
        rows.append(("best", f"{run.best.median * 1e3:.4g} ms{speed}; {run.best.spills} spills, {run.best.ir_lines} lines of LLVM IR"))
    for name, other in (("unscheduled program", run.plain), ("default schedule", run.first)):
        if run.best is not None and other is not None:
            rows.append((name, f"{other.median * 1e3:.4g} ms; the best is {other.median / run.best.median:.2f}x as fast"))
    seconds = sum(record.all_cost for record in run.records)
    rows.append(("measuring took", f"{seconds:.1f} s"))
    return "<table>" + "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in rows) + "</table>"


def _failure(run: Run, failure: Failure) -> str:
    text = f"<p>First {escape(failure.kind)}: trial {failure.number + 1}, {escape(failure.message)}</p>"
    if failure.detail:
        text += f"<pre>{escape(failure.detail)}</pre>"
    if run.dag is None:
        return text
    program = escape(repeating_program(run.dag, Target(run.target), failure))
    return f"{text}<details><summary>A program that repeats it</summary><pre>{program}</pre></details>"


def _prediction(run: Run) -> str:
    return f"{_qualities(run)}<figure>{scatter(run.predictions, 'predicted log throughput', 'measured log throughput')}</figure>"


def _qualities(run: Run) -> str:
    """How good the model was in each round, before it learned from it."""
    if not run.qualities:
        return ""
    head = "<tr><th>round</th><th>programs</th><th>rank correlation</th><th>recall of the best quarter</th><th>a-peak</th></tr>"
    rows = "".join(
        f"<tr><td>{number + 1}</td><td>{it.count}</td><td>{it.correlation:.2f}</td><td>{it.recall:.2f}</td><td>{it.peak:.2f}</td></tr>"
        for number, it in run.qualities.items()
    )
    note = (
        "<p>a-peak: the speed of the fastest program among the quarter that the model liked best, relative to the fastest of the round.</p>"
    )
    return f'<table class="numbers">{head}{rows}</table>{note}'


def _best(run: Run) -> str:
    if run.best is None:
        return '<p class="empty">no program ran and was verified</p>'
    if run.dag is None:
        steps = "\n".join(json.dumps(step) for step in run.best.trace.to_json())
        return (
            '<p class="empty">The workload is not registered here, or computes something else now, so the steps stand as they are '
            f"recorded; --import the module that registers it to see the schedule.</p><pre>{escape(steps)}</pre>"
        )
    return _program(run.dag, run.best.trace.as_python(run.dag.initial_tree), state_of(run, run.dag))


def state_of(run: Run, dag: ComputeDAG) -> str:
    """The best program as loops; a sentence if it is not legal any more."""
    assert run.best is not None
    try:
        return state_text(run.best.trace.apply(dag.initial_tree))
    except TensorExprError as error:
        return f"the program can't be drawn: {error}"


def _program(dag: ComputeDAG, lines: Sequence[str], state: str) -> str:
    picture = nest_picture(state) if state.startswith("Placeholder") else f"<p>{escape(state)}</p>"
    return f"<pre>{escape(str(dag))}</pre>\n<pre>{escape(chr(10).join(lines))}</pre>\n<figure>{picture}</figure>"
