"""Programs for GPUs in blocks: tiles in shared memory, reductions that threads share, virtual threads, buffers that are filled ahead."""

from __future__ import annotations

from tensorexpr import te, tir
from tensorexpr.te.tensor import Tensor
from tensorexpr.tir import PrimFunc

Blocks = tuple[PrimFunc, list[Tensor]]


def product(n: int = 16, double: bool = False) -> Blocks:
    """A @ B, its operands fetched together, in two halves if `double`; its sums in registers."""
    a, b, k = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B"), te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    sch = tir.Schedule(te.create_prim_func([a, b, c]))
    block = sch.get_block("C")
    i, j, reduced = sch.get_loops(block)
    i, ty, ii = sch.split(i, [None, 4, 2])
    j, tx, ji = sch.split(j, [None, 8, 2])
    outer, inner = sch.split(reduced, [None, 4])
    sch.reorder(i, j, ty, tx, outer, inner, ii, ji)
    for loop, tag in ((i, "blockIdx.y"), (j, "blockIdx.x"), (ty, "threadIdx.y"), (tx, "threadIdx.x")):
        sch.bind(loop, tag)
    sch.reverse_compute_at(sch.cache_write(block, 0, "local"), tx)
    for number in range(2):
        copy = sch.cache_read(block, number, "shared")
        sch.compute_at(copy, outer)
        _, y, x = sch.split(sch.fuse(*sch.get_loops(copy)[-2:]), [None, 4, 8])
        sch.bind(y, "threadIdx.y")
        sch.bind(x, "threadIdx.x")
        if double:
            sch.annotate(copy, "double_buffer_scope", 0)
    sch.decompose_reduction(block, outer)
    return _made(sch, a, b, c)


def row_sums(rows: int = 6, length: int = 40, threads: int = 8, factored: bool = False) -> Blocks:
    """Sums of rows by `threads` threads each, in parts that rfactor leaves in shared memory or that are left to the threads."""
    a, k = te.placeholder((rows, length), name="A"), te.reduce_axis((0, length), name="k")
    b = te.compute((rows,), lambda i: te.sum(a[i, k], axis=k), name="B")
    sch = tir.Schedule(te.create_prim_func([a, b]))
    row, reduced = sch.get_loops("B")
    outer, inner = sch.split(reduced, [None, threads])
    if not factored:
        sch.reorder(inner, outer)
        sch.bind(row, "blockIdx.x")
        sch.bind(inner, "threadIdx.x")
        return _made(sch, a, b)
    parts = sch.rfactor(inner, 0)
    row, inner = sch.get_loops("B")
    sch.bind(row, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")
    sch.compute_at(parts, row)
    sch.set_scope(parts, 0, "shared")
    sch.bind(sch.get_loops(parts)[1], "threadIdx.x")
    return _made(sch, a, b)


def transposed(n: int = 32) -> Blocks:
    """A^T * 2 through tiles in shared memory, by 2 x 2 virtual threads of 4 x 4 threads."""
    a = te.placeholder((n, n), name="A")
    b = te.compute((n, n), lambda i, j: a[j, i] * 2.0, name="B")
    sch = tir.Schedule(te.create_prim_func([a, b]))
    block = sch.get_block("B")
    pieces = [sch.split(loop, [None, 2, 4]) for loop in sch.get_loops(block)]
    order = [piece[level] for level in range(3) for piece in pieces]
    sch.reorder(*order)
    tags = ("blockIdx.y", "blockIdx.x", "vthread.y", "vthread.x", "threadIdx.y", "threadIdx.x")
    for loop, tag in zip(order, tags, strict=True):
        sch.bind(loop, tag)
    copy = sch.cache_read(block, 0, "shared")
    sch.compute_at(copy, order[1])
    _, y, x = sch.split(sch.fuse(*sch.get_loops(copy)[2:]), [None, 4, 4])
    sch.bind(y, "threadIdx.y")
    sch.bind(x, "threadIdx.x")
    return _made(sch, a, b)


def normalised(rows: int = 4, length: int = 32, threads: int = 16) -> Blocks:
    """Rows by their sums: each is reduced by the threads that divide by it."""
    a, k = te.placeholder((rows, length), name="A"), te.reduce_axis((0, length), name="k")
    total = te.compute((rows,), lambda i: te.sum(a[i, k], axis=k), name="total")
    c = te.compute((rows, length), lambda i, j: a[i, j] / total[i], name="C")
    sch = tir.Schedule(te.create_prim_func([a, c]))
    row, column = sch.get_loops("C")
    sch.bind(row, "blockIdx.x")
    sch.bind(sch.split(column, [None, threads])[1], "threadIdx.x")
    sums = sch.get_block("total")
    sch.compute_at(sums, row)
    sch.set_scope(sums, 0, "shared")
    sch.bind(sch.split(sch.get_loops(sums)[-1], [None, threads])[1], "threadIdx.x")
    return _made(sch, a, c)


def _made(sch: tir.Schedule, *tensors: Tensor) -> Blocks:
    func = sch.mod["main"]
    assert isinstance(func, PrimFunc)
    return func, list(tensors)
