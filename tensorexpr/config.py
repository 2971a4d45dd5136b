"""The environment variables that the library reads, each at the moment it is needed.

TENSOREXPR_OMP_LIBRARY   path of the OpenMP runtime for parallel loops; "none" runs them serially
TENSOREXPR_CACHE         "0" switches the cache of compiled objects off
TENSOREXPR_CACHE_DIR     folder of compiled objects and records; default: tensorexpr in the user's cache folder
TENSOREXPR_CACHE_SIZE    megabytes that compiled objects may take there; default: 512
OMP_NUM_THREADS          upper limit of the threads of a parallel loop
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from .errors import TensorExprError

# When the library began to load: a source file that was changed later is not the one that runs here.
LOADED_AT = time.time()

_CACHE_MEGABYTES = 512


def omp_library() -> str | None:
    """The OpenMP runtime that the user chose: a path, "none", or None for the default search."""
    return os.environ.get("TENSOREXPR_OMP_LIBRARY") or None


def cache_enabled() -> bool:
    """Whether compiled objects are kept on disk and looked up there."""
    return os.environ.get("TENSOREXPR_CACHE") != "0"


def cache_bytes() -> int:
    """How many bytes compiled objects may take on disk.

    Raises:
        TensorExprError: if TENSOREXPR_CACHE_SIZE is no number of megabytes.
    """
    given = os.environ.get("TENSOREXPR_CACHE_SIZE") or str(_CACHE_MEGABYTES)
    if not given.isascii() or not given.isdigit():
        raise TensorExprError(f"TENSOREXPR_CACHE_SIZE={given}: expected a number of megabytes; TENSOREXPR_CACHE=0 switches the cache off")
    return int(given) << 20


def cache_path() -> Path:
    """The cache folder that the user chose, or tensorexpr in the user's cache folder; neither made nor checked.

    Raises:
        RuntimeError: if the user has no home folder.
    """
    chosen = os.environ.get("TENSOREXPR_CACHE_DIR")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tensorexpr"


def cache_dir() -> Path:
    """The cache folder, made if missing, readable by its owner only.

    Raises:
        TensorExprError: if the folder belongs to somebody else or others may write to it: what is cached is run.
    """
    folder = cache_path()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
        raise TensorExprError(
            f"cache folder {folder} is not yours alone (owner {status.st_uid}, mode {status.st_mode & 0o777:o}): "
            "give it to your user with mode 700, or set TENSOREXPR_CACHE_DIR"
        )
    return folder
