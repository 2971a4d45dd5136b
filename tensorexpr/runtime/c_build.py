"""`build` for target c: the functions as C text."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from ..codegen.c_module import emit_c
from ..target import Target
from .build import check_any, lowered, symbol_of
from .c_module import CCode, CSourceModule


def build_c(inputs: Any, args: Sequence[Any] | None, target: Target, name: str | None, binds: Mapping[Any, Any] | None) -> CSourceModule:
    """Write the functions as C; arguments and errors as for `build`."""
    timings: dict[str, float] = {}
    functions = lowered(inputs, args, symbol_of(inputs, name), binds, target, timings)
    check_any(functions)
    start = time.perf_counter()
    emitted = emit_c(functions, target)
    timings["emit"] = time.perf_counter() - start
    return CSourceModule(CCode(emitted, target, timings))
