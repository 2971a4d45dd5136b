"""The JSON text that TVM saves -> nodes (see `node_graph`). Everything is checked; nothing is run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...errors import RecordError, TensorExprError
from .graph_fields import Field, NodeType, Scalar, Types
from .rows import shown

MAX_TEXT = 64 << 20
MAX_NODES = 2_000_000
MAX_TREE = 100_000_000  # nodes once sharing is undone: somebody may walk them so
MAX_DEPTH = 20_000


def read_graph(text: str, types: Types, cut: Mapping[str, Sequence[str]] | None = None, most: int = MAX_TEXT) -> Any:
    """The node that a text stands for; lists become tuples, mappings dicts.

    Args:
        cut: by type key, fields that are read as None, whatever they refer to.
        most: how many characters a text may have.

    Raises:
        RecordError: for anything that is not exactly such a text.
    """
    nodes, root = _document(text, most)
    for node in nodes if cut else ():
        attrs = node.get("attrs") if isinstance(node, dict) else None
        if isinstance(attrs, dict) and cut and isinstance(node.get("type_key"), str):
            # Node 0 is None: what stood there isn't referred to by this field any more, and stays unread if nothing else does.
            attrs.update({name: "0" for name in cut.get(node["type_key"], ()) if name in attrs})
    return _Reader(nodes, {row.key: row for row in types}).node(root)


def _document(text: str, most: int) -> tuple[list[Any], int]:
    """The nodes and the number of the root, by shape."""
    if not isinstance(text, str) or len(text) > most:
        raise RecordError(f"a saved graph is a text of at most {most} characters")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"a saved graph is JSON; this is not: {str(error)[:200]}") from None
    if not isinstance(data, dict) or not {"root", "nodes"} <= set(data) <= {"root", "nodes", "b64ndarrays", "attrs"}:
        raise RecordError("a saved graph has the fields root, nodes, b64ndarrays and attrs")
    if data.get("b64ndarrays"):
        raise RecordError("a saved graph with arrays has no place here")
    nodes, root = data["nodes"], data["root"]
    if not isinstance(nodes, list) or len(nodes) > MAX_NODES or type(root) is not int:
        raise RecordError(f"a saved graph has a list of at most {MAX_NODES} nodes, and the number of one as its root")
    return nodes, root


class _Reader:
    """Makes each node that the root needs once, what it refers to first."""

    def __init__(self, nodes: list[Any], rows: Mapping[str, NodeType]) -> None:
        self._nodes, self._rows = nodes, rows
        self._made: dict[int, Any] = {0: None}
        self._weights: dict[int, tuple[int, int]] = {0: (1, 1)}  # nodes of the tree, depth

    def node(self, root: int) -> Any:
        """The node of a number."""
        stack, open_nodes = [root], set[int]()
        while stack:
            number = stack[-1]
            if number in self._made:
                open_nodes.discard(stack.pop())
                continue
            waiting = [inner for inner in self._references(number) if inner not in self._made]
            if waiting:
                # It waits for the second time: what it waits for is itself waiting, further down the stack.
                if number in open_nodes:
                    raise RecordError(f"node {number} of a saved graph refers to itself, by way of {waiting[0]}")
                open_nodes.add(number)
                stack.extend(reversed(waiting))
                continue
            # All that the node refers to has been weighed, as it was made.
            self._weigh(number)
            self._made[number] = self._build(number)
        return self._made[root]

    def _weigh(self, number: int) -> None:
        below = [self._weights[inner] for inner in self._references(number)]
        size, depth = 1 + sum(weight[0] for weight in below), 1 + max((weight[1] for weight in below), default=0)
        if size > MAX_TREE or depth > MAX_DEPTH:
            raise RecordError(f"node {number} stands for {size} nodes, {depth} deep; at most {MAX_TREE} and {MAX_DEPTH}")
        self._weights[number] = (size, depth)

    def _json(self, number: int) -> dict[str, Any]:
        if not 0 < number < len(self._nodes):
            raise RecordError(f"a saved graph of {len(self._nodes)} nodes has no node {number}")
        node = self._nodes[number]
        if not isinstance(node, dict) or not isinstance(node.get("type_key"), str):
            raise RecordError(f"node {number} of a saved graph has no type_key")
        return node

    def _references(self, number: int) -> list[int]:
        """The numbers that a node refers to."""
        node = self._json(number)
        if node["type_key"] in ("Array", "Map"):
            data = node.get("data", [])
            if not isinstance(data, list) or not all(type(inner) is int for inner in data):
                raise RecordError(f"node {number} of a saved graph: data is a list of numbers of nodes")
            return data
        row = self._rows.get(node["type_key"])
        fields = () if row is None or row.repr_text is not None else row.fields
        attrs = self._attrs(number, node, fields) if fields else {}
        return [_number(attrs[field.name]) for field in fields if not isinstance(field.holds, Scalar)]

    def _attrs(self, number: int, node: dict[str, Any], fields: Iterable[Field]) -> dict[str, str]:
        attrs, wanted = node.get("attrs"), {field.name for field in fields}
        if set(node) != {"type_key", "attrs"} or not isinstance(attrs, dict) or set(attrs) != wanted:
            raise RecordError(f"node {number}, a {shown(node['type_key'])}, has exactly the attrs {', '.join(sorted(wanted))}")
        if not all(isinstance(value, str) for value in attrs.values()):
            raise RecordError(f"node {number} of a saved graph: attrs are texts")
        return attrs

    def _build(self, number: int) -> Any:
        node = self._json(number)
        key = node["type_key"]
        if key == "Array":
            return tuple(self._made[inner] for inner in self._references(number))
        if key == "Map":
            return self._map(number, node)
        row = self._rows.get(key)
        try:
            if key == "runtime.String" or (row is not None and row.repr_text is not None):
                text = _text(node)
                return text if row is None else row.make(text)
            if row is None:
                raise RecordError(f"{shown(key)} has no place here; known: {', '.join(sorted(self._rows))}")
            attrs = self._attrs(number, node, row.fields)
            return row.make(**{field.name: self._field(field, attrs[field.name]) for field in row.fields})
        except RecordError as error:
            raise RecordError(f"node {number} of a saved graph: {error}") from None
        except TensorExprError as error:
            raise RecordError(f"node {number} of a saved graph is an ill-typed {key}: {str(error)[:300]}") from error

    def _map(self, number: int, node: dict[str, Any]) -> dict[Any, Any]:
        data = [self._made[inner] for inner in self._references(number)]
        keys = node.get("keys")
        if keys is None:
            # Keys that are no texts are nodes: key and value alternate in data.
            keys, data = data[::2], data[1::2]
        elif not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            raise RecordError(f"node {number} of a saved graph: the keys of a Map are texts, or nodes among its data")
        if len(keys) != len(data):
            raise RecordError(f"node {number} of a saved graph: a Map has as many keys as values")
        try:
            made = dict(zip(keys, data, strict=True))
        except TypeError:  # a key that is a Map, or an Array with one in it
            raise RecordError(f"node {number} of a saved graph: a Map is no key of a Map") from None
        if len(made) != len(keys):
            raise RecordError(f"node {number} of a saved graph: a Map has a key twice")
        return made

    def _field(self, field: Field, text: str) -> Any:
        holds = field.holds
        if isinstance(holds, Scalar):
            return holds.read(text)
        value = self._made[_number(text)]
        if value is None and field.optional:
            return None
        items = value if field.many and isinstance(value, tuple) else (value,)
        if (field.many and not isinstance(value, tuple)) or not all(isinstance(item, holds) for item in items):
            raise RecordError(f"{field.name} is {'a list of ' if field.many else ''}{_class_names(holds)}, not {shown(value)}")
        return value


def _text(node: dict[str, Any]) -> str:
    text = node.get("repr_str", "")
    if not set(node) <= {"type_key", "repr_str"} or not isinstance(text, str):
        raise RecordError(f"a {shown(node['type_key'])} has a repr_str alone")
    return text


def _number(text: str) -> int:
    # Nine digits are more than MAX_NODES has; a longer text isn't converted.
    if not re.fullmatch(r"0|[1-9][0-9]{0,8}", text):
        raise RecordError(f"{shown(text)} is no number of a node")
    return int(text)


def _class_names(holds: type | tuple[type, ...]) -> str:
    return " or ".join(cls.__name__ for cls in (holds if isinstance(holds, tuple) else (holds,)))
