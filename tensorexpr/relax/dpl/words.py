"""The words in which patterns are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...tir.op_registry import Op
from .pattern import (
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataflowVarPattern,
    DataTypePattern,
    DFPattern,
    ExprPattern,
    ExternFuncPattern,
    GlobalVarPattern,
    NotPattern,
    PrimArrPattern,
    TupleGetItemPattern,
    TuplePattern,
    UnorderedTuplePattern,
    VarPattern,
    WildcardPattern,
)


def wildcard() -> WildcardPattern:
    """Anything."""
    return WildcardPattern()


def is_var(name: str = "") -> VarPattern:
    """A variable; of that name if one is given."""
    return VarPattern(name)


def is_dfv(name: str = "") -> DataflowVarPattern:
    """A variable of a dataflow block; of that name if one is given."""
    return DataflowVarPattern(name)


def is_gv(name: str = "") -> GlobalVarPattern:
    """A function of the module; of that name if one is given."""
    return GlobalVarPattern(name)


def is_const() -> ConstantPattern:
    """A constant tensor."""
    return ConstantPattern()


def is_expr(expr: Any) -> ExprPattern:
    """One expression, up to names."""
    return ExprPattern(expr)


def is_op(op_name: str) -> ExprPattern:
    """An operator, to be called with patterns: ``is_op("relax.add")(wildcard(), wildcard())``."""
    return ExprPattern(Op.of(op_name))


def is_tuple(fields: Sequence[DFPattern], unordered: bool = False) -> TuplePattern:
    """A tuple of such fields, in any order if `unordered`."""
    return (UnorderedTuplePattern if unordered else TuplePattern)(fields)


def is_tuple_get_item(tuple_value: DFPattern, index: int | None = None) -> TupleGetItemPattern:
    """A field of a tuple; any for None."""
    return TupleGetItemPattern(tuple_value, index)


def is_shape(shape: Sequence[Any]) -> PrimArrPattern:
    """A shape of these extents."""
    return PrimArrPattern(shape)


def _operands(args: Any) -> DFPattern:
    """The tuple of arguments of a call of a function that writes its results."""
    if args is None:
        return wildcard()
    return TuplePattern(args) if isinstance(args, (list, tuple)) else args


def is_call_tir(func_name: str, args: Sequence[DFPattern] | TuplePattern | None = None, tir_vars: DFPattern | None = None) -> CallPattern:
    """A call of a tensor function of that name; of any arguments if `args` is None."""
    operands = _operands(args)
    extra = () if tir_vars is None else (tir_vars,)
    # Not the tuple of operands but what is in it is used by the call, as the context sees it.
    call = is_op("relax.call_tir")(GlobalVarPattern(func_name), operands, *extra, varg_default_wildcard=True, add_constraint=False)
    call.note_arguments(operands.fields if isinstance(operands, TuplePattern) else ())
    return call


def is_call_dps_packed(func_name: str, args: Sequence[DFPattern] | TuplePattern | None = None) -> CallPattern:
    """A call of a registered function that writes its results; of any arguments if `args` is None."""
    operands = _operands(args)
    call = is_op("relax.call_dps_packed")(ExternFuncPattern(func_name), operands, add_constraint=False)
    call.note_arguments(operands.fields if isinstance(operands, TuplePattern) else ())
    return call


def is_call_packed(func_name: str, args: Sequence[DFPattern] | None = None) -> CallPattern:
    """A call of a registered function; of any arguments if `args` is None."""
    return ExternFuncPattern(func_name)(*(args or ()), varg_default_wildcard=args is None)


def has_dtype(dtype: str, pattern: DFPattern | None = None) -> DataTypePattern:
    """A tensor of a dtype that matches a pattern, or any."""
    return DataTypePattern(pattern or wildcard(), dtype)


def has_attr(attrs: Mapping[str, Any], pattern: DFPattern | None = None) -> AttrPattern:
    """What has attributes and matches a pattern, or anything."""
    return AttrPattern(pattern or wildcard(), attrs)


def reject(pattern: DFPattern) -> NotPattern:
    """What a pattern doesn't match."""
    return NotPattern(pattern)


def make_fused_bias_activation_pattern(op_name: str, with_bias: bool = False, activation: str | None = None) -> DFPattern:
    """An operator on two values, such as a convolution, with a bias and an activation if these are asked for.

    Args:
        op_name: such as "relax.nn.conv2d".
        with_bias: whether "relax.add" of another value follows.
        activation: which operator comes last.
    """
    made: DFPattern = is_op(op_name)(wildcard(), wildcard())
    if with_bias:
        made = is_op("relax.add")(made, wildcard())
    return made if activation is None else is_op(activation)(made)
