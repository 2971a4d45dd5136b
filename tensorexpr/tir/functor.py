"""Visitors and mutators as classes: a method for each kind of node, of which a subclass gives those that it cares about.

    @functor.mutator
    class Doubled(functor.PyStmtExprMutator):
        def visit_add_(self, op):
            return self.visit_expr(op.a) * 2

    Doubled().visit_stmt(func.body)

The method of a node of class `IfThenElse` is `visit_if_then_else_`. Methods that a subclass doesn't give go on to the operands
and bodies; variables are visited where they are used, not where statements define them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar, cast

from . import expr as expr_nodes
from . import stmt as stmt_nodes
from .block import Block, BlockRealize
from .expr import Let, PrimExpr, Var
from .rewriting import Node, children, map_children
from .scopes import parts
from .stmt import Stmt

_Class = TypeVar("_Class", bound=type)
_ABSTRACT = ("BinaryExpr", "CmpExpr", "LogicalExpr", "ConstExpr", "PrimExpr", "Stmt", "BinaryOpExpr", "PrimExprWithOp")


def _method(kind: type) -> str:
    """The name of a class's method: words in small letters, of IfThenElse ``visit_if_then_else_``."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()
    return f"visit_{words}_"


def _defined(node: Node) -> tuple[Var, ...]:
    if isinstance(node, Stmt):
        return parts(node).defines
    return (node.var,) if isinstance(node, Let) else ()


class PyStmtExprVisitor:
    """Visits all parts of a program. A node that is shared is visited wherever it stands."""

    def visit_stmt(self, stmt: Stmt) -> Any:
        """Visit a statement."""
        return self._dispatched(stmt)

    def visit_expr(self, expr: PrimExpr) -> Any:
        """Visit an expression."""
        return self._dispatched(expr)

    def _dispatched(self, node: Node) -> Any:
        method: Callable[[Node], Any] = getattr(self, _METHODS[type(node)])
        return method(node)

    def _default(self, node: Node) -> Any:
        """Visit what is inside of a node."""
        if isinstance(node, Stmt):
            own = parts(node)
            inside: tuple[Node, ...] = (*own.exprs, *own.inner_exprs, *own.bodies)
        else:
            inside = children(node)
        defined = _defined(node)
        for child in inside:
            # by identity: `==` of two variables is an expression
            if not any(child is var for var in defined):
                self.visit_stmt(child) if isinstance(child, Stmt) else self.visit_expr(child)


class PyStmtExprMutator(PyStmtExprVisitor):
    """Makes another program: each method returns what stands in the node's place, itself for no change."""

    def _default(self, node: Node) -> Any:
        """The node with what is inside mutated."""
        defined = _defined(node)

        def mutated(child: Node) -> Node:
            if any(child is var for var in defined):
                return child
            return cast(Node, self.visit_stmt(child) if isinstance(child, Stmt) else self.visit_expr(child))

        return map_children(node, mutated)


def _node_classes() -> dict[str, type]:
    found: dict[str, type] = {"Block": Block, "BlockRealize": BlockRealize}
    for module in (expr_nodes, stmt_nodes):
        for name, value in vars(module).items():
            if isinstance(value, type) and issubclass(value, (PrimExpr, Stmt)) and name not in _ABSTRACT:
                found[name] = value
    return found


_METHODS = {kind: _method(kind) for kind in _node_classes().values()}
for _name in _METHODS.values():
    # On both: a method of the visitor, inherited by the mutator, would visit and return nothing.
    for _class in (PyStmtExprVisitor, PyStmtExprMutator):
        setattr(_class, _name, _class._default)


def visitor(cls: _Class) -> _Class:
    """The decorator of a visitor; what it decorates is a visitor already.

    Raises:
        TypeError: for another class.
    """
    return _checked(cls, PyStmtExprVisitor)


def mutator(cls: _Class) -> _Class:
    """The decorator of a mutator; what it decorates is a mutator already.

    Raises:
        TypeError: for another class.
    """
    return _checked(cls, PyStmtExprMutator)


def _checked(cls: _Class, base: type) -> _Class:
    if not isinstance(cls, type) or not issubclass(cls, base):
        raise TypeError(f"{cls!r} is no subclass of tir.functor.{base.__name__}")
    unknown = [n for n in vars(cls) if re.fullmatch(r"visit_\w+_", n) and n not in _METHODS.values()]
    if unknown:
        raise TypeError(f"{cls.__name__}.{unknown[0]} is the method of no node; methods: {', '.join(sorted(_METHODS.values()))}")
    return cls
