"""Calls of devices and of the runtime's own code: matrix units, asynchronous copies, barriers, warps, stacks of arguments.

They are built, printed, read, compared and stored as any call. Code for NVIDIA's devices has the instructions of theirs; what these
compute on CPUs and in the interpreter is in `warp_units`. Others are refused by name there.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..dataclass import dataclass
from ..errors import DeclarationError
from .arithmetic import convert
from .buffer import Buffer
from .dtype import parse_dtype
from .expr import Call, PrimExpr
from .intrin import INTRINSICS, Intrinsic

STATED = "stated"  # the call says the dtype of its result, as its first argument


@dataclass(frozen=True, slots=True)
class DeviceIntrinsic:
    """One row: the operands by name (one with a star is any number of them); `result` is a dtype, STATED, or the number of
    the argument whose dtype it has."""

    name: str
    names: str
    result: str | int
    pure: bool = False
    defaults: tuple[Any, ...] = ()

    @property
    def operands(self) -> int:
        """How many operands it takes, -1 for any number."""
        return -1 if "*" in self.names else len(self.names.split())

    def parameters(self) -> list[str]:
        """The parameters of its builder: with the dtype of the result, where a call states it."""
        names = self.names.split()
        if self.result != STATED:
            return names
        return [*names, "dtype"] if self.name == "tvm_struct_get" else ["dtype", *names]


_MMA = "shape A_layout B_layout A_dtype B_dtype C_dtype multiplicand_a a_index multiplicand_b b_index accumulator c_index"
_ROWS = (
    DeviceIntrinsic("TVMBackendAllocWorkspace", "device_type device_id nbytes dtype_code_hint dtype_bits_hint", "handle"),
    DeviceIntrinsic("TVMBackendFreeWorkspace", "device_type device_id ptr", "int32"),
    DeviceIntrinsic("anylist_getitem", "list_handle index", "handle"),
    DeviceIntrinsic("anylist_resetitem", "list_handle index", "int32"),
    DeviceIntrinsic("anylist_setitem_call_packed", "list_handle index func_name *args", "int32"),
    DeviceIntrinsic("anylist_setitem_call_cpacked", "list_handle index func_name *args", "int32"),
    DeviceIntrinsic("create_barriers", "barrier_count", "handle"),
    DeviceIntrinsic("dp4a", "vec1 vec2 acc", "int32", pure=True, defaults=(0,)),
    DeviceIntrinsic("end_profile_intrinsic", "id", "handle"),
    DeviceIntrinsic("start_profile_intrinsic", "id", "handle"),
    DeviceIntrinsic("get_active_lane_mask", "base limit", STATED, pure=True),
    DeviceIntrinsic("make_filled_simdgroup_matrix", "d index value col row", "handle", defaults=(8, 8)),
    DeviceIntrinsic("simdgroup_load", "d index ptr stride col row transpose_matrix", "handle", defaults=(8, 8, False)),
    DeviceIntrinsic("simdgroup_store", "d index ptr stride col row transpose_matrix", "handle", defaults=(8, 8, False)),
    DeviceIntrinsic("simdgroup_multiply_accumulate", "d index_d a index_a b index_b c index_c", "handle"),
    DeviceIntrinsic("mma_fill", "local_size local_ptr offset", STATED),
    DeviceIntrinsic("mma_store", "m n dst_ptr src_ptr src_offset dst_stride", STATED),
    DeviceIntrinsic("ptx_arrive_barrier", "barrier_id", "handle"),
    DeviceIntrinsic("ptx_arrive_barrier_expect_tx", "barrier_id byte_count", "handle"),
    DeviceIntrinsic("ptx_commit_group", "", "handle"),
    DeviceIntrinsic("ptx_cp_async", "shared_ptr shared_offset global_ptr global_offset bytes *more", STATED),
    DeviceIntrinsic("ptx_cp_async_barrier", "barrier_id", "handle"),
    DeviceIntrinsic("ptx_cp_async_bulk", "shared_ptr shared_offset global_ptr global_offset bytes barrier_id", STATED),
    DeviceIntrinsic("ptx_cp_async_bulk_tensor", "shared_ptr shared_offset tensor_map barrier_id *coordinates", STATED),
    DeviceIntrinsic("ptx_tensor_map", "pointer element_dtype swizzle dimensions *sizes", "handle", pure=True),
    DeviceIntrinsic("ptx_init_barrier_thread_count", "barrier_id thread_count", "handle"),
    DeviceIntrinsic("ptx_ldmatrix", "trans num type local_ptr local_offset smem_ptr smem_offset", STATED),
    DeviceIntrinsic(
        "ptx_mma",
        f"{_MMA} saturate *operator",
        STATED,
    ),
    DeviceIntrinsic(
        "ptx_mma_sp",
        f"{_MMA} metadata meta_index sparse_selector saturate",
        STATED,
    ),
    DeviceIntrinsic(
        "ptx_wgmma", "width depth accumulator c_index a_ptr a_chunk a_eight a_turned b_ptr b_chunk b_eight b_turned *swizzle", STATED
    ),
    DeviceIntrinsic("ptx_wgmma_fence", "*sums", "handle"),
    DeviceIntrinsic("ptx_wgmma_commit_group", "", "handle"),
    DeviceIntrinsic("ptx_wgmma_wait_group", "num *sums", "handle"),
    DeviceIntrinsic("ptx_fence_proxy_async", "", "handle"),
    DeviceIntrinsic("ptx_wait_barrier", "barrier_id *parity", "handle"),
    DeviceIntrinsic("ptx_wait_group", "num", "handle"),
    DeviceIntrinsic("tvm_bmma_sync", "fragment_d index_d fragment_a index_a fragment_b index_b fragment_c index_c", "handle"),
    DeviceIntrinsic("tvm_call_cpacked", "*args", "int32"),
    DeviceIntrinsic("tvm_call_cpacked_lowered", "*args", "int32"),
    DeviceIntrinsic("tvm_call_packed_lowered", "*args", "int32"),
    DeviceIntrinsic("tvm_check_return", "expected return_unexpected nested_call", "int32", pure=True),
    DeviceIntrinsic("tvm_fill_fragment", "fragment m n k index value", "handle"),
    DeviceIntrinsic("tvm_load_matrix_sync", "fragment m n k index buffer_ptr stride layout", "handle"),
    DeviceIntrinsic("tvm_mma_sync", "fragment_d index_d fragment_a index_a fragment_b index_b fragment_c index_c", "handle"),
    DeviceIntrinsic("tvm_stack_alloca", "dtype_str num", "handle"),
    DeviceIntrinsic("tvm_storage_sync", "*storage_scope", "int32"),
    DeviceIntrinsic("tvm_store_matrix_sync", "fragment m n k index buffer_ptr stride layout", "handle"),
    DeviceIntrinsic("tvm_struct_get", "arr index field", STATED),
    DeviceIntrinsic("tvm_struct_set", "arr index field value", "int32"),
    DeviceIntrinsic("tvm_thread_allreduce", "*freduce_args", "handle"),
    DeviceIntrinsic("tvm_thread_invariant", "cond", 0, pure=True),
    DeviceIntrinsic("tvm_throw_last_error", "", "handle"),
    DeviceIntrinsic("tvm_tuple", "*value", "handle", pure=True),
    DeviceIntrinsic("tvm_thread_context", "ctx", "handle"),
    DeviceIntrinsic("tvm_warp_activemask", "", "uint32"),
    DeviceIntrinsic("tvm_warp_shuffle", "mask value warp_id width warp_size", 1),
    DeviceIntrinsic("tvm_warp_shuffle_down", "mask value offset width warp_size", 1),
    DeviceIntrinsic("tvm_warp_shuffle_up", "mask value offset width warp_size", 1),
    DeviceIntrinsic("lookup_param", "param_name", "handle"),
    DeviceIntrinsic("vscale", "", "int32", pure=True),
    DeviceIntrinsic("tvm_context_id", "", "int32", pure=True),
    DeviceIntrinsic("ret", "val", 0),
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
        # Counted from the end: of three defaults, the last two for two operands that are missing.
        given += row.defaults[len(given) - row.operands :] if row.defaults else ()
    if row.operands not in (-1, len(given)):
        raise DeclarationError(f"{name} takes {row.operands} operands, not {len(given)}")
    operands = tuple(arg.data if isinstance(arg, Buffer) else convert(arg) for arg in given)
    kind = dtype or (operands[result].dtype if isinstance(result, int) else str(result))
    return Call(str(parse_dtype(kind)) if kind != "void" else kind, f"tir.{name}", operands)


def builder(name: str) -> Callable[..., PrimExpr]:
    """The function that makes calls of `name`."""

    row = DEVICE_INTRINSICS[name]
    parameters = row.parameters()
    optional = parameters[len(parameters) - len(row.defaults) :] if row.defaults else []
    defaults = dict(zip(optional, row.defaults, strict=True))

    def build(*args: Any, dtype: str | None = None, span: object = None, **named: Any) -> PrimExpr:
        given = list(args)
        for parameter in parameters[len(args) :]:
            if parameter in named:
                given.append(named.pop(parameter))
            elif named and parameter in defaults:  # one behind it is named, which must keep its place
                given.append(defaults[parameter])
        if named:
            raise TypeError(f"{name} takes {', '.join(parameters) or 'nothing'}, not {', '.join(named)}")
        return device_call(name, *given, dtype=dtype)

    kinds = {True: inspect.Parameter.VAR_POSITIONAL, False: inspect.Parameter.POSITIONAL_OR_KEYWORD}
    shown = [
        inspect.Parameter(name.lstrip("*"), kinds["*" in name], default=None if name in optional else inspect.Parameter.empty)
        for name in parameters
    ]
    if "dtype" not in parameters:
        shown.append(inspect.Parameter("dtype", inspect.Parameter.KEYWORD_ONLY, default=None))
    vars(build)["__signature__"] = inspect.Signature(shown)
    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"The call of `{name}`, for targets that have it."
    return build
