"""Index maps of tir.Schedule: separators, stated inverses, and maps in traces of TVM."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tensorexpr import tir
from tensorexpr.arith import IndexMap
from tensorexpr.arith.index_map_graph import index_map_from_json
from tensorexpr.errors import DeclarationError, ScheduleError
from tensorexpr.lower.pipeline import lower
from tensorexpr.script import tir as T
from tensorexpr.tir.expr import Var
from tensorexpr.tir.interpreter import interpret
from tensorexpr.tir.structural import structural_equal
from tests import loop_programs
from tests import placement_programs as placement

GOLDEN = Path(__file__).parents[2] / "golden/tir_schedule/tvm019_index_map.json"


def tiled(separator: list[object]) -> Callable[..., list[object]]:
    """Rows in tiles of four, with a separator or none."""
    return lambda i, j: [i // 4, j, *separator, i % 4]


def test_separators_are_kept_by_the_buffer_and_the_trace() -> None:
    made = []
    separators: list[list[object]] = [[IndexMap.AXIS_SEPARATOR], []]
    for separator in separators:
        sch = tir.Schedule(loop_programs.chain)
        sch.transform_layout("B", ("write", 0), tiled(separator))
        assert sch.trace is not None
        made.append((sch.mod, str(sch.trace)))
    assert "axis_separators=[" in made[0][0].script() and "axis_separators" not in made[1][0].script()
    assert "sch.set_axis_separator(" in made[0][1] and made[0][1].startswith(made[1][1])


def test_a_map_with_an_inverse_in_a_trace_of_tvm() -> None:
    """(i) -> (i // 4, i % 4) with (a, b) -> (a * 4 + b), as TVM 0.19 writes it."""
    text = GOLDEN.read_text()
    found = index_map_from_json(text)
    assert str(found) == "(i) -> (i // 4, i % 4)"
    assert str(found.inverse([16])) == "(i_o, i_i) -> (i_o * 4 + i_i)"
    func = tir.Schedule(loop_programs.shifted)
    trace = [[["GetBlock", [], ["B", "main"], ["b0"]], ["TransformLayout", ["b0", text], [0, 1, None, 0], []]], []]
    tir.schedule.Trace.apply_json_to_schedule(json.loads(json.dumps(trace)), func)
    (buffer,) = func.get(func.get_block("root")).alloc_buffers
    assert [int(extent.value) for extent in buffer.shape] == [4, 4]


def test_an_inverse_may_be_stated() -> None:
    plain = IndexMap.from_func(lambda i: [i // 4, i % 4])
    for inverse in (lambda a, b: [a * 4 + b], IndexMap.from_func(lambda a, b: [a * 4 + b])):
        assert str(IndexMap.from_func(lambda i: [i // 4, i % 4], None, inverse)) == str(plain)


@pytest.mark.parametrize(
    ("inverse", "message"),
    [
        (lambda a, b: [a * 4 + b + 1], "is not the inverse of (i) -> (i // 4, i % 4): it leads from [0, 0] to [1], not to [0]"),
        (lambda a, b: [a * 5 + b], "it leads from [1, 0] to [5], not to [4]"),
        (lambda a, b: [a, b], "gives 2 indices, not 1"),
        (lambda a: [a], "takes 1 indices, but there are 2 dimensions"),
    ],
)
def test_another_inverse_is_refused(inverse: Callable[..., object], message: str) -> None:
    with pytest.raises(DeclarationError) as error:
        IndexMap.from_func(lambda i: [i // 4, i % 4], inverse_index_map=inverse)
    assert message in str(error.value)


@T.prim_func
def doubled(a: T.handle, b: T.handle, n: T.int32) -> None:
    T.func_attr({"global_symbol": "main"})
    A = T.match_buffer(a, (6,), "int32")
    B = T.match_buffer(b, (6,), "int32")
    C = T.alloc_buffer((6,), "int32")
    for i in range(6):
        with T.block("C"):
            vi = T.axis.spatial(6, i)
            C[vi] = A[vi] * 2
    for i in range(6):
        with T.block("B"):
            vi = T.axis.spatial(6, i)
            B[vi] = C[vi]


@pytest.mark.parametrize("parts", [2, 4, 7])
def test_the_factor_of_a_layout_may_be_a_parameter(parts: int) -> None:
    sch = tir.Schedule(doubled)
    n = sch.mod["main"].params[2]
    sch.transform_layout("C", "C", lambda i: [i // n, i % n], pad_value=-1)
    given, found = np.arange(6, dtype="int32"), np.zeros(6, "int32")
    interpret(sch.mod["main"], [given, found, parts])
    np.testing.assert_array_equal(found, 2 * given)
    again = tir.Schedule(doubled)
    assert sch.trace is not None
    tir.schedule.Trace.apply_json_to_schedule(json.loads(json.dumps(sch.trace.as_json())), again)
    assert structural_equal(again.mod, sch.mod)


def test_the_factor_of_a_layout_may_be_sampled() -> None:
    sch = tir.Schedule(doubled)
    (i,) = sch.get_loops(sch.get_block("C"))
    _, inner = sch.sample_perfect_tile(i, 2, decision=[3, 2])
    sch.transform_layout("C", "C", lambda i: [i // inner, i % inner])
    assert sch.trace is not None and "lambda i: (i // v3, i % v3,)" in str(sch.trace)
    again = tir.Schedule(doubled)
    tir.schedule.Trace.apply_json_to_schedule(json.loads(json.dumps(sch.trace.as_json())), again)
    assert structural_equal(again.mod, sch.mod) and "C[vi // 2, vi % 2] = A[vi] * 2" in sch.mod.script()


def test_symbolic_extents_are_fused() -> None:
    @T.prim_func
    def copied(a: T.handle, b: T.handle) -> None:
        m, n = T.int32(), T.int32()
        A = T.match_buffer(a, (m, n))
        B = T.match_buffer(b, (m, n))
        for i, j in T.grid(m, n):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]

    n = copied.buffer_map[copied.params[0]].shape[1]
    sch = tir.Schedule(copied)
    sch.transform_layout("B", "B", lambda i, j: i * n + j)
    assert "B[vi * n + vj] = A[vi, vj]" in sch.mod.script()
    sch.transform_block_layout("B", lambda i, j: i * n + j)
    assert "B[v0] = A[v0 // n, v0 % n]" in sch.mod.script()
    with pytest.raises(ScheduleError, match="uses other, which is no index, no parameter or size"):
        sch.transform_layout("B", "B", lambda i: i * Var("other", "int32"))


def test_an_index_of_one_value_has_padding_where_it_is_divided() -> None:
    @T.prim_func
    def column(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (4, 1), "int32")
        B = T.match_buffer(b, (4, 1), "int32")
        for i, j in T.grid(4, 1):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]

    sch = tir.Schedule(column)
    sch.transform_layout("B", "B", lambda i, j: [i, j // 2, j % 2], pad_value=7)
    found = np.zeros((4, 1, 2), "int32")
    interpret(sch.mod["main"], [np.arange(4, dtype="int32").reshape(4, 1), found])
    assert found[:, 0].tolist() == [[n, 7] for n in range(4)]


def test_the_padding_of_floats_is_a_float() -> None:
    sch = tir.Schedule(loop_programs.chain)
    with pytest.raises(ScheduleError, match="B is float32, but pad_value is int32"):
        sch.transform_layout("B", "B", lambda i, j: [i // 5, j, i % 5], pad_value=0)


def test_what_pads_nothing_is_no_padding() -> None:
    @T.prim_func
    def copied(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (4,), "int32")
        B = T.match_buffer(b, (4,), "int32")
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = T.if_then_else(vi >= 0 and vi < 4, A[vi], 0)

    sch = tir.Schedule(copied)
    block = sch.get_block("B")
    assert not sch.can_decompose_padding(block, sch.get_loops(block)[0])


def test_whole_probabilities_print_as_integers() -> None:
    sch = tir.Schedule(loop_programs.chain)
    sch.sample_categorical([1, 2], [1.0, 0.5], decision=0)
    assert "probs=[1, 0.5], decision=0" in str(sch.trace)


def test_one_dimension_with_a_separator_behind_it_lowers() -> None:
    """Storage of two axes, the second of one element."""
    sch = tir.Schedule(placement.prefix_sums())
    sch.set_axis_separator("total", ("read", 0), [1])
    a, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    interpret(lower(sch.mod["main"])["main"], [a, out])
    plain = np.zeros(8, np.float32)
    interpret(placement.prefix_sums(), [a, plain])
    np.testing.assert_array_equal(out, plain)
