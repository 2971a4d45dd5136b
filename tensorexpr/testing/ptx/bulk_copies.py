"""cp.async.bulk: the copy engine brings runs of bytes, or boxes of tensors, into shared memory and tells an mbarrier how many bytes came.

A copy lands as late as it can: when somebody waits for its barrier and nothing else can go on. Boxes of tensors are described by maps
(`runtime.tensor_maps`), here in a form of the emulator's own. Source: PTX ISA, "Tensor copy" and "Swizzling modes".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ...runtime.tensor_maps import TensorMap
from .access import Step, address_of
from .compute import operand
from .faults import MisalignedAccess
from .memory import SECTOR
from .parser import Instruction, Kernel
from .units import swizzled

if TYPE_CHECKING:
    from .machine import Block

Array = np.ndarray[Any, np.dtype[Any]]
_PIECE, _TENSOR_ALIGNMENT = 16, 128
_BOX = re.compile(r"\[\s*([^,\]]+?)\s*,\s*\{([^}]*)\}\s*\]")


def bulk(kernel: Kernel, one: Instruction) -> Step | None:
    """The step of a copy from global into shared memory; None for other directions."""
    if "complete_tx::bytes" not in one.text or not one.words[3 if one.words[3] != "tensor" else 5].startswith("shared::"):
        return None
    return _boxes(kernel, one) if "tensor" in one.words else _runs(kernel, one)


def _runs(kernel: Kernel, one: Instruction) -> Step:
    into, source, barrier = (address_of(kernel, one.operands[number]) for number in (0, 1, 3))
    count = operand(kernel, one.operands[2], "u32")

    def run(block: Block, lanes: Array | None) -> None:
        threads = block.threads if lanes is None else lanes
        sizes = count(block, lanes).astype(np.int64)
        addresses, places = source(block, lanes), barrier(block, lanes).astype(np.int64)
        for thread, offset, address, size, place in zip(
            threads, into(block, lanes).astype(np.int64), addresses, sizes, places, strict=True
        ):
            _check_multiples(block, int(thread), _PIECE, destination=int(offset), source=int(address), size=int(size))
            data = block.memory.run_of_bytes(int(address), int(size), block.where(), int(thread), one.line)
            pieces = int(offset) + np.arange(int(size) // _PIECE) * _PIECE
            _begin(block, int(thread), pieces, data.reshape(-1, _PIECE), int(place), one.line)

    return run


def _boxes(kernel: Kernel, one: Instruction) -> Step | None:
    found = _BOX.match(one.operands[1])
    if found is None:
        return None
    into, barrier = (address_of(kernel, one.operands[number]) for number in (0, 2))
    source = address_of(kernel, f"[{found[1]}]")
    coordinates = [operand(kernel, text.strip(), "s32") for text in found[2].split(",")]

    def run(block: Block, lanes: Array | None) -> None:
        threads = block.threads if lanes is None else lanes
        starts = np.stack([get(block, lanes).view(np.int32) for get in coordinates], axis=-1)
        offsets, places = into(block, lanes).astype(np.int64), barrier(block, lanes).astype(np.int64)
        for thread, offset, start, address, place in zip(threads, offsets, starts, source(block, lanes), places, strict=True):
            one_map = TensorMap.unpacked(block.parameter_bytes(int(address)))
            if len(start) != len(one_map.shape):
                raise MisalignedAccess(f"{block.where()}: a tensor map of {len(one_map.shape)} dimensions, and {len(start)} coordinates")
            _check_multiples(block, int(thread), max(_TENSOR_ALIGNMENT, 8 * one_map.swizzle), destination=int(offset))
            data = _box(block, int(thread), one_map, start[::-1], one.line)
            pieces = int(offset) + np.arange(data.size // _PIECE) * _PIECE
            rows = data.reshape(-1, _PIECE)
            _begin(block, int(thread), swizzled(pieces, one_map.swizzle), rows, int(place), one.line)

    return run


def _box(block: Block, thread: int, one: TensorMap, start: Array, line: int) -> Array:
    """The bytes of a box, zeros outside of the tensor; the last dimension is the one along memory."""
    places, inside = np.zeros((), np.int64), np.ones((), np.bool_)
    for begin, extent, side, stride in zip(start.tolist(), one.shape, one.box, one.byte_strides, strict=True):
        at = begin + np.arange(side)
        places = places[..., None] + at * stride
        inside = inside[..., None] & (at >= 0) & (at < extent)
    result = np.zeros((places.size, one.itemsize), np.uint8)
    chosen = inside.ravel()
    if chosen.any():
        wanted = places.ravel()[chosen]
        whole = block.memory.run_of_bytes(one.address, one.size_in_bytes, block.where(), thread)
        block.memory.note_reads(one.address + wanted, one.itemsize, line, block.where(), thread)
        result[chosen] = whole[wanted[:, None] + np.arange(one.itemsize)]
        block.counters.global_transactions += len(np.unique((one.address + wanted) // SECTOR))
    return result.reshape(-1)


def _begin(block: Block, thread: int, offsets: Array, rows: Array, place: int, line: int) -> None:
    where = block.where()
    who = np.full(len(offsets), thread, np.int32)
    block.counters.global_requests += 1
    block.shared.begin_copy(offsets, _PIECE, where, who, line)
    engine = block.barriers.at(place).engine
    block.barriers.begin(place, rows.size, lambda: block.shared.land(offsets, rows, where, who, line, engine))


def _check_multiples(block: Block, thread: int, multiple: int, **values: int) -> None:
    for name, value in values.items():
        if value % multiple:
            raise MisalignedAccess(
                f"{block.where()}: thread {thread} copies in bulk, with {name} {value}, which is no multiple of {multiple}"
            )
