"""What has effects, and what nothing uses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from ...tir.analysis.purity import is_pure_function
from ...tir.function import GlobalVar, IRModule, PrimFunc
from ...tir.op_registry import Op
from ..expr import Binding, BindingBlock, Call, ExternFunc, Function, MatchCast, SeqExpr, Var
from ..ops.row import row_of
from ..visitor import Mutator, operands, walk

RESET = "vm.builtin.tuple_reset_item"
_Pruned = TypeVar("_Pruned", Function, SeqExpr)


def is_pure(expr: Any) -> bool:
    """Whether an expression has no effect but its value. Functions of a module that isn't at hand may have."""
    return next(impure_calls(expr), None) is None


def contains_impure_call(expr: Any, own_name: Any = None, mod: IRModule | None = None) -> bool:
    """Whether an expression calls what has effects; functions that are defined inside are not called by that.

    Args:
        expr: the expression, such as a function.
        own_name: the variable of the function itself, whose calls don't count.
        mod: its functions say themselves whether they have effects; without it, none has.
    """
    inside = expr.body if isinstance(expr, Function) else expr
    return any(call.op is not own_name and call.op != own_name for call in impure_calls(inside, IRModule() if mod is None else mod))


def impure_calls(expr: Any, mod: IRModule | None = None) -> Iterator[Call]:
    """The calls with effects, but for those of functions that are defined inside.

    Args:
        expr: the expression.
        mod: its functions say themselves whether they have effects, and others have none; without a module all may have.
    """
    stack = [expr]
    while stack:
        node = stack.pop()
        # To define a function calls nothing of what is in it.
        if not isinstance(node, Function):
            stack.extend(operands(node))
        if isinstance(node, Call):
            row = row_of(node)
            if not (isinstance(node.op, Op) if row is None else row.is_pure) and not _is_pure_function(node.op, mod):
                yield node


def _is_pure_function(callee: Any, mod: IRModule | None) -> bool:
    if isinstance(callee, GlobalVar):
        if mod is None or callee not in mod:
            return mod is not None
        func = mod[callee]
        return is_pure_function(func) if isinstance(func, PrimFunc) else bool(getattr(func, "is_pure", False))
    info = getattr(callee, "struct_info", None)
    return not isinstance(callee, ExternFunc) and bool(getattr(info, "purity", False))


def remove_all_unused(func: _Pruned) -> _Pruned:
    """A function, or a sequence, without bindings that nothing uses and that have no effect."""
    pruned: _Pruned = _Remover().visit(func)
    return pruned


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
    # From the end, so that all readers of a value are judged before it. A cast stays, as it is a check that may fail.
    for block in reversed(sequence.blocks):
        kept: list[Binding] = []
        for binding in reversed(block.bindings):
            if binding.var in used or isinstance(binding, MatchCast) or not is_pure(binding.value) or _is_release(binding.value):
                used.update(_variables(binding.value))
                kept.append(binding)
        changed |= len(kept) != len(block.bindings)
        if kept:
            blocks.append(type(block)(tuple(reversed(kept))))
    return SeqExpr(tuple(reversed(blocks)), sequence.body) if changed else sequence


def _is_release(value: Any) -> bool:
    """Whether a call lets go of what isn't read any more: it changes no value, and memory is free by it."""
    return isinstance(value, Call) and bool(value.args) and getattr(value.args[0], "global_symbol", "") == RESET


def _variables(expr: Any) -> Sequence[Any]:
    return [node for node in walk(expr) if isinstance(node, Var)]
