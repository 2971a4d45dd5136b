"""tir.Schedule: handles, the trace, sampling, and what an illegal request says."""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import Any

import numpy as np
import pytest

import tensorexpr
from tensorexpr import te, tir
from tensorexpr.errors import RecordError, ScheduleError
from tensorexpr.schedule.blocks import Instruction, Trace
from tensorexpr.script import tir as T
from tensorexpr.tir.structural import structural_equal


def matmul(n: int = 128) -> tir.PrimFunc:
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    return te.create_prim_func([a, b, te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")])


def scheduled() -> Any:
    sch = tir.Schedule(matmul())
    block = sch.get_block("C", "main")
    i, j, k = sch.get_loops(block=block)
    j0, j1 = sch.split(loop=j, factors=sch.sample_perfect_tile(loop=j, n=2, decision=[8, 16]))
    sch.reorder(i, j0, k, j1)
    return sch


LINES = [
    'b0 = sch.get_block(name="C", func_name="main")',
    "l1, l2, l3 = sch.get_loops(block=b0)",
    "v4, v5 = sch.sample_perfect_tile(loop=l2, n=2, max_innermost_factor=16, decision=[8, 16])",
    "l6, l7 = sch.split(loop=l2, factors=[v4, v5], preserve_unit_iters=True, disable_predication=False)",
    "sch.reorder(l1, l6, l3, l7)",
]
JSON = [
    [
        ["GetBlock", [], ["C", "main"], ["b0"]],
        ["GetLoops", ["b0"], [], ["l1", "l2", "l3"]],
        ["SamplePerfectTile", ["l2"], [2, 16], ["v4", "v5"]],
        ["Split", ["l2", "v4", "v5"], [1, 0], ["l6", "l7"]],
        ["Reorder", ["l1", "l6", "l3", "l7"], [], []],
    ],
    [[2, [8, 16]]],
]


def test_the_trace_as_python_and_json() -> None:
    sch = scheduled()
    assert sch.trace.as_python() == LINES
    assert sch.trace.as_json() == JSON
    assert str(sch.trace).splitlines()[2:] == [f"  {line}" for line in LINES]


def test_a_trace_is_replayed_from_json_and_from_itself() -> None:
    sch = scheduled()
    from_json, from_trace = tir.Schedule(matmul()), tir.Schedule(matmul())
    Trace.apply_json_to_schedule(JSON, from_json)
    sch.trace.apply_to_schedule(from_trace, remove_postproc=False)
    assert structural_equal(from_json.mod, sch.mod) and structural_equal(from_trace.mod, sch.mod)
    assert from_json.trace is not None and from_json.trace.as_json() == JSON


def test_another_decision_gives_another_program() -> None:
    sch = scheduled()
    tile = sch.trace.insts[2]
    again = tir.Schedule(matmul())
    sch.trace.with_decision(tile, [32, 4], remove_postproc=False).apply_to_schedule(again, remove_postproc=False)
    assert "for i, j_0, k, j_1 in T.grid(128, 32, 128, 4)" in again.mod.script()
    with pytest.raises(RecordError, match="no sampling instruction"):
        sch.trace.with_decision(sch.trace.insts[0], 1, remove_postproc=False)


def test_a_provider_decides() -> None:
    again = tir.Schedule(matmul())
    seen: list[tuple[str, Any]] = []

    def provider(inst: Instruction, inputs: list[Any], attrs: list[Any], decision: Any) -> Any:
        seen.append((inst.kind, decision))
        return [64, 2]

    scheduled().trace.apply_to_schedule(again, remove_postproc=False, decision_provider=provider)
    assert seen == [("SamplePerfectTile", [8, 16])]
    assert "T.grid(128, 64, 128, 2)" in again.mod.script()


def test_simplified_leaves_out_what_nobody_uses() -> None:
    sch = scheduled()
    sch.sample_categorical([1, 2], [0.5, 0.5], decision=1)
    sch.get_block("C")
    sch.enter_postproc()
    sch.annotate(sch.get_block("C"), "late", 1)
    assert sch.trace.simplified(remove_postproc=True).as_python() == LINES
    kinds = [inst.kind for inst in sch.trace.simplified(remove_postproc=False).insts]
    assert kinds[-3:] == ["EnterPostproc", "GetBlock", "Annotate"] and "SampleCategorical" not in kinds


def test_sampling_leaves_the_module_and_gives_variables() -> None:
    sch = tir.Schedule(matmul(), seed=1)
    before = sch.mod
    tiles = sch.sample_perfect_tile(sch.get_loops("C")[0], n=3)
    assert sch.mod is before and all(isinstance(tile, tir.Var) for tile in tiles)
    assert prod(sch.get(tile) for tile in tiles) == 128
    assert sch.get(tiles[0] * tiles[1] * tiles[2]) == 128


def test_tiles_are_drawn_evenly_and_the_same_for_a_seed() -> None:
    def draws(seed: int) -> list[tuple[int, ...]]:
        sch = tir.Schedule(matmul(8), seed=seed)
        loop = sch.get_loops("C")[0]
        return [tuple(sch.get(v) for v in sch.sample_perfect_tile(loop, n=2, max_innermost_factor=4)) for _ in range(300)]

    first = draws(3)
    assert first == draws(3) != draws(4)
    counts = Counter(first)
    assert set(counts) == {(8, 1), (4, 2), (2, 4)} and min(counts.values()) > 60


@pytest.mark.parametrize(("decision", "factors"), [([1, 4, 8], [4, 4, 8]), ([2, 8, 9], [1, 1, 128]), ([2, 3, 16], [1, 8, 16])])
def test_a_decision_for_another_extent_adapts(decision: list[int], factors: list[int]) -> None:
    sch = tir.Schedule(matmul())
    found = sch.sample_perfect_tile(sch.get_loops("C")[0], len(decision), decision=decision)
    assert [int(sch.get(factor)) for factor in found] == factors
    assert f"decision={factors}" in str(sch.trace)


def test_expressions_of_sampled_values_are_factors() -> None:
    sch = tir.Schedule(matmul())
    choice = sch.sample_categorical([2, 4], [0.5, 0.5], decision=1)
    loops = sch.split(sch.get_loops("C")[0], [None, choice * 2])
    assert sch.get(loops[1]).extent.value == 8


def test_a_copy_goes_on_by_itself() -> None:
    sch = scheduled()
    before, block = sch.mod, sch.get_block("C")
    other = sch.copy()
    other.parallel(other.get_loops(block)[0])
    assert sch.mod is before and "T.parallel" in other.mod.script()
    assert len(other.trace) == len(sch.trace) + 2


def test_forked_traces_differ_in_what_follows() -> None:
    sch = scheduled()
    one, two = sch.copy(), sch.copy()
    one.vectorize(one.get_loops("C")[-1])
    two.unroll(two.get_loops("C")[-1])
    assert [i.kind for i in one.trace.insts[:-1]] == [i.kind for i in two.trace.insts[:-1]]
    assert one.trace.insts[-1].kind == "Vectorize" and two.trace.insts[-1].kind == "Unroll"


def test_a_trace_fits_an_equal_workload_with_other_names() -> None:
    a, b = te.placeholder((64, 64), name="data"), te.placeholder((64, 64), name="weight")
    k = te.reduce_axis((0, 64), name="rk")
    other = te.create_prim_func([a, b, te.compute((64, 64), lambda y, x: te.sum(a[y, k] * b[k, x], axis=k), name="C")])
    sch = tir.Schedule(other)
    scheduled().trace.apply_to_schedule(sch, remove_postproc=False)
    assert "for y, x_0, rk, x_1 in T.grid(64, 4, 64, 16)" in sch.mod.script()


def test_functions_of_a_module() -> None:
    mod = tensorexpr.IRModule({"one": matmul(4), "two": matmul(8)})
    sch = tir.Schedule(mod)
    with pytest.raises(ScheduleError, match="several functions, one, two: name one, or call work_on"):
        sch.get_block("C")
    sch.work_on("two")
    sch.parallel(sch.get_loops("C")[0])
    assert "T.parallel" not in sch.mod["one"].script() and "T.parallel(8)" in sch.mod["two"].script()
    assert sch.get_loops(sch.get_block("C", func_name="one"))


def test_a_function_alone_is_main_and_keeps_its_symbol() -> None:
    func = matmul(4).with_attr("global_symbol", "product")
    sch = tir.Schedule(func)
    assert [var.name_hint for var in sch.mod.get_global_vars()] == ["main"] and sch.func_working_on == tensorexpr.ir.GlobalVar("main")
    assert structural_equal(sch.mod["main"], func)


def test_untraced() -> None:
    sch = tir.Schedule(matmul(), traced=False)
    sch.parallel(sch.get_loops("C")[0])
    assert sch.trace is None


@pytest.mark.parametrize(
    ("level", "words", "absent"),
    [("detail", "\\^\\^\\^", "zzz"), ("fast", "reduces over k", "T.prim_func"), ("none", "not rendered", "reduces")],
)
def test_errors_show_the_program_as_asked(level: str, words: str, absent: str) -> None:
    sch = tir.Schedule(matmul(), error_render_level=level)
    before, steps = sch.mod, len(sch.get_loops("C"))
    with pytest.raises(ScheduleError, match=words) as caught:
        sch.parallel(sch.get_loops("C")[2])
    assert absent not in str(caught.value)
    assert sch.mod is before and len(sch.get_loops("C")) == steps


def test_the_marked_line_is_the_loop() -> None:
    sch = tir.Schedule(matmul())
    i, _, k = sch.get_loops("C")
    sch.parallel(i)
    with pytest.raises(ScheduleError) as caught:
        sch.vectorize(k)
    lines = str(caught.value).splitlines()
    marked = next(number for number, line in enumerate(lines) if set(line.strip()) == {"^"})
    assert lines[marked - 1].strip() == "for k in range(128):"


def test_annotations() -> None:
    sch = tir.Schedule(matmul())
    block = sch.get_block("C")
    sch.annotate(block, "tags", ["a", 1])
    sch.annotate(sch.get_loops(block)[0], "pragma_auto_unroll_max_step", 16)
    assert sch.get(block).annotations["tags"] == ("a", 1)
    sch.unannotate(block, "tags")
    assert not sch.get(block).annotations
    with pytest.raises(ScheduleError, match="no annotation 'tags'"):
        sch.unannotate(block, "tags")
    with pytest.raises(ScheduleError, match="an annotation is a text"):
        sch.annotate(block, "odd", object())


MISTAKES: dict[str, Any] = {
    "no block is called 'Q'; blocks: C": lambda s: s.get_block("Q"),
    "has no function 'f'": lambda s: s.get_block("C", "f"),
    "positive factors": lambda s: s.split(s.get_loops("C")[0], [0, None]),
    "at most one is None": lambda s: s.split(s.get_loops("C")[0], [None, None]),
    "don't cover": lambda s: s.split(s.get_loops("C")[0], [2, 2]),
    "takes a loop, as get_loops gives it": lambda s: s.split(s.get_block("C"), [2, None]),
    "takes a block, as get_block gives it": lambda s: s.get_loops(s.get_loops("C")[0]),
    "stands directly in the one before": lambda s: s.fuse(*s.get_loops("C")[::2]),
    "takes each loop once": lambda s: s.reorder(*[s.get_loops("C")[0]] * 2),
    "no memory is called 'attic'; known: global": lambda s: s.cache_read("C", 0, "attic"),
    "no thread axis is called 'warp'": lambda s: s.bind(s.get_loops("C")[0], "warp"),
    "as many probabilities as candidates": lambda s: s.sample_categorical([1, 2], [1.0]),
    "no place among 2": lambda s: s.sample_categorical([1, 2], [0.5, 0.5], decision=2),
    "isn't 2 positive factors": lambda s: s.sample_perfect_tile(s.get_loops("C")[0], 2, decision=[1, 2, 3]),
    "of another schedule": lambda s: s.parallel(tir.Schedule(matmul()).get_loops("C")[0]),
    "the root block has no producers": lambda s: s.get_producers(s.get_block("root")),
    "has no function 'g'; functions: main": lambda s: s.work_on("g"),
}


@pytest.mark.parametrize("words", MISTAKES)
def test_what_a_mistake_says(words: str) -> None:
    sch = tir.Schedule(matmul())
    before = sch.mod
    with pytest.raises(ScheduleError, match=words):
        MISTAKES[words](sch)
    assert sch.mod is before


def test_a_loop_that_is_gone() -> None:
    sch = tir.Schedule(matmul())
    i = sch.get_loops("C")[0]
    sch.split(i, [None, 4])
    with pytest.raises(ScheduleError, match="the loop over i is gone"):
        sch.parallel(i)


@pytest.mark.parametrize(
    "hostile",
    [
        None,
        [],
        [[], [], []],
        [[["Nope", [], [], []]], []],
        [[["GetBlock", [], ["C", "main"], ["x0"]]], []],
        [[["GetLoops", ["b9"], [], []]], []],
    ],
)
def test_hostile_traces(hostile: Any) -> None:
    with pytest.raises(RecordError):
        Trace.apply_json_to_schedule(hostile, tir.Schedule(matmul()))


def test_reorder_of_no_loops_changes_nothing() -> None:
    sch = tir.Schedule(matmul())
    before = sch.mod.script()
    sch.reorder()
    assert sch.mod.script() == before


def test_an_output_without_a_name_is_a_record_error() -> None:
    with pytest.raises(RecordError):
        Trace.apply_json_to_schedule([[["GetBlock", [], ["C", "main"], [""]]], []], tir.Schedule(matmul()))


def test_a_function_of_loops_gets_a_root_block_and_can_be_built() -> None:
    a = te.placeholder((6,), name="A")
    b = te.compute((6,), lambda i: a[i] + 1.0, name="B")
    sch = tir.Schedule(tensorexpr.lower(te.create_schedule(b.op), [a, b]))
    assert isinstance(sch.mod["main"].body, tir.BlockRealize)
    given, found = np.arange(6, dtype="float32"), np.zeros(6, "float32")
    tensorexpr.build(sch.mod)(given, found)
    assert found.tolist() == (given + 1).tolist()


def test_a_block_without_a_name_is_not_the_root() -> None:
    @T.prim_func
    def double(a: T.handle, b: T.handle) -> None:
        A, B = T.match_buffer(a, (4, 8)), T.match_buffer(b, (4, 8))
        for i, j in T.grid(4, 8):
            with T.block():
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)

    sch = tir.Schedule(double)
    block = sch.get_block("")
    assert [sch.get(one) for one in sch.get_child_blocks(sch.get_block("root"))] == [sch.get(block)]
    sch.vectorize(sch.get_loops(block)[1])
    again = tir.Schedule(double)
    sch.trace.apply_to_schedule(again, remove_postproc=False)
    assert structural_equal(again.mod, sch.mod) and "T.vectorized(8)" in again.mod.script()
