"""ScheduleState: places of blocks and loops, dependences, and what is known of blocks."""

# mypy: disable-error-code="valid-type"

from __future__ import annotations

from typing import Any

import pytest

from tensorexpr import tir
from tensorexpr.errors import ScheduleError
from tensorexpr.schedule.blocks import DepKind, ScheduleState, StmtSRef
from tensorexpr.schedule.blocks.state import CachedFlags
from tensorexpr.script import from_source
from tensorexpr.script import tir as T
from tensorexpr.tir.rewriting import walk


@T.prim_func
def rotated(A: T.Buffer((16, 16)), C: T.Buffer((16, 16))) -> None:
    B = T.alloc_buffer((16, 16))
    D = T.alloc_buffer((16, 16))
    for i in range(16):
        for j in range(16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0
        for j in range(16):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = B[vi, 15 - vj] + 1.0
    for i, j in T.grid(16, 16):
        with T.block("E"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = D[vi, vj] + 1.0
    for i, j, k in T.grid(16, 16, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] = C[vi, vj] + B[vi, vk]


@T.prim_func
def halves(A: T.Buffer((16,)), C: T.Buffer((16,)), n: T.int32) -> None:
    B = T.alloc_buffer((16,), scope="shared")
    for i in T.thread_binding(8, thread="threadIdx.x"):
        with T.block("low"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in T.thread_binding(8, thread="threadIdx.x"):
        with T.block("high"):
            vi = T.axis.spatial(8, i)
            B[vi + 8] = A[vi + 8]
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[15 - vi]


@T.prim_func
def gap(A: T.Buffer((16,)), C: T.Buffer((16,))) -> None:
    B = T.alloc_buffer((16,))
    for i in range(4):
        with T.block("low"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi]
    for i in range(4):
        with T.block("high"):
            vi = T.axis.spatial(4, i)
            B[vi + 12] = A[vi + 12]
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[vi]


@T.prim_func
def threads(A: T.Buffer((4, 8)), C: T.Buffer((4, 8))) -> None:
    B = T.alloc_buffer((4, 8), scope="shared")
    for i in T.thread_binding(4, thread="blockIdx.x"):
        for j in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, 7 - vj]


def block_of(state: ScheduleState, name: str) -> StmtSRef:
    (found,) = {node for node in walk(state.mod["main"].body) if isinstance(node, tir.Block) and node.name_hint == name}
    place = state.get_sref(found)
    assert place is not None
    return place


def flags(func: Any, name: str) -> CachedFlags:
    state = ScheduleState(func)
    return state._get_cached_flags(block_of(state, name))


def test_dependences_are_of_three_kinds() -> None:
    state = tir.ScheduleState(rotated)
    scope = state.get_block_scope(block_of(state, "root"))
    found = [(d.src.stmt.name_hint, d.kind.name, d.dst.stmt.name_hint) for d in scope.dependencies]
    late = block_of(state, "E")
    assert {d.kind for d in scope.get_deps_by_dst(late)} == {DepKind.RAW, DepKind.WAW, DepKind.WAR}
    assert found == [("B", "RAW", "D"), ("D", "RAW", "E"), ("B", "WAW", "E"), ("D", "WAR", "E"), ("B", "RAW", "C"), ("E", "RAW", "C")]
    assert [d.dst for d in scope.get_deps_by_src(late)] == [block_of(state, "C")]


@pytest.mark.parametrize(
    ("func", "name", "expected"),
    [
        (rotated, "root", CachedFlags(True, True, False)),
        (rotated, "C", CachedFlags(True, True, True)),
        (halves, "root", CachedFlags(True, True, True)),
        (halves, "C", CachedFlags(True, True, True)),
        (gap, "C", CachedFlags(True, False, True)),
        (gap, "root", CachedFlags(True, True, False)),
        (threads, "C", CachedFlags(True, True, True)),
    ],
)
def test_what_is_known_of_blocks(func: Any, name: str, expected: CachedFlags) -> None:
    assert flags(func, name) == expected


def test_threads_with_memory_of_their_own_write_for_themselves_alone() -> None:
    sch = tir.Schedule(threads)
    sch.set_scope("B", 0, "local")
    assert not sch.state._get_cached_flags(sch.get_sref(sch.get_block("C"))).region_cover


def test_places_stay_when_statements_are_replaced() -> None:
    state = ScheduleState(rotated)
    root, block = block_of(state, "root"), block_of(state, "B")
    loop = block.parent
    assert loop is not None and isinstance(loop.stmt, tir.For) and loop.stmt.loop_var.name == "j"
    old = loop.stmt
    state.replace(loop, tir.For(old.loop_var, old.min, old.extent, tir.ForKind.PARALLEL, old.body))
    assert isinstance(loop.stmt, tir.For) and loop.stmt.kind == tir.ForKind.PARALLEL and "T.parallel(16)" in state.mod.script()
    assert state.get_sref(old) is None and block.parent is loop and block_of(state, "root") is root
    before = block.stmt
    assert isinstance(before, tir.Block)
    after = tir.Block(before.iter_vars, before.reads, before.writes, "renamed", before.body)
    state.replace(block, after, {before: after})
    assert block.stmt is after and block_of(state, "renamed") is block and state.get_sref(before) is None
    with pytest.raises(ScheduleError, match="in the place of a block"):
        state.replace(loop, after)


def test_what_is_replaced_is_gone() -> None:
    state = ScheduleState(rotated)
    block = block_of(state, "B")
    outer = block.parent.parent  # type: ignore[union-attr]
    assert outer is not None and isinstance(outer.stmt, tir.For)
    second = outer.stmt.body.seq[1]  # type: ignore[attr-defined]
    state.replace(outer, tir.For(outer.stmt.loop_var, outer.stmt.min, outer.stmt.extent, tir.ForKind.SERIAL, second))
    assert block.stmt is None and block.parent is None
    with pytest.raises(IndexError, match="the place of a block is needed"):
        state.get_block_scope(block)


def test_a_schedule_has_a_state() -> None:
    sch = tir.Schedule(rotated)
    handle = sch.get_block("B")
    place = sch.get_sref(handle)
    assert place is sch.state.get_sref(sch.get(handle)) is sch.get_sref(sch.get(handle))
    assert place is not None and sch.get(place) is sch.get(handle)
    assert StmtSRef.root_mark() is not StmtSRef.inline_mark()


def test_an_unknown_mask_is_refused() -> None:
    with pytest.raises(ValueError, match="'all', 'none' or a number"):
        tir.Schedule(rotated, debug_mask="some")


@pytest.mark.parametrize(("where", "covered"), [("i % 2 == 0", False), ("i < 8", False), ("i < 16", True)])
def test_a_predicate_leaves_holes(where: str, covered: bool) -> None:
    func = from_source(f"""@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((16,))
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            T.where({where})
            B[vi] = A[vi]
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[vi]
""")
    assert flags(func, "C").region_cover is covered
