"""Races between the blocks of a launch, which nothing puts in order but atomic operations: who wrote and who read each cell of the arrays.

A block that does an atomic operation on global memory sees what others did before theirs, as those that count who is done. Whoever stores
what is there already disturbs nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dataclass import dataclass, field
from . import alu
from .faults import DataRace
from .parser import Kernel

Array = np.ndarray[Any, np.dtype[Any]]
_NOBODY = -1
_ELSEWHERE = frozenset({"shared", "local", "param", "const"})


@dataclass
class _Touched:
    """The cells of an array: the last block that wrote and read each, at which line, and the last reader that was another block."""

    writer: Array
    write_line: Array
    reader: Array
    read_line: Array
    earlier: Array


class OutOfStep(Exception):
    """Blocks that are run side by side don't meet their barriers together, or get in each other's way: each has to run by itself."""


def cell_of(kernel: Kernel) -> int:
    """Bytes of the narrowest access to memory that may be global."""
    named = (one for one in kernel.instructions if one.words[0] in ("ld", "st", "atom", "red"))
    sizes: list[int] = [alu.SIZE[one.words[-1]] for one in named if not _ELSEWHERE & {word.split("::")[0] for word in one.words}]
    return min([4, *sizes])


@dataclass
class BetweenBlocks:
    """The watch of a launch; `sizes` are the bytes of its arrays."""

    cell: int
    sizes: Sequence[int]
    grid: tuple[int, int, int]
    block: int = 0
    _touched: dict[int, _Touched] = field(default_factory=dict)
    _released: set[int] = field(default_factory=set)  # blocks that have done an atomic operation
    _seen: Array | None = None  # of each block, whether what it did is before what this one does

    def begin(self, block: int) -> None:
        """From here on a block runs, alone or as the first of those that run side by side."""
        self.block, self._seen = block, None

    def synchronise(self) -> None:
        """The block does an atomic operation."""
        self._released.add(self.block)
        self._seen = np.zeros(int(np.prod(self.grid)), np.bool_)
        self._seen[list(self._released)] = True

    def note(
        self, number: int, places: Array, size: int, line: int, where: object, threads: Array, blocks: Array, changed: Array | None = None
    ) -> None:
        """Threads of blocks access `size` bytes from each place of an array on; for writes, which of these accesses change what is there.

        Raises:
            DataRace: if another block accesses it, too, and one of them writes.
            OutOfStep: if that is in the same instruction.
        """
        found = self._touched.get(number)
        if found is None:
            count = -(-self.sizes[number] // self.cell)
            parts = [np.full(count, _NOBODY, np.int32) for _ in range(5)]
            found = self._touched[number] = _Touched(*parts)
        step = max(1, size // self.cell)
        cells = places // self.cell
        if step > 1:
            cells, blocks = (cells[:, None] + np.arange(step)).ravel(), np.repeat(blocks, step)
        cells = np.minimum(cells, len(found.writer) - 1)
        writers, does = found.writer[cells], "reads"
        racing = self._others(writers, blocks)
        others, lines, did = writers, found.write_line, "wrote"
        if changed is not None:
            does = "writes"
            stored = np.repeat(changed, step) if step > 1 else changed
            racing = racing & stored
            if not racing.any():
                readers = found.reader[cells]
                others = np.where(readers == blocks, found.earlier[cells], readers)
                racing, lines, did = self._others(others, blocks) & stored, found.read_line, "read"
        if racing.any():
            at = int(np.nonzero(racing)[0][0])
            self._race(where, does, did, number, int(cells[at]), int(others[at]), int(lines[cells[at]]), int(threads[at // step]))
        if changed is not None:
            found.writer[cells], found.write_line[cells] = blocks, line
            if (found.writer[cells] != blocks).any():
                raise OutOfStep
        else:
            readers = found.reader[cells]
            changing = readers != blocks
            if changing.any():
                found.earlier[cells[changing]] = readers[changing]
            found.reader[cells], found.read_line[cells] = blocks, line
            beside = found.reader[cells] != blocks  # read by several in this instruction
            if beside.any():
                found.earlier[cells[beside]] = blocks[beside]

    def _others(self, those: Array, own: Array) -> Array:
        """Which of those are other blocks than one's own, and not known to be done."""
        found = (those != own) & (those != _NOBODY)
        if self._seen is not None and found.any():
            found &= ~self._seen[those]
        return np.asarray(found)

    def _race(self, where: object, does: str, did: str, number: int, cell: int, other: int, line: int, thread: int) -> None:
        x, y, _ = self.grid
        index = other % x, other // x % y, other // (x * y)
        raise DataRace(
            f"{where}: thread {thread} {does} byte {cell * self.cell} of array {number}, which block {index} {did} at line {line}; blocks "
            "don't wait for each other: give each its own elements, or compute what one needs of another in a kernel before"
        )
