"""Dot products of four bytes, as GPUs have them (`__dp4a` of CUDA, `sdot4` of AMD): into a register, from shared memory.

Tensorized functions print and are analysed; a GPU runs them.
"""

from __future__ import annotations

from collections.abc import Callable

from ..arithmetic import const
from ..buffer import Buffer, decl_buffer
from ..expr import PrimExpr, Var
from ..intrin import call_pure_extern, reinterpret
from ..llvm_intrin import call_llvm_pure_intrin
from ..stmt import BufferStore
from . import TensorIntrin, built_in
from .parts import function, over, reduced

DP4A_S8S8S32_INTRIN = "dp4a_s8s8s32"
DP4A_S8U8S32_INTRIN = "dp4a_s8u8s32"
DP4A_U8S8S32_INTRIN = "dp4a_u8s8s32"
DP4A_U8U8U32_INTRIN = "dp4a_u8u8u32"
AMDGPU_SDOT4_INTRIN = "sdot4"

_ZERO = const(0, "int32")
_DTYPES = {"s8": "int8", "u8": "uint8", "s32": "int32", "u32": "uint32"}


Product = Callable[[PrimExpr, PrimExpr, str], PrimExpr]


def _dp4a(left: PrimExpr, right: PrimExpr, dtype: str) -> PrimExpr:
    return call_pure_extern(dtype, "__dp4a", left, right, const(0, dtype))


def _sdot4(left: PrimExpr, right: PrimExpr, dtype: str) -> PrimExpr:
    words = reinterpret("int32", left), reinterpret("int32", right)
    return call_llvm_pure_intrin(dtype, "llvm.amdgcn.sdot4", const(4, "uint32"), *words, const(0, dtype), const(True, "bool"))


def four_bytes(left: str, right: str, result: str, product: Product = _dp4a) -> TensorIntrin:
    """The intrinsic for two kinds of bytes ("s8", "u8") and a result ("s32", "u32"); `product` is that of two groups of four."""

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
    total = c[_ZERO] + product(a.vload([0], f"{a.dtype}x4"), b.vload([0], f"{b.dtype}x4"), c.dtype)
    return TensorIntrin(desc, function([a, b, c], [c, a, b], [c], BufferStore(c, total, (_ZERO,))))


def _with(left: str, right: str, result: str) -> Callable[[], TensorIntrin]:
    return lambda: four_bytes(left, right, result)


for _left, _right, _result in (("s8", "s8", "s32"), ("s8", "u8", "s32"), ("u8", "s8", "s32"), ("u8", "u8", "u32")):
    built_in(f"dp4a_{_left}{_right}{_result}", _with(_left, _right, _result))
built_in(AMDGPU_SDOT4_INTRIN, lambda: four_bytes("s8", "s8", "s32", _sdot4))
