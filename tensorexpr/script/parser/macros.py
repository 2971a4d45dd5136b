"""Macros: statements with a name, which are read anew wherever a script calls it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .source import Source

# Macros may use each other, and one that uses itself would never end.
DEEPEST = 32


@dataclass(frozen=True, eq=False, slots=True)
class Macro:
    """The statements of a function under @T.macro.

    A hygienic one knows what stood around its definition; another one also what stands around the call.
    """

    source: Source
    node: ast.FunctionDef
    captured: Mapping[str, Any]
    hygienic: bool = True

    @property
    def parameters(self) -> list[str]:
        """The names of the parameters."""
        return [arg.arg for arg in (*self.node.args.posonlyargs, *self.node.args.args)]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: a script alone can use it.

        Raises:
            TypeError: always.
        """
        raise TypeError(f"the macro {self.node.name} is a part of scripts; call it in a function under @T.prim_func")


def macro_of(source: Source, captured: Mapping[str, Any], hygienic: bool = True, node: ast.FunctionDef | None = None) -> Macro:
    """The macro that a text defines, at a place or as its only function.

    Raises:
        ParseError: if it is no function, or has parameters with defaults or stars.
    """
    found = source.tree().body[0] if node is None else node
    if not isinstance(found, ast.FunctionDef):
        raise source.error(found, "@T.macro stands above a function")
    args = found.args
    odd = next((x for x in (*args.kwonlyargs, args.vararg, args.kwarg, *args.defaults) if x is not None), None)
    if odd is not None:
        raise source.error(odd, "parameters of a macro have neither defaults nor stars")
    return Macro(source, found, captured, hygienic)
