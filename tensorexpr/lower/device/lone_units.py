"""Instructions that a thread runs alone as the loads and stores that they are, for devices that haven't got them.

    T.ptx_cp_async("float32", S, tx * 4, A, tx * 4, 16)  ->  for e in range(4): S[tx * 4 + e] = A[tx * 4 + e]

On a CPU these are copies, whose waits have nothing to wait for, and mbarriers, which are barriers of the block. NVIDIA's devices have
no instruction that fills or stores the registers of a product, or turns bytes on their way from shared memory (`tir.warp_units`).
"""

from __future__ import annotations

from ...arith.index_analyzer import Analyzer
from ...dataclass import dataclass
from ...tir.arithmetic import as_int, cast, const, floordiv, floormod
from ...tir.expr import IterVar, PrimExpr, Range, Var
from ...tir.function import PrimFunc
from ...tir.stmt import AttrStmt, Stmt
from ...tir.warp_units import WARP, alone
from ..passes import Pass
from ..rebuild import map_stmt
from .launches import launched_tag

SLOWEST_FIRST = ("threadIdx.z", "threadIdx.y", "threadIdx.x")


@dataclass(frozen=True)
class Warps:
    """The warps of a block: a thread's number in its warp, that of the warp, and how many there are, None for parts of one."""

    lane: PrimExpr
    number: PrimExpr
    count: int | None


def linear(axes: list[tuple[Var, PrimExpr]]) -> tuple[PrimExpr, PrimExpr]:
    """The number of a thread among those along some axes, the last one fastest, and how many there are."""
    number, count = const(0, "int32"), const(1, "int32")
    for var, extent in axes:
        number = number * cast(extent, "int32") + cast(var, "int32")
        count = count * cast(extent, "int32")
    return number, count


def warps_of(axes: list[tuple[Var, PrimExpr]]) -> Warps:
    """The warps of a block of threads along these axes, the slowest first."""
    analyzer = Analyzer()
    for var, extent in axes:
        analyzer.bind(var, Range.from_min_extent(const(0, extent.dtype), extent))
    number, total = linear(axes)
    threads = as_int(total)
    count = None if threads is None or threads % WARP else threads // WARP
    return Warps(analyzer.simplify(floormod(number, WARP)), analyzer.simplify(floordiv(number, WARP)), count)


def lone_units(func: PrimFunc, registers_only: bool = False) -> PrimFunc:
    """`func` without such instructions; itself if it has none.

    Args:
        registers_only: leave those that NVIDIA's devices have.

    Raises:
        LoweringError: for operands that they don't take.
    """

    def kernels(stmt: Stmt) -> Stmt:
        if launched_tag(stmt) is None:
            return map_stmt(stmt, kernels)
        found, inner = {}, stmt
        while (tag := launched_tag(inner)) is not None and isinstance(inner, AttrStmt) and isinstance(inner.node, IterVar):
            found[tag] = (inner.node.var, inner.value)
            inner = inner.body
        return alone(stmt, warps_of([found[tag] for tag in SLOWEST_FIRST if tag in found]).lane, registers_only)

    return func.with_body(kernels(func.body))


def LoneUnits() -> Pass:
    """`lone_units` of what NVIDIA's devices haven't got."""
    return Pass("tir.LoneUnits", lambda func, ctx: lone_units(func, registers_only=True))
