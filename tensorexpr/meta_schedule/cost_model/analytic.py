"""How fast a program is, by counting: vector instructions, and bytes that move between caches. Nothing is learned.

It tells hopeless programs from others before anything was measured; a learned model corrects it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...target import Target
from ...target.machine import Cache, Machine
from ...tir.function import IRModule, PrimFunc
from ...tir.stmt import ForKind
from ...tune.features.cycles import GATHER_CYCLES
from ...tune.features.programs.stores import Store, stores_of
from ...tune.features.programs.touched import Touched

_LINE_BYTES = 64.0
_LOOP_CYCLES = 1.0  # of counting and jumping, for each iteration that does something


def log_throughput(mod: IRModule, target: Target) -> float:
    """The logarithm of calls per cycle."""
    machine = target.machine
    cycles = 1.0
    for func in mod.functions.values():
        if isinstance(func, PrimFunc):
            cycles += sum(_cycles(store, machine) for store in stores_of(func))
    return -math.log(cycles)


def _cycles(store: Store, machine: Machine) -> float:
    """Of all executions of a store, on all cores."""
    parallel, forks = _parallel(store)
    chunks = math.ceil(parallel / machine.cores)
    # 9 iterations on 8 cores take two turns, so 4.5 cores work on average
    used = parallel / chunks
    own = _instructions(store, machine)
    moved = sum(_traffic(store, cache) / cache.fill_bytes for cache in machine.caches)
    return max(own, moved) / max(1.0, used) + forks * machine.fork_join_cycles


def _parallel(store: Store) -> tuple[float, float]:
    """Iterations of the parallel loops, and how often they are entered."""
    places = [n for n, loop in enumerate(store.loops) if loop.kind is ForKind.PARALLEL]
    if not places:
        return 1.0, 0.0
    return math.prod(store.extents[n] for n in places), math.prod(store.extents[: places[0]])


def _instructions(store: Store, machine: Machine) -> float:
    """Cycles of the instructions, were all data at hand."""
    extents, lanes = store.extents, machine.vector_bytes / store.tensors[0].item_bytes
    vectors = [n for n, loop in enumerate(store.loops) if loop.kind is ForKind.VECTORIZED and extents[n] > 1]
    vector = vectors[-1] if vectors else None
    width = extents[vector] if vector is not None else 1.0
    registers = math.ceil(width / lanes) if vector is not None else 1
    groups = math.prod(extents) / width
    serial = next((n for n in reversed(range(len(extents))) if n != vector and extents[n] > 1), None)
    each = 0.0
    for tensor in store.tensors:
        cost = _access(tensor, vector, width, lanes, registers) / machine.loads_per_cycle
        # what stays the same in the innermost serial loop is loaded before it
        each += cost / extents[serial] if serial is not None and not tensor.moves[serial] else cost
    each = max(each, registers / machine.fma_per_cycle) + _LOOP_CYCLES
    # a sum into one place: each addition waits for the one before it
    waits = serial is not None and store.tensors[0].is_read and not store.tensors[0].moves[serial]
    return groups * max(each, machine.fma_latency if waits else 0.0)


def _access(tensor: Touched, vector: int | None, width: float, lanes: float, registers: int) -> float:
    """Loads that it takes to get the elements of one vector."""
    if vector is None or not tensor.moves[vector]:
        return 1.0
    return float(registers) if tensor.stride[vector] == 1 else GATHER_CYCLES * min(width, lanes) * registers


def _lines(tensor: Touched, level: int) -> float:
    per_line = _LINE_BYTES / tensor.item_bytes
    return max(1.0, float(tensor.elements[level]) / min(max(float(tensor.rows[level]), 1.0), per_line))


def _traffic(store: Store, cache: Cache) -> float:
    """Bytes that move into a cache: what the loop around the part that fits touches, as often as that loop is entered."""
    depth = len(store.loops)
    level = next((n for n in range(depth + 1) if _footprint(store.tensors, n) <= cache.size), depth)
    if level == 0 and cache.keeps:
        return 0.0
    above = max(level - 1, 0)
    passes = math.prod(store.extents[:above])
    # a line that is written is fetched first and goes back later
    return sum(_lines(tensor, above) * (2.0 if tensor.is_written else 1.0) for tensor in store.tensors) * passes * _LINE_BYTES


def _footprint(tensors: Sequence[Touched], level: int) -> float:
    return sum(_lines(tensor, level) for tensor in tensors) * _LINE_BYTES
