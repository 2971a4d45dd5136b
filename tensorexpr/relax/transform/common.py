"""EliminateCommonSubexpr: what is computed twice is computed once."""

from __future__ import annotations

from typing import Any

from ...lower.passes import ModulePass
from ...tir.expr import PrimExpr
from ...tir.function import GlobalVar
from ...tir.op_registry import Op
from ..analysis import is_pure
from ..expr import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    DataTypeImm,
    ExternFunc,
    PrimValue,
    SeqExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from ..struct_info import ObjectStructInfo, PrimStructInfo, ShapeExpr, StructInfo
from ..visitor import Mutator
from .passes import each_function

_LARGEST_COMPARED = 1 << 12  # bytes of constants that are compared; larger ones are equal to themselves


def key(expr: Any) -> Any:
    """What two expressions share if they have the same value; None for what can't be compared."""
    match expr:
        case Call():
            if type(expr.struct_info) is ObjectStructInfo:
                return None  # it may be one that changes, as a cache does: two of them are two
            op = str(expr.op) if isinstance(expr.op, Op) else key(expr.op)
            parts = tuple(map(key, expr.args))
            attrs = tuple((name, _attribute(value)) for name, value in sorted(expr.attrs.items()))
            return None if op is None or None in parts else (Call, op, parts, attrs, expr.sinfo_args)
        case Tuple(fields):
            parts = tuple(map(key, fields))
            return None if None in parts else (Tuple, parts)
        case TupleGetItem(value, index):
            inner = key(value)
            return None if inner is None else (TupleGetItem, inner, index)
        case Constant(data):
            values = expr.view()
            content = values.tobytes() if values.dtype != object and values.nbytes <= _LARGEST_COMPARED else id(data)
            return Constant, str(data.dtype), tuple(data.shape), content
        case Var():
            return expr
        case ShapeExpr() | PrimValue():
            return type(expr), expr.struct_info
        case StringImm(value) | DataTypeImm(value):
            return type(expr), value
        case GlobalVar():
            return GlobalVar, expr.name_hint
        case ExternFunc(name):
            return ExternFunc, name
    return None


def _attribute(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(map(_attribute, value))
    if isinstance(value, PrimExpr):
        return PrimStructInfo(value.dtype, value)
    return value if isinstance(value, (str, int, float, bool, StructInfo, type(None))) else ("is", id(value))


class _Eliminator(Mutator):
    """Values that are known in a sequence, by their keys."""

    def __init__(self, call_only: bool) -> None:
        super().__init__()
        self._kinds = (Call,) if call_only else (Call, Tuple, TupleGetItem)
        self._known: dict[Any, Var] = {}
        self._in_dataflow = False

    def binding(self, binding: Binding) -> list[Binding]:
        """The binding, of the variable that has its value already."""
        (made,) = super().binding(binding)
        if not isinstance(made, VarBinding) or not isinstance(made.value, self._kinds) or not is_pure(made.value):
            return [made]
        found = key(made.value)
        first = self._known.get(found)
        if found is None or first is None:
            self._known[found] = made.var
            return [made]
        # A variable that outlives its block can't be one that ends with it: then it stays, as another name.
        if isinstance(made.var, DataflowVar) or not isinstance(first, DataflowVar):
            self._variables[binding.var] = first
        return [VarBinding(made.var, first)]

    def block(self, block: BindingBlock) -> BindingBlock:
        """A block; variables that end with it aren't known behind it."""
        made = super().block(block)
        if isinstance(block, DataflowBlock):
            self._known = {found: var for found, var in self._known.items() if not isinstance(var, DataflowVar)}
        return made

    def _mapped(self, expr: Any) -> Any:
        if not isinstance(expr, SeqExpr):
            return super()._mapped(expr)
        # What a branch computes isn't known behind it: it may not have run.
        outer, self._known = self._known, dict(self._known)
        made = super()._mapped(expr)
        self._known = outer
        return made


def EliminateCommonSubexpr(call_only: bool = False) -> ModulePass:
    """A pass: the second of two bindings of the same value is that of the first one's variable.

    Args:
        call_only: calls alone, not tuples and their elements.
    """
    return each_function("EliminateCommonSubexpr", lambda func, mod: _Eliminator(call_only).function(func))
