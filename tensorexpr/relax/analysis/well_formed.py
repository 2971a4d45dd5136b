"""Whether a graph means something: each variable defined once and before it is used, in its scope; operands that fit."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

from ...errors import DeclarationError, TensorExprError
from ...tir.expr import PrimExpr
from ...tir.expr import Var as Symbol
from ...tir.function import GlobalVar, IRModule, PrimFunc
from ...tir.op_registry import Op
from ...tir.rewriting import variables
from ..expr import (
    Binding,
    BindingBlock,
    Call,
    DataflowBlock,
    DataflowVar,
    Function,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
)
from ..ops.row import ROWS
from ..relations import BaseCheckResult, struct_info_base_check
from ..struct_info import FuncStructInfo, RelaxExpr, ShapeExpr, StructInfo, TupleStructInfo, symbols_of
from .tensor_calls import TENSOR_CALLS, misfits
from .unused import impure_calls
from .variables import definable_tir_vars_in_struct_info


def well_formed(obj: Any, check_struct_info: bool = True) -> bool:
    """Whether a module or function is well-formed; if not, a warning says what is wrong first.

    Args:
        obj: an IRModule or a function.
        check_struct_info: also check that what is known of variables fits their values.
    """
    found = next(problems(obj, check_struct_info), None)
    if found is not None:
        warnings.warn(f"not well-formed: {found}", stacklevel=2)
    return found is None


def check_well_formed(obj: Any, check_struct_info: bool = True, is_normal: bool = False) -> None:
    """Check that a module or function is well-formed.

    Args:
        obj: an IRModule or a function.
        check_struct_info: also check that what is known of variables fits their values.
        is_normal: also check its form: operands are variables or constants, dataflow blocks and pure functions have no effects.

    Raises:
        DeclarationError: naming the function and the binding, and what is wrong.
    """
    found = next(problems(obj, check_struct_info, is_normal), None)
    if found is not None:
        raise DeclarationError(f"the graph is not well-formed: {found}")


def problems(obj: Any, check_struct_info: bool = True, is_normal: bool = True) -> Iterator[str]:
    """What is wrong with a module or function, one text each."""
    mod = obj if isinstance(obj, IRModule) else None
    functions = [(var.name_hint, func) for var, func in obj.functions_items()] if mod is not None else [("the function", obj)]
    owners: dict[Any, str] = {}
    for name, func in functions:
        if isinstance(func, Function):
            found: list[str] = []
            _Checker(mod, name, check_struct_info, is_normal, found.append).function(func, set(), set())
            yield from found
            if is_normal and mod is not None:
                yield from _misnamed(name, func)
                yield from _shared(name, func, owners)


def _misnamed(name: str, func: Function) -> Iterator[str]:
    symbol = func.attrs.get("global_symbol")
    if symbol is not None and str(symbol) != name:
        yield f'{name}: its "global_symbol" is {str(symbol)!r}; transform.NormalizeGlobalVar gives it that name'


def _shared(name: str, func: Function, owners: dict[Any, str]) -> Iterator[str]:
    """Parameters and symbols of a function that are another's of the module; `owners` gets its own."""
    own: list[Symbol | Var] = [*func.params, *(symbol for param in func.params for symbol in symbols_of(param.struct_info))]
    for one in dict.fromkeys(own):
        if owners.setdefault(one, name) != name:
            what = f"symbol {one.name}" if isinstance(one, Symbol) else f"parameter {one.name_hint}"
            yield f"{name}: its {what} is one of {owners[one]}, too; relax.utils.copy_with_new_vars makes a function of its own"


class _Checker:
    """Walks a function in order. Scopes are the sets of variables and symbols that may be used."""

    def __init__(self, mod: IRModule | None, name: str, infos: bool, is_normal: bool, report: Callable[[str], None]) -> None:
        self._mod, self._name, self._infos, self._is_normal = mod, name, infos, is_normal
        self._report = report
        self._defined: set[Var] = set()
        self._where = name

    def _wrong(self, text: str) -> None:
        self._report(f"{self._where}: {text}")

    def function(self, func: Function, around: set[Var], symbols: set[Symbol]) -> None:
        """A function; `around` may be used in it."""
        scope, known, where = set(around), set(symbols), self._where
        # First all symbols: (n * 2,) may stand in front of the parameter that says what n is.
        for param in func.params:
            known.update(definable_tir_vars_in_struct_info(param.struct_info))
        for param in func.params:
            if isinstance(param, DataflowVar):
                self._wrong(f"parameter {param.name_hint} is a variable of a dataflow block")
            self._define(param, scope)
            self._symbols(param.struct_info, known, f"parameter {param.name_hint}")
        self._sequence(func.body, scope, known, in_dataflow=False)
        self._where = where
        if func.attrs.get("relax.force_pure") and not func.is_pure:
            self._wrong('"relax.force_pure" says that it counts as pure, and its signature says pure=False')
        # Casts in the body may have defined symbols of the result.
        self._symbols(func.ret_struct_info, known | set(symbols_of(func.body.struct_info)), "what it returns")
        if self._is_normal and func.is_pure and not func.attrs.get("relax.force_pure"):
            self._effects(func.body, "it is pure by its signature, and {} has effects; state pure=False")
        if self._infos:
            self._fits(func.ret_struct_info, func.body, "what it returns")

    def _effects(self, value: Any, text: str) -> None:
        """Report the first call with effects in a value."""
        call = next(impure_calls(value, IRModule() if self._mod is None else self._mod), None)
        if call is not None:
            self._wrong(text.format(call))

    def _define(self, var: Any, scope: set[Var]) -> None:
        if not isinstance(var, Var):
            self._wrong(f"{type(var).__name__} where a variable is defined")
        elif var in self._defined:
            self._wrong(f"variable {var.name_hint} is defined twice")
        self._defined.add(var)
        scope.add(var)

    def _sequence(self, expr: Any, scope: set[Var], symbols: set[Symbol], in_dataflow: bool) -> None:
        if not isinstance(expr, SeqExpr):
            self._use(expr, scope, symbols, in_dataflow)
            return
        for block in expr.blocks:
            self._block(block, scope, symbols, in_dataflow)
        self._operand(expr.body, scope, symbols, in_dataflow, "result")

    def _block(self, block: BindingBlock, scope: set[Var], symbols: set[Symbol], in_dataflow: bool) -> None:
        inside = in_dataflow or isinstance(block, DataflowBlock)
        outer = self._where
        for binding in block.bindings:
            self._where = f"{self._name}, binding of {getattr(binding.var, 'name_hint', binding.var)}"
            self._binding(binding, scope, symbols, inside)
            self._where = outer
        if isinstance(block, DataflowBlock):
            scope.difference_update(binding.var for binding in block.bindings if isinstance(binding.var, DataflowVar))

    def _binding(self, binding: Binding, scope: set[Var], symbols: set[Symbol], in_dataflow: bool) -> None:
        value = binding.value
        if isinstance(binding.var, DataflowVar) and not in_dataflow:
            self._wrong("a variable of a dataflow block is defined outside of one")
        # A function may mention the variable that it is bound to: it calls itself.
        if isinstance(value, Function):
            self.function(value, scope | {binding.var}, symbols)
        else:
            if in_dataflow and self._is_normal:
                if isinstance(value, If):
                    self._wrong("a dataflow block has no choices")
                self._effects(value, "a dataflow block has no effects, and {} has")
            self._use(value, scope, symbols, in_dataflow, whole=True)
        if isinstance(binding, MatchCast):
            symbols.update(definable_tir_vars_in_struct_info(binding.struct_info))
            self._symbols(binding.struct_info, symbols, "what it is matched with")
        self._define(binding.var, scope)
        if isinstance(binding.var, Var):
            self._symbols(binding.var.struct_info, symbols, "its type")
        if self._infos and isinstance(binding.var, Var):
            if isinstance(binding, MatchCast):
                self._fits(binding.struct_info, binding.value, "its value")
            else:
                self._fits(binding.var.struct_info, value, "its value")

    def _fits(self, stated: StructInfo, value: Any, what: str) -> None:
        """Check that a value may be what is stated."""
        try:
            given = value.struct_info if isinstance(value, RelaxExpr) else None
        except TensorExprError as error:
            self._wrong(str(error))
            return
        if given is not None and struct_info_base_check(stated, given) <= BaseCheckResult.FAIL_L1:
            self._wrong(f"{what} is {given}, where {stated} is stated")

    def _symbols(self, info: StructInfo, known: set[Symbol], what: str) -> None:
        unknown = [symbol.name for symbol in symbols_of(info) if symbol not in known and symbol not in _own(info)]
        if unknown:
            self._wrong(f"{what}, {info}, has the symbol {unknown[0]}, which no parameter and no match_cast defines")

    def _use(self, expr: Any, scope: set[Var], symbols: set[Symbol], in_dataflow: bool, whole: bool = False) -> None:
        """Check what is used; `whole` for all that a variable is bound to."""
        match expr:
            case Var():
                if expr not in scope:
                    again = "used outside of its scope" if expr in self._defined else "used, and nothing defines it"
                    self._wrong(f"variable {expr.name_hint} is {again}")
            case GlobalVar():
                if self._mod is not None and expr not in self._mod:
                    self._wrong(f"the module has no function {expr.name_hint!r}")
            case Call():
                self._call(expr, scope, symbols, in_dataflow)
            case Tuple(fields):
                for one in fields:
                    self._operand(one, scope, symbols, in_dataflow)
            case TupleGetItem(value, _):
                self._operand(value, scope, symbols, in_dataflow)
            case If(cond, yes, no):
                self._operand(cond, scope, symbols, in_dataflow)
                # On copies: what a branch defines ends with it.
                for branch in (yes, no):
                    if self._is_normal and not isinstance(branch, SeqExpr):
                        self._wrong(f"a branch, {branch}, is no sequence of bindings; transform.Normalize makes it one")
                    self._sequence(branch, set(scope), set(symbols), in_dataflow)
            case SeqExpr():
                if self._is_normal:
                    self._wrong("a sequence of bindings stands where a value does")
                self._sequence(expr, set(scope), symbols, in_dataflow)
            case Function():
                self.function(expr, scope, symbols)
            case ShapeExpr(values):
                self._extents(values, symbols)
            case PrimValue(value):
                self._extents((value,), symbols)
            case RelaxExpr() | PrimFunc() | Op():
                return
            case _:
                self._wrong(f"{type(expr).__name__} is no expression of graphs")

    def _call(self, call: Call, scope: set[Var], symbols: set[Symbol], in_dataflow: bool) -> None:
        if isinstance(call.op, Op):
            if call.op not in ROWS and not call.sinfo_args and call.op not in Op.list_op_names():
                self._wrong(f"there is no operator {str(call.op)!r}")
        else:
            self._use(call.op, scope, symbols, in_dataflow)
        for arg in call.args:
            self._operand(arg, scope, symbols, in_dataflow)
        for info in call.sinfo_args:
            self._symbols(info, symbols, "the result that is stated")
        callee: Any = call.args[0] if self._infos and self._mod is not None and call.op in TENSOR_CALLS else None
        func = self._mod[callee] if self._mod is not None and isinstance(callee, GlobalVar) and callee in self._mod else None
        if isinstance(func, PrimFunc) and isinstance(call.args[1].struct_info, TupleStructInfo):
            for text in misfits(call, func):
                self._wrong(text)

    def _operand(self, expr: Any, scope: set[Var], symbols: set[Symbol], in_dataflow: bool, what: str = "operand") -> None:
        if self._is_normal and isinstance(expr, (Call, If, TupleGetItem, SeqExpr, Function)):
            self._wrong(f"the {what} {expr} has no variable of its own; bb.normalize and transform.Normalize make them")
        self._use(expr, scope, symbols, in_dataflow)

    def _extents(self, values: tuple[PrimExpr, ...], known: set[Symbol]) -> None:
        unknown = [symbol.name for value in values for symbol in variables(value) if symbol not in known]
        if unknown:
            self._wrong(f"the symbol {unknown[0]} is used, which no parameter and no match_cast defines")


def _own(info: StructInfo) -> set[Symbol]:
    """The symbols that parameters of functions in a struct info define, which nothing around them has to know."""
    if isinstance(info, FuncStructInfo):
        return {symbol for param in info.params or () for symbol in definable_tir_vars_in_struct_info(param)}
    return {symbol for one in getattr(info, "fields", ()) for symbol in _own(one)}
