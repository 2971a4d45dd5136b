"""Functions of blocks mean the same before lowering, after every phase and as machine code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorexpr
from tensorexpr import te, tir
from tensorexpr.te.dag import post_dfs_order
from tensorexpr.te.operation import ComputeOp, PlaceholderOp
from tensorexpr.testing.check_func import FuncMismatch, assert_func_correct
from tensorexpr.testing.strategies import compute_dags
from tensorexpr.tir.interpreter import interpret
from tensorexpr.tir.rewriting import post_order_rewrite
from tensorexpr.tir.verify import verify_well_formed
from tests import programs
from tests.block_programs import DECLARED, TRUE, axis, function, guarded_copy, loop, tiles
from tests.effort import share_of

SOME = settings(max_examples=share_of(40), deadline=None, derandomize=True)
Computed = tuple[tir.Buffer, tir.PrimExpr, list[tuple[tir.Buffer, tir.PrimExpr]]]
# Scans and the like are no blocks.
OF_COMPUTES = compute_dags().filter(lambda dag: {type(op) for op in post_dfs_order(dag.outputs)} <= {ComputeOp, PlaceholderOp})
EXTENTS = st.sampled_from([1, 2, 3, 5, 8, 13])


@SOME
@given(st.data())
def test_create_prim_func_computes_what_the_tensors_say(data: st.DataObject) -> None:
    dag = data.draw(OF_COMPUTES)
    assert_func_correct(te.create_prim_func(dag.tensors), dag.tensors)


@settings(max_examples=share_of(12), deadline=None, derandomize=True)
@given(st.data())
def test_indices_of_64_bits_change_nothing(data: st.DataObject) -> None:
    dag = data.draw(OF_COMPUTES)
    func = te.create_prim_func(dag.tensors, index_dtype_override="int64")
    loops = [node for node in tir.rewriting.walk(func.body) if isinstance(node, tir.For)]
    assert all(loop.loop_var.dtype == "int64" for loop in loops)
    assert_func_correct(func, dag.tensors)


@settings(max_examples=share_of(15), deadline=None, derandomize=True)
@given(n=EXTENTS, m=EXTENTS)
def test_symbolic_sizes(n: int, m: int) -> None:
    rows, columns = te.var("n"), te.var("m")
    a = te.placeholder((rows, columns), name="A")
    k = te.reduce_axis((0, columns), name="k")
    total = te.compute((rows,), lambda i: te.sum(a[i, k], axis=k), name="total")
    out = te.compute((rows, columns), lambda i, j: a[i, j] - total[i], name="out")
    assert_func_correct(te.create_prim_func([a, out]), [a, out], sizes=[{rows: n, columns: m}])


@settings(max_examples=share_of(20), deadline=None, derandomize=True)
@given(n=EXTENTS, halo=st.integers(0, 2), parallel=st.booleans(), tile=st.sampled_from([1, 2, 4]))
def test_a_producer_inside_its_consumers_loop_gets_storage_for_what_one_iteration_reads(
    n: int, halo: int, parallel: bool, tile: int
) -> None:
    """B is computed within the outer loop of C, one tile and its halo; declared at the root, it must move inside."""
    size = n * tile
    a = te.placeholder((size + halo,), name="A")
    b = te.compute((size + halo,), lambda i: a[i] * 2.0, name="B")
    c = te.compute((size,), lambda i: b[i] + b[i + halo], name="C")
    func = producer_in_loop(n, tile, halo, parallel)
    assert_func_correct(func, [a, c])
    if n > 1 and halo < tile:
        lowered = tensorexpr.lower(func, upto=1)["main"]
        outer = lowered.body
        assert isinstance(outer, tir.For), "the allocation belongs into the loop"
        assert f"T.allocate([{tile + halo}]" in str(outer)


def producer_in_loop(n: int, tile: int, halo: int, parallel: bool) -> tir.PrimFunc:
    """for io: B[io * tile + ...] for tile + halo elements, then C[io * tile + ...]."""
    size = n * tile
    buffers = [tir.decl_buffer((extent,), name=name) for name, extent in (("A", size + halo), ("B", size + halo), ("C", size))]
    a, b, c = buffers
    io, x, y = tir.Var("io"), tir.Var("x"), tir.Var("y")
    produce = block("B", size + halo, io * tile + x, lambda i: (b, a[i] * 2.0, [(a, i)]))
    consume = block("C", size, io * tile + y, lambda i: (c, b[i] + b[i + halo], [(b, i), (b, i + halo)] if halo else [(b, i)]))
    body = tir.stmt_seq(loop(x, tile + halo, produce), loop(y, tile, consume))
    nest = loop(io, n, body, tir.ForKind.PARALLEL if parallel else tir.ForKind.SERIAL)
    return function([a, c], nest, (b,))


def block(name: str, extent: int, value: tir.PrimExpr, body: Callable[[tir.Var], Computed]) -> tir.BlockRealize:
    """A block with one spatial axis; `body(axis)` gives the buffer, the value and the elements that are read."""
    vi = axis("vi", extent)
    target, stored, reads = body(vi.var)
    regions = tuple(tir.BufferRegion.from_point(buffer, [index]) for buffer, index in reads)
    write = tir.BufferRegion.from_point(target, [vi.var])
    return tir.BlockRealize((value,), TRUE, tir.Block((vi,), regions, (write,), name, tir.BufferStore(target, stored, (vi.var,))))


@settings(max_examples=share_of(20), deadline=None, derandomize=True)
@given(order=st.permutations([0, 1, 2]), split=st.sampled_from([None, 3, 4, 5]), sizes=st.tuples(EXTENTS, EXTENTS, EXTENTS))
def test_reductions_in_any_order_of_loops(order: list[int], split: int | None, sizes: tuple[int, int, int]) -> None:
    """C = A @ B with loops in any order, and the reduction split so that its end is guarded."""
    tensors = programs.matmul(*sizes)
    assert_func_correct(reordered_matmul(order, split, sizes), tensors)


def reordered_matmul(order: list[int], split: int | None, sizes: tuple[int, int, int]) -> tir.PrimFunc:
    """The block of a matrix product under loops in another order."""
    func = te.create_prim_func(programs.matmul(*sizes))
    assert isinstance(func.body, tir.BlockRealize)
    loops: list[tir.For] = []
    stmt = func.body.block.body
    while isinstance(stmt, tir.For):
        loops.append(stmt)
        stmt = stmt.body
    assert isinstance(stmt, tir.BlockRealize)
    values, predicate = list(stmt.iter_values), stmt.predicate
    spans = {number: [(one.loop_var, sizes[number])] for number, one in enumerate(loops)}
    if split is not None:
        outer, inner = tir.Var("ko"), tir.Var("ki")
        values[2], predicate = outer * split + inner, outer * split + inner < sizes[2]
        spans[2] = [(outer, -(-sizes[2] // split)), (inner, split)]
    nest: tir.Stmt = tir.BlockRealize(tuple(values), predicate, stmt.block)
    for number in reversed(order):
        for var, extent in reversed(spans[number]):
            nest = loop(var, extent, nest)
    return replace(func, body=replace(func.body, block=replace(func.body.block, body=nest)))


@pytest.mark.parametrize("name", [name for name in DECLARED if name != "symbolic"])
def test_shared_programs(name: str) -> None:
    tensors = DECLARED[name]()
    assert_func_correct(te.create_prim_func(tensors), tensors)


@pytest.mark.parametrize("phase", [0, 1, 2, 3, None])
def test_views_and_buffers_of_inner_blocks(phase: int | None) -> None:
    a = np.arange(256, dtype=np.float32).reshape(16, 16)
    b = np.zeros_like(a)
    run(tiles(), phase, a, b)
    np.testing.assert_array_equal(b, a + 1)


@pytest.mark.parametrize("phase", [0, 1, 2, 3, None])
def test_a_predicate_keeps_a_block_from_running(phase: int | None) -> None:
    a = np.arange(256, dtype=np.float32).reshape(16, 16)
    b = np.full_like(a, -1)
    run(guarded_copy(), phase, a, b)
    np.testing.assert_array_equal(b[:15], a[:15])
    assert (b[15] == -1).all()


@pytest.mark.parametrize("phase", [0, 1, 2, 3, None])
def test_what_one_iteration_leaves_for_the_next_stays_outside_of_the_loop(phase: int | None) -> None:
    """B[i] = A[i] and C[i] = B[i] + B[max(i - 1, 0)] in one loop: B can't be allocated in it."""
    a, b, c = (tir.decl_buffer((8,), name=name) for name in "ABC")
    i = tir.Var("i")
    produce = block("B", 8, i, lambda v: (b, a[v] * 2.0, [(a, v)]))
    consume = block("C", 8, i, lambda v: (c, b[v] + b[tir.max(v - 1, 0)], [(b, v), (b, tir.max(v - 1, 0))]))
    func = function([a, c], loop(i, 8, tir.stmt_seq(produce, consume)), (b,))
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    run(func, phase, x, y)
    np.testing.assert_array_equal(y, 2 * x + 2 * x[[0, 0, 1, 2, 3, 4, 5, 6]])


@pytest.mark.parametrize("phase", [0, 1, 2, 3, None])
def test_a_reductions_buffer_outlives_its_iterations(phase: int | None) -> None:
    """B[k] is what the sum has come to after k: it is read in the reduction's loop, where it must not be allocated."""
    a, b, total = tir.decl_buffer((8,), name="A"), tir.decl_buffer((8,), name="B"), tir.decl_buffer((1,), name="total")
    k, zero = tir.Var("k"), tir.const(0)
    vk = axis("vk", 8, tir.IterVar.COMM_REDUCE)
    here = tir.BufferRegion.from_point(total, [zero])
    start, update = (tir.BufferStore(total, value, (zero,)) for value in (tir.const(0.0), total[0] + a[vk]))
    add = tir.Block((vk,), (tir.BufferRegion.from_point(a, [vk.var]),), (here,), "total", update, start)
    prefix = block("prefix", 8, k, lambda v: (b, total[0], [(total, zero)]))
    func = function([a, b], loop(k, 8, tir.stmt_seq(tir.BlockRealize((k,), TRUE, add), prefix)), (total,))
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    run(func, phase, x, y)
    np.testing.assert_array_equal(y, np.cumsum(x))


@pytest.mark.parametrize("phase", [0, 1, 2, 3, None])
def test_what_is_read_before_it_is_written_comes_from_the_iteration_before(phase: int | None) -> None:
    """C[i] is the element of A before: kept in a buffer of one element, which must not be allocated in the loop."""
    a, c, last = tir.decl_buffer((8,), name="A"), tir.decl_buffer((8,), name="C"), tir.decl_buffer((1,), name="last")
    i, v, zero = tir.Var("i"), axis("v", 8), tir.const(0)
    here = (tir.BufferRegion.from_point(last, [zero]),)
    read = block("read", 8, i, lambda v: (c, tir.if_then_else(v > 0, last[0], tir.const(0.0)), [(last, zero)]))
    keep = tir.Block((v,), (tir.BufferRegion.from_point(a, [v.var]),), here, "keep", tir.BufferStore(last, a[v], (zero,)))
    func = function([a, c], loop(i, 8, tir.stmt_seq(read, tir.BlockRealize((i,), TRUE, keep))), (last,))
    x, y = np.arange(1, 9, dtype=np.float32), np.zeros(8, np.float32)
    run(func, phase, x, y)
    np.testing.assert_array_equal(y, [0, *x[:-1]])


@pytest.mark.parametrize("phase", [0, 1, 2, 3, None])
def test_a_loop_over_rows_and_the_reduction_at_once(phase: int | None) -> None:
    """One loop over both axes: the init can't leave it, as each row begins in the middle of it."""
    f = tir.Var("f")
    x, y = np.arange(12, dtype=np.float32).reshape(3, 4), np.full(3, 113, np.float32)
    run(row_sums(f // 4, f % 4, [(f, 12)]), phase, x, y)
    np.testing.assert_array_equal(y, x.sum(1))


@pytest.mark.parametrize("phase", [0, 1, 2, 3, None])
def test_a_reduction_that_begins_at_its_end(phase: int | None) -> None:
    """An init runs where the axis stands at its start, which here is the last iteration: only its element counts."""
    i, k = tir.Var("i"), tir.Var("k")
    x, y = np.arange(1, 13, dtype=np.float32).reshape(3, 4), np.full(3, 113, np.float32)
    run(row_sums(i, 3 - k, [(i, 3), (k, 4)]), phase, x, y)
    np.testing.assert_array_equal(y, x[:, 0])


@pytest.mark.parametrize("phase", [0, 1, 2, 3, None])
def test_rows_that_come_into_a_reduction_late_have_no_init(phase: int | None) -> None:
    """Row i takes part from column i on; the init runs with the first column, so for row 0 only."""
    i, k = tir.Var("i"), tir.Var("k")
    x, y = np.arange(1, 13, dtype=np.float32).reshape(3, 4), np.full(3, 113, np.float32)
    func = row_sums(i, k, [(k, 3), (i, 0)])
    late = post_order_rewrite(func.body, lambda n: replace(n, extent=k + 1) if isinstance(n, tir.For) and n.loop_var is i else None)
    run(func.with_body(late), phase, x, y)
    np.testing.assert_array_equal(y, [x[0, :3].sum(), 113 + x[1, 1:3].sum(), 113 + x[2, 2]])


def row_sums(row: tir.PrimExpr, column: tir.PrimExpr, loops: list[tuple[tir.Var, int]]) -> tir.PrimFunc:
    """B[i] = sum of A[i, k], under any loops."""
    a, b = tir.decl_buffer((3, 4), name="A"), tir.decl_buffer((3,), name="B")
    vi, vk = axis("vi", 3), axis("vk", 4, tir.IterVar.COMM_REDUCE)
    reads, writes = (tir.BufferRegion.from_point(a, [vi.var, vk.var]),), (tir.BufferRegion.from_point(b, [vi.var]),)
    start, update = (tir.BufferStore(b, value, (vi.var,)) for value in (tir.const(0.0), b[vi] + a[vi, vk]))
    nest: tir.Stmt = tir.BlockRealize((row, column), TRUE, tir.Block((vi, vk), reads, writes, "B", update, start))
    for var, extent in reversed(loops):
        nest = loop(var, extent, nest)
    return function([a, b], nest)


def run(func: tir.PrimFunc, phase: int | None, *arrays: np.ndarray) -> None:
    """Interpret a function after a phase, or call its machine code."""
    verify_well_formed(func)
    if phase is None:
        tensorexpr.build(func)(*arrays)
    else:
        interpret(tensorexpr.lower(func, upto=phase)["main"], arrays)


def test_the_check_sees_a_wrong_init() -> None:
    func = te.create_prim_func(programs.matmul(3, 3, 3))

    def spoil(node: tir.rewriting.Node) -> tir.rewriting.Node | None:
        if isinstance(node, tir.Block) and isinstance(node.init, tir.BufferStore):
            return replace(node, init=replace(node.init, value=tir.const(1.0)))
        return None

    wrong = func.with_body(post_order_rewrite(func.body, spoil))
    with pytest.raises(FuncMismatch, match="phase 0: C"):
        assert_func_correct(wrong, programs.matmul(3, 3, 3))
