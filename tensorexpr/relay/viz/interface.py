"""What a picture of a network is made of: nodes and edges, who finds them, who draws them."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

from ...dataclass import dataclass
from ...relax import expr as graph
from ...tir.op_registry import Op
from ..expr import Function, Let
from ..visitor import operands

UNKNOWN = "unknown"


@dataclass(frozen=True)
class VizNode:
    """A value.

    Args:
        node_id: which one.
        node_type: what it is: the name of an operator, "Var(Input)", "Const", ...
        node_detail: more about it, in lines.
    """

    node_id: str
    node_type: str
    node_detail: str = ""

    @property
    def identity(self) -> str:
        """Which one it is."""
        return self.node_id

    @property
    def type_name(self) -> str:
        """What it is."""
        return self.node_type

    @property
    def detail(self) -> str:
        """More about it."""
        return self.node_detail


@dataclass(frozen=True)
class VizEdge:
    """From a value to what is computed of it, by their ids."""

    start_node: str
    end_node: str

    @property
    def start(self) -> str:
        """The value."""
        return self.start_node

    @property
    def end(self) -> str:
        """What is computed of it."""
        return self.end_node


class VizParser(abc.ABC):
    """Says of an expression which node and edges it is."""

    @abc.abstractmethod
    def get_node_edges(
        self, node: Any, relay_param: Mapping[str, Any], node_to_id: Mapping[Any, str]
    ) -> tuple[VizNode | None, list[VizEdge]]:
        """The node of an expression, None for one that isn't drawn, and the edges to it.

        Args:
            node: the expression.
            relay_param: weights by name.
            node_to_id: the ids of all expressions.
        """


class VizGraph(abc.ABC):
    """A picture of one function, as it is made."""

    @abc.abstractmethod
    def node(self, viz_node: VizNode) -> None:
        """Add a node."""

    @abc.abstractmethod
    def edge(self, viz_edge: VizEdge) -> None:
        """Add an edge."""


class Plotter(abc.ABC):
    """Draws the pictures of a module's functions."""

    @abc.abstractmethod
    def create_graph(self, name: str) -> VizGraph:
        """The picture of a function, empty."""

    @abc.abstractmethod
    def render(self, filename: str | None = None) -> None:
        """Draw them all."""


class DefaultVizParser(VizParser):
    """Operators with their attributes, variables with their types, constants with their shapes."""

    def get_node_edges(
        self, node: Any, relay_param: Mapping[str, Any], node_to_id: Mapping[Any, str]
    ) -> tuple[VizNode | None, list[VizEdge]]:
        """The node of an expression, and edges from what it is computed of."""
        kind, detail = _said(node, relay_param)
        own = node_to_id[node]
        # Variables are drawn where they are used.
        parts = (node.value, node.body) if isinstance(node, Let) else (node.body,) if isinstance(node, Function) else operands(node)
        return VizNode(own, kind, detail), [VizEdge(node_to_id[part], own) for part in parts if part in node_to_id]


def _said(node: Any, weights: Mapping[str, Any]) -> tuple[str, str]:
    """What an expression is, and more about it."""
    match node:
        case Function():
            return "Function", _lines({"params": len(node.params), **node.attrs})
        case graph.GlobalVar():
            return "GlobalVar", node.name_hint
        case graph.Var():
            kind = "Var(Param)" if node.name_hint in weights else "Var(Input)"
            stated = getattr(node, "type_annotation", None)
            return kind, _lines({"name_hint": node.name_hint, **({} if stated is None else {"type": stated})})
        case graph.Constant():
            data = node.data.numpy()
            return "Const", _lines({"shape": data.shape, "dtype": node.data.dtype, **({} if data.ndim else {"value": data.item()})})
        case graph.Call():
            return (str(node.op) if isinstance(node.op, Op) else "Call"), _lines(node.attrs or {})
        case graph.TupleGetItem():
            return "TupleGetItem", _lines({"index": node.index})
        case Let():
            return "Let", node.var.name_hint
        case graph.Tuple() | graph.If():
            return type(node).__name__, ""
    return UNKNOWN, type(node).__name__


def _lines(said: Mapping[str, Any]) -> str:
    return "\n".join(f"{name}: {value}" for name, value in said.items() if value not in ("", None))


__all__ = ["UNKNOWN", "DefaultVizParser", "Plotter", "VizEdge", "VizGraph", "VizNode", "VizParser"]
