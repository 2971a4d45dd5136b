"""Rewrites whose new values may be nested: a builder binds what is inside of them."""

from __future__ import annotations

from typing import Any

from ..tir.function import IRModule
from .block_builder import BlockBuilder
from .expr import BindingBlock, Call, DataflowBlock, DataflowVar, If, MatchCast, SeqExpr, TupleGetItem, Var, VarBinding
from .visitor import Mutator


class Rebuilder(Mutator):
    """A `Mutator` that emits bindings: `rewrite` may emit others before, and return what isn't bound yet.

    A variable of a dataflow block that is another value by another name is that value.

    Args:
        mod: the module whose functions are rewritten, to which `builder_` adds tensor functions; none is added to this one.
    """

    def __init__(self, mod: IRModule | None = None) -> None:
        super().__init__()
        self.builder_ = BlockBuilder(mod)

    def block(self, block: BindingBlock) -> BindingBlock:
        """A block rewritten; itself if nothing changes."""
        self.builder_.begin_block(isinstance(block, DataflowBlock))
        for binding in block.bindings:
            self.emit_binding(binding)
        made = self.builder_.end_block()
        same = len(made.bindings) == len(block.bindings) and all(a is b for a, b in zip(made.bindings, block.bindings, strict=True))
        return block if same else made

    def emit_binding(self, binding: Any) -> None:
        """Emit what stands in place of a binding."""
        if isinstance(binding, MatchCast):
            value = self.builder_.normalize(self.visit(binding.value))
            kept = value is binding.value
            self.builder_.emit_normalized(
                binding if kept else MatchCast(self.define(binding.var, binding.struct_info), value, binding.struct_info)
            )
            return
        self.emit_value(binding, self.visit(binding.value))

    def emit_value(self, binding: VarBinding, value: Any) -> None:
        """Emit a new value for the variable of a binding."""
        made = self.builder_.normalize(value)
        # An alias that was there before stays: only a new one is a result of rewriting.
        if isinstance(binding.var, DataflowVar) and isinstance(made, Var) and made is not binding.value:
            self._variables[binding.var] = made
        elif made is binding.value:
            self.builder_.emit_normalized(binding)
        else:
            self.builder_.emit_normalized(VarBinding(self.define(binding.var, made.struct_info), made))

    def _mapped(self, expr: Any) -> Any:
        if not isinstance(expr, SeqExpr):
            return super()._mapped(expr)
        blocks = [self.block(block) for block in expr.blocks]
        self.builder_.begin_block(False)
        body = self.visit(expr.body)
        if body is not expr.body:
            body = self.builder_.emit(body) if isinstance(body, (Call, If, TupleGetItem)) else self.builder_.normalize(body)
        blocks = [block for block in (*blocks, self.builder_.end_block()) if block.bindings]
        same = body is expr.body and len(blocks) == len(expr.blocks) and all(a is b for a, b in zip(blocks, expr.blocks, strict=True))
        return expr if same else SeqExpr(tuple(blocks), body)
