"""Compiled code calls back: registered Python functions on arrays that share its memory.

`codegen.packed_calls` says how arguments travel. An exception of the function waits, in its thread, for the kernel to
return its error code, and is raised then.
"""

from __future__ import annotations

import ctypes
import json
import struct
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..tir.dtype import parse_dtype, to_numpy
from ..tir.foreign import DEFAULT_TRACE, PackedCalls, number_of
from .device import cpu
from .ndarray import NDArray
from .registry import get_global_func, register_func

_pending = threading.local()
_Trampoline = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.POINTER(ctypes.c_int64))


def call_registered(name: str, args: Sequence[Any]) -> Any:
    """The result of a registered function; NumPy arrays among `args` are passed as NDArrays on their memory."""
    wrapped = [NDArray(arg, cpu()) if isinstance(arg, np.ndarray) else arg for arg in args]
    return get_global_func(name)(*wrapped)


PackedCalls.handler = call_registered


def raise_pending() -> None:
    """Raise what a Python function raised in the call that just ended in this thread, if it did."""
    error: BaseException | None = getattr(_pending, "error", None)
    if error is not None:
        _pending.error = None
        raise error


@lru_cache(maxsize=1)
def trampoline() -> tuple[int, Any]:
    """The address that compiled code calls, and the object that keeps it valid. ctypes takes the GIL around the call."""
    function = _Trampoline(_run)
    return ctypes.cast(function, ctypes.c_void_p).value or 0, function


def _run(call: bytes, words: Any) -> int:
    try:
        name, dtype, kinds = _decoded(call)
        args, at = [], 0
        for kind in kinds:
            value, at = _DECODERS[kind[0]](kind, words, at)
            args.append(value)
        found = call_registered(name, args)
        # An action that returns nothing lets the traced value, its last argument, through.
        result = (args[-1] if args else 0) if found is None and dtype is not None else found
        words[0] = _word(result, dtype)
    except BaseException as error:  # whatever it is, it belongs to the caller of the kernel
        _pending.error = error
        return 1
    return 0


def _word(result: Any, dtype: str | None) -> int:
    """A result as 64 bits: of a traced value in its dtype, of a plain call an integer, 0 for none."""
    if dtype is None:
        return number_of(result)
    if parse_dtype(dtype).is_float:
        return int(struct.unpack("<q", struct.pack("<d", float(to_numpy(dtype).type(result))))[0])
    return int(np.int64(np.uint64(int(result) & (2**64 - 1)).astype(np.int64)))


@lru_cache(maxsize=1024)
def _decoded(call: bytes) -> tuple[str, str | None, list[list[Any]]]:
    """The name, the dtype of a traced value (None for a plain call), and the kinds of the arguments."""
    name, dtype, kinds, traced = json.loads(call)
    return name, dtype if traced else None, kinds


Decoder = Callable[[list[Any], Any, int], tuple[Any, int]]


def _array(kind: list[Any], words: Any, at: int) -> tuple[Any, int]:
    _, dtype, rank, has_strides = kind
    address, shape = words[at], tuple(words[at + 1 : at + 1 + rank])
    at += 1 + rank
    steps = tuple(words[at : at + rank]) if has_strides else _compact(shape)
    element = to_numpy(dtype)
    # To the last element and no further: 2 rows of 8 in steps of 10 take 18, not 20.
    span = 0 if 0 in shape else 1 + sum((extent - 1) * step for extent, step in zip(shape, steps, strict=True))
    memory = (ctypes.c_uint8 * (span * element.itemsize)).from_address(address)
    flat = np.ctypeslib.as_array(memory).view(element)
    view = np.lib.stride_tricks.as_strided(flat, shape, [step * element.itemsize for step in steps])
    return view, at + (rank if has_strides else 0)


def _compact(shape: Sequence[int]) -> tuple[int, ...]:
    steps, step = [], 1
    for extent in reversed(shape):
        steps.append(step)
        step *= extent
    return tuple(reversed(steps))


_DECODERS: dict[str, Decoder] = {
    "array": _array,
    "int": lambda kind, words, at: (int(words[at]), at + 1),
    "float": lambda kind, words, at: (struct.unpack("<d", struct.pack("<q", words[at]))[0], at + 1),
    "string": lambda kind, words, at: (kind[1], at),
}


@register_func(DEFAULT_TRACE)
def default_trace_action(*args: Any) -> None:
    """Print the traced values."""
    print(list(args))
