"""A search task as JSON values, in the order in which TVM's logs write it; the computation and a description follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import RecordError

HARDWARE = (
    "num_cores",
    "vector_unit_bytes",
    "cache_line_bytes",
    "max_shared_memory_per_block",
    "max_local_memory_per_block",
    "max_threads_per_block",
    "max_vthread_extent",
    "warp_size",
)
_TYPES = (str, str, list, str, int, list, str, str)
_USUAL: tuple[Any, ...] = ("", "", [], "", None, [], "", "")
_LEAST = 2


def checked_task(data: Any) -> tuple[Any, ...]:
    """Key, target, hardware numbers, host, layout option, names of inputs, computation and description of such values.

    Raises:
        RecordError: saying which value is wrong.
    """
    if not isinstance(data, Sequence) or isinstance(data, str) or not _LEAST <= len(data) <= len(_TYPES):
        raise RecordError(f"a task is a list of {_LEAST} to {len(_TYPES)} values: its key, its target, ...")
    for place, (value, kind) in enumerate(zip(data, _TYPES, strict=False)):
        if not isinstance(value, kind):
            raise RecordError(f"value {place} of a task is {value!r:.60}; it is of type {kind.__name__}")
    if not all(type(number) is int for number in (data[2] if len(data) > _LEAST else ())):
        raise RecordError("the hardware parameters of a task are integers")
    return (*data, *_USUAL[len(data) :])


__all__ = ["HARDWARE", "checked_task"]
