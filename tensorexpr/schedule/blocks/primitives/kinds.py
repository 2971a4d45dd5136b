"""Parallel, vectorize, unroll, bind: how a loop runs.

for i in range(16)  ->  for i in T.parallel(16)  |  T.vectorized(16)  |  T.unroll(16)  |  T.thread_binding(16, thread="threadIdx.x")
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ....arith.block_access import touched_regions
from ....errors import ScheduleError
from ....tir.arithmetic import is_const_int
from ....tir.block import BlockRealize
from ....tir.buffer import Buffer
from ....tir.expr import IntImm, IterVar, Range, Var
from ....tir.rewriting import variables
from ....tir.stmt import For, ForKind
from ....tir.thread import is_thread_tag, thread_tags
from ..affine import check_affine, tells_apart, why_not_affine, why_not_affine_inside
from ..apart import is_apart, is_private
from ..bindings import TRUE, ranges_of
from ..coverage import carried
from ..dataflow import why_ambiguous
from ..diagnostics import PrimitiveError
from ..instruction import Applied, Primitive, State, loop_of
from ..program import BlockProgram, Node, block_at, realized
from ..scope import Scope, check_complete_or_reduction, is_update, written


def with_kind(program: BlockProgram, var: Var, kind: ForKind, primitive: str, thread: str | None = None) -> BlockProgram:
    """The program with a loop that runs in another way."""
    loop = program.loop(var)
    _check_independent(program, loop, primitive, (thread or "").startswith("threadIdx"))
    axis = None
    if thread is not None:
        axis = IterVar(Range.from_min_extent(loop.min, loop.extent), Var("", loop.loop_var.dtype), IterVar.THREAD_INDEX, thread)
    return program.replace(loop, replace(loop, kind=kind, thread_binding=axis))


def _check_independent(program: BlockProgram, loop: For, primitive: str, together: bool) -> None:
    """Each block below may run its instances along the loop in any order, or at once; or threads may reduce together."""
    top = program.loop_node(loop.loop_var)
    local = Scope.below(program, top)
    for node in program.child_blocks(top):
        realize = realized(node)
        # threads of a block may share a sum: lowering combines their parts
        if together and _is_reduced_by(local, realize, loop, program.loops_above(node)):
            continue
        for axis, value in realize.bindings():
            if loop.loop_var in variables(value) and axis.iter_type != IterVar.DATA_PAR:
                raise PrimitiveError(f"{primitive}: {realize.block.name_hint} {_in_order(axis, loop)}", loop)
        try:
            _check_writes(program, loop, local, node, primitive)
        except PrimitiveError:
            # what each iteration has to itself can't be written by another one
            if not all(is_private(program, loop, buffer) for buffer in written(realize.block)):
                raise
    _check_carried(program, loop, primitive)


def _is_reduced_by(local: Scope, realize: BlockRealize, loop: For, loops: Sequence[For]) -> bool:
    """True if a block reduces over a loop, and nothing in the loop reads what is reduced."""
    if local.consumers(realize.block) or local.producers(realize.block):
        return False
    own = [a for a, value in realize.bindings() if loop.loop_var in variables(value)]
    reduced = bool(own) and all(axis.iter_type == IterVar.COMM_REDUCE for axis in own)
    return reduced and local.why_no_reduction(realize.block) is None and why_not_affine(realize, loops) is None


def _in_order(axis: IterVar, loop: For) -> str:
    if axis.iter_type == IterVar.COMM_REDUCE:
        return f"reduces over {loop.loop_var.name} (its axis {axis.var.name}); use rfactor to make partial results, or another loop"
    return f"needs the iterations of {loop.loop_var.name} one after another (its axis {axis.var.name} is not spatial); take another loop"


def _check_writes(program: BlockProgram, loop: For, local: Scope, node: Node, primitive: str) -> None:
    """No two iterations write an element of a buffer that they share."""
    realize = realized(node)
    block, loops = realize.block, program.loops_above(node)
    is_whole = local.why_not_complete(block) is None or local.why_no_reduction(block) is None
    reason = None if is_const_int(loop.extent, 1) else _why_twice(realize, loop)
    outside = len(program.loops_above(program.loop_node(loop.loop_var)))
    if is_whole and reason is None:
        affine = why_not_affine_inside(realize, loops[:outside], loops[outside:]) is None
        # What tells apart iterations of more loops does so with those of fewer.
        if affine or any(tells_apart(realize, loops[outer:]) for outer in range(outside + 1)):
            return
    _check_reduced_once(realize, loops, primitive)
    if not (is_whole or is_update(block)) or not all(_is_apart(program, loop, buffer) for buffer in written(block)):
        check_affine(realize, loops, primitive)
        check_complete_or_reduction(local, realize, primitive)
        raise PrimitiveError(
            f"{primitive}: iterations of {loop.loop_var.name} may write the same elements: {reason}; take a loop along which "
            "they differ, or compute the block where each iteration has a buffer of its own",
            loop,
        )


def _check_reduced_once(realize: BlockRealize, loops: Sequence[For], primitive: str) -> None:
    """Refuse a reduction whose axes may meet a point again: its init, which runs at the first one, would run again too."""
    axes = realize.bindings()
    # The spatial axes at one value: what is left must meet each reduced point once.
    values = tuple(value if axis.iter_type == IterVar.COMM_REDUCE else IntImm(axis.dtype, 0) for axis, value in axes)
    if realize.block.init is not None and why_not_affine(replace(realize, iter_values=values, predicate=TRUE), loops) is not None:
        check_affine(realize, loops, primitive)


def _why_twice(realize: BlockRealize, loop: For) -> str | None:
    """How a block may write an element in several iterations."""
    if not any(loop.loop_var in variables(value) for value in realize.iter_values):
        return f"{realize.block.name_hint} has no axis bound to {loop.loop_var.name}, which repeats it"
    return why_ambiguous(realize.block)


def _check_carried(program: BlockProgram, loop: For, primitive: str) -> None:
    """What a block reads of another one below was written in the same iteration."""
    for made, other, shared in carried(program, program.child_blocks(program.loop_node(loop.loop_var))):
        buffer = next((buffer for buffer in shared if not _is_apart(program, loop, buffer)), None)
        if buffer is not None:
            raise PrimitiveError(
                f"{primitive}: {block_at(other).name_hint} may read of {buffer.name} what {block_at(made).name_hint} writes in another "
                f"iteration of {loop.loop_var.name}; compute it in the same iteration, or in a nest of its own before",
                loop,
            )


def _is_apart(program: BlockProgram, loop: For, buffer: Buffer) -> bool:
    """True if no two iterations touch the same elements of a buffer."""
    around = ranges_of(program.loops_above(program.loop_node(loop.loop_var)))
    touched = touched_regions(loop.body, [buffer])[buffer]
    boxes = [box for box in (touched.reads, touched.writes) if box is not None]
    # a box with itself too, and pairs in both orders: `is_apart` holds an iteration against those before it
    return all(is_apart(one, other, [loop], around) for one in boxes for other in boxes)


class Parallel(Primitive):
    """The instruction."""

    kind, method, inputs = "Parallel", "parallel", ("loop",)
    as_kind = ForKind.PARALLEL

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        ref = loop_of(inputs[0], self.method)
        return Applied(state.updated(ref.func, with_kind(state.program_of(ref), ref.var, self.as_kind, self.method)))


class Vectorize(Parallel):
    """The instruction."""

    kind, method, as_kind = "Vectorize", "vectorize", ForKind.VECTORIZED


class Unroll(Primitive):
    """The instruction."""

    kind, method, inputs = "Unroll", "unroll", ("loop",)

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        ref = loop_of(inputs[0], self.method)
        program = state.program_of(ref)
        loop = program.loop(ref.var)
        return Applied(state.updated(ref.func, program.replace(loop, replace(loop, kind=ForKind.UNROLLED, thread_binding=None))))


class Bind(Primitive):
    """The instruction."""

    kind, method, inputs, attrs = "Bind", "bind", ("loop",), ("thread_axis",)

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        ref, tag = loop_of(inputs[0], self.method), attrs[0]
        if not is_thread_tag(str(tag)):
            raise ScheduleError(f"bind: no thread axis is called {tag!r}; known: {thread_tags()}")
        program = with_kind(state.program_of(ref), ref.var, ForKind.THREAD_BINDING, self.method, tag)
        return Applied(state.updated(ref.func, program))
