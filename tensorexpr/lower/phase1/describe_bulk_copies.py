"""Copies that a GPU's engine makes, by the boxes of tensors that it takes: what the pragma `bulk_copy` on a loop asks for.

for c in 4: (bulk_copy)                                   for c in 4:
    for k in 64: for n in 64:                                 attr bulk_copy (map of A, boxes of 64 x 64; place in S; k0 * 64, j + c * 64):
        S[c, k, n] = A[k0 * 64 + k, j + c * 64 + n]   ->          for k in 64: for n in 64:
                                                                      S[c, k, n] = A[k0 * 64 + k, j + c * 64 + n]

The loops say what is copied and stay for passes to look at; code generation takes what stands in front of them (`device.bulk_copies`). What
lies outside of the tensor is zeros, as the engine fills boxes. Targets without an engine run the loops. A pragma of 32, 64 or 128 is the
bytes of a row of the box whose pieces change places, as matrix units read them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from ...arith.analyzer import Analyzer
from ...dataclass import dataclass, replace
from ...errors import LoweringError
from ...target import Target
from ...target.chips import BULK_COPIES, capability
from ...tir.arithmetic import as_int
from ...tir.attrs import FrozenMap
from ...tir.buffer import Buffer
from ...tir.device_intrin import device_call
from ...tir.dtype import parse_dtype
from ...tir.expr import GE, LE, LT, And, BufferLoad, Call, FloatImm, IntImm, PrimExpr, Range, StringImm, Var
from ...tir.function import PrimFunc
from ...tir.pointers import tvm_access_ptr
from ...tir.rewriting import substitute, variables, walk
from ...tir.stmt import AttrStmt, BufferRealize, BufferStore, For, ForKind, Stmt
from ..async_queues import BULK_COPY
from ..context import PassContext
from ..pragmas import BULK
from ..rebuild import map_stmt, walk_statements
from .layout import row_major

_MOST, _PIECE, _SWIZZLES = 256, 16, (32, 64, 128)  # elements of a side; bytes of a piece, and of rows that are swizzled
_ZERO = IntImm("int32", 0)


def describe_bulk_copies(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with its copies in bulk described; where the target has no engine, with loops that nothing marks.

    Raises:
        LoweringError: for a loop with the pragma that copies no boxes of a tensor.
    """
    if not any(isinstance(stmt, For) and BULK in stmt.annotations for stmt in walk_statements(func.body)):
        return func
    target = Target.current(allow_none=True)
    has_engine = target is not None and target.kind.name == "cuda" and capability(target.arch) >= BULK_COPIES
    read = {node.buffer for node in walk(func.body) if isinstance(node, BufferLoad)}
    return func.with_body(_Describer(has_engine, read, {}).stmt(func.body))


@dataclass(frozen=True)
class _Describer:
    has_engine: bool
    read: set[Buffer]  # element by element
    bounds: dict[Buffer, tuple[Range, ...]]

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with its copies described."""
        if isinstance(stmt, BufferRealize):
            self.bounds[stmt.buffer] = tuple(stmt.bounds)
        if isinstance(stmt, For) and BULK in stmt.annotations:
            kept = {key: value for key, value in stmt.annotations.items() if key != BULK}
            plain = replace(stmt, annotations=FrozenMap(kept))
            wanted = as_int(stmt.annotations[BULK])
            return self._described(plain, wanted if wanted in _SWIZZLES else 0) if self.has_engine and wanted else plain
        return map_stmt(stmt, self.stmt)

    def _described(self, stmt: For, swizzle: int) -> Stmt:
        loops: list[For] = []
        inner: Stmt = stmt
        while isinstance(inner, For) and inner.kind in (ForKind.SERIAL, ForKind.UNROLLED):
            loops.append(inner)
            inner = inner.body
        load = _copied(inner)
        if not isinstance(inner, BufferStore) or load is None:
            raise _refused(stmt, "it takes loops around one store of what a tensor holds, or of zeros beside it")
        if as_int(load.buffer.elem_offset) != 0:
            raise _refused(stmt, f"{load.buffer.name} begins at an offset of its memory, and a map at its beginning")
        if inner.buffer not in self.bounds or load.buffer.dtype != inner.buffer.dtype:
            raise _refused(stmt, "it goes from memory of the call to shared memory of the kernel, without a cast")
        if swizzle and inner.buffer in self.read:
            raise _refused(
                stmt, f"{inner.buffer.name} is read by other instructions than matrix units, which don't see swizzled rows as they are"
            )
        within = _box_loops(loops, load)
        result: Stmt = inner
        for number, loop in reversed(list(enumerate(loops))):
            is_box = number >= len(loops) - len(within)
            result = replace(loop, body=result, kind=loop.kind if is_box else ForKind.UNROLLED)  # several boxes, at constant distances
            if number == len(loops) - len(within):
                result = AttrStmt(0, BULK_COPY, self._value(stmt, inner, load, within, swizzle), result)
        return result if within else AttrStmt(0, BULK_COPY, self._value(stmt, inner, load, within, swizzle), result)

    def _value(self, around: For, store: BufferStore, load: BufferLoad, within: Sequence[For], swizzle: int) -> PrimExpr:
        """The description: map, place, bytes and coordinates."""
        buffer, analyzer = load.buffer, Analyzer()
        begins = {loop.loop_var: loop.min for loop in within}
        of_index = [next((loop for loop in within if loop.loop_var in variables(index)), None) for index in load.indices]
        sides = [1 if loop is None else as_int(loop.extent) or 0 for loop in of_index]
        itemsize = parse_dtype(buffer.dtype).itemsize
        if not all(0 < side <= _MOST for side in sides) or sides[-1] * itemsize % _PIECE or (swizzle and sides[-1] * itemsize != swizzle):
            row = f"{swizzle} bytes" if swizzle else f"whole {_PIECE} bytes"
            raise _refused(
                around, f"a box has sides of 1 to {_MOST} elements and rows of {row}, not {' x '.join(map(str, sides))} of {buffer.dtype}"
            )
        flat: PrimExpr = _ZERO
        bounds = self.bounds[store.buffer]
        for index, bound, step in zip(store.indices, bounds, row_major([bound.extent for bound in bounds]), strict=True):
            flat = flat + (index - bound.min) * step
        begin = analyzer.simplify(substitute(flat, begins))
        wanted: PrimExpr = begin
        for number, loop in enumerate(of_index):
            if loop is not None:
                wanted = wanted + (loop.loop_var - loop.min) * prod(sides[number + 1 :])
        if as_int(analyzer.simplify(flat - wanted)) != 0:
            raise _refused(
                around, f"elements of a box follow each other as the dimensions of {buffer.name} do; give {store.buffer.name} that layout"
            )
        strides = tuple(buffer.strides) or row_major(buffer.shape)
        sizes = (*buffer.shape, *strides[:-1], *sides)
        described = device_call("ptx_tensor_map", buffer.data, StringImm(buffer.dtype), swizzle, len(sides), *sizes)
        into = tvm_access_ptr(store.buffer.dtype, store.buffer.data, begin, IntImm("int32", prod(sides)), Buffer.WRITE)
        starts = [analyzer.simplify(substitute(index, begins)) for index in load.indices]
        return device_call("tvm_tuple", described, into, *starts)


def _copied(stmt: Stmt) -> BufferLoad | None:
    """What a statement copies, with zeros in place of what isn't there."""
    if not isinstance(stmt, BufferStore) or stmt.predicate is not None:
        return None
    value = stmt.value
    if isinstance(value, Call) and value.op == "tir.if_then_else" and isinstance(value.args[1], BufferLoad):
        load, zero = value.args[1], value.args[2]
        is_zero = isinstance(zero, (IntImm, FloatImm)) and zero.value == 0
        return load if is_zero and all(_is_border(one, load) for one in _conjuncts(value.args[0])) else None
    return value if isinstance(value, BufferLoad) and value.predicate is None else None


def _conjuncts(condition: PrimExpr) -> Iterator[PrimExpr]:
    if isinstance(condition, And):
        yield from _conjuncts(condition.a)
        yield from _conjuncts(condition.b)
    elif isinstance(condition, Call) and condition.op == "tir.likely":
        yield from _conjuncts(condition.args[0])
    else:
        yield condition


def _is_border(condition: PrimExpr, load: BufferLoad) -> bool:
    """Whether a condition only says that an index of a load is within the tensor."""
    same = Analyzer().simplify
    for index, extent in zip(load.indices, load.buffer.shape, strict=True):
        match condition:
            case LT(low, high) if as_int(same(low - index)) == 0 and as_int(same(high - extent)) == 0:
                return True
            case LE(low, high) | GE(high, low) if as_int(low) == 0 and as_int(same(high - index)) == 0:
                return True
    return False


def _box_loops(loops: Sequence[For], load: BufferLoad) -> list[For]:
    """The innermost loops that each go along a dimension of their own, by ones."""
    found: list[For] = []
    taken: set[int] = set()
    for loop in reversed(loops):
        moved = [number for number, index in enumerate(load.indices) if loop.loop_var in variables(index)]
        var: Var = loop.loop_var
        if len(moved) != 1 or moved[0] in taken or as_int(loop.extent) is None:
            break
        index = load.indices[moved[0]]
        if as_int(Analyzer().simplify(substitute(index, {var: var + 1}) - index)) != 1:
            break
        taken.add(moved[0])
        found.insert(0, loop)
    return found


def _refused(stmt: Stmt, wish: str) -> LoweringError:
    return LoweringError(f"the loop can't be copied in bulk: {wish}; leave out the pragma bulk_copy, and threads will copy\n{stmt}")
