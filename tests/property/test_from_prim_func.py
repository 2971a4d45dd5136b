"""A function of blocks and the tensors that are read from it compute the same; what isn't a computation of tensors is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import te, tir, topi
from tensorexpr.errors import DeclarationError, RecordError, ScheduleError
from tensorexpr.lower.tensor_schedules import Schedule, schedule_tensors
from tensorexpr.schedule.trace import Trace
from tensorexpr.script import from_source
from tensorexpr.te.dag import post_dfs_order
from tensorexpr.te.from_prim_func import tensors_of
from tensorexpr.te.operation import ComputeOp, PlaceholderOp
from tensorexpr.testing.check_func import assert_func_correct
from tensorexpr.testing.strategies import compute_dags, schedules
from tensorexpr.tir.structural import structural_equal
from tests.effort import share_of

SOME = settings(max_examples=share_of(60), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
OF_COMPUTES = compute_dags().filter(lambda dag: {type(op) for op in post_dfs_order(dag.outputs)} <= {ComputeOp, PlaceholderOp})


@SOME
@given(st.data())
def test_tensors_there_and_back(data: st.DataObject) -> None:
    dag = data.draw(OF_COMPUTES)
    func = te.create_prim_func(dag.tensors)
    try:
        tensors = tensors_of(func)
    except DeclarationError as error:  # tuple reductions and the like are said to be none
        assert "block " in str(error)
        return
    again = te.create_prim_func(tensors)
    assert_func_correct(again, dag.tensors)
    assert structural_equal(again, te.create_prim_func(tensors_of(again)))


@SOME
@given(st.data())
def test_a_schedule_of_the_tensors_means_the_same(data: st.DataObject) -> None:
    dag = data.draw(OF_COMPUTES)
    func = te.create_prim_func(dag.tensors)
    try:
        tensors = tensors_of(func)
    except DeclarationError:
        return
    schedule = data.draw(schedules([t.op for t in tensors if not isinstance(t.op, PlaceholderOp)]))
    assert_func_correct(schedule_tensors(func, schedule.trace), dag.tensors)


def _matmul() -> tir.PrimFunc:
    a, b = te.placeholder((6, 5), name="A"), te.placeholder((5, 4), name="B")
    k = te.reduce_axis((0, 5), name="k")
    return te.create_prim_func([a, b, te.compute((6, 4), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")])


def test_as_an_instruction_with_decisions() -> None:
    trace = Trace.from_json([["sample_categorical", [1, 2, 4], None]])
    sch = Schedule(_matmul())
    sch.run("ScheduleTensors", [], ["main", "tile", trace.to_json()], [1])
    assert sch.trace is not None and list(sch.trace.decisions.values()) == [[1]]
    again = Schedule(_matmul())
    sch.trace.apply_to_schedule(again, remove_postproc=False)
    assert structural_equal(again.mod, sch.mod)
    with pytest.raises(ScheduleError, match="leave decisions open"):
        Schedule(_matmul()).run("ScheduleTensors", [], ["main", "tile", trace.to_json()])
    with pytest.raises(RecordError, match="leave 1 decisions open, and 2 are given"):
        Schedule(_matmul()).run("ScheduleTensors", [], ["main", "tile", trace.to_json()], [1, 1])


def test_a_trace_goes_on_after_the_tensors_were_scheduled() -> None:
    func = _matmul()
    tensors = tensors_of(func)
    schedule = te.create_schedule(tensors[2].op)
    tile = schedule.cache_write(tensors[2], "local")
    _, j = schedule[tensors[2]].op.axis
    schedule[tile].compute_at(schedule[tensors[2]], schedule[tensors[2]].split(j, factor=3)[0])
    sch = Schedule(func)
    sch.run("ScheduleTensors", [], ["main", "tile", schedule.trace.to_json()])
    assert [sch.get(block).name_hint for block in sch.get_child_blocks(sch.get_block("root"))] == ["C.local_init", "C.local_update", "C"]
    i, *_ = sch.get_loops(sch.get_block("C"))
    sch.parallel(sch.split(i, [None, 2])[0])
    *_, k = sch.get_loops(sch.get_block("C.local_update"))
    sch.unroll(k)
    assert sch.trace is not None
    again = Schedule(func)
    sch.trace.apply_to_schedule(again, remove_postproc=False)
    assert structural_equal(again.mod, sch.mod)
    assert_func_correct(sch.mod["main"], tensors)


def test_loops_that_were_scheduled_by_hand_are_read_through() -> None:
    sch = tir.Schedule(_matmul())
    i, j, k = sch.get_loops(sch.get_block("C"))
    i0, i1 = sch.split(i, [None, 4])
    sch.reorder(i0, k, j, i1)
    sch.fuse(j, i1)
    again = te.create_prim_func(tensors_of(sch.mod["main"]))
    a, b = np.random.default_rng(0).random((6, 5), np.float32), np.random.default_rng(1).random((5, 4), np.float32)
    c = np.zeros((6, 4), np.float32)
    tir.interpreter.interpret(again, [a, b, c])
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


BLOCK = """
from tensorexpr.script import tir as T

@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
{body}
"""
REFUSED = {
    "reads B, which it writes": """
    for i in range(8):
        with T.block("b"):
            vi = T.axis.spatial(8, i)
            B[vi] = B[vi] + A[vi]
""",
    "B was read or written before": """
    for i in range(8):
        with T.block("a"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(8):
        with T.block("b"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * 2.0
""",
    "written at": """
    for i in range(8):
        with T.block("b"):
            vi = T.axis.spatial(8, i)
            B[7 - vi] = A[vi]
""",
    "other values than its range": """
    for i in range(4):
        with T.block("b"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
""",
    "has no blocks": """
    for i in range(8):
        B[i] = A[i]
""",
    "without an init": """
    for i, j in T.grid(8, 4):
        with T.block("b"):
            vi, vj = T.axis.remap("SR", [i, j])
            B[vi] = A[vi] + T.Cast("float32", vj)
""",
    "is no sum, product, maximum or minimum": """
    for i, j in T.grid(8, 4):
        with T.block("b"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] - A[vi]
""",
    "not one store": """
    for i in range(8):
        with T.block("b"):
            vi = T.axis.spatial(8, i)
            while A[0] < 1.0:
                B[vi] = A[vi]
""",
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_is_no_computation_of_tensors_is_refused(reason: str) -> None:
    func = from_source(BLOCK.format(body=REFUSED[reason]))
    assert isinstance(func, tir.PrimFunc)
    with pytest.raises(DeclarationError, match=reason):
        tensors_of(func)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("search", [topi.argmax, topi.argmin])
def test_several_values_that_are_reduced_together_are_read(search: Any, last: bool) -> None:
    x = te.placeholder((4, 6), name="x")
    func = te.create_prim_func([x, search(x, 1, select_last_index=last)])
    tensors = tensors_of(func)
    assert structural_equal(te.create_prim_func(tensors), func)
    given = np.random.default_rng(0).integers(0, 3, (4, 6)).astype("float32")  # with many that are equal
    extreme = (given == (given.max if search is topi.argmax else given.min)(1, keepdims=True)).astype("int32")
    wanted = 5 - extreme[:, ::-1].argmax(1) if last else extreme.argmax(1)
    result = np.zeros(4, "int32")
    tvm.build(te.create_prim_func(tensors), target="llvm")(given, result)
    np.testing.assert_array_equal(result, wanted)
