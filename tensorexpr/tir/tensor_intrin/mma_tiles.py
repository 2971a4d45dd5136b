"""Products of 16 x 8 x 8 halves by `mma`, on tiles that schedules see as tiles: scopes m16n8k8.matrixA, matrixB, matrixC.

`ldmatrix` fetches four matrices of 8 x 8 at once: 32 x 8 of the left operand, 8 x 32 of the right one. `TransformMmaBufferLayout` makes
registers of the tiles, which a thread has 8 of for each of those, and 4 of a tile of 16 x 8 sums:

    matrixA  [i // 32, j // 8, i % 32 // 8, j % 2]     matrixB  [i // 8, j // 32, j % 32 // 8 * 2 + i % 2]
    matrixC  [i // 16, j // 8, i % 16 // 8, j % 2]

Source: PTX ISA, "Matrix Fragments for mma.m16n8k8" and "ldmatrix".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..arithmetic import const, floordiv, floormod
from ..buffer import Buffer, decl_buffer
from ..device_intrin import device_call
from ..expr import PrimExpr, Var
from ..pointers import tvm_access_ptr
from ..stmt import BufferStore, Evaluate, For, ForKind, Stmt
from . import TensorIntrin, built_in
from .parts import function, over, reduced, spatial
from .spread import per_thread

SHAPE = (16, 8, 8)
TOGETHER = 32
"""Rows of the left operand, and columns of the right one, that are fetched together."""
SHORT = {"float16": "f16", "float32": "f32"}
_PTX = {"float16": "fp16", "float32": "fp32"}
_TILE = {"A": (TOGETHER, 8), "B": (8, TOGETHER), "C": (16, 8)}
_REGISTERS = {"A": 8, "B": 8, "C": 4}


def scope_of(role: str) -> str:
    """The scope of a part of the product: "A", "B" or "C"."""
    return f"m16n8k8.matrix{role}"


def first_register(role: str, offset: PrimExpr, stride: PrimExpr) -> PrimExpr:
    """The first of a thread's registers that hold the part beginning at `offset`, of a matrix whose rows are `stride` apart."""
    rows, columns = _TILE[role]
    i, j = floordiv(offset, stride), floormod(offset, stride)
    tile = (floordiv(i, rows) * floordiv(stride, columns) + floordiv(j, columns)) * _REGISTERS[role]
    # Sixteen rows of the left operand have half of the registers, eight columns of the right one a quarter.
    return tile + {"A": floordiv(floormod(i, rows), 16) * 4, "B": floordiv(floormod(j, columns), 8) * 2, "C": const(0, "int32")}[role]


def _matrix(name: str, shape: tuple[int, int], dtype: str, scope: str, strided: bool = False) -> Buffer:
    strides = [Var(f"{name}_s{d}", "int32") for d in range(2)] if strided else None
    return decl_buffer(shape, dtype, name, scope=scope, strides=strides, data_alignment=64, offset_factor=1)


def _own(body: Callable[[PrimExpr, PrimExpr], Stmt]) -> Stmt:
    """`body(row, column)` for the sums of a tile of 16 x 8 that a thread holds."""

    def of_thread(tx: Var) -> Stmt:
        eight, two = Var("b", "int32"), Var("v", "int32")
        inner = For(
            two, const(0, "int32"), const(2, "int32"), ForKind.VECTORIZED, body(eight * 8 + floordiv(tx, 4), floormod(tx, 4) * 2 + two)
        )
        return For(eight, const(0, "int32"), const(2, "int32"), ForKind.SERIAL, inner)

    return per_thread(32, of_thread)


def init(dtype: str) -> TensorIntrin:
    """Zeros in a tile of sums."""
    c, own = (_matrix("C", _TILE["C"], dtype, scope_of("C")) for _ in range(2))
    zero = const(0, dtype)
    desc = function([c], [], [c], over(spatial(i=16, j=8), "init", lambda i, j: (c, (i, j), zero), lambda i, j: []))
    return TensorIntrin(desc, function([own], [], [own], _own(lambda i, j: BufferStore(own, zero, (i, j)))))


def load(dtype: str, role: str, scope: str) -> TensorIntrin:
    """Four matrices of 8 x 8 of an operand from shared memory."""
    shape = _TILE[role]
    source, into = _matrix("src", shape, dtype, scope), _matrix("dst", shape, dtype, scope_of(role))
    axes = spatial(i=shape[0], j=shape[1])
    desc = function(
        [source, into], [source], [into], over(axes, "load", lambda i, j: (into, (i, j), source[i, j]), lambda i, j: [(source, (i, j))])
    )
    source, into = _matrix("src", shape, dtype, scope, strided=True), _matrix("dst", shape, dtype, scope_of(role), strided=True)
    apart = source.strides[0]

    def body(tx: Var) -> Stmt:
        row = floormod(tx, 8) * apart + floordiv(tx, 8) * 8 if role == "B" else tx * apart
        pointer = tvm_access_ptr(dtype, source.data, source.elem_offset, apart * shape[0], Buffer.READ)
        place = first_register(role, into.elem_offset, into.strides[0])
        return Evaluate(device_call("ptx_ldmatrix", dtype, role == "B", 4, ".b16", into.data, place, pointer, row))

    return TensorIntrin(desc, function([source, into], [source], [into], per_thread(32, body)))


def sync(dtype: str, out: str) -> TensorIntrin:
    """The product of 16 x 8 and 8 x 8 halves, added to a tile of sums."""
    shapes, dtypes = ((16, 8), (8, 8), (16, 8)), (dtype, dtype, out)

    def buffers(strided: bool) -> list[Buffer]:
        return [_matrix(role, shape, kind, scope_of(role), strided) for role, shape, kind in zip("ABC", shapes, dtypes, strict=True)]

    a, b, c = buffers(False)

    def made(i: Var, j: Var, k: Var) -> tuple[Buffer, tuple[PrimExpr, ...], PrimExpr]:
        left, right = (value if dtype == out else value.astype(out) for value in (a[i, k], b[k, j]))
        return c, (i, j), c[i, j] + left * right

    axes = [*spatial(i=16, j=8), *reduced(k=8)]
    desc = function([a, b, c], [c, a, b], [c], over(axes, "m16n8k8_sync", made, lambda i, j, k: [(c, (i, j)), (a, (i, k)), (b, (k, j))]))
    own = buffers(True)
    places: list[Any] = [part for one in own for part in (one.data, first_register(one.name, one.elem_offset, one.strides[0]))]
    words = [_PTX[kind] for kind in dtypes]
    call = Evaluate(device_call("ptx_mma", out, "m16n8k8", "row", "col", *words, *places, const(False, "bool")))
    a, b, c = own
    return TensorIntrin(desc, function([a, b, c], [c, a, b], [c], call))


def store(dtype: str, scope: str) -> TensorIntrin:
    """A tile of sums to memory: each thread stores what it holds."""
    source, into = _matrix("src", (16, 8), dtype, scope_of("C")), _matrix("dst", (16, 8), dtype, scope)
    axes = spatial(i=16, j=8)
    desc = function(
        [source, into],
        [source],
        [into],
        over(axes, "m16n8k8_store", lambda i, j: (into, (i, j), source[i, j]), lambda i, j: [(source, (i, j))]),
    )
    mine, its = _matrix("src", (16, 8), dtype, scope_of("C")), _matrix("dst", (16, 8), dtype, scope, strided=True)
    return TensorIntrin(desc, function([mine, its], [mine], [its], _own(lambda i, j: BufferStore(its, mine[i, j], (i, j)))))


def _table() -> dict[str, Callable[[], TensorIntrin]]:
    """What there is, by the names that schedules use."""
    found: dict[str, Callable[[], TensorIntrin]] = {}
    for role in "AB":
        for suffix, scope in (("shared", "shared"), ("shared_dyn", "shared.dyn")):
            found[f"mma_load_m16n8k8_f16_{role}_{suffix}"] = partial(load, "float16", role, scope)
    for dtype, short in SHORT.items():
        found[f"mma_init_m16n8k8_{short}"] = partial(init, dtype)
        found[f"mma_sync_m16n8k8_f16f16{short}"] = partial(sync, "float16", dtype)
        for suffix, scope in (("global", "global"), ("shared", "shared"), ("shared_dyn", "shared.dyn")):
            found[f"mma_store_m16n8k8_{short}_{suffix}"] = partial(store, dtype, scope)
    return found


NAMES = tuple(_table())
for _name, _make in _table().items():
    built_in(_name, _make)
