"""Small passes: what nothing uses goes, what is known is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...lower.passes import ModulePass
from ...tir.function import GlobalVar, IRModule, PrimFunc
from ..analysis import remove_all_unused
from ..evaluator import Evaluator
from ..expr import (
    Binding,
    Call,
    Constant,
    ExternFunc,
    Function,
    If,
    Tuple,
    Var,
    VarBinding,
    const,
)
from ..ops.row import row_of
from ..struct_info import ShapeExpr, ShapeStructInfo, TensorStructInfo, TupleStructInfo, symbols_of
from ..visitor import Mutator, walk
from .passes import each_function, graph_pass

_LARGEST_FOLDED = 1 << 22  # elements of a constant that is made; more only where it frees as many


def DeadCodeElimination(entry_functions: Sequence[str] | None = None) -> ModulePass:
    """A pass: bindings and functions that nothing uses go. `entry_functions` are used; without them those with a "global_symbol" and
    registered ones are.
    """

    def run(mod: IRModule) -> IRModule:
        made = IRModule(attrs=mod.attrs, global_infos=mod.global_infos)
        functions: dict[str, Any] = {var.name_hint: func for var, func in mod.functions_items()}
        waiting = [n for n, f in functions.items() if n in (entry_functions or ()) or (not entry_functions and _is_entry(f))]
        reached: dict[str, Any] = {}
        while waiting:
            name = waiting.pop()
            if name in reached or name not in functions:
                continue
            func = functions[name]
            # Pruned before its callees are looked for: what only unused bindings call isn't reached.
            reached[name] = remove_all_unused(func) if isinstance(func, Function) else func
            if isinstance(func, Function):
                waiting += [node.name_hint for node in walk(reached[name].body) if isinstance(node, GlobalVar)]
        for name in functions:
            if name in reached:
                made.update_func(name, reached[name])
        return made

    return graph_pass("DeadCodeElimination", run)


def _is_entry(func: Any) -> bool:
    if isinstance(func, ExternFunc):
        return True
    return "global_symbol" in getattr(func, "attrs", {}) and not (isinstance(func, PrimFunc) and func.attrs.get("tir.is_private"))


class _Folder(Mutator):
    """Computes calls of constants."""

    def binding(self, binding: Binding) -> list[Binding]:
        """None for a variable that is a constant, which its uses become."""
        made = super().binding(binding)
        value = made[0].value
        if isinstance(binding, VarBinding) and (isinstance(value, (Constant, ShapeExpr)) or _is_tuple_of_constants(value)):
            self._variables[binding.var] = made[0].value
            return []
        return made

    def rewrite(self, expr: Any) -> Any:
        """A constant in place of a call of constants."""
        found = folded(expr)
        return expr if found is None else found


def folded(expr: Any) -> Any:
    """What a call is that depends on constants and known extents alone: a constant, a tuple of these, a shape; None for others."""
    row = row_of(expr)
    if row is None or not row.is_pure:
        return None
    info = expr.struct_info
    if isinstance(info, ShapeStructInfo) and info.values is not None:
        return ShapeExpr(info.values)
    infos = info.fields if isinstance(info, TupleStructInfo) else (info,)
    if row.numpy is None or not infos or not all(map(_is_constant, expr.args)):
        return None
    elements = 0
    for one in infos:
        if not isinstance(one, TensorStructInfo) or one.extents is None:
            return None
        # An extent with a symbol counts as too large.
        elements += int(np.prod([getattr(extent, "value", _LARGEST_FOLDED + 1) for extent in one.extents], dtype=np.int64))
    given = sum(int(np.prod(node.data.shape)) for arg in expr.args for node in walk(arg) if isinstance(node, Constant))
    if elements > max(_LARGEST_FOLDED, given):
        return None
    values = Evaluator(IRModule()).apply(Function((), expr), (), row.name, {}, {})
    return Tuple(tuple(map(const, values))) if isinstance(info, TupleStructInfo) else const(values)


def _is_tuple_of_constants(expr: Any) -> bool:
    return isinstance(expr, Tuple) and all(isinstance(one, Constant) for one in expr.fields)


def _is_constant(expr: Any) -> bool:
    # Begins and ends of slices are tuples of numbers.
    if isinstance(expr, Tuple):
        return all(map(_is_constant, expr.fields))
    return not isinstance(expr, (Var, Call, If)) and not symbols_of(expr.struct_info)


def FoldConstant() -> ModulePass:
    """A pass: calls of constants are computed by the operators' meaning on NumPy's arrays, up to four million elements or as many as go."""
    return each_function("FoldConstant", lambda func, mod: _Folder().function(func))
