"""Networks as boxes and arrows: Graphviz' language, and pictures that need no Graphviz."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ...contrib.drawing import Graph, Node
from .interface import Plotter, VizEdge, VizGraph, VizNode

Attributes = Mapping[str, str]


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _options(attributes: Attributes) -> str:
    return f" [{' '.join(f'{key}={_quoted(str(value))}' for key, value in attributes.items())}]" if attributes else ""


class DotGraph(VizGraph):
    """The picture of a function.

    Args:
        name: of the function.
        graph_attr, node_attr, edge_attr: Graphviz' attributes of all.
        get_node_attr: those of a node.
    """

    def __init__(
        self, name: str, graph_attr: Attributes | None = None, node_attr: Attributes | None = None, edge_attr: Attributes | None = None,
        get_node_attr: Callable[[VizNode], Attributes] | None = None,
    ) -> None:  # fmt: skip
        self.name, self._of_node = name, get_node_attr
        common = {"graph": graph_attr, "node": {"shape": "box", **(node_attr or {})}, "edge": edge_attr}
        self._lines = [f"  {kind}{_options(given)};" for kind, given in common.items() if given]
        self._drawn = Graph(name)

    def node(self, viz_node: VizNode) -> None:
        """Add a box."""
        attributes = dict(self._of_node(viz_node)) if self._of_node is not None else {}
        rows = (viz_node.type_name, *viz_node.detail.splitlines())
        self._lines.append(f"  n{viz_node.identity}{_options({'label': chr(10).join(rows), **attributes})};")
        self._drawn.add(Node(f"n{viz_node.identity}", rows, attributes.get("fillcolor", "#d6e4f5")))

    def edge(self, viz_edge: VizEdge) -> None:
        """Add an arrow."""
        self._lines.append(f"  n{viz_edge.start} -> n{viz_edge.end};")
        self._drawn.connect(f"n{viz_edge.start}", f"n{viz_edge.end}")

    def dot(self) -> str:
        """The picture in Graphviz' language."""
        return "\n".join([f"digraph {_quoted(self.name)} {{", *self._lines, "}", ""])

    def svg(self) -> str:
        """The picture; arrows from and to what isn't drawn are left out."""
        self._drawn.edges = [one for one in self._drawn.edges if one[0] in self._drawn.nodes and one[1] in self._drawn.nodes]
        return self._drawn.svg()


class DotPlotter(Plotter):
    """Writes NAME.dot and NAME.svg, and NAME_FUNCTION.dot and .svg for the other functions of a module.

    Args:
        graph_attr, node_attr, edge_attr: Graphviz' attributes of all.
        get_node_attr: those of a node, such as {"fillcolor": "green", "style": "filled"}.
        render_kwargs: accepted.
    """

    def __init__(
        self, graph_attr: Attributes | None = None, node_attr: Attributes | None = None, edge_attr: Attributes | None = None,
        get_node_attr: Callable[[VizNode], Attributes] | None = None, render_kwargs: Mapping[str, object] | None = None,
    ) -> None:  # fmt: skip
        self._given = (graph_attr, node_attr, edge_attr, get_node_attr)
        self._name_to_graph: dict[str, DotGraph] = {}  # programs whose plotters make graphs of their own put them there

    def create_graph(self, name: str) -> DotGraph:
        """The picture of a function, empty."""
        self._name_to_graph[name] = DotGraph(name, *self._given)
        return self._name_to_graph[name]

    def render(self, filename: str | None = None) -> None:
        """Write the pictures; they are called after their functions if there is no name."""
        for number, graph in enumerate(self._name_to_graph.values()):
            name = graph.name if filename is None else filename if number == 0 else f"{filename}_{graph.name}"
            Path(f"{name}.dot").write_text(graph.dot())
            Path(f"{name}.svg").write_text(graph.svg())


__all__ = ["DotGraph", "DotPlotter"]
