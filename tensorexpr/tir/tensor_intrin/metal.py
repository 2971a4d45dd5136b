"""Matrices of Metal's simdgroups by name (Metal Shading Language, "SIMD-group Matrix"): tiles of 8 x 8 in scope "metal.simdgroup".

They describe and print; a machine with such a GPU runs them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ...later import computed
from ..arithmetic import const
from ..buffer import Buffer, decl_buffer
from ..device_intrin import device_call
from ..expr import PrimExpr, Var
from ..function import PrimFunc
from ..pointers import tvm_access_ptr
from ..stmt import Evaluate
from . import TensorIntrin, built_in
from .parts import function, over, reduced, spatial
from .spread import strided

__all__ = [
    "get_make_filled_simdgroup_matrix_intrin",
    "get_simdgroup_intrin_group",
    "get_simdgroup_load_intrin",
    "get_simdgroup_multiply_accumulate_intrin",
    "get_simdgroup_store_intrin",
]

SIMDGROUP = "metal.simdgroup"
_DTYPES = {"float16": "f16", "float32": "f32", "bfloat16": "bf16"}
Pair = tuple[PrimFunc, PrimFunc]


def _plain(name: str, shape: tuple[int, int], dtype: str, scope: str) -> Buffer:
    return decl_buffer(shape, dtype, name, scope=scope, offset_factor=1)


def get_simdgroup_index(buffer: Buffer, stride: PrimExpr, col: PrimExpr | int, row: PrimExpr | int) -> PrimExpr:
    """The number of the matrix that a view begins with, counted along rows of matrices of col x row."""
    offset = buffer.elem_offset
    return offset // stride // col * (stride // row) + offset % stride // row


def _matrix(buffer: Buffer) -> tuple[PrimExpr, PrimExpr]:
    return buffer.data, get_simdgroup_index(buffer, buffer.strides[0], *buffer.shape)


def get_make_filled_simdgroup_matrix_intrin(dtype: str, col: int = 8, row: int = 8) -> Pair:
    """Zeros in a matrix: what it does, and how."""
    a = _plain("A", (col, row), dtype, SIMDGROUP)
    body = over(spatial(i=col, j=row), "init", lambda i, j: (a, (i, j), const(0, dtype)), lambda i, j: [])
    desc = function([a], [], [a], body)
    a = strided("A", (col, row), dtype, SIMDGROUP)
    call = device_call("make_filled_simdgroup_matrix", *_matrix(a), const(0.0, "float32"), col, row)
    return desc, function([a], [], [a], Evaluate(call))


def get_simdgroup_load_intrin(dtype: str, scope: str, col: int = 8, row: int = 8, transpose_matrix: bool = False) -> Pair:
    """A matrix from memory, turned on the way if asked for: what it does, and how."""
    return _moved("load", dtype, (scope, SIMDGROUP), (col, row), transpose_matrix)


def get_simdgroup_store_intrin(dtype: str, scope: str, col: int = 8, row: int = 8, transpose_matrix: bool = False) -> Pair:
    """A matrix to memory, turned on the way if asked for: what it does, and how."""
    return _moved("store", dtype, (SIMDGROUP, scope), (col, row), transpose_matrix)


def _moved(kind: str, dtype: str, scopes: tuple[str, str], shape: tuple[int, int], turned: bool) -> Pair:
    shapes = shape, shape[::-1] if turned else shape

    def buffers(make: Callable[..., Buffer]) -> list[Buffer]:
        return [make(*args) for args in zip("AC", shapes, (dtype, dtype), scopes, strict=True)]

    a, c = buffers(_plain)

    def made(i: Var, j: Var) -> tuple[Buffer, tuple[PrimExpr, ...], PrimExpr]:
        return c, (j, i) if turned else (i, j), a[i, j]

    desc = function([a, c], [a], [c], over(spatial(i=shape[0], j=shape[1]), kind, made, lambda i, j: [(a, (i, j))]))
    a, c = buffers(strided)
    memory, matrix, mask = (a, c, Buffer.READ) if kind == "load" else (c, a, Buffer.WRITE)
    pointer = tvm_access_ptr(dtype, memory.data, memory.elem_offset, memory.strides[0] * memory.shape[0], mask)
    call = device_call(f"simdgroup_{kind}", *_matrix(matrix), pointer, memory.strides[0], *shape, const(turned, "bool"))
    return desc, function([a, c], [a], [c], Evaluate(call))


def get_simdgroup_multiply_accumulate_intrin(m_dim: int, n_dim: int, k_dim: int, dtype: str) -> Pair:
    """A product of matrices added to a third: what it does, and how."""
    shapes = (m_dim, k_dim), (k_dim, n_dim), (m_dim, n_dim)

    def buffers(make: Callable[..., Buffer]) -> list[Buffer]:
        return [make(name, shape, dtype, SIMDGROUP) for name, shape in zip("ABC", shapes, strict=True)]

    a, b, c = buffers(_plain)

    def made(i: Var, j: Var, k: Var) -> tuple[Buffer, tuple[PrimExpr, ...], PrimExpr]:
        return c, (i, j), c[i, j] + a[i, k] * b[k, j]

    axes = [*spatial(i=m_dim, j=n_dim), *reduced(k=k_dim)]
    desc = function([a, b, c], [c, a, b], [c], over(axes, "", made, lambda i, j, k: [(c, (i, j)), (a, (i, k)), (b, (k, j))]))
    a, b, c = buffers(strided)
    call = device_call("simdgroup_multiply_accumulate", *_matrix(c), *_matrix(a), *_matrix(b), *_matrix(c))
    return desc, function([a, b, c], [c, a, b], [c], Evaluate(call))


def _made(get: Callable[..., Pair], *args: Any, **options: Any) -> TensorIntrin:
    return TensorIntrin(*get(*args, **options))


def _table() -> dict[str, Callable[[], TensorIntrin]]:
    """What there is, by the names that schedules use."""
    found: dict[str, Callable[[], TensorIntrin]] = {}
    for dtype, short in _DTYPES.items():
        shape = f"8x8x8_{short}"
        found[f"simdgroup_make_filled_{shape}"] = partial(_made, get_make_filled_simdgroup_matrix_intrin, dtype)
        found[f"simdgroup_multiply_accumulate_{shape}"] = partial(_made, get_simdgroup_multiply_accumulate_intrin, 8, 8, 8, dtype)
        for scope in ("shared", "global"):
            found[f"simdgroup_store_{shape}_{scope}"] = partial(_made, get_simdgroup_store_intrin, dtype, scope)
        for trans in (False, True):
            found[f"simdgroup_load_{shape}_shared{'_trans' * trans}"] = partial(
                _made, get_simdgroup_load_intrin, dtype, "shared", transpose_matrix=trans
            )
        # TVM calls the filling of other types than float16 so.
        found[f"simdgroup_fill_{shape}"] = found[f"simdgroup_make_filled_{shape}"]
    return found


NAMES = tuple(_table())
for _name, _make in _table().items():
    built_in(_name, _make)


def _constant(name: str) -> str:
    """SIMDGROUP_LOAD_8x8x8_f16_SHARED_INTRIN for simdgroup_load_8x8x8_f16_shared."""
    _, kind, shape = name.partition("_8x8x8_")
    start = name[: -len(kind) - len(shape)] if shape else name
    words = {"simdgroup_multiply_accumulate": "SIMDGROUP_MULTI_ACC", "simdgroup_fill": "SIMDGROUP_FILLED"}
    dtype, _, rest = shape.partition("_")
    return "_".join((words.get(start, start.upper()), "8x8x8", dtype, *filter(None, (rest.upper(),)), "INTRIN"))


_CONSTANTS = {_constant(name): name for name in NAMES}

__getattr__, __dir__ = computed(__name__, _CONSTANTS, _CONSTANTS.__getitem__)


def get_simdgroup_intrin_group(
    load_scope: str, store_scope: str, dtype: str, trans_a: bool = False, trans_b: bool = False
) -> dict[str, str]:
    """The names of the intrinsics that a product by simdgroups takes.

    Args:
        load_scope: "shared", where operands come from.
        store_scope: "global" or "shared", where the result goes.
        dtype: "float16", "float32" or "bfloat16", of all three.
        trans_a, trans_b: whether an operand stands column by column.

    Returns:
        Names under init, load_a, load_b, compute and store.

    Raises:
        ValueError: if there are none for these.
    """
    shape = f"8x8x8_{_DTYPES.get(dtype, dtype)}"
    found = {
        "init": f"simdgroup_make_filled_{shape}",
        "load_a": f"simdgroup_load_{shape}_{load_scope}{'_trans' * trans_a}",
        "load_b": f"simdgroup_load_{shape}_{load_scope}{'_trans' * trans_b}",
        "compute": f"simdgroup_multiply_accumulate_{shape}",
        "store": f"simdgroup_store_{shape}_{store_scope}",
    }
    missing = next((name for name in found.values() if name not in NAMES), None)
    if missing is not None:
        raise ValueError(f"simdgroups have no {missing}; dtypes: {', '.join(_DTYPES)}; loads are from shared memory")
    return found
