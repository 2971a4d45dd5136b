"""Arguments whose storage has several axes (`Buffer.axis_separators`) are accessed with an index for each of them.

    A: 2 x 3 x 4, axis_separators [2]:    A[i * 12 + j * 4 + k]    ->    A[i * 3 + j, k]

All other passes see one index. What comes after, on a machine whose memory has one axis, is the same address again. An access
of lanes that don't all stand on one line of the last axis keeps its single index, and with it the function.
"""

from __future__ import annotations

from ...arith.analyzer import Analyzer
from ...tir.arithmetic import as_int, cast, const, floordiv, floormod
from ...tir.buffer import Buffer
from ...tir.dtype import parse_dtype
from ...tir.expr import Broadcast, BufferLoad, PrimExpr, Ramp, Var
from ...tir.function import PrimFunc
from ...tir.stmt import BufferStore, For, Stmt
from ..context import PassContext
from ..rebuild import map_expr, map_stmt
from ..scopes import inside_loop


def physical_axes(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with an index for each axis of its arguments' storage; itself where all storage has one axis."""
    wanted = {buffer.data: buffer for buffer in func.buffer_map.values() if buffer.axis_separators and not buffer.strides}
    sizes = {data: _sizes(buffer) for data, buffer in wanted.items()}
    if not wanted or any(size is None for size in sizes.values()):
        return func
    try:
        return func.with_body(_Splitter(wanted).stmt(func.body))
    except _OneLine:
        return func


class _OneLine(Exception):
    """An access that can't be told by axes."""


def _sizes(buffer: Buffer) -> list[int] | None:
    """The extents of the storage's axes, if they are constants."""
    found = [as_int(extent) for extent in buffer.get_flattened_buffer().shape]
    return None if None in found else [extent for extent in found if extent is not None]


class _Splitter:
    def __init__(self, wanted: dict[Var, Buffer]) -> None:
        self._wanted = wanted
        self._physical: dict[Buffer, Buffer] = {}
        self._analyzer = Analyzer()

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with physical accesses."""
        if isinstance(stmt, For):
            with inside_loop(self._analyzer, stmt):
                return map_stmt(stmt, self.stmt, self.expr)
        result = map_stmt(stmt, self.stmt, self.expr)
        if isinstance(result, BufferStore) and result.buffer.data in self._wanted:
            return BufferStore(self._buffer(result.buffer), result.value, self._indices(result.buffer, result.indices[0]), result.predicate)
        return result

    def expr(self, expr: PrimExpr) -> PrimExpr:
        """The expression with physical loads."""
        result = map_expr(expr, self.expr)
        if isinstance(result, BufferLoad) and result.buffer.data in self._wanted:
            return BufferLoad(self._buffer(result.buffer), self._indices(result.buffer, result.indices[0]), result.predicate)
        return result

    def _buffer(self, flat: Buffer) -> Buffer:
        if flat not in self._physical:
            self._physical[flat] = self._wanted[flat.data].get_flattened_buffer()
        return self._physical[flat]

    def _indices(self, flat: Buffer, index: PrimExpr) -> tuple[PrimExpr, ...]:
        """The places on each axis of storage, the last axis innermost."""
        base, lanes = (index.base, index.lanes) if isinstance(index, Ramp) and as_int(index.stride) == 1 else (index, None)
        if parse_dtype(base.dtype).lanes > 1 or isinstance(base, Broadcast):
            raise _OneLine
        found: list[PrimExpr] = []
        rest = base
        for extent in reversed((_sizes(self._wanted[flat.data]) or [])[1:]):
            size = const(extent, rest.dtype)
            found.append(self._analyzer.simplify(floormod(rest, size)))
            rest = self._analyzer.simplify(floordiv(rest, size))
            # Lanes that run over the end of a row would need two indices on the axis outside.
            if lanes is not None and len(found) == 1 and not self._analyzer.known_less_equal(found[0] + (as_int(lanes) or 1), size):
                raise _OneLine
        found.append(rest)
        found.reverse()
        if isinstance(index, Ramp):
            found[-1] = Ramp(found[-1], cast(index.stride, found[-1].dtype), index.lanes)
        return tuple(found)
