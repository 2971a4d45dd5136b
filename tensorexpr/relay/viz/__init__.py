"""Networks as pictures: `contrib.relay_viz`.

    RelayVisualizer(mod, relay_param=params).render()                        a tree on the terminal
    RelayVisualizer(mod, plotter=DotPlotter()).render("net")                 net.dot for Graphviz, and net.svg

interface   what a parser and a plotter are, and the parser that tells of each expression what it is
terminal    trees of text
dot         boxes and arrows
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import DeclarationError
from ...tir.function import IRModule
from ...tir.op_registry import Op
from ..expr import Function
from ..visitor import walk
from .dot import DotPlotter
from .interface import DefaultVizParser, Plotter, VizParser
from .terminal import TermPlotter


class RelayVisualizer:
    """Draws the functions of a module, "main" first.

    Args:
        relay_mod: the module.
        relay_param: names of weights, so that they are told from inputs.
        plotter: what draws; a `TermPlotter` without one.
        parser: what says of an expression what it is; a `DefaultVizParser` without one.

    Raises:
        DeclarationError: for a module without functions of Relay.
    """

    def __init__(
        self, relay_mod: IRModule, relay_param: Mapping[str, Any] | None = None, plotter: Plotter | None = None,
        parser: VizParser | None = None,
    ) -> None:  # fmt: skip
        self._plotter = plotter if plotter is not None else TermPlotter()
        parser = parser if parser is not None else DefaultVizParser()
        functions = {var.name_hint: func for var, func in relay_mod.functions_items() if isinstance(func, Function)}
        if not functions:
            raise DeclarationError("RelayVisualizer: the module has no function of Relay; IRModule.from_expr(expr) makes one")
        for name in sorted(functions, key=lambda one: one != "main"):
            # Operators aren't values; calls have their names.
            values = [node for node in walk(functions[name]) if not isinstance(node, Op)]
            numbers = {node: str(number) for number, node in enumerate(values)}
            graph = self._plotter.create_graph(name)
            for value in values:
                node, edges = parser.get_node_edges(value, dict(relay_param or {}), numbers)
                if node is not None:
                    graph.node(node)
                for edge in edges:
                    graph.edge(edge)

    def render(self, filename: str | None = None) -> None:
        """Draw it.

        Args:
            filename: where; each plotter says what it does without one.
        """
        self._plotter.render(filename)


__all__ = ["DefaultVizParser", "DotPlotter", "Plotter", "RelayVisualizer", "TermPlotter", "VizParser"]
