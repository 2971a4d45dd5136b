"""What threads of a device share, and how many there are, in words: facts of `explain`."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..tir.arithmetic import as_int
from ..tir.thread import MAX_THREADS
from .attachment import enclosing_loops
from .domain import StageDomain
from .thread_legality import shares, storage_scope
from .tree import ScheduleTree, StageNode


def thread_facts(tree: ScheduleTree, stage: StageNode) -> Iterator[str]:
    """Which threads see an attached stage's elements, and which of them compute it."""
    path = tuple(enclosing_loops(tree, stage))
    scope = storage_scope(stage, path)
    own = {thread.tag for axis in stage.leaf if (thread := stage.mark(axis).thread) is not None}
    every = []
    for target, axis in path:
        thread = target.mark(axis).thread
        if thread is None:
            continue
        where = f"the loop {target.axes[axis].name} of {target.name}"
        if not shares(scope, thread.tag):
            yield f"storage: private to each {'block' if thread.tag.startswith('blockIdx.') else 'thread'} of {where}"
            continue
        yield f"storage: shared by the threads of {where}, which wait for each other before one reads or overwrites what others use"
        if thread.tag.startswith("threadIdx.") and thread.tag not in own:
            every.append(thread.tag)
    if every:
        yield f"threads: all along {', '.join(every)} compute the same; bind loops of {stage.name} to them, and each computes a part"


def block_facts(domain: StageDomain) -> Iterator[str]:
    """How many threads a block of a kernel has, and whether that is too many."""
    stage = domain.stage
    tags = {axis: thread.tag for axis in stage.leaf if (thread := stage.mark(axis).thread) is not None}
    extents = [as_int(domain.extents[axis]) for axis, tag in tags.items() if tag.startswith("threadIdx.")]
    known = [extent for extent in extents if extent is not None]
    if known and len(known) == len(extents):
        count = math.prod(known)
        most = f", and a GPU has at most {MAX_THREADS}: bind smaller parts of the loops" if count > MAX_THREADS else ""
        yield f"threads: {count} in a block{most}"
