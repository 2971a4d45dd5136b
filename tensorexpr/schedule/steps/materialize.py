"""The step that gives a part of a definition a stage of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar

from ...arith import linear_form
from ...arith.analyzer import Analyzer
from ...dataclass import dataclass, replace
from ...te.operation import ComputeOp, Operation
from ...tir.arithmetic import as_int, const
from ...tir.attrs import EMPTY
from ...tir.dtype import parse_dtype
from ...tir.expr import Add, Call, IterVar, PrimExpr, ProducerLoad, Range, Reduce, Select, Sub, Var
from ...tir.rewriting import children, post_order_rewrite, substitute, variables, walk
from ..naming import PythonNames
from ..tree import ScheduleTree, initial_stage
from .base import StageStep, check_not_inlined, stage_of
from .caching import check_unscheduled


def parts_of(op: Operation) -> list[PrimExpr]:
    """What may be computed beforehand of a definition: all that reads elements and isn't one, outermost first, each once.

    Nothing behind a condition, which may not be there where that doesn't hold: of `if_then_else(i < n, A[i] * 2, 0)` the whole.
    """
    found: dict[PrimExpr, None] = {}
    for body in op.body if isinstance(op, ComputeOp) else ():
        sources = body.source if isinstance(body, Reduce) and as_int(body.condition) else () if isinstance(body, Reduce) else (body,)
        for source in sources:
            found.update(dict.fromkeys(_parts(source)))
    return list(found)


def _parts(expr: PrimExpr) -> Iterator[PrimExpr]:
    reading: set[int] = set()
    for node in walk(expr):
        if isinstance(node, ProducerLoad) or not reading.isdisjoint(map(id, children(node))):
            reading.add(id(node))
    waiting = [expr]
    while waiting:  # sums of thousands of terms are as deep
        part = waiting.pop()
        if isinstance(part, ProducerLoad) or id(part) not in reading:
            continue
        yield part
        if not isinstance(part, Select) and not (isinstance(part, Call) and part.op == "tir.if_then_else"):
            waiting += [child for child in reversed(tuple(children(part))) if isinstance(child, PrimExpr)]


@dataclass(frozen=True)
class Materialize(StageStep):
    """A part of what a stage computes is computed by a stage of its own, which stands by the axes that the part has.

    for i, j, k: C[i, j] += A[i, k] * s[k] * B[k, j]    ->    for i, k: C.part[i, k] = A[i, k] * s[k]
                                                              for i, j, k: C[i, j] += C.part[i, k] * B[k, j]

    Axes come in the order of the stage's, those of a reduction last. An axis of the result and one of the reduction are one axis where the
    part has nothing but their sum, and all axes come in the order of what it reads then: a window's border is part of what it slides over.

    for y, r: Y[y] += (X[y + r - 1] if 1 <= y + r else 0) * W[r]    ->    for u: Y.part[u] = X[u - 1] if 1 <= u else 0
                                                                          for y, r: Y[y] += Y.part[y + r] * W[r]

    `part` counts `parts_of` the definition.
    """

    code: ClassVar[str] = "materialize"
    part: int

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The stage reads the part from a new stage before it.

        Raises:
            ScheduleError: if the stage is inlined or scheduled already, is no computation of elements, or has no such part.
        """
        stage = stage_of(tree, self.stage, "materialize")
        check_not_inlined(stage, "materialize")
        check_unscheduled(stage, "materialize")
        parts = parts_of(stage.op)
        if not 0 <= self.part < len(parts):
            listed = "; ".join(f"{number}: {part}" for number, part in enumerate(parts))
            raise stage.refused(f"materialize of part {self.part}; its parts are {listed or 'none'}")
        op, part = stage.compute, parts[self.part]
        value, axes = by_axes(part, op)
        made = ComputeOp(tree.unique_name(f"{stage.name}.part"), "", EMPTY, tuple(axis for axis, _ in axes), (), body=(value,))
        read = ProducerLoad(made.output(0), tuple(index for _, index in axes))
        body = tuple(post_order_rewrite(one, lambda node: read if node is part else None) for one in op.body)
        tree = tree.with_stage(replace(stage, op=replace(op, body=body), origin=stage.origin))
        return tree.with_new_stage(initial_stage(len(tree.stages), made.name, made), before=stage.id)

    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        stage, new = after[self.stage], after.stages[-1]
        name = names.name_stage(new)
        return [f"{name} = s.materialize({names.stage(stage)}, {self.part})", *names.axis_lines(new)]


def by_axes(
    part: PrimExpr, op: ComputeOp, summed: Mapping[IterVar, IterVar] = MappingProxyType({})
) -> tuple[PrimExpr, list[tuple[IterVar, PrimExpr]]]:
    """A part by axes of its own, and these with the index that each is read at, but for those that are `summed`, by axes given for them."""
    used, found = variables(part), list[tuple[IterVar, PrimExpr]]()
    renamed: dict[Var, PrimExpr] = {old.var: new.var for old, new in summed.items()}
    axes = [axis for axis in (*op.axis, *op.reduce_axis) if axis.var in used and axis not in summed]
    value, windows = _in_windows(part, axes, {axis.var for axis in op.axis})
    left = variables(value)
    for one in axes:
        if one.var in windows:
            found.append(windows[one.var])
        elif one.var in left:
            # an axis of a reduction may begin elsewhere, where its stage begins at 0
            start = one.dom.min if one.dom is not None else 0
            found.append((IterVar(_from_zero(one), Var(f"{one.name}.m", one.dtype), IterVar.DATA_PAR), one.var - start))
            renamed[one.var] = found[-1][0].var + start
    value = substitute(value, renamed)
    if windows:
        reads = [index for node in walk(value) if isinstance(node, ProducerLoad) for index in node.indices]
        found.sort(key=lambda one: next((place for place, index in enumerate(reads) if one[0].var in variables(index)), len(reads)))
    return value, found


def _in_windows(part: PrimExpr, axes: Sequence[IterVar], results: set[Var]) -> tuple[PrimExpr, Mapping[Var, tuple[IterVar, PrimExpr]]]:
    """A part with one axis for each sum of axes that it has nothing else of, by the result's axis of the sum, and where it is read."""
    found, ranges = dict[Var, tuple[IterVar, PrimExpr]](), {axis.var: axis.dom for axis in axes}
    for node in walk(part):
        if not isinstance(node, (Add, Sub)) or not parse_dtype(node.dtype).is_int:
            continue
        terms = {var: factor for var, factor in linear_form(node).terms.items() if isinstance(var, Var) and var in ranges}
        moved = [var for var in terms if var in results]
        gone = next((var for var, factor in terms.items() if abs(factor) == 1), None)
        reach = _reach(terms, ranges)
        if len(moved) != 1 or len(terms) < 2 or gone is None or reach is None or terms.keys() - variables(part):
            continue
        low, extent = reach
        axis = IterVar(Range.from_min_extent(0, extent), Var(f"{moved[0].name}.m", moved[0].dtype), IterVar.DATA_PAR)
        index: PrimExpr = sum((var * factor for var, factor in terms.items()), const(-low, moved[0].dtype))
        analyzer = Analyzer()  # which has to know that indices don't wrap
        for var, dom in (*ranges.items(), (axis.var, axis.dom)):
            if dom is not None:
                analyzer.bind(var, dom)
        # y = u - r: where r is left, the part has it elsewhere, too
        other = analyzer.simplify(substitute(part, {gone: gone + (axis.var - index) * terms[gone]}))
        if not terms.keys() & variables(other):
            part, found[moved[0]] = other, (axis, index)
    return part, found


def _reach(terms: Mapping[Var, int], ranges: Mapping[Var, Range | None]) -> tuple[int, int] | None:
    """The least value of a sum of axes, and how many there are; None if it doesn't take all between, or there is no saying."""
    low, extent = 0, 1
    for var, factor in sorted(terms.items(), key=lambda term: abs(term[1])):
        dom = ranges[var]
        first, count = (None, None) if dom is None else (as_int(dom.min), as_int(dom.extent))
        if first is None or not count or abs(factor) > extent:
            return None
        low += min(factor * first, factor * (first + count - 1))
        extent += abs(factor) * (count - 1)
    return low, extent


def _from_zero(axis: IterVar) -> Range | None:
    return None if axis.dom is None else Range.from_min_extent(0, axis.dom.extent)
