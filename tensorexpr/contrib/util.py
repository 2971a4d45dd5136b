"""`contrib.utils`, as programs of early releases spell it."""

from .utils import FileLock, TempDirectory, filelock, is_source_path, tempdir, which

__all__ = ["FileLock", "TempDirectory", "filelock", "is_source_path", "tempdir", "which"]
