"""The folder that the processes of one Measurer share: entered by the user only, and removed even if its owner was killed.

The owner holds a lock in it. Whoever makes a folder later removes those whose lock nobody holds any more.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ...errors import TuningError

_PREFIX = "tensorexpr-measure-"
_LOCK = "lock"
# A folder this young may not be locked yet.
_SETTLED_SECONDS = 60.0


class SharedFolder:
    """A new private folder, until `close`.

    Raises:
        TuningError: if none can be made.
    """

    def __init__(self) -> None:
        try:
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        except OSError as error:
            raise TuningError(
                f"no folder for temporary files can be made in {tempfile.gettempdir()}: {error.strerror or error}; make room there, or "
                "name another place: TMPDIR=/some/folder"
            ) from error
        self._lock: int | None = os.open(self.path / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        with contextlib.suppress(OSError):  # without locks nobody sweeps either
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _sweep(self.path.parent)

    def close(self) -> None:
        """Remove the folder. Safe to call again."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _sweep(parent: Path) -> None:
    """Remove folders of this user whose owners are gone."""
    for folder in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            status = folder.lstat()
            if status.st_uid == os.getuid() and time.time() - status.st_mtime > _SETTLED_SECONDS:
                # the system gave the lock back when its owner ended, however that was
                with _locked(folder / _LOCK):
                    shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock in a file that is there; OSError if somebody else does."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
