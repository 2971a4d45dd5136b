"""Descriptions of tensors for the copy engine, which the host makes for each launch and passes by value.

kernel(A): ... T.ptx_tensor_map(A, "float16", 128, 2, ...)    ->    kernel(A_map): ... A_map ...
                                                                    host: A_map = the map of A, by the numbers of the call
"""

from __future__ import annotations

from collections.abc import Mapping

from ...dataclass import dataclass
from ...errors import LoweringError
from ...tir.arithmetic import as_int
from ...tir.expr import Call, PointerType, PrimExpr, PrimType, StringImm, Var
from ...tir.stmt import Stmt
from ..rebuild import map_expr, map_stmt

MAP_SCOPE = "grid_constant"
"""The scope of a kernel's parameter that is a map, passed by value."""
_CALL = "tir.ptx_tensor_map"


@dataclass(frozen=True)
class MapSpec:
    """What the host makes a map of; see `runtime.tensor_maps.TensorMap`. Extents and strides are numbers that the host knows."""

    pointer: Var
    dtype: str
    shape: tuple[PrimExpr, ...]
    strides: tuple[PrimExpr, ...]
    box: tuple[PrimExpr, ...]
    swizzle: int


def is_map(var: Var) -> bool:
    """Whether a parameter of a kernel is a map."""
    kind = var.type_annotation
    return isinstance(kind, PointerType) and kind.storage_scope == MAP_SCOPE


def hoist_maps(body: Stmt) -> tuple[Stmt, Mapping[Var, MapSpec]]:
    """A kernel's body with variables in place of the descriptions in it, and these.

    Raises:
        LoweringError: for a description that isn't one.
    """
    found: dict[Call, Var] = {}
    specs: dict[Var, MapSpec] = {}

    def on_expr(expr: PrimExpr) -> PrimExpr:
        result = map_expr(expr, on_expr)
        if not isinstance(result, Call) or result.op != _CALL:
            return result
        if result not in found:
            spec = _spec(result)
            var = found[result] = Var(f"{spec.pointer.name}_map{len(found) or ''}", "handle", PointerType(PrimType("uint8"), MAP_SCOPE))
            specs[var] = spec
        return found[result]

    def on_stmt(stmt: Stmt) -> Stmt:
        return map_stmt(stmt, on_stmt, on_expr)

    return on_stmt(body), specs


def _spec(call: Call) -> MapSpec:
    pointer, dtype, swizzle, rank, *sizes = call.args
    dimensions, row = as_int(rank), as_int(swizzle)
    if (
        not isinstance(pointer, Var)
        or not isinstance(dtype, StringImm)
        or dimensions is None
        or row is None
        or len(sizes) != 3 * dimensions - 1
    ):
        raise LoweringError(
            "ptx_tensor_map takes a pointer, a dtype, the bytes of a swizzle, the number n of dimensions, n extents, n - 1 strides in "
            f"elements and the n sides of a box, the dimension along memory last, not {call}"
        )
    shape, strides, box = sizes[:dimensions], sizes[dimensions : 2 * dimensions - 1], sizes[2 * dimensions - 1 :]
    return MapSpec(pointer, dtype.value, tuple(shape), tuple(strides), tuple(box), row)
