"""The nodes of syntax trees: Python's, under their own names."""

from __future__ import annotations

import ast
from typing import Any


def __getattr__(name: str) -> Any:
    found = getattr(ast, name, None)
    if found is None:
        raise AttributeError(f"there is no syntax node {name!r}")
    return found


def parse(source: str, filename: str = "<script>", mode: str = "exec") -> ast.AST:
    """The syntax tree of a text."""
    return ast.parse(source, filename, mode)
