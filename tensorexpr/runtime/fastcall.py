"""The short way into a function: a builtin of the interpreter, compiled by us, that checks the arguments natively.

It reads NumPy's array objects directly (layout.py proves where their fields are) while it holds the GIL, makes the
checks of arguments.py, releases the GIL and calls the packed entry. It returns 0, the function's own error code, or
REFUSED for anything that is not plainly right; then the check in Python converts the arguments or says what is wrong.

The native code is one for all functions and reads a table of 64-bit words: a header, a record per parameter, and the
extents of the arrays (an extent below 0 is `-1 - slot`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from ..codegen.signature import BufferParam, Signature
from ..dataclass import dataclass, field
from ..target import Target
from ..tir.dtype import int_limits, parse_dtype, to_numpy
from ..tir.expr import IntImm, Var
from . import binding, cache, engine, layout, python_api
from .fastcall_ir import FASTCALL_IR, HEADER_WORDS, RECORD_WORDS
from .ndarray import NDArray

REFUSED = -1

_METH_FASTCALL = 0x80
_KIND_ARRAY, _KIND_INT, _KIND_FLOAT = 0, 1, 2
_NO_SLOT = -1
_INT64_MAX = (1 << 63) - 1
_PYTHON_API = (
    "PyLong_AsVoidPtr",
    "PyLong_AsLongLongAndOverflow",
    "PyLong_FromLong",
    "PyFloat_AsDouble",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
)

NativeCall: TypeAlias = Callable[..., int]


class _MethodDef(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


@dataclass(frozen=True)
class FastCall:
    """The builtin of one function; it reads `_table`, which must live as long as the builtin is called."""

    call: NativeCall
    _table: Any = field(repr=False)


def make(signature: Signature, plan: binding.Plan, entry: int) -> FastCall | None:
    """The builtin for a function whose packed entry stands at address `entry`.

    None if this interpreter's arrays can't be read natively, or the signature has strides or extents that need arithmetic.
    """
    slot = layout.ndarray_slot()
    if slot is None or not _eligible(signature):
        return None
    table = _table(signature, plan, entry)
    # The table's address is the builtin's `self`, an integer, which the native code turns into a pointer again.
    maker = ctypes.pythonapi.PyCFunction_NewEx
    maker.restype, maker.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    return FastCall(maker(ctypes.addressof(_method(slot)), ctypes.addressof(table), None), table)


def _eligible(signature: Signature) -> bool:
    arrays = [param for param in signature.params if isinstance(param, BufferParam)]
    return all(not p.strides and isinstance(p.elem_offset, IntImm) and _plain(p) for p in arrays)


def _plain(param: BufferParam) -> bool:
    # Of n + 1 an unknown would have to be solved for, which takes the steps of a plan in order.
    return all(isinstance(extent, (IntImm, Var)) for extent in param.shape)


@lru_cache(maxsize=4)
def _method(slot: int) -> _MethodDef:
    """The definition that every builtin shares; cached, so it and its code live as long as the process."""
    offsets = {"type": layout.TYPE, "data": layout.DATA, "ndim": layout.NDIM, "shape": layout.SHAPE, "dtype": layout.DTYPE}
    text = FASTCALL_IR.format(**offsets, flags=layout.FLAGS, inner=slot, refused=REFUSED, header=HEADER_WORDS, record=RECORD_WORDS)
    target = Target("llvm")
    code = engine.load_object(cache.compile_text(text, target, 1).data, ["fastcall"], python_api.addresses(*_PYTHON_API))
    # `_MethodDef` holds a bare address; the cache may drop a definition, while builtins of it are alive.
    _code.append(code)
    return _MethodDef(b"function", code["fastcall"], _METH_FASTCALL, None)


_code: list[engine.LoadedCode] = []


def _table(signature: Signature, plan: binding.Plan, entry: int) -> Any:
    params = signature.params
    in_shapes = {extent for param in params if isinstance(param, BufferParam) for extent in param.shape}
    # A number that no shape mentions has nothing to agree with, and needs no slot.
    slots = {var: index for index, var in enumerate(plan.slots) if var in in_shapes}
    # Types by address, so subclasses, whose fields may mean something else, go the long way.
    header = [entry, len(params), len(params) + len(plan.slots), id(np.ndarray), id(NDArray), id(int), id(float), 0]
    records: list[int] = []
    dims: list[int] = []
    for param in params:
        if isinstance(param, BufferParam):
            start = HEADER_WORDS + RECORD_WORDS * len(params) + len(dims)
            dims += [e.value if isinstance(e, IntImm) else -1 - slots[e] for e in binding.extents(param) if isinstance(e, (IntImm, Var))]
            records += _array_record(param, start)
        elif parse_dtype(param.dtype).is_float:
            records += [_KIND_FLOAT, 0, 0, 0, 0, 0, 0, 0]
        else:
            low, high = int_limits(param.dtype)
            # Words have a sign: a uint64 from 2**63 on goes the long way.
            records += [_KIND_INT, low, min(high, _INT64_MAX), slots.get(param.var, _NO_SLOT), 0, 0, 0, 0]
    words = header + records + dims
    # The plan's slots are as many words behind the arguments' words; the function reads only those of its symbols.
    return (ctypes.c_int64 * len(words))(*words)


def _array_record(param: BufferParam, dims: int) -> list[int]:
    # By address too, as `to_numpy` gives one object for a dtype; an equal one, or one of other byte order, goes the long way.
    dtype = to_numpy(param.dtype)
    flags = layout.C_CONTIGUOUS | layout.ALIGNED | (layout.WRITEABLE if param.is_written else 0)
    written = int(param.is_written)
    return [_KIND_ARRAY, id(dtype), len(binding.extents(param)), flags, param.alignment - 1, dims, dtype.itemsize, written]
