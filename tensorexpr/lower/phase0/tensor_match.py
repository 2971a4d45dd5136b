"""Matching: does the region under a tensorized loop compute what an intrinsic describes, and on which boxes?

The loops inside run over a box of the stage's root axes. Both computations are written over the same box variables, one per
axis of extent above 1, and compared node by node (`schedule.intrinsic_match`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn

from ...arith.analyzer import Analyzer
from ...arith.interval import relax
from ...dataclass import dataclass
from ...errors import ScheduleError
from ...schedule.domain import StageDomain
from ...schedule.intrinsic_match import Comparison, Mismatch
from ...te.sized_intrin import sized, solved
from ...te.tensor_intrin import TensorIntrin
from ...tir.arithmetic import as_int
from ...tir.arithmetic import cast as as_index
from ...tir.buffer import Buffer, BufferRegion
from ...tir.expr import Call, IntImm, PrimExpr, Range, Select, Var
from ...tir.rewriting import substitute, variables, walk

ONE = IntImm("int32", 1)


@dataclass(frozen=True, eq=False)
class Region:
    """The box of root axes under a tensorized loop: where it begins, how far it goes, and a variable along each axis."""

    lows: tuple[PrimExpr, ...]
    extents: tuple[PrimExpr, ...]
    local: tuple[PrimExpr, ...]  # 0 along an axis of extent 1


@dataclass(frozen=True, eq=False)
class TensorMatch:
    """On which boxes an intrinsic works: one for each of its inputs and outputs, and the values of its scalars.

    `intrin` is the intrinsic with the extents of the boxes in place of the variables in its shapes.
    """

    intrin: TensorIntrin
    inputs: tuple[BufferRegion, ...]
    outputs: tuple[BufferRegion, ...]
    scalars: Mapping[Var, PrimExpr]


def match_region(
    domain: StageDomain,
    axis: int,
    bodies: Sequence[PrimExpr],
    buffers: Sequence[Buffer],
    intrin: TensorIntrin,
    analyzer: Analyzer,
) -> TensorMatch:
    """How `intrin` computes what the loop `axis` and all loops inside it do.

    Args:
        bodies: the definition of the stage, reading buffers.
        buffers: of the stage's outputs.
        analyzer: knows the ranges of all loops.

    Raises:
        ScheduleError: if it doesn't; the message shows both computations.
    """
    stage = domain.stage
    where = f"In schedule for {stage.name}: can't tensorize {stage.axes[axis].name!r} with {intrin.name}"
    try:
        spatial, reduction = _regions(domain, axis, analyzer)
    except Mismatch as reason:
        raise ScheduleError(f"{where}: {reason}") from None
    intrin = _sized(intrin, spatial, reduction)
    # After `_sized`: only then do the intrinsic's extents compare with those of the loop.
    roots = (*stage.spatial, *stage.reduction)
    box = dict(zip(roots, _absolute(spatial) + _absolute(reduction), strict=True))
    shown = [substitute(body, {stage.axes[a].var: value for a, value in box.items()}) for body in bodies]
    try:
        axes = _aligned(spatial, reduction, intrin, analyzer)
        local = {v for v in (*spatial.local, *reduction.local) if isinstance(v, Var)}
        comparison = Comparison("the intrinsic", analyzer, intrin.inputs, local, intrin.scalars)
        described = [substitute(body, axes) for body in intrin.op.body]
        if len(described) != len(shown):
            raise Mismatch(f"it makes {len(shown)} results, the intrinsic {len(described)}")
        for ours, theirs in zip(shown, described, strict=True):
            comparison.same(ours, theirs)
        inputs = tuple(comparison.box(tensor) for tensor in intrin.inputs)
        # A read under a condition may be outside of its tensor; an instruction reads whole boxes, whatever the condition.
        if any(_is_conditional(node) for body in shown for node in walk(body)):
            _check_inside(inputs, analyzer)
    except Mismatch as reason:
        _fail(where, stage.name, spatial, reduction, shown, intrin, reason)
    output = tuple(
        Range.from_min_extent(low, as_index(extent, low.dtype)) for low, extent in zip(spatial.lows, spatial.extents, strict=True)
    )
    return TensorMatch(intrin, inputs, tuple(BufferRegion(b, output) for b in buffers), comparison.values)


def _is_conditional(node: object) -> bool:
    return isinstance(node, Select) or (isinstance(node, Call) and node.op == "tir.if_then_else")


def _check_inside(inputs: Sequence[BufferRegion], analyzer: Analyzer) -> None:
    """Elements that a condition leaves out may not exist, but a box has all of its elements."""
    for box in inputs:
        for bounds, size in zip(box.region, box.buffer.shape, strict=True):
            if not (analyzer.known_nonnegative(bounds.min) and analyzer.known_less_equal(bounds.min + bounds.extent, size)):
                raise Mismatch(
                    f"its reads of {box.buffer.name} are conditional, and a box of them from {bounds.min} may reach past the tensor "
                    f"(extent {size}); compute what is padded in a stage of its own"
                )


def _fail(
    where: str, name: str, spatial: Region, reduction: Region, shown: Sequence[PrimExpr], intrin: TensorIntrin, reason: Mismatch
) -> NoReturn:
    def text(extents: Sequence[PrimExpr], reduced: Sequence[PrimExpr], bodies: Sequence[PrimExpr]) -> str:
        over = f" reducing [{', '.join(map(str, reduced))}]" if reduced else ""
        return f"[{', '.join(map(str, extents))}]{over}: {', '.join(map(str, bodies))}"

    op = intrin.op
    theirs = text([_extent(a.dom) for a in op.axis], [_extent(a.dom) for a in op.reduce_axis], op.body)
    ours = text(spatial.extents, reduction.extents, shown)
    raise ScheduleError(f"{where}: {reason}.\n  {name} under the loop computes {ours}\n  {intrin.name} computes {theirs}") from None


def _extent(dom: Range | None) -> PrimExpr:
    assert dom is not None
    return dom.extent


def _is_one(extent: PrimExpr) -> bool:
    return as_int(extent) == 1


def _sized(intrin: TensorIntrin, spatial: Region, reduction: Region) -> TensorIntrin:
    """The intrinsic of the extents under a loop; where its axes and the loop's don't correspond, what differs is told later."""
    op = intrin.op
    own = [_extent(axis.dom) for axis in op.axis]
    # Innermost axes first; further axes outside of the intrinsic's have one iteration.
    found = list(zip(reversed(own), reversed(spatial.extents), strict=False))
    summed = [_extent(axis.dom) for axis in op.reduce_axis]
    return sized(intrin, solved([*found, *zip(summed, _inner(reduction.extents, len(summed)), strict=True)]))


def _inner(extents: Sequence[PrimExpr], count: int) -> list[PrimExpr]:
    """The extents that so many reduction axes of an intrinsic have: the last ones, unless some before are more than 1."""
    before, last = extents[: len(extents) - count], extents[len(extents) - count :]
    if len(extents) >= count and all(map(_is_one, before)):
        return list(last)
    taken = [extent for extent in extents if not _is_one(extent)][:count]
    return taken + [ONE] * (count - len(taken))


def _absolute(region: Region) -> tuple[PrimExpr, ...]:
    return tuple(low + local for low, local in zip(region.lows, region.local, strict=True))


def _regions(domain: StageDomain, axis: int, analyzer: Analyzer) -> tuple[Region, Region]:
    """The boxes of spatial and reduction axes under a loop, which runs over each of their points once."""
    stage = domain.stage
    inside = stage.leaf[stage.leaf.index(axis) :]
    ranges: dict[Var, Range] = {}
    for loop in inside:
        if not _is_one(domain.extents[loop]):
            ranges[stage.axes[loop].var] = domain.loop_range(loop)
    # An instruction has no way to leave elements out.
    _check_guards(domain, set(ranges))
    spatial, reduction = (_region(domain, part, ranges, analyzer) for part in (stage.spatial, stage.reduction))
    points = _product(_extent(r) for r in ranges.values())
    # More iterations than points would compute some of them twice, fewer would leave some out; the intrinsic does each once.
    if not analyzer.known_equal(points, _product((*spatial.extents, *reduction.extents))):
        raise Mismatch(
            f"the {points} iterations under it do not fill a box of {stage.name}'s axes "
            f"({', '.join(map(str, spatial.extents + reduction.extents))}); tensorize a loop whose inner loops are whole tiles"
        )
    return spatial, reduction


def _product(extents: Iterable[PrimExpr]) -> PrimExpr:
    whole: PrimExpr = ONE
    for extent in extents:
        whole = whole * as_index(extent, whole.dtype)
    return whole


def _check_guards(domain: StageDomain, inside: set[Var]) -> None:
    for guard in domain.guards:
        if not variables(guard.condition).isdisjoint(inside):
            raise Mismatch(
                f"{guard.condition} guards the elements under it, so some of them are left out at the border; "
                "split evenly (a factor that divides the extent), or pad the tensor to a multiple of the tile"
            )


def _region(domain: StageDomain, axes: Sequence[int], inside: Mapping[Var, Range], analyzer: Analyzer) -> Region:
    lows: list[PrimExpr] = []
    extents: list[PrimExpr] = []
    local: list[PrimExpr] = []
    roots = domain.root_values()
    for axis in axes:
        root = domain.stage.axes[axis]
        value = analyzer.simplify(roots[root.var])
        bounds = relax(value, dict(inside), analyzer)
        extent = None if bounds is None else analyzer.simplify(bounds.max - bounds.min + 1)
        # A start that moves with the loops inside would be another box for each of them.
        if bounds is None or extent is None or not {*variables(bounds.min), *variables(extent)}.isdisjoint(inside):
            raise Mismatch(f"the loops under it do not take a constant number of values of {root.name} ({value})")
        lows.append(analyzer.simplify(bounds.min))
        extents.append(extent)
        local.append(IntImm(root.dtype, 0) if _is_one(extent) else Var(root.name, root.dtype))
    for var, size in zip(local, extents, strict=True):
        if isinstance(var, Var):
            analyzer.bind(var, Range.from_min_extent(IntImm(var.dtype, 0), as_index(size, var.dtype)))
    return Region(tuple(lows), tuple(extents), tuple(local))


def _aligned(spatial: Region, reduction: Region, intrin: TensorIntrin, analyzer: Analyzer) -> dict[Var, PrimExpr]:
    """The box variable (or 0) for each axis of the intrinsic: spatial axes from the last backwards, reductions in order."""
    op = intrin.op
    wanted = [_extent(axis.dom) for axis in op.axis]
    left_out = len(spatial.extents) - len(wanted)
    # Outer axes of the stage that the intrinsic doesn't have must stand still under it.
    if left_out < 0 or not all(map(_is_one, spatial.extents[:left_out])) or not _same(spatial.extents[left_out:], wanted, analyzer):
        raise Mismatch(f"the loop covers {_listed(spatial.extents)} elements, the intrinsic {_listed(wanted)}")
    axes = {axis.var: local for axis, local in zip(op.axis, spatial.local[left_out:], strict=True)}
    sizes = [_extent(axis.dom) for axis in op.reduce_axis]
    ours = [(local, extent) for local, extent in zip(reduction.local, reduction.extents, strict=True) if not _is_one(extent)]
    if not _same([extent for _, extent in ours], [size for size in sizes if not _is_one(size)], analyzer):
        raise Mismatch(f"the loop reduces over {_listed(reduction.extents)}, the intrinsic over {_listed(sizes)}")
    remaining = iter(ours)
    for axis, size in zip(op.reduce_axis, sizes, strict=True):
        axes[axis.var] = IntImm(axis.var.dtype, 0) if _is_one(size) else next(remaining)[0]
    return axes


def _same(ours: Sequence[PrimExpr], theirs: Sequence[PrimExpr], analyzer: Analyzer) -> bool:
    return len(ours) == len(theirs) and all(a is b or analyzer.known_equal(a, b) for a, b in zip(ours, theirs, strict=True))


def _listed(extents: Sequence[PrimExpr]) -> str:
    return f"[{', '.join(map(str, extents))}]"
