"""What programs can ask a schedule and its stages, and the helpers of te.schedule."""

from __future__ import annotations

import numpy as np
import pytest

from tensorexpr import te, tir
from tensorexpr.errors import DeclarationError, LoweringError, ScheduleError
from tensorexpr.schedule import create_schedule
from tensorexpr.te import Tensor
from tensorexpr.tir.buffer import decl_buffer
from tensorexpr.tir.expr import IterVar
from tensorexpr.tir.interpreter import interpret
from tensorexpr.tir.rewriting import walk
from tests.programs import matmul_add
from tests.scan_programs import cumulative_sum, lstm, rnn, two_states


def test_relations_and_attributes() -> None:
    args = matmul_add(16, 16, 16)
    out = args[-1]
    product = out.op.input_tensors[0]
    s = create_schedule(out.op)
    i, j = out.op.axis
    outer, inner = s[out].split(i, factor=4)
    fused = s[out].fuse(inner, j)
    parts = s[out].split(fused, nparts=2)
    s[out].vectorize(parts[1])
    s[out].pragma(outer, "auto_unroll_max_step", 16)
    first, second, third = s[out].relations
    assert isinstance(first, te.schedule.Split)
    assert (first.parent, first.outer, first.inner, first.factor, first.nparts) == (i, outer, inner, 4, None)
    assert isinstance(second, te.schedule.Fuse)
    assert (second.outer, second.inner, second.fused) == (inner, j, fused)
    assert isinstance(third, te.schedule.Split)
    assert (third.factor, third.nparts) == (None, 2)
    said = s[out].iter_var_attrs
    assert said[parts[1]].iter_type == IterVar.VECTORIZED
    assert (said[outer].pragma_keys, said[outer].pragma_values) == (("auto_unroll_max_step",), (16,))
    s[product].compute_at(s[out], outer)
    s[product].set_scope("local")
    assert (s[product].attach_type, s[product].attach_ivar, s[product].scope) == (4, outer, "local")
    stage = s[product].attach_stage
    assert stage is not None and stage.op is out.op
    assert (s[out].attach_type, s[out].attach_ivar, s[out].attach_stage) == (1, None, None)
    assert (s[out].is_output, s[product].is_output) == (True, False)


def test_inlined_and_scan_stages() -> None:
    _, sums = cumulative_sum()
    kept = sums.op.update[0].op.input_tensors[0]
    s = create_schedule(sums.op)
    assert [s[t].attach_type for t in (sums, sums.op.update[0], kept)] == [1, 5, 4]
    s[kept].compute_inline()
    assert s[kept].attach_type == 2
    assert s[sums].leaf_iter_vars == [sums.op.scan_axis]


def test_stage_map_outputs_and_normalize() -> None:
    x, sums = cumulative_sum()
    s = create_schedule(sums.op)
    assert s.outputs == (sums.op,)
    assert list(s.stage_map) == [stage.op for stage in s.stages]
    assert s.stage_map[x.op].op is x.op
    again = s.normalize()
    assert again is not s
    assert again.trace == s.trace


def test_read_graph_and_order() -> None:
    x, sums = cumulative_sum()
    graph = te.schedule.CreateReadGraph([sums.op])
    assert graph[sums.op] == [sums.op.init[0], sums.op.update[0]]
    assert graph[x.op] == []
    order = te.schedule.PostDFSOrder([sums.op], graph)
    assert [op.name for op in order] == ["X", "first", "state", "kept", "update", "sums"]


def test_attach_path() -> None:
    _, _, made = rnn()
    update = made.op.update[0]
    product = update.op.input_tensors[0]
    s = create_schedule(made.op)
    s[product].compute_at(s[update], update.op.axis[1])
    path = te.schedule.CreateAttachPath(s)
    assert path[product.op] == [update.op.axis[1], update.op.axis[0], made.op.scan_axis]
    assert path[made.op] == []


def test_scan_body_and_fix_points() -> None:
    _, _, made = rnn()
    assert [op.name for op in te.schedule.ScanGetBody(made.op)] == ["product", "update"]
    assert list(te.schedule.ScanFixPointAnalysis(made.op).values()) == [1, 0]
    _, _, _, c, _ = lstm()
    assert {a.name: v for a, v in te.schedule.ScanFixPointAnalysis(c.op).items()} == {
        "lstm_out0_i1": 1,
        "lstm_out0_i2": 0,
        "lstm_out1_i1": 1,
        "lstm_out1_i2": 0,
    }
    assert list(te.schedule.ScanFixPointAnalysis(cumulative_sum()[1].op).values()) == [1]
    assert list(te.schedule.ScanFixPointAnalysis(two_states()[1].op).values()) == [0]


def test_transposed_states_are_no_fix_point() -> None:
    state = te.placeholder((4, 3, 3), name="state")
    update = te.compute((4, 3, 3), lambda t, i, j: state[t - 1, j, i] * 0.5, "update")
    made = te.scan(te.compute((1, 3, 3), lambda *_: te.const(1.0, "float32"), "init"), update, state)
    assert list(te.schedule.ScanFixPointAnalysis(made.op).values()) == [0, 0]


@pytest.mark.parametrize("function", ["ScanGetBody", "ScanFixPointAnalysis"])
def test_scan_helpers_take_scans(function: str) -> None:
    x = te.placeholder((4,), name="X")
    with pytest.raises(ScheduleError, match=f"{function} takes the operation of a te.scan, not placeholder"):
        getattr(te.schedule, function)(x.op)


def elementwise() -> tuple[Tensor, Tensor]:
    a = te.placeholder((6,), name="A")
    return a, te.compute((6,), lambda i: a[i] * 2.0, "B")


def test_lowering_by_hand() -> None:
    x, sums = cumulative_sum()
    s = create_schedule(sums.op).normalize()
    bounds = te.schedule.InferBound(s)
    assert [str(part) for part in (bounds[sums.op.scan_axis].min, bounds[sums.op.scan_axis].extent)] == ["1", "5"]
    stmt = te.schedule.ScheduleOps(s, bounds)
    func = te.schedule.SchedulePostProcToPrimFunc([x, sums], stmt, None)
    assert te.schedule.VerifyCompactBuffer(func.body)
    given, made = np.random.default_rng(0).random((6, 5)).astype("float32"), np.zeros((6, 5), "float32")
    interpret(func, [given, made])
    np.testing.assert_allclose(made, np.cumsum(given, 0), rtol=1e-5)


def test_buffers_of_ones_own() -> None:
    a, b = elementwise()
    stmt = te.schedule.ScheduleOps(create_schedule(b.op))
    apart = decl_buffer((6,), "float32", "apart", strides=(2,))
    func = te.schedule.SchedulePostProcToPrimFunc([apart, b], stmt, {a: apart})
    assert not te.schedule.VerifyCompactBuffer(func.body)
    assert [buffer.name for buffer in func.buffer_map.values()] == ["apart", "B"]


def test_the_statement_by_hand_speaks_of_tensors() -> None:
    """One output of two is stored by nobody's wish but has storage; scopes and alignment survive the way back."""
    a = te.placeholder((8, 8), name="A")
    twice, more = te.compute((8, 8), lambda i, j: (a[i, j] * 2.0, a[i, j] + 1.0), "B")
    c = te.compute((8, 8), lambda i, j: twice[i, j] + 4.0, "C")
    s = create_schedule(c.op)
    s[twice.op].compute_at(s[c], c.op.axis[0])
    s[twice.op].storage_align(twice.op.axis[0], 8, 1)
    s[twice.op].set_scope("local")
    stmt = te.schedule.ScheduleOps(s)
    found = [node for node in walk(stmt) if isinstance(node, tir.ProducerRealize)]
    assert {node.producer: node.storage_scope for node in found} == {c: "global", twice: "local", more: "local"}
    assert {node.producer for node in walk(stmt) if isinstance(node, tir.ProducerStore)} == {twice, more, c}
    assert isinstance(stmt, tir.ProducerRealize) and stmt.producer == c
    func = te.schedule.SchedulePostProcToPrimFunc([a, c], stmt)
    tvm_like = [node for node in walk(func.body) if isinstance(node, tir.BufferRealize)]
    assert [(node.buffer.scope(), "storage_align" in node.annotations) for node in tvm_like] == [("local", True)] * 2
    given, made = np.ones((8, 8), "float32"), np.zeros((8, 8), "float32")
    interpret(func, [given, made])
    assert (made == 6).all()


def test_an_extern_keeps_its_buffers_by_hand() -> None:
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1.0, "B")
    c = te.extern((4,), [b], lambda ins, outs: tir.call_packed("f", ins[0].access_ptr("r"), outs[0].access_ptr("w")), name="C")
    stmt = te.schedule.ScheduleOps(create_schedule(c.op))
    func = te.schedule.SchedulePostProcToPrimFunc([a, c], stmt)
    (call,) = (node for node in walk(func.body) if isinstance(node, tir.Call) and node.op == "tir.tvm_call_packed")
    (storage,) = (node.buffer for node in walk(func.body) if isinstance(node, tir.BufferRealize))
    pointers = {node for node in walk(call) if isinstance(node, tir.Var)}
    assert pointers == {storage.data, func.buffer_map[func.params[1]].data}


def test_lowering_by_hand_errors() -> None:
    a, b = elementwise()
    stmt = te.schedule.ScheduleOps(create_schedule(b.op))
    for args, message in (
        ([b], "the statement accesses A, which is missing from arg_list"),
        ([a, 3], "argument 1 is 3; arg_list takes tensors"),
    ):
        with pytest.raises(LoweringError, match=message):
            te.schedule.SchedulePostProcToPrimFunc(args, stmt)


def test_specialized_condition() -> None:
    n = te.var("n")
    with te.SpecializedCondition(n > 4) as outer, te.schedule.SpecializedCondition([n > 8, n < 99]) as inner:
        assert (len(outer.clauses), len(inner.clauses)) == (1, 2)
        assert te.SpecializedCondition.current() is inner
    assert te.SpecializedCondition.current() is None
    with pytest.raises(DeclarationError, match=r"SpecializedCondition: n \+ 1 is int32; a condition is a comparison"):
        te.SpecializedCondition([n + 1])
