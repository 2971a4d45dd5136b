"""What a block of threads may have, and how the loop over results becomes blocks and threads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from ...dataclass import dataclass
from ...schedule.steps import Sampled
from ...schedule.te_schedule import Schedule
from ...target import Target
from ...target.chips import ASYNC_COPIES, CHIPS, RATES, STATIC_SHARED, Rates, capability, rates_of
from ...te.operation import ComputeOp, PlaceholderOp
from ...te.tensor import Tensor
from ...te.thread_axis import thread_axis
from ...tir.expr import Call, IterVar
from ...tir.rewriting import walk
from ..access import Loop, StageReads, element_bytes, merged_loops, stage_reads
from ..sizes import Candidates, Factor, decided, several
from ..stages import compute_of, constant_extents

# Four warps for each of the four schedulers of a multiprocessor wait for memory while one computes; several such blocks fit.
_THREADS = 256
# Virtual threads along an axis: TVM's limit is a fourth of a warp.
_VIRTUAL = 8
# The widest access of a thread, in bytes.
WIDEST = 16
# Cycles until what was asked for arrives from memory (Jia et al., Dissecting the NVIDIA Volta GPU Architecture, 2018, and later chips
# alike), and between two kernels, some 3 us.
LATENCY, LAUNCH = 500.0, 4000.0
LOADED_BYTES = 64.0
"""Bytes of a multiprocessor in a cycle, from the second level of cache."""
_UNIT, _LEAST = 8, 16  # registers are given to threads in units, and no fewer than the least
_MOST_RESIDENT = 32


@dataclass(frozen=True)
class Limits:
    """What a block may have.

    Args:
        threads: all of its dimensions together.
        warp: threads that run in step.
        shared: bytes of shared memory, of a size that is declared.
        registers: of a multiprocessor, which its blocks share.
        virtual: virtual threads along an axis.
        of_thread: registers of a thread.
        local: bytes that are a thread's own, if those are limited.
        dynamic: bytes of shared memory, of a size that the launch says.
        shared_sm, warps_sm: bytes of shared memory, and warps, of a multiprocessor, for all of its blocks.
        is_async: whether copies into shared memory need not be waited for.
        rates: of the chip's multiprocessors and its memory.
    """

    threads: int
    warp: int
    shared: int
    registers: int
    virtual: int = 8
    of_thread: int = 255
    local: int | None = None
    dynamic: int = STATIC_SHARED
    shared_sm: int = 96 << 10
    warps_sm: int = 48
    is_async: bool = False
    rates: Rates = RATES[min(RATES)]

    def resident(self, threads: int, registers: int, shared: int) -> int:
        """Blocks that share a multiprocessor, by their threads, registers of a thread and bytes of shared memory; at least one."""
        warps = -(-threads // self.warp)
        held = max(_LEAST, -(-registers // _UNIT) * _UNIT) * warps * self.warp
        return max(1, min(self.warps_sm // warps, self.registers // held, self.shared_sm // max(1, shared), _MOST_RESIDENT))


def is_gpu(target: Target) -> bool:
    """Whether code for a target runs in blocks of threads."""
    return "gpu" in target.keys


def limits_of(target: Target) -> Limits:
    """The limits of a target's blocks: its options, else those of its chip."""
    attrs = target.attrs
    chip = CHIPS.get(str(attrs.get("arch", "")))
    threads = int(attrs.get("max_threads_per_block", attrs.get("max_num_threads", 256)))
    shared = min(STATIC_SHARED, int(attrs.get("max_shared_memory_per_block", STATIC_SHARED)))
    registers = chip.registers if chip is not None else int(attrs.get("registers_per_block", 65536))
    is_async = target.kind.name == "cuda" and capability(target.arch) >= ASYNC_COPIES
    virtual = int(attrs.get("max_vthread_extent", _VIRTUAL))
    room = {} if chip is None else {"shared_sm": chip.shared_sm << 10, "warps_sm": chip.warps, "dynamic": chip.shared_bytes}
    local = int(attrs["max_local_memory_per_block"]) if "max_local_memory_per_block" in attrs else None
    warp = max(1, int(attrs.get("thread_warp_size", 32)))
    rates = rates_of(str(attrs.get("arch", "")))
    return Limits(threads, warp, shared, registers, virtual, local=local, is_async=is_async, rates=rates, **room)


def preferred_threads(limits: Limits, wanted: int | None) -> int:
    """Threads of a block that has so many things to do, in whole warps where a block may have one; None for any number of things."""
    most = min(_THREADS, limits.threads)
    threads = min(most, max(limits.warp, 1))
    while wanted is not None and threads < min(wanted, most):
        threads *= 2
    return min(most, threads) if wanted is not None else most


def numbers_of_threads(limits: Limits) -> tuple[int, ...]:
    """Other numbers of threads for a block: warps, up to the limit."""
    return tuple(count for count in (32, 64, 128, 256, 512, 1024) if count <= limits.threads)


def vector_width(op: ComputeOp, loop: Loop, reads: StageReads, in_row: bool = False, stored: bool = True) -> int:
    """Elements of one access along the last loop: as many as 16 bytes hold if all reads and the store are contiguous there, else 1.

    Args:
        in_row: reads of other stages stay in the block, so that of reads those of inputs count, if there are some.
        stored: the result goes to memory.
    """
    producers = [access.load.producer for access in reads.accesses]
    inputs = [one for one in producers if in_row and isinstance(one, Tensor) and isinstance(one.op, PlaceholderOp)]
    dtypes = [one.dtype for one in inputs] or [access.load.dtype for access in reads.accesses]
    dtypes += [op.output_dtype(0)] if stored or not dtypes else []
    size = max(map(element_bytes, dtypes))
    width = max(1, WIDEST // size)
    # A branch per lane, or a read across memory, makes single accesses of a vector anyhow.
    branches = any(isinstance(node, Call) and node.op == "tir.if_then_else" for body in op.body for node in walk(body))
    straight = all(access.is_affine for access in reads.accesses) and all(stride in (0, 1) for stride in loop.strides)
    while width > 1 and (loop.extent % width or any(_starts_within(access.strides.values(), width) for access in reads.accesses)):
        width //= 2
    return width if straight and not branches else 1


def _starts_within(strides: Iterable[int], width: int) -> bool:
    """Whether rows start at other places than multiples of a vector, so that its address would not be aligned."""
    return any(stride % width for stride in strides if stride != 1)


def one_walk(s: Schedule, tensor: Tensor, axes: Sequence[IterVar], in_row: bool = False) -> tuple[list[IterVar], int]:
    """The loops over `axes`, those that go on through memory fused, and how many elements of the last one make a vector."""
    if constant_extents(axes) is None:
        return list(axes), 1
    reads = stage_reads(s.tree, s.tree[s[tensor].id])
    loops = merged_loops(s, tensor, axes, reads)
    stored = not in_row or s.tree[s[tensor].id].is_output
    return [loop.axis for loop in loops], vector_width(compute_of(s, tensor), loops[-1], reads, in_row, stored)


def vectors(width: int) -> Candidates:
    """Elements of an access: so many, or fewer, so that more threads have some."""
    return lambda _: [count for count in (1, 2, 4, 8, 16) if count <= width]


def over_blocks(s: Schedule, tensor: Tensor, axes: Sequence[IterVar], target: Target, vector: bool = True) -> IterVar:
    """Bind the loops over `axes` of a stage to blocks and threads, a vector of neighbours for each thread, or several a block apart;
    returns the innermost loop around that vector."""
    limits, stage = limits_of(target), s[tensor]
    known = constant_extents(axes)
    loops, width = one_walk(s, tensor, axes) if axes and vector else (list(axes), 1)
    if width > 1:
        loops[-1], lane = stage.split(loops[-1], factor=decided(stage, loops[-1], width, vectors(width)))
        stage.vectorize(lane)
    whole = stage.fuse(*loops)
    threads = preferred_threads(limits, None if known is None else prod(known) // width)
    size: Factor = decided(stage, whole, threads, lambda _: numbers_of_threads(limits))
    blocks, inner = stage.split(whole, factor=size)
    place = inner
    if isinstance(count := decided(stage, blocks, 1, several), Sampled):
        blocks, place = stage.split(blocks, factor=count)
        stage.reorder(blocks, inner, place)
        stage.unroll(place)
    stage.bind(blocks, thread_axis("blockIdx.x"))
    stage.bind(inner, thread_axis("threadIdx.x"))
    return place
