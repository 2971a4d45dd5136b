"""What a function returns where it doesn't call itself: a program whose result has the same type, and is known.

fn (%n) { if (%n == 0) { 0 } else { %n + %f(%n - 1) } }     fn (%n) { 0 }
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..relax import expr as graph
from .adt import Match
from .expr import Let
from .visitor import walk


def _results(expr: Any) -> Iterator[Any]:
    """A body for each way through it, in order. A clause of a match is one as it is: it defines variables."""
    match expr:
        case Let(var, value, body) if body is var:
            yield from _results(value)
        case Let(_, _, body):
            yield from (one if one is body else replace(expr, body=one) for one in _results(body))
        case graph.If(_, yes, no):
            yield from _results(yes)
            yield from _results(no)
        case Match(data, clauses) if len(clauses) > 1:
            yield from (Match(data, (clause,), False) for clause in clauses)
        case _:
            yield expr


def without_calls_of(func: Any, itself: Any) -> Any:
    """A function by its first way on which it doesn't call itself; as it is where there is none.

    Args:
        func: of Relay.
        itself: the variable by which it calls itself.
    """
    for body in _results(func.body):
        if all(node != itself for node in walk(body)):
            return replace(func, body=body)
    return func


__all__ = ["without_calls_of"]
