"""Programs for GPUs as courses write them with te: tiles in shared memory, virtual threads, reductions that threads share."""

from __future__ import annotations

from tensorexpr import te
from tensorexpr.schedule import Schedule, create_schedule
from tensorexpr.te.tensor import Tensor

Program = tuple[Schedule, list[Tensor]]


def product(n: int = 16, tile: int = 8, threads: int = 2, step: int = 4, vector: bool = True, double: bool = False) -> Program:
    """C = A^T B: blocks of `tile` x `tile`, 2 x 2 virtual threads, `threads` x `threads` threads that fetch together what they share."""
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[k, i] * b[k, j], axis=k), name="C")
    s = create_schedule(c.op)
    copies = [s.cache_read(tensor, "shared", [c]) for tensor in (a, b)]
    registers = [s.cache_read(copy, "local", [c]) for copy in copies]
    sums = s.cache_write(c, "local")
    thread_x, thread_y = te.thread_axis((0, threads), "threadIdx.x"), te.thread_axis((0, threads), "threadIdx.y")
    y, x = s[c].op.axis
    block_y, y = s[c].split(y, factor=tile)
    block_x, x = s[c].split(x, factor=tile)
    virtual_y, y = s[c].split(y, nparts=2)
    virtual_x, x = s[c].split(x, nparts=2)
    row, y = s[c].split(y, nparts=threads)
    column, x = s[c].split(x, nparts=threads)
    s[c].reorder(block_y, block_x, virtual_y, virtual_x, row, column, y, x)
    for axis, tag in ((block_y, "blockIdx.y"), (block_x, "blockIdx.x"), (virtual_y, "vthread"), (virtual_x, "vthread")):
        s[c].bind(axis, te.thread_axis(tag))
    s[c].bind(row, thread_y)
    s[c].bind(column, thread_x)
    s[sums].compute_at(s[c], column)
    outer, inner = s[sums].split(k, factor=step)
    s[sums].reorder(outer, inner, *s[sums].op.axis)
    for copy, register in zip(copies, registers, strict=True):
        s[copy].compute_at(s[sums], outer)
        s[register].compute_at(s[sums], inner)
        first, second = s[copy].op.axis
        row, first = s[copy].split(first, nparts=threads)
        column, second = s[copy].split(second, nparts=threads)
        s[copy].reorder(row, column, first, second)
        s[copy].bind(row, thread_y)
        s[copy].bind(column, thread_x)
        if vector:
            s[copy].vectorize(second)
        if double:
            s[copy].double_buffer()
    return s, [a, b, c]


def convolution(size: int = 3, channels: int = 2, filters: int = 4) -> Program:
    """A padded 3 x 3 convolution, HWCN: a block for each pixel, tiles of filters and images, the window's channels in shared memory."""
    batch = 2
    a = te.placeholder((size, size, channels, batch), name="A")
    w = te.placeholder((3, 3, channels, filters), name="W")
    padded = te.compute(
        (size + 2, size + 2, channels, batch),
        lambda y, x, c, n: te.if_then_else(te.all(y >= 1, y <= size, x >= 1, x <= size), a[y - 1, x - 1, c, n], 0.0),
        name="padded",
    )
    c, ry, rx = te.reduce_axis((0, channels), name="c"), te.reduce_axis((0, 3), name="ry"), te.reduce_axis((0, 3), name="rx")
    out = te.compute(
        (size, size, filters, batch),
        lambda y, x, f, n: te.sum(padded[y + ry, x + rx, c, n] * w[ry, rx, c, f], axis=[ry, rx, c]),
        name="out",
    )
    s = create_schedule(out.op)
    s[padded].compute_inline()
    image, weights = s.cache_read(padded, "shared", [out]), s.cache_read(w, "shared", [out])
    sums = s.cache_write(out, "local")
    thread_x, thread_y = te.thread_axis((0, 2), "threadIdx.x"), te.thread_axis((0, 4), "threadIdx.y")
    y, x, f, n = s[out].op.axis
    pixel = s[out].fuse(y, x)
    s[out].bind(pixel, te.thread_axis("blockIdx.z"))
    row, f = s[out].split(f, nparts=4)
    column, n = s[out].split(n, nparts=2)
    s[out].reorder(pixel, row, column, f, n)
    s[out].bind(row, thread_y)
    s[out].bind(column, thread_x)
    s[sums].compute_at(s[out], column)
    channel, _ = s[sums].split(s[sums].op.reduce_axis[2], factor=1)
    s[sums].reorder(*s[sums].op.reduce_axis[:2], channel)
    for copy in (image, weights):
        s[copy].compute_at(s[sums], channel)
        whole = s[copy].fuse(*s[copy].op.axis)
        whole, column = s[copy].split(whole, factor=2)
        whole, row = s[copy].split(whole, factor=4)
        s[copy].bind(row, thread_y)
        s[copy].bind(column, thread_x)
    return s, [a, w, out]


def row_sums(rows: int = 12, length: int = 20, threads: int = 8, factored: bool = True, one_stores: bool = True) -> Program:
    """B[i] = sum of row i: `threads` threads share each row, in parts that rfactor names or that are left to the threads."""
    a = te.placeholder((rows, length), name="A")
    k = te.reduce_axis((0, length), name="k")
    b = te.compute((rows,), lambda i: te.sum(a[i, k], axis=k), name="B")
    s = create_schedule(b.op)
    outer, inner = s[b].split(k, factor=threads)
    block, row = s[b].split(b.op.axis[0], factor=4)
    thread = te.thread_axis("threadIdx.x")
    if factored:
        parts = s.rfactor(b, inner)
        s[b].bind(s[b].op.reduce_axis[0], thread)
        s[parts].compute_at(s[b], s[b].op.reduce_axis[0])
    else:
        s[b].reorder(block, row, inner, outer)
        s[b].bind(inner, thread)
    s[b].bind(block, te.thread_axis("blockIdx.x"))
    s[b].bind(row, te.thread_axis("threadIdx.y"))
    if one_stores:
        s[b].set_store_predicate(thread.var.equal(0))
    return s, [a, b]


def normalised(rows: int = 4, length: int = 12) -> Program:
    """C[i, j] = A[i, j] / (sum of row i): the sum is shared by the threads that divide by it."""
    a = te.placeholder((rows, length), name="A")
    k = te.reduce_axis((0, length), name="k")
    total = te.compute((rows,), lambda i: te.sum(a[i, k], axis=k), name="total")
    c = te.compute((rows, length), lambda i, j: a[i, j] / total[i], name="C")
    s = create_schedule(c.op)
    i, j = c.op.axis
    _, lane = s[c].split(j, factor=4)
    s[c].bind(i, te.thread_axis("blockIdx.x"))
    s[c].bind(lane, te.thread_axis("threadIdx.x"))
    s[total].compute_at(s[c], i)
    s[total].bind(s[total].split(k, factor=4)[1], te.thread_axis("threadIdx.x"))
    return s, [a, c]
