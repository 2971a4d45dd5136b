"""One test per thing that scans refuse, in declaration and in schedules, with what it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensorexpr import te, tir
from tensorexpr.errors import DeclarationError, RecordError, ScheduleError
from tensorexpr.schedule import create_schedule
from tensorexpr.te import Tensor
from tensorexpr.te.reference import evaluate
from tensorexpr.te.serialize import dag_from_json, dag_to_json
from tests.scan_programs import cumulative_sum, followed, rnn, two_states

X = te.placeholder((6, 4), name="X")
STATE = te.placeholder((6, 4), name="state")
INIT = te.compute((1, 4), lambda _, i: X[0, i], "init")
NUMBER: Any = 3
UPDATE = te.compute((6, 4), lambda t, i: STATE[t - 1, i] + X[t, i], "update")


def updated(body: Callable[..., Any], shape: Any = (6, 4)) -> Tensor:
    made: Tensor = te.compute(shape, body, "update")
    return made


def through_extern() -> Tensor:
    """An update that reads the state through an extern."""
    copied = te.extern((6, 4), [STATE], lambda ins, outs: te_copy(ins[0], outs[0]), name="copied")
    return updated(lambda t, i: copied[t, i])


def te_copy(source: Any, target: Any) -> Any:
    builder = tir.ir_builder.create()
    read, written = builder.buffer_ptr(source), builder.buffer_ptr(target)
    with builder.for_range(0, 24, name="i") as i:
        written[i] = read[i]
    return builder.get()


def other_step() -> Any:
    """A step that reads an update of the step before."""
    second = te.placeholder((6, 4), name="second")
    later = te.compute((6, 4), lambda t, i: te.if_then_else(t >= 2, UPDATE[t - 1, i], 0.0) + second[t - 1, i], "later")
    return te.scan([INIT, INIT], [UPDATE, later], [STATE, second])


def two_scans() -> Any:
    """Two scans of one state."""
    a, b = te.scan(INIT, UPDATE, STATE, name="one"), te.scan(INIT, UPDATE, STATE, name="two")
    return create_schedule(te.compute((6, 4), lambda t, i: a[t, i] + b[t, i], "sum").op)


DECLARATIONS: dict[str, tuple[Callable[[], Any], str]] = {
    "no tensor": (
        lambda: te.scan(INIT, UPDATE, NUMBER),
        "scan scan: 3 is no tensor; init, update, state_placeholder and inputs are tensors",
    ),
    "counts": (lambda: te.scan([INIT, INIT], UPDATE, STATE), "2 init, 1 update and 1 state_placeholder; give one of each"),
    "no state": (lambda: te.scan([], [], []), "0 init, 0 update and 0 state_placeholder"),
    "shared": (lambda: te.scan([INIT, INIT], [UPDATE, UPDATE], [STATE, STATE]), "share an update or a state_placeholder"),
    "computed state": (lambda: te.scan(INIT, UPDATE, INIT), "the state init is computed; a state_placeholder is a te.placeholder"),
    "given update": (lambda: te.scan(INIT, X, STATE), "the update X is no te.compute; wrap it"),
    "dtype": (
        lambda: te.scan(INIT, UPDATE, te.placeholder((6, 4), "float64", name="wide")),
        "init init is float32, update update float32 and the state wide float64",
    ),
    "shape": (
        lambda: te.scan(INIT, UPDATE, te.placeholder((6, 5), name="s")),
        r"shapes of init \[1, 4\], update \[6, 4\] and state \[6, 5\]",
    ),
    "scalar": (
        lambda: te.scan(te.compute((), lambda: X[0, 0]), te.compute((), lambda: X[0, 0]), te.placeholder(())),
        r"init \[\], update \[\] and state \[\] do not fit",
    ),
    "times": (
        lambda: te.scan(
            [INIT, te.compute((2,), lambda _: X[0, 0])],
            [UPDATE, te.compute((6,), lambda t: X[t, 0])],
            [STATE, te.placeholder((6,), name="s")],
        ),
        "the states run over different times",
    ),
    "no rows": (lambda: te.scan(te.compute((0, 4), lambda _, i: X[0, i]), UPDATE, STATE), "init has 0 rows of 6; it has at least one"),
    "too many rows": (lambda: te.scan(te.compute((7, 4), lambda _, i: X[0, i]), UPDATE, STATE), "init has 7 rows of 6"),
    "init of state": (
        lambda: te.scan(te.compute((1, 4), lambda t, i: STATE[t, i], "first"), UPDATE, STATE),
        "init first depends on a state; init is computed before the first step",
    ),
    "this row": (
        lambda: te.scan(INIT, updated(lambda t, i: STATE[t, i] + 1.0), STATE),
        r"reads state\[t, i\], which isn't certainly a row before t; read earlier rows, such as state\[t - 1",
    ),
    "before the first": (
        lambda: te.scan(INIT, updated(lambda t, i: STATE[t - 2, i]), STATE),
        "may lie before the first row: steps start at t = 1, as init has so many rows",
    ),
    "another step": (other_step, "an update at another step than its own; read the state placeholder there"),
    "other producers": (
        lambda: te.scan(INIT, updated(lambda t, i: te.compute((3, 4), lambda a, b: X[a, b], "short")[t, i] + STATE[t - 1, i]), STATE),
        "index 3 of dimension 0 of short",
    ),
    "extern": (lambda: te.scan(INIT, through_extern(), STATE), "copied depends on a state but is no te.compute"),
    "read outside": (
        lambda: create_schedule(te.compute((6, 4), lambda t, i: te.scan(INIT, UPDATE, STATE)[t, i] + UPDATE[t, i], "both").op),
        "both reads update, which exists only while scan scan runs; read the result of the scan",
    ),
    "evaluated outside": (
        lambda: evaluate(
            [te.compute((6, 4), lambda t, i: te.scan(INIT, UPDATE, STATE)[t, i] + STATE[t, i], "both")], {X: np.zeros((6, 4), "float32")}
        ),
        "both reads state, which exists only while scan scan runs",
    ),
    "two scans": (two_scans, "belongs to scan one already; declare another one"),
    "no scan at all": (lambda: create_schedule(UPDATE.op), "reads index -1 of dimension 0 of state"),
}


@pytest.mark.parametrize("name", DECLARATIONS)
def test_declarations(name: str) -> None:
    make, message = DECLARATIONS[name]
    with pytest.raises(DeclarationError, match=message):
        make()


def program() -> tuple[Any, ...]:
    """A scan, its update and the stage between."""
    _, _, made = rnn()
    update = made.op.update[0]
    return create_schedule(made.op), made, update, update.op.input_tensors[0]


SCHEDULES: dict[str, tuple[Callable[..., Any], str]] = {
    "parallel time": (
        lambda s, made, u, p: s[made].parallel(made.op.scan_axis),
        "In schedule for rnn: parallel is not for a scan, whose only loop is time; schedule the loops of its update: update",
    ),
    "vectorised time": (lambda s, made, u, p: s[made].vectorize(made.op.scan_axis), "vectorize is not for a scan"),
    "split time": (lambda s, made, u, p: s[made].split(made.op.scan_axis, 2), "split is not for a scan"),
    "inlined scan": (lambda s, made, u, p: s[made].compute_inline(), "compute_inline is not for a scan"),
    "cached scan": (lambda s, made, u, p: s.cache_write(made, "local"), "cache_write is not for a scan"),
    "inlined update": (
        lambda s, made, u, p: s[u].compute_inline(),
        "compute_inline is not for what a step of rnn computes; such a stage takes",
    ),
    "moved update": (
        lambda s, made, u, p: s[u].compute_at(s[made], made.op.scan_axis),
        "compute_at can't move the update of rnn, which every step computes; move what it reads",
    ),
    "layout": (
        lambda s, made, u, p: s[p].transform_layout(lambda t, b, i: [t, i, b]),
        "transform_layout is not for what a step of rnn computes",
    ),
    "layout of init": (
        lambda s, made, u, p: s[made.op.init[0]].transform_layout(lambda t, b, i: [t, i, b]),
        "In schedule for zeros: transform_layout is not for the init of a scan",
    ),
    "cache for a scan": (
        lambda s, made, u, p: s.cache_read(made.op.init[0], "local", [made]),
        "cache_read for rnn, which copies the elements",
    ),
    "time of update split": (
        lambda s, made, u, p: (s[u].split(u.op.axis[0], 2), s.explain()),
        "In schedule for update: its axis 't' is the time of rnn, of which each step computes its own part",
    ),
    "time of a stage in parallel": (
        lambda s, made, u, p: (s[p].parallel(p.op.axis[0]), s.explain()),
        "In schedule for product: its axis 't' is the time of rnn",
    ),
    "spatial axis": (lambda s, made, u, p: s[made].reorder(made.op.spatial_axis_[0]), "no axis 'rnn_out0_i1' to reorder"),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name: str) -> None:
    apply, message = SCHEDULES[name]
    with pytest.raises(ScheduleError, match=message):
        apply(*program())


def test_a_result_cannot_be_computed_at_its_reader() -> None:
    _, doubled = followed()
    sums = doubled.op.input_tensors[0]
    s = create_schedule(doubled.op)
    with pytest.raises(ScheduleError, match="compute_at can't move a scan, which is computed whole at the root"):
        s[sums].compute_at(s[doubled], doubled.op.axis[0])


def test_what_depends_on_a_state_stays_inside() -> None:
    _, doubled = followed()
    sums = doubled.op.input_tensors[0]
    kept = sums.op.update[0].op.input_tensors[0]
    s = create_schedule(doubled.op)
    s[kept].compute_at(s[doubled], doubled.op.axis[0])
    with pytest.raises(
        ScheduleError, match="In schedule for kept: it depends on a state of sums, so it can't be computed outside of the loop 'sums_idx'"
    ):
        s.explain()


def test_init_is_not_computed_in_the_time_loop() -> None:
    _, sums = cumulative_sum()
    s = create_schedule(sums.op)
    s[sums.op.init[0]].compute_at(s[sums], sums.op.scan_axis)
    with pytest.raises(
        ScheduleError, match="In schedule for first: it is computed at loop 'sums_idx' of sums, but sums also reads it outside"
    ):
        s.explain()


def test_a_stage_of_a_step_is_no_output() -> None:
    _, sums = cumulative_sum()
    with pytest.raises(ScheduleError, match="update exists only while sums runs; schedule the result of the scan"):
        create_schedule([sums.op, sums.op.update[0].op])


JSON: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "field": (lambda scan: scan.pop("update"), "a scan is an object with the fields"),
    "count": (lambda scan: scan["init"].pop(), "a scan has one init, update and state for each result"),
    "reference": (lambda scan: scan["state"].__setitem__(0, [99, 0]), r"no tensor \[99, 0\]"),
    "definition": (lambda scan: scan["state"].__setitem__(0, scan["init"][0]), "is no legal definition: scan pair: the state"),
}


@pytest.mark.parametrize("name", JSON)
def test_json(name: str) -> None:
    change, message = JSON[name]
    data = dag_to_json(two_states()[1:])
    change(data["ops"][-1])
    with pytest.raises(RecordError, match=message):
        dag_from_json(data)
