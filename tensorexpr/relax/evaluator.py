"""What a graph means, on NumPy's arrays: the oracle of passes and of the virtual machine. Slow, and obvious.

Tensors are arrays, shapes tuples of integers, tuples tuples; symbols get their values where a parameter or a match_cast has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..errors import ArgumentError, DeclarationError, GraphAssertionError
from ..tir.arithmetic import as_int
from ..tir.dtype import from_numpy, to_numpy
from ..tir.expr import FloatImm, IntImm, PrimExpr
from ..tir.expr import Var as Symbol
from ..tir.function import GlobalVar, IRModule, PrimFunc
from ..tir.rewriting import substitute
from .expr import (
    Call,
    Constant,
    DataTypeImm,
    ExternFunc,
    Function,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
)
from .external import EXTERNAL, external_functions
from .ops.loop import iterate
from .ops.row import Row, row_of
from .struct_info import PrimStructInfo, ShapeExpr, ShapeStructInfo, StructInfo, TensorStructInfo, TupleStructInfo


def extents_of(values: Sequence[PrimExpr], symbols: Mapping[Symbol, int]) -> tuple[int, ...]:
    """The numbers that expressions of symbols are.

    Raises:
        ArgumentError: for a symbol without a value.
    """
    return tuple(number_of(value, symbols) for value in values)


def number_of(value: PrimExpr, symbols: Mapping[Symbol, int]) -> int:
    """The number that an expression of symbols is.

    Raises:
        ArgumentError: for a symbol without a value.
    """
    from ..arith.analyzer import Analyzer

    found = as_int(value)
    if found is None:
        found = as_int(Analyzer().simplify(substitute(value, {var: IntImm(var.dtype, number) for var, number in symbols.items()})))
    if found is None:
        raise ArgumentError(f"the extent {value} depends on symbols that no argument gives a value")
    return found


def matched(value: Any, info: StructInfo, symbols: dict[Symbol, int], what: str) -> None:
    """Check a value against what is known of it, and give symbols that are extents by themselves their values.

    Raises:
        ArgumentError: naming what doesn't fit.
    """
    match info:
        case TensorStructInfo():
            if not hasattr(value, "shape") or not hasattr(value, "dtype"):
                raise ArgumentError(f"{what} is a {type(value).__name__}, where {info} is expected")
            dtype = value.dtype if isinstance(value.dtype, str) else _dtype_name(value.dtype)
            if info.dtype and dtype != info.dtype:
                raise ArgumentError(f"{what} has dtype {dtype}, where {info} is expected")
            if info.ndim not in (-1, len(value.shape)):
                raise ArgumentError(f"{what} has {len(value.shape)} dimensions, where {info} is expected")
            if info.extents is not None:
                _match_extents(value.shape, info.extents, info, symbols, what)
        case ShapeStructInfo():
            if info.ndim not in (-1, len(value)):
                raise ArgumentError(f"{what} has {len(value)} extents, where {info} is expected")
            if info.values is not None:
                _match_extents(value, info.values, info, symbols, what)
        case PrimStructInfo() if info.value is not None:
            _match_extents((int(value),), (info.value,), info, symbols, what)
        case PrimStructInfo(dtype) if dtype not in ("", "handle") and not isinstance(value, (bool, int, float, np.generic)):
            raise ArgumentError(f"{what} is a {type(value).__name__}, where a number, {info}, is expected")
        case TupleStructInfo(fields):
            if len(value) != len(fields):
                raise ArgumentError(f"{what} has {len(value)} elements, where {info} is expected")
            for number, (one, field) in enumerate(zip(value, fields, strict=True)):
                matched(one, field, symbols, f"{what}[{number}]")


def said(values: Sequence[Any], text: str, between: str = ", ") -> str:
    """What a graph prints, or says of a condition that doesn't hold: values in a format, or one after the other without one."""

    def shown(value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return f"({', '.join(str(shown(one)) for one in value)}{',' * (len(value) == 1)})"
        return value.numpy() if hasattr(value, "numpy") else value

    given = list(map(shown, values))
    return text.format(*given) if text else between.join(map(str, given))


def _dtype_name(dtype: Any) -> str:
    return str(dtype) if dtype.kind in "OSU" else from_numpy(dtype)


def _wish(extent: PrimExpr, symbols: Mapping[Symbol, int]) -> str:
    """What an extent should be."""
    number = number_of(extent, symbols)
    return str(number) if as_int(extent) is not None else f"{extent} is {number}"


def _match_extents(found: Sequence[int], stated: Sequence[PrimExpr], info: StructInfo, symbols: dict[Symbol, int], what: str) -> None:
    # First the symbols by themselves: of (n * 2, n) the second extent says what the first has to be.
    for number, extent in zip(found, stated, strict=True):
        if isinstance(extent, Symbol):
            symbols.setdefault(extent, int(number))
    for number, extent in zip(found, stated, strict=True):
        if number_of(extent, symbols) != number:
            raise ArgumentError(f"{what} has shape {tuple(found)}, where {info} is expected: {_wish(extent, symbols)}, not {number}")


class Evaluator:
    """Evaluates functions of a module.

    Args:
        mod: the module.
        functions: registered functions by name; the registry's if None. Those of code generators come before both.
    """

    def __init__(self, mod: IRModule, functions: Mapping[str, Callable[..., Any]] | None = None) -> None:
        self._mod = mod
        self._functions = {**(functions or {}), **external_functions(mod.attrs.get(EXTERNAL, ()))}

    def __call__(self, name: str, *args: Any) -> Any:
        """What a function returns for arrays.

        Raises:
            ArgumentError: for arguments that don't fit.
        """
        return self.apply(self.function(name), [_array(arg) for arg in args], name, {}, {})

    def function(self, name: str) -> Function:
        """A function of the graph.

        Raises:
            DeclarationError: if it is a tensor function, or there is none.
        """
        func: Any = self._mod[name]
        if not isinstance(func, Function):
            raise DeclarationError(f"{name} is a tensor function, not one of a graph")
        return func

    def apply(self, func: Function, args: Sequence[Any], name: str, around: Mapping[Var, Any], outer: Mapping[Symbol, int]) -> Any:
        """What a function is for values; `around` are those of variables around a closure."""
        if len(args) != len(func.params):
            raise ArgumentError(f"{name} takes {len(func.params)} arguments, not {len(args)}")
        values, symbols = dict(around), dict(outer)
        for number, (param, arg) in enumerate(zip(func.params, args, strict=True)):
            matched(arg, param.struct_info, symbols, f"argument {number} ({param.name_hint}) of {name}")
            values[param] = arg
        return _Frame(self, values, symbols).value(func.body)

    def registered(self, name: str) -> Callable[..., Any]:
        """A registered function."""
        if name in self._functions:
            return self._functions[name]
        from ..runtime.registry import get_global_func

        found: Callable[..., Any] = get_global_func(name)
        return found


def _interpret(func: PrimFunc, args: list[Any]) -> Any:
    from ..tir.interpreter import interpret  # constants are folded without it

    return interpret(func, args)


def _returned(value: Any) -> Any:
    """What a tensor function returns: a number, or nothing, which is the empty tuple."""
    return () if value is None else value


def _array(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(map(_array, value))
    return value.numpy() if hasattr(value, "numpy") else value


class _Frame:
    """One call of a function."""

    def __init__(self, evaluator: Evaluator, values: dict[Var, Any], symbols: dict[Symbol, int]) -> None:
        self._evaluator = evaluator
        self._values = values
        self._symbols = symbols

    def value(self, expr: Any) -> Any:
        """What an expression is."""
        match expr:
            case Var():
                return self._values[expr]
            case Constant():
                return expr.view()
            case ShapeExpr(values):
                return extents_of(values, self._symbols)
            case PrimValue(value):
                if isinstance(value, FloatImm):
                    return value.value
                number = number_of(value, self._symbols)
                return bool(number) if value.dtype == "bool" else number
            case StringImm(value) | DataTypeImm(value):
                return value
            case Tuple(fields):
                return tuple(map(self.value, fields))
            case TupleGetItem(value, index):
                return self.value(value)[index]
            case If(cond, yes, no):
                return self.value(yes if bool(np.asarray(self.value(cond)).reshape(())) else no)
            case SeqExpr():
                return self._sequence(expr)
            case Function():
                return lambda *args: self._evaluator.apply(expr, args, "a closure", self._values, self._symbols)
            case ExternFunc(name):
                return self._evaluator.registered(name)
            case GlobalVar():
                return self._function(expr)
            case Call():
                return self._call(expr)
        raise DeclarationError(f"{type(expr).__name__} has no value")

    def _function(self, var: GlobalVar) -> Callable[..., Any]:
        func: Any = self._evaluator._mod[var]
        if isinstance(func, PrimFunc):
            return lambda *args: _returned(_interpret(func, list(args)))
        return lambda *args: self._evaluator.apply(func, args, var.name_hint, {}, {})

    def _sequence(self, sequence: SeqExpr) -> Any:
        for binding in sequence.bindings():
            value = self.value(binding.value)
            if isinstance(binding, MatchCast):
                matched(value, binding.struct_info, self._symbols, binding.var.name_hint)
            self._values[binding.var] = value
            if isinstance(binding.value, Function):
                func = binding.value
                # Over the frame's own dictionary: a closure finds itself there, and what is bound later.
                self._values[binding.var] = lambda *args, func=func: self._evaluator.apply(
                    func, args, "a closure", self._values, self._symbols
                )
        return self.value(sequence.body)

    def _call(self, call: Call) -> Any:
        row = row_of(call)
        if row is not None and row.numpy is not None:
            given = {
                name: self.value(value) if name in row.arguments and value is not None else value for name, value in row.bound(call).items()
            }
            return meaning(row, given, call.struct_info)
        name = str(call.op).removeprefix("relax.") if isinstance(call.op, str) else ""
        if name in ("call_tir", "call_tir_inplace", "call_tir_with_grad", "call_dps_packed"):
            return self._destination_passing(call)
        if name == "loop":
            body = self._evaluator.function(call.args[0].name_hint)
            step = self.value(call.args[0])
            return iterate(lambda args: step(*args), body.ret_struct_info, [self.value(one) for one in call.args[1:]], _same, _same)
        if name in ("call_pure_packed", "call_inplace_packed"):
            return _array(self.value(call.args[0])(*self._as_arrays(call.args[1:])))
        if name == "make_closure":
            return partial(self.value(call.args[0]), *self.value(call.args[1]))
        if name in ("invoke_closure", "invoke_pure_closure"):
            return self.value(call.args[0])(*self.value(call.args[1]))
        if name == "print":
            print(said(self.value(call.args[0]), call.attrs["format"], " "))
            return ()
        if name == "assert_op":
            if not bool(np.asarray(self.value(call.args[0])).reshape(())):
                raise GraphAssertionError(
                    f"assert_op: {said(self.value(call.args[1]), call.attrs['format']) or 'the condition does not hold'}"
                )
            return ()
        callee = self.value(call.op)
        args = self._as_arrays(call.args) if isinstance(call.op, ExternFunc) else [self.value(arg) for arg in call.args]
        return _array(callee(*args))

    def _as_arrays(self, args: Sequence[Any]) -> list[Any]:
        """Arguments of a registered function, which takes arrays of the runtime, and may write them."""
        from ..runtime.device import cpu
        from ..runtime.ndarray import NDArray

        found = [self.value(arg) for arg in args]
        return [NDArray(np.asarray(one, order="C"), cpu()) if isinstance(one, (np.ndarray, np.generic)) else one for one in found]

    def _destination_passing(self, call: Call) -> Any:
        """A call of a function that writes its results into its last arguments."""
        infos = call.sinfo_args[0].fields if isinstance(call.sinfo_args[0], TupleStructInfo) else (call.sinfo_args[0],)
        inputs = list(self.value(call.args[1]))
        places = call.attrs.get("inplace_indices") or [-1] * len(infos)
        for place in places:
            if place >= 0:  # a copy: the oracle changes no value that has a name
                inputs[place] = inputs[place].copy()
        results = [self._empty(info) if place < 0 else inputs[place] for info, place in zip(infos, places, strict=True)]
        own = [one for one, place in zip(results, places, strict=True) if place < 0]
        extra = list(self.value(call.args[2])) if len(call.args) > 2 else []
        func: Any = self._evaluator._mod[call.args[0]] if isinstance(call.args[0], GlobalVar) else call.args[0]
        if isinstance(func, PrimFunc):
            filled = [np.asarray(one, order="C") for one in inputs]
            _interpret(func, [*filled, *own, *extra])
        else:
            from ..runtime.ndarray import array

            made = [array(one) for one in results]
            self.value(func)(*map(array, inputs), *made, *extra)
            results = [one.numpy() for one in made]
        return results[0] if len(results) == 1 and not isinstance(call.sinfo_args[0], TupleStructInfo) else tuple(results)

    def _empty(self, info: StructInfo) -> Any:
        if not isinstance(info, TensorStructInfo) or info.extents is None:
            raise DeclarationError(f"a result has to be a tensor whose shape is stated, not {info}")
        return np.zeros(extents_of(info.extents, self._symbols), to_numpy(info.dtype))


def meaning(row: Row, given: Mapping[str, Any], info: StructInfo) -> Any:
    """What an operator means for arrays: the row's meaning on NumPy's arrays, in the dtype that the operator has.

    Dtypes that NumPy has no arithmetic for, such as bfloat16, are computed in wider ones, which hold all their values.
    """
    if row.numpy is None:
        raise DeclarationError(f"{row.name} has no meaning on NumPy's arrays")
    if row.as_is:
        return row.apply(row.numpy, given)
    return _typed(row.apply(row.numpy, {name: _wide(value) if name in row.arguments else value for name, value in given.items()}), info)


def _wide(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(map(_wide, value))
    if not isinstance(value, np.ndarray) or value.dtype.kind != "V":
        return value
    # Kind V are the dtypes that NumPy itself hasn't: bfloat16, float8, integers of 4 bits.
    return value.astype("int8" if "int" in value.dtype.name else "float32")


def _same(value: Any) -> Any:
    return value


def _typed(found: Any, info: StructInfo) -> Any:
    """Arrays in the dtype that the operator has."""
    if isinstance(info, TensorStructInfo) and info.dtype:
        return np.asarray(found).astype(to_numpy(info.dtype), copy=False)
    if isinstance(info, TupleStructInfo) and isinstance(found, (tuple, list)):
        return tuple(_typed(one, field) for one, field in zip(found, info.fields, strict=True))
    if isinstance(info, PrimStructInfo) and isinstance(found, (np.ndarray, np.generic)):
        return found.astype(to_numpy(info.dtype)).item()
    return found
