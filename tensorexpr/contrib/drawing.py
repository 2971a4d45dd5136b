"""Graphs of boxes and arrows as Graphviz text, and as SVG in layers."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise

from ..dataclass import dataclass, field, replace

_CHAR, _LINE, _PAD, _GAP, _LAYER = 7.3, 20, 10, 26, 54
_MOST_CHARS = 72


@dataclass(frozen=True)
class Node:
    """A box of rows; the first one has the colour `fill`, the others those of `row_fills`, or white."""

    name: str
    rows: tuple[str, ...]
    fill: str = "#ffffff"
    row_fills: tuple[str, ...] = ()

    def cells(self) -> list[tuple[str, str]]:
        """Text and colour of each row."""
        fills = [self.fill, *self.row_fills, *["#ffffff"] * len(self.rows)]
        return [(_short(row), fill) for row, fill in zip(self.rows, fills, strict=False)]

    @property
    def width(self) -> float:
        """In pixels."""
        return max(len(text) for text, _ in self.cells()) * _CHAR + 2 * _PAD

    @property
    def height(self) -> float:
        """In pixels."""
        return len(self.rows) * _LINE


def _short(text: str) -> str:
    return text if len(text) <= _MOST_CHARS else f"{text[: _MOST_CHARS - 3]}..."


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


@dataclass
class Graph:
    """Boxes, arrows between them, and groups of boxes with a name. `upwards`: arrows point at what stands above."""

    title: str
    upwards: bool = False
    nodes: dict[str, Node] = field(default_factory=dict)
    edges: list[tuple[str, str, str, bool]] = field(default_factory=list)
    groups: dict[str, list[str]] = field(default_factory=dict)

    def add(self, node: Node, group: str | None = None) -> None:
        """A box."""
        self.nodes[node.name] = node
        if group is not None:
            self.groups.setdefault(group, []).append(node.name)

    def connect(self, start: str, end: str, label: str = "", dashed: bool = False) -> None:
        """An arrow."""
        self.edges.append((start, end, label, dashed))

    def dot(self) -> str:
        """The graph in Graphviz' language."""
        lines = [f'digraph "{self.title}" {{', f"  rankdir={'BT' if self.upwards else 'TB'};"]
        lines += ['  node [shape=plaintext fontname="monospace" fontsize=11];', '  edge [fontname="monospace" fontsize=10];']
        grouped = {name for members in self.groups.values() for name in members}
        lines += [f"  {self._dot_node(node)}" for name, node in self.nodes.items() if name not in grouped]
        for number, (group, members) in enumerate(self.groups.items()):
            lines += [f"  subgraph cluster_{number} {{", f'    label="{_quoted(group)}"; color="#999999";']
            lines += [f"    {self._dot_node(self.nodes[name])}" for name in members] + ["  }"]
        for start, end, label, dashed in self.edges:
            options = [f'label="{_quoted(label)}"'] if label else []
            options += ["style=dashed"] if dashed else []
            lines.append(f"  {start} -> {end}{f' [{chr(32).join(options)}]' if options else ''};")
        return "\n".join([*lines, "}", ""])

    def _dot_node(self, node: Node) -> str:
        rows = "".join(f'<TR><TD ALIGN="LEFT" BGCOLOR="{fill}">{escape(text)}</TD></TR>' for text, fill in node.cells())
        return f'{node.name} [label=<<TABLE BORDER="0" CELLBORDER="1" CELLSPACING="0" CELLPADDING="4">{rows}</TABLE>>];'

    def svg(self) -> str:
        """The graph as a picture: what is pointed at stands a layer below, or above if the graph grows upwards."""
        routed, ways = self._routed()
        places, width, height = routed._places(routed._layers())
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
            'font-family="monospace" font-size="12">',
            '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
            '<path d="M0,0 L10,5 L0,10 z" fill="#555"/></marker></defs>',
            f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>',
        ]
        parts += [self._svg_group(group, members, places) for group, members in self.groups.items()]
        parts += [
            _svg_edge(edge, [(routed.nodes[name], *places[name]) for name in way]) for edge, way in zip(self.edges, ways, strict=True)
        ]
        parts += [self._svg_node(node, *places[node.name]) for node in self.nodes.values()]
        return "\n".join([*parts, "</svg>", ""])

    def _routed(self) -> tuple[Graph, list[list[str]]]:
        """The graph with an empty box in each layer that an arrow passes, so that no other stands in its way, and the boxes on each way."""
        layers = self._layers()
        level = {name: number for number, layer in enumerate(layers) for name in layer}
        group = {name: title for title, members in self.groups.items() for name in members}
        routed = replace(self, nodes=dict(self.nodes), edges=[], groups={title: list(members) for title, members in self.groups.items()})
        ways = []
        for number, (start, end, _, _) in enumerate(self.edges):
            way, step = [start], 1 if level[end] > level[start] else -1
            for passed in range(level[start] + step, level[end], step):
                rows = max(len(self.nodes[name].rows) for name in layers[passed])
                routed.add(Node(f"{number} {passed}", ("",) * rows), group.get(start))
                way.append(f"{number} {passed}")
            ways.append([*way, end])
            for here, there in pairwise(ways[-1]):
                routed.connect(here, there)
        return routed, ways

    def _layers(self) -> list[list[str]]:
        """Boxes by the longest way from a start, each layer in the order of the middle of its neighbours above."""
        ends = [(b, a) if self.upwards else (a, b) for a, b, _, _ in self.edges]
        depth = dict.fromkeys(self.nodes, 0)
        # the longest ways settle within as many rounds as there are boxes; the bound ends those around a cycle
        for _ in self.nodes:
            for above, below in ends:
                depth[below] = min(max(depth[below], depth[above] + 1), len(self.nodes))
        layers: list[list[str]] = [[] for _ in range(max(depth.values(), default=0) + 1)]
        for name, level in depth.items():
            layers[level].append(name)
        group = {name: number for number, members in enumerate(self.groups.values()) for name in members}
        for upper, lower in pairwise(layers):
            rank = {name: place for place, name in enumerate(upper)}
            near = {name: [rank[a] for a, b in ends if b == name and a in rank] for name in lower}
            lower.sort(key=lambda name: (group.get(name, 0), sum(near[name]) / len(near[name]) if near[name] else len(rank)))
        return [layer for layer in layers if layer]

    def _places(self, layers: Sequence[Sequence[str]]) -> tuple[dict[str, tuple[float, float]], float, float]:
        """The corner of each box, and the size of the picture. Groups stand side by side, layers below each other."""
        groups = [set(members) for members in self.groups.values()] or [set(self.nodes)]
        places: dict[str, tuple[float, float]] = {}
        left, bottom = float(_GAP), 0.0
        tops, top = [], float(_GAP + (_LINE if self.groups else 0))
        for layer in layers:
            tops.append(top)
            top += max(self.nodes[name].height for name in layer) + _LAYER
        for members in groups:
            rows = [[self.nodes[name] for name in layer if name in members] for layer in layers]
            widths = [sum(node.width for node in row) + _GAP * max(0, len(row) - 1) for row in rows]
            widest = max(widths, default=0)
            for row, width, start in zip(rows, widths, tops, strict=True):
                x = left + (widest - width) / 2
                for node in row:
                    places[node.name] = (x, start)
                    x += node.width + _GAP
                    bottom = max(bottom, start + node.height)
            left += widest + 2 * _GAP
        return places, left - _GAP, bottom + _GAP

    def _svg_node(self, node: Node, x: float, y: float) -> str:
        parts = []
        for number, (text, fill) in enumerate(node.cells()):
            row = y + number * _LINE
            parts.append(f'<rect x="{x:.1f}" y="{row:.1f}" width="{node.width:.1f}" height="{_LINE}" fill="{fill}" stroke="#777"/>')
            weight = ' font-weight="bold"' if number == 0 and len(node.rows) > 1 else ""
            parts.append(f'<text x="{x + _PAD:.1f}" y="{row + 14:.1f}"{weight}>{escape(text)}</text>')
        return "\n".join(parts)

    def _svg_group(self, name: str, members: Sequence[str], places: dict[str, tuple[float, float]]) -> str:
        boxes = [(*places[member], self.nodes[member]) for member in members]
        low, top = min(x for x, _, _ in boxes) - _PAD, min(y for _, y, _ in boxes) - _LINE
        high, bottom = max(x + n.width for x, _, n in boxes) + _PAD, max(y + n.height for _, y, n in boxes) + _PAD
        return (
            f'<rect x="{low:.1f}" y="{top:.1f}" width="{high - low:.1f}" height="{bottom - top:.1f}" rx="6" fill="#fafafa" stroke="#bbb"/>'
            f'<text x="{low + 6:.1f}" y="{top + 14:.1f}" font-weight="bold">{escape(name)}</text>'
        )


def _svg_edge(edge: tuple[str, str, str, bool], way: Sequence[tuple[Node, float, float]]) -> str:
    """An arrow through boxes with their corners: curved between layers, straight down or up within those that it passes."""
    _, _, label, dashed = edge
    down = way[-1][2] > way[0][2]
    drawn, labels = "", ""
    for (a, ax, ay), (b, bx, by) in pairwise(way):
        x1, y1 = ax + a.width / 2, ay + (a.height if down else 0)
        x2, y2 = bx + b.width / 2, by + (0 if down else b.height)
        middle = (y1 + y2) / 2
        drawn += f"{'L' if drawn else 'M'}{x1:.1f},{y1:.1f} C{x1:.1f},{middle:.1f} {x2:.1f},{middle:.1f} {x2:.1f},{y2:.1f} "
        if label and not labels:  # in white letters below, so that no line crosses the words
            words = f'x="{(x1 + x2) / 2 + 5:.1f}" y="{middle + 4:.1f}" font-size="11"'
            labels = f'<text {words} fill="#333" stroke="white" stroke-width="4" paint-order="stroke">{escape(label)}</text>'
    style = ' stroke-dasharray="5 4"' if dashed else ""
    return f'<path d="{drawn.rstrip()}" fill="none" stroke="#555"{style} marker-end="url(#tip)"/>{labels}'
