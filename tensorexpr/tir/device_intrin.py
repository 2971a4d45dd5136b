"""Calls of devices and of the runtime's own code: matrix units, asynchronous copies, barriers, warps, stacks of arguments.

They are built, printed, read, compared and stored as any call. No target here has the instructions, so code
generation and the interpreter refuse them by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import DeclarationError
from .arithmetic import convert
from .buffer import Buffer
from .dtype import parse_dtype
from .expr import Call, PrimExpr
from .intrin import INTRINSICS, Intrinsic

STATED = "stated"  # the call says the dtype of its result, as its first argument


@dataclass(frozen=True, slots=True)
class DeviceIntrinsic:
    """One row: `result` is a dtype, STATED, or the number of the argument whose dtype it has; -1 operands are any number."""

    name: str
    operands: int
    result: str | int
    pure: bool = False
    least: int = -1  # operands that must be given, where some have defaults
    defaults: tuple[Any, ...] = ()


_ROWS = (
    DeviceIntrinsic("TVMBackendAllocWorkspace", 5, "handle"),
    DeviceIntrinsic("TVMBackendFreeWorkspace", 3, "int32"),
    DeviceIntrinsic("anylist_getitem", 2, "handle"),
    DeviceIntrinsic("anylist_resetitem", 2, "int32"),
    DeviceIntrinsic("anylist_setitem_call_packed", -1, "int32"),
    DeviceIntrinsic("anylist_setitem_call_cpacked", -1, "int32"),
    DeviceIntrinsic("create_barriers", 1, "handle"),
    DeviceIntrinsic("dp4a", 3, "int32", pure=True, defaults=(0,)),
    DeviceIntrinsic("end_profile_intrinsic", 1, "handle"),
    DeviceIntrinsic("start_profile_intrinsic", 1, "handle"),
    DeviceIntrinsic("get_active_lane_mask", 2, STATED, pure=True),
    DeviceIntrinsic("make_filled_simdgroup_matrix", 5, "handle", defaults=(8, 8)),
    DeviceIntrinsic("simdgroup_load", 7, "handle", defaults=(8, 8, False)),
    DeviceIntrinsic("simdgroup_store", 7, "handle", defaults=(8, 8, False)),
    DeviceIntrinsic("simdgroup_multiply_accumulate", 8, "handle"),
    DeviceIntrinsic("mma_fill", 3, STATED),
    DeviceIntrinsic("mma_store", 6, STATED),
    DeviceIntrinsic("ptx_arrive_barrier", 1, "handle"),
    DeviceIntrinsic("ptx_arrive_barrier_expect_tx", 2, "handle"),
    DeviceIntrinsic("ptx_commit_group", 0, "handle"),
    DeviceIntrinsic("ptx_cp_async", -1, STATED),
    DeviceIntrinsic("ptx_cp_async_barrier", 1, "handle"),
    DeviceIntrinsic("ptx_cp_async_bulk", 6, STATED),
    DeviceIntrinsic("ptx_init_barrier_thread_count", 2, "handle"),
    DeviceIntrinsic("ptx_ldmatrix", 7, STATED),
    DeviceIntrinsic("ptx_mma", -1, STATED),
    DeviceIntrinsic("ptx_mma_sp", 16, STATED),
    DeviceIntrinsic("ptx_wait_barrier", 1, "handle"),
    DeviceIntrinsic("ptx_wait_group", 1, "handle"),
    DeviceIntrinsic("tvm_bmma_sync", 8, "handle"),
    DeviceIntrinsic("tvm_call_cpacked", -1, "int32"),
    DeviceIntrinsic("tvm_call_cpacked_lowered", -1, "int32"),
    DeviceIntrinsic("tvm_call_packed_lowered", -1, "int32"),
    DeviceIntrinsic("tvm_check_return", 3, "int32", pure=True),
    DeviceIntrinsic("tvm_fill_fragment", 6, "handle"),
    DeviceIntrinsic("tvm_load_matrix_sync", 8, "handle"),
    DeviceIntrinsic("tvm_mma_sync", 8, "handle"),
    DeviceIntrinsic("tvm_stack_alloca", 2, "handle"),
    DeviceIntrinsic("tvm_storage_sync", -1, "int32"),
    DeviceIntrinsic("tvm_store_matrix_sync", 8, "handle"),
    DeviceIntrinsic("tvm_struct_get", 3, STATED),
    DeviceIntrinsic("tvm_struct_set", 4, "int32"),
    DeviceIntrinsic("tvm_thread_allreduce", -1, "handle"),
    DeviceIntrinsic("tvm_thread_invariant", 1, 0, pure=True),
    DeviceIntrinsic("tvm_throw_last_error", 0, "handle"),
    DeviceIntrinsic("tvm_tuple", -1, "handle", pure=True),
    DeviceIntrinsic("tvm_warp_activemask", 0, "uint32"),
    DeviceIntrinsic("tvm_warp_shuffle", 5, 1),
    DeviceIntrinsic("tvm_warp_shuffle_down", 5, 1),
    DeviceIntrinsic("tvm_warp_shuffle_up", 5, 1),
    DeviceIntrinsic("lookup_param", 1, "handle"),
    DeviceIntrinsic("vscale", 0, "int32", pure=True),
    DeviceIntrinsic("tvm_context_id", 0, "int32", pure=True),
    DeviceIntrinsic("ret", 1, 0),
)

DEVICE_INTRINSICS: dict[str, DeviceIntrinsic] = {row.name: row for row in _ROWS}
# Where a call is printed with the dtype of its result, and where the dtype stands.
STATING_FIRST = frozenset(f"tir.{row.name}" for row in _ROWS if row.result == STATED and row.name != "tvm_struct_get")
STATING_LAST = frozenset({"tir.tvm_struct_get"})

INTRINSICS.update(
    {f"tir.{row.name}": Intrinsic(row.name, row.operands, "special", pure=row.pure) for row in _ROWS if f"tir.{row.name}" not in INTRINSICS}
)


def device_call(name: str, *args: Any, dtype: str | None = None) -> PrimExpr:
    """The call of a device's function by its name without "tir.".

    Args:
        args: as the function's documentation lists them; a buffer stands for its pointer. Those that say their result
            begin with its dtype (`tvm_struct_get` ends with it).
        dtype: another dtype for the result.

    Raises:
        DeclarationError: for a wrong number of arguments, or a dtype that is none.
    """
    row = DEVICE_INTRINSICS[name]
    given = list(args)
    result = row.result
    if result == STATED and dtype is None:
        if not given:
            raise DeclarationError(f"{name} takes the dtype of its result")
        dtype = given.pop(-1 if f"tir.{name}" in STATING_LAST else 0)
    if row.operands >= 0 and len(given) < row.operands:
        given += row.defaults[len(given) - row.operands :] if row.defaults else ()
    if row.operands not in (-1, len(given)):
        raise DeclarationError(f"{name} takes {row.operands} operands, not {len(given)}")
    operands = tuple(arg.data if isinstance(arg, Buffer) else convert(arg) for arg in given)
    kind = dtype or (operands[result].dtype if isinstance(result, int) else str(result))
    return Call(str(parse_dtype(kind)) if kind != "void" else kind, f"tir.{name}", operands)


def builder(name: str) -> Callable[..., PrimExpr]:
    """The function that makes calls of `name`."""

    def build(*args: Any, dtype: str | None = None) -> PrimExpr:
        return device_call(name, *args, dtype=dtype)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"The call of `{name}`, which no target here can run."
    return build
