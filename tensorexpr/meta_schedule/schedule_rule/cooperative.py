"""What tiling does for GPUs: threads of a block load together, as vectors, and loads run ahead of what is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...schedule.blocks import BlockRV, LoopRV, Schedule
from ...tir.stmt import For, SeqStmt

COOPERATIVE_FETCH = "meta_schedule.cooperative_fetch"
WARP_EXECUTION = "warp_execution"
# A thread loads 16 bytes at once at most; lanes of half precision come in pairs. Other types load any length.
_LANES: dict[str, Callable[[int], bool]] = {
    "float32": lambda lanes: lanes <= 4,
    "float16": lambda lanes: lanes == 1 or (lanes % 2 == 0 and lanes <= 8),
    "int8": lambda lanes: lanes <= 16,
}
# Buffers of a pipeline whose loads are asynchronous, on devices that have such loads.
PIPELINE_STAGES = (4, 5)
_ASYNC_SINCE = 80


def load_together(sch: Schedule, cache: BlockRV, lengths: Sequence[int], loops: int | None = None) -> None:
    """Fuse the loops of a copy, and mark it with how many elements a thread moves at once, sampled from lengths.

    Of a cached read they are those over its buffer, of others the last so many `loops`. Nothing is marked if no length fits the data.
    """
    buffer = sch.get(cache).writes[0].buffer
    sch.fuse(*sch.get_loops(cache)[-(loops or len(buffer.shape)) :])
    fits = _LANES.get(str(buffer.dtype))
    fitting = [length for length in lengths if fits is None or fits(length)]
    if fitting:
        lanes = sch.sample_categorical(fitting, [1.0 / len(fitting)] * len(fitting))
        sch.annotate(cache, COOPERATIVE_FETCH, lanes)


def stages_of(arch: str) -> tuple[int, ...]:
    """The numbers of stages that pipelines on an architecture may have; none before sm_80, which loads asynchronously first."""
    version = arch.removeprefix("sm_")
    return PIPELINE_STAGES if arch.startswith("sm_") and version.isdigit() and int(version) >= _ASYNC_SINCE else ()


def pipelined(sch: Schedule, reducing: Sequence[LoopRV], stages: int) -> None:
    """Mark a loop of two loads and a computation: loads run stages ahead, asynchronously."""
    fused = sch.fuse(*reducing)
    sch.annotate(fused, "software_pipeline_stage", [0, 0, stages - 2])
    sch.annotate(fused, "software_pipeline_order", [0, 1, 2])
    sch.annotate(fused, "software_pipeline_async_stages", [0])


def has_two_loads(sch: Schedule, loop: LoopRV) -> bool:
    """Whether a loop's body is two loads and a computation, each in loops."""
    body = sch.get(loop).body
    return isinstance(body, SeqStmt) and len(body.seq) == 3 and all(isinstance(stmt, For) for stmt in body.seq)
