"""The watch for races between the threads of a block, from one barrier to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .storage import InterpreterError, RaceWatch, Storage


class ThreadWatch(RaceWatch):
    """What the threads have touched since the last barrier, and where in the program.

    Threads may write the same value to one element, as they do when they compute together what all of them need. An element
    that a thread reads before anybody wrote it is a race if another thread writes it before the next barrier.
    """

    __slots__ = ("_early", "_name", "_read", "_written")

    def __init__(self, name: Callable[[int], str]) -> None:
        super().__init__("")
        self._name = name
        self._written: dict[tuple[int, int], dict[int, Any]] = {}
        self._read: dict[tuple[int, int], dict[int, Any]] = {}
        self._early: dict[tuple[int, int], tuple[Storage, int]] = {}

    def barrier(self) -> None:
        """All threads have come; what they did is done.

        Raises:
            InterpreterError: if a thread has read what nobody wrote.
        """
        for storage, at in self._early.values():
            storage.fail_unwritten(at)
        self._written.clear()
        self._read.clear()

    def note_unwritten(self, storage: Storage, at: int) -> None:
        """The current thread reads an element that is not written yet."""
        self._early[id(storage), at] = (storage, at)

    def note_read(self, storage: Storage, at: int, where: Any = None) -> None:
        """The current thread reads an element."""
        key = (id(storage), at)
        writers = self._written.get(key)
        if writers is not None and self.current not in writers:
            other, there = next(iter(writers.items()))
            self._race(storage, at, (other, "writes", there), ("reads", where))
        self._read.setdefault(key, {}).setdefault(self.current, where)

    def note_write(self, storage: Storage, at: int, where: Any = None, same: bool = False) -> None:
        """The current thread writes an element; `same`: what it holds already."""
        key = (id(storage), at)
        writers = self._written.setdefault(key, {})
        shared = same and bool(writers)
        for touched, did in ((writers, "writes"), (self._read.get(key, {}), "reads")):
            other = next((thread for thread in touched if thread != self.current), None)
            if other is not None and not shared:
                self._race(storage, at, (other, did, touched[other]), ("writes", where))
        writers.setdefault(self.current, where)

    def _race(self, storage: Storage, at: int, first: tuple[int, str, Any], second: tuple[str, Any]) -> None:
        other, did, there = first
        does, here = second
        raise InterpreterError(
            f"race on {storage.element(at)} between two barriers: thread {self._name(other)} {did} it{_place(there)}, thread "
            f"{self._name(self.current)} {does} it{_place(here)}; a tvm_storage_sync between the two would order them"
        )


def _place(where: Any) -> str:
    # The text of a store begins with what it mentions.
    return "" if where is None else f" in `{str(where).splitlines()[-1].strip()}`"
