"""The memory that an interpreted function sees, and the watch for races between iterations of parallel loops."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from ...errors import TensorExprError

Lanes = Any
"""A NumPy array with one value for each lane of a vector."""


class InterpreterError(TensorExprError):
    """A program did what compiled code must never do: a wild or uninitialised access, a race, a division by zero."""


class IterationLimitError(InterpreterError):
    """A program takes more iterations than its caller has time for; nothing is known about its result."""


class Storage:
    """A flat array of scalars behind one pointer, with a record of what has been written.

    `extents` and `mins` say how elements are named in messages and, for a realized box, how they are addressed.
    Storage of a caller's array counts as written. `depth` is the number of parallel loops around its allocation: they
    each have their own, so only loops further inside can race on it. `scope` says whose memory it is on a device.
    """

    __slots__ = ("array", "depth", "extents", "mins", "name", "origin", "read", "scope", "strides", "write", "written", "written_lanes")

    def __init__(self, array: Lanes, name: str, extents: tuple[int, ...], mins: tuple[int, ...] = (), fresh: bool = True) -> None:
        self.array = array
        self.name = name
        self.extents = extents
        self.mins = mins or (0,) * len(extents)
        self.strides = compact_strides(extents)
        self.origin = 0
        self.depth = 0
        self.scope = "global"
        # `item` gives Python's integers, which don't overflow before `wrapped` sees the value.
        self.read = array.__getitem__ if array.dtype.kind not in "iub" else array.item
        self.write = array.__setitem__ if array.flags.writeable else self._refuse
        self.written = bytearray(len(array)) if fresh else None
        # Two views of one record: single bytes are faster in a bytearray, lanes need an array.
        self.written_lanes = np.frombuffer(self.written, np.bool_) if self.written is not None else None

    def _refuse(self, at: Any, value: Any) -> NoReturn:
        raise InterpreterError(f"{self.name} is written, but its array is read-only")

    def element(self, at: int) -> str:
        """How a message names the scalar at offset `at`."""
        if len(self.extents) < 2 or at >= int(np.prod(self.extents)):
            return f"{self.name}[{at + (self.mins[0] if self.mins else 0)}]"
        place = np.unravel_index(at, self.extents)
        return f"{self.name}[{', '.join(str(int(p) + low) for p, low in zip(place, self.mins, strict=True))}]"

    def holds(self, at: int, value: Any) -> bool:
        """Whether the scalar at an offset was written, and with this value."""
        return (self.written is None or bool(self.written[at])) and bool(self.array[at] == value)

    def fail_unwritten(self, at: int) -> NoReturn:
        """Report a read of an element that nobody wrote."""
        raise InterpreterError(f"{self.element(at)} is read, but nothing was written there")


def compact_strides(extents: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a compact array, last index fastest."""
    strides = [1]
    for extent in reversed(extents[1:]):
        strides.append(strides[-1] * extent)
    return tuple(reversed(strides)) if extents else ()


class RaceWatch:
    """What the iterations of one run of a parallel loop have touched."""

    __slots__ = ("current", "loop", "readers", "writers")

    def __init__(self, loop: str) -> None:
        self.loop = loop
        self.current = 0
        self.readers: dict[tuple[int, int], int] = {}
        self.writers: dict[tuple[int, int], int] = {}

    def note_read(self, storage: Storage, at: int, where: Any = None) -> None:
        """The current iteration reads an element, in the access `where`."""
        # Ids are safe as keys: a loop watches storage from outside of it, which outlives the watch.
        key = (id(storage), at)
        writer = self.writers.get(key)
        if writer is not None and writer != self.current:
            self._fail(storage, at, writer, "writes", "reads")
        self.readers.setdefault(key, self.current)  # the first is enough: it ran before all that may write later

    def note_write(self, storage: Storage, at: int, where: Any = None, same: bool = False) -> None:
        """The current iteration writes an element, in the access `where`; `same`: what it holds already."""
        key = (id(storage), at)
        writer = self.writers.setdefault(key, self.current)
        if writer != self.current:
            self._fail(storage, at, writer, "writes", "writes")
        reader = self.readers.get(key, self.current)
        if reader != self.current:
            self._fail(storage, at, reader, "reads", "writes")

    def _fail(self, storage: Storage, at: int, other: int, did: str, does: str) -> NoReturn:
        raise InterpreterError(
            f"race in parallel loop {self.loop}: iteration {other} {did} {storage.element(at)} and iteration {self.current} {does} it"
        )


class GridWatch(RaceWatch):
    """The watch over threads of a grid that run one after the other, as long as no barriers say when they meet.

    What only a block, a warp or a thread sees is no concern of others, wherever it was allocated.
    """

    __slots__ = ()

    def note_read(self, storage: Storage, at: int, where: Any = None) -> None:
        """The current thread reads an element."""
        if storage.scope == "global":
            super().note_read(storage, at, where)

    def note_write(self, storage: Storage, at: int, where: Any = None, same: bool = False) -> None:
        """The current thread writes an element."""
        if storage.scope == "global":
            super().note_write(storage, at, where, same)
