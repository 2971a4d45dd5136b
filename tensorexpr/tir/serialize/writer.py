"""Expressions to rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ...errors import RecordError
from .. import expr as ir
from ..buffer import Buffer
from ..expr import CommReducer, IterVar, PrimExpr, Var
from ..rewriting import children

JSON = Any
Row = list[JSON]


class ExprWriter:
    """Collects the rows of any number of expressions, axes and reducers."""

    def __init__(
        self,
        variables: Mapping[Var, str] | None = None,
        producer: Callable[[Any], JSON] | None = None,
        buffer: Callable[[Buffer], JSON] | None = None,
    ) -> None:
        self.rows: list[Row] = []
        self._variables = dict(variables or {})
        self._producer = producer
        self._buffer = buffer
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []  # ids are keys, so what they belong to must live

    def _add(self, thing: Any, row: Row) -> int:
        self._kept.append(thing)
        self._numbers[id(thing)] = len(self.rows)
        self.rows.append(row)
        return len(self.rows) - 1

    def expr(self, expr: PrimExpr) -> int:
        """The number of the row of an expression, written if it isn't there yet."""
        stack = [expr]
        while stack:
            node = stack[-1]
            # A node stays on the stack until its operands have rows, as rows may refer to earlier ones alone.
            waiting = [c for c in _operands(node) if id(c) not in self._numbers] if id(node) not in self._numbers else []
            if waiting:
                stack.extend(reversed(waiting))
                continue
            stack.pop()
            if id(node) not in self._numbers:
                self._add(node, self._row(node))
        return self._numbers[id(expr)]

    def axis(self, axis: IterVar) -> int:
        """The number of the row of an axis."""
        if id(axis) not in self._numbers:
            # Before the row of the axis is added, whose number is that of the end of the list then.
            dom = None if axis.dom is None else [self.expr(axis.dom.min), self.expr(axis.dom.extent)]
            self._add(axis, ["IterVar", self.expr(axis.var), dom, axis.iter_type, axis.thread_tag])
        return self._numbers[id(axis)]

    def reducer(self, combiner: CommReducer) -> int:
        """The number of the row of a combiner."""
        if id(combiner) not in self._numbers:
            parts = (combiner.lhs, combiner.rhs, combiner.result, combiner.identity_element)
            self._add(combiner, ["CommReducer", *([self.expr(e) for e in part] for part in parts)])
        return self._numbers[id(combiner)]

    def _row(self, node: PrimExpr) -> Row:
        """The row of a node whose operands have theirs."""
        name, at = type(node).__name__, self._numbers
        match node:
            case ir.Var() if node in self._variables:
                return ["Outer", self._variables[node]]
            case ir.Var():
                return [name, node.name, node.dtype]
            case ir.IntImm():
                return [name, node.dtype, node.value]
            case ir.FloatImm():
                return [name, node.dtype, node.value if math.isfinite(node.value) else str(node.value)]
            case ir.StringImm():
                return [name, node.value]
            case ir.Cast():
                return [name, node.dtype, at[id(node.value)]]
            case ir.Ramp():
                return [name, at[id(node.base)], at[id(node.stride)], node.lanes]
            case ir.Broadcast():
                return [name, at[id(node.value)], node.lanes]
            case ir.Shuffle():
                return [name, [at[id(v)] for v in node.vectors], list(node.indices)]
            case ir.Call():
                return [name, node.dtype, node.op, [at[id(arg)] for arg in node.args]]
            case ir.Reduce():
                return self._reduce_row(node)
            case ir.ProducerLoad():
                return [name, _ask(self._producer, "producer")(node.producer), [at[id(i)] for i in node.indices]]
            case ir.BufferLoad():
                mask = None if node.predicate is None else at[id(node.predicate)]
                return [name, _ask(self._buffer, "buffer")(node.buffer), [at[id(i)] for i in node.indices], mask]
        return [name, *(at[id(child)] for child in children(node))]

    def _reduce_row(self, node: ir.Reduce) -> Row:
        at = self._numbers
        source, init = [at[id(e)] for e in node.source], [at[id(e)] for e in node.init]
        axes = [self.axis(axis) for axis in node.axis]
        return ["Reduce", self.reducer(node.combiner), source, axes, at[id(node.condition)], node.value_index, init]


def _operands(node: PrimExpr) -> list[PrimExpr]:
    """What must have a row before `node`; axes and combiners are written along with it."""
    return [child for child in children(node) if isinstance(child, PrimExpr)]


def _ask(callback: Callable[[Any], JSON] | None, name: str) -> Callable[[Any], JSON]:
    if callback is None:
        raise RecordError(f"the expression reads a {name}; pass `{name}` to say how it is written")
    return callback
