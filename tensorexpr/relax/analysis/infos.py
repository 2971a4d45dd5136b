"""What is known of values: what calls return, and what is left of it elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...tir.arithmetic import convert
from ...tir.expr import PrimExpr
from ...tir.expr import Var as Symbol
from ...tir.rewriting import variables
from ..expr import Call
from ..relations import returned, without_symbols
from ..struct_info import FuncStructInfo, StructInfo, with_symbols


def derive_call_ret_struct_info(func_sinfo: FuncStructInfo, call: Call, ctx: Any = None) -> StructInfo:
    """What is known of the result of a call of a function.

    Args:
        func_sinfo: of the function.
        call: whose arguments count.
        ctx: the BlockBuilder in which it stands; not needed here.

    Raises:
        DeclarationError: for arguments that don't fit.
    """
    if func_sinfo.derive_func is not None:
        return func_sinfo.derive_func(call, ctx)
    return returned(func_sinfo, [arg.struct_info for arg in call.args], str(call.op))


def erase_to_well_defined(
    sinfo: StructInfo, shape_var_map: Mapping[Symbol, PrimExpr] | None = None, var_map: Mapping[Any, Any] | None = None
) -> StructInfo:
    """What is left of a struct info where only some symbols mean anything, as they stand for expressions there.

    Args:
        sinfo: the struct info.
        shape_var_map: symbols -> expressions; what depends on others is forgotten.
        var_map: variables of the graph -> expressions; shapes are expressions of symbols here, so that it isn't needed.
    """
    values = {symbol: convert(value) for symbol, value in (shape_var_map or {}).items()}
    values = {symbol: value.astype(symbol.dtype) if value.dtype != symbol.dtype else value for symbol, value in values.items()}
    known = {*values, *(symbol for value in values.values() for symbol in variables(value))}
    return with_symbols(without_symbols(sinfo, known), values)
