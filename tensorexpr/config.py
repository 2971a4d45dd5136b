"""The environment variables that the library reads, each at the moment it is needed.

TENSOREXPR_OMP_LIBRARY   path of the OpenMP runtime for parallel loops; "none" runs them serially
TENSOREXPR_CACHE_DIR     folder of compiled objects and records; default: tensorexpr in the user's cache folder
OMP_NUM_THREADS          upper limit of the threads of a parallel loop
"""

from __future__ import annotations

import os
from pathlib import Path

from .errors import TensorExprError


def omp_library() -> str | None:
    """The OpenMP runtime that the user chose: a path, "none", or None for the default search."""
    return os.environ.get("TENSOREXPR_OMP_LIBRARY") or None


def cache_dir() -> Path:
    """The cache folder, made if missing, readable by its owner only.

    Raises:
        TensorExprError: if the folder belongs to somebody else or others may write to it: what is cached is run.
    """
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tensorexpr"
    folder = Path(os.environ.get("TENSOREXPR_CACHE_DIR") or default)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
        raise TensorExprError(
            f"cache folder {folder} is not yours alone (owner {status.st_uid}, mode {status.st_mode & 0o777:o}): "
            "give it to your user with mode 700, or set TENSOREXPR_CACHE_DIR"
        )
    return folder
