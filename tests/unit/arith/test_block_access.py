"""What blocks touch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tensorexpr import te, tir
from tensorexpr.arith.block_access import is_self_contained, touched_regions
from tensorexpr.tir.analysis import get_block_access_region, get_block_read_write_region
from tensorexpr.tir.printer.blocks import region_text
from tensorexpr.tir.printer.placement import Placement
from tensorexpr.tir.printer.statements import StatementPrinter
from tensorexpr.tir.printer.text import Names
from tensorexpr.tir.rewriting import walk
from tests import programs
from tests.block_programs import TRUE, axis, loop, tiles

A, B = tir.decl_buffer((64,), name="A"), tir.decl_buffer((64,), name="B")


def texts(regions: list[tir.BufferRegion]) -> list[str]:
    printer = StatementPrinter(Names(), Placement())
    return [region_text(printer, region) for region in regions]


def blocks(func: tir.PrimFunc) -> dict[str, tir.Block]:
    return {node.name_hint: node for node in walk(func.body) if isinstance(node, tir.Block)}


def block(body: tir.Stmt) -> tir.Block:
    return tir.Block((VI,), (), (), "b", body)


VI = axis("vi", 16)
I = tir.Var("i")  # noqa: E741


def test_a_reduction_does_not_read_what_it_writes() -> None:
    reads, writes, opaque = get_block_access_region(blocks(te.create_prim_func(programs.matmul()))["C"])
    assert (texts(reads), texts(writes), opaque) == (["A[v_i, v_k]", "B[v_k, v_j]"], ["C[v_i, v_j]"], [])


def test_without_an_init_it_does() -> None:
    update = replace(blocks(te.create_prim_func(programs.matmul()))["C"], init=None)
    assert texts(get_block_access_region(update)[0])[0] == "C[v_i, v_j]"


def test_loops_inside_are_relaxed() -> None:
    body = loop(I, 4, tir.BufferStore(B, A[VI * 4 + I] + A[I], (VI.var * 2 + I,)))
    reads, writes, _ = get_block_access_region(block(body))
    assert texts(writes) == ["B[vi * 2:vi * 2 + 4]"]
    assert len(texts(reads)) == 1


def test_what_has_no_bound_is_all_of_the_buffer() -> None:
    index = tir.decl_buffer((64,), "int32", name="index")
    body = loop(I, 4, tir.BufferStore(B, A[index[I]], (VI.var,)))
    assert texts(get_block_access_region(block(body))[0]) == ["A[0:64]", "index[0:4]"]


def test_a_hull_of_two_constant_places() -> None:
    body = tir.BufferStore(B, A[VI + 3] + A[VI], (VI.var,))
    assert texts(get_block_access_region(block(body))[0]) == ["A[vi:vi + 4]"]


def test_vectors_touch_all_their_lanes() -> None:
    lanes = tir.Ramp(VI.var * 4, tir.const(1), 4)
    body = tir.BufferStore(B, tir.BufferLoad(A, (lanes,)), (lanes,))
    reads, writes, _ = get_block_access_region(block(body))
    assert texts([*reads, *writes]) == ["A[vi * 4:vi * 4 + 4]", "B[vi * 4:vi * 4 + 4]"]


def test_inner_blocks_count_with_what_they_state_and_own_buffers_do_not() -> None:
    tile = blocks(tiles())["tile"]
    reads, writes, _ = get_block_access_region(tile)
    assert texts(reads) == ["A[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4]"]
    assert texts(writes) == ["B[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4]"]


def test_pointers_that_leave_are_whole_and_both_read_and_written() -> None:
    call = tir.Evaluate(tir.Call("int32", "tir.call_extern", (tir.StringImm("f"), A.data)))
    known = {A.data: A}
    assert texts(get_block_access_region(block(call), known)[2]) == ["A[0:64]"]
    assert [texts(regions) for regions in get_block_read_write_region(block(call), known)] == [["A[0:64]"], ["A[0:64]"]]


def test_a_let_is_looked_through() -> None:
    x = tir.Var("x")
    body = tir.LetStmt(x, VI.var + 1, tir.BufferStore(B, A[x], (VI.var,)))
    assert texts(get_block_access_region(block(body))[0]) == ["A[vi + 1]"]


def test_a_realization_binds_the_axes_of_its_block() -> None:
    inner_axis = axis("vx", 64)
    region = tir.BufferRegion.from_point(A, [inner_axis.var])
    inner = tir.Block((inner_axis,), (region,), (tir.BufferRegion.from_point(B, [inner_axis.var]),), "inner", tir.Evaluate(tir.const(0)))
    body = loop(I, 4, tir.BlockRealize((VI.var * 4 + I,), TRUE, inner))
    assert texts(get_block_access_region(block(body))[0]) == ["A[vi * 4:vi * 4 + 4]"]


def test_an_address_gives_access_to_the_whole() -> None:
    call = tir.Evaluate(tir.Call("int32", "tir.call_extern", (tir.StringImm("f"), tir.Call("handle", "tir.address_of", (A[0],)))))
    assert texts(get_block_access_region(block(call))[2]) == ["A[0:64]"]


def test_a_view_of_another_shape_touches_the_whole() -> None:
    view = tir.decl_buffer((8, 8), name="view", data=A.data)
    body = tir.DeclBuffer(view, tir.BufferStore(view, tir.const(0.0), (tir.const(0), tir.const(0))))
    found = touched_regions(tir.stmt_seq(body, tir.BufferStore(A, tir.const(0.0), (tir.const(3),))), [A])[A]
    assert found.writes is not None
    assert texts([found.writes]) == ["A[0:64]"]


def test_what_a_statement_touches_itself_is_apart_from_what_its_blocks_state() -> None:
    wide = tir.Block((VI,), (tir.BufferRegion.full_region(A),), (), "wide", tir.Evaluate(A[VI]))
    found = touched_regions(loop(I, 4, tir.BlockRealize((I + 2,), TRUE, wide)), [A, B])
    reads = found[A].reads
    assert reads is not None and texts([reads]) == ["A[2:6]"]
    assert found[A].writes is None and found[B].reads is None


def test_axes_of_inner_blocks_are_seen_through_those_of_outer_ones() -> None:
    inner_axis, x = axis("vx", 64), tir.Var("x")
    inner = tir.Block((inner_axis,), (), (), "inner", tir.BufferStore(B, A[inner_axis], (inner_axis.var,)))
    outer = tir.Block((VI,), (), (), "outer", loop(x, 4, tir.BlockRealize((VI.var * 4 + x,), TRUE, inner)))
    found = touched_regions(loop(I, 3, tir.BlockRealize((I + 1,), TRUE, outer)), [B])
    writes = found[B].writes
    assert writes is not None
    assert texts([writes]) == ["B[4:16]"]


@pytest.mark.parametrize(("stored", "count", "contained"), [("A", 1, True), ("place", 1, False), ("A", 4, False)])
def test_a_place_that_memory_tells_is_another_one_when_memory_changed(stored: str, count: int, contained: bool) -> None:
    """A[place[0]] is stored, something else too, A[place[0]] is read: that finds what was stored unless place[0] changed."""
    place = tir.decl_buffer((4,), "int32", "place")
    other = tir.BufferStore(place if stored == "place" else B, tir.const(1, "int32" if stored == "place" else "float32"), (tir.const(0),))
    index = place[I] if count > 1 else place[0]
    first = tir.BufferStore(A, tir.const(0.0), (index,))
    body = tir.stmt_seq(loop(I, count, first) if count > 1 else first, other, tir.BufferStore(B, A[place[0]], (tir.const(1),)))
    assert is_self_contained(body, A) is contained


def test_pointers_that_say_what_they_are_for() -> None:
    use = tir.Evaluate(tir.call_extern("int32", "use", A.access_ptr("r"), B.access_ptr("w")))
    block = tir.Block((), (), (), "use", tir.stmt_seq(use, tir.BufferStore(B, A[3], (tir.IntImm("int32", 0),))))
    pointers = {A.data: A, B.data: B}
    reads, writes, opaque = get_block_access_region(block, pointers)
    assert (texts(reads), texts(writes), texts(opaque)) == (["A[0:64]"], ["B[0:64]"], [])
    both = replace(block, body=tir.Evaluate(tir.call_extern("int32", "use", A.access_ptr("rw"))))
    assert [texts(regions) for regions in get_block_access_region(both, pointers)] == [[], [], ["A[0:64]"]]
