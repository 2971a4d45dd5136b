"""Operations by name, and what programs register about them."""

from ..tir.op_registry import CallEffectKind, Op, register_intrin_lowering, register_op_attr

__all__ = ["CallEffectKind", "Op", "register_intrin_lowering", "register_op_attr"]
