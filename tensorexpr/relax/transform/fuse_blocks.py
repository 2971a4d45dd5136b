"""One tensor function of the loops of several: what `FuseTIR` does where they can't be read as one computation of tensors.

    lv = R.call_tir(cls.add, (x, p))                      def fused(x, p, lv):
    lv1 = R.call_tir_inplace(cls.exp, (lv,), [0])   ->        for ...: lv[i] = x[i] + p[i]
    return lv1                                                for ...: lv[i] = exp(lv[i])

So for functions that write into their arguments, and for those whose loops somebody has scheduled, which stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...dataclass import dataclass
from ...errors import DeclarationError
from ...tir.attrs import FrozenMap
from ...tir.block import Block, BlockRealize, is_plain_root
from ...tir.buffer import Buffer, decl_buffer
from ...tir.expr import IntImm, PrimExpr
from ...tir.expr import Var as Symbol
from ...tir.function import GlobalVar, IRModule, PrimFunc
from ...tir.op_registry import Op
from ...tir.stmt import Stmt, seq
from ...tir.stmt_functor import Renaming, renew_defs
from ..expr import Call, Function, PrimValue, Tuple, TupleGetItem, Var
from ..struct_info import PrimStructInfo, ShapeStructInfo, StructInfo, TensorStructInfo, TupleStructInfo, symbols_of

_CALLS = ("relax.call_tir", "relax.call_tir_inplace")


@dataclass(frozen=True)
class Fused:
    """A tensor function in place of one of the graph.

    Args:
        func: it takes the parameters that are tensors or numbers, then results, then sizes.
        sizes: the symbols of the graph's function that it is told.
        places: of each result, the argument that it is written into; -1 for one of its own.
    """

    func: PrimFunc
    sizes: Sequence[Symbol]
    places: Sequence[int]


def told(call: Call) -> Sequence[PrimExpr]:
    """The numbers that a call of a tensor function passes behind its results.

    Raises:
        DeclarationError: if they are a shape of unknown extents.
    """
    if len(call.args) == 2:
        return ()
    info: Any = call.args[2].struct_info
    if not isinstance(info, ShapeStructInfo) or info.values is None:
        raise DeclarationError(f"FuseTIR: {call} tells {call.args[0]} sizes that aren't known")
    sizes: Sequence[PrimExpr] = info.values
    return sizes


def symbol_of(param: Var) -> Symbol:
    """The symbol that a parameter which is a number stands for in a tensor function."""
    info = param.struct_info
    assert isinstance(info, PrimStructInfo)
    return info.value if isinstance(info.value, Symbol) else Symbol(param.name_hint, info.dtype)


def lost_sizes(func: Function, needed: Sequence[Symbol]) -> Sequence[Symbol]:
    """The symbols that a tensor function has to be told, of those that the graph's function gets as shapes.

    Raises:
        DeclarationError: if it gets none for one of them.
    """
    given = {one for param in func.params if isinstance(param.struct_info, ShapeStructInfo) for one in param.struct_info.values or ()}
    for symbol in needed:
        if symbol not in given:
            raise DeclarationError(f"FuseTIR: nothing tells {symbol.name}")
    return needed


class _Blocks:
    """The loops of a function's calls, one after the other."""

    def __init__(self, func: Function, mod: IRModule) -> None:
        self._mod = mod
        self._values: dict[Var, Any] = {}
        self._inner: list[Buffer] = []
        self._stmts: list[Stmt] = []
        self.params: list[tuple[Symbol, Buffer | None]] = []
        for param in func.params:
            info = param.struct_info
            if isinstance(info, TensorStructInfo):
                self._values[param] = buffer = _buffer(info, param.name_hint)
                self.params.append((Symbol(param.name_hint, "handle"), buffer))
            elif isinstance(info, PrimStructInfo):
                self._values[param] = symbol = symbol_of(param)
                self.params.append((symbol, None))
            elif not isinstance(info, ShapeStructInfo):
                raise DeclarationError(f"FuseTIR: {param.name_hint} is {info}, neither a tensor nor a number")
        for binding in func.body.bindings():
            self._values[binding.var] = self._value(binding.value, binding.var.name_hint)
        result = self._value(func.body.body, "")
        self.results: list[Buffer] = result if isinstance(result, list) else [result]

    def _value(self, expr: Any, name: str) -> Any:
        match expr:
            case Var():
                return self._values[expr]
            case Tuple(fields):
                return [self._value(one, name) for one in fields]
            case TupleGetItem(whole, index):
                return self._value(whole, name)[index]
            case PrimValue(value):
                return value
            case Call() if isinstance(expr.op, Op) and expr.op in _CALLS and isinstance(expr.args[0], GlobalVar):
                return self._called(expr, name)
        raise DeclarationError(f"FuseTIR: {expr} is no call of a tensor function")

    def _called(self, call: Call, name: str) -> Any:
        callee = self._mod[call.args[0]]
        if not isinstance(callee, PrimFunc):
            raise DeclarationError(f"FuseTIR: {call.args[0]} is no tensor function")
        given = self._value(call.args[1], name)
        info = call.struct_info
        infos: Sequence[StructInfo] = info.fields if isinstance(info, TupleStructInfo) else (info,)
        places = call.attrs.get("inplace_indices") or [-1] * len(infos)
        results = [_buffer(one, name) if place < 0 else given[place] for one, place in zip(infos, places, strict=True)]
        own = [one for one, place in zip(results, places, strict=True) if place < 0]
        self._inner += own
        self._stmts.append(self._body(callee, [*given, *own, *told(call)], call))
        return results if isinstance(info, TupleStructInfo) else results[0]

    def _body(self, callee: PrimFunc, given: Sequence[Any], call: Call) -> Stmt:
        """The loops of a function for its arguments; what it allocates is allocated for all."""
        fresh = renew_defs(callee)
        values: dict[Symbol, PrimExpr] = {}
        buffers: dict[Buffer, Buffer] = {}
        for param, actual in zip(fresh.params, given, strict=True):
            stated = fresh.buffer_map.get(param)
            if (stated is None) is isinstance(actual, Buffer):
                raise DeclarationError(f"FuseTIR: {call} passes {actual} for {param.name}")
            if stated is None:
                values[param] = actual
                continue
            buffers[stated], values[stated.data] = actual, actual.data
            for extent, known in zip(stated.shape, actual.shape, strict=True):
                if isinstance(extent, Symbol):
                    values.setdefault(extent, known)
        body = Renaming(values, folding=True, buffers=buffers).apply(fresh.body)
        if not isinstance(body, BlockRealize) or not is_plain_root(body):
            return body
        self._inner += body.block.alloc_buffers
        return body.block.body

    def function(self, sizes: Sequence[Symbol], attrs: Mapping[str, Any]) -> tuple[PrimFunc, list[int]]:
        """The tensor function, and the arguments that its results are written into.

        Raises:
            DeclarationError: if a result is none of its own, as one that is returned twice.
        """
        given = [buffer for _, buffer in self.params]
        own = [one for one in self.results if one in self._inner]
        if len({*self.results}) < len(self.results) or any(one not in self._inner and one not in given for one in self.results):
            raise DeclarationError("FuseTIR: a value is returned twice")
        places = [-1 if one in own else given.index(one) for one in self.results]
        params = [*self.params, *((Symbol(one.name, "handle"), one) for one in own), *((size, None) for size in sizes)]
        root = Block((), (), (), "root", seq(*self._stmts), None, tuple(one for one in self._inner if one not in own))
        body = BlockRealize((), IntImm("bool", 1), root)
        buffer_map = {param: buffer for param, buffer in params if buffer is not None}
        return PrimFunc(tuple(param for param, _ in params), body, None, buffer_map, FrozenMap({"tir.noalias": True, **attrs})), places


def _buffer(info: StructInfo, name: str) -> Buffer:
    if not isinstance(info, TensorStructInfo) or info.extents is None or not info.dtype:
        raise DeclarationError(f"FuseTIR: {name} is {info}, not a tensor of known shape and dtype")
    return decl_buffer(info.extents, info.dtype, name)


def fused_blocks(func: Function, mod: IRModule, attrs: Mapping[str, Any]) -> Fused:
    """A function of calls of tensor functions as one that has their loops, in their order.

    Args:
        func: its parameters are tensors, numbers and shapes.
        mod: where the functions are.
        attrs: of the new one.

    Raises:
        DeclarationError: if a value isn't one of tensors, or a size isn't known.
    """
    blocks = _Blocks(func, mod)
    known = {extent for _, buffer in blocks.params if buffer is not None for extent in buffer.shape}
    known |= {symbol for symbol, buffer in blocks.params if buffer is None}
    mentioned = [symbol for binding in func.body.bindings() for symbol in _symbols(binding)]
    sizes = lost_sizes(func, [one for one in dict.fromkeys(mentioned) if one not in known])
    made, places = blocks.function(sizes, attrs)
    return Fused(made, sizes, places)


def _symbols(binding: Any) -> Sequence[Symbol]:
    """The symbols in the shape of a value, and those that its call tells."""
    call = binding.value
    inside = [one for arg in call.args[1:] for one in symbols_of(arg.struct_info)] if isinstance(call, Call) else []
    return [*symbols_of(binding.var.struct_info), *inside]
