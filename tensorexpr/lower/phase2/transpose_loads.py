"""Loads at a stride become loads of neighbours and a transpose in registers.

A run of stores reads a block of memory by columns, one strided vector after the other. Each of them is as slow as its
lanes are many. The same elements are read by rows, and the rows are zipped together, which takes log2(rows) shuffles
for each vector:

    C[0:16]  = A[0:16*S:S]          row_0 = A[0:16], row_1 = A[S:S+16], ..., row_15
    C[16:32] = A[1:1+16*S:S]   ->   column_0, ..., column_15 = transposed(row_0, ..., row_15)
    ...                             C[0:16] = column_0; C[16:32] = column_1; ...

Exactly the elements of the columns are read, so nothing new is touched. It stands after unrolling, which makes the run,
and before promotion: the rows of a local tile are whole registers, its columns aren't.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import is_
from typing import TypeAlias

from ...arith import linear_form
from ...dataclass import dataclass
from ...tir.arithmetic import add
from ...tir.buffer import Buffer
from ...tir.dtype import parse_dtype
from ...tir.expr import And, BufferLoad, Call, IntImm, Or, PrimExpr, Ramp, Shuffle, Var
from ...tir.function import PrimFunc
from ...tir.stmt import BufferStore, LetStmt, SeqStmt, Stmt, seq
from ..context import PassContext
from ..rebuild import map_stmt, operands, own_expressions, with_values
from ..register_file import RegisterFile
from .strided_slots import StridedSlots, in_a_slot, strided_slots
from .wide_lanes import wide_store

# Columns of one transpose: below, the shuffles cost what the strided loads did.
_LEAST = 4
# Shuffles inside blocks of so many bits take their order from the instruction.
_BLOCK_BITS = 128

_Bindings: TypeAlias = "list[tuple[Var, PrimExpr]]"
_Pair: TypeAlias = "tuple[PrimExpr, PrimExpr]"
_Order: TypeAlias = "tuple[int, ...]"


def transpose_loads(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with runs of strided loads as transposes; itself if there are none."""
    registers = RegisterFile.of(func)
    shared = frozenset() if func.attrs.get("tir.noalias", True) else frozenset(b.data for b in func.buffer_map.values())

    slots = strided_slots(func)

    def visit(stmt: Stmt) -> Stmt:
        result = map_stmt(stmt, visit)
        return _sequence(result, registers, shared, slots) if isinstance(result, SeqStmt) else result

    return func.with_body(visit(func.body))


@dataclass(frozen=True)
class _Strided:
    """A strided load: element `offset + stride * lane` behind `base`."""

    load: BufferLoad
    base: tuple[tuple[PrimExpr, int], ...]
    offset: int
    stride: int

    @property
    def lanes(self) -> int:
        """The number of lanes."""
        return parse_dtype(self.load.dtype).lanes

    @property
    def key(self) -> tuple[object, ...]:
        """What the columns of one block have in common."""
        return self.load.buffer, self.base, self.stride, self.lanes


def _strided(load: BufferLoad) -> _Strided | None:
    index = load.indices[0]
    if load.predicate is not None or not isinstance(index, Ramp) or not isinstance(index.stride, IntImm):
        return None
    # Stride 1 is a plain vector load, stride 0 a broadcast.
    if parse_dtype(load.buffer.dtype).lanes > 1 or abs(index.stride.value) < 2:
        return None
    form = linear_form(index.base)
    # Any order that is the same for equal terms will do: equal expressions are one object.
    base = tuple(sorted(form.terms.items(), key=lambda term: id(term[0])))
    return _Strided(load, base, form.constant, index.stride.value)


def _sequence(stmt: SeqStmt, registers: RegisterFile, shared: frozenset[Var], slots: StridedSlots) -> Stmt:
    """The statements with every run of stores looked at by itself: anything else may change what is loaded."""
    parts: list[Stmt] = []
    run: list[BufferStore] = []
    for part in (*stmt.seq, None):
        if isinstance(part, BufferStore) and not _has_effects(part):
            run.append(part)
            continue
        parts.append(_run(run, registers, shared, slots))
        run = []
        if part is not None:
            parts.append(part)
    result = seq(*parts)
    same = isinstance(result, SeqStmt) and len(result.seq) == len(stmt.seq) and all(map(is_, result.seq, stmt.seq))
    return stmt if same else result


def _has_effects(store: BufferStore) -> bool:
    return any(isinstance(node, Call) and node.op in _EFFECTS for node in _nodes(own_expressions(store)))


_EFFECTS = frozenset({"tir.call_extern", "tir.tvm_call_packed", "tir.atomic_add", "tir.no_load_merge"})


def _nodes(exprs: Iterable[PrimExpr], conditional: bool = True) -> Iterable[PrimExpr]:
    """All parts of expressions; without the `conditional` ones those that are evaluated whatever a condition says."""
    stack, seen = list(exprs), set[PrimExpr]()
    while stack:
        expr = stack.pop()
        if expr not in seen:
            seen.add(expr)
            yield expr
            chooses = not conditional and (isinstance(expr, (And, Or)) or (isinstance(expr, Call) and expr.op == "tir.if_then_else"))
            stack.extend(operands(expr)[:1] if chooses else operands(expr))


def _run(stores: Sequence[BufferStore], registers: RegisterFile, shared: frozenset[Var], slots: StridedSlots) -> Stmt:
    """Some stores in a row, with their blocks of strided loads transposed first."""
    if len(stores) < _LEAST:
        return seq(*stores)
    written = {store.buffer.data for store in stores}
    if written & shared:  # arguments that may overlap
        written |= shared
    groups: dict[tuple[object, ...], dict[int, _Strided]] = {}
    for store in stores:
        for node in _nodes(own_expressions(store), conditional=False):  # a row in front of its condition may end past the array
            free = isinstance(node, BufferLoad) and node.buffer.data not in written and not in_a_slot(node, slots)
            found = _strided(node) if free and isinstance(node, BufferLoad) else None
            if found is not None:
                groups.setdefault(found.key, {})[found.offset] = found
    columns: dict[PrimExpr, PrimExpr] = {}
    made_of: dict[PrimExpr, _Bindings] = {}
    for group in groups.values():
        for block in _blocks(group, registers):
            bindings: _Bindings = []
            transposed = _transposed(block, bindings)
            columns.update(transposed)
            made_of.update(dict.fromkeys(transposed, bindings))
    whole = _whole_columns(columns) if registers.masks else {}
    return _bound(stores, columns, made_of, whole) if columns else seq(*stores)


def _whole_columns(columns: dict[PrimExpr, PrimExpr]) -> dict[PrimExpr, PrimExpr]:
    """The registers of which odd numbers of first lanes are columns."""
    whole = {}
    for load, column in columns.items():
        lanes = parse_dtype(column.dtype).lanes
        # Three lanes are cut out of a register of four; a store under a mask can take all four.
        if lanes & (lanes - 1) and isinstance(column, Shuffle) and len(column.vectors) == 1 and column.indices[0] == 0:
            whole[load] = column.vectors[0]
    return whole


def _bound(
    stores: Sequence[BufferStore], columns: dict[PrimExpr, PrimExpr], made_of: dict[PrimExpr, _Bindings], whole: dict[PrimExpr, PrimExpr]
) -> Stmt:
    """The stores, with each block transposed in front of the first that wants it: two blocks at once don't fit the registers."""
    result: list[Stmt] = []
    bound: set[int] = set()
    wanted: list[list[_Bindings]] = []
    for store in stores:
        wanted.append([])
        for node in _nodes(own_expressions(store)):
            bindings = made_of.get(node) if isinstance(node, BufferLoad) else None
            if bindings is not None and id(bindings) not in bound:
                bound.add(id(bindings))
                wanted[-1].append(bindings)
    # From the last on: a let is around all that follows, so a block's bindings reach every later store that reads its columns.
    for store, blocks in zip(reversed(stores), reversed(wanted), strict=True):
        widened = wide_store(store, whole) if any(node in whole for node in _nodes(own_expressions(store))) else None
        result.insert(0, widened or with_values(store, columns))
        for var, value in reversed([binding for bindings in blocks for binding in bindings]):
            result = [LetStmt(var, value, seq(*result))]
    return seq(*result)


def _blocks(group: dict[int, _Strided], registers: RegisterFile) -> Iterable[list[_Strided]]:
    """Runs of neighbouring columns of as many elements as a register holds, or half, or a quarter."""
    some = next(iter(group.values()))
    most = registers.bits // parse_dtype(some.load.buffer.dtype).bits
    if not _LEAST <= some.lanes <= most:
        return
    offsets = sorted(group)
    start = 0
    while start < len(offsets):
        end = start + 1
        # At most a stride: column S is column 0 one lane on, and rows of more elements would overlap.
        while end < len(offsets) and offsets[end] == offsets[start] + end - start and end - start < abs(some.stride):
            end += 1
        length = end - start
        for size in (most, most // 2, most // 4):
            # Largest first: of 11 columns with registers of 8, eight are a block, and three stay strided.
            while size >= _LEAST and length >= size:
                yield [group[offset] for offset in offsets[start : start + size]]
                start, length = start + size, length - size
        start += length


def _transposed(block: Sequence[_Strided], bindings: _Bindings) -> dict[PrimExpr, PrimExpr]:
    """The columns of a block by their loads; what they are made of is appended to `bindings`."""
    first = block[0]
    lanes, width = first.lanes, len(block)
    buffer: Buffer = first.load.buffer
    index = first.load.indices[0]
    assert isinstance(index, Ramp)
    step = IntImm(index.stride.dtype, 1)

    def bind(name: str, value: PrimExpr) -> Var:
        var = Var(name, value.dtype)
        bindings.append((var, value))
        return var

    # Lane n of every column of the block lies in row n: one load along memory for each lane in place of a gather for each column.
    rows = [
        bind("row", BufferLoad(buffer, (Ramp(add(index.base, IntImm(index.base.dtype, lane * first.stride)), step, width),)))
        for lane in range(lanes)
    ]
    # Zipping halves needs a power of two; the rows that fill it up are copies, whose lanes nobody takes.
    count = 1 << (lanes - 1).bit_length()
    padded: list[PrimExpr] = [*rows, *[rows[-1]] * (count - lanes)]
    if count == width:
        block_lanes = max(1, _BLOCK_BITS // parse_dtype(buffer.dtype).bits)
        square = _square(padded, block_lanes, lambda pair, order: bind("zipped", Shuffle(pair, order)))
        return {column.load: _column(square[number : number + 1], 0, lanes, width) for number, column in enumerate(block)}
    # The perfect shuffle: log2(count) rounds of it turn rows into columns, whatever the width.
    # Lane n of the first vector, then lane n of the second: the lower halves, then the upper ones.
    low = tuple(part for n in range(width // 2) for part in (n, width + n))
    high = tuple(part for n in range(width // 2, width) for part in (n, width + n))
    for _ in range(count.bit_length() - 1):
        half = count // 2
        padded = [bind("zipped", Shuffle((padded[number], padded[number + half]), side)) for number in range(half) for side in (low, high)]
    return {column.load: _column(padded, number * count, lanes, width) for number, column in enumerate(block)}


def _square(rows: Sequence[PrimExpr], block: int, shuffled: Callable[[_Pair, _Order], PrimExpr]) -> list[PrimExpr]:
    """The columns of as many rows as each has elements.

    Every shuffle zips two rows inside blocks of `block` lanes or moves whole blocks. Those are x86's cheap ones, as they
    need no vector of indices in a register.
    """
    count = len(rows)
    vectors = list(rows)
    # What lies in each lane. It is shuffled along, and says in the end which vector is which column.
    content = [[(row, column) for column in range(count)] for row in range(count)]
    distance = 1
    while distance < count:
        orders = _zip_orders(count, block, distance) if distance < block else _block_orders(count, block)
        for first in range(count):
            if first & distance:
                continue
            pair = (vectors[first], vectors[first + distance])
            joined = content[first] + content[first + distance]
            for place, order in zip((first, first + distance), orders, strict=True):
                vectors[place] = shuffled(pair, order)
                content[place] = [joined[lane] for lane in order]
        distance *= 2
    # Shuffles inside of blocks leave the vectors in another order than that of the columns.
    by_column = {places[0][1]: vector for places, vector in zip(content, vectors, strict=True)}
    return [by_column[column] for column in range(count)]


def _zip_orders(count: int, block: int, unit: int) -> tuple[_Order, _Order]:
    """Lanes of two vectors zipped in units, of the lower and of the upper half of every block."""
    block = min(block, count)
    low = [
        vector * count + start + place + lane
        for start in range(0, count, block)
        for place in range(0, block // 2, unit)
        for vector in (0, 1)
        for lane in range(unit)
    ]
    return tuple(low), tuple(lane + block // 2 for lane in low)


def _block_orders(count: int, block: int) -> tuple[_Order, _Order]:
    """The even and the odd blocks of two vectors."""
    even = [start + lane for start in range(0, 2 * count, 2 * block) for lane in range(block)]
    return tuple(even), tuple(lane + block for lane in even)


def _column(vectors: Sequence[PrimExpr], start: int, lanes: int, width: int) -> PrimExpr:
    """`lanes` elements from `start` on of vectors that stand one behind the other."""
    # Where lanes and width differ a column may straddle two vectors.
    first, last = start // width, (start + lanes - 1) // width
    skip = start - first * width
    if first == last and skip == 0 and lanes == width:
        return vectors[first]
    return Shuffle(tuple(vectors[first : last + 1]), tuple(range(skip, skip + lanes)))
