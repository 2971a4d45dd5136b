"""What is refused of `tensorize`: what an intrinsic does not compute, and what the step is not for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tensorexpr import te
from tensorexpr.errors import RecordError, ScheduleError
from tensorexpr.lower.pipeline import lower
from tensorexpr.schedule import Schedule, create_schedule
from tensorexpr.schedule.steps import Tensorize, step_from_json
from tensorexpr.te.tensor import Tensor
from tests.intrinsics import gemm, gemv, loop_intrin, vector_add


def matmul(m: int = 4, n: int = 16, length: int = 12) -> list[Tensor]:
    a, b = te.placeholder((m, length), name="A"), te.placeholder((n, length), name="B")
    k = te.reduce_axis((0, length), name="k")
    return [a, b, te.compute((m, n), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k), name="C")]


def tiled(factor: int = 8) -> tuple[Schedule, list[Tensor]]:
    args = matmul()
    c = args[-1]
    s = create_schedule(c.op)
    s[c].split(c.op.axis[1], factor=factor)
    return s, args


def refused(s: Schedule, args: list[Tensor]) -> str:
    with pytest.raises(ScheduleError) as caught:
        lower(s, args, upto=0)
    return str(caught.value)


# Matching


def test_another_number_of_elements() -> None:
    s, args = tiled(4)
    s[args[-1]].tensorize(s[args[-1]].leaf_iter_vars[2], gemv(8, 12))
    message = refused(s, args)
    assert "In schedule for C: can't tensorize 'j.inner' with gemv: the loop covers [1, 4] elements, the intrinsic [8]" in message
    assert "C under the loop computes [1, 4] reducing [12]: " in message and "gemv computes [8] reducing [12]: " in message


def test_another_reduction() -> None:
    s, args = tiled()
    s[args[-1]].tensorize(s[args[-1]].leaf_iter_vars[2], gemv(8, 4))
    assert "the loop reduces over [12], the intrinsic over [4]" in refused(s, args)


def test_another_operator_shows_both_expressions() -> None:
    a = te.placeholder((16,), name="A")
    c = te.compute((16,), lambda i: a[i] - a[i], name="C")
    s = create_schedule(c.op)
    s[c].tensorize(s[c].split(c.op.axis[0], factor=8)[1], vector_add(8))
    message = refused(s, [a, c])
    assert (
        "C under the loop computes [8]: " in message
        and "vector_add computes [8]: " in message
        and "stands where the intrinsic has" in message
    )


def one_row(body: Callable[[Tensor, Any], Any], intrin: te.TensorIntrin, dtype: str = "float32") -> str:
    """What is said of a computation of 8 elements from 32."""
    a = te.placeholder((32,), dtype, name="A")
    c = te.compute((8,), lambda i: body(a, i), name="C")
    s = create_schedule(c.op)
    s[c].tensorize(c.op.axis[0], intrin)
    return refused(s, [a, c])


def copy_of(length: int = 8, dtype: str = "float32") -> te.TensorIntrin:
    x = te.placeholder((length,), dtype, name="x")
    return loop_intrin(te.compute((length,), lambda i: x[i], name="y"), "copy")


def test_elements_at_a_stride() -> None:
    assert "A[i * 2] stands where the intrinsic has x[i]" in one_row(lambda a, i: a[2 * i], copy_of())


def test_elements_in_reverse() -> None:
    assert "stands where the intrinsic has x[i]" in one_row(lambda a, i: a[7 - i], copy_of())


def test_a_constant_is_another() -> None:
    x = te.placeholder((8,), name="x")
    twice = loop_intrin(te.compute((8,), lambda i: x[i] * 2.0, name="y"), "twice")
    assert "T.float32(3.0) stands where the intrinsic has T.float32(2.0)" in one_row(lambda a, i: a[i] * 3.0, twice)


def test_another_dtype() -> None:
    assert "stands where the intrinsic has" in one_row(lambda a, i: a[i], copy_of(dtype="int32"))


def test_an_index_as_a_value_is_proved() -> None:
    x = te.placeholder((8,), "int32", name="x")
    ramp = loop_intrin(te.compute((8,), lambda i: x[i] + i, name="y"), "ramp")
    assert "i * 2" in one_row(lambda a, i: a[i] + 2 * i, ramp, "int32")


def test_reads_at_two_distances() -> None:
    x = te.placeholder((9,), name="x")
    pair = loop_intrin(te.compute((8,), lambda i: x[i] + x[i + 1], name="y"), "pair")
    assert "can't both be of the intrinsic's operand x" in one_row(lambda a, i: a[i] + a[i + 2], pair)


def test_another_combiner() -> None:
    a, b = te.placeholder((4, 12), name="A"), te.placeholder((8, 12), name="B")
    k = te.reduce_axis((0, 12), name="k")
    c = te.compute((4, 8), lambda i, j: te.max(a[i, k] * b[j, k], axis=k), name="C")
    s = create_schedule(c.op)
    s[c].tensorize(c.op.axis[1], gemv(8, 12))
    assert "the combiners differ: " in refused(s, [a, b, c])


def test_an_imperfect_split_is_refused_with_a_hint() -> None:
    s, args = tiled(7)
    s[args[-1]].tensorize(s[args[-1]].leaf_iter_vars[2], gemv(7, 12))
    assert "split evenly (a factor that divides the extent), or pad the tensor to a multiple of the tile" in refused(s, args)


def test_a_region_that_is_no_box() -> None:
    a = te.placeholder((4, 4), name="A")
    c = te.compute((4, 4), lambda i, j: a[i, j], name="C")
    s = create_schedule(c.op)
    inner = s[c].split(s[c].fuse(*c.op.axis), factor=8)[1]
    s[c].tensorize(s[c].split(inner, factor=2)[1], copy_of(2))
    lower(s, [a, c], upto=0)  # two neighbours in a row
    s = create_schedule(c.op)
    x = te.placeholder((2, 4), name="x")
    rows = loop_intrin(te.compute((2, 4), lambda i, j: x[i, j], name="y"), "rows")
    s[c].tensorize(s[c].split(s[c].fuse(*c.op.axis), factor=2)[1], rows)
    assert "the loop covers [1, 2] elements, the intrinsic [2, 4]" in refused(s, [a, c])


def test_iterations_over_parts_of_two_rows() -> None:
    a = te.placeholder((4, 3), name="A")
    c = te.compute((4, 3), lambda i, j: a[i, j], name="C")
    s = create_schedule(c.op)
    s[c].tensorize(s[c].split(s[c].fuse(*c.op.axis), factor=2)[1], copy_of(2))
    message = refused(s, [a, c])
    assert "do not fill a box" in message or "do not take a constant number of values" in message


def test_iterations_that_skip_elements() -> None:
    a = te.placeholder((16,), name="A")
    c = te.compute((16,), lambda i: a[i], name="C")
    s = create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=4)
    s[c].reorder(inner, outer)
    s[c].tensorize(outer, copy_of(13))
    assert "the 4 iterations under it do not fill a box of C's axes (13); tensorize a loop whose inner loops are whole tiles" in refused(
        s, [a, c]
    )


def test_a_symbolic_extent() -> None:
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    c = te.compute((n,), lambda i: a[i], name="C")
    s = create_schedule(c.op)
    s[c].tensorize(c.op.axis[0], copy_of())
    assert "the loop covers [n] elements, the intrinsic [8]" in refused(s, [a, c])


def test_a_reduction_outside_needs_an_update() -> None:
    s, args = tiled()
    c = args[-1]
    i, jo, ji, k = s[c].leaf_iter_vars
    ko, ki = s[c].split(k, factor=4)
    s[c].reorder(i, ko, jo, ji, ki)
    s[c].tensorize(ji, gemv(8, 4, "body"))
    message = refused(s, args)
    assert (
        "gemv has no reduce_update, but the reduction loop k.outer outside the tensorized loop adds to its outputs several times" in message
    )


def test_a_start_that_the_body_does_not_know() -> None:
    a, b = te.placeholder((4, 12), name="A"), te.placeholder((8, 12), name="B")
    k = te.reduce_axis((0, 12), name="k")
    c = te.compute((4, 8), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k, init=1.0), name="C")
    s = create_schedule(c.op)
    s[c].tensorize(c.op.axis[1], gemv(8, 12, "body"))
    assert "its body starts from another value than te.compute(init=...) gives" in refused(s, [a, b, c])


def test_a_scalar_that_differs_from_element_to_element() -> None:
    factor = te.var("factor", "float32")
    x = te.placeholder((8,), name="x")
    scale = loop_intrin(te.compute((8,), lambda i: x[i] * factor, name="y"), "scale", scalars=[factor])
    assert "can't be the scalar factor" in one_row(lambda a, i: a[i] * a[i + 8], scale)


def test_conditional_reads_past_a_border() -> None:
    """The intrinsic leaves out the element before the first by its own condition; its box would begin there."""

    def padded(source: Tensor, flag: Tensor, i: Any, low: int) -> Any:
        return te.if_then_else(flag[i] > 0.0, source[i + low], 0.0)

    x, on = te.placeholder((8,), name="x"), te.placeholder((8,), name="on")
    intrin = loop_intrin(te.compute((8,), lambda i: padded(x, on, i, 0), name="y"), "masked")
    a, flag = te.placeholder((16,), name="A"), te.placeholder((16,), name="F")
    inside = te.compute((16,), lambda i: padded(a, flag, i, 0), name="C")
    s = create_schedule(inside.op)
    s[inside].tensorize(s[inside].split(inside.op.axis[0], factor=8)[1], intrin)
    lower(s, [a, flag, inside])
    beyond = te.compute((16,), lambda i: te.if_then_else(i > 0, te.if_then_else(flag[i] > 0.0, a[i - 1], 0.0), 0.0), name="C")
    x16, on16 = te.placeholder((16,), name="x"), te.placeholder((16,), name="on")
    wide = loop_intrin(te.compute((16,), lambda i: te.if_then_else(i > 0, padded(x16, on16, i, 0), 0.0), name="y"), "bordered")
    s = create_schedule(beyond.op)
    s[beyond].tensorize(beyond.op.axis[0], wide)
    message = refused(s, [a, flag, beyond])
    assert "its reads of A are conditional, and a box of them from -1 may reach past the tensor (extent 16)" in message


# The step


def test_the_step_is_refused() -> None:
    s, args = tiled()
    c = args[-1]
    jo, ji = s[c].leaf_iter_vars[1:3]
    with pytest.raises(ScheduleError, match=r"tensorize takes an intrinsic of te.decl_tensor_intrin, not 'gemv'"):
        s[c].tensorize(ji, "gemv")  # type: ignore[arg-type]
    s[c].tensorize(ji, gemv(8, 12))
    s[c].tensorize(ji, gemv(8, 12))  # the axis may be given another
    with pytest.raises(ScheduleError, match=r"'j.inner' is tensorized with gemv already; a stage has one intrinsic"):
        s[c].tensorize(jo, gemv(8, 12))
    with pytest.raises(ScheduleError, match=r"axis 'j.inner' is marked tensorize already"):
        s[c].split(ji, factor=2)
    with pytest.raises(ScheduleError, match=r"a loop can't be 'tensorize'; kinds: serial, parallel, vectorize, unroll"):
        s.apply_step(step_from_json(["annotate", 2, 0, "tensorize"]))


def test_marks_and_stages_inside() -> None:
    s, args = tiled()
    c = args[-1]
    _i, _jo, ji, k = s[c].leaf_iter_vars
    s[c].unroll(k)
    with pytest.raises(
        ScheduleError, match=r"takes the place of 'k', marked unroll; leave the mark out, or move that loop outside 'j.inner'"
    ):
        s[c].tensorize(ji, gemv(8, 12))
    with pytest.raises(ScheduleError, match="can't tensorize 'k': it is marked unroll already"):
        s[c].tensorize(k, gemv(8, 12))
    s, args = tiled()
    copy = s.cache_read(args[1], "local", args[2])
    k = s[args[2]].leaf_iter_vars[3]
    s[copy].compute_at(s[args[2]], k)
    with pytest.raises(ScheduleError, match=r"takes the place of 'k', where B.local is computed"):
        s[args[2]].tensorize(s[args[2]].leaf_iter_vars[2], gemv(8, 12))


def test_marks_that_come_later() -> None:
    s, args = tiled()
    c = args[-1]
    _, _, ji, k = s[c].leaf_iter_vars
    s[c].tensorize(ji, gemv(8, 12))
    s[c].unroll(k)
    assert "takes the place of 'k', marked unroll" in refused(s, args)


def test_what_is_said_of_loads_and_stores() -> None:
    s, args = tiled()
    c = args[-1]
    i, _, ji, _ = s[c].leaf_iter_vars
    s[c].prefetch(args[0], i, 1)
    with pytest.raises(
        ScheduleError, match=r"takes the place of the stage's loads and stores, which prefetch is about; leave one of the two"
    ):
        s[c].tensorize(ji, gemv(8, 12))
    s, args = tiled()
    s[args[-1]].tensorize(s[args[-1]].leaf_iter_vars[2], gemv(8, 12))
    s[args[-1]].set_store_predicate(args[-1].op.axis[0] < 3)
    assert "which set_store_predicate is about" in refused(s, args)


def test_a_scan_has_no_definition_of_its_own() -> None:
    init = te.compute((1, 8), lambda t, i: 1.0, name="init")
    state = te.placeholder((4, 8), name="state")
    update = te.compute((4, 8), lambda t, i: state[t - 1, i] * 2.0, name="update")
    scan = te.scan(init, update, state)
    s = create_schedule(scan.op)
    with pytest.raises(ScheduleError, match=r"In schedule for scan: tensorize is not for a scan"):
        s[scan].tensorize(s[scan].leaf_iter_vars[-1], vector_add(8))


def test_records_that_name_what_is_not_there() -> None:
    s, _args = tiled()
    with pytest.raises(
        ScheduleError, match=r"no tensor intrinsic 'nothing' is declared; declared are .*dot_16x4_vnni.*before the schedule is replayed"
    ):
        s.apply_step(Tensorize(2, 4, "nothing", "0" * 16))
    gemv(8, 12)
    with pytest.raises(ScheduleError, match="the tensor intrinsic 'gemv' that is declared is another one than the schedule names"):
        s.apply_step(Tensorize(2, 4, "gemv", "0" * 16))
    with pytest.raises(RecordError, match="step 'tensorize': field digest is '7'; it takes str"):
        step_from_json(["tensorize", 2, 4, "gemv", 7])


def test_gemm_of_another_shape_names_the_axis() -> None:
    s, args = tiled()
    s[args[-1]].tensorize(s[args[-1]].leaf_iter_vars[0], gemm(4, 8, 12))
    assert "can't tensorize 'i' with gemm" in refused(s, args)
