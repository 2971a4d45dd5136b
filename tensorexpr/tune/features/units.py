"""Features of kernels on matrix units: what `matrix_plan` says of a tiling, in the columns of `device`.

Layouts of such kernels are made of their tiles, so that what is counted comes from the plan and not from loops: instructions of the units,
fetches and copies of a turn, sectors, cycles of shared memory. Chunks lie so that nobody waits for a bank. Nothing was fitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, prod

import numpy as np

from ...spaces.access import element_bytes
from ...spaces.gpu.block import LATENCY, LAUNCH, LOADED_BYTES, WIDEST, Limits
from ...spaces.gpu.matrix_plan import MatrixPlan
from ...spaces.gpu.split_sum import adding_cycles, pipeline_cycles
from .cycles import partly_hidden
from .device import KERNEL_FEATURES, Columns
from .warps import SECTOR, WARP

_THREADS = 256  # of a block that adds parts up
_VECTOR = 4  # results of a thread there


Counts = Mapping[str, float]
"""What is counted of a kernel, by the names of `device`; what is left out is 0."""


def counted(plan: MatrixPlan, limits: Limits, cache: float) -> tuple[Counts, Counts]:
    """The kernel of the products of a plan, and that which adds up parts of its sums; of zeros where there is none.

    Args:
        plan: the tiles.
        limits: of the chip.
        cache: bytes that all multiprocessors share.
    """
    return _multiplying(plan, limits, cache), _adding(plan, limits)


def as_columns(kernels: Sequence[Counts]) -> Columns:
    """The same kernel of several programs as arrays."""
    return {name: np.array([one.get(name, 0.0) for one in kernels]) for name in KERNEL_FEATURES}


def _multiplying(plan: MatrixPlan, limits: Limits, cache: float) -> dict[str, float]:
    rates, size = limits.rates, plan.unit.bytes
    rows, columns = plan.sides
    turn, turns, resident = plan.turn_cycles(limits), plan.turns, plan.resident(limits)
    stored = rows.tile * columns.tile * element_bytes(plan.unit.out)
    fetched = (rows.tile + columns.tile) * plan.part * turns * size
    busy = max(turn.values())
    alone = pipeline_cycles(busy, turns, plan.copies, plan.blocks, resident, limits)
    per_round = min(plan.blocks, rates.multiprocessors * resident)
    # Blocks that run at once share rows and columns: `beside` rows of blocks, and as many columns as that leaves.
    tall = min(plan.beside, rows.tiles)
    wide = min(columns.tiles, ceil(per_round / tall))
    together = (tall * rows.tile + wide * columns.tile) * plan.part * turns * size
    unique = sum(side.size * plan.sizes[plan.summed] * prod(plan.sizes[axis] for axis in plan.outer) * size for side in plan.sides)
    unique = unique * prod(plan.sizes[axis] for axis in plan.batch) + plan.results * element_bytes(plan.unit.out)
    traffic = max(unique, ceil(plan.blocks / per_round) * together if unique > cache else 0.0)
    memory = traffic / rates.memory_bytes / min(1.0, plan.blocks / rates.multiprocessors)
    arithmetic = turn["arithmetic"] * turns * rates.fma / (plan.warps * WARP)
    shared, loaded = (plan.fetches + plan.asked) * turns, plan.asked * turns + stored / (plan.warps * WARP * 8)
    moved = (fetched + stored) / plan.warps
    return {
        "blocks": plan.blocks, "threads": plan.warps * WARP, "virtual": 1.0, "shared_bytes": plan.shared_bytes, "registers": plan.registers,
        "resident": resident, "warps_resident": resident * plan.warps, "waves": ceil(ceil(plan.blocks / rates.multiprocessors) / resident),
        "arithmetic": arithmetic, "instructions": turn["issued"] * 4 * turns / plan.warps, "shared_requests": shared,
        "global_requests": loaded, "sectors": moved / SECTOR, "coalesced": moved / loaded, "moved_bytes": plan.blocks * (fetched + stored),
        "unique_bytes": unique, "fetches": turns, "intensity": arithmetic * WARP * plan.warps / (fetched + stored),
        "issued_cycles": turn["issued"] * turns, "arithmetic_cycles": turn["arithmetic"] * turns, "shared_cycles": turn["shared"] * turns,
        "loaded_cycles": turn["loaded"] * turns, "waiting_cycles": turns * max(0.0, LATENCY / (plan.copies - 1) - busy) if plan.copies > 1
        else turns * LATENCY, "memory_cycles": memory,
        "cycles": float(partly_hidden([np.array(alone + stored / LOADED_BYTES), np.array(memory)])),
    }  # fmt: skip


def _adding(plan: MatrixPlan, limits: Limits) -> dict[str, float]:
    parts, size = plan.tiling.parts, element_bytes(plan.unit.out)
    if parts == 1:
        return {}
    blocks, bytes_ = ceil(plan.results / (_THREADS * _VECTOR)), _VECTOR * size
    moved, traffic = bytes_ * WARP * (parts + 1), plan.results * size * (parts + 1)
    resident = limits.resident(_THREADS, WIDEST, 0)
    cycles = adding_cycles(parts, plan.results, size, limits) - LAUNCH
    return {
        "blocks": blocks, "threads": _THREADS, "virtual": 1.0, "registers": WIDEST, "resident": resident,
        "warps_resident": resident * _THREADS / WARP, "waves": ceil(blocks / limits.rates.multiprocessors / resident),
        "arithmetic": parts * _VECTOR, "instructions": parts * (_VECTOR + 1), "global_requests": parts + 1, "sectors": moved / SECTOR,
        "coalesced": moved / (parts + 1), "moved_bytes": traffic, "unique_bytes": traffic,
        "intensity": parts / (parts + 1) / size, "cycles": cycles,
    }  # fmt: skip
