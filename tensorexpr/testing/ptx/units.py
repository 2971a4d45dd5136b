"""What the matrix units of four warps see of a block's shared memory and of its registers, which they reach past the threads.

What threads wrote is theirs to read behind a fence, and what they use is free again behind a wait. Whoever is too early is told by both
accesses and the instruction that is missing between them. Source: PTX ISA, "Async proxy" and "Asynchronous wgmma instructions".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...dataclass import dataclass, field
from .faults import MissingFence, UnfinishedProduct

Array = np.ndarray[Any, np.dtype[Any]]
GROUP = 128
"""The threads of four warps."""


def swizzled(places: Array, row: int) -> Array:
    """Where pieces of 16 bytes lie in shared memory whose rows of 32, 64 or 128 bytes are swizzled; of 0 bytes, where they are."""
    return places ^ (places >> 7 & row // 16 - 1) << 4 if row else places


@dataclass(frozen=True, eq=False)
class Product:
    """One under way: who makes it, in which group of products it is, the rows of its sums, the cells that it reads, and its line."""

    threads: Array
    number: int
    rows: Array
    cells: Array
    line: int


class UnitsView:
    """Shared memory as units see it: cells that threads wrote and nobody has shown, and cells that products under way read."""

    def __init__(self, cells: int, threads: int) -> None:
        self._shown_epoch = np.full(cells, -1, np.int32)  # of the fence of the thread that wrote a cell last
        self._users = np.zeros(cells, np.int16)
        self._user_line = np.zeros(cells, np.int32)
        self._of_engine = np.zeros(cells, np.bool_)  # written past the threads, as units read
        self._fence_epoch = np.full(threads, -1, np.int32)
        self._fences: list[int] = [-1, -1]  # the last two epochs that had one

    def note_write(self, cells: Array, who: Array, where: object, at_cell: int) -> None:
        """Threads write cells of `at_cell` bytes.

        Raises:
            UnfinishedProduct: if a product under way reads one.
        """
        used = self._users[cells] > 0
        if used.any():
            lane = int(np.nonzero(used)[0][0])
            raise UnfinishedProduct(
                f"{where}: thread {who[lane]} writes byte {cells[lane] * at_cell} of shared memory, which the product at line "
                f"{self._user_line[cells[lane]]} still reads; wait for its group (T.ptx_wgmma_wait_group), then put a barrier"
            )
        self._shown_epoch[cells] = -1
        self._of_engine[cells] = False

    def note_engine(self, cells: Array) -> None:
        """What was copied in bulk needs no fence."""
        self._of_engine[cells] = True

    def fence(self, threads: Array, writer: Array, epoch: int) -> None:
        """Threads show units what they have written."""
        self._shown_epoch[np.isin(writer, threads) & (self._shown_epoch < 0)] = epoch
        self._fence_epoch[threads] = epoch
        if self._fences[-1] != epoch:
            self._fences = [self._fences[-1], epoch]

    def unseen(self, cells: Array, threads: Array, written: Array, epoch: int) -> Array:
        """Which cells, written in some epochs, no fence has shown to the units that work for some threads.

        A fence counts that stands behind the write and in front of the product, of the writer with a barrier behind it, of the threads of
        the product with a barrier before it, or of any other thread between two barriers.
        """
        shown = self._shown_epoch[cells]
        by_writer = (shown >= 0) & (shown < epoch)
        between = self._fences[-1] if self._fences[-1] < epoch else self._fences[0]
        return np.asarray(~(self._of_engine[cells] | by_writer | (self._fence_epoch[threads].min() > written) | (between > written)))

    def begin(self, product: Product) -> None:
        """A product reads its cells until it has been waited for."""
        self._users[product.cells] += 1
        self._user_line[product.cells] = product.line

    def end(self, product: Product) -> None:
        """A product has been waited for."""
        self._users[product.cells] -= 1


@dataclass
class Sums:
    """The registers that units add to, in rows by `row_of`: when each thread accessed and fenced them, and which products are under way."""

    threads: int
    row_of: dict[str, int]
    under_way: list[Product] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.commits = np.zeros(self.threads, np.int64)
        shape = len(self.row_of), self.threads
        self._accessed, self._lines = np.zeros(shape, np.int64), np.zeros(shape, np.int32)
        self._adding = np.zeros(shape, np.int32)  # the line of the product under way
        self._fenced = np.full(self.threads, -1, np.int64)
        self._clock = 0

    def fence(self, threads: Array) -> None:
        """What threads did to their registers comes before products from here on."""
        self._clock += 1
        self._fenced[threads] = self._clock

    def access(self, rows: Array, threads: Array, where: object, line: int) -> None:
        """Threads read or write registers.

        Raises:
            UnfinishedProduct: if units still add to one.
        """
        at = rows[:, None], threads[None, :]
        adding = self._adding[at]
        if adding.any():
            row, lane = (int(one[0]) for one in np.nonzero(adding))
            raise UnfinishedProduct(
                f"{where}: thread {threads[lane]} accesses {self._name(rows[row])}, which the product at line {adding[row, lane]} still "
                "adds to; put T.ptx_wgmma_commit_group() behind the product, and T.ptx_wgmma_wait_group(0) in front of this"
            )
        self._clock += 1
        self._accessed[at], self._lines[at] = self._clock, line

    def begin(self, product: Product, where: object) -> None:
        """Four warps begin a product.

        Raises:
            MissingFence: if their registers were accessed behind the last fence.
        """
        at = product.rows[:, None], product.threads[None, :]
        early = (self._accessed[at] > self._fenced[product.threads]) & (self._adding[at] == 0)
        if early.any():
            row, lane = (int(one[0]) for one in np.nonzero(early))
            name, line = self._name(product.rows[row]), self._lines[at][row, lane]
            done = f"has accessed {name} at line {line} with no wgmma.fence between" if line else f"adds to {name} without any wgmma.fence"
            raise MissingFence(
                f"{where}: thread {product.threads[lane]} {done}; put T.ptx_wgmma_fence() in front of the first of the products"
            )
        self._adding[at] = product.line
        self.under_way.append(product)

    def done(self, threads: Array, pending: int) -> list[Product]:
        """The products of threads that are there when all but the last `pending` groups of products have been waited for."""
        found = [one for one in self.under_way if one.threads[0] in threads and one.number < self.commits[one.threads[0]] - pending]
        self.under_way = [one for one in self.under_way if not any(one is other for other in found)]
        for one in found:
            self._adding[one.rows[:, None], one.threads[None, :]] = 0
        for one in self.under_way if found else ():  # later ones may add to the same registers
            self._adding[one.rows[:, None], one.threads[None, :]] = one.line
        return found

    def _name(self, row: Any) -> str:
        names = list(self.row_of)
        return names[int(row)]
