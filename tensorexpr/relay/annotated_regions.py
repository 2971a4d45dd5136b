"""What marks of code generators stand around, as `analysis.AnnotatedRegionSet`: regions with their arguments, values and results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..dataclass import dataclass, field
from ..relax import expr as graph
from ..tir.op_registry import Op
from .expr import Function
from .visitor import operands, walk


@dataclass(eq=False)
class AnnotatedRegion:
    """Values of one code generator that need no marks between them.

    Args:
        target: the generator.
        nodes: marks and values, operands first.
        args: the marks with which it begins.
        rets: the marks with which it ends.
    """

    target: str
    nodes: list[Any] = field(default_factory=list)
    args: list[Any] = field(default_factory=list)
    rets: list[Any] = field(default_factory=list)


class AnnotatedRegionSet:
    """The regions of a function.

    Args:
        expr: the function.
        region_begin_op, region_end_op: the marks' operators: `relay.op.get("annotation.compiler_begin")` and its end.
    """

    def __init__(self, expr: Function, region_begin_op: Op, region_end_op: Op) -> None:
        self._begin, self._end = region_begin_op, region_end_op
        self._regions: dict[int, AnnotatedRegion] = {}
        for node in walk(expr.body):
            self._add(node)

    def _is(self, node: Any, mark: Op) -> bool:
        return isinstance(node, graph.Call) and isinstance(node.op, Op) and node.op == mark

    def _add(self, node: Any) -> None:
        if self._is(node, self._begin):
            region = AnnotatedRegion(str(node.attrs["compiler"]), args=[node])
        else:
            # What a mark ends isn't of the region that reads it.
            inside = [self._regions[id(one)] for one in operands(node) if id(one) in self._regions and not self._is(one, self._end)]
            if not inside:
                return
            region = inside[0]
            for other in inside[1:]:
                self._join(region, other)
            region.rets += [node] if self._is(node, self._end) else []
        region.nodes.append(node)
        self._regions[id(node)] = region

    def _join(self, region: AnnotatedRegion, other: AnnotatedRegion) -> None:
        if other is region:
            return
        region.nodes, region.args, region.rets = region.nodes + other.nodes, region.args + other.args, region.rets + other.rets
        self._regions.update({id(node): region for node in other.nodes})

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __iter__(self) -> Iterator[AnnotatedRegion]:
        return iter({id(region): region for region in self._regions.values()}.values())

    def get_region(self, expr: Any) -> AnnotatedRegion | None:
        """The region of a mark or value; None for what is in none."""
        return self._regions.get(id(expr))
