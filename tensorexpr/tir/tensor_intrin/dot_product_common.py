"""Dot products of four bytes, as GPUs have them (`__dp4a` of CUDA, `sdot4` of AMD): into a register, from shared memory.

Tensorized functions print and are analysed; a GPU runs them.
"""

from __future__ import annotations

from collections.abc import Callable

from ..arithmetic import const
from ..buffer import Buffer, decl_buffer
from ..expr import PrimExpr, Var
from ..intrin import call_pure_extern
from ..stmt import BufferStore
from . import TensorIntrin, built_in
from .parts import function, over, reduced

DP4A_S8S8S32_INTRIN = "dp4a_s8s8s32"
DP4A_S8U8S32_INTRIN = "dp4a_s8u8s32"
DP4A_U8S8S32_INTRIN = "dp4a_u8s8s32"
DP4A_U8U8U32_INTRIN = "dp4a_u8u8u32"

_ZERO = const(0, "int32")
_DTYPES = {"s8": "int8", "u8": "uint8", "s32": "int32", "u32": "uint32"}


def dp4a(left: str, right: str, result: str) -> TensorIntrin:
    """The intrinsic for two kinds of bytes ("s8", "u8") and a result ("s32", "u32")."""

    def buffers() -> list[Buffer]:
        rows = (("A", 4, left, "shared"), ("B", 4, right, "shared"), ("C", 1, result, "local"))
        return [
            decl_buffer((size,), _DTYPES[kind], name, scope=scope, data_alignment=4, offset_factor=1) for name, size, kind, scope in rows
        ]

    a, b, c = buffers()

    def made(k: Var) -> tuple[Buffer, tuple[PrimExpr, ...], PrimExpr]:
        return c, (_ZERO,), c[_ZERO] + a[k].astype(c.dtype) * b[k].astype(c.dtype)

    body = over(reduced(i=4), "update", made, lambda k: [(c, (_ZERO,)), (a, (k,)), (b, (k,))])
    desc = function([a, b, c], [c, a, b], [c], body)
    a, b, c = buffers()
    product = call_pure_extern(c.dtype, "__dp4a", a.vload([0], f"{a.dtype}x4"), b.vload([0], f"{b.dtype}x4"), const(0, c.dtype))
    return TensorIntrin(desc, function([a, b, c], [c, a, b], [c], BufferStore(c, c[_ZERO] + product, (_ZERO,))))


def _with(left: str, right: str, result: str) -> Callable[[], TensorIntrin]:
    return lambda: dp4a(left, right, result)


for _left, _right, _result in (("s8", "s8", "s32"), ("s8", "u8", "s32"), ("u8", "s8", "s32"), ("u8", "u8", "u32")):
    built_in(f"dp4a_{_left}{_right}{_result}", _with(_left, _right, _result))
