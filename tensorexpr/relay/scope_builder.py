"""Lets and Ifs, written one after the other.

sb = relay.ScopeBuilder()
with sb.if_scope(sb.let("positive", relay.less(relay.const(0.0), x))):
    sb.ret(x)
with sb.else_scope():
    sb.ret(relay.negative(x))
f = relay.Function([x], sb.get())
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..dataclass import dataclass, field
from ..errors import DeclarationError
from .expr import If, Let, Var, as_expr


@dataclass(slots=True)
class _Scope:
    """What a scope binds so far, the branch that waits for its other one, and its value."""

    lets: list[tuple[Var, Any]] = field(default_factory=list)
    waiting: tuple[Any, Any] | None = None
    value: Any = None

    def expression(self) -> Any:
        if self.value is None:
            raise DeclarationError("a scope has no value; call ret(value) at its end")
        found = self.value
        for var, value in reversed(self.lets):
            found = Let(var, value, found)
        return found


class ScopeBuilder:
    """Makes an expression of statements: `let`, `if_scope` and `else_scope`, `ret`; `get` returns it."""

    def __init__(self) -> None:
        self._scopes = [_Scope()]

    def let(self, var: Any, value: Any) -> Var:
        """Bind a value to a variable, which is returned.

        Args:
            var: a variable, or its name, or name and type.
            value: an expression.
        """
        made = var if isinstance(var, Var) else Var(*(var if isinstance(var, tuple) else (var,)))
        self._scopes[-1].lets.append((made, as_expr(value)))
        return made

    @contextmanager
    def _branch(self) -> Iterator[_Scope]:
        scope = _Scope()
        self._scopes.append(scope)
        try:
            yield scope
        finally:
            self._scopes.pop()

    @contextmanager
    def if_scope(self, cond: Any) -> Iterator[None]:
        """The branch where a condition holds; `else_scope` follows it."""
        with self._branch() as scope:
            yield
        self._scopes[-1].waiting = cond, scope.expression()

    @contextmanager
    def else_scope(self) -> Iterator[None]:
        """The other branch; with it the scope around has its value.

        Raises:
            DeclarationError: without an `if_scope` in front of it.
        """
        around = self._scopes[-1]
        if around.waiting is None:
            raise DeclarationError("else_scope follows an if_scope, and there is none in front of it")
        with self._branch() as scope:
            yield
        around.value, around.waiting = If(*around.waiting, scope.expression()), None

    def type_of(self, expr: Any) -> Any:
        """The type of an expression; of a variable, the stated one."""
        return expr.type_annotation if isinstance(expr, Var) else expr.checked_type

    def ret(self, value: Any) -> None:
        """Set the value of the scope.

        Raises:
            DeclarationError: if it has one.
        """
        if self._scopes[-1].value is not None:
            raise DeclarationError("ret: the scope has a value already")
        self._scopes[-1].value = as_expr(value)

    def get(self) -> Any:
        """The expression.

        Raises:
            DeclarationError: if a scope has no value.
        """
        return self._scopes[-1].expression()


__all__ = ["ScopeBuilder"]
