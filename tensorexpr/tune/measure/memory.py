"""Arrays for code that may be wrong: their ends touch pages that can't be accessed, and inputs can't be written at all.

A candidate that leaves its arrays dies at once, instead of spoiling the data that the next candidates are judged by.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...errors import TuningError

ALIGNMENT = 64
# Where NumPy puts large arrays: 16 bytes behind a page, so that vectors of 64 bytes cross cache lines. Candidates are chosen
# for the arrays that users have.
OFFSET = 16
# The winner of a search is chosen on arrays of both kinds: those, and ones that begin a cache line, as allocators of frameworks make them.
OFFSETS = (OFFSET, 0)
# NumPy asks for huge pages from here on; a kernel should meet the same memory when it is measured as when it is used.
_HUGE_PAGE_BYTES = 4 << 20
_PROT_NONE, _PROT_READ = 0, 1
_CANARY = 0xA5
Array = np.ndarray[Any, np.dtype[Any]]


class GuardedArray:
    """An array between two inaccessible pages. `array` ends where the second one begins, but for bytes of alignment.

    It begins `offset` bytes into a cache line.
    """

    def __init__(self, shape: Sequence[int], dtype: np.dtype[Any], offset: int = OFFSET) -> None:
        count = int(np.prod(shape, dtype=np.int64))
        size = count * dtype.itemsize
        page = mmap.PAGESIZE
        self._inner = -(-(size + offset) // page) * page
        self._pages = mmap.mmap(-1, self._inner + 2 * page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if size >= _HUGE_PAGE_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
            self._pages.madvise(mmap.MADV_HUGEPAGE)
        whole = np.frombuffer(self._pages, np.uint8)
        # as far back as the alignment lets it: reading past the end is the usual mistake, and meets the guard page soonest
        start = page + (self._inner - size - offset) // ALIGNMENT * ALIGNMENT + offset
        self._before, self._after = whole[page:start], whole[start + size : page + self._inner]
        self._before[:] = self._after[:] = _CANARY
        self.array: Array = whole[start : start + size].view(dtype).reshape(tuple(shape))
        self._base = whole.ctypes.data
        _protect(self._base, page, _PROT_NONE)
        _protect(self._base + page + self._inner, page, _PROT_NONE)

    @property
    def address(self) -> int:
        """The address of the first element."""
        return self._base + mmap.PAGESIZE + len(self._before)

    def freeze(self) -> None:
        """Make the array read-only for native code too."""
        _protect(self._base + mmap.PAGESIZE, self._inner, _PROT_READ)
        self.array.flags.writeable = False

    @property
    def is_intact(self) -> bool:
        """Whether the few bytes between the array and its guard pages still hold what was put there."""
        return bool((self._before == _CANARY).all() and (self._after == _CANARY).all())

    def poison(self) -> None:
        """Fill the array with values that no right answer holds: NaN, or a bit pattern for integers."""
        kind = self.array.dtype.kind
        if kind == "b":
            self.array.view(np.uint8)[...] = _CANARY
        elif kind in "iu":
            self.array.view(np.uint8).reshape(-1)[:] = _CANARY
        else:
            self.array[...] = np.nan


def frozen_copy(source: Array, offset: int = OFFSET) -> GuardedArray:
    """A read-only guarded copy of an array, which begins so many bytes into a cache line."""
    made = GuardedArray(source.shape, source.dtype, offset)
    made.array[...] = source
    made.freeze()
    return made


def _protect(address: int, size: int, protection: int) -> None:
    if _libc().mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), protection):
        raise TuningError(f"the system refuses to protect {size} bytes of memory: errno {ctypes.get_errno()}")


@lru_cache(maxsize=1)
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
