"""Small passes: what nothing uses goes, what is known is computed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import TensorExprError
from ...lower.passes import ModulePass
from ...lower.transform.inline_private_functions import callees_of
from ...tir.expr import IntImm
from ...tir.function import GlobalVar, IRModule, PrimFunc
from ..analysis import remove_all_unused
from ..evaluator import Evaluator
from ..expr import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    ExternFunc,
    Function,
    If,
    SeqExpr,
    Tuple,
    Var,
    VarBinding,
    const,
)
from ..ops.row import row_of
from ..struct_info import ShapeExpr, ShapeStructInfo, TensorStructInfo, TupleStructInfo, symbols_of
from ..visitor import Mutator, walk
from .passes import each_function, graph_pass

_logger = logging.getLogger(__name__)
_LARGEST_INTERPRETED = 1 << 10  # elements that a tensor function reads and writes; compiling one takes as long as a few thousand
_LARGEST_FOLDED = 1 << 22  # elements of a constant that is made; more only where it frees as many


def DeadCodeElimination(entry_functions: Sequence[str] | None = None) -> ModulePass:
    """A pass: bindings and functions that nothing uses go.

    Args:
        entry_functions: names of private functions that are used from outside, as those with a "global_symbol" and registered ones are.
    """

    def run(mod: IRModule) -> IRModule:
        made = IRModule(attrs=mod.attrs, global_infos=mod.global_infos)
        functions: dict[str, Any] = {var.name_hint: func for var, func in mod.functions_items()}
        waiting = [name for name, func in functions.items() if name in (entry_functions or ()) or _is_entry(func)]
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
            elif isinstance(func, PrimFunc):
                waiting += [var.name_hint for var in callees_of(func)]
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
    """Computes calls of constants.

    Args:
        mod: where tensor functions are.
    """

    def __init__(self, mod: IRModule) -> None:
        super().__init__()
        self._mod = mod

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
        found = _kernel_folded(expr, self._mod) if isinstance(expr, Call) and expr.op == "relax.call_tir" else folded(expr)
        return expr if found is None else found


def folded(expr: Any) -> Any:
    """What a call is that depends on constants and known extents alone: a constant, a tuple of these, a shape; None for others."""
    row = row_of(expr)
    if row is None or not row.is_pure:
        return None
    info = expr.struct_info
    if isinstance(info, ShapeStructInfo) and info.values is not None:
        return ShapeExpr(info.values)
    if isinstance(info, ShapeStructInfo) and row.numpy is not None and expr.args and all(map(_is_constant, expr.args)):
        extents = Evaluator(IRModule()).apply(Function((), expr), (), row.name, {}, {})
        return ShapeExpr(tuple(IntImm("int64", int(one)) for one in extents))
    infos = info.fields if isinstance(info, TupleStructInfo) else (info,)
    if row.numpy is None or not infos or not all(map(_is_constant, expr.args)) or _elements(expr, infos) is None:
        return None
    values = Evaluator(IRModule()).apply(Function((), expr), (), row.name, {}, {})
    return Tuple(tuple(map(const, values))) if isinstance(info, TupleStructInfo) else const(values)


def _elements(call: Call, infos: Sequence[Any]) -> int | None:
    """The elements of results and of constants that a call reads; None for results that aren't known, or too large."""
    elements = 0
    for one in infos:
        if not isinstance(one, TensorStructInfo) or one.extents is None or not one.dtype:
            return None
        # An extent with a symbol counts as too large.
        elements += int(np.prod([getattr(extent, "value", _LARGEST_FOLDED + 1) for extent in one.extents], dtype=np.int64))
    given = sum(int(np.prod(node.data.shape)) for arg in call.args for node in walk(arg) if isinstance(node, Constant))
    return None if elements > max(_LARGEST_FOLDED, given) else elements + given


def _kernel_folded(call: Call, mod: IRModule) -> Any:
    """What a call of a tensor function gives whose arguments are constants; None for others, and where it can't be computed here."""
    args, info = call.args[1], call.struct_info
    infos = info.fields if isinstance(info, TupleStructInfo) else (info,)
    callee: Any = mod[call.args[0]] if isinstance(call.args[0], GlobalVar) and call.args[0] in mod else None
    if not isinstance(callee, PrimFunc) or not isinstance(args, Tuple) or not all(map(_is_constant, call.args[1:])):
        return None
    # A call of constants alone: what reads nothing, as zeros does, would only take memory.
    elements = _elements(call, infos) if any(isinstance(one, Constant) for one in args.fields) else None
    if elements is None:
        return None
    try:
        values = _computed(call, mod, elements)
    except TensorExprError as error:
        _logger.info("%s is left as it is: %s", call.args[0].name_hint, error)
        return None
    return Tuple(tuple(map(const, values))) if isinstance(info, TupleStructInfo) else const(values)


def _computed(call: Call, mod: IRModule, elements: int) -> Any:
    """The values of a call of constants: by the interpreter where it takes less time than a compiler."""
    names = {name for var in (call.args[0],) for name in _reached(var.name_hint, mod)}
    functions: dict[Any, Any] = {name: mod[name] for name in names}
    if elements <= _LARGEST_INTERPRETED:
        return Evaluator(IRModule(functions)).apply(Function((), call), (), call.args[0].name_hint, {}, {})
    from ..build import build  # which has these passes in its pipeline
    from ..runtime.machine import VirtualMachine

    given = [one for one in call.args[1].fields if isinstance(one, Constant)]
    params = {one: Var("x", one.struct_info) for one in given}
    fields = tuple(params.get(one, one) for one in call.args[1].fields)
    result = Var("y", call.struct_info)
    inner = Call(call.op, (call.args[0], Tuple(fields), *call.args[2:]), call.attrs, call.sinfo_args)
    main = Function(tuple(params.values()), SeqExpr((BindingBlock((VarBinding(result, inner),)),), result))
    functions["main"] = main.with_attr("global_symbol", "main")
    machine = VirtualMachine(build(IRModule(functions), "llvm"))
    found = machine["main"](*(one.data for one in params))
    return tuple(one.numpy() for one in found) if isinstance(call.struct_info, TupleStructInfo) else found.numpy()


def _reached(name: str, mod: IRModule) -> set[str]:
    """A tensor function and those that it calls."""
    found, waiting = set[str](), [name]
    while waiting:
        one = waiting.pop()
        if one not in found and one in mod:
            found.add(one)
            waiting += [var.name_hint for var in callees_of(mod[one])]
    return found


def _is_tuple_of_constants(expr: Any) -> bool:
    return isinstance(expr, Tuple) and all(isinstance(one, Constant) for one in expr.fields)


def _is_constant(expr: Any) -> bool:
    # Begins and ends of slices are tuples of numbers.
    if isinstance(expr, Tuple):
        return all(map(_is_constant, expr.fields))
    return not isinstance(expr, (Var, Call, If)) and not symbols_of(expr.struct_info)


def FoldConstant() -> ModulePass:
    """A pass: calls of constants are computed, up to four million elements or as many as go.

    Operators by their meaning on NumPy's arrays, tensor functions by the interpreter or, from a thousand elements on, as machine code.
    """
    return each_function("FoldConstant", lambda func, mod: _Folder(mod).function(func))
