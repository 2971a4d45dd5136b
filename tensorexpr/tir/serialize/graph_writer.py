"""Nodes -> the JSON text that TVM saves (see `node_graph`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import RecordError
from .graph_fields import NodeType, Scalar, Types
from .graph_text import graph_text

VERSION = "0.19.0"


def write_graph(root: Any, types: Types) -> str:
    """The text of a node, or of lists, tuples, mappings and strings of nodes.

    Raises:
        RecordError: if the table has no type for something in it.
    """
    writer = _Writer({row.cls: row for row in types})
    number = writer.write(root)
    document = {"root": number, "nodes": writer.nodes, "b64ndarrays": [], "attrs": {"tvm_version": VERSION}}
    return graph_text(document)


class _Writer:
    """Numbers nodes before what they refer to, in the order of their fields; without recursion, as nests are deep."""

    def __init__(self, rows: Mapping[type, NodeType]) -> None:
        self._rows = rows
        self.nodes: list[dict[str, Any]] = [{"type_key": ""}]
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []  # ids are keys, so what they belong to must live
        self._waiting: list[tuple[Any, Any, Any]] = []  # nodes, and where their numbers are to be put

    def write(self, root: Any) -> int:
        """Write a node and all that it refers to; its number."""
        found: list[int] = [0]
        self._waiting = [(root, found, 0)]
        while self._waiting:
            node, place, key = self._waiting.pop()
            # 0 is the number of None alone, so `or` means that the node has none yet.
            number = 0 if node is None else self._numbers.get(id(node)) or self._new(node)
            place[key] = number if isinstance(place, list) else str(number)
        return found[0]

    def _new(self, node: Any) -> int:
        made: dict[str, Any] = {}
        number = len(self.nodes)
        self.nodes.append(made)
        if isinstance(node, (list, tuple)):
            self._several("Array", list(node), made)
        elif isinstance(node, Mapping):
            keyed = all(isinstance(key, str) for key in node)
            if keyed:
                made.update({"type_key": "Map", "keys": list(node)})
            self._several("Map", [item for pair in node.items() for item in (pair[1:] if keyed else pair)], made)
        elif type(node) is str:
            made.update({"type_key": "runtime.String", "repr_str": node})
        else:
            self._typed(node, number, made)
        return number

    def _several(self, key: str, items: list[Any], made: dict[str, Any]) -> None:
        # Places for numbers: the items follow this node, in their order, when the stack comes to them.
        data = [0] * len(items)
        made.update({"type_key": key, **made, "data": data})
        self._waiting.extend((item, data, place) for place, item in reversed(list(enumerate(items))))

    def _typed(self, node: Any, number: int, made: dict[str, Any]) -> None:
        row = self._rows.get(type(node))
        if row is None:
            raise RecordError(f"a saved graph has no node for a {type(node).__name__}; known: {', '.join(c.__name__ for c in self._rows)}")
        if row.shared:
            self._kept.append(node)
            self._numbers[id(node)] = number
        made["type_key"] = row.key
        if row.repr_text is not None:
            made["repr_str"] = row.repr_text(node)
            return
        # TVM writes attributes sorted; what they refer to is numbered in the order of the fields.
        attrs: dict[str, str] = dict.fromkeys(sorted(field.name for field in row.fields), "")
        made["attrs"] = attrs
        for field in reversed(row.fields):
            value = field.value(node)
            if isinstance(field.holds, Scalar):
                attrs[field.name] = field.holds.write(value)
            else:
                self._waiting.append((value, attrs, field.name))
