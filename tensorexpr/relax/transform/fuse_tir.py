"""FuseTIR: a function with the attribute "Primitive" becomes ONE tensor function.

The tensors of one computation stand in place of the placeholders of the next, so that a schedule sees all of it: a product with what is
elementwise behind it is one computation of two stages. Constants of one element become numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from ...dataclass import replace
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
from ..expr import Call, Constant, Function, PrimValue, Tuple, TupleGetItem, Var
from ..relations import bind_symbols
from ..struct_info import PrimStructInfo, ShapeExpr, ShapeStructInfo, StructInfo, TensorStructInfo, TupleStructInfo, symbols_of
from ..tensor_function import Argument, Sizes, function_of_tensors, outline, plain_arguments
from ..visitor import Mutator
from .fuse_blocks import Fused, fused_blocks, lost_sizes, symbol_of, told
from .fused_functions import PRIMITIVE
from .moves import written_in_place
from .passes import graph_pass
from .signatures import ExpandTupleArguments, RemoveUnusedParameters
from .simple import DeadCodeElimination


def composed(func: Function, mod: IRModule) -> tuple[list[Argument], list[Tensor]]:
    """The inputs and results of a function whose bindings are calls of tensor functions, as one computation.

    Raises:
        DeclarationError: if a value isn't one of tensors, or a callee can't be read as a computation with the loops that it has.
    """
    values: dict[Any, Any] = {}
    params = [param for param in func.params if not isinstance(param.struct_info, ShapeStructInfo)]
    sizes = Sizes([one.struct_info.extents for one in params if isinstance(one.struct_info, TensorStructInfo) and one.struct_info.extents])
    inputs: list[Argument] = []
    for param in params:
        info = param.struct_info
        if isinstance(info, PrimStructInfo):
            values[param] = symbol_of(param)
        elif not isinstance(info, TensorStructInfo) or info.extents is None or not info.dtype:
            raise DeclarationError(f"FuseTIR: {param.name_hint} is {info}, not a tensor of known shape and dtype")
        else:
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
        case PrimValue(value):
            return value
        case Call() if isinstance(expr.op, Op) and expr.op == "relax.call_tir":
            args = _value(expr.args[1], values, mod)
            found = _applied(plain_arguments(mod[expr.args[0]]), args, expr.struct_info, told(expr))
            return found[0] if len(found) == 1 else found
    raise DeclarationError(f"FuseTIR: {expr} is no call of a tensor function")


def _applied(
    arguments: Sequence[Argument], args: Sequence[Tensor | PrimExpr], result: StructInfo, sizes: Sequence[PrimExpr]
) -> list[Tensor]:
    """The results of a computation for arguments, which come first among its own; `result` gives symbols values, and `sizes` the last."""
    infos = result.fields if isinstance(result, TupleStructInfo) else [result]
    if len(arguments) != len(args) + len(infos) + len(sizes):
        raise DeclarationError(
            f"FuseTIR: {len(args)} arguments, {len(infos)} results and {len(sizes)} sizes for {len(arguments)} parameters"
        )
    given, outputs = arguments[: len(args)], arguments[len(args) : len(args) + len(infos)]
    symbols: dict[Symbol, PrimExpr] = {}
    tensors: dict[Tensor, Tensor | PrimExpr] = {}
    for own, actual in zip((*given, *arguments[len(args) + len(infos) :]), (*args, *sizes), strict=True):
        if isinstance(own, Tensor):
            tensors[own] = actual
        elif isinstance(actual, Tensor):
            raise DeclarationError(f"FuseTIR: {own.name} is a number, and {actual.op.name} a tensor")
        elif own is not actual:
            symbols[own] = actual
    if not all(isinstance(one, Tensor) for one in outputs):
        raise DeclarationError("FuseTIR: a number is no result")
    stated = [info.extents if isinstance(info, TensorStructInfo) else None for info in infos]
    # An argument that is a number has no extents, and gives no symbol a value.
    extents = [actual.shape if isinstance(actual, Tensor) else None for actual in tensors.values()]
    for one, known in zip((*outputs, *tensors), (*stated, *extents), strict=True):
        for own, extent in zip(one.shape, known or (), strict=False):  # type: ignore[union-attr]
            if isinstance(own, Symbol) and own is not extent:
                symbols.setdefault(own, extent)
    return substituted(outputs, tensors, symbols)  # type: ignore[arg-type]


def _as_one(func: Function, mod: IRModule) -> Fused:
    """A function of calls as one tensor function: one computation if it can be, else the loops that there are."""
    attrs = {k: v for k, v in func.attrs.items() if k != PRIMITIVE}
    try:
        inputs, outputs = composed(func, mod)
    except DeclarationError as error:
        try:
            return fused_blocks(func, mod, attrs)
        except DeclarationError:
            raise error from None
    known = Sizes([one.shape for one in (*inputs, *outputs) if isinstance(one, Tensor)])
    needed = known.unknown(outputs) - {*inputs}
    # In the order of names, as `emit_te` has them.
    sizes = lost_sizes(func, sorted(needed & _given(func), key=lambda symbol: symbol.name))
    return Fused(function_of_tensors(inputs, outputs, sizes).with_attr(attrs or {}), sizes, [-1] * len(outputs))


def _given(func: Function) -> set[Symbol]:
    return {symbol for param in func.params for symbol in symbols_of(param.struct_info)}


class _Caller(Mutator):
    """Calls of fused functions become calls of tensor functions."""

    def __init__(self, graphs: IRModule, made: Mapping[str, tuple[GlobalVar, Fused]]) -> None:
        super().__init__()
        self._graphs, self._made = graphs, made

    def rewrite(self, expr: Any) -> Any:
        """A call of a tensor function in place of one of a fused function."""
        if not isinstance(expr, Call) or not isinstance(expr.op, GlobalVar) or expr.op.name_hint not in self._made:
            return expr
        callee, fused = self._made[expr.op.name_hint]
        # Sizes that the graph's function is told are told the kernel where its arguments don't say them.
        given = tuple(arg for arg in expr.args if not isinstance(arg.struct_info, ShapeStructInfo))
        extra = (ShapeExpr(tuple(self._sizes(expr, fused.sizes))),) if fused.sizes else ()
        if all(place < 0 for place in fused.places):
            return Call(Op.of("relax.call_tir"), (callee, Tuple(given), *extra), None, expr.struct_info)
        attrs = {"inplace_indices": tuple(fused.places)}
        return Call(Op.of("relax.call_tir_inplace"), (callee, Tuple(given), *extra), attrs, expr.struct_info)

    def _sizes(self, call: Call, wanted: Sequence[Symbol]) -> Iterator[PrimExpr]:
        func: Any = self._graphs[call.op]
        known: dict[Symbol, PrimExpr] = {}
        for param, arg in zip(func.params, call.args, strict=True):
            if isinstance(param.struct_info, ShapeStructInfo):
                bind_symbols(param.struct_info, arg.struct_info, known)
        for symbol in wanted:
            if symbol not in known:
                raise DeclarationError(f"FuseTIR: {call} doesn't say what {symbol.name} is")
            yield known[symbol]


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
    callees: dict[str, tuple[GlobalVar, Fused]] = {}
    new: dict[str, PrimFunc] = {}
    for name in (var.name_hint for var, _ in mod.functions_items() if var.name_hint in names):
        func: Any = mod[name]
        same = graphs.seen(func, name)
        if same != name:  # before it is composed: that takes longer
            # Its symbols are its own, in the order of those of the first.
            own, (callee, fused) = _sizes_of(func), callees[same]
            callees[name] = callee, replace(fused, sizes=[own[_sizes_of(mod[same]).index(one)] for one in fused.sizes])
            continue
        made = _as_one(func, mod)
        # Graphs that differ may compute the same, which shows once they are composed.
        first = kernels.seen(made.func, name)
        callees[name] = GlobalVar(first), made
        new.setdefault(first, made.func)
    caller, whole = _Caller(mod, callees), IRModule(attrs=mod.attrs, global_infos=mod.global_infos)
    for var, other in mod.functions_items():
        if var.name_hint in new:
            whole.update_func(var, new[var.name_hint])
        elif var.name_hint not in names:
            whole.update_func(var, caller.function(other) if isinstance(other, Function) else other)
    return whole


def _sizes_of(func: Any) -> list[Symbol]:
    """The symbols that a function is told as shapes, in order."""
    infos = [param.struct_info for param in func.params if isinstance(param.struct_info, ShapeStructInfo)]
    return [symbol for info in infos for symbol in info.values or () if isinstance(symbol, Symbol)]
