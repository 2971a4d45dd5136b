"""Tensor cores of NVIDIA through fragments (WMMA, CUDA C++ Programming Guide, "Warp Matrix Functions"): fill, load, multiply, store.

A fragment is a tile of m x n elements, of products over k, in a buffer of scope "wmma.accumulator", "wmma.matrix_a" or
"wmma.matrix_b". Tensorized functions print and are analysed; a GPU runs them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dataclass import dataclass
from ..arithmetic import const
from ..buffer import Buffer, decl_buffer
from ..expr import Call, PrimExpr, StringImm, Var
from ..function import PrimFunc
from ..pointers import tvm_access_ptr
from ..stmt import Evaluate
from . import TensorIntrin, built_in
from .parts import function, over, reduced, spatial

DTYPES = {"f16": "float16", "f32": "float32", "s8": "int8", "s32": "int32", "s4": "int4"}
_SQUARE, _FLAT = (16, 16, 16), (8, 8, 32)
_SHARED = {"shared": "shared", "shared_dyn": "shared.dyn"}


@dataclass(frozen=True)
class Fragment:
    """One of the shapes m x n x k, by its name in intrinsics."""

    m: int
    n: int
    k: int

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}"

    def tile(self, role: str, trans: bool) -> tuple[int, int]:
        """The shape of an operand's tile as it stands in memory."""
        rows, columns = {"a": (self.m, self.k), "b": (self.k, self.n), "accumulator": (self.m, self.n)}[role]
        return (columns, rows) if trans else (rows, columns)


def _buffer(name: str, shape: tuple[int, int], dtype: str, scope: str, strided: bool) -> Buffer:
    strides = [Var(f"{name}_s{d}", "int32") for d in range(2)] if strided else None
    return decl_buffer(shape, dtype, name, strides=strides, scope=scope, offset_factor=shape[1])


def _place(buffer: Buffer, tile: tuple[int, int]) -> PrimExpr:
    """The number of the fragment that a view begins with, counted along rows of fragments."""
    stride, offset = buffer.strides[0], buffer.elem_offset
    return offset // stride // tile[0] * (stride // tile[1]) + offset % stride // tile[1]


def _call(name: str, *args: Any) -> Evaluate:
    return Evaluate(Call("handle", f"tir.{name}", tuple(arg if isinstance(arg, PrimExpr) else const(arg, "int32") for arg in args)))


def _pointer(buffer: Buffer, rows: int, mask: int) -> PrimExpr:
    return tvm_access_ptr(buffer.dtype, buffer.data, buffer.elem_offset, buffer.strides[0] * rows, mask)


def fill(shape: Fragment, dtype: str) -> TensorIntrin:
    """Zeros in an accumulator."""

    def made(strided: bool) -> tuple[Buffer, PrimFunc]:
        c = _buffer("C", shape.tile("accumulator", False), DTYPES[dtype], "wmma.accumulator", strided)
        zero = const(0, c.dtype)
        if not strided:
            body: Any = over(spatial(ii=shape.m, jj=shape.n), "init", lambda i, j: (c, (i, j), zero), lambda i, j: [])
        else:
            body = _call(
                "tvm_fill_fragment", c.data, shape.m, shape.n, shape.k, _place(c, shape.tile("accumulator", False)), const(0.0, "float32")
            )
        return c, function([c], [], [c], body)

    return TensorIntrin(made(False)[1], made(True)[1])


def load(shape: Fragment, dtype: str, role: str, trans: bool, scope: str) -> TensorIntrin:
    """A tile of an operand from shared memory; transposed ones stand there column by column."""
    tile = shape.tile(role, trans)
    layout = StringImm("col_major" if trans else "row_major")

    def buffers(strided: bool) -> list[Buffer]:
        return [_buffer(*args, strided) for args in (("A", tile, DTYPES[dtype], scope), ("C", tile, DTYPES[dtype], f"wmma.matrix_{role}"))]

    a, c = buffers(False)
    desc = function([a, c], [a], [c], _copied(a, c, tile, "load"))
    a, c = buffers(True)
    body = _call(
        "tvm_load_matrix_sync", c.data, shape.m, shape.n, shape.k, _place(c, tile), _pointer(a, tile[0], Buffer.READ), a.strides[0], layout
    )
    return TensorIntrin(desc, function([a, c], [a], [c], body))


def store(shape: Fragment, dtype: str, scope: str) -> TensorIntrin:
    """An accumulator to shared or global memory."""
    tile = shape.tile("accumulator", False)

    def buffers(strided: bool) -> list[Buffer]:
        return [_buffer(*args, strided) for args in (("A", tile, DTYPES[dtype], "wmma.accumulator"), ("C", tile, DTYPES[dtype], scope))]

    a, c = buffers(False)
    desc = function([a, c], [a], [c], _copied(a, c, tile, "store"))
    a, c = buffers(True)
    pointer = _pointer(c, tile[0], Buffer.WRITE)
    args = (a.data, shape.m, shape.n, shape.k, _place(a, tile), pointer, c.strides[0], StringImm("row_major"))
    return TensorIntrin(desc, function([a, c], [a], [c], _call("tvm_store_matrix_sync", *args)))


def _copied(a: Buffer, c: Buffer, tile: tuple[int, int], name: str) -> Any:
    return over(spatial(ii=tile[0], jj=tile[1]), name, lambda i, j: (c, (i, j), a[i, j]), lambda i, j: [(a, (i, j))])


def sync(shape: Fragment, operand: str, result: str, trans: bool) -> TensorIntrin:
    """A product of two tiles added to an accumulator; `trans` is about the second one."""
    tiles = shape.tile("a", False), shape.tile("b", trans), shape.tile("accumulator", False)

    def buffers(strided: bool) -> list[Buffer]:
        dtypes = (DTYPES[operand], DTYPES[operand], DTYPES[result])
        scopes = ("wmma.matrix_a", "wmma.matrix_b", "wmma.accumulator")
        return [_buffer(*args, strided) for args in zip("ABC", tiles, dtypes, scopes, strict=True)]

    a, b, c = buffers(False)

    def widened(value: PrimExpr) -> PrimExpr:
        return value if value.dtype == c.dtype else value.astype(c.dtype)

    def places(i: Var, j: Var, k: Var) -> list[tuple[Buffer, tuple[PrimExpr, ...]]]:
        return [(c, (i, j)), (a, (i, k)), (b, (j, k) if trans else (k, j))]

    def made(i: Var, j: Var, k: Var) -> tuple[Buffer, tuple[PrimExpr, ...], PrimExpr]:
        old, left, right = (buffer[place] for buffer, place in places(i, j, k))
        return c, (i, j), old + widened(left) * widened(right)

    axes = [*spatial(ii=shape.m, jj=shape.n), *reduced(kk=shape.k)]
    desc = function([a, b, c], [c, a, b], [c], over(axes, "", made, places))
    a, b, c = buffers(True)
    args = [part for buffer, tile in ((c, tiles[2]), (a, tiles[0]), (b, tiles[1])) for part in (buffer.data, _place(buffer, tile))]
    # D = A * B + C with one fragment for D and C, which stands in the call twice.
    return TensorIntrin(desc, function([a, b, c], [c, a, b], [c], _call("tvm_mma_sync", *args, *args[:2])))


def _table() -> dict[str, Callable[[], TensorIntrin]]:
    """What there is, by the names that schedules use."""
    square, flat = Fragment(*_SQUARE), Fragment(*_FLAT)
    found: dict[str, Callable[[], TensorIntrin]] = {}
    for shape, operand, results in ((square, "f16", ("f16", "f32")), (square, "s8", ("s32",)), (flat, "s4", ("s32",))):
        # Numbers of four bits are multiplied row by column alone.
        for trans in (False, True) if shape is square else (True,):
            for result in results:
                found[f"wmma_sync_{shape}_{operand}{operand}{result}{'_trans' * trans}"] = _with(sync, shape, operand, result, trans)
        for role, trans in (("a", False), ("b", False), ("a", True), ("b", True)) if shape is square else (("a", False), ("b", True)):
            for suffix, scope in _SHARED.items():
                name = f"wmma_load_{shape}_{operand}_{role}{'_trans' * trans}_{suffix}"
                found[name] = _with(load, shape, operand, role, trans, scope)
        for result in results:
            found[f"wmma_fill_{shape}_{result}"] = _with(fill, shape, result)
            for suffix, scope in {**_SHARED, "global": "global"}.items():
                found[f"wmma_store_{shape}_{result}_{suffix}"] = _with(store, shape, result, scope)
    return found


def _with(make: Callable[..., TensorIntrin], *args: Any) -> Callable[[], TensorIntrin]:
    return lambda: make(*args)


NAMES = tuple(_table())
for _name, _make in _table().items():
    built_in(_name, _make)
