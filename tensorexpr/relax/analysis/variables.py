"""Which variables, symbols and functions a graph defines and uses."""

from __future__ import annotations

from typing import Any

from ...tir.expr import PrimExpr
from ...tir.expr import Var as Symbol
from ...tir.function import GlobalVar
from ..expr import Binding, DataflowBlock, Function, MatchCast, Var, VarBinding
from ..struct_info import (
    PrimStructInfo,
    RelaxExpr,
    ShapeExpr,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    symbols_of,
)
from ..visitor import bindings_of, walk


def all_vars(expr: Any) -> list[Var]:
    """The variables of an expression, those that it defines and those that it uses, in order of occurrence."""
    found: dict[Var, None] = dict.fromkeys(bound_vars(expr))
    found.update(dict.fromkeys(node for node in walk(expr) if isinstance(node, Var)))
    return list(found)


def bound_vars(expr: Any) -> list[Var]:
    """The variables that an expression defines: parameters, and those of bindings."""
    found: dict[Var, None] = {}
    for node in walk(expr):
        if isinstance(node, Function):
            found.update(dict.fromkeys(node.params))
    found.update(dict.fromkeys(binding.var for binding in bindings_of(expr)))
    return list(found)


def free_vars(expr: Any) -> list[Var]:
    """The variables that an expression uses and doesn't define."""
    bound = set(bound_vars(expr))
    return [var for var in all_vars(expr) if var not in bound]


def all_global_vars(expr: Any) -> list[GlobalVar]:
    """The functions of the module that an expression mentions, in order of occurrence."""
    return list(dict.fromkeys(node for node in walk(expr) if isinstance(node, GlobalVar)))


def defined_symbolic_vars(func: Function) -> list[Symbol]:
    """The symbols that a function defines: extents of parameters by themselves, and what a match_cast defines."""
    found: dict[Symbol, None] = {}
    for node in walk(func):
        if isinstance(node, Function):
            for param in node.params:
                found.update(dict.fromkeys(definable_tir_vars_in_struct_info(param.struct_info)))
    for binding in bindings_of(func):
        if isinstance(binding, MatchCast):
            found.update(dict.fromkeys(definable_tir_vars_in_struct_info(binding.struct_info)))
    return list(found)


def free_symbolic_vars(func: Function) -> list[Symbol]:
    """The symbols that a function uses and doesn't define."""
    known = set(defined_symbolic_vars(func))
    used: dict[Symbol, None] = {}
    for node in walk(func):
        if isinstance(node, RelaxExpr) and not isinstance(node, Function):
            used.update(dict.fromkeys(symbols_of(node.struct_info)))
        for info in getattr(node, "sinfo_args", ()):
            used.update(dict.fromkeys(symbols_of(info)))
    used.update(dict.fromkeys(symbols_of(func.ret_struct_info)))
    return [symbol for symbol in used if symbol not in known]


def name_to_binding(func: Function) -> dict[str, list[Binding]]:
    """The bindings of a function by the name of their variable."""
    found: dict[str, list[Binding]] = {}
    for binding in bindings_of(func):
        found.setdefault(binding.var.name_hint, []).append(binding)
    return found


def get_var2val(func: Function) -> dict[Var, Any]:
    """What variables of a function are bound to; those of a match_cast aren't, as they are more than their value."""
    return {binding.var: binding.value for binding in bindings_of(func) if isinstance(binding, VarBinding)}


def udchain(dfb: DataflowBlock) -> dict[Var, list[Var]]:
    """For each variable of a block, also those from outside: the variables whose values use it."""
    found: dict[Var, dict[Var, None]] = {}
    for binding in dfb.bindings:
        for node in walk(binding.value):
            if isinstance(node, Var):
                found.setdefault(node, {})[binding.var] = None
        found.setdefault(binding.var, {})
    return {var: list(users) for var, users in found.items()}


def tir_vars_in_struct_info(sinfo: StructInfo) -> list[Symbol]:
    """The symbols of a struct info, in order of occurrence."""
    return list(symbols_of(sinfo))


def definable_tir_vars_in_struct_info(sinfo: StructInfo) -> list[Symbol]:
    """The symbols that a value of this struct info defines: those that are extents or numbers by themselves."""
    return list(dict.fromkeys(one for one in _expressions(sinfo) if isinstance(one, Symbol)))


def collect_non_negative_expressions(sinfo: StructInfo) -> list[PrimExpr]:
    """The extents that aren't constants, which are never negative."""
    extents = [] if isinstance(sinfo, PrimStructInfo) else _expressions(sinfo)
    return list(dict.fromkeys(one for one in extents if not isinstance(getattr(one, "value", None), int)))


def _expressions(info: StructInfo) -> list[PrimExpr]:
    match info:
        case TensorStructInfo():
            return list(info.extents or ()) if info.shape is None or isinstance(info.shape, (ShapeExpr, Var)) else []
        case ShapeStructInfo():
            return list(info.values or ())
        case PrimStructInfo():
            return [] if info.value is None else [info.value]
        case TupleStructInfo(fields):
            return [one for field in fields for one in _expressions(field)]
    return []
