"""Temporary folders that go away by themselves, and locks between processes."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import ClassVar

from ..errors import TensorExprError

_SOURCE_SUFFIXES = (".c", ".cc", ".cpp", ".cu", ".cl", ".h", ".hpp", ".ll", ".s", ".S")


class DirectoryCreatedPastAtExit(TensorExprError):
    """A temporary folder was asked for while the interpreter ends, when nobody would remove it."""


class TempDirectory:
    """A folder that is removed with this object, at the end of a `with`, or when the process ends.

    Args:
        custom_path: make this folder instead of one with a name of its own.
        keep_for_debug: leave it where it is; by default what `set_keep_for_debug` says.

    Raises:
        DirectoryCreatedPastAtExit: while the interpreter ends.
    """

    TEMPDIRS: ClassVar[set[str]] = set()
    """The folders that are to be removed when the process ends, if not before."""
    _keep = False
    _ended = False

    def __init__(self, custom_path: str | os.PathLike[str] | None = None, keep_for_debug: bool | None = None) -> None:
        self.temp_dir: str | None = None
        if TempDirectory._ended:
            raise DirectoryCreatedPastAtExit("the interpreter ends; a folder made now would stay for ever")
        self._keep_this = TempDirectory._keep if keep_for_debug is None else keep_for_debug
        if custom_path is None:
            self.temp_dir = tempfile.mkdtemp(prefix="tensorexpr-")
        else:
            os.makedirs(custom_path)
            self.temp_dir = os.fspath(custom_path)
        self._removal = weakref.finalize(self, _remove, self.temp_dir)
        # not only with the object: at the end of the process some objects are never collected
        self._removal.atexit = not self._keep_this
        if self._keep_this:
            self._removal.detach()
        else:
            TempDirectory.TEMPDIRS.add(self.temp_dir)

    @classmethod
    def remove_tempdirs(cls) -> None:
        """Remove every folder that is to be removed when the process ends, now."""
        for folder in list(cls.TEMPDIRS):
            _remove(folder)

    @classmethod
    @contextmanager
    def set_keep_for_debug(cls, set_to: bool = True) -> Iterator[None]:
        """Within this context folders stay where they are."""
        before, cls._keep = cls._keep, set_to
        try:
            yield
        finally:
            cls._keep = before

    def remove(self) -> None:
        """Remove the folder and what is in it, now."""
        if self.temp_dir is not None:
            folder, self.temp_dir = self.temp_dir, None
            _remove(folder)
            self._removal.detach()

    @property
    def path(self) -> str:
        """The folder.

        Raises:
            TensorExprError: if it was removed.
        """
        if self.temp_dir is None:
            raise TensorExprError("this temporary folder was removed")
        return self.temp_dir

    def relpath(self, name: str) -> str:
        """The path of a file in the folder."""
        return os.path.join(self.path, name)

    def __truediv__(self, name: str) -> Path:
        """The path of a file in the folder, as `folder / "x.so"`."""
        return Path(self.path) / name

    def listdir(self) -> list[str]:
        """The names in the folder."""
        return os.listdir(self.path)

    def __enter__(self) -> TempDirectory:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if not self._keep_this:
            self.remove()


def _remove(folder: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    TempDirectory.TEMPDIRS.discard(folder)


@atexit.register
def _end() -> None:
    TempDirectory._ended = True


def tempdir(custom_path: str | os.PathLike[str] | None = None, keep_for_debug: bool | None = None) -> TempDirectory:
    """A temporary folder; see `TempDirectory`."""
    return TempDirectory(custom_path, keep_for_debug)


class FileLock:
    """A lock on a file that one process holds at a time; a context manager, or `release` it.

    Args:
        path: the file, which is made if it isn't there.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.lock_file = open(path, "w")  # noqa: SIM115  (it is held open until it is released)
        # such a lock belongs to the process: its own threads don't wait for each other here
        fcntl.lockf(self.lock_file, fcntl.LOCK_EX)

    def release(self) -> None:
        """Let others have it."""
        if not self.lock_file.closed:
            fcntl.lockf(self.lock_file, fcntl.LOCK_UN)
            self.lock_file.close()

    def __enter__(self) -> FileLock:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.release()


def filelock(path: str | os.PathLike[str]) -> FileLock:
    """A lock on a file; waits until nobody holds it."""
    return FileLock(path)


def is_source_path(path: str) -> bool:
    """Whether a text is the path of a source file, rather than source."""
    return "\n" not in path and path.endswith(_SOURCE_SUFFIXES) and os.path.exists(path)


def which(exec_name: str) -> str | None:
    """The path of a program, or None."""
    return shutil.which(exec_name)
