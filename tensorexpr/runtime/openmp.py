"""The OpenMP runtime that parallel loops call: found, loaded once, and told to let idle workers sleep soon.

Generated code calls `GOMP_parallel`, `omp_get_thread_num` and `omp_get_num_threads`. libomp has all three, and its
fork-join costs 0.25 us here against 0.4 us of libgomp.
"""

from __future__ import annotations

import ctypes
import importlib.util
import logging
import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from .. import config
from ..dataclass import dataclass
from ..errors import TensorExprError
from ..log import once

logger = logging.getLogger(__name__)

SYMBOLS = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads", "omp_get_max_threads")

# How long a worker spins after a parallel loop before it sleeps. Measured with calls 100 us apart: 0.9 us for the next
# fork-join, where 100 us gives 22 us (a sleeping thread must be woken); the default of libomp, 200 ms, burns a core for nothing.
BLOCKTIME = "200us"

# What parallel loops call when there is no OpenMP runtime.
SERIAL_IR = """
define void @GOMP_parallel(ptr %function, ptr %data, i32 %threads, i32 %flags) {
  call void %function(ptr %data)
  ret void
}
define i32 @omp_get_thread_num() {
  ret i32 0
}
define i32 @omp_get_num_threads() {
  ret i32 1
}
define i32 @omp_get_max_threads() {
  ret i32 1
}
"""


@dataclass(frozen=True)
class OpenMP:
    """A loaded OpenMP runtime: where it came from and the addresses of its functions."""

    path: str
    symbols: dict[str, int]


@lru_cache(maxsize=1)
def runtime() -> OpenMP | None:
    """The OpenMP runtime of this process, loaded on first use; None where there is none, which is logged once.

    Raises:
        TensorExprError: if TENSOREXPR_OMP_LIBRARY names something that is no OpenMP runtime.
    """
    chosen = config.omp_library()
    if chosen == "none":
        return None
    if chosen:
        try:
            return _load(chosen)
        except (OSError, AttributeError) as error:
            raise TensorExprError(
                f"TENSOREXPR_OMP_LIBRARY={chosen}: {error}; name a libomp or libgomp, or 'none' to run parallel loops serially"
            ) from None
    for path in _candidates():
        try:
            return _load(path)
        except (OSError, AttributeError) as error:
            logger.debug("no OpenMP runtime in %s: %s", path, error)
    once(logger, "no OpenMP runtime found: parallel loops run serially. Install the wheel cmeel-libomp or set TENSOREXPR_OMP_LIBRARY")
    return None


def _candidates() -> Iterator[str]:
    """Paths and names to try: one that runs in this process already (two copies of libomp would not agree), the wheel's, the system's."""
    yield from _already_loaded()
    yield from _wheel_libraries()
    yield from ("libgomp.so.1", "libomp.so.5", "libomp.so", "libomp.dylib")


def _already_loaded() -> Iterator[str]:
    try:
        maps = Path("/proc/self/maps").read_text()
    except OSError:
        return
    # A library is mapped in several pieces, one line each.
    yield from dict.fromkeys(re.findall(r"(/\S*/lib(?:omp|iomp5)[^/\s]*\.so[.\d]*)$", maps, re.MULTILINE))


def _wheel_libraries() -> Iterator[str]:
    spec = importlib.util.find_spec("cmeel")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for name in ("libomp.so", "libomp.dylib"):
            path = Path(folder).parent / "cmeel.prefix" / "lib" / name
            if path.exists():
                yield str(path)


def _load(path: str) -> OpenMP:
    """Load a runtime and make it read its settings while ours stand in the environment.

    KMP_DUPLICATE_LIB_OK stays set: without it, libomp ends the process when a package brings a second copy of it.
    """
    os.environ.setdefault("KMP_DUPLICATE_LIB_OK", "TRUE")
    ours = "KMP_BLOCKTIME" not in os.environ
    if ours:
        # libomp reads it once, at its first call, so it can be taken back right after; child processes don't inherit it.
        os.environ["KMP_BLOCKTIME"] = BLOCKTIME
    try:
        library = ctypes.CDLL(path)
        symbols = {name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in SYMBOLS}
        library.omp_get_max_threads()  # the first call reads the settings
    finally:
        if ours:
            del os.environ["KMP_BLOCKTIME"]
    logger.debug("OpenMP runtime: %s", path)
    return OpenMP(path, symbols)
