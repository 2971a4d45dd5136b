"""Random legal schedules of a computation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TypeVar

from hypothesis import strategies as st

from ...errors import LoweringError, ScheduleError
from ...lower.phase0.views import ScheduleOps
from ...schedule.legality import check_tree
from ...schedule.steps import (
    Annotate,
    BalancedSplit,
    Bind,
    CacheRead,
    CacheReadOne,
    CacheReadWide,
    CacheWrite,
    ComputeAt,
    ComputeInline,
    Contract,
    CreateGroup,
    Distribute,
    DoubleBuffer,
    ExactSplit,
    Fuse,
    GroupComputeAt,
    GroupComputeRoot,
    Materialize,
    MultiBuffer,
    Pragma,
    Prefetch,
    ReindexCacheRead,
    Reorder,
    RFactor,
    RollingBuffer,
    SetScope,
    SetStorePredicate,
    SkipPadding,
    Split,
    Step,
    StorageAlign,
    StoreNontemporal,
    Tensorize,
    TransformLayout,
)
from ...schedule.te_schedule import Schedule, create_schedule
from ...schedule.tree import At, ScheduleTree, SplitRelation, StageNode
from ...te.operation import Operation
from ...te.tensor import Tensor
from ...te.tensor_intrin import TensorIntrin
from ...tir.arithmetic import as_int
from .intrinsics import fitting_intrinsics
from .layouts import layout_mappings

FACTORS = (1, 2, 3, 4, 5, 7, 8, 16)
SCOPES = ("global", "local", "shared", "global.texture")
_T = TypeVar("_T")
Draw = st.DrawFn


@st.composite
def schedules(
    draw: Draw, outputs: Sequence[Operation | Tensor], max_steps: int = 10, argument_layouts: bool = False, tensorize: bool = True
) -> Schedule:
    """A schedule of `outputs`, tensors or their operations, made of up to `max_steps` random primitives, each legal where it stands.

    With `argument_layouts` inputs and outputs may be passed in other layouts (see `Schedule.arguments` and `layout_of`).
    Without `tensorize` no stage has an intrinsic, which later steps could make unfit.
    Proposals that the schedule refuses are dropped, so what comes out also says that refusing left it intact.
    """
    schedule = create_schedule(outputs)
    for _ in range(draw(st.integers(0, max_steps))):
        step = _proposal(draw, schedule.tree)
        if step is None or (isinstance(step, TransformLayout) and not argument_layouts and _is_argument(schedule.tree[step.stage])):
            continue
        schedule = applied(schedule, step) or schedule
    return _tensorized(draw, schedule, max_steps) if tensorize else schedule


def applied(schedule: Schedule, step: Step) -> Schedule | None:
    """The schedule with one more step; None if that is illegal."""
    trial = schedule.copy()
    try:
        trial.apply_step(step)
        check_tree(trial.tree)
        if any(map(_depends_on_bounds, trial.tree.stages)):
            ScheduleOps(trial)
    except (ScheduleError, LoweringError):  # an output that rolls is legal until it is an argument
        return None
    return trial


def _tensorized(draw: Draw, schedule: Schedule, max_steps: int) -> Schedule:
    """The schedule with an intrinsic in some stages: the first that computes what one of the two innermost loops does."""
    for stage in schedule.tree.stages:
        names = fitting_intrinsics(stage.op)
        if not names or len(schedule.trace) >= max_steps or not draw(st.booleans()):
            continue
        for axis, name in product(stage.leaf[-2:], names):
            intrin = TensorIntrin.get(name)
            trial = applied(schedule, Tensorize(stage.id, axis, intrin.name, intrin.digest))
            if trial is not None:
                schedule = trial
                break
    return schedule


def _is_argument(stage: StageNode) -> bool:
    return stage.is_placeholder or stage.is_output


def _depends_on_bounds(stage: StageNode) -> bool:
    """Whether a step may be illegal for what inferred bounds alone show: that a box doesn't roll, that a split doesn't divide it, that an
    intrinsic doesn't fit, that parts of an output leave a hole."""
    in_parts = stage.is_output and isinstance(stage.attach, At)
    return bool(in_parts or stage.rolling_buffer or stage.double_buffer or _promises(stage) or _is_tensorized(stage))


def _promises(stage: StageNode) -> bool:
    """True if a stage at a loop has splits without guards: its box decides."""
    return isinstance(stage.attach, At) and any(isinstance(r, SplitRelation) and r.exact for r in stage.relations)


def _is_tensorized(stage: StageNode) -> bool:
    return any(mark.intrin is not None for mark in stage.marks.values())


def _proposal(draw: Draw, tree: ScheduleTree) -> Step | None:
    stage = _pick(draw, tree.stages)
    if stage.is_placeholder and draw(st.booleans()):  # of which there are many, and little to do with them
        stage = _pick(draw, [other for other in tree.stages if not other.is_placeholder])
    if stage.is_placeholder:
        readers = tuple(s.id for s in tree.consumers(stage))
        if draw(st.integers(0, 3)) == 0:
            return TransformLayout(stage.id, draw(layout_mappings(stage)))
        if readers and draw(st.integers(0, 3)) == 0:
            return ReindexCacheRead(stage.id, _pick(draw, SCOPES), _pick(draw, readers))
        return CacheRead(stage.id, _pick(draw, SCOPES), readers) if readers else None
    return _pick(draw, _PROPOSALS)(draw, tree, stage)


def _pick(draw: Draw, options: Sequence[_T]) -> _T:
    return options[draw(st.integers(0, len(options) - 1))]


def _leaf(draw: Draw, stage: StageNode) -> int:
    return _pick(draw, stage.leaf) if stage.leaf else 0


def _split(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    factor = _pick(draw, FACTORS)
    return Split(stage.id, _leaf(draw, stage), _pick(draw, ((None, factor), (factor, None), (None, factor, 2))))


def _balanced_split(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    factor = _pick(draw, FACTORS)
    return BalancedSplit(stage.id, _leaf(draw, stage), _pick(draw, ((None, factor), (factor, None))))


def _skip_padding(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    return SkipPadding(stage.id, True)


def _partition_hint(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    return Pragma(stage.id, _leaf(draw, stage), "loop_partition_hint", True)


def _fuse(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    if not stage.leaf:
        return Fuse(stage.id, ())
    if len(stage.leaf) < 2:
        return None
    first = _pick(draw, range(len(stage.leaf) - 1))
    return Fuse(stage.id, stage.leaf[first : first + 2])


def _reorder(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    order = draw(st.permutations(stage.leaf))
    return Reorder(stage.id, tuple(order))


def _annotate(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    return Annotate(stage.id, _leaf(draw, stage), _pick(draw, ("parallel", "vectorize", "unroll")))


def _pragma(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    if draw(st.integers(0, 3)) == 0:
        ours = draw(st.booleans())
        return Pragma(stage.id, _leaf(draw, stage), "no_load_merge" if ours else "of_others", True if ours else "words")
    return Pragma(stage.id, _leaf(draw, stage), "auto_unroll_max_step", _pick(draw, (0, 4, 16, 64)))


def _inline(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    return ComputeInline(stage.id)


def _compute_at(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    readers = tree.consumers(stage)
    if not readers:
        return None
    target = _pick(draw, readers)
    return ComputeAt(stage.id, target.id, _leaf(draw, target))


def _cache_write(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    return CacheWrite(stage.id, _pick(draw, SCOPES))


def _cache_read(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    readers = tuple(s.id for s in tree.consumers(stage))
    if readers and draw(st.integers(0, 3)) == 0:
        return CacheReadWide(stage.id, "local", readers, _pick(draw, ("int16", "int32", "int64")))
    if readers and draw(st.integers(0, 3)) == 0:
        return CacheReadOne(stage.id, "local", readers[:1], draw(st.integers(0, 1)))
    return CacheRead(stage.id, "local", readers) if readers else None


def _materialize(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    return Materialize(stage.id, draw(st.integers(0, 3)))


def _distribute(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    return Distribute(stage.id)


def _contract(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    return Contract(stage.id, tuple(draw(st.lists(st.integers(0, 2), min_size=1, max_size=2, unique=True))))


def _rfactor(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    loops = [axis for axis in stage.leaf if stage.is_reduction(axis)]
    return RFactor(stage.id, _pick(draw, loops), _pick(draw, (0, -1, 1))) if loops else None


def _transform_layout(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    return TransformLayout(stage.id, draw(layout_mappings(stage)), _pick(draw, (None, 0, 3)))


def _scope(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    return SetScope(stage.id, _pick(draw, SCOPES))


def _virtual_threads(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    if any(axis.dom is not None and as_int(axis.dom.extent) is None for axis in stage.axes):
        return None  # lowering refuses numbers of threads that aren't constants
    return Bind(stage.id, _leaf(draw, stage), _pick(draw, ("vthread", "cthread")), "t", None)


def _double_buffer(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    return MultiBuffer(stage.id, 3) if draw(st.booleans()) else DoubleBuffer(stage.id)


def _storage_align(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    factor = _pick(draw, FACTORS)
    return StorageAlign(stage.id, draw(st.integers(0, 3)), factor, draw(st.integers(0, factor - 1)))


def _exact_split(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    factor = _pick(draw, FACTORS)
    return ExactSplit(stage.id, _leaf(draw, stage), _pick(draw, ((None, factor), (factor, None))))


def _prefetch(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    loads = tree.reads(stage)
    if not loads:
        return None
    load = _pick(draw, loads)
    output = getattr(load.producer, "value_index", 0)
    return Prefetch(stage.id, tree.producer(load).id, output, _leaf(draw, stage), draw(st.integers(1, 3)))


def _rolling_buffer(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    attached = [other for other in tree.stages if isinstance(other.attach, At)]
    return RollingBuffer(_pick(draw, attached).id) if attached else None


def _store_predicate(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    """What an output leaves out would differ from its definition, so a predicate on one holds everywhere."""
    if not stage.spatial:
        return None
    axis = _pick(draw, stage.spatial)
    extent = as_int(stage.origin.output_shape(0)[axis])
    low = 0 if stage.is_output else draw(st.integers(0, 2))
    if extent is None or draw(st.booleans()):
        return SetStorePredicate(stage.id, (">=", ("axis", axis), low))
    return SetStorePredicate(stage.id, ("<", ("axis", axis), extent - low))


def _store_nontemporal(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    return StoreNontemporal(_pick(draw, [other for other in tree.stages if other.is_output]).id)


def _group(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    """A new group of what lies between two stages, or one of the old ones placed somewhere."""
    if len(tree.groups) > 0 and draw(st.booleans()):
        number = _pick(draw, range(len(tree.groups)))
        if draw(st.integers(0, 3)) == 0:
            return GroupComputeRoot(number)
        readers = [r for member in tree.groups[number].members for r in tree.consumers(tree[member]) if r.leaf]
        target = _pick(draw, readers) if readers else stage
        return GroupComputeAt(number, target.id, _leaf(draw, target))
    return CreateGroup((stage.id,), (_pick(draw, tree.stages).id,), draw(st.booleans()))


# what stands here twice is proposed twice as often
_PROPOSALS = (
    _split,
    _split,
    _split,
    _balanced_split,
    _balanced_split,
    _fuse,
    _reorder,
    _annotate,
    _annotate,
    _pragma,
    _inline,
    _compute_at,
    _compute_at,
    _cache_write,
    _cache_read,
    _materialize,
    _distribute,
    _contract,
    _rfactor,
    _transform_layout,
    _skip_padding,
    _partition_hint,
    _scope,
    _prefetch,
    _rolling_buffer,
    _rolling_buffer,
    _store_predicate,
    _store_nontemporal,
    _virtual_threads,
    _double_buffer,
    _storage_align,
    _exact_split,
    _group,
    _group,
)
