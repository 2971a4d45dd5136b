"""The cores of a machine, which several worker processes of a user share: many compile at a time, or one measures."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


class Cores:
    """A lock that the system gives back when its holder ends, however that is.

    Args:
        folder: where its two files are; the system's for temporary ones.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or Path(tempfile.gettempdir())

    @contextlib.contextmanager
    def to_compile(self) -> Iterator[None]:
        """Hold the cores together with others that compile."""
        # through the gate: else a machine that always compiles would never measure
        with self._held("gate", fcntl.LOCK_EX):
            held = self._held("cores", fcntl.LOCK_SH)
            held.__enter__()
        try:
            yield
        finally:
            held.__exit__(None, None, None)

    @contextlib.contextmanager
    def to_measure(self) -> Iterator[None]:
        """Hold the cores alone."""
        with self._held("gate", fcntl.LOCK_EX), self._held("cores", fcntl.LOCK_EX):
            yield

    @contextlib.contextmanager
    def _held(self, name: str, how: int) -> Iterator[None]:
        path = self._folder / f"tensorexpr-{name}-{os.getuid()}.lock"
        # opened anew each time: threads that shared a descriptor would share its lock
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, how)
            yield
        finally:
            os.close(descriptor)
