"""How a stage touches memory once its inlined producers are part of it: the distance between neighbours along each axis."""

from __future__ import annotations

from collections.abc import Sequence

from ..dataclass import dataclass
from ..lower.phase0.inline_stages import inlined_bodies
from ..schedule.te_schedule import Schedule
from ..schedule.tree import ScheduleTree, StageNode
from ..target import Target
from ..te.access import simple_access
from ..te.affine_access import Access, access_of
from ..te.operation import ComputeOp, Operation
from ..te.tensor import Tensor
from ..tir.arithmetic import as_int
from ..tir.dtype import parse_dtype
from ..tir.expr import Call, CmpExpr, FloorDiv, FloorMod, IntImm, IterVar, PrimExpr, ProducerLoad, Select, Var
from ..tir.rewriting import children, variables, walk
from .machine import lanes_of, outgrows_cache
from .stages import extents_of


@dataclass(frozen=True)
class StageReads:
    """What a stage reads, and whether its axes occur anywhere but in the indices of these reads."""

    accesses: tuple[Access[Var], ...]
    axes_only_index: bool


def stage_reads(tree: ScheduleTree, node: StageNode) -> StageReads:
    """The reads of a stage, those of inlined stages in their place."""
    # Of an inlined transpose the reads behind it count: what is stored decides which neighbours share a line, not what the definition
    # names.
    bodies = inlined_bodies(tree, node)
    loads = list(dict.fromkeys(n for body in bodies for n in walk(body) if isinstance(n, ProducerLoad)))
    # `i * X[i]` needs i itself, which a loop of i and j fused would have to divide out again; `X[i]` needs only an address.
    axes = {axis.var for axis in (*node.compute.axis, *node.compute.reduce_axis)}
    return StageReads(tuple(flat_access(load) for load in loads), not any(_mentions(body, axes) for body in bodies))


def flat_access(load: ProducerLoad) -> Access[Var]:
    """A read, every variable an axis."""
    return access_of(load, lambda var: var)


def lanes_of_terms(bodies: Sequence[PrimExpr], target: Target) -> int:
    """How many terms of a reduction a vector register holds: of truths as many as of what is compared for them.

    Example:
        any over k of X[i, k] > 0.5, X of float32: 8 of 256 bits, as a comparison gives each lane all bits of what it compares.
    """
    dtype = bodies[0].dtype
    compared = {node.a.dtype for body in bodies for node in walk(body) if isinstance(node, CmpExpr)} if dtype == "bool" else set()
    return min(lanes_of(target, one) for one in (dtype, *compared))


def is_move(op: ComputeOp) -> bool:
    """True if an operator only brings elements to other places: T[i, j] = X[j, i // 2]."""
    return len(op.body) == 1 and isinstance(op.body[0], ProducerLoad)


def is_view(op: ComputeOp) -> bool:
    """True if an operator only reads elements from places that are sums of multiples of its axes: a transpose, a split axis.

    Example:
        Y[i, j] = X[j, 4 * i], but not X[i // 4, j].
    """
    body = op.body[0]
    return len(op.body) == 1 and isinstance(body, ProducerLoad) and flat_access(body).is_affine


def bordered(op: Operation) -> ProducerLoad | None:
    """What an operator reads, if it does nothing but put a border around it: `X[i - 1, j] if 1 <= i else 0.0`.

    The read is at the operator's axes, in order, each shifted by a constant; the condition and the border don't depend on memory.
    """
    match op.body if isinstance(op, ComputeOp) else ():
        case (Call(op="tir.if_then_else", args=(where, ProducerLoad() as load, border)) | Select(where, ProducerLoad() as load, border),):
            # X[i - 1, j] is a border; X[j, i] or X[2 * i] would move elements too, so that to read X in place of the copy isn't the same
            # loops.
            access = simple_access(op, load.indices)
            plain = not any(isinstance(node, ProducerLoad) for part in (where, border) for node in walk(part))
            return load if plain and access is not None and access.is_elementwise else None
    return None


def panel_along(load: ProducerLoad, axis: Var) -> int:
    """How many neighbours along an axis lie in each panel of what is read; 0 if it has no panels.

    Example:
        W[o // 32, k, o % 32] along o: 32.
    """
    # Exactly two indices have the axis, and that of lanes is the last: any other order is no vector in memory.
    match [index for index in load.indices if axis in variables(index)]:
        case [FloorDiv(panel, IntImm() as size), FloorMod(within, IntImm() as block) as last] if last is load.indices[-1]:
            return block.value if panel is within is axis and size is block else 0
    return 0


def _mentions(body: PrimExpr, axes: set[Var]) -> bool:
    """True if an axis occurs outside of the indices of reads."""
    stack, seen = [body], set[PrimExpr]()
    while stack:
        expr = stack.pop()
        if expr in seen or isinstance(expr, ProducerLoad):
            continue
        seen.add(expr)
        if isinstance(expr, Var) and expr in axes:
            return True
        stack.extend(child for child in children(expr) if isinstance(child, PrimExpr))
    return False


@dataclass(frozen=True)
class Loop:
    """A loop of a stage with its extent, and the distance along it in every read."""

    axis: IterVar
    extent: int
    strides: tuple[int, ...]


def merged_loops(s: Schedule, tensor: Tensor, axes: Sequence[IterVar], reads: StageReads) -> list[Loop]:
    """The loops over `axes`, neighbours fused where every read goes on through memory from one to the next.

    Elementwise operators become one loop; a transpose of images keeps two, as all pixels follow each other on both sides.
    """
    strides = (tuple(access.stride(axis.var) for access in reads.accesses) for axis in axes)
    return merged(s, tensor, [Loop(*loop) for loop in zip(axes, extents_of(axes), strides, strict=True)], reads)


def merged(s: Schedule, tensor: Tensor, apart: Sequence[Loop], reads: StageReads) -> list[Loop]:
    """Some loops of a stage, outermost first, with neighbours fused; see `merged_loops`."""
    loops: list[Loop] = []
    # where an axis stands outside of such indices, a fused loop would need // and % to tell it
    may_fuse = reads.axes_only_index and all(access.is_affine for access in reads.accesses)
    for loop in apart:
        last = loops[-1] if loops else None
        if last is not None and may_fuse and _goes_on(last, loop):
            # a loop of one iteration never moves, so its strides say nothing
            strides = last.strides if loop.extent == 1 else loop.strides
            loop = Loop(s[tensor].fuse(last.axis, loop.axis), last.extent * loop.extent, strides)
            loops.pop()
        loops.append(loop)
    return loops


def _goes_on(outer: Loop, inner: Loop) -> bool:
    if outer.extent == 1 or inner.extent == 1:
        return True
    return all(a == b * inner.extent for a, b in zip(outer.strides, inner.strides, strict=True))


def element_bytes(dtype: str) -> int:
    """Bytes of an element in memory."""
    return max(1, parse_dtype(dtype).bits // 8)


def is_streamed(s: Schedule, tensor: Tensor, target: Target) -> bool:
    """True for a result of the program that the caches can't keep for whoever reads it next."""
    return s.tree[s[tensor].id].is_output and outgrows_cache(target, bytes_of(tensor))


def bytes_of(tensor: Tensor) -> int:
    """Bytes of a tensor of constant shape."""
    size = element_bytes(tensor.dtype)
    # A symbolic extent counts as one: too few bytes, so that what depends on a size being large isn't done.
    for extent in tensor.shape:
        size *= as_int(extent) or 1
    return size
