"""The passes on blocks, one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tensorexpr
from tensorexpr import te, tir
from tensorexpr.errors import LoweringError
from tensorexpr.lower.context import PassContext
from tensorexpr.lower.pipeline import PHASES
from tensorexpr.testing import assert_func_correct
from tensorexpr.tir.rewriting import walk
from tests import programs
from tests.block_programs import TRUE, axis, box, function, loop, tiles

NAMES = (
    "LowerInitBlock PlanAndUpdateBufferAllocationLocation ConvertBlocksToOpaque CompactBufferAllocation LowerMatchBuffer LowerOpaqueBlock"
)
ORDER = [one for one in PHASES[1] if one.name.removeprefix("tir.") in NAMES.split()]
A, B, C = (tir.decl_buffer((16,), name=name) for name in "ABC")


def after(func: tir.PrimFunc, count: int) -> tir.PrimFunc:
    """The function after the first passes."""
    mod = tensorexpr.IRModule({"main": func})
    for one in ORDER[:count]:
        mod = one(mod)
    return mod["main"]


def body_text(func: tir.PrimFunc) -> list[str]:
    """The lines of a function below its attributes."""
    lines = func.script().splitlines()
    return [line[4:] for line in lines[next(n for n, line in enumerate(lines) if "T.func_attr" in line) + 1 :]]


def block(name: str, target: tir.Buffer, value: tir.PrimExpr, vi: tir.IterVar, *reads: tir.BufferRegion) -> tir.Block:
    write = tir.BufferRegion.from_point(target, [vi.var])
    return tir.Block((vi,), reads, (write,), name, tir.BufferStore(target, value, (vi.var,)))


def test_functions_of_schedules_are_left_alone() -> None:
    a, b, c = programs.matmul()
    func = tensorexpr.lower(te.create_schedule(c.op), [a, b, c], upto=0)["main"]
    assert after(func, len(ORDER)) is func


def test_an_init_runs_before_its_reduction() -> None:
    func = after(te.create_prim_func(programs.matmul(4, 4, 4)), 1)
    assert body_text(func)[:4] == [
        '# with T.block("root"):',
        "for i, j in T.grid(4, 4):",
        "    C[i, j] = T.float32(0.0)",
        "    for k in range(4):",
    ]


def reordered() -> tir.PrimFunc:
    """The block of a matrix product under the loops k, i, j."""
    func = te.create_prim_func(programs.matmul(4, 4, 4))
    i, j, k = (node for node in reversed([n for n in walk(func.body) if isinstance(n, tir.For)]))
    assert isinstance(func.body, tir.BlockRealize)
    nest = replace(k, body=replace(i, body=replace(j, body=k.body)))
    return func.with_body(replace(func.body, block=replace(func.body.block, body=nest)))


def test_an_init_covers_the_spatial_loops_inside_the_reduction() -> None:
    assert body_text(after(reordered(), 1))[1:4] == [
        "for i, j in T.grid(4, 4):",
        "    C[i, j] = T.float32(0.0)",
        "for k, i, j in T.grid(4, 4, 4):",
    ]


def test_an_init_stays_under_a_condition_where_something_else_uses_its_buffer() -> None:
    """A second block in the reduction's loop reads the partial sum: the init can't move over all of it."""
    k = tir.Var("k")
    vk, v = axis("vk", 8, tir.IterVar.COMM_REDUCE), axis("v", 8)
    zero = (tir.const(0),)
    total = tir.decl_buffer((1,), name="total")
    add = tir.Block(
        (vk,), (box(A, (vk.var, 1)),), (box(total, (0, 1)),), "total",
        tir.BufferStore(total, total[0] + A[vk], zero), tir.BufferStore(total, tir.const(0.0), zero),
    )  # fmt: skip
    prefix = block("prefix", B, total[0], v, box(total, (0, 1)))
    func = function([A, total, B], loop(k, 8, tir.stmt_seq(tir.BlockRealize((k,), TRUE, add), tir.BlockRealize((k,), TRUE, prefix))))
    text = "\n".join(body_text(after(func, 1)))
    assert "if vk == 0:" in text and text.index("for k") < text.index("T.float32(0.0)")


def test_an_init_is_guarded_by_what_is_left_of_the_predicate() -> None:
    func = reordered()
    guarded = [n for n in walk(func.body) if isinstance(n, tir.BlockRealize) and n.iter_values]
    k, i = next(n.loop_var for n in walk(func.body) if isinstance(n, tir.For) and n.loop_var.name == "k"), guarded[0].iter_values[0]

    def limit(node: tir.rewriting.Node) -> tir.rewriting.Node | None:
        return replace(guarded[0], predicate=tir.all(i < 3, k < 2)) if node is guarded[0] else None

    lowered = after(func.with_body(tir.rewriting.post_order_rewrite(func.body, limit)), 1)
    assert "if T.likely(i < 3):" in "\n".join(body_text(lowered)).replace("i_1", "i")


def two_in_a_loop() -> tir.PrimFunc:
    """B and then C of the same element in one loop; B is declared at the root."""
    i = tir.Var("i")
    v, w = axis("v", 16), axis("w", 16)
    first = tir.BlockRealize((i,), TRUE, block("B", B, A[v] * 2.0, v, box(A, (v.var, 1))))
    second = tir.BlockRealize((i,), TRUE, block("C", C, B[w] + 1.0, w, box(B, (w.var, 1))))
    return function([A, C], loop(i, 16, tir.stmt_seq(first, second)), (B,))


def test_a_buffer_moves_to_where_its_uses_meet() -> None:
    lines = body_text(after(two_in_a_loop(), 2))
    assert [line.strip() for line in lines[1:5]] == ["for i in range(16):", 'with T.block(""):', "T.reads()", "T.writes()"]
    assert lines[5].strip() == "B = T.alloc_buffer((16,))"


def test_a_buffer_without_uses_disappears() -> None:
    func = two_in_a_loop()
    spare = tir.decl_buffer((4,), name="spare")
    assert isinstance(func.body, tir.BlockRealize)
    wide = func.with_body(replace(func.body, block=replace(func.body.block, alloc_buffers=(spare, B))))
    assert "spare" not in after(wide, 2).script()


def test_a_reductions_buffer_stays_outside_of_its_loops() -> None:
    func = after(te.create_prim_func(programs.matmul_add(4, 4, 4)), 2)
    assert isinstance(func.body, tir.BlockRealize)
    assert [b.name for b in func.body.block.alloc_buffers] == ["matmul"]


def test_opaque_blocks_have_no_axes() -> None:
    func = after(te.create_prim_func(programs.matmul(4, 4, 4)), 3)
    assert all(not node.iter_vars for node in walk(func.body) if isinstance(node, tir.Block))
    assert "C[i, j] = C[i, j] + A[i, k] * B[k, j]" in func.script()


def test_storage_is_what_one_iteration_needs() -> None:
    realize = next(n for n in walk(after(two_in_a_loop(), 4).body) if isinstance(n, tir.BufferRealize))
    assert [(str(r.min), str(r.extent)) for r in realize.bounds] == [("i", "1")]


def test_views_become_statements() -> None:
    func = after(tiles(), 5)
    assert any(isinstance(n, tir.BufferBind) for n in walk(func.body))
    assert all(not n.match_buffers for n in walk(func.body) if isinstance(n, tir.Block))


def test_no_block_is_left() -> None:
    for func in (tiles(), two_in_a_loop()):
        assert not any(isinstance(n, (tir.Block, tir.BlockRealize)) for n in walk(after(func, 6).body))


def test_without_compaction_buffers_are_whole() -> None:
    with PassContext(disabled_pass=["tir.CompactBufferAllocation"]):
        func = after(two_in_a_loop(), 6)
    assert "T.realize(B[0:16])" in func.script()


def test_opaque_lowering_needs_the_passes_before_it() -> None:
    mod = tensorexpr.IRModule({"main": two_in_a_loop()})
    with pytest.raises(LoweringError, match="block 'B' still has axes; LowerOpaqueBlock needs the passes on blocks before it, in order"):
        tir.transform.LowerOpaqueBlock()(mod)


def test_a_phase_without_blocks_is_promised_and_checked() -> None:
    with PassContext(disabled_pass=["tir.LowerOpaqueBlock"]), pytest.raises(LoweringError, match="a BlockRealize is left"):
        tensorexpr.lower(te.create_prim_func(programs.matmul(4, 4, 4)), upto=1)


def test_out_of_bounds_accesses_are_refused() -> None:
    checker = tir.analysis.OOBChecker()
    good = tensorexpr.IRModule({"main": te.create_prim_func(programs.conv_relu())})
    assert checker(good) is good
    i, v = tir.Var("i"), axis("v", 16)
    wrong = function([A, B], loop(i, 16, tir.BlockRealize((i,), TRUE, block("B", B, A[v + 1], v, box(A, (v.var + 1, 1))))))
    with pytest.raises(LoweringError, match=r"1 access\(es\) out of bounds: dimension 0 of A\[v \+ 1\] reaches 1\.\.16, out of 0\.\.15"):
        checker(tensorexpr.IRModule({"main": wrong}))


def test_a_condition_on_the_index_is_believed() -> None:
    i, v = tir.Var("i"), axis("v", 16)
    padded = tir.if_then_else(v < 15, A[v + 1], 0.0)
    func = function([A, B], loop(i, 16, tir.BlockRealize((i,), TRUE, block("B", B, padded, v, box(A, (v.var + 1, 1))))))
    mod = tensorexpr.IRModule({"main": func})
    assert tir.analysis.OOBChecker()(mod) is mod


def test_storage_covers_what_is_written_and_not_read() -> None:
    io, x = tir.Var("io"), tir.Var("x")
    v, w = axis("v", 16), axis("w", 4)
    fill = tir.BlockRealize((io * 4 + x,), TRUE, block("B", B, A[v] * 2.0, v, box(A, (v.var, 1))))
    small = tir.decl_buffer((4,), name="small")
    use = tir.BlockRealize((io,), TRUE, block("small", small, B[w * 4 + 1] + B[w * 4 + 2], w, box(B, (w.var * 4 + 1, 2))))
    func = function([A, small], loop(io, 4, tir.stmt_seq(loop(x, 4, fill), use)), (B,))
    realize = next(n for n in walk(after(func, 4).body) if isinstance(n, tir.BufferRealize))
    assert [(str(r.min), str(r.extent)) for r in realize.bounds] == [("io * 4", "4")]


def test_storage_is_whole_where_a_place_is_known_only_inside() -> None:
    place, index = tir.Var("place"), tir.decl_buffer((1,), "int32", name="index")
    stores = tir.stmt_seq(tir.BufferStore(B, A[0], (place,)), tir.BufferStore(C, B[place], (tir.const(0),)))
    func = function([A, index, C], tir.LetStmt(place, index[0], stores), (B,))
    realize = next(n for n in walk(after(func, 4).body) if isinstance(n, tir.BufferRealize))
    assert [(str(r.min), str(r.extent)) for r in realize.bounds] == [("0", "16")]


def test_storage_is_whole_where_a_place_is_read_from_memory() -> None:
    index = tir.decl_buffer((1,), "int32", name="index")
    changed = tir.BufferStore(index, tir.const(5), (tir.const(0),))
    stores = tir.stmt_seq(tir.BufferStore(B, A[0], (index[0],)), changed, tir.BufferStore(C, B[index[0]], (tir.const(0),)))
    func = function([A, index, C], stores, (B,))
    realize = next(n for n in walk(after(func, 4).body) if isinstance(n, tir.BufferRealize))
    assert [(str(r.min), str(r.extent)) for r in realize.bounds] == [("0", "16")]


@pytest.mark.parametrize("offset", [-1, 4])
def test_a_buffer_stays_outside_of_a_loop_that_reads_beside_what_it_writes(offset: int) -> None:
    io, x = tir.Var("io"), tir.Var("x")
    v, w = axis("v", 16), axis("w", 4)
    fill = tir.BlockRealize((io * 4 + x,), TRUE, block("B", B, A[v] * 2.0, v, box(A, (v.var, 1))))
    small = tir.decl_buffer((4,), name="small")
    beside = B[w * 4 + 1] + B[w * 4 + offset]
    use = tir.BlockRealize((io,), TRUE, block("small", small, beside, w, box(B, (w.var * 4 + min(offset, 1), 4))))
    func = after(function([A, small], loop(io, 4, tir.stmt_seq(loop(x, 4, fill), use)), (B,)), 2)
    assert isinstance(func.body, tir.BlockRealize)
    assert func.body.block.alloc_buffers == (B,)


def test_opaque_blocks_see_through_the_axes_of_outer_blocks() -> None:
    i, x = tir.Var("i"), tir.Var("x")
    outer_axis, v = axis("vo", 4), axis("v", 16)
    inner = tir.BlockRealize((outer_axis.var * 4 + x,), TRUE, block("inner", B, A[v], v, box(A, (v.var, 1))))
    outer = tir.Block((outer_axis,), (box(A, (outer_axis.var * 4, 4)),), (box(B, (outer_axis.var * 4, 4)),), "outer", loop(x, 4, inner))
    func = after(function([A, B], loop(i, 4, tir.BlockRealize((i,), TRUE, outer))), 3)
    assert "B[i * 4 + x] = A[i * 4 + x]" in func.script()


def test_an_init_runs_over_virtual_threads_too() -> None:
    a = te.placeholder((4, 3), name="A")
    k = te.reduce_axis((0, 3), name="k")
    b = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="B")
    sch = tir.Schedule(te.create_prim_func([a, b]))
    i, k_loop = sch.get_loops("B")
    sch.reorder(k_loop, i)
    sch.bind(i, "vthread.x")
    assert_func_correct(sch.mod["main"], [a, b])


def test_an_init_stays_where_a_condition_names_a_loop_without_an_axis() -> None:
    vi, vk = axis("vi", 4), axis("vk", 1, tir.IterVar.COMM_REDUCE)
    i, outer, inner = tir.Var("i"), tir.Var("k_0"), tir.Var("k_1")
    a, b = tir.decl_buffer((4, 1), name="A"), tir.decl_buffer((4,), name="B")
    reads, writes = (tir.BufferRegion.from_point(a, [vi.var, vk.var]),), (tir.BufferRegion.from_point(b, [vi.var]),)
    start, update = (tir.BufferStore(b, value, (vi.var,)) for value in (tir.const(0.0), b[vi] + a[vi, vk]))
    block = tir.Block((vi, vk), reads, writes, "B", update, start)
    nest = loop(i, 4, loop(outer, 7, loop(inner, 7, tir.BlockRealize((i, tir.const(0)), outer * 7 + inner < 1, block))))
    tensors = te.placeholder((4, 1), name="A")
    k = te.reduce_axis((0, 1), name="k")
    assert_func_correct(function([a, b], nest), [tensors, te.compute((4,), lambda i: te.sum(tensors[i, k], axis=k), name="B")])
