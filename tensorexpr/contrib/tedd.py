"""Pictures of te schedules: the tree of stages and loops, how axes were made of each other, and the graph of the data.

Each function gives Graphviz text, writes it to a file, and shows the picture in a notebook (`show_svg`). The picture is drawn
here, in layers, without Graphviz.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..arith import Analyzer
from ..schedule.te_schedule import Schedule
from ..schedule.tree import At, Inline, LoopKind, SplitRelation, StageNode
from ..te.dag_text import operation_lines
from ..te.extern import ExternOp
from ..te.operation import ComputeOp
from ..te.scan_op import ScanOp
from ..tir.expr import IterVar
from .drawing import Graph, Node

_FILL = {"stage": "#d6e4f5", "input": "#e3f1dc", "reduce": "#f8dcd4", "spatial": "#ffffff", "relation": "#f4ecd2", "place": "#ececec"}


def viz_schedule_tree(sch: Schedule, show_svg: bool = False, dot_file_path: str = "", output_dot_string: bool = False) -> str | None:
    """The stages with their loops, each at the loop where it is computed.

    Args:
        sch: a schedule.
        show_svg: show the picture in the notebook.
        dot_file_path: where to write the Graphviz text; "" writes none.
        output_dot_string: return that text.
    """
    return _given(_schedule_tree(sch), show_svg, dot_file_path, output_dot_string)


def viz_itervar_relationship_graph(
    sch: Schedule, show_svg: bool = False, dot_file_path: str = "", output_dot_string: bool = False
) -> str | None:
    """For each stage its axes, and the splits and fusions that made them. Arguments as of `viz_schedule_tree`."""
    return _given(_axis_graph(sch), show_svg, dot_file_path, output_dot_string)


def viz_dataflow_graph(sch: Schedule, show_svg: bool = False, dot_file_path: str = "", output_dot_string: bool = False) -> str | None:
    """Which stage reads which tensor. Arguments as of `viz_schedule_tree`."""
    return _given(_dataflow(sch), show_svg, dot_file_path, output_dot_string)


def as_svg(picture: Callable[..., Any], sch: Schedule) -> str:
    """The picture that one of the functions above draws of a schedule, as SVG."""
    graphs = {viz_schedule_tree: _schedule_tree, viz_itervar_relationship_graph: _axis_graph, viz_dataflow_graph: _dataflow}
    return graphs[picture](sch).svg()


def _given(graph: Graph, show_svg: bool, dot_file_path: str, output_dot_string: bool) -> str | None:
    text = graph.dot()
    if dot_file_path:
        Path(dot_file_path).write_text(text)
    if show_svg:
        from IPython.display import SVG, display  # type: ignore[import-not-found, unused-ignore]

        display(SVG(graph.svg()))
    return text if output_dot_string else None


def _kind(stage: StageNode) -> str:
    return "input" if stage.is_placeholder else "stage"


def _what(stage: StageNode) -> str:
    match stage.op:
        case ScanOp():
            return "scan"
        case ExternOp():
            return "extern"
        case ComputeOp() as op:
            return "reduction" if op.reduce_axis else "compute"
    return "input"


def _loop(stage: StageNode, axis: int) -> str:
    mark = stage.mark(axis)
    words = [stage.axes[axis].name, *_range(stage.axes[axis])]
    if mark.kind is not LoopKind.SERIAL:
        words.append(mark.thread.tag if mark.thread else mark.kind.value)
    return " ".join([*words, *(f"{key}={value}" for key, value in mark.pragmas)])


def _range(axis: IterVar) -> list[str]:
    return [] if axis.dom is None else [f"[{axis.dom.min}, {Analyzer().simplify(axis.dom.min + axis.dom.extent)})"]


def _schedule_tree(sch: Schedule) -> Graph:
    graph, tree = Graph("schedule tree", upwards=True), sch.tree
    graph.add(Node("root", ("root",), _FILL["place"]))
    for stage in tree.in_order():
        title = f"{stage.name}  ({_what(stage)}{', ' + stage.scope if stage.scope else ''})"
        rows = tuple(_loop(stage, axis) for axis in stage.leaf)
        fills = tuple(_FILL["reduce" if stage.is_reduction(axis) else "spatial"] for axis in stage.leaf)
        body = () if stage.is_placeholder else operation_lines(stage.op)
        graph.add(Node(f"s{stage.id}", (title, *rows, *body), _FILL[_kind(stage)], (*fills, *(_FILL["place"] for _ in body))))
        match stage.attach:
            case At(stage=target, axis=axis):
                graph.connect(f"s{stage.id}", f"s{target}", tree[target].axes[axis].name)
            case Inline():
                for reader in tree.consumers(stage):
                    graph.connect(f"s{stage.id}", f"s{reader.id}", "inlined", dashed=True)
            case _:
                graph.connect(f"s{stage.id}", "root")
    return graph


def _axis_graph(sch: Schedule) -> Graph:
    graph = Graph("axes and how they were made")
    for stage in sch.tree.in_order():
        if not stage.axes:
            continue
        for number, axis in enumerate(stage.axes):
            fill = _FILL["reduce" if stage.is_reduction(number) else "stage" if number in stage.leaf else "spatial"]
            graph.add(Node(f"s{stage.id}a{number}", (" ".join([axis.name, *_range(axis)]),), fill), stage.name)
        for number, relation in enumerate(stage.relations):
            name = f"s{stage.id}r{number}"
            if isinstance(relation, SplitRelation):
                factors = ", ".join("?" if factor is None else str(factor) for factor in relation.factors)
                graph.add(Node(name, (f"split {factors}",), _FILL["relation"]), stage.name)
                ends: tuple[int, ...] = (relation.parent,)
                made = relation.parts
            else:
                graph.add(Node(name, ("fuse",), _FILL["relation"]), stage.name)
                ends, made = relation.parts, (relation.fused,)
            for axis_number in ends:
                graph.connect(f"s{stage.id}a{axis_number}", name)
            for axis_number in made:
                graph.connect(name, f"s{stage.id}a{axis_number}")
    return graph


def _dataflow(sch: Schedule) -> Graph:
    graph, tree = Graph("data flow"), sch.tree
    for stage in tree.in_order():
        shapes = tuple(f"{stage.op.output_dtype(n)} [{', '.join(map(str, stage.op.output_shape(n)))}]" for n in range(stage.op.num_outputs))
        graph.add(Node(f"s{stage.id}", (f"{stage.name}  ({_what(stage)})", *shapes), _FILL[_kind(stage)]))
    for stage in tree.in_order():
        for producer in dict.fromkeys(tree.producer(load).id for load in tree.reads(stage)):
            graph.connect(f"s{producer}", f"s{stage.id}")
    return graph
