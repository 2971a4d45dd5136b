"""What has effects, and what nothing uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...tir.op_registry import Op
from ..expr import Binding, BindingBlock, Call, ExternFunc, Function, MatchCast, SeqExpr, Var
from ..ops.row import row_of
from ..visitor import Mutator, walk


def is_pure(expr: Any) -> bool:
    """Whether an expression has no effect but its value."""
    for node in walk(expr):
        if isinstance(node, Call):
            row = row_of(node)
            if row is None and not isinstance(node.op, Op) and (isinstance(node.op, ExternFunc) or not _is_pure_function(node.op)):
                return False
            if row is not None and not row.is_pure:
                return False
    return True


def _is_pure_function(callee: Any) -> bool:
    info = getattr(callee, "struct_info", None)
    return bool(getattr(info, "purity", False))


def remove_all_unused(func: Function) -> Function:
    """A function without bindings that nothing uses and that have no effect."""
    return _Remover().function(func)


class _Remover(Mutator):
    """Prunes sequences, inner ones first."""

    def rewrite(self, expr: Any) -> Any:
        """A sequence without what nothing uses."""
        return _pruned(expr) if isinstance(expr, SeqExpr) else expr


def _pruned(sequence: SeqExpr) -> SeqExpr:
    """A sequence without what it doesn't use itself; what is inside of it uses no more than it says."""
    used: set[Any] = set(_variables(sequence.body))
    blocks: list[BindingBlock] = []
    changed = False
    for block in reversed(sequence.blocks):
        kept: list[Binding] = []
        for binding in reversed(block.bindings):
            if binding.var in used or isinstance(binding, MatchCast) or not is_pure(binding.value):
                used.update(_variables(binding.value))
                kept.append(binding)
        changed |= len(kept) != len(block.bindings)
        if kept:
            blocks.append(type(block)(tuple(reversed(kept))))
    return SeqExpr(tuple(reversed(blocks)), sequence.body) if changed else sequence


def _variables(expr: Any) -> Sequence[Any]:
    return [node for node in walk(expr) if isinstance(node, Var)]
