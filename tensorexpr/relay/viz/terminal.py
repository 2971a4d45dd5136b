"""Networks as trees of text: each value above what it is computed of."""

from __future__ import annotations

from pathlib import Path

from .interface import Plotter, VizEdge, VizGraph, VizNode


class TermGraph(VizGraph):
    """The tree of a function.

    Args:
        name: of the function.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: dict[str, VizNode] = {}
        self._parts: dict[str, list[str]] = {}

    def node(self, viz_node: VizNode) -> None:
        """Add a node."""
        self._nodes[viz_node.identity] = viz_node

    def edge(self, viz_edge: VizEdge) -> None:
        """Add an edge."""
        self._parts.setdefault(viz_edge.end, []).append(viz_edge.start)

    def render(self) -> str:
        """The tree. What is used again is written once; later a number stands for it."""
        used = {part for parts in self._parts.values() for part in parts}
        lines, written = [f"@{self._name}"], set[str]()
        # With a stack, since networks are deeper than Python's.
        waiting = [(one, "", "") for one in reversed(self._nodes) if one not in used]
        while waiting:
            key, indent, branch = waiting.pop()
            node = self._nodes.get(key)
            if node is None:
                continue
            known, parts = key in written, self._parts.get(key, [])
            detail = "" if known or not node.detail else f" ({', '.join(node.detail.splitlines())})"
            lines.append(f"{indent}{branch}#{key} {node.type_name}{detail}{' ...' if known and parts else ''}")
            written.add(key)
            inner = indent + {"": "", "|--": "|  ", "`--": "   "}[branch]
            marks = ["|--"] * (len(parts) - 1) + ["`--"]
            waiting.extend(() if known else [(part, inner, mark) for part, mark in reversed(list(zip(parts, marks, strict=False)))])
        return "\n".join(lines)


class TermPlotter(Plotter):
    """Writes trees to the terminal, or to a file."""

    def __init__(self) -> None:
        self._name_to_graph: dict[str, TermGraph] = {}  # programs whose plotters make graphs of their own put them there

    def create_graph(self, name: str) -> TermGraph:
        """The tree of a function, empty."""
        self._name_to_graph[name] = TermGraph(name)
        return self._name_to_graph[name]

    def render(self, filename: str | None = None) -> None:
        """Print the trees; into a file if there is a name."""
        text = "\n\n".join(graph.render() for graph in self._name_to_graph.values())
        if filename is None:
            print(text)
        else:
            Path(filename).write_text(text + "\n")


__all__ = ["TermGraph", "TermPlotter"]
