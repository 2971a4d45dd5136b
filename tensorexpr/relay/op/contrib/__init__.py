"""Tables of patterns that code generators of others take, by the generator's name; `transform.MergeComposite` reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....later import stand_for

_TABLES: dict[str, Callable[[], Sequence[tuple[Any, ...]]] | Sequence[tuple[Any, ...]]] = {}


def register_pattern_table(compiler: str, table: Any = None) -> Any:
    """State the patterns of a code generator; without a table as a decorator of a function that returns it.

    Args:
        compiler: its name.
        table: [("mine.conv2d_relu", pattern), ...], each with a function that checks a match, if there is one; or what returns it.
    """
    if table is None:
        return lambda made: register_pattern_table(compiler, made)
    _TABLES[compiler] = table
    return table


def get_pattern_table(compiler: str) -> Sequence[tuple[Any, ...]] | None:
    """The patterns of a code generator; None if it stated none."""
    table = _TABLES.get(compiler)
    return table() if callable(table) else table


stand_for(__name__, f"register={__name__}")

__all__ = ["get_pattern_table", "register_pattern_table"]
