"""Tensor intrinsics for `tir.Schedule.tensorize` that come with the package. Each is made when it is first asked for.

dot_16x4_vnni          u8 x s8 -> s32, groups of four: one instruction of AVX512-VNNI
dot_16x4_avx512        the same in instructions of AVX512-BW; exact too, where pmaddubsw would saturate
dot_16x2_avx512_bf16   bf16 x bf16 -> f32, groups of two: one instruction of AVX512-BF16
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...te import TensorIntrin as DeclaredIntrin
from ...te.intrinsics import dot_16x2_avx512_bf16, dot_16x4_vnni
from ...te.intrinsics.dot_group import by_words
from ...te.row_crossing import with_flat_views
from ...te.to_prim_func import create_prim_func
from ...tir.block import Block, BlockRealize
from ...tir.buffer import Buffer, BufferRegion
from ...tir.expr import Broadcast
from ...tir.function import PrimFunc
from ...tir.intrin import reinterpret
from ...tir.stmt import For, Stmt
from ...tir.stmt_functor import renew_defs
from ...tir.tensor_intrin import TensorIntrin, buffers_of, built_in
from .bindings import TRUE
from .primitives.decompose_reduction import updating

OUTPUTS, GROUP = 16, 4


def _update_of(declared: DeclaredIntrin) -> PrimFunc:
    """What one more part of the reduction of a declared intrinsic computes, as loops over a block."""
    func = create_prim_func([*declared.inputs, declared.op.output(0)])
    assert isinstance(func.body, BlockRealize)
    return _in_block(func, _without_init(func.body.block.body))


def _without_init(stmt: Stmt) -> Stmt:
    if isinstance(stmt, For):
        return replace(stmt, body=_without_init(stmt.body))
    assert isinstance(stmt, BlockRealize)
    return replace(stmt, block=updating(stmt.block, stmt.block.name_hint))


def _in_block(func: PrimFunc, body: Stmt) -> PrimFunc:
    """The function with a body in a block that reads all its buffers and writes the last."""
    *inputs, output = buffers_of(func)
    reads = tuple(map(BufferRegion.full_region, (output, *inputs)))
    block = Block((), reads, (BufferRegion.full_region(output),), "root", body)
    return func.with_body(BlockRealize((), TRUE, block))


def _from_declared(declared: DeclaredIntrin) -> TensorIntrin:
    """The intrinsic that adds one more part, as two functions."""
    assert declared.reduce_update is not None
    impl = renew_defs(declared.reduce_update)
    return TensorIntrin(_update_of(declared), _in_block(impl, impl.body))


def _dot_16x4_avx512() -> TensorIntrin:
    """Bytes as halves of 16-bit words, of which pmaddwd multiplies and adds pairs without loss."""
    declared = dot_16x4_vnni()
    assert declared.reduce_update is not None
    impl = renew_defs(declared.reduce_update)
    buffers = buffers_of(impl)
    body = with_flat_views(_dot_by_words(buffers), buffers, "dot_16x4_avx512")
    return TensorIntrin(_update_of(declared), _in_block(impl, body))


def _dot_by_words(buffers: Sequence[Buffer]) -> Stmt:
    a, b, out = buffers
    lanes = OUTPUTS * GROUP
    spread = Broadcast(reinterpret("int32", a.vload([0], f"uint8x{GROUP}")), OUTPUTS)
    left = reinterpret(f"int16x{lanes // 2}", spread)
    packed = reinterpret(f"int16x{lanes // 2}", b.vload([0, 0], f"int8x{lanes}"))
    made: Stmt = out.vstore([0], out.vload([0], f"int32x{OUTPUTS}") + by_words("llvm.x86.avx512.pmaddw.d.512", left, packed))
    return made


built_in("dot_16x4_vnni", lambda: _from_declared(dot_16x4_vnni()))
built_in("dot_16x2_avx512_bf16", lambda: _from_declared(dot_16x2_avx512_bf16()))
built_in("dot_16x4_avx512", _dot_16x4_avx512)
