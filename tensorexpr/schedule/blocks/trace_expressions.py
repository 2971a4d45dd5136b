"""Expressions of sampled numbers in traces, such as `v4 // 2` as a factor of split: as text, as JSON, with other handles.

In JSON: {"expression": ["FloorDiv", "v4", 2]}.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any

from ...errors import RecordError
from ...tir import expr as nodes
from ...tir.expr import IntImm, Not, PrimExpr, Var
from ...tir.rewriting import substitute, variables
from .handles import RV

KEY = "expression"
_BINARY = (
    *(nodes.Add, nodes.Sub, nodes.Mul, nodes.FloorDiv, nodes.FloorMod, nodes.Min, nodes.Max),
    *(nodes.EQ, nodes.NE, nodes.LT, nodes.LE, nodes.GT, nodes.GE, nodes.And, nodes.Or),
)
_BY_NAME: dict[str, Any] = {kind.__name__: kind for kind in _BINARY}
_MOST_NODES = 1_000
_DEEPEST = 100  # each level takes Python two frames of its thousand, beside those of whoever reads the trace


def in_other_handles(value: PrimExpr, meaning: Mapping[RV, RV]) -> PrimExpr:
    """An expression with its sampled numbers replaced by what they mean elsewhere."""
    known: dict[Var, PrimExpr] = {}
    for var in variables(value):
        other = meaning.get(var)
        if isinstance(other, Var):
            known[var] = other
    return substitute(value, known) if known else value


def in_names(value: PrimExpr, names: Mapping[RV, str]) -> str:
    """An expression as Python, sampled numbers by their names."""
    match value:
        case nodes.And(a, b):
            return f"tir.all({in_names(a, names)}, {in_names(b, names)})"  # Python's own `and` would ask for a truth value
        case nodes.Or(a, b):
            return f"tir.any({in_names(a, names)}, {in_names(b, names)})"
        case Not(a):
            return f"tir.Not({in_names(a, names)})"
    return str(substitute(value, {var: Var(names[var], var.dtype) for var in variables(value) if var in names}))


def expression_to_json(value: PrimExpr, names: Mapping[RV, str]) -> dict[str, Any]:
    """An expression as JSON.

    Raises:
        RecordError: if it has more in it than sampled numbers, integers, arithmetic and comparisons.
    """

    def written(node: PrimExpr, depth: int = 0) -> Any:
        if depth > _DEEPEST:
            raise RecordError(f"a trace has expressions of at most {_DEEPEST} levels; this one is deeper")
        if isinstance(node, Var) and node in names:
            return names[node]
        if isinstance(node, IntImm):
            return node.value
        if isinstance(node, Not):
            return ["Not", written(node.a, depth + 1)]
        if isinstance(node, _BINARY):
            return [type(node).__name__, written(node.a, depth + 1), written(node.b, depth + 1)]
        raise RecordError(f"a trace has expressions of sampled numbers and integers alone, not {str(value)[:80]}")

    return {KEY: written(value)}


def expression_from_json(value: Any, meaning: Mapping[str, RV]) -> PrimExpr:
    """The expression that `expression_to_json` wrote.

    Raises:
        RecordError: for anything else.
    """
    left = _MOST_NODES

    def read(given: Any, depth: int = 0) -> PrimExpr:
        nonlocal left
        left = left - 1 if depth <= _DEEPEST else -1
        if type(given) is int and abs(given) < 1 << 31 and left >= 0:
            return IntImm("int32", given)
        if isinstance(given, str) and isinstance(found := meaning.get(given), Var):
            return found
        if left >= 0 and isinstance(given, list) and given and isinstance(given[0], str):
            parts = [read(part, depth + 1) for part in given[1:]]
            if given[0] == "Not" and len(parts) == 1 and parts[0].dtype == "bool":
                return Not(parts[0])
            if given[0] in _BY_NAME and len(parts) == 2 and _fits(given[0], parts):
                made: PrimExpr = _BY_NAME[given[0]](*parts)
                return made
        raise RecordError(f"this is no expression of sampled numbers: {reprlib.repr(given)[:80]}")

    return read(value)


def _fits(name: str, parts: list[PrimExpr]) -> bool:
    wanted = "bool" if name in ("And", "Or") else "int32"
    return all(part.dtype == wanted for part in parts)
