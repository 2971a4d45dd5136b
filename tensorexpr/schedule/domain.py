"""Extents and values of a stage's axes, given the region of its root axes that is to be computed.

Forward along the relations go extents: ceil(extent / factors) for the open part of a split, the product for a
fusion. Backward go values: a parent is the Horner sum of its parts, fused axes come apart by // and %.
A split whose parts cover more than the parent needs a guard `value(parent) < extent(parent)`. A balanced split has
tiles of two sizes, and a guard for the last iteration of the larger one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from ..arith.analyzer import Analyzer
from ..dataclass import dataclass
from ..errors import InternalError
from ..tir.arithmetic import binary, cast, ceildiv, is_const_int
from ..tir.dtype import int_limits
from ..tir.expr import FloorDiv, FloorMod, IntImm, PrimExpr, Range, Var
from ..tir.rewriting import substitute, variables
from .balanced import BalancedTiles, ShortTile, balanced_extents
from .tree import FuseRelation, SplitRelation, StageNode


@dataclass(frozen=True, slots=True)
class Guard:
    """`axis` must stay below its extent. `reduction` says whether reduction loops are involved.

    `short` is set where it isn't the end of the axis that is guarded, but its last iteration in the smaller tiles.
    """

    axis: int
    condition: PrimExpr
    reduction: bool
    short: ShortTile | None = None


@dataclass(frozen=True, eq=False, slots=True)
class StageDomain:
    """What lowering and features need to know about a stage's loops.

    `region` is the box of the root axes, `extents` has every axis' extent (counted from 0), `values` every axis'
    value in terms of the loop variables, `guards` what must hold for a point to exist.
    """

    stage: StageNode
    region: Mapping[int, Range]
    extents: Mapping[int, PrimExpr]
    values: Mapping[int, PrimExpr]
    guards: tuple[Guard, ...]

    def root_values(self) -> dict[Var, PrimExpr]:
        """Each root axis' variable -> its absolute value in terms of the loop variables."""
        found = ((self.stage.axes[axis].var, self.region[axis].min + self.values[axis]) for axis in self.region)
        return {var: cast(value, var.dtype) for var, value in found}  # loops of two widths that were fused have the wider one

    def loop_range(self, axis: int) -> Range:
        """The range of a loop; loops count from 0."""
        extent = self.extents[axis]
        return Range.from_min_extent(IntImm(extent.dtype, 0), extent)

    def loops(self) -> dict[Var, Range]:
        """The loop variables that take more than one value, with their ranges."""
        return {self.stage.axes[a].var: self.loop_range(a) for a in self.stage.leaf if not is_const_int(self.extents[a], 1)}


def full_region(stage: StageNode) -> dict[int, Range]:
    """The whole domain of a stage, as declared."""
    region = {}
    for axis in (*stage.spatial, *stage.reduction):
        dom = stage.axes[axis].dom
        if dom is None:
            raise InternalError(f"root axis {stage.axes[axis].name} of {stage.name} has no domain")
        region[axis] = dom
    return region


def stage_domain(stage: StageNode, region: Mapping[int, Range], analyzer: Analyzer) -> StageDomain:
    """The domain of `stage` computing `region` (reduction axes always run in full)."""
    # Reduction axes run in full wherever a stage is computed: a part of a sum is another value, not a part of the result.
    full = {
        axis: Range.from_min_extent(analyzer.simplify(r.min), analyzer.simplify(r.extent))
        for axis, r in {**full_region(stage), **region}.items()
    }
    extents = _extents(stage, {axis: r.extent for axis, r in full.items()}, analyzer)
    values = _values(stage, extents, analyzer)
    for axis in _dependent(stage, full):  # whose ends are told in terms of the loops, as those of the axes that they depend on are
        roots = {stage.axes[root].var: full[root].min + values[root] for root in full if root != axis}
        ends = (analyzer.simplify(substitute(end, roots)) for end in (full[axis].min, full[axis].extent))
        full[axis] = Range.from_min_extent(*ends)
        extents = _extents(stage, {axis: r.extent for axis, r in full.items()}, analyzer)
        values = _values(stage, extents, analyzer)
    _check_values(stage, extents)
    values = {axis: analyzer.simplify(value) for axis, value in values.items()}
    return StageDomain(stage, full, extents, values, _guards(stage, extents, values, analyzer))


def _dependent(stage: StageNode, region: Mapping[int, Range]) -> list[int]:
    """The reduction axes whose ranges depend on axes that are split or fused, or count from elsewhere."""
    ends = {axis: (region[axis].min, region[axis].extent) for axis in stage.reduction}
    found = [axis for axis, pair in ends.items() if not all(isinstance(end, IntImm) for end in pair)]
    own = {stage.axes[axis].var for axis in (*stage.spatial, *stage.reduction)} if found else set()
    return [axis for axis in found if any(own & set(variables(end)) for end in ends[axis])]


def axis_extents(stage: StageNode, analyzer: Analyzer) -> dict[int, PrimExpr]:
    """The extents of all axes of a stage that is computed as a whole."""
    return _extents(stage, {axis: analyzer.simplify(dom.extent) for axis, dom in full_region(stage).items()}, analyzer)


def _extents(stage: StageNode, roots: Mapping[int, PrimExpr], analyzer: Analyzer) -> dict[int, PrimExpr]:
    extents = dict(roots)
    for relation in stage.relations:  # in the order they were made: what is split comes before its parts
        if isinstance(relation, FuseRelation) and not relation.parts:
            extents[relation.fused] = IntImm(stage.axes[relation.fused].dtype, 1)
            continue
        if isinstance(relation, FuseRelation):
            _check_fits(stage, relation.fused, [extents[part] for part in relation.parts])
            extents[relation.fused] = analyzer.simplify(covered(relation.parts, extents))
            continue
        if relation.balanced:
            parent = stage.axes[relation.parent]
            parts = balanced_extents(stage.name, parent, extents[relation.parent], relation.factors, analyzer.simplify)
            extents.update(zip(relation.parts, parts, strict=True))
            continue
        _check_fits(stage, relation.parent, [factor for factor in relation.factors if factor is not None])
        # The part without a factor takes what the others leave, rounded up; guards cut off the excess.
        known: PrimExpr = IntImm(stage.axes[relation.parent].dtype, 1)
        for factor in relation.factors:
            known = known if factor is None else known * factor
        for part, factor in zip(relation.parts, relation.factors, strict=True):
            extents[part] = factor if factor is not None else analyzer.simplify(ceildiv(extents[relation.parent], known))
    return extents


def covered(parts: Sequence[int], extents: Mapping[int, PrimExpr]) -> PrimExpr:
    """How many iterations the parts of a split, or the loops that are fused, make together."""
    product = extents[parts[0]]
    for part in parts[1:]:
        product = product * extents[part]
    return product


def _check_fits(stage: StageNode, axis: int, parts: Sequence[PrimExpr]) -> None:
    """Refuse loops that together count further than the axis' dtype holds, where their extents are constants."""
    known = [part.value for part in parts if isinstance(part, IntImm)]
    if len(known) == len(parts):
        _check_value(stage, axis, prod(known))


def _check_value(stage: StageNode, axis: int, value: int) -> None:
    name, dtype = stage.axes[axis].name, stage.axes[axis].dtype
    largest = int_limits(dtype)[1]
    if value > largest:
        raise stage.refused(
            f"loops over {name!r} would count to {value}, beyond {dtype}'s {largest}; split it by other factors, or fuse fewer axes"
        )


def _check_values(stage: StageNode, extents: Mapping[int, PrimExpr]) -> None:
    """Refuse loops whose last iteration, past the end of an axis perhaps, gives it a value that its dtype doesn't hold.

    It would turn negative and pass its guard.
    """
    # From the parts back to what they were cut from: a part that is cut again may itself run past its end.
    # Example: int32 n = 2^31 - 1 split by 1,000: the last iterations would count to 2,147,483,999 before the guard says no.
    last = {axis: extent.value - 1 for axis, extent in extents.items() if isinstance(extent, IntImm)}
    for relation in reversed(stage.relations):
        if isinstance(relation, SplitRelation) and not relation.balanced and all(part in last for part in relation.parts):
            value = 0
            for part in relation.parts:
                extent = extents[part]
                assert isinstance(extent, IntImm)  # as it has a last value
                value = value * extent.value + last[part]
            last[relation.parent] = value
            _check_value(stage, relation.parent, value)


def _tiles(relation: SplitRelation, extents: Mapping[int, PrimExpr], analyzer: Analyzer) -> BalancedTiles:
    # From the count of tiles, not from the factor asked for: 10 in tiles of at most 4 are 4 + 3 + 3, whichever of 4 or 3 tiles was said.
    return BalancedTiles.of(extents[relation.parent], extents[relation.parts[0]], analyzer.simplify)


def _values(stage: StageNode, extents: Mapping[int, PrimExpr], analyzer: Analyzer) -> dict[int, PrimExpr]:
    # a loop of one iteration is its value, and `StageDomain.loops` leaves out the same ones
    values: dict[int, PrimExpr] = {
        axis: IntImm(stage.axes[axis].dtype, 0) if is_const_int(extents[axis], 1) else stage.axes[axis].var for axis in stage.leaf
    }
    for relation in reversed(stage.relations):  # from the loops back to the axes they were made of
        if isinstance(relation, SplitRelation) and relation.balanced:
            outer, inner = relation.parts
            values[relation.parent] = _tiles(relation, extents, analyzer).start(values[outer]) + values[inner]
            continue
        if isinstance(relation, SplitRelation):
            value = values[relation.parts[0]]
            for part in relation.parts[1:]:
                value = value * extents[part] + values[part]
            values[relation.parent] = value
            continue
        if not relation.parts:
            continue
        rest = values[relation.fused]
        for part in reversed(relation.parts[1:]):
            values[part] = binary(FloorMod, rest, extents[part])  # an extent may be 0: the loop then never runs
            rest = binary(FloorDiv, rest, extents[part])
        values[relation.parts[0]] = rest
    return values


def _guards(stage: StageNode, extents: Mapping[int, PrimExpr], values: Mapping[int, PrimExpr], analyzer: Analyzer) -> tuple[Guard, ...]:
    """One guard per axis that an imperfect split overshoots, moved outwards as far as it means the same."""
    # Example: i of 10 split by 4, the outer part split by 2: both overshoot, and one test of i < 10 is the guard for both.
    above = _equivalent_axis(stage)
    # one guard for an axis, however many of its splits overshoot; in the order of the relations
    guarded: dict[int, None] = {}
    for relation in stage.relations:
        if isinstance(relation, SplitRelation) and not _is_perfect(relation, extents, analyzer):
            axis = relation.parent
            # further out a guard is tested less often, and skips the loops inside
            while axis in above:
                axis = above[axis]
            guarded[axis] = None
    ends = (Guard(axis, values[axis] < extents[axis], stage.is_reduction(axis)) for axis in guarded)
    return (*ends, *_short_tiles(stage, extents, values, analyzer))


def _short_tiles(stage: StageNode, extents: Mapping[int, PrimExpr], values: Mapping[int, PrimExpr], analyzer: Analyzer) -> Iterator[Guard]:
    """One guard per balanced split that makes two sizes."""
    for relation in stage.relations:
        if not isinstance(relation, SplitRelation) or not relation.balanced:
            continue
        tiles = _tiles(relation, extents, analyzer)
        if is_const_int(tiles.longer, 0):
            continue
        outer, inner = relation.parts
        short = ShortTile(tiles.small, values[outer], tiles.longer, tiles.count)
        condition = analyzer.simplify(short.condition(values[inner]))
        yield Guard(inner, condition, stage.is_reduction(inner), short)


def _equivalent_axis(stage: StageNode) -> dict[int, int]:
    """axis -> the axis it came from, where one is past its end exactly if the other is.

    The outermost part of a split is past its end only if the parent is; a fused axis only if its outermost part is.
    """
    above = {}
    for relation in stage.relations:
        if isinstance(relation, SplitRelation):
            above[relation.parts[0]] = relation.parent
        elif relation.parts:
            above[relation.fused] = relation.parts[0]
    return above


def _is_perfect(relation: SplitRelation, extents: Mapping[int, PrimExpr], analyzer: Analyzer) -> bool:
    if relation.balanced:
        return True
    # Symbolic extents that can't be compared count as imperfect: a guard too many does no harm.
    return analyzer.known_equal(covered(relation.parts, extents), extents[relation.parent])
