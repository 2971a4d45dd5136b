"""ManifestLifetimes: `memory.kill` behind the last use of each value of a program in A-normal form.

let %y = add(%x, %x); let %z = add(%y, %y); %z
let %y = add(%x, %x); let %_0 = memory.kill(%x); let %z = add(%y, %y); let %_1 = memory.kill(%y); %z

It says where a value ends, to programs that look at one; builds find that out by themselves, and a kill costs nothing in them.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from ..relax import expr as graph
from ..tir.op_registry import Op
from .adt import Clause, Match
from .expr import Attrs, Call, Function, If, Let, Var
from .visitor import free_vars, walk


class _Killer:
    def __init__(self, func: Function, numbers: Any) -> None:
        self._numbers = numbers  # of kills, in all functions around
        # What a function captured lives as long as that does: neither here nor inside of it anything ends.
        self._captured = {var for node in (func, *walk(func.body)) if isinstance(node, Function) for var in free_vars(node)}

    def body(self, expr: Any, live: set[Any]) -> Any:
        """A body, behind which `live` are used."""
        lets: list[tuple[Let, set[Any]]] = []
        while isinstance(expr, Let):
            lets.append((expr, set()))
            expr = expr.body
        made = self._value(expr, live)
        after = {*live, *free_vars(expr)}
        for let, behind in reversed(lets):  # what is used behind each of them
            behind.update(after)
            after = {*after, *free_vars(let.value)} - {let.var}
        for let, behind in reversed(lets):
            for var in reversed(self._ended(let.value, behind)):
                made = Let(Var(f"_{next(self._numbers)}"), Call(Op.of("memory.kill"), (var,), Attrs()), made)
            made = Let(let.var, self._value(let.value, behind), made, let.span)
        return made

    def _value(self, value: Any, live: set[Any]) -> Any:
        match value:
            case graph.If(cond, yes, no):
                return If(cond, self.body(yes, live), self.body(no, live))
            case Match(data, clauses):
                return Match(data, tuple(Clause(one.lhs, self.body(one.rhs, live)) for one in clauses), value.complete)
            case Function():
                return with_kills(value, self._numbers)
        return value

    def _ended(self, value: Any, after: set[Any]) -> list[Any]:
        """The variables that end behind a value; those that its branches use end in them."""
        match value:
            case Function():
                return []
            case graph.If():
                used = free_vars(value.cond)
            case Match():
                used = free_vars(value.data)
            case _:
                used = free_vars(value)
        return [one for one in used if one not in after and one not in self._captured]


def with_kills(func: Function, numbers: Any = None) -> Function:
    """A function of A-normal form in which each value, parameters too, is killed behind its last use; the result isn't."""
    return Function(func.params, _Killer(func, numbers or count()).body(func.body, set()), func.ret_type, func.type_params, func.attrs)


__all__ = ["with_kills"]
