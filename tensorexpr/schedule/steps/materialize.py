"""The step that gives a part of a definition a stage of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from ...te.operation import ComputeOp, Operation
from ...tir.arithmetic import as_int
from ...tir.attrs import EMPTY
from ...tir.expr import Call, IterVar, PrimExpr, ProducerLoad, Range, Reduce, Select, Var
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
    waiting = [expr]
    while waiting:  # sums of thousands of terms are as deep
        part = waiting.pop()
        if isinstance(part, ProducerLoad) or not any(isinstance(node, ProducerLoad) for node in walk(part)):
            continue
        yield part
        if not isinstance(part, Select) and not (isinstance(part, Call) and part.op == "tir.if_then_else"):
            waiting += [child for child in reversed(tuple(children(part))) if isinstance(child, PrimExpr)]


@dataclass(frozen=True)
class Materialize(StageStep):
    """A part of what a stage computes is computed by a stage of its own, which stands by the axes that the part has.

    for i, j, k: C[i, j] += A[i, k] * s[k] * B[k, j]    ->    for i, k: C.part[i, k] = A[i, k] * s[k]
                                                              for i, j, k: C[i, j] += C.part[i, k] * B[k, j]

    Axes come in the order of the stage's, those of a reduction last. `part` counts `parts_of` the definition.
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
        used = variables(part)
        own = [axis for axis in (*op.axis, *op.reduce_axis) if axis.var in used]
        axis = tuple(IterVar(_from_zero(one), Var(f"{one.name}.m", one.dtype), IterVar.DATA_PAR) for one in own)
        # an axis of a reduction may begin elsewhere, where its stage begins at 0
        starts = [one.dom.min if one.dom is not None else 0 for one in own]
        renamed: Mapping[Var, PrimExpr] = {old.var: new.var + start for old, new, start in zip(own, axis, starts, strict=True)}
        made = ComputeOp(tree.unique_name(f"{stage.name}.part"), "", EMPTY, axis, (), body=(substitute(part, renamed),))
        read = ProducerLoad(made.output(0), tuple(one.var - start for one, start in zip(own, starts, strict=True)))
        body = tuple(post_order_rewrite(one, lambda node: read if node is part else None) for one in op.body)
        tree = tree.with_stage(replace(stage, op=replace(op, body=body), origin=stage.origin))
        return tree.with_new_stage(initial_stage(len(tree.stages), made.name, made), before=stage.id)

    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        stage, new = after[self.stage], after.stages[-1]
        name = names.name_stage(new)
        return [f"{name} = s.materialize({names.stage(stage)}, {self.part})", *names.axis_lines(new)]


def _from_zero(axis: IterVar) -> Range | None:
    return None if axis.dom is None else Range.from_min_extent(0, axis.dom.extent)
