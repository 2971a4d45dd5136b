"""What an expression of Python is worth, given what names mean. It is read as in a script: nothing else runs."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from ..context import Context
from ..expressions import ExpressionReader
from ..functions import MODULES
from ..scope import Scope
from ..source import Source


def _reader(node: ast.AST, values: Mapping[str, Any]) -> ExpressionReader:
    return ExpressionReader(Source.of_text(ast.unparse(node), "<str>"), Scope(values), Context(), MODULES)


class ExprEvaluator:
    """Reads expressions. Its method has the name that TVM's has: nothing is given to Python's `eval`."""

    @staticmethod
    def eval(parser: Any, value_table: Mapping[str, Any], node: ast.AST) -> Any:
        """The value of `node`.

        Args:
            parser: not used.
            value_table: what names mean.

        Raises:
            ParseError: for what can't be read.
        """
        return _reader(node, value_table).value(node)


def eval_expr(parser: Any, node: ast.AST, dict_globals: Mapping[str, Any] | None) -> Any:
    """The value of an expression, as `ExprEvaluator.eval` gives it."""
    return ExprEvaluator.eval(parser, dict_globals or {}, node.body if isinstance(node, ast.Expression) else node)


def eval_assign(parser: Any, target: ast.AST, source: Any) -> dict[str, Any]:
    """What each name of a target means after it is assigned `source`.

    Raises:
        ValueError: if the numbers of names and values differ, or the target holds something else than names.
    """
    if isinstance(target, ast.Name):
        return {target.id: source}
    if not isinstance(target, (ast.Tuple, ast.List)):
        raise ValueError(f"{ast.unparse(target)} is neither a name nor a tuple of names")
    found: dict[str, Any] = {}
    values = list(source)
    stars = [number for number, part in enumerate(target.elts) if isinstance(part, ast.Starred)]
    if stars:
        last = len(values) - (len(target.elts) - stars[0] - 1)
        values[stars[0] : last] = [values[stars[0] : last]]
    for part, value in zip(target.elts, values, strict=True):
        found |= eval_assign(parser, part.value if isinstance(part, ast.Starred) else part, value)
    return found
