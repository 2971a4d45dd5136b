"""Property 22 and more: one kernel for all sizes, in every phase and in machine code."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr import te, topi
from tensorexpr.auto_scheduler import default_schedule
from tensorexpr.errors import ScheduleError
from tensorexpr.lower.pipeline import lower
from tensorexpr.schedule import Schedule, Trace, create_schedule
from tensorexpr.schedule.steps import Annotate
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.testing.strategies import schedules
from tensorexpr.tir.expr import Var
from tests.effort import share_of
from tests.symbolic_programs import PROGRAMS, SymbolicProgram

FIRST = (0, 1, 2, 7, 8, 13)
SECOND = (5, 1, 16, 3, 0, 11)
FACTORS = st.sampled_from([1, 2, 3, 4, 5, 8, 16, 32])
SMALL = st.sampled_from([1, 2, 3, 4, 8])


def sizes_of(program: SymbolicProgram) -> list[dict[Var, int]]:
    """The sizes that one built function is called with: none, one, primes, more and less than the factors."""
    return [dict(zip(program.symbols, pair, strict=False)) for pair in zip(FIRST, SECOND, strict=True)]


def can_be_lowered(schedule: Schedule, program: SymbolicProgram) -> bool:
    """False if a loop of symbolic extent is to be vectorised, which is refused."""
    try:
        lower(schedule, program.args, upto=0)
    except ScheduleError as error:
        assert "is no constant" in str(error)
        return False
    return True


def usable(schedule: Schedule, program: SymbolicProgram) -> Schedule:
    """A schedule without the steps that vectorise loops of symbolic extent."""
    steps = list(schedule.trace)
    vectorising = [n for n, step in enumerate(steps) if isinstance(step, Annotate) and step.kind == "vectorize"]
    kept = set(range(len(steps))) - set(vectorising)

    def chosen(numbers: set[int]) -> Schedule:
        return Schedule(schedule.outputs, Trace(tuple(step for n, step in enumerate(steps) if n in numbers)))

    for number in vectorising:
        if can_be_lowered(chosen(kept | {number}), program):
            kept.add(number)
    return chosen(kept)


@settings(max_examples=share_of(25), deadline=None, derandomize=True)
@given(data=st.data(), name=st.sampled_from(sorted(PROGRAMS)), dtype=st.sampled_from(["float32", "int32", "float64"]))
def test_22_any_schedule_of_a_symbolic_program(data: st.DataObject, name: str, dtype: str) -> None:
    program = PROGRAMS[name](dtype)
    schedule = usable(data.draw(schedules([program.args[-1].op], max_steps=12)), program)
    assert_schedule_correct(schedule, program.args, sizes=sizes_of(program))


@pytest.mark.parametrize("name", PROGRAMS)
def test_22_unscheduled(name: str) -> None:
    """The first example of `blur` has an empty output, whose strides NumPy sets to zero; `row_sums` has no extent that is m alone."""
    program = PROGRAMS[name]("float32")
    assert_schedule_correct(create_schedule(program.args[-1].op), program.args, sizes=sizes_of(program))


@pytest.mark.parametrize("name", PROGRAMS)
def test_22_schedules_by_rules(name: str) -> None:
    program = PROGRAMS[name]("float32")
    assert_schedule_correct(default_schedule(program.args), program.args, phases=(0, 3), sizes=sizes_of(program))


@pytest.mark.parametrize("columns", [1, 13, 64, None])
@pytest.mark.parametrize("kind", ["softmax", "two results", "means"])
def test_22_any_number_of_rows(kind: str, columns: int | None) -> None:
    """Rows of known length were summed and stored element by element: 128 x 768 layer_norm 82 us, and 13 since (two cores of Zen 3)."""
    n, m = te.var("n"), te.var("m")
    x = te.placeholder((n, m if columns is None else columns), name="X")
    if kind == "softmax":
        outputs = [topi.nn.softmax(x)]
    elif kind == "means":
        outputs = [topi.sum(x, 1)]
    else:
        first = te.compute(x.shape, lambda i, j: te.exp(x[i, j]), name="U")
        outputs = [first, te.compute(x.shape, lambda i, j: first[i, j] + te.exp(-first[i, j]), name="Z")]
    schedule = default_schedule([x, *outputs], "llvm -mcpu=znver3 -num-cores=2")
    assert columns == 1 or "vectorize" in schedule.as_python()
    sizes = [{n: rows} | ({m: 11 + rows} if columns is None else {}) for rows in (0, 1, 5)]
    assert_schedule_correct(schedule, [x, *outputs], phases=(0, 3), sizes=sizes)


def producer(tensor: Tensor) -> Tensor:
    """The computed tensor that `tensor` reads."""
    return next(t for t in tensor.op.input_tensors if t.op.input_tensors)


def one_symbol(dtype: str) -> tuple[Var, Tensor, Tensor]:
    """n, A over n + 2 and B = A + 1."""
    n = te.var("n", dtype)
    a = te.placeholder((n + 2,), name="A")
    return n, a, te.compute((n + 2,), lambda i: a[i] + 1.0, name="B")


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("factors", [(2, 5), (5, 2), (32, 3), (1, 7), (4, 4)])
def test_22_a_guard_that_no_outer_iteration_passes_whole(factors: tuple[int, int], dtype: str) -> None:
    """At n = 0 with factors 2 and 5 loop partition once began the tail before the loop: at element -2."""
    n, a, b = one_symbol(dtype)
    s = create_schedule(b.op)
    _, inner = s[b].split(b.op.axis[0], factor=factors[0])
    s[b].split(inner, factor=factors[1])
    assert_schedule_correct(s, [a, b], sizes=[{n: size} for size in (0, 1, 2, 3, 5, 31)])


@settings(max_examples=8, deadline=None, derandomize=True)
@given(fi=SMALL, fj=SMALL, fr=SMALL, fused=st.booleans(), cached=st.booleans(), vector=st.booleans(), at=st.integers(0, 3))
def test_22_tiled_matmul(fi: int, fj: int, fr: int, fused: bool, cached: bool, vector: bool, at: int) -> None:
    program = PROGRAMS["matmul"]("float32")
    d = program.args[-1]
    c = producer(d)
    s = create_schedule(d.op)
    io, jo, ii, ji = s[d].tile(d.op.axis[0], d.op.axis[1], fi, fj)
    loops = [s[d].fuse(io, jo), ii, ji] if fused else [io, jo, ii, ji]
    s[d].parallel(loops[0])
    if vector:
        s[d].vectorize(ji)
    s[c].compute_at(s[d], loops[min(at, len(loops) - 2)])
    summed = c
    if cached:
        summed = s.cache_write(c, "local")
        s[summed].compute_at(s[c], s[c].op.axis[0])
        s.cache_read(program.args[0], "local", [summed])
    ro, ri = s[summed].split(s[summed].op.reduce_axis[0], factor=fr)
    s[summed].reorder(ro, ri, *s[summed].op.axis)
    s[summed].unroll(ri)
    n, k = program.symbols
    sizes = [{n: rows, k: terms} for rows, terms in ((0, 5), (1, 1), (7, 3), (9, 0), (2, 8))]
    assert_schedule_correct(s, program.args, phases=(0, 2, 3), sizes=sizes)


@settings(max_examples=10, deadline=None, derandomize=True)
@given(name=st.sampled_from(["stencil", "blur", "padded", "pairs"]), outer=FACTORS, inner=FACTORS, vector=st.booleans())
def test_22_stencils_inside_their_consumers(name: str, outer: int, inner: int, vector: bool) -> None:
    program = PROGRAMS[name]("float32")
    out = program.args[-1]
    s = create_schedule(out.op)
    io, ii = s[out].split(out.op.axis[0], factor=outer)
    for stage in reversed(s.stages):
        if stage.op.input_tensors and stage.op is not out.op:
            stage.compute_at(s[out], io)
            part = stage.split(stage.op.axis[-1], factor=inner)[1]
            if vector:
                stage.vectorize(part)
    s[out].unroll(ii)
    s[out].parallel(io)
    assert_schedule_correct(s, program.args, sizes=sizes_of(program))


@pytest.mark.parametrize("make", [te.var, te.size_var])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_22_rows_with_a_vector_tail(make: Callable[..., Var], dtype: str) -> None:
    n, m = make("n", dtype), make("m", dtype)
    a = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    top = te.compute((n,), lambda i: te.max(a[i, k], axis=k), name="top")
    out = te.compute((n, m), lambda i, j: te.exp(a[i, j] - top[i]), name="out")
    s = create_schedule(out.op)
    s[out].parallel(out.op.axis[0])
    s[out].vectorize(s[out].split(out.op.axis[1], factor=16)[1])
    s[top].compute_at(s[out], out.op.axis[0])
    s[top].split(k, factor=8)
    assert_schedule_correct(s, [a, out], sizes=[{n: x, m: y} for x, y in ((0, 3), (1, 1), (3, 37), (5, 16), (2, 101), (4, 1))])
