"""Schedules that pack an operand, as tests at several levels use them."""

from __future__ import annotations

from tensorexpr import te
from tensorexpr.schedule import Schedule, create_schedule
from tensorexpr.te.tensor import Tensor


def packed_matmul(m: int, k: int, n: int, place: str = "parallel loop", panel: int = 8, rows: int = 5) -> tuple[Schedule, list[Tensor]]:
    """Tiles of C in registers; B in panels of columns, each packed by the thread that needs it, or all at the root."""
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    over = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, over] * b[over, j], axis=over), name="C")
    s = create_schedule(c.op)
    tile = s.cache_write(c, "local")
    packed = s.cache_read(b, "global", [tile])
    *_, lane = s[packed].transform_layout(lambda row, column: [column // panel, row, column % panel], pad_value=0.0)
    s[packed].vectorize(lane)
    (io, ii), (jo, ji) = s[c].split(c.op.axis[0], factor=rows), s[c].split(c.op.axis[1], factor=panel)
    s[c].reorder(jo, io, ii, ji)
    s[c].parallel(jo)
    s[c].vectorize(ji)
    if place != "root":
        s[packed].compute_at(s[c], jo)
    s[tile].compute_at(s[c], io)
    (i, j), (step,) = s[tile].op.axis, s[tile].op.reduce_axis
    s[tile].reorder(step, i, j)
    s[tile].vectorize(j)
    s[tile].unroll(i)
    return s, [a, b, c]


def packed_convolution(place: str = "parallel loop", channels: int = 12, block: int = 8) -> tuple[Schedule, list[Tensor]]:
    """A 3x3 convolution with border, channels as vectors: weights as [channel / block][input channel][row][column][channel in
    the block], and tiles of accumulators with such channels innermost too."""
    x, w = te.placeholder((5, 7, 9), name="X"), te.placeholder((channels, 5, 3, 3), name="W")
    bordered = te.compute(
        (5, 9, 11),
        lambda c, i, j: te.if_then_else(te.all(i >= 1, i < 8, j >= 1, j < 10), x[c, i - 1, j - 1], 0.0),
        name="P",
    )
    ic, kh, kw = te.reduce_axis((0, 5), name="ic"), te.reduce_axis((0, 3), name="kh"), te.reduce_axis((0, 3), name="kw")
    y = te.compute((channels, 7, 9), lambda o, i, j: te.sum(bordered[ic, i + kh, j + kw] * w[o, ic, kh, kw], axis=[ic, kh, kw]), name="Y")
    s = create_schedule(y.op)
    tile = s.cache_write(y, "local")
    s[tile].transform_layout(lambda o, i, j: [o // block, i, j, o % block], pad_value=0.0)
    packed = s.cache_read(w, "global", [tile])
    s[packed].transform_layout(lambda o, c, i, j: [o // block, c, i, j, o % block], pad_value=0.0)
    outer, inner = s[y].split(y.op.axis[0], factor=block)
    columns, column = s[y].split(y.op.axis[2], factor=4)
    s[y].reorder(outer, y.op.axis[1], columns, inner, column)
    s[y].parallel(outer)
    if place != "root":
        s[packed].compute_at(s[y], outer)
    s[tile].compute_at(s[y], columns)
    (_, i, j, o), steps = s[tile].op.axis, s[tile].op.reduce_axis
    s[tile].reorder(i, *steps, j, o)
    s[tile].vectorize(o)
    s[tile].unroll(j)
    return s, [x, w, y]


def packed_groups(place: str = "parallel loop") -> tuple[Schedule, list[Tensor]]:
    """Small integers, B packed as [n / 16][k / 4][16][4] with both ends padded, the shape of dot products in groups of 4."""
    a, b = te.placeholder((5, 10), "uint8", name="A"), te.placeholder((10, 20), "int8", name="B")
    k = te.reduce_axis((0, 10), name="k")
    c = te.compute((5, 20), lambda i, j: te.sum(a[i, k].astype("int32") * b[k, j].astype("int32"), axis=k), name="C")
    s = create_schedule(c.op)
    tile = s.cache_write(c, "local")
    packed = s.cache_read(b, "global", [tile])
    s[packed].transform_layout(lambda k, n: [n // 16, k // 4, n % 16, k % 4], pad_value=0)
    (io, ii), (jo, ji) = s[c].split(c.op.axis[0], factor=3), s[c].split(c.op.axis[1], factor=16)
    s[c].reorder(jo, io, ii, ji)
    s[c].parallel(jo)
    s[c].vectorize(ji)
    if place != "root":
        s[packed].compute_at(s[c], jo)
    s[tile].compute_at(s[c], io)
    groups, within = s[tile].split(s[tile].op.reduce_axis[0], factor=4)
    s[tile].reorder(groups, *s[tile].op.axis, within)
    return s, [a, b, c]
