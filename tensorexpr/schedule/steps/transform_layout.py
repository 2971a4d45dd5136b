"""The step that stores a stage's result in another layout, with or without padding."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import isfinite
from typing import Any, ClassVar

from ...arith.index_map import IndexMap
from ...arith.linear import is_scalar_int
from ...dataclass import dataclass, replace
from ...errors import DeclarationError, ScheduleError, TypeMismatchError
from ...te.bounds import computes_anywhere
from ...te.operation import ComputeOp, Operation, PlaceholderOp
from ...te.tensor import Tensor
from ...te.tensor_compute import TensorComputeOp
from ...tir.arithmetic import all as all_of
from ...tir.arithmetic import const, is_const_int, logical_not
from ...tir.expr import And, FloatImm, IntImm, IterVar, PrimExpr, ProducerLoad, Range, Reduce, Var
from ...tir.intrin import if_then_else, likely
from ...tir.rewriting import Node, post_order_rewrite, substitute
from ..attachment import check_nothing_inside
from ..axis_expression import as_python, axes_of, decode, encode, problem_of
from ..naming import PythonNames
from ..scans import check_scan_primitive
from ..tree import AxisExpression, ScheduleTree, StageNode, make_stage
from .base import StageStep, check_has_loops, check_not_inlined, stage_of
from .caching import check_unscheduled

SEPARATOR: AxisExpression = ("axis_separator",)  # in a mapping: memory of several physical dimensions would begin the next one here
PadValue = int | float | str | None  # what JSON has no number for is "inf", "-inf" or "nan"


@dataclass(frozen=True)
class TransformLayout(StageStep):
    """A stage's elements move to other indices, and its loops run over those. `mapping` has the new indices over the old axes.

    An input or output is then passed in the new layout: the signature changes. Places of the new layout that no element maps to
    are padding. They hold `pad_value`; with None nobody cares what they hold.

    for k: for n: B[k, n] = f(k, n)    ->    for n.o: for k: for n.i: B[n.o, k, n.i] = f(k, n.o*32 + n.i) if n.o*32 + n.i < N else pad
    for i, k, n: C[i, n] += B[k, n]          for i, k, n: C[i, n] += B[n // 32, k, n % 32]
    """

    code: ClassVar[str] = "transform_layout"
    mapping: tuple[AxisExpression, ...]
    pad_value: PadValue = None

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """C[i, j] = f(i, j)   ->   C'[j, i] = f(i, j), for each stage that reads it as well.

        Raises:
            ScheduleError: if the stage is scheduled already or an intrinsic's, or an output's layout has places that no element maps to.
        """
        if 0 <= self.stage < len(tree.stages) and tree[self.stage].is_placeholder:
            return self._of_input(tree, tree[self.stage])
        stage = stage_of(tree, self.stage, "transform_layout")
        _check_computed(stage)
        check_not_inlined(stage, "transform_layout")
        check_unscheduled(stage, "transform_layout")
        if isinstance(stage.compute, TensorComputeOp):
            raise stage.refused(
                f"transform_layout: its inner loops are the intrinsic {stage.compute.intrin.name}, which "
                "writes the layout that it was declared for; transform the layout of a stage that copies its result"
            )
        _check_untouched(tree, stage)
        layout = _Layout.of(stage, self.mapping)
        if stage.is_output and self.pad_value is None and not is_const_int(layout.valid, 1):
            raise stage.refused(
                f"transform_layout: the layout {layout.index_map} of an output has places that no element "
                "maps to, and the caller would find anything there; give pad_value, what they hold, or a layout that the elements fill"
            )
        moved = layout.moved(stage.compute, _pad_values(stage, self.pad_value))
        shown = make_stage(stage.id, stage.name, moved)
        words = (*stage.layouts, layout.in_words(self.pad_value))
        made = replace(stage, op=moved, origin=moved, axes=shown.axes, leaf=shown.leaf, marks={}, layouts=words)
        return _placed(tree, replace(made, separators=self._separators()), stage.origin, layout.index_map)

    def _of_input(self, tree: ScheduleTree, stage: StageNode) -> ScheduleTree:
        """The caller passes an input in the new layout."""
        check_scan_primitive(tree, stage, "transform_layout")
        _check_readers(tree, stage)
        if self.pad_value is not None:
            raise stage.refused("transform_layout of an input takes no pad_value; nothing reads its padding")
        layout = _Layout.of(stage, self.mapping)
        old = stage.op
        given = PlaceholderOp(old.name, tuple(axis.dom.extent for axis in layout.axis if axis.dom), old.output_dtype(0), old.tag, old.attrs)
        source = stage.origin.output(0) if stage.source is None else stage.source
        made = replace(make_stage(stage.id, stage.name, given), source=source, maps=stage.maps, layouts=stage.layouts)
        made = replace(made, layouts=(*made.layouts, layout.in_words(None)))
        return _placed(tree, replace(made, separators=self._separators()), stage.origin, layout.index_map)

    def _separators(self) -> tuple[int, ...]:
        places = [place for place, index in enumerate(self.mapping) if index == SEPARATOR]
        return tuple(place - number for number, place in enumerate(places))

    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        """The call with the mapping as a lambda, and names for the new axes: the old ones are gone."""
        old, new = before[self.stage], after[self.stage]
        name = names.stage(new)
        parameters = [f"i{axis}" for axis in range(len(old.op.output_shape(0)))]
        mapped = ", ".join("te.AXIS_SEPARATOR" if index == SEPARATOR else as_python(index, parameters) for index in self.mapping)
        value = f'float("{self.pad_value}")' if isinstance(self.pad_value, str) else repr(self.pad_value)
        pad = "" if self.pad_value is None else f", pad_value={value}"
        call = f"s[{name}].transform_layout(lambda {', '.join(parameters)}: [{mapped}]{pad})"
        if old.is_placeholder:
            return [call]
        reduction = [names.axis(old, axis) for axis in old.reduction]
        made = [names.name_axis(new, axis, f"{name}_{_identifier(new.axes[axis].name)}") for axis in new.spatial]
        for axis, kept in zip(new.reduction, reduction, strict=True):
            names.name_axis(new, axis, kept)
        names.redefined(new)
        bound = ", ".join(made) + ("," if len(made) == 1 else "")
        return [f"{bound} = {call}"]


def mapping_of(stage: StageNode, mapping_function: Any) -> tuple[AxisExpression, ...]:
    """The mapping of a function of the stage's axes, as data.

    Raises:
        ScheduleError: if it is no function of as many indices as there are axes, or returns something else than indices.
    """
    if not stage.is_placeholder:
        check_has_loops(stage, "transform_layout")
        _check_computed(stage)
    rank = len(stage.op.output_shape(0))
    try:
        index_map, separators = IndexMap.from_func_with_separators(mapping_function, rank)
        index_map.check_closed()
        numbers = {var: axis for axis, var in enumerate(index_map.initial_indices)}
        mapping = [encode(index, numbers) for index in index_map.final_indices]
        # from the last one on, so that places before it stay what they are
        for place in reversed(separators):
            mapping.insert(place, SEPARATOR)
        return tuple(mapping)
    except (DeclarationError, ScheduleError) as error:
        raise stage.refused(f"transform_layout: {error}") from error


def pad_value_of(stage: StageNode, pad_value: Any) -> PadValue:
    """The padding that a user asked for.

    Raises:
        ScheduleError: unless it is a number, a constant or None.
    """
    number = pad_value.value if isinstance(pad_value, (IntImm, FloatImm)) else pad_value
    if number is not None and (isinstance(number, bool) or not isinstance(number, (int, float))):
        raise stage.refused(f"transform_layout pads with a number, or with None, which leaves the padding open, not with {pad_value!r}")
    return str(number) if isinstance(number, float) and not isfinite(number) else number


def _identifier(name: str) -> str:
    return name.replace(".", "_")


def _check_computed(stage: StageNode) -> None:
    if not isinstance(stage.op, ComputeOp):
        raise stage.refused(
            "a scan keeps its states in the layout they were declared with; transform_layout a copy of its result that cache_read makes"
        )


def _check_untouched(tree: ScheduleTree, stage: StageNode) -> None:
    """Nothing refers to the axes that disappear."""
    check_nothing_inside(tree, stage, ", which transform_layout replaces; transform_layout comes before compute_at")
    is_hinted = any(mark.pragmas for mark in stage.marks.values()) or bool(stage.prefetches)
    is_stored_otherwise = bool(stage.aligns) or stage.store_predicate is not None or stage.rolling_buffer
    if is_hinted or is_stored_otherwise:
        raise stage.refused(
            "transform_layout replaces the axes that pragma, storage_align, prefetch, set_store_predicate "
            "or rolling_buffer spoke of; it comes before them"
        )
    _check_readers(tree, stage)


def _check_readers(tree: ScheduleTree, stage: StageNode) -> None:
    """Every reader can be told of the new indices."""
    others = [other.name for other in tree.consumers(stage) if not isinstance(other.op, ComputeOp)]
    if others:
        raise stage.refused(
            f"{others[0]}, an extern or a scan, reads it in the layout it was declared with; "
            "transform_layout a copy that cache_read makes for the other readers"
        )


def _placed(tree: ScheduleTree, made: StageNode, old: Operation, index_map: IndexMap) -> ScheduleTree:
    """The tree with a stage whose elements have moved, and its readers told so."""
    for reader in tree.consumers(tree[made.id]):
        tree = tree.with_stage(replace(tree[reader.id], op=_redirect(reader.compute, old, made.op, index_map)))
    # After the readers: those are found by what reads the old operation.
    tree = tree.with_stage(replace(made, maps=(*made.maps, index_map)))
    # behind the old definition, which users' handles go on naming and `declared_arguments` takes as the declared one
    return replace(tree, index={**tree.index, made.op: made.id})


def _pad_values(stage: StageNode, pad_value: PadValue) -> tuple[PrimExpr | None, ...]:
    """The constant that each output of the stage has as padding."""
    if pad_value is None:
        return (None,) * stage.origin.num_outputs
    try:
        # Infinities and NaN come as text, which JSON can hold.
        value = float(pad_value) if isinstance(pad_value, str) else pad_value
        return tuple(const(value, stage.origin.output_dtype(number)) for number in range(stage.origin.num_outputs))
    except (TypeMismatchError, OverflowError, ValueError) as error:
        raise stage.refused(f"transform_layout pads with {pad_value}: {error}") from error


@dataclass(frozen=True, eq=False)
class _Layout:
    """A map, its inverse over `axis`, and where the new layout holds an element."""

    index_map: IndexMap
    axis: tuple[IterVar, ...]
    inverse: dict[Var, PrimExpr]
    valid: PrimExpr

    @staticmethod
    def of(stage: StageNode, mapping: tuple[AxisExpression, ...]) -> _Layout:
        """The layout of a stage's new indices.

        Raises:
            ScheduleError: if they are no indices, may be negative, or two elements may share a place.
        """
        axes = _indices_of(stage)
        indices = tuple(index for index in mapping if index != SEPARATOR)
        try:
            index_map = IndexMap(axes, tuple(_checked_index(stage, index, axes) for index in indices))
            known = _analysed(tuple((var.name, var.dtype) for var in axes), indices, tuple(stage.op.output_shape(0)))
        except DeclarationError as error:
            raise stage.refused(f"transform_layout: {error}") from error
        # The analysis is cached and its variables are shared, but no two stages may have an axis in common.
        own = {var: Var(var.name, var.dtype) for var in known.inverse.initial_indices}
        axis = tuple(
            IterVar(Range.from_min_extent(0, extent), var, IterVar.DATA_PAR)
            for var, extent in zip(own.values(), known.extents, strict=True)
        )
        places = (substitute(place, own) for place in known.inverse.final_indices)
        old = dict(zip(index_map.initial_indices, places, strict=True))
        return _Layout(index_map, axis, old, _hinted(logical_not(substitute(known.padding, own))))

    def in_words(self, pad_value: PadValue) -> str:
        """The layout as `explain` says it."""
        padding = "" if is_const_int(self.valid, 1) else f", with padding that holds {'anything' if pad_value is None else pad_value}"
        return f"the layout {self.index_map}{padding}"

    def moved(self, op: ComputeOp, pads: Sequence[PrimExpr | None]) -> ComputeOp:
        """The operation over the new axes."""
        made = ComputeOp(op.name, op.tag, op.attrs, self.axis, op.reduce_axis, tuple(substitute(old, self.inverse) for old in op.body))
        if is_const_int(self.valid, 1) or (op.reduce_axis and all(pad is None for pad in pads) and computes_anywhere(made)):
            return made  # of padding that nobody cares for a sum may be anything, so it needs no condition
        return replace(made, body=tuple(self._body(body, pad) for body, pad in zip(made.body, self._pads(op, pads), strict=True)))

    def _pads(self, op: ComputeOp, pads: Sequence[PrimExpr | None]) -> list[tuple[PrimExpr | None, ...]]:
        """What each body needs to know: a reduction of several outputs starts all of them."""
        return [tuple(pads) if isinstance(body, Reduce) else (pad,) for body, pad in zip(op.body, pads, strict=True)]

    def _body(self, body: PrimExpr, pads: tuple[PrimExpr | None, ...]) -> PrimExpr:
        """A padded reduction starts at the padding and adds nothing to it."""
        if not isinstance(body, Reduce):
            return if_then_else(self.valid, body, pads[0] if pads[0] is not None else const(0, body.dtype))
        start = body.init or body.combiner.identity_element
        init = body.init
        if any(pad is not None and pad is not value for pad, value in zip(pads, start, strict=True)):
            init = tuple(
                value if pad is None or pad is value else if_then_else(self.valid, value, pad)
                for pad, value in zip(pads, start, strict=True)
            )
        # In the padding no term is added, so the reads of what doesn't exist don't happen.
        return replace(body, condition=all_of(self.valid, body.condition), init=init)


@dataclass(frozen=True, slots=True)
class _Analysis:
    """What follows from a mapping and a shape: the new extents, the way back, and where there is only padding."""

    extents: tuple[PrimExpr, ...]
    inverse: IndexMap
    padding: PrimExpr


@lru_cache(maxsize=1024)  # a search applies the same few layouts again and again
def _analysed(axes: tuple[tuple[str, str], ...], mapping: tuple[AxisExpression, ...], shape: tuple[PrimExpr, ...]) -> _Analysis:
    """The analysis of a layout over axes of these names and dtypes."""
    variables = [Var(name, dtype) for name, dtype in axes]
    index_map = IndexMap(tuple(variables), tuple(decode(index, variables) for index in mapping))
    return _Analysis(index_map.map_shape(shape), *index_map.inverse_and_padding(shape))


def _indices_of(stage: StageNode) -> tuple[Var, ...]:
    """What stands for the indices of a stage's elements: its axes, or variables in place of those that an input hasn't."""
    if stage.is_placeholder:
        return tuple(Var(f"i{axis}", extent.dtype) for axis, extent in enumerate(stage.op.output_shape(0)))
    return tuple(axis.var for axis in stage.op.axis)


def _checked_index(stage: StageNode, index: Any, axes: Sequence[Var]) -> PrimExpr:
    problem = problem_of(index)
    if problem is not None:
        raise stage.refused(f"transform_layout can't take {problem}")
    wrong = [axis for axis in axes_of(index) if axis not in range(len(axes))]
    if wrong:
        raise stage.refused(f"transform_layout maps its {len(axes)} spatial axes, so there is no axis {wrong[0]}")
    try:
        found = decode(index, axes)
    except ScheduleError as error:
        raise stage.refused(f"transform_layout: {error}") from error
    if not is_scalar_int(found.dtype):
        raise stage.refused(f"transform_layout: an index is an integer, not {found}")
    return found


def _hinted(condition: PrimExpr) -> PrimExpr:
    """Each part marked likely: it fails in the padding only."""
    if isinstance(condition, And):
        return all_of(_hinted(condition.a), _hinted(condition.b))
    return condition if isinstance(condition, IntImm) else likely(condition)


def _redirect(op: ComputeOp, old: Operation, new: Operation, index_map: IndexMap) -> ComputeOp:
    """`op` reading the new layout wherever it read the result of `old`."""

    def rule(node: Node) -> Node | None:
        if isinstance(node, ProducerLoad) and isinstance(node.producer, Tensor) and node.producer.op is old:
            return ProducerLoad(new.output(node.producer.value_index), index_map.map_indices(node.indices))
        return None

    return replace(op, body=tuple(post_order_rewrite(body, rule) for body in op.body))
