"""wgmma: products of operands in shared memory by four warps together, whose sums arrive when their group has been waited for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from . import warps
from .access import Step, names_of
from .compute import operand
from .faults import DivergentBarrier
from .parser import Instruction, Kernel

if TYPE_CHECKING:
    from .machine import Block

Array = np.ndarray[Any, np.dtype[Any]]


def made(kernel: Kernel, one: Instruction) -> Step | None:
    """wgmma: four warps multiply operands in shared memory; the sums are there when their group has been waited for."""
    if one.words[1] == "wait_group":

        def wait(block: Block, lanes: Array | None) -> None:
            threads = block.threads if lanes is None else lanes
            for name, (values, pending) in block.sums.items():
                done = threads[pending[threads]]
                block.write(name, done, values[done])
                pending[done] = False

        return wait
    if one.words[1] != "mma_async":
        return lambda block, lanes: None  # fences, and what ends a group
    names, (a_kind, b_kind) = names_of(one.operands[0]), one.words[-2:]
    width = int(re.findall(r"n(\d+)k16", one.text)[0])
    left, right = (operand(kernel, text, "b64") for text in one.operands[1:3])
    turned = [text.strip() == "1" for text in one.operands[-2:]]

    def run(block: Block, lanes: Array | None) -> None:
        threads = block.threads if lanes is None else lanes
        sums = [_pending(block, name) for name in names]
        for first in range(0, len(threads), 128):
            group = threads[first : first + 128]
            a = _operand_rows(block, left(block, lanes)[first : first + 128], 64, turned[0], group, one.line)
            b = _operand_rows(block, right(block, lanes)[first : first + 128], width, turned[1], group, one.line)
            product = warps.typed(a, a_kind) @ warps.typed(b, b_kind).T
            row, column = warps.group_places(len(names))
            for register, (values, _) in enumerate(sums):
                values.view(np.float32)[group] += product[row[register], column[register]].astype(np.float32)
        for name, (_, pending) in zip(names, sums, strict=True):
            pending[threads] = True
            block.write(name, threads, np.full(len(threads), 0xFFFFFFFF, np.uint32))  # nothing to read before it is waited for

    return run


def _pending(block: Block, name: str) -> tuple[Array, Array]:
    """What a register of sums will hold when the units are done with it, and for which threads they aren't."""
    values, pending = block.sums.setdefault(name, (np.zeros(block.size, np.uint32), np.zeros(block.size, np.bool_)))
    values[~pending] = np.ascontiguousarray(block.read(name, None)).view(np.uint32)[~pending]
    return values, pending


def _operand_rows(block: Block, descriptors: Array, rows: int, turned: bool, group: Array, line: int) -> Array:
    """An operand of wgmma as (rows, 16) halves: its descriptor says where pieces of 8 rows by 16 bytes are."""
    where = block.where()
    if len(np.unique(descriptors)) > 1:
        raise DivergentBarrier(f"{where}: the threads of four warps have different descriptors; they tell one operand together")
    word = int(descriptors[0])
    begin, first, second = ((word >> shift & 0x3FFF) << 4 for shift in (0, 16, 32))
    eight, two, within = np.arange(rows // 8), np.arange(2), np.arange(8)
    # Of a turned operand each piece has 8 products of 8 rows: the second distance is that of rows, the first that of products.
    at = begin + eight[:, None, None] * second + two[None, :, None] * first + within * 16
    places = at.ravel().astype(np.int64)
    who = group[np.arange(len(places)) % len(group)]
    block.shared.note_read(places, 16, where, who, line)
    pieces = np.stack(block.shared.read(places, 2, 8), axis=-1).reshape(rows // 8, 2, 8, 8)
    if turned:  # [rows / 8][2][product][row]
        return np.asarray(pieces.transpose(0, 3, 1, 2).reshape(rows, 16))
    return np.asarray(pieces.transpose(0, 2, 1, 3).reshape(rows, 16))


MAKERS = {"wgmma": made}
