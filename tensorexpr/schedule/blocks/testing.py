"""Checks of schedules: that their traces replay, and that functions are equal but for their symbols."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...tir.function import IRModule, PrimFunc
from ...tir.structural_difference import assert_structural_equal
from .schedule import Schedule
from .trace import Trace
from .trace_python import apply_python

SYMBOL = "global_symbol"


def assert_structural_equal_ignore_global_symbol(func1: PrimFunc, func2: PrimFunc, *args: Any, **kwargs: Any) -> None:
    """Raise ValueError with the first difference of two functions, whatever symbols they are to have in an object file."""
    assert_structural_equal(func1.with_attr(SYMBOL, "main"), func2.with_attr(SYMBOL, "main"), *args, **kwargs)


def verify_trace_roundtrip(
    sch: Schedule,
    mod: PrimFunc | IRModule,
    *,
    debug_mask: str | int = "all",
    text_format: str | Sequence[str] = ("python", "json"),
) -> Schedule:
    """Replay the trace of a schedule, by way of its text, on a fresh schedule, which must give the same module and the same texts.

    Args:
        sch: a schedule with a trace.
        mod: what it began with.
        debug_mask: of the fresh schedules.
        text_format: "json" or "python", or several of them, each of which is tried.

    Returns:
        The last of the fresh schedules.

    Raises:
        ValueError: if the module is another, or a format is unknown.
        AssertionError: if the fresh schedule's trace is another.
    """
    trace = sch.trace
    if trace is None:
        raise ValueError("a schedule without a trace (traced=False) can't be replayed")
    formats = [text_format] if isinstance(text_format, str) else list(text_format)
    fresh = sch
    for name in formats:
        fresh = type(sch)(mod, debug_mask=debug_mask)
        if name == "json":
            Trace.apply_json_to_schedule(trace.as_json(), fresh)
        elif name == "python":
            apply_python(str(trace), fresh)
        else:
            raise ValueError(f'traces are written as "json" and "python", not as {name!r}')
        assert_structural_equal(fresh.mod, sch.mod)
        assert str(fresh.trace) == str(trace), "the replayed trace reads otherwise"
    return fresh
