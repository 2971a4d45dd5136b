"""Parameters and symbols become what they are known to be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import DeclarationError
from ...lower.passes import ModulePass
from ...tir.expr import IntImm, PrimExpr
from ...tir.expr import Var as Symbol
from ...tir.function import IRModule
from ...tir.rewriting import variables
from ..analysis.variables import definable_tir_vars_in_struct_info
from ..expr import Function, RelaxExpr, Var, const
from ..relations import BaseCheckResult, bind_symbols, struct_info_base_check
from ..struct_info import symbols_of, with_symbols
from ..visitor import Mutator
from .passes import graph_pass


def bind_params(func: Function, params: Mapping[str | Var, Any], name: str = "the function") -> Function:
    """A function with constants in place of parameters, which leave its signature.

    Args:
        func: the function.
        params: parameters or their names -> NDArrays, NumPy's arrays, or expressions such as constants.
        name: for messages.

    Raises:
        DeclarationError: for a parameter that there isn't, naming those that are there, or a value that doesn't fit.
    """
    values: dict[Var, RelaxExpr] = {}
    symbols: dict[Symbol, PrimExpr] = {}
    for key, value in params.items():
        found = [param for param in func.params if param is key or param.name_hint == key]
        if len(found) != 1:
            names = ", ".join(param.name_hint for param in func.params)
            raise DeclarationError(f"BindParams: {name} has {len(found) or 'no'} parameters {key!r}; it has {names}")
        made = value if isinstance(value, RelaxExpr) else const(value)
        # The shape of a weight says what its symbols are, in later weights and in all of the function.
        bind_symbols(found[0].struct_info, made.struct_info, symbols)
        if struct_info_base_check(with_symbols(found[0].struct_info, symbols), made.struct_info) <= BaseCheckResult.FAIL_L1:
            raise DeclarationError(f"BindParams: parameter {key!r} of {name} is {found[0].struct_info}, and the value {made.struct_info}")
        values[found[0]] = made
    if not values:
        return func
    left = Function(tuple(p for p in func.params if p not in values), func.body, func.ret_struct_info, func.is_pure, func.attrs)
    return Mutator(values, symbols).function(left)


def bind_symbolic_vars(func: Function, binding: Mapping[str | Symbol, Any], name: str = "the function") -> Function:
    """A function whose symbols have values.

    Args:
        func: the function.
        binding: symbols or their names -> integers or expressions.
        name: for messages.

    Raises:
        DeclarationError: for a symbol that there isn't, naming those that are there; for one that is given twice, a name of several,
            and values of symbols that no parameter tells afterwards.
    """
    known = list(dict.fromkeys(symbol for param in func.params for symbol in symbols_of(param.struct_info)))
    values: dict[Symbol, PrimExpr] = {}
    for key, value in binding.items():
        found = [symbol for symbol in known if symbol is key or symbol.name == key]
        if not found:
            raise DeclarationError(f"BindSymbolicVars: {name} has no symbol {key!r}; it has {', '.join(s.name for s in known) or 'none'}")
        if len(found) > 1 or found[0] in values:
            why = "given twice" if found[0] in values else f"the name of {len(found)} symbols: give these themselves"
            raise DeclarationError(f"BindSymbolicVars: {name}: {found[0].name} is {why}")
        values[found[0]] = IntImm(found[0].dtype, value) if isinstance(value, int) else value
    if not values:
        return func
    made = Mutator(symbols=values).function(func)
    told = {symbol for param in made.params for symbol in definable_tir_vars_in_struct_info(param.struct_info)}
    for value in values.values():
        if untold := [symbol.name for symbol in variables(value) if symbol not in told]:
            raise DeclarationError(f"BindSymbolicVars: {name}: {value} has the symbol {untold[0]}, which no parameter is told by alone")
    return made


def _checked(mod: IRModule, func_name: str, what: str) -> None:
    if func_name not in mod:
        names = ", ".join(var.name_hint for var in mod.get_global_vars())
        raise DeclarationError(f"{what}: the module has no function {func_name!r}; it has {names}")


def BindParams(func_name: str, params: Mapping[str | Var, Any]) -> ModulePass:
    """A pass: parameters of one function become constants; see `bind_params`."""

    def run(mod: IRModule) -> IRModule:
        _checked(mod, func_name, "BindParams")
        made = mod.clone()
        made.update_func(func_name, bind_params(mod[func_name], params, func_name))  # type: ignore[arg-type]
        return made

    return graph_pass("BindParams", run)


def BindSymbolicVars(binding_map: Mapping[str | Symbol, Any], func_name: str | None = None) -> ModulePass:
    """A pass: symbols of one function, or of all that have them, get values; see `bind_symbolic_vars`.

    A name is that of a symbol in each function, a symbol is the one of its function.

    Raises:
        DeclarationError: as of `bind_symbolic_vars`, and for a symbol that no function has.
    """

    def run(mod: IRModule) -> IRModule:
        made = mod.clone()
        if func_name is not None:
            _checked(mod, func_name, "BindSymbolicVars")
        left, known = set(binding_map), set[str]()
        for var, func in mod.functions_items():
            if isinstance(func, Function) and func_name in (None, var.name_hint):
                symbols = {symbol for param in func.params for symbol in symbols_of(param.struct_info)}
                names = {symbol.name for symbol in symbols}
                # Of several functions each takes the symbols that it has; one that is named has to have all.
                own = {k: v for k, v in binding_map.items() if func_name is not None or k in names or k in symbols}
                made.update_func(var, bind_symbolic_vars(func, own, var.name_hint))
                left, known = left - set(own), known | names
        if left:
            found = ", ".join(sorted(known)) or "none"
            raise DeclarationError(f"BindSymbolicVars: no function has a symbol {', '.join(sorted(map(str, left)))}; there are {found}")
        return made

    return graph_pass("BindSymbolicVars", run)


Function.bind_params = lambda self, binding_map: bind_params(self, binding_map)  # type: ignore[attr-defined]
Function.bind_symbolic_vars = lambda self, binding_map: bind_symbolic_vars(self, binding_map)  # type: ignore[attr-defined]
