"""FuseTIR: a function with the attribute "Primitive" becomes ONE tensor function.

The tensors of one computation stand in place of the placeholders of the next, so that a schedule sees all of it: a product with what is
elementwise behind it is one computation of two stages. Constants of one element become numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from ...errors import DeclarationError
from ...lower.passes import ModulePass
from ...te.declare import placeholder
from ...te.substitution import substituted
from ...te.tensor import Tensor
from ...tir.arithmetic import const as number
from ...tir.attrs import FrozenMap
from ...tir.expr import PrimExpr
from ...tir.expr import Var as Symbol
from ...tir.function import GlobalVar, IRModule, PrimFunc
from ...tir.op_registry import Op
from ...tir.structural import structural_equal
from ..expr import Call, Constant, Function, Tuple, TupleGetItem, Var
from ..struct_info import ShapeStructInfo, StructInfo, TensorStructInfo, TupleStructInfo
from ..tensor_function import Sizes, function_of_tensors, outline, plain_tensors
from ..visitor import Mutator
from .fused_functions import PRIMITIVE
from .moves import written_in_place
from .passes import graph_pass
from .signatures import ExpandTupleArguments, RemoveUnusedParameters
from .simple import DeadCodeElimination


def composed(func: Function, mod: IRModule) -> tuple[list[Tensor], list[Tensor]]:
    """The inputs and results of a function whose bindings are calls of tensor functions, as one computation.

    Raises:
        DeclarationError: if a value isn't one of tensors, or a callee can't be read as a computation with the loops that it has.
    """
    values: dict[Any, Any] = {}
    params = [param for param in func.params if not isinstance(param.struct_info, ShapeStructInfo)]
    sizes = Sizes([one.struct_info.extents for one in params if isinstance(one.struct_info, TensorStructInfo) and one.struct_info.extents])
    inputs: list[Tensor] = []
    for param in params:
        info = param.struct_info
        if not isinstance(info, TensorStructInfo) or info.extents is None or not info.dtype:
            raise DeclarationError(f"FuseTIR: {param.name_hint} is {info}, not a tensor of known shape and dtype")
        values[param] = placeholder([sizes.extent(one) for one in info.extents], info.dtype, param.name_hint)
        inputs.append(values[param])

    for binding in func.body.bindings():
        values[binding.var] = _value(binding.value, values, mod)
    result = _value(func.body.body, values, mod)
    return inputs, written_in_place(result if isinstance(result, list) else [result])


def _value(expr: Any, values: Mapping[Any, Any], mod: IRModule) -> Any:
    """What an expression computes, of the values of variables. (A function inside of `composed` that calls itself would keep the module and
    its weights, which nobody needs any more, until garbage is collected.)"""
    match expr:
        case Var():
            return values[expr]
        case Tuple(fields):
            return [_value(one, values, mod) for one in fields]
        case TupleGetItem(whole, index):
            return _value(whole, values, mod)[index]
        case Constant() if expr.data.ndim == 0:
            return number(expr.view().item(), str(expr.data.dtype))
        case Call() if isinstance(expr.op, Op) and expr.op == "relax.call_tir":
            args = _value(expr.args[1], values, mod)
            found = _applied(plain_tensors(_told(expr, mod)), args, expr.struct_info)
            return found[0] if len(found) == 1 else found
    raise DeclarationError(f"FuseTIR: {expr} is no call of a tensor function")


def _told(call: Call, mod: IRModule) -> PrimFunc:
    """The tensor function of a call, for the sizes that it is told (`tir_vars`)."""
    callee = mod[call.args[0]]
    if len(call.args) == 2:
        return callee
    info = call.args[2].struct_info
    told = info.values if isinstance(info, ShapeStructInfo) else None
    sizes = [param for param in callee.params if param not in callee.buffer_map]
    if told is None or len(told) != len(sizes):
        raise DeclarationError(f"FuseTIR: {call} tells {call.args[0]} sizes that aren't known")
    return callee.specialize(dict(zip(sizes, told, strict=True)))


def _applied(tensors: Sequence[Tensor], args: Sequence[Tensor | PrimExpr], result: StructInfo) -> list[Tensor]:
    """The results of a computation for arguments, which come first among its tensors; `result` gives symbols values, too."""
    placeholders, outputs = tensors[: len(args)], tensors[len(args) :]
    symbols: dict[Symbol, PrimExpr] = {}
    infos = result.fields if isinstance(result, TupleStructInfo) else [result]
    stated = [info.extents if isinstance(info, TensorStructInfo) else None for info in infos]
    # An argument that is a number has no extents, and gives no symbol a value.
    extents = [arg.shape if isinstance(arg, Tensor) else None for arg in args]
    for given, known in zip((*outputs, *placeholders), (*stated, *extents), strict=True):
        for own, extent in zip(given.shape, known or (), strict=False):
            if isinstance(own, Symbol) and own is not extent:
                symbols[own] = extent
    return substituted(outputs, dict(zip(placeholders, args, strict=True)), symbols)


class _Caller(Mutator):
    """Calls of fused functions become calls of tensor functions."""

    def __init__(self, made: Mapping[str, GlobalVar]) -> None:
        super().__init__()
        self._made = made

    def rewrite(self, expr: Any) -> Any:
        """A call of a tensor function in place of one of a fused function."""
        if not isinstance(expr, Call) or not isinstance(expr.op, GlobalVar) or expr.op.name_hint not in self._made:
            return expr
        # Sizes that the graph's function is told aren't asked for by the kernel.
        given = tuple(arg for arg in expr.args if not isinstance(arg.struct_info, ShapeStructInfo))
        return Call(Op.of("relax.call_tir"), (self._made[expr.op.name_hint], Tuple(given)), None, expr.struct_info)


class _Distinct:
    """Functions by what they are: the name of the first one that was seen of each."""

    def __init__(self) -> None:
        self._known: dict[Any, list[tuple[Any, str]]] = {}

    def seen(self, func: Any, name: str) -> str:
        """The name of the first function that equals this one, which may be itself."""
        # By what is quickly told: a hash of the structure takes longer than the few comparisons that it saves.
        key = outline(func) if isinstance(func, PrimFunc) else tuple(str(param.struct_info) for param in func.params)
        known = self._known.setdefault(key, [])
        found = next((first for other, first in known if structural_equal(other, func)), None)
        if found is None:
            known.append((func, name))
        return found or name


def FuseTIR() -> ModulePass:
    """A pass: functions with the attribute "Primitive" become private tensor functions; equal ones become one, and what nothing uses goes.

    They take the elements of tuples one by one, and nothing that they don't use.
    """

    def run(mod: IRModule) -> IRModule:
        names = {var.name_hint for var, func in mod.functions_items() if isinstance(func, Function) and func.attrs.get(PRIMITIVE)}
        private = mod.clone()
        for name in names:
            func: Any = mod[name]
            private.update_func(name, replace(func, attrs=FrozenMap({k: v for k, v in func.attrs.items() if k != "global_symbol"})))
        return DeadCodeElimination()(_fused(RemoveUnusedParameters()(ExpandTupleArguments()(private)), names) if names else mod)

    return graph_pass("FuseTIR", run)


def _fused(mod: IRModule, names: Set[str]) -> IRModule:
    """Functions of these names as tensor functions."""
    graphs, kernels = _Distinct(), _Distinct()
    callees: dict[str, GlobalVar] = {}
    new: dict[str, PrimFunc] = {}
    for name in (var.name_hint for var, _ in mod.functions_items() if var.name_hint in names):
        func: Any = mod[name]
        same = graphs.seen(func, name)
        if same != name:  # before it is composed: that takes longer
            callees[name] = callees[same]
            continue
        inputs, outputs = composed(func, mod)
        made = function_of_tensors(inputs, outputs).with_attr({k: v for k, v in func.attrs.items() if k != PRIMITIVE} or {})
        # Graphs that differ may compute the same, which shows once they are composed.
        first = kernels.seen(made, name)
        callees[name] = GlobalVar(first)
        new.setdefault(first, made)
    caller, whole = _Caller(callees), IRModule(attrs=mod.attrs, global_infos=mod.global_infos)
    for var, other in mod.functions_items():
        if var.name_hint in new:
            whole.update_func(var, new[var.name_hint])
        elif var.name_hint not in names:
            whole.update_func(var, caller.function(other) if isinstance(other, Function) else other)
    return whole
