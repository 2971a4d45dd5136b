"""Helpers of programs that put functions together."""

from __future__ import annotations

from ..tir.expr import Var as Symbol
from .expr import Function, MatchCast, Var
from .struct_info import StructInfo, symbols_of, with_symbols
from .visitor import Mutator, bindings_of, walk


class _Copier(Mutator):
    """Makes every variable anew."""

    def define(self, var: Var, info: StructInfo) -> Var:
        """A new variable in place of one."""
        self._variables[var] = made = type(var)(var.name_hint, with_symbols(info, self._symbols))
        return made


def copy_with_new_vars(func: Function) -> Function:
    """A function that equals another one and shares neither variables nor symbols with it."""
    defined = [param.struct_info for node in walk(func) if isinstance(node, Function) for param in node.params]
    defined += [binding.struct_info for binding in bindings_of(func) if isinstance(binding, MatchCast)]
    symbols = dict.fromkeys(symbol for info in defined for symbol in symbols_of(info))
    return _Copier(symbols={one: Symbol(one.name, one.dtype) for one in symbols}).function(func)
