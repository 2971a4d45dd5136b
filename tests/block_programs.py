"""Functions of blocks that several tests share: some made of tensors, some by hand."""

from __future__ import annotations

from collections.abc import Callable

from tensorexpr import te, tir
from tensorexpr.te.tensor import Tensor
from tensorexpr.tir.attrs import FrozenMap
from tests import programs

TRUE = tir.const(True)


def argmax() -> list[Tensor]:
    """The place and the value of the greatest element of each row, as one reduction of pairs."""
    reducer = te.comm_reducer(
        lambda x, y: (tir.Select(x[1] >= y[1], x[0], y[0]), tir.Select(x[1] >= y[1], x[1], y[1])),
        lambda t0, t1: (tir.const(-1, t0), te.min_value(t1)),
        name="argmax",
    )
    idx, val = te.placeholder((8, 16), "int32", name="idx"), te.placeholder((8, 16), name="val")
    k = te.reduce_axis((0, 16), name="k")
    return [idx, val, *te.compute((8,), lambda i: reducer((idx[i, k], val[i, k]), axis=k), name="T")]


def symbolic() -> list[Tensor]:
    """Two steps over a matrix of any size."""
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, m), name="A")
    b = te.compute((n, m), lambda i, j: a[i, j] + 1.0, name="B")
    return [a, te.compute((n, m), lambda i, j: b[i, j] * 2.0, name="C")]


def where() -> list[Tensor]:
    """A reduction over the points where a condition holds, on a range that does not begin at 0."""
    v = te.placeholder((16,), name="V")
    k = te.reduce_axis((2, 10), name="k")
    return [v, te.compute((4,), lambda i: te.sum(v[i + k], axis=k, where=k > i), name="Q")]


def multi() -> list[Tensor]:
    """A compute of two outputs, both read by another."""
    v = te.placeholder((16,), name="V")
    u0, u1 = te.compute((8,), lambda i: (v[i] + 1.0, v[i] * 2.0), name="U")
    return [v, te.compute((8,), lambda i: u0[i] + u1[i], name="W")]


def hull() -> list[Tensor]:
    """Two unrelated rows of one input; attributes that become the block's."""
    a = te.placeholder((16, 16), "int8", name="A")
    k = te.reduce_axis((0, 16), name="k")
    product = te.compute(
        (8, 8), lambda i, j: te.sum(a(i, k).astype("int32") * a(j, k).astype("int32"), axis=k), name="S", attrs={"foo": "bar"}
    )
    return [a, product]


def scalars() -> list[Tensor]:
    """Tensors without dimensions."""
    s = te.placeholder((), name="S")
    return [s, te.compute((), lambda: s() * 2.0, name="Y")]


DECLARED: dict[str, Callable[[], list[Tensor]]] = {
    "matmul": programs.matmul,
    "matmul_add": programs.matmul_add,
    "conv_relu": programs.conv_relu,
    "softmax": programs.softmax,
    "chain": programs.chain,
    "argmax": argmax,
    "symbolic": symbolic,
    "where": where,
    "multi": multi,
    "hull": hull,
    "scalars": scalars,
}


def axis(name: str, extent: int, kind: int = tir.IterVar.DATA_PAR, low: int = 0) -> tir.IterVar:
    """An axis of a block."""
    return tir.IterVar(tir.Range.from_min_extent(tir.const(low), tir.const(extent)), tir.Var(name), kind)


def loop(var: tir.Var, extent: int, body: tir.Stmt, kind: tir.ForKind = tir.ForKind.SERIAL) -> tir.For:
    """`body` for var from 0."""
    return tir.For(var, tir.const(0), tir.const(extent), kind, body)


def box(buffer: tir.Buffer, *sides: tuple[object, int]) -> tir.BufferRegion:
    """A part of a buffer: where it begins and how far it goes, for each dimension."""
    return tir.BufferRegion(buffer, tuple(tir.Range.from_min_extent(tir.convert(low), tir.const(extent)) for low, extent in sides))


def function(params: list[tir.Buffer], body: tir.Stmt, allocated: tuple[tir.Buffer, ...] = ()) -> tir.PrimFunc:
    """A function of a root block."""
    handles = [tir.Var(f"var_{buffer.name}", "handle") for buffer in params]
    root = tir.BlockRealize((), TRUE, tir.Block((), (), (), "root", body, alloc_buffers=allocated))
    attrs = FrozenMap({"global_symbol": "main", "tir.noalias": True})
    return tir.PrimFunc(tuple(handles), root, None, dict(zip(handles, params, strict=True)), attrs)


def guarded_copy() -> tir.PrimFunc:
    """B = A for the first 15 rows, the row split in four."""
    a, b = tir.decl_buffer((16, 16), name="A"), tir.decl_buffer((16, 16), name="B")
    vi, vj = axis("vi", 16), axis("vj", 16)
    io, ii, j = tir.Var("i0"), tir.Var("i1"), tir.Var("j")
    point = [vi.var, vj.var]
    reads, writes = (tir.BufferRegion.from_point(a, point),), (tir.BufferRegion.from_point(b, point),)
    copy = tir.Block((vi, vj), reads, writes, "B", tir.BufferStore(b, a[vi, vj], (vi.var, vj.var)))
    row = io * 4 + ii
    inner = loop(ii, 4, tir.BlockRealize((row, j), row < 15, copy), tir.ForKind.VECTORIZED)
    return function([a, b], loop(io, 4, loop(j, 16, inner)))


def tiles() -> tir.PrimFunc:
    """B = A + 1 tile by tile: a block per tile with a buffer of its own, a view of A, and blocks inside."""
    a, b = tir.decl_buffer((16, 16), name="A"), tir.decl_buffer((16, 16), name="B")
    i, j, x, y, p, q = (tir.Var(name) for name in "ijxypq")
    vi, vj, vx, vy, vp, vq = axis("vi", 4), axis("vj", 4), axis("vx", 4), axis("vy", 4), axis("vp", 4), axis("vq", 4)
    d = tir.decl_buffer((4, 4), "float64", name="D", scope="local")
    m = tir.decl_buffer((4, 4), name="M", strides=[tir.Var("s0"), tir.Var("s1")], elem_offset=tir.Var("e"))
    source = box(a, (vi.var * 4, 4), (vj.var * 4, 4))
    target = box(b, (vi.var * 4, 4), (vj.var * 4, 4))
    load = tir.Block(
        (vx, vy),
        (tir.BufferRegion.from_point(m, [vx.var, vy.var]),),
        (tir.BufferRegion.from_point(d, [vx.var, vy.var]),),
        "load",
        tir.BufferStore(d, m[vx, vy].astype("float64"), (vx.var, vy.var)),
    )
    place = (vi.var * 4 + vp.var, vj.var * 4 + vq.var)
    store = tir.Block(
        (vp, vq),
        (tir.BufferRegion.from_point(d, [vp.var, vq.var]),),
        (tir.BufferRegion.from_point(b, place),),
        "store",
        tir.BufferStore(b, d[vp, vq].astype("float32") + 1.0, place),
    )
    body = tir.stmt_seq(
        loop(x, 4, loop(y, 4, tir.BlockRealize((x, y), TRUE, load))), loop(p, 4, loop(q, 4, tir.BlockRealize((p, q), TRUE, store)))
    )
    tile = tir.Block(
        (vi, vj), (source,), (target,), "tile", body, None, (d,), (tir.MatchBufferRegion(m, source),), FrozenMap({"x": 1, "y": "z"})
    )
    return function([a, b], loop(i, 4, loop(j, 4, tir.BlockRealize((i, j), TRUE, tile))))


def kinds_of_axes() -> tir.PrimFunc:
    """Axes of all kinds, one bound to a part of a range, under a root with a name of its own."""
    c = tir.decl_buffer((4, 4), name="C")
    i, j = tir.Var("i"), tir.Var("j")
    vi, vj, vk = axis("vi", 4, tir.IterVar.DIM_INFO), axis("vj", 4, tir.IterVar.ORDERED), axis("vk", 4, tir.IterVar.COMM_REDUCE, 2)
    writes = (tir.BufferRegion.from_point(c, [vi.var, vj.var]),)
    fill = tir.Block((vi, vj, vk), (), writes, "", tir.BufferStore(c, vk.var.astype("float32"), (vi.var, vj.var)))
    nest = loop(i, 4, loop(j, 4, tir.BlockRealize((i, j, j + 2), TRUE, fill)))
    func = function([c], nest)
    whole = tir.BlockRealize((), TRUE, tir.Block((), (), (tir.BufferRegion.full_region(c),), "root", nest))
    return func.with_body(whole)


BY_HAND: dict[str, Callable[[], tir.PrimFunc]] = {"guarded_copy": guarded_copy, "tiles": tiles, "kinds_of_axes": kinds_of_axes}
