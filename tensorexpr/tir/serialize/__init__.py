"""Expressions as strict JSON, for computations that travel to other processes.

A document is a table of rows, each a list that begins with the name of its node and refers to earlier rows by number;
so shared subexpressions stay shared and reading needs no recursion. What an expression refers to outside itself is
up to the caller: variables by name, tensors and buffers by JSON values of the caller's choice.

    writer = ExprWriter(variables={i: "i"}, producer=lambda tensor: tensor.name)
    document = {"rows": writer.rows, "body": writer.expr(body)}
    reader = ExprReader(document["rows"], variables={"i": i}, producer=tensors.__getitem__)
    body = reader.expr(document["body"])

Reading checks everything and raises `RecordError` on whatever isn't exactly so; it never runs what it reads.

Another document is the JSON text that TVM saves nodes as, which traces and tuning records carry (`node_graph`): graph_fields,
graph_reader, graph_writer and graph_text know its form, node_types the expressions in it, module_graph and module_nodes
statements, functions and modules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import RecordError
from ..buffer import Buffer
from ..expr import PrimExpr, Var
from .reader import ExprReader, Limits
from .statements import stmt_from_json, stmt_to_json
from .writer import ExprWriter

JSON = Any


def to_json(exprs: Sequence[PrimExpr] | PrimExpr, writer: ExprWriter | None = None) -> dict[str, JSON]:
    """One expression, or several that share rows, as a document for `from_json`."""
    writer = writer or ExprWriter()
    roots = [exprs] if isinstance(exprs, PrimExpr) else list(exprs)
    numbers = [writer.expr(root) for root in roots]
    return {"rows": writer.rows, "roots": numbers}


def from_json(
    data: JSON,
    variables: Mapping[str, Var] | None = None,
    producer: Callable[[JSON], Any] | None = None,
    buffer: Callable[[JSON], Buffer] | None = None,
    limits: Limits | None = None,
) -> tuple[PrimExpr, ...]:
    """The expressions of a document that `to_json` made.

    Args:
        variables: variables that exist already, by the names that the writer was given.
        producer: the tensor of what the writer's `producer` returned; a KeyError or the like means there is none.
        buffer: likewise for buffers.
        limits: what a document may hold; the defaults fit every real program.

    Raises:
        RecordError: for anything that is not exactly such a document.
    """
    if not isinstance(data, dict) or set(data) != {"rows", "roots"} or not isinstance(data["roots"], list):
        raise RecordError("an expression document has the fields rows and roots")
    reader = ExprReader(data["rows"], variables, producer, buffer, limits)
    return tuple(reader.expr(number) for number in data["roots"])


__all__ = ["ExprReader", "ExprWriter", "Limits", "from_json", "stmt_from_json", "stmt_to_json", "to_json"]
