"""One test per thing a schedule refuses, with what it says."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from tensorexpr import te
from tensorexpr.errors import LoweringError, ScheduleError
from tensorexpr.lower.phase0 import schedule_to_func
from tensorexpr.schedule import Schedule, create_schedule
from tensorexpr.te.tensor import Tensor

Case = Callable[[Schedule, Tensor, Tensor], object]


@pytest.fixture
def program() -> tuple[list[Tensor], Schedule, Tensor, Tensor]:
    """matmul and its elementwise consumer."""
    a = te.placeholder((8, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    matmul = te.compute((8, 8), lambda i, j: te.sum(a[i, k] * a[k, j], axis=k), name="matmul")
    out = te.compute((8, 8), lambda i, j: matmul[i, j] + 1.0, name="out")
    return [a, out], create_schedule(out.op), matmul, out


def both(*requests: Callable[[], object]) -> None:
    """One request after the other."""
    for request in requests:
        request()


REFUSED: dict[str, tuple[Case, str]] = {
    "factor 0": (lambda s, m, o: s[o].split(o.op.axis[0], factor=0), "split of 'i' by 0; a factor is an integer of at least 1"),
    "factor string": (lambda s, m, o: s[o].split(o.op.axis[0], factor="4"), "split of 'i' by '4'; a factor is an integer"),
    "factor bool": (lambda s, m, o: s[o].split(o.op.axis[0], factor=True), "split of 'i' by True"),
    "factor and nparts": (lambda s, m, o: s[o].split(o.op.axis[0], factor=2, nparts=2), "exactly one of factor and nparts"),
    "neither": (lambda s, m, o: s[o].split(o.op.axis[0]), "exactly one of factor and nparts"),
    "other stage": (lambda s, m, o: s[o].split(m.op.axis[0], factor=2), "no axis 'i' to split, it belongs to matmul; axes: i, j"),
    "no axis": (lambda s, m, o: s[o].split("i", factor=2), "split takes an axis, not 'i'"),  # type: ignore[arg-type]
    "split twice": (lambda s, m, o: [s[o].split(o.op.axis[0], factor=2) for _ in range(2)], "was split or fused"),
    "split vector": (
        lambda s, m, o: both(lambda: s[o].vectorize(o.op.axis[1]), lambda: s[o].split(o.op.axis[1], factor=2)),
        "marked vectorize already",
    ),
    "fuse apart": (lambda s, m, o: s[m].fuse(m.op.axis[0], m.op.reduce_axis[0]), "fuse takes adjacent axes"),
    "fuse kinds": (lambda s, m, o: s[m].fuse(m.op.axis[1], m.op.reduce_axis[0]), "can't mix spatial and reduction axes"),
    "reorder twice": (lambda s, m, o: s[o].reorder(o.op.axis[0], o.op.axis[0]), "names an axis twice"),
    "parallel reduction": (
        lambda s, m, o: s[m].parallel(m.op.reduce_axis[0]),
        "can't parallel 'k': it is a reduction axis, and its iterations would race",
    ),
    "two parallels": (lambda s, m, o: both(*(partial(s[o].parallel, a) for a in o.op.axis)), "is the parallel loop already"),
    "pragma name": (lambda s, m, o: s[o].pragma(o.op.axis[0], ""), "a pragma has a name, such as auto_unroll_max_step"),
    "pragma value": (lambda s, m, o: s[o].pragma(o.op.axis[0], "auto_unroll_max_step", -1), "auto_unroll_max_step takes 0 to"),
    "pragma type": (lambda s, m, o: s[o].pragma(o.op.axis[0], "auto_unroll_max_step", "x"), "auto_unroll_max_step takes an int or a bool"),
    "inline reduction": (lambda s, m, o: s[m].compute_inline(), "a reduction can't be inlined; use compute_at"),
    "inline output": (lambda s, m, o: s[o].compute_inline(), "can't move an output"),
    "move output": (lambda s, m, o: s[o].compute_at(s[m], m.op.axis[0]), "can't move an output"),
    "compute at itself": (lambda s, m, o: s[m].compute_at(s[m], m.op.axis[0]), "computed inside matmul itself"),
    "compute at tensor": (lambda s, m, o: s[m].compute_at(o, o.op.axis[0]), "takes a stage such as s[C]"),  # type: ignore[arg-type]
    "placeholder": (lambda s, m, o: s[m.op.input_tensors[0]].compute_root(), "A is a placeholder and has no loops; use cache_read"),
    "scope": (lambda s, m, o: s.cache_write(o, "share"), "'share' is no storage scope; scopes: global, shared, "),
    "late cache_write": (
        lambda s, m, o: both(lambda: s[o].vectorize(o.op.axis[1]), lambda: s.cache_write(o, "local")),
        "cache_write comes before split",
    ),
    "no reader": (lambda s, m, o: s.cache_read(m, "local", []), "takes each reader once; it is read by out"),
    "wrong reader": (lambda s, m, o: s.cache_read(m.op.input_tensors[0], "local", [o]), "which does not read it; it is read by matmul"),
    "foreign tensor": (lambda s, m, o: s[te.placeholder((1,), name="Z")], "is not part of this schedule; its stages: A, matmul, out"),
    "unguarded": (lambda s, m, o: s[o].split(o.op.axis[0], factor=3, disable_predication=True), "with disable_predication would run 3 x 3"),
    "if axis": (lambda s, m, o: s[o].split(o.op.axis[0], factor=o.op.axis[1]), "a factor is an integer"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(program: tuple[list[Tensor], Schedule, Tensor, Tensor], name: str) -> None:
    _, s, matmul, out = program
    request, message = REFUSED[name]
    with pytest.raises(ScheduleError) as caught:
        request(s, matmul, out)
    assert message in str(caught.value)


def test_refuses_to_schedule_what_is_no_operation() -> None:
    with pytest.raises(ScheduleError, match=r"create_schedule takes operations such as C\.op"):
        create_schedule("C")  # type: ignore[arg-type]


def test_compute_at_that_leaves_a_consumer_uncovered() -> None:
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((8,), lambda i: b[i] * 2.0, name="C")
    d = te.compute((8,), lambda i: b[i] - c[i], name="D")
    s = create_schedule(d.op)
    s[b].compute_at(s[d], d.op.axis[0])
    with pytest.raises(
        ScheduleError, match="computed at loop 'i' of D, but C also reads it outside that loop; compute C inside that loop too"
    ):
        schedule_to_func(s, [a, d])


def test_compute_inside_a_vectorised_loop(program: tuple[list[Tensor], Schedule, Tensor, Tensor]) -> None:
    args, s, matmul, out = program
    s[out].vectorize(out.op.axis[1])
    s[matmul].compute_at(s[out], out.op.axis[1])
    with pytest.raises(ScheduleError, match="inside the vectorised loop 'j' of out; compute it at a loop further out"):
        schedule_to_func(s, args)


def test_nested_parallel_loops(program: tuple[list[Tensor], Schedule, Tensor, Tensor]) -> None:
    args, s, matmul, out = program
    s[out].parallel(out.op.axis[0])
    s[matmul].compute_at(s[out], out.op.axis[0])
    s[matmul].parallel(matmul.op.axis[1])
    with pytest.raises(ScheduleError, match="parallel loop 'j' lies inside the parallel loop 'i' of out; keep one of them"):
        schedule_to_func(s, args)


def test_vectorise_a_symbolic_extent() -> None:
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="B")
    s = create_schedule(b.op)
    s[b].vectorize(b.op.axis[0])
    with pytest.raises(ScheduleError, match="its extent n is no constant; split it by a constant factor"):
        schedule_to_func(s, [a, b])


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        (["out"], r"placeholder A is read but missing from args; pass every input, as in args=\[A, out\]"),
        (["A", "A", "out"], "argument 1, A, is given twice"),
        (["A", "out", "matmul"], None),
    ],
)
def test_args(program: tuple[list[Tensor], Schedule, Tensor, Tensor], keep: list[str], message: str | None) -> None:
    _, s, matmul, out = program
    tensors = {"A": matmul.op.input_tensors[0], "matmul": matmul, "out": out}
    args = [tensors[name] for name in keep]
    if message is None:
        assert len(schedule_to_func(s, args).params) == len(args)
        return
    with pytest.raises(LoweringError, match=message):
        schedule_to_func(s, args)
