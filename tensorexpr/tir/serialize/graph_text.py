"""JSON laid out as TVM saves it: one entry a line, but for lists of up to ten numbers and objects of one entry."""

from __future__ import annotations

import json
from typing import Any

SHORT_LIST = 10  # dmlc's JSONWriter, which writes TVM's files, breaks longer ones over lines


def graph_text(value: Any, depth: int = 1) -> str:
    """The text of objects, lists, texts and numbers.

    Args:
        depth: of the lines inside.
    """
    if isinstance(value, dict):
        entries = [f"{_string(key)}: {graph_text(item, depth + 1)}" for key, item in value.items()]
        # A node is spread out even where it has one entry; its attributes are not.
        wide = len(entries) > 1 or "type_key" in value
        return "{" + _laid_out(entries, depth, wide) + "}"
    if isinstance(value, list):
        wide = len(value) > SHORT_LIST or not all(isinstance(item, int) for item in value)
        return "[" + _laid_out([graph_text(item, depth + 1) for item in value], depth, wide) + "]"
    return _string(value) if isinstance(value, str) else str(value)


def _laid_out(entries: list[str], depth: int, wide: bool) -> str:
    if not wide or not entries:
        return ", ".join(entries)
    inner = "\n" + "  " * depth
    return inner + f", {inner}".join(entries) + "\n" + "  " * (depth - 1)


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
