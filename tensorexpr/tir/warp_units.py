"""What instructions of a warp compute, as statements of its threads: matrix fragments, `ldmatrix`, `mma`, copies.

A machine that has none of them runs these. What a warp does together is a few steps: every thread runs one, then all of them the
next. Between two steps threads find what others left in memory of the warp. What a thread does alone is one statement.

    ldmatrix        threads lay down the rows that they point to; each picks its registers up
    mma             threads lay down their registers as tiles; each computes a run of results; each picks its own up
    wmma            a fragment is a tile, by rows, in memory of the warp; each thread fills, loads, stores or computes a run of it

Sums are rounded once, to the accumulator's dtype: those of halves are made in float32. Factors of tf32 keep all their bits.
Source: PTX ISA, "Matrix Fragments for mma.m16n8k16" and its like, "ldmatrix", "cp.async", "mbarrier".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ..dataclass import dataclass
from ..errors import LoweringError
from .arithmetic import as_int, cast, const, floordiv, floormod, maximum, minimum
from .buffer import Buffer, decl_buffer, pointer_var
from .dtype import parse_dtype
from .expr import BufferLoad, Call, IntImm, PrimExpr, StringImm, Var
from .intrin import max_value, min_value
from .pointers import pointer_scope
from .rewriting import Node, post_order_rewrite
from .stmt import NOP, BufferStore, Evaluate, For, ForKind, IfThenElse, Stmt, seq

WARP = 32
_ALL = 2**31 - 1  # how many elements a pointer leads to is not for the call to say
_SHORT = {
    **{"fp16": "float16", "f16": "float16", "fp32": "float32", "f32": "float32", "tf32": "float32", "tensorfloat32": "float32"},
    **{"bf16": "bfloat16", "fp64": "float64", ".s8": "int8", "s8": "int8", ".u8": "uint8", "u8": "uint8", "s32": "int32"},
}
_WIDE = {"float16": "float32", "bfloat16": "float32"}  # what sums of a dtype are made in
_ROLES = {"wmma.matrix_a": "a", "wmma.matrix_b": "b", "wmma.accumulator": "c"}
Place = Callable[[PrimExpr], tuple[PrimExpr, PrimExpr]]  # row and column of a thread's element by its number


@dataclass(frozen=True)
class Steps:
    """What a warp does together: `memory` that it has for this, and the statement of each step."""

    memory: tuple[Buffer, ...]
    steps: tuple[Stmt, ...]


def is_fragment(scope: str) -> bool:
    """Whether a scope is that of fragments, which a warp has as a whole."""
    return scope in _ROLES


# Elements of memory


@dataclass(frozen=True)
class _Array:
    """Elements of a dtype behind a pointer, counted from `begin`."""

    buffer: Buffer
    begin: PrimExpr

    def __getitem__(self, index: PrimExpr) -> PrimExpr:
        return BufferLoad(self.buffer, (self.begin + index,))

    def put(self, index: PrimExpr, value: PrimExpr) -> Stmt:
        """The store of an element."""
        return BufferStore(self.buffer, cast(value, self.buffer.dtype), (self.begin + index,))


def _array(call: Call, pointer: PrimExpr, offset: PrimExpr, dtype: str) -> _Array:
    """The elements `offset` behind a pointer: a variable, `tvm_access_ptr` or `address_of`."""
    data: PrimExpr | None = pointer
    if isinstance(pointer, Call) and pointer.op == "tir.tvm_access_ptr":
        data, offset = pointer.args[1], pointer.args[2] + offset
    elif isinstance(pointer, Call) and pointer.op == "tir.address_of" and isinstance(load := pointer.args[0], BufferLoad):
        data, offset = load.buffer.data, load.buffer.elem_offset + load.buffer.offset_of(load.indices)[0] + offset
    element = getattr(getattr(getattr(data, "type_annotation", None), "element_type", None), "dtype", dtype)
    if not isinstance(data, Var) or element != dtype:
        raise LoweringError(f"{call.op} takes a pointer to {dtype} that a buffer has, `tvm_access_ptr` or `address_of`, not {pointer}")
    return _Array(decl_buffer((_ALL,), dtype, data.name, data=data), offset)


def _tile(name: str, size: int, dtype: str) -> _Array:
    """Memory of the warp for as long as a call takes."""
    data = pointer_var(name, dtype, "wmma.accumulator")
    return _Array(decl_buffer((size,), dtype, name, data=data), IntImm("int32", 0))


def _each(count: int, body: Callable[[PrimExpr], Stmt], kind: ForKind = ForKind.SERIAL) -> Stmt:
    if count == 1:
        return body(IntImm("int32", 0))
    each = Var("e", "int32")
    return For(each, IntImm("int32", 0), IntImm("int32", count), kind, body(each))


def _word(arg: PrimExpr) -> str:
    return str(arg.value) if isinstance(arg, StringImm) else str(arg)


def _number(call: Call, arg: PrimExpr, what: str) -> int:
    value = as_int(arg)
    if value is None:
        raise LoweringError(f"{call.op}: {what} is a constant, not {arg}")
    return value


# Tiles


def _along(rows: int, columns: int, lane: PrimExpr, body: Callable[[PrimExpr, PrimExpr], Stmt]) -> Stmt:
    """`body(row, column)` for the run of a tile's elements that a thread has."""
    run = rows * columns // WARP
    across = columns // run
    row, first = floordiv(lane, across), floormod(lane, across) * run
    # Neighbours of a row: vectors, where both sides lie by rows.
    return _each(run, lambda e: body(row, first + e), ForKind.VECTORIZED)


def _products(m: int, n: int, k: int, lane: PrimExpr, a: _Array, b: _Array, sums: _Array) -> Stmt:
    """sums += a b, of tiles by rows."""
    step, wide = Var("k", "int32"), sums.buffer.dtype

    def add(row: PrimExpr, column: PrimExpr) -> Stmt:
        term = cast(a[row * k + step], wide) * cast(b[step * n + column], wide)
        return sums.put(row * n + column, sums[row * n + column] + term)

    return For(step, IntImm("int32", 0), IntImm("int32", k), ForKind.SERIAL, _along(m, n, lane, add))


# Fragments


@dataclass(frozen=True)
class _Fragment:
    role: str
    rows: int
    columns: int
    array: _Array


def _fragment(call: Call, data: PrimExpr, dims: tuple[PrimExpr, ...], index: PrimExpr) -> _Fragment:
    role = _ROLES.get(pointer_scope(data)) if isinstance(data, Var) else None
    if role is None or not isinstance(data, Var):
        raise LoweringError(f"{call.op}: {data} is no fragment; it needs scope {', '.join(_ROLES)}")
    m, n, k = (_number(call, dim, "the shape of a fragment") for dim in dims)
    if any(size % WARP for size in (m * n, m * k, k * n)):
        raise LoweringError(f"{call.op}: no fragments of {m} x {n} x {k}: a warp of {WARP} threads shares none of the tiles evenly")
    rows, columns = {"a": (m, k), "b": (k, n), "c": (m, n)}[role]
    element = data.type_annotation.element_type.dtype if data.type_annotation is not None else call.dtype
    return _Fragment(role, rows, columns, _array(call, data, index * (rows * columns), element))


def _fill(call: Call, lane: PrimExpr) -> Steps:
    data, *dims, index, value = call.args
    one = _fragment(call, data, tuple(dims), index)
    return Steps((), (_along(one.rows, one.columns, lane, lambda i, j: one.array.put(i * one.columns + j, value)),))


def _load(call: Call, lane: PrimExpr) -> Steps:
    one, memory, at = _outside(call)
    return Steps((), (_along(one.rows, one.columns, lane, lambda i, j: one.array.put(i * one.columns + j, memory[at(i, j)])),))


def _store(call: Call, lane: PrimExpr) -> Steps:
    one, memory, at = _outside(call)
    return Steps((), (_along(one.rows, one.columns, lane, lambda i, j: memory.put(at(i, j), one.array[i * one.columns + j])),))


def _outside(call: Call) -> tuple[_Fragment, _Array, Callable[[PrimExpr, PrimExpr], PrimExpr]]:
    """A fragment, the memory that it is loaded from or stored to, and where an element is there."""
    data, *dims, index, pointer, stride, layout = call.args
    one = _fragment(call, data, tuple(dims), index)
    by_rows = {"row_major": True, "col_major": False}.get(_word(layout))
    if by_rows is None:
        raise LoweringError(f'{call.op}: a layout is "row_major" or "col_major", not {_word(layout)}')
    memory = _array(call, pointer, IntImm("int32", 0), one.array.buffer.dtype)
    apart = cast(stride, "int32")
    return one, memory, lambda i, j: i * apart + j if by_rows else j * apart + i


def _multiply(call: Call, lane: PrimExpr, shapes: Mapping[PrimExpr, tuple[PrimExpr, ...]]) -> Steps:
    """tvm_mma_sync of fragments whose shapes are known from the calls that fill, load or store them."""
    parts = [call.args[n : n + 2] for n in range(0, 8, 2)]
    dims = next((shapes[data] for data, _ in parts if data in shapes), None)
    if dims is None:
        raise LoweringError(f"{call.op}: no fragment that it multiplies is filled, loaded or stored anywhere")
    d, a, b, c = (_fragment(call, data, dims, index) for data, index in parts)
    if [one.role for one in (d, a, b, c)] != ["c", "a", "b", "c"]:
        raise LoweringError(f"{call.op} takes an accumulator, a matrix_a, a matrix_b and an accumulator")
    m, n, k, dtype = a.rows, b.columns, a.columns, c.array.buffer.dtype
    sums = _tile("sums", m * n, _WIDE.get(dtype, dtype))
    taken = _along(m, n, lane, lambda i, j: sums.put(i * n + j, c.array[i * n + j]))
    left = _along(m, n, lane, lambda i, j: d.array.put(i * n + j, sums[i * n + j]))
    # One step: a thread needs its own sums alone, and nobody changes factors.
    return Steps((sums.buffer,), (seq(taken, _products(m, n, k, lane, a.array, b.array, sums), left),))


# Registers


def _operand(rows: int, per: int, lane: PrimExpr) -> Place:
    """Where the elements of a left operand are whose registers hold `per`: of a right one, its transpose's."""
    halves = rows // 8

    def place(e: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
        register, part = floordiv(e, per), floormod(e, per)
        eight = floormod(register, halves) * 8
        return floordiv(lane, 4) + eight, floordiv(register, halves) * (4 * per) + floormod(lane, 4) * per + part

    return place


def _result(lane: PrimExpr) -> Place:
    return lambda e: (floordiv(lane, 4) + floordiv(e, 2) * 8, floormod(lane, 4) * 2 + floormod(e, 2))


def _mma(call: Call, lane: PrimExpr) -> Steps:
    shape, layouts = _word(call.args[0]), tuple(map(_word, call.args[1:3]))
    kinds = [_SHORT.get(_word(arg), _word(arg)) for arg in call.args[3:6]]
    found = re.fullmatch(r"m(8|16)n8k(\d+)", shape)
    if found is None or layouts != ("row", "col"):
        raise LoweringError(f"{call.op}: no product {shape} {'.'.join(layouts)}; shapes are m16n8k8 and the like, A is row and B is col")
    m, n, k = int(found[1]), 8, int(found[2])
    a, b, c = (_array(call, call.args[at], call.args[at + 1], kind) for at, kind in zip((6, 8, 10), kinds, strict=True))
    saturates = len(call.args) > 12 and bool(as_int(call.args[12])) and kinds[2] == "int32"
    wide = "int64" if saturates else _WIDE.get(kinds[2], kinds[2])
    left, right, sums = _tile("a", m * k, kinds[0]), _tile("b", k * n, kinds[1]), _tile("sums", m * n, wide)
    places = [_operand(rows, max(1, 4 // parse_dtype(kind).itemsize), lane) for rows, kind in ((m, kinds[0]), (8, kinds[1]))]

    def lie_down(e: PrimExpr, source: _Array, tile: _Array, place: Place, columns: int, turned: bool = False) -> Stmt:
        row, column = reversed(place(e)) if turned else place(e)
        return tile.put(row * columns + column, source[e])

    def pick_up(e: PrimExpr) -> Stmt:
        row, column = _result(lane)(e)
        total = sums[row * n + column]
        if saturates:
            total = minimum(maximum(total, cast(min_value(kinds[2]), wide)), cast(max_value(kinds[2]), wide))
        return c.put(e, total)

    first = seq(
        _each(m * k // WARP, lambda e: lie_down(e, a, left, places[0], k)),
        _each(k * n // WARP, lambda e: lie_down(e, b, right, places[1], n, turned=True)),
        _each(m * n // WARP, lambda e: lie_down(e, c, sums, _result(lane), n)),
    )
    steps = (first, _products(m, n, k, lane, left, right, sums), _each(m * n // WARP, pick_up))
    return Steps((left.buffer, right.buffer, sums.buffer), steps)


def _ldmatrix(call: Call, lane: PrimExpr) -> Steps:
    turned, count = bool(as_int(call.args[0])), _number(call, call.args[1], "the number of matrices")
    itemsize = parse_dtype(call.dtype).itemsize
    if count not in (1, 2, 4) or _word(call.args[2]).removeprefix(".") != "b16" or (turned and itemsize > 2):
        raise LoweringError(f"{call.op} reads 1, 2 or 4 matrices of .b16, not {count} of {_word(call.args[2])}, and turns no {call.dtype}")
    into, source = (_array(call, call.args[at], call.args[at + 1], call.dtype) for at in (3, 5))
    width, per = 16 // itemsize, max(1, 4 // itemsize)  # elements of a row, and of a register
    rows = _tile("rows", 8 * count * width, call.dtype)
    given = _each(width, lambda e: rows.put(lane * width + e, source[e]))
    quarter, eighth = floormod(lane, 4), floordiv(lane, 4)

    def element(register: PrimExpr, e: PrimExpr) -> Stmt:
        row, column = eighth, quarter * per + e
        if turned:  # by halves, whatever they hold
            half = per // 2
            row, column = quarter * 2 + floordiv(e, half), eighth * half + floormod(e, half)
        return into.put(register * per + e, rows[(register * 8 + row) * width + column])

    taken = _each(count, lambda register: _each(per, lambda e: element(register, e)))
    return Steps((rows.buffer,), (IfThenElse(lane < 8 * count, given) if count < 4 else given, taken))


# What a thread does alone


def _fill_registers(call: Call, lane: PrimExpr) -> Stmt:
    """mma_fill: zeros in a thread's part of what the warp holds behind an offset."""
    size, into = _number(call, call.args[0], "the number of registers"), _registers(call, call.args[1], call.args[2], lane, call.args[0])
    return _each(size, lambda e: into.put(e, const(0, call.dtype)))


def _store_registers(call: Call, lane: PrimExpr) -> Stmt:
    """mma_store: sums of 16 x 16 to memory by rows."""
    m, n, pointer, source, offset, stride = call.args
    if (as_int(m), as_int(n)) != (16, 16):
        raise LoweringError(f"{call.op} stores 16 x 16 sums, not {m} x {n}")
    registers, memory = _registers(call, source, offset, lane, IntImm("int32", 8)), _array(call, pointer, IntImm("int32", 0), call.dtype)

    def one(e: PrimExpr) -> Stmt:
        row, column = _result(lane)(floormod(e, 4))
        return memory.put(row * cast(stride, "int32") + floordiv(e, 4) * 8 + column, registers[e])

    return _each(8, one)


def _registers(call: Call, data: PrimExpr, offset: PrimExpr, lane: PrimExpr, count: PrimExpr) -> _Array:
    """A thread's registers: of memory of a warp, the part that it holds."""
    own = isinstance(data, Var) and pointer_scope(data) == "warp"
    return _array(call, data, offset + lane * count if own else offset, call.dtype)


def _turn_bytes(call: Call, lane: PrimExpr) -> Stmt:
    """ptx_ldmatrix of bytes by columns, which no instruction turns: `smem_offset` is how far rows are apart."""
    into, source = _array(call, call.args[3], call.args[4], call.dtype), _array(call, call.args[5], IntImm("int32", 0), call.dtype)
    apart = cast(call.args[6], "int32")

    def one(e: PrimExpr) -> Stmt:
        row = floordiv(floormod(e, 8), 4) * 16 + floormod(lane, 4) * 4 + floormod(e, 4)
        return into.put(e, source[row * apart + floordiv(lane, 4) + floordiv(e, 8) * 8])

    return _each(16, one)


def _copy(call: Call, lane: PrimExpr) -> Stmt:
    """An asynchronous copy, at once; where a condition fails, zeros."""
    into, source = (_array(call, call.args[at], call.args[at + 1], call.dtype) for at in (0, 2))
    size = _number(call, call.args[4], "the size of a copy")
    condition = call.args[5:] if call.op == "tir.ptx_cp_async" else ()
    count = size // parse_dtype(call.dtype).itemsize
    copied = _each(count, lambda e: into.put(e, source[e]))
    return IfThenElse(condition[0], copied, _each(count, lambda e: into.put(e, const(0, call.dtype)))) if condition else copied


def _nothing(call: Call, lane: PrimExpr) -> Stmt:
    return NOP


def _wait(call: Call, lane: PrimExpr) -> Stmt:
    """A wait for an mbarrier: where all threads have come, all have arrived and every copy has landed."""
    return Evaluate(Call("int32", "tir.tvm_storage_sync", (StringImm("shared"),)))


_TOGETHER: Mapping[str, Callable[[Call, PrimExpr], Steps]] = {
    "tir.tvm_fill_fragment": _fill,
    "tir.tvm_load_matrix_sync": _load,
    "tir.tvm_store_matrix_sync": _store,
    "tir.ptx_mma": _mma,
    "tir.ptx_ldmatrix": _ldmatrix,
}
TOGETHER = (*_TOGETHER, "tir.tvm_mma_sync")
"""The calls that all threads of a warp make together."""
_OF_REGISTERS: Mapping[str, Callable[[Call, PrimExpr], Stmt]] = {"tir.mma_fill": _fill_registers, "tir.mma_store": _store_registers}
_ALONE: Mapping[str, Callable[[Call, PrimExpr], Stmt]] = {
    **_OF_REGISTERS,
    "tir.ptx_cp_async": _copy,
    "tir.ptx_cp_async_bulk": _copy,
    "tir.ptx_wait_barrier": _wait,
    **dict.fromkeys(("tir.create_barriers", "tir.ptx_init_barrier_thread_count", "tir.ptx_arrive_barrier"), _nothing),
    **dict.fromkeys(("tir.ptx_arrive_barrier_expect_tx", "tir.ptx_cp_async_barrier", "tir.ptx_fence_proxy_async"), _nothing),
    **dict.fromkeys(("tir.ptx_commit_group", "tir.ptx_wait_group"), _nothing),
}
ALONE = tuple(_ALONE)
"""The calls that a thread makes alone, which `alone` takes apart."""


def _turns_bytes(call: Call) -> bool:
    return call.op == "tir.ptx_ldmatrix" and bool(as_int(call.args[0])) and parse_dtype(call.dtype).bits == 8


def _called(stmt: Node) -> Call | None:
    return stmt.value if isinstance(stmt, Evaluate) and isinstance(stmt.value, Call) else None


def alone(stmt: Stmt, lane: PrimExpr, registers_only: bool = False) -> Stmt:
    """`stmt` without instructions that a thread runs alone: copies and barriers of memory, registers that are filled and stored.

    Args:
        lane: the number of the thread in its warp.
        registers_only: leave those of them that a device of NVIDIA has.

    Raises:
        LoweringError: for operands that are none.
    """
    table = _OF_REGISTERS if registers_only else _ALONE

    def rule(node: Node) -> Node | None:
        call = _called(node)
        if call is None or (call.op not in table and not _turns_bytes(call)):
            return None
        return table[call.op](call, lane) if call.op in table else _turn_bytes(call, lane)

    return post_order_rewrite(stmt, rule)


def together(stmt: Node) -> Call | None:
    """The call that a statement is, if the threads of a warp make it together."""
    call = _called(stmt)
    return call if call is not None and call.op in TOGETHER else None


class WarpUnits:
    """The calls of a kernel as steps of its warps."""

    def __init__(self) -> None:
        self._shapes: dict[PrimExpr, tuple[PrimExpr, ...]] = {}

    def note(self, call: Call) -> None:
        """See a call of the kernel; a product of fragments can be told when those that give it their shape were seen."""
        if call.op != "tir.tvm_mma_sync" and call.op.startswith("tir.tvm_") and isinstance(call.args[0], Var):
            self._shapes.setdefault(call.args[0], call.args[1:4])

    def steps(self, call: Call, lane: PrimExpr) -> Steps:
        """The steps of a call.

        Args:
            lane: the number of a thread in its warp.

        Raises:
            LoweringError: for shapes, dtypes or operands that units don't have.
        """
        return _TOGETHER[call.op](call, lane) if call.op in _TOGETHER else _multiply(call, lane, self._shapes)
