"""One test per thing that prefetch, rolling_buffer, set_store_predicate and store_nontemporal refuse, with what it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tensorexpr import te
from tensorexpr.errors import RecordError, ScheduleError
from tensorexpr.lower.pipeline import lower
from tensorexpr.schedule import Schedule, Trace, create_schedule
from tensorexpr.schedule.steps import SetStorePredicate
from tensorexpr.te.tensor import Tensor
from tensorexpr.tir import ir_builder


class Program:
    """out[i, j] = B[i, j] + B[i + 1, j] with B = A + 1, and row sums of out, in a schedule."""

    def __init__(self) -> None:
        self.a = te.placeholder((9, 8), name="A")
        self.b = te.compute((9, 8), lambda i, j: self.a[i, j] + 1.0, name="B")
        self.c = te.compute((8, 8), lambda i, j: self.b[i, j] + self.b[i + 1, j], name="C")
        k = te.reduce_axis((0, 8), name="k")
        self.out = te.compute((8,), lambda i: te.sum(self.c[i, k], axis=k), name="out")
        self.s: Schedule = create_schedule(self.out.op)

    def axis(self, tensor: Tensor, number: int) -> Any:
        """A root axis of a stage."""
        return (*tensor.op.axis, *tensor.op.reduce_axis)[number]

    def lowered(self) -> None:
        """Lower the whole schedule."""
        lower(self.s, [self.a, self.out])


def rolling_at(p: Program, number: int) -> None:
    p.s[p.b].compute_at(p.s[p.c], p.axis(p.c, number))
    p.s[p.b].rolling_buffer()


def do(*requests: Callable[[], object]) -> None:
    """The requests, one after the other."""
    for request in requests:
        request()


STEPS: tuple[tuple[Callable[[Program], object], str], ...] = (
    (lambda p: p.s[p.out].prefetch(p.a, p.axis(p.out, 0), 1), "prefetch of A at 'i', inside which nothing reads it; read there: C"),
    (lambda p: p.s[p.c].prefetch(p.b, p.axis(p.c, 0), 0), "takes an offset of 1 to 1048576 iterations, not 0"),
    (lambda p: p.s[p.c].prefetch(p.b, p.axis(p.c, 0), "far"), "takes its offset as a number of iterations, not 'far'"),
    (lambda p: p.s[p.c].prefetch(p.b, p.axis(p.out, 0), 1), "no axis 'i' to prefetch, it belongs to out; axes: i, j"),
    (
        lambda p: do(lambda: p.s[p.c].split(p.axis(p.c, 0), 2), lambda: p.s[p.c].prefetch(p.b, p.axis(p.c, 0), 1)),
        "axis 'i' was split or fused",
    ),
    (
        lambda p: do(lambda: p.s[p.b].compute_inline(), lambda: p.s[p.c].prefetch(p.b, p.axis(p.c, 0), 1)),
        "inlined and has no elements in memory",
    ),
    (
        lambda p: do(lambda: p.s[p.c].compute_inline(), lambda: p.s[p.c].prefetch(p.b, p.axis(p.c, 0), 1)),
        "prefetch needs loops, but the stage is inlined",
    ),
    (
        lambda p: do(lambda: p.s[p.b].set_scope("local"), lambda: p.s[p.c].prefetch(p.b, p.axis(p.c, 0), 1)),
        "which is local: registers and the cache",
    ),
    (
        lambda p: do(lambda: p.s[p.b].compute_at(p.s[p.c], p.axis(p.c, 0)), lambda: p.s[p.c].prefetch(p.b, p.axis(p.c, 0), 1)),
        "inside which it is computed: later iterations' elements don't exist yet",
    ),
    (
        lambda p: do(lambda: p.s[p.c].vectorize(p.axis(p.c, 1)), lambda: p.s[p.c].prefetch(p.b, p.axis(p.c, 1), 1)),
        "the loop 'j' is vectorised; prefetch at a loop outside it",
    ),
    (lambda p: p.s[p.b].rolling_buffer(), "rolling_buffer needs the stage at a loop of its consumer; use compute_at first"),
    (lambda p: p.s[p.c].store_nontemporal(), "store_nontemporal is for outputs, which nobody reads soon; this one is read by out"),
    (lambda p: p.s[p.c].set_store_predicate(p.axis(p.b, 0) < 4), "i is no axis of the stage; its axes: i, j"),
    (lambda p: p.s[p.c].set_store_predicate(p.axis(p.c, 0) + 4), "is a condition such as i, j < 8, not the value i \\+ 4"),
    (lambda p: p.s[p.c].set_store_predicate(p.b[0, 0] < 1.0), "has no form in a schedule"),
    (lambda p: p.s[p.c].set_store_predicate("i < 3"), "set_store_predicate takes a condition over op.axis|has no form in a schedule"),
    (lambda p: p.s[p.out].set_store_predicate(p.axis(p.out, 1) < 4), "k is no axis of the stage; its axes: i"),
    (lambda p: p.s[p.out].set_store_predicate(p.axis(p.out, 0) // te.var("n") < 4), "n is no axis of the stage"),
    (
        lambda p: do(lambda: p.s[p.c].compute_inline(), lambda: p.s[p.c].set_store_predicate(p.axis(p.c, 0) < 4)),
        "set_store_predicate needs loops",
    ),
    (lambda p: p.s.apply_step(SetStorePredicate(9, ("<", ("axis", 0), 4))), "the schedule has no stage 9"),
    (lambda p: p.s.apply_step(SetStorePredicate(3, ("<", ("axis", 1), 4))), "a store predicate can't speak of k; it is about the axes i"),
    (lambda p: p.s.apply_step(SetStorePredicate(3, ("<", ("//", ("axis", 0), 0), 4))), "the divisor 0 is no positive constant"),
    (lambda p: p.s.apply_step(SetStorePredicate(3, ("xor", 1, 2))), "the operations are not of one and"),
    (lambda p: p.s.apply_step(SetStorePredicate(3, ("axis", 1, 2))), "an axis is given by its number"),
    (lambda p: p.s.apply_step(SetStorePredicate(3, ("<", "i", 2))), "which is no integer, axis or operation"),
    (
        lambda p: do(lambda: p.s[p.out].prefetch(p.c, p.axis(p.out, 0), 1), lambda: p.s.rfactor(p.out, p.axis(p.out, 1))),
        "its loops prefetch already, and rfactor makes others",
    ),
    (
        lambda p: do(lambda: p.s[p.out].prefetch(p.c, p.axis(p.out, 0), 1), lambda: p.s.cache_write(p.out, "local")),
        "cache_write comes before split, fuse, reorder, prefetch",
    ),
)


@pytest.mark.parametrize(("request_", "message"), STEPS)
def test_steps(request_: Callable[[Program], object], message: str) -> None:
    program = Program()
    with pytest.raises(ScheduleError, match=message):
        request_(program)


def test_too_deep_a_predicate() -> None:
    data: Any = ("axis", 0)
    for _ in range(40):
        data = ("not", data)
    program = Program()
    with pytest.raises(ScheduleError, match="an expression of more than 512 nodes or 32 levels"):
        program.s.apply_step(SetStorePredicate(3, data))


WHOLE: tuple[tuple[Callable[[Program], object], str], ...] = (
    (
        lambda p: do(lambda: p.s[p.c].prefetch(p.b, p.axis(p.c, 0), 1), lambda: p.s[p.c].split(p.axis(p.c, 0), 2)),
        "prefetch of B at 'i', which was split or fused after it; prefetch at one of i.outer, i.inner, j",
    ),
    (
        lambda p: do(lambda: p.s[p.c].prefetch(p.b, p.axis(p.c, 0), 1), lambda: p.s[p.c].compute_inline()),
        "prefetch needs loops, but the stage is inlined; use compute_root or compute_at",
    ),
    (lambda p: do(lambda: rolling_at(p, 0), lambda: p.s[p.b].compute_root()), "computed whole at the root; use compute_at"),
    (
        lambda p: do(lambda: rolling_at(p, 0), lambda: p.s[p.c].parallel(p.axis(p.c, 0))),
        "one iteration of 'i' of C to the next, but that loop is marked parallel",
    ),
    (lambda p: do(lambda: rolling_at(p, 0), lambda: p.s[p.b].double_buffer()), "rolling_buffer and double_buffer"),
    (
        lambda p: do(lambda: p.s[p.b].compute_at(p.s[p.c], p.s[p.c].fuse(*p.c.op.axis)), lambda: p.s[p.b].rolling_buffer()),
        "a window rolls along one axis|both have to be constants",
    ),
    (lambda p: p.s[p.b].set_store_predicate(p.axis(p.b, 0) < 8), "leaves out elements that C may read: it can't be proved to hold for B"),
)


@pytest.mark.parametrize(("request_", "message"), WHOLE)
def test_whole_schedules(request_: Callable[[Program], object], message: str) -> None:
    program = Program()
    request_(program)
    with pytest.raises(ScheduleError, match=message):
        program.lowered()


def test_a_rolling_stage_that_holds_another() -> None:
    p = Program()
    extra = p.s.cache_read(p.a, "global", [p.b])
    rolling_at(p, 0)
    p.s[extra].compute_at(p.s[p.b], p.axis(p.b, 1))
    with pytest.raises(
        ScheduleError, match=r"computes a first and a later part with loops of their own, but A\.global is computed at its loops"
    ):
        p.lowered()


def test_a_window_that_moves_backwards() -> None:
    """Each iteration reads B one row before the last one's: what a forward window keeps would be the wrong rows."""
    a = te.placeholder((9, 4), name="A")
    b = te.compute((9, 4), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((8, 4), lambda i, j: b[7 - i, j] + b[8 - i, j], name="C")
    s = te.create_schedule(c.op)
    s[b].compute_at(s[c], c.op.axis[0])
    s[b].rolling_buffer()
    with pytest.raises(ScheduleError, match="the box moves along 'i' by -1 per iteration, and a window only rolls forward"):
        lower(s, [a, c], upto=0)


def test_a_window_that_keeps_nothing_rolls_nowhere() -> None:
    """Each iteration reads two rows, and the next one the two after them."""
    a = te.placeholder((8, 4), name="A")
    b = te.compute((8, 4), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((4, 4), lambda i, j: b[i * 2, j] + b[i * 2 + 1, j], name="C")
    texts = []
    for rolling in (False, True):
        s = te.create_schedule(c.op)
        s[b].compute_at(s[c], c.op.axis[0])
        if rolling:
            s[b].rolling_buffer()
        texts.append(lower(s, [a, c], upto=0).script())
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("data", "message"),
    (
        ([["prefetch", 3, 2, 0, 0]], "step 'prefetch' has 4 fields; it takes 5"),
        ([["set_store_predicate", 3, "i < 4"]], "predicate"),
        ([["set_store_predicate", 3, 1.5]], "predicate"),
        ([["rolling_buffer", "B"]], "stage"),
        ([["store_nontemporal"]], "step 'store_nontemporal' has 0 fields; it takes 1"),
    ),
)
def test_records(data: list[Any], message: str) -> None:
    with pytest.raises(RecordError, match=message):
        Trace.from_json(data)


def test_an_extern_reads_everything() -> None:
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="B")

    def body(ins: Any, outs: Any) -> Any:
        builder = ir_builder.create()
        source, result = builder.buffer_ptr(ins[0]), builder.buffer_ptr(outs[0])
        with builder.for_range(0, 8, name="i") as i:
            result[i] = source[i] * 2.0
        return builder.get()

    c = te.extern((8,), [b], body, name="C", dtype="float32")
    s = create_schedule(c.op)
    s[b].set_store_predicate(b.op.axis[0] < 8)
    lower(s, [a, c])
    s[b].set_store_predicate(b.op.axis[0] < 7)
    with pytest.raises(ScheduleError, match="leaves out elements that C may read"):
        lower(s, [a, c])


@pytest.mark.parametrize("stored", (True, False))
def test_what_is_read_in_the_other_arm_only(stored: bool) -> None:
    """A conditional says of its second arm that the condition fails there."""
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((8,), lambda i: te.if_then_else(i < 3, 0.0, b[i]), name="C")
    s = create_schedule(c.op)
    i = b.op.axis[0]
    s[b].set_store_predicate(i >= 3 if stored else i < 3)
    if stored:
        lower(s, [a, c])
        return
    with pytest.raises(ScheduleError, match="leaves out elements that C may read"):
        lower(s, [a, c])
