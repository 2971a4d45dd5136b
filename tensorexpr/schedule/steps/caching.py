"""Steps that add a stage: a copy of what a stage reads, or a local place for what it computes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import ClassVar

from ...arith.analyzer import Analyzer
from ...dataclass import dataclass, replace
from ...errors import InternalError, ScheduleError
from ...te.extern import ExternOp
from ...te.operation import ComputeOp, Operation
from ...te.scan_op import ScanOp
from ...te.tensor import Tensor
from ...tir.arithmetic import as_int
from ...tir.attrs import EMPTY
from ...tir.dtype import int_limits, parse_dtype
from ...tir.expr import Call, Cast, IterVar, PrimExpr, ProducerLoad, Range, Reduce, Select, Var
from ...tir.rewriting import Node, post_order_rewrite, substitute, variables, walk
from ..attachment import check_nothing_inside
from ..naming import PythonNames
from ..tree import LoopKind, ScheduleTree, StageNode, initial_stage, loads_of, make_stage
from .base import StageStep, check_not_inlined, stage_of
from .placement import check_scope


def check_unscheduled(stage: StageNode, primitive: str) -> None:
    """Refuse a stage whose loops have been changed or marked."""
    # an intrinsic's stage begins with a tensorized loop, which nobody scheduled
    fresh = initial_stage(stage.id, stage.name, stage.compute)
    marked = {axis: (mark.kind, mark.intrin) for axis, mark in stage.marks.items() if mark.kind is not LoopKind.SERIAL}
    same_marks = marked == {axis: (mark.kind, mark.intrin) for axis, mark in fresh.marks.items()}
    if stage.relations or not same_marks or stage.leaf != fresh.leaf or stage.prefetches:
        raise stage.refused(f"{primitive} comes before split, fuse, reorder, prefetch and loop marks of that stage")


def redirect(op: Operation, old: Operation, new: Tensor) -> Operation:
    """`op` reading the tensor `new` wherever it read the result of `old`."""
    if isinstance(op, ExternOp):
        return op.reading(old, new)
    if isinstance(op, ScanOp):
        raise ScheduleError(
            f"In schedule for {old.name}: cache_read for {op.name}, which copies the elements of its init as they are; "
            "name the stages of a step as readers"
        )
    if not isinstance(op, ComputeOp):
        raise InternalError(f"{op.name} reads nothing")

    def rule(node: Node) -> Node | None:
        if isinstance(node, ProducerLoad) and isinstance(node.producer, Tensor) and node.producer.op is old:
            return ProducerLoad(new, node.indices)
        return None

    return replace(op, body=tuple(post_order_rewrite(body, rule) for body in op.body))


def recomputed(stage: StageNode, op: ComputeOp) -> StageNode:
    """The stage with another definition of its results, whose loops nothing has been said of."""
    shown = make_stage(stage.id, stage.name, op, stage.is_output)
    # what was said of the result's storage stays with the stage that stores it
    shown = replace(shown, origin=stage.origin, scope=stage.scope, attach=stage.attach, rolling_buffer=stage.rolling_buffer)
    shown = replace(shown, store_predicate=stage.store_predicate, nontemporal=stage.nontemporal)
    shown = replace(shown, double_buffer=stage.double_buffer, aligns=stage.aligns)
    return replace(shown, maps=stage.maps, layouts=stage.layouts, separators=stage.separators)


@dataclass(frozen=True)
class CacheWrite(StageStep):
    """A stage's computation moves to a new stage in `scope`; the stage itself only copies the result out.

    for i, j, k: C[i, j] += ...    ->    for i.c, j.c, k: C.local[i.c, j.c] += ...
                                         for i, j: C[i, j] = C.local[i, j]
    """

    code: ClassVar[str] = "cache_write"
    scope: str

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """C[i] = f(i)   ->   C.local[i.c] = f(i.c);  C[i] = C.local[i]

        The copy keeps the number, place and storage of the stage, so that handles and steps about it go on holding.
        Raises:
            ScheduleError: if the stage is inlined or scheduled already, or holds other stages.
        """
        stage = stage_of(tree, self.stage, "cache_write")
        check_scope(stage, self.scope)
        check_not_inlined(stage, "cache_write")
        check_unscheduled(stage, "cache_write")
        op = stage.compute
        check_nothing_inside(tree, stage, "; cache_write comes before compute_at")
        axis = tuple(IterVar(a.dom, Var(f"{a.name}.c", a.dtype), a.iter_type) for a in op.axis)
        # New axes: the copy keeps the old ones, and two stages never share an axis, as an axis is told by identity.
        renamed: Mapping[Var, PrimExpr] = {old.var: new.var for old, new in zip(op.axis, axis, strict=True)}
        cached = replace(
            op, name=tree.unique_name(f"{op.name}.{self.scope}"), axis=axis, body=tuple(substitute(body, renamed) for body in op.body)
        )
        own = tuple(a.var for a in op.axis)
        copies = tuple(ProducerLoad(cached.output(n), own) for n in range(op.num_outputs))
        copy = ComputeOp(op.name, op.tag, op.attrs, op.axis, (), copies)
        tree = tree.with_stage(recomputed(stage, copy))
        # An intrinsic's stage keeps its tensorized loop where it computes.
        new = replace(initial_stage(len(tree.stages), cached.name, cached), scope=self.scope)
        return tree.with_new_stage(new, before=stage.id)

    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        """The call, with the axes of both stages named anew: those of the copy are other axes than before."""
        stage, new = after[self.stage], after.stages[-1]
        name = names.name_stage(new)
        shown, results = names.stage(stage), new.origin.num_outputs
        call = f's.cache_write({shown}, "{self.scope}")'
        if results > 1:
            call = f's.cache_write([{shown}.op.output(n) for n in range({results})], "{self.scope}")[0]'
        return [f"{name} = {call}", *names.axis_lines(new), *names.axis_lines(stage)]


@dataclass(frozen=True)
class CacheRead(StageStep):
    """The listed stages read a copy, in `scope`, of a stage's or placeholder's elements.

    for i: B[i] = f(A[i])    ->    for ax0: A.local[ax0] = A[ax0]
                                   for i: B[i] = f(A.local[i])
    """

    code: ClassVar[str] = "cache_read"
    scope: str
    readers: tuple[int, ...]

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The readers read a copy of the elements, a new stage behind this one.

        Raises:
            ScheduleError: for a stage that isn't there or has several outputs, or readers that don't read it.
        """
        if not 0 <= self.stage < len(tree.stages):
            raise ScheduleError(f"cache_read: the schedule has no stage {self.stage}")
        stage = tree[self.stage]
        check_scope(stage, self.scope)
        if stage.origin.num_outputs != 1:
            raise stage.refused("cache_read takes a stage with one output")
        # Only the listed ones: others go on reading the original, so that each group of readers may have a copy of its own.
        readers = self._readers(tree, stage)
        copy = self._copy(stage, self._name(tree, stage))
        for reader in readers:
            op = self._redirected(reader, stage, copy.output(0))
            tree = tree.with_stage(replace(reader, op=op, origin=reader.origin))
        new = replace(make_stage(len(tree.stages), copy.name, copy), scope=self.scope)
        return tree.with_new_stage(new, after=stage.id)

    def _copy(self, stage: StageNode, name: str) -> ComputeOp:
        return copy_of(stage.origin.output(0), name)

    def _redirected(self, reader: StageNode, stage: StageNode, copy: Tensor) -> Operation:
        return redirect(reader.op, stage.origin, copy)

    def _name(self, tree: ScheduleTree, stage: StageNode) -> str:
        """A.local, and A.d.local, A.d.d.local of further copies."""
        taken = {other.name for other in tree.stages}
        return next(name for n in count() if (name := f"{stage.name}.{'d.' * n}{self.scope}") not in taken)

    def _readers(self, tree: ScheduleTree, stage: StageNode) -> list[StageNode]:
        consumers = {other.id: other for other in tree.consumers(stage)}
        listed = ", ".join(other.name for other in consumers.values()) or "nothing"
        if not self.readers or len(set(self.readers)) != len(self.readers):
            raise stage.refused(f"cache_read takes each reader once; it is read by {listed}")
        for number in self.readers:
            if number not in consumers:
                name = tree[number].name if 0 <= number < len(tree.stages) else number
                raise stage.refused(f"cache_read for {name}, which does not read it; it is read by {listed}")
        return [consumers[number] for number in self.readers]

    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        stage, new = after[self.stage], after.stages[-1]
        name = names.name_stage(new)
        readers = ", ".join(names.stage(after[number]) for number in self.readers)
        return [f'{name} = s.cache_read({names.stage(stage)}, "{self.scope}", [{readers}]{self._words()})', *names.axis_lines(new)]

    def _words(self) -> str:
        return ""


@dataclass(frozen=True)
class CacheReadWide(CacheRead):
    """The listed stages read a copy of integers in a wider dtype, to which each of them would convert every element that it reads.

    for i: B[i] = int32(A[i])    ->    for ax0: A.local[ax0] = int16(A[ax0])
                                       for i: B[i] = int32(A.local[i])
    """

    code: ClassVar[str] = "cache_read_wide"
    dtype: str

    def _copy(self, stage: StageNode, name: str) -> ComputeOp:
        given, copy = stage.origin.output_dtype(0), super()._copy(stage, name)
        if not all(parse_dtype(dtype).is_int and parse_dtype(dtype).lanes == 1 for dtype in (given, self.dtype)):
            raise stage.refused(f"cache_read of {given} to {self.dtype}; integers alone are copied to a wider dtype")
        (least, most), (low, high) = int_limits(given), int_limits(self.dtype)
        if not (low <= least and most <= high):
            raise stage.refused(f"cache_read to {self.dtype}, which hasn't every number of {given}")
        return replace(copy, body=(Cast(self.dtype, copy.body[0]),))

    def _redirected(self, reader: StageNode, stage: StageNode, copy: Tensor) -> Operation:
        """The reader with its conversions made of the copy: through a dtype that holds every number they give the same."""
        op = reader.op
        if not isinstance(op, ComputeOp):
            raise stage.refused(f"cache_read to {self.dtype} for {reader.name}, which is no computation of elements")

        def rule(node: Node) -> Node | None:
            if isinstance(node, Cast) and isinstance(node.value, ProducerLoad) and node.value.producer == stage.origin.output(0):
                moved = ProducerLoad(copy, node.value.indices)
                return moved if node.dtype == self.dtype else Cast(node.dtype, moved)
            return None

        made = replace(op, body=tuple(post_order_rewrite(body, rule) for body in op.body))
        if stage.origin.output(0) in made.input_tensors:
            raise stage.refused(f"cache_read to {self.dtype} for {reader.name}, which reads elements without converting them")
        return made

    def _words(self) -> str:
        return f', dtype="{self.dtype}"'


@dataclass(frozen=True)
class CacheReadOne(CacheRead):
    """A stage that reads a tensor at several places reads a copy at one of them.

    for i, j, k: C[i, j] += A[i, k] * A[j, k]    ->    for ax0, ax1: A.local[ax0, ax1] = A[ax0, ax1]
                                                       for i, j, k: C[i, j] += A[i, k] * A.local[j, k]
    """

    code: ClassVar[str] = "cache_read_one"
    read: int

    def _redirected(self, reader: StageNode, stage: StageNode, copy: Tensor) -> Operation:
        """The reader with the copy at the place of that number, in the order in which its definition reads."""
        op, source = reader.op, stage.origin.output(0)
        if not isinstance(op, ComputeOp):
            raise stage.refused(f"cache_read at one place for {reader.name}, which is no computation of elements")
        places = [load for load in loads_of(op) if load.producer == source]
        if not 0 <= self.read < len(places):
            raise stage.refused(f"cache_read with read={self.read} for {reader.name}, which reads it at {len(places)} places")
        moved = ProducerLoad(copy, places[self.read].indices)
        return replace(
            op, body=tuple(post_order_rewrite(body, lambda node: moved if node is places[self.read] else None) for body in op.body)
        )

    def _words(self) -> str:
        return f", read={self.read}"


@dataclass(frozen=True)
class ReindexCacheRead(StageStep):
    """A stage reads a copy, in `scope`, of what it reads of a tensor, which stands by the stage's own axes.

    for i, r: B[i] += A[i * 2 + r]    ->    for i, r: A.shared[i, r] = A[i * 2 + r]
                                            for i, r: B[i] += A.shared[i, r]

    What one element is needed for several times has several copies, as the columns of a convolution have. Axes come in the order of
    the reader's, those of a reduction last; axes that don't move the read have no place.
    """

    code: ClassVar[str] = "reindex_cache_read"
    scope: str
    reader: int

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The reader reads the copy, a new stage behind this one.

        Raises:
            ScheduleError: for stages that aren't there, unless the reader reads the tensor at one place, and for a read under a condition
                of what may not be there where the condition doesn't hold.
        """
        if not 0 <= self.stage < len(tree.stages):
            raise ScheduleError(f"reindex_cache_read: the schedule has no stage {self.stage}")
        stage, reader = tree[self.stage], stage_of(tree, self.reader, "reindex_cache_read")
        check_scope(stage, self.scope)
        reads = [load for load in dict.fromkeys(tree.reads(reader)) if tree.producer(load).id == self.stage]
        if stage.origin.num_outputs != 1 or len(reads) != 1 or not isinstance(reader.op, ComputeOp):
            raise stage.refused(
                f"reindex_cache_read takes a tensor that its reader reads at one place; {reader.name} reads it at {len(reads)}; cache_read"
            )
        check_unscheduled(reader, "reindex_cache_read")
        if _is_guarded(reads[0], reader.op) and not _is_inside(reads[0], reader.op):
            raise stage.refused(
                f"reindex_cache_read for {reader.name}, which reads {reads[0]} under a condition: the copy would read it everywhere, and "
                "it can't be proved to be there; cache_read copies the elements that there are"
            )
        used = variables(ProducerLoad(reads[0].producer, reads[0].indices))
        own = [axis for axis in (*reader.op.axis, *reader.op.reduce_axis) if axis.var in used]
        axis = tuple(IterVar(a.dom, Var(f"{a.name}.r", a.dtype), IterVar.DATA_PAR) for a in own)
        renamed: Mapping[Var, PrimExpr] = {old.var: new.var for old, new in zip(own, axis, strict=True)}
        name = f"{stage.name}.{self.scope}"
        copy = ComputeOp(tree.unique_name(name), "", EMPTY, axis, (), body=(substitute(reads[0], renamed),))
        found = ProducerLoad(copy.output(0), tuple(a.var for a in own))
        moved = tuple(post_order_rewrite(body, lambda node: found if node is reads[0] else None) for body in reader.op.body)
        tree = tree.with_stage(replace(reader, op=replace(reader.op, body=moved), origin=reader.origin))
        return tree.with_new_stage(replace(make_stage(len(tree.stages), copy.name, copy), scope=self.scope), after=stage.id)

    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        stage, new = after[self.stage], after.stages[-1]
        name = names.name_stage(new)
        call = f's.reindex_cache_read({names.stage(stage)}, "{self.scope}", {names.stage(after[self.reader])})'
        return [f"{name} = {call}", *names.axis_lines(new)]


def _is_guarded(load: ProducerLoad, op: ComputeOp) -> bool:
    """Whether a stage reads something only where a condition holds, as `if_then_else(1 <= i, A[i - 1], 0.0)` does."""
    for node in (node for body in op.body for node in walk(body)):
        is_choice = isinstance(node, Select) or (isinstance(node, Call) and node.op == "tir.if_then_else")
        is_choice = is_choice or (isinstance(node, Reduce) and as_int(node.condition) is None)
        if is_choice and any(inner is load for inner in walk(node)):
            return True
    return False


def _is_inside(load: ProducerLoad, op: ComputeOp) -> bool:
    """Whether a read is of elements that there are, wherever the axes stand."""
    analyzer = Analyzer()
    for axis in (*op.axis, *op.reduce_axis):
        if axis.dom is not None:
            analyzer.bind(axis.var, axis.dom)
    shape = load.producer.shape if isinstance(load.producer, Tensor) else ()
    return all(
        analyzer.known_nonnegative(index) and analyzer.known_less(index, extent) for index, extent in zip(load.indices, shape, strict=True)
    )


def copy_of(tensor: Tensor, name: str) -> ComputeOp:
    """The operation that copies a tensor element by element, over axes ax0, ax1, ..."""
    axis = tuple(IterVar(Range.from_min_extent(0, extent), Var(f"ax{n}", extent.dtype)) for n, extent in enumerate(tensor.shape))
    return ComputeOp(name, "", EMPTY, axis, (), body=(ProducerLoad(tensor, tuple(a.var for a in axis)),))
