"""Random schedules for GPUs: kernels of blocks and threads, with what threads share and what each keeps."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from ...errors import ScheduleError
from ...schedule.legality import check_tree
from ...schedule.te_schedule import Schedule, Stage, create_schedule
from ...schedule.tree import Root, StageNode
from ...te.operation import ComputeOp, Operation
from ...te.tensor import Tensor
from ...te.thread_axis import thread_axis
from ...tir.arithmetic import as_int
from ...tir.expr import IterVar

_WIDTHS = (1, 2, 3, 4, 8)  # of threads along an axis
_STEPS = (1, 2, 3, 4)  # terms of a sum that are fetched together


@st.composite
def grids(draw: st.DrawFn, outputs: Sequence[Operation | Tensor]) -> Schedule:
    """A schedule of `outputs` in which each stage that has axes is a kernel of blocks and threads, or part of one.

    A kernel has one or two axes of threads, and virtual threads; sums in registers, terms in parts, with copies of operands in shared
    memory that all threads fetch, or in registers of each; axes of a reduction may be threads. Stages that one kernel alone reads may be
    computed in it, in shared memory for each block or in registers for each thread.
    """
    made = _Grids(draw, create_schedule(outputs))
    for number in [stage.id for stage in reversed(list(made.s.tree.in_order()))]:
        node = made.s.tree[number]
        # What an intrinsic computes has loops that are marked already.
        if isinstance(node.op, ComputeOp) and isinstance(node.attach, Root) and node.op.axis and not node.marks:
            made.kernel(node)
    return made.s


class _Grids:
    def __init__(self, draw: st.DrawFn, s: Schedule) -> None:
        self.draw, self.s = draw, s

    def kernel(self, node: StageNode) -> None:
        """Bind the loops of a stage at the root, and place others in it."""
        s, draw = self.s, self.draw
        result = node.origin.output(0)
        reduces = bool(node.compute.reduce_axis)
        by_threads = reduces and draw(st.integers(0, 3)) == 0
        sums = None
        if reduces and not by_threads and node.origin.num_outputs == 1 and draw(st.booleans()):
            sums = s.cache_write(result, "local")
        stage = s[result]
        threads, block, thread = self._bound(stage)
        if by_threads:
            self._shared_sum(stage, node.is_output)
            return
        if sums is not None:
            s[sums].compute_at(stage, thread)
            self._in_parts(s[sums], sums, threads)
        self._producers(stage, result, block, thread, threads)

    def _bound(self, stage: Stage) -> tuple[list[IterVar], IterVar, IterVar]:
        """Blocks, virtual threads and threads of a stage; returns the thread axes and the loops over blocks and threads."""
        draw, axes = self.draw, list(stage.op.axis)
        columns = [axes.pop()] if len(axes) > 1 and draw(st.booleans()) else []
        parts, threads = [], list[IterVar]()
        for letter, own in zip("yx" if columns else "x", [stage.fuse(*axes), *columns], strict=True):
            block, rest = stage.split(own, factor=draw(st.sampled_from(_WIDTHS)) * draw(st.sampled_from((1, 2, 4))))
            virtual: IterVar | None = None
            if draw(st.integers(0, 3)) == 0:
                virtual, rest = stage.split(rest, nparts=2)
            width = draw(st.sampled_from(_WIDTHS))
            lane, rest = stage.split(rest, nparts=width)
            thread = thread_axis((0, width), f"threadIdx.{letter}")
            threads.append(thread)
            parts.append((block, virtual, lane, rest))
        blocks, virtuals, lanes, rests = zip(*parts, strict=True)
        inner = [axis for axis in virtuals if axis is not None]
        stage.reorder(*blocks, *inner, *lanes, *rests)
        for axis, letter in zip(blocks, "yx"[-len(parts) :], strict=True):
            stage.bind(axis, thread_axis(f"blockIdx.{letter}"))
        for axis in inner:
            stage.bind(axis, thread_axis("vthread"))
        for axis, thread in zip(lanes, threads, strict=True):
            stage.bind(axis, thread)
        for axis in rests:
            if draw(st.booleans()):
                stage.unroll(axis)
        return threads, blocks[-1], lanes[-1]

    def _shared_sum(self, stage: Stage, is_output: bool) -> None:
        """Threads along z add up a part of the sum each."""
        (first, *_), draw = stage.op.reduce_axis, self.draw
        width = draw(st.sampled_from(_WIDTHS))
        _, own = stage.split(first, factor=width)
        thread = thread_axis((0, width), "threadIdx.z")
        stage.bind(own, thread)
        # What other kernels read has to be proved to be stored.
        if is_output and draw(st.booleans()):
            stage.set_store_predicate(thread.var.equal(0))

    def _in_parts(self, stage: Stage, sums: Tensor, threads: Sequence[IterVar]) -> None:
        """The terms of a sum in parts, whose operands may be copied for each."""
        s, draw = self.s, self.draw
        *_, last = stage.op.reduce_axis
        part, term = stage.split(last, factor=draw(st.sampled_from(_STEPS)))
        stage.reorder(*stage.op.reduce_axis[:-1], part, term, *stage.op.axis)
        for load in list(dict.fromkeys(s.tree.reads(s.tree[stage.id]))):
            producer = s.tree.producer(load)
            scope = draw(st.sampled_from(("", "shared", "local", "shared")))
            if not scope or producer.origin.num_outputs > 1 or not isinstance(producer.attach, Root):
                continue
            copy = s.cache_read(producer.origin.output(0), scope, [sums])
            s[copy].compute_at(stage, part if scope == "shared" or draw(st.booleans()) else term)
            if scope == "shared":
                self._fetched(s[copy], threads)
                if draw(st.integers(0, 3)) == 0:
                    s[copy].double_buffer()

    def _fetched(self, stage: Stage, threads: Sequence[IterVar]) -> None:
        """All threads compute a stage together, or, if it isn't shared out, each of them all of it."""
        if not stage.op.axis:
            return
        place = stage.fuse(*stage.op.axis)
        for thread in threads if self.draw(st.booleans()) else reversed(threads):
            extent = as_int(thread.dom.extent) if thread.dom is not None else None
            place, own = stage.split(place, factor=extent)
            stage.bind(own, thread)

    def _producers(self, stage: Stage, result: Tensor, block: IterVar, thread: IterVar, threads: Sequence[IterVar]) -> None:
        """What this kernel alone reads, in it."""
        s, draw = self.s, self.draw
        for load in list(dict.fromkeys(s.tree.reads(s.tree[stage.id]))):
            producer = s.tree.producer(load)
            readers = {reader.id for reader in s.tree.consumers(producer)}
            alone = readers == {stage.id} and not producer.is_output and isinstance(producer.attach, Root)
            if producer.is_placeholder or not alone or not isinstance(producer.op, ComputeOp) or producer.relations:
                continue
            way = draw(st.sampled_from(("kernel", "inline", "block", "thread")))
            trial = s.copy()
            own = trial[producer.origin.output(0)]
            try:
                if way == "inline":
                    own.compute_inline()
                elif way != "kernel":
                    own.compute_at(trial[result], block if way == "block" else thread)
                check_tree(trial.tree)
            except ScheduleError:
                continue
            self.s = s = trial
            if way == "block":
                self._fetched(s[producer.origin.output(0)], threads)
