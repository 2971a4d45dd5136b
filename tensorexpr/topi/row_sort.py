"""How one row is put in order: by the ranks of its elements if it is short, else by their digits (radix sort).

Both are stable, count NaN as larger than every number, and have no branch that depends on the elements. Ranks compare all pairs, a
vector at a time; digits take a number of passes that doesn't grow with the row, but each of them counts 256 values.
"""

from __future__ import annotations

from collections.abc import Callable

from ..tir import arithmetic, intrin
from ..tir.arithmetic import const
from ..tir.dtype import parse_dtype
from ..tir.expr import PrimExpr
from ..tir.ir_builder import BufferVar, IRBuilder
from .radix_sort import radix_sort, sort_by_parts
from .rows import Rows

Emit = Callable[[PrimExpr, PrimExpr, PrimExpr], None]

_SHORT = 128  # elements: from here on comparing all pairs takes longer than counting digits
_LANES = 16  # of the comparisons; wider than a register is several of them
_HANDFUL = 16  # elements that are kept in order one by one
_BATCH = 256  # candidates for the first few: from here on sorting them costs about the same for each


def sort_row(ib: IRBuilder, rows: Rows, row: PrimExpr, length: PrimExpr, is_ascend: bool, emit: Emit) -> None:
    """Call `emit` with each place of a sorted row, the value there, and where it came from; equal elements keep their order.

    Args:
        ib: where the loops are built.
        rows: the rows.
        row: which of them.
        length: how many of its elements take part; the others are not read.
        is_ascend: the smallest first.
        emit: makes what is done with each element in turn.
    """
    size, index = arithmetic.as_int(rows.length), rows.length.dtype
    length = length.astype(index)
    if size is not None and size <= _SHORT:
        origin = _rank_sort(ib, rows, row, size, length, is_ascend)
        begin: PrimExpr = const(0, index)
    else:
        keys, origin = _key_buffers(ib, rows, rows.length)
        with ib.for_range(0, length, "i") as i:
            keys[i], origin[i] = key_of(rows.load(row, i), is_ascend), i
        begin = radix_sort(ib, keys, origin, const(0, index), length, rows.length, size)
    with ib.for_range(0, length, "i") as i:
        # Read again: keys don't tell zeros of both signs or NaNs apart.
        emit(i, rows.load(row, origin[begin + i]), origin[begin + i])


def sort_values(ib: IRBuilder, rows: Rows, row: PrimExpr, is_ascend: bool, emit: Callable[[PrimExpr, PrimExpr], None]) -> None:
    """`sort_row` where nobody asks where the elements came from: long rows move nothing but keys, which tell the values."""
    size = arithmetic.as_int(rows.length)
    # Values come back by a reinterpretation of keys, so these have to be as wide as the elements.
    if (size is not None and size <= _SHORT) or not is_sorted_by_keys(rows.buffer.dtype):
        sort_row(ib, rows, row, rows.length, is_ascend, lambda i, value, _: emit(i, value))
        return
    keys, _ = _key_buffers(ib, rows, rows.length)
    with ib.for_range(0, rows.length, "i") as i:
        # With one key for both zeros each -0.0 would come back as 0.0.
        keys[i] = key_of(rows.load(row, i), is_ascend, zeros_differ=True)
    begin = radix_sort(ib, keys, None, const(0, rows.length.dtype), rows.length, rows.length, size)
    with ib.for_range(0, rows.length, "i") as i:
        emit(i, _value(keys[begin + i], rows.buffer.dtype, is_ascend))


def sort_values_by_parts(
    ib: IRBuilder, rows: Rows, row: PrimExpr, parts: int, is_ascend: bool, emit: Callable[[PrimExpr, PrimExpr], None]
) -> None:
    """`sort_values` of one long row in so many parts, a power of two, by all threads; in no parallel loop."""
    size, dtype = arithmetic.as_int(rows.length), rows.buffer.dtype
    assert size is not None
    keys = ib.allocate(f"uint{parse_dtype(dtype).bits}", (2 * size + 2,), "keys")
    with ib.for_range(0, size, "i", kind="parallel") as i:
        keys[i + 1] = key_of(rows.load(row, i), is_ascend, zeros_differ=True)
    sort_by_parts(ib, keys, size, parts, lambda i, key: emit(i, _value(key, dtype, is_ascend)))


def is_sorted_by_keys(dtype: str) -> bool:
    """True if a key has the bits of one value, which it is made of again."""
    return key_dtype(dtype) == dtype


def first_of_row(ib: IRBuilder, rows: Rows, row: PrimExpr, count: PrimExpr, is_ascend: bool, emit: Emit) -> None:
    """`sort_row`, of which only the first `count` elements are wanted.

    A handful is kept in order while the row goes by: what is smaller than the last of it moves those behind its place. Few of many: a
    batch of candidates is sorted, and what follows in the row is compared with the last wanted one of them. What is smaller joins the
    batch, in place of those that aren't wanted; when it is full it is sorted again. Of n elements in random order about
    `count * log(n / count)` join it.
    """
    size, wanted, index = arithmetic.as_int(rows.length), arithmetic.as_int(count), rows.length.dtype
    if size is not None and wanted is not None and 0 < wanted <= min(_HANDFUL, size - 1):
        _insert_first(ib, rows, row, size, wanted, is_ascend, emit)
        return
    # Each sort leaves at least three quarters of the batch free for those that join.
    batch = max(_BATCH, 4 * wanted) if wanted is not None else 0
    # Where one batch holds the row there is nothing to leave out.
    if size is None or wanted is None or batch >= size:

        def emit_first(i: PrimExpr, value: PrimExpr, place: PrimExpr) -> None:
            with ib.if_scope(i < count):
                emit(i, value, place)

        sort_row(ib, rows, row, rows.length, is_ascend, emit_first)
        return
    keys, origin = _key_buffers(ib, rows, const(batch, index))
    state = ib.allocate(index, (2,), "candidates", scope="local")  # how many there are, and where the half begins that holds them
    worst = ib.allocate(keys.dtype, (1,), "worst", scope="local")
    with ib.for_range(0, batch, "i", dtype=index) as i:
        keys[i], origin[i] = key_of(rows.load(row, i), is_ascend), i
    state[0], state[1] = const(batch, index), const(0, index)

    def settle() -> None:
        state[1] = radix_sort(ib, keys, origin, state[1], state[0], const(batch, index), batch)
        state[0] = const(wanted, index)
        worst[0] = keys[state[1] + (wanted - 1)]

    settle()
    with ib.for_range(batch, size, "i", dtype=index) as i:
        key = ib.let("key", key_of(rows.load(row, i), is_ascend))
        # Not `<=`: of equal elements the first ones stay, as in a stable sort.
        with ib.if_scope(key < worst[0]):
            keys[state[1] + state[0]] = key
            origin[state[1] + state[0]] = i
            state[0] = state[0] + 1
            with ib.if_scope(state[0] == batch):
                settle()
    settle()
    with ib.for_range(0, wanted, "i", dtype=index) as i:
        emit(i, rows.load(row, origin[state[1] + i]), origin[state[1] + i])


def _insert_first(ib: IRBuilder, rows: Rows, row: PrimExpr, size: int, wanted: int, is_ascend: bool, emit: Emit) -> None:
    """`first_of_row` of so few that each one finds its place by going along those that are there."""
    index = rows.length.dtype
    bits = parse_dtype(key_dtype(rows.buffer.dtype)).bits
    keys = ib.allocate(f"uint{bits}", (wanted + 1,), "keys", scope="local")
    origin = ib.allocate(index, (wanted + 1,), "origin", scope="local")
    place = ib.allocate(index, (1,), "place", scope="local")
    keys[0] = const(0, keys.dtype)  # nothing is smaller: it ends each search

    def insert(i: PrimExpr, key: PrimExpr, last: PrimExpr) -> None:
        place[0] = last
        # Not `>=`: of equal elements the first ones stay, as in a stable sort.
        with ib.while_loop(keys[place[0] - 1] > key):
            keys[place[0]], origin[place[0]] = keys[place[0] - 1], origin[place[0] - 1]
            place[0] = place[0] - 1
        keys[place[0]], origin[place[0]] = key, i

    with ib.for_range(0, wanted, "i", dtype=index) as i:
        insert(i, ib.let("key", key_of(rows.load(row, i), is_ascend)), i + 1)
    with ib.for_range(wanted, size, "i", dtype=index) as i:
        key = ib.let("key", key_of(rows.load(row, i), is_ascend))
        with ib.if_scope(key < keys[wanted]):
            insert(i, key, const(wanted, index))
    with ib.for_range(0, wanted, "i", dtype=index) as i:
        emit(i, rows.load(row, origin[i + 1]), origin[i + 1])


def key_dtype(dtype: str) -> str:
    """The dtype whose bits are taken for keys: the narrowest that holds all values and has 8, 16, 32 or 64 bits."""
    kind = parse_dtype(dtype)
    if kind.is_float:
        return dtype if dtype in ("float16", "bfloat16", "float32", "float64") else "float32"
    if kind.is_int and kind.bits in (8, 16, 32, 64):
        return dtype
    return "int8" if kind.is_int and kind.is_signed else "uint8"


def key_of(value: PrimExpr, is_ascend: bool, zeros_differ: bool = False) -> PrimExpr:
    """An unsigned integer for each element, in the same order: -2, -1, 0, 1 (int8) are 126, 127, 128, 129.

    Bits of floats grow with their magnitude, so those of negative numbers are inverted and the others follow them. Zeros of
    both signs are equal, so they have one key (unless `zeros_differ`); NaN of any bits has the last.
    """
    value = value.astype(key_dtype(value.dtype))
    kind = parse_dtype(value.dtype)
    unsigned = f"uint{kind.bits}"
    sign, ones = const(1 << (kind.bits - 1), unsigned), const((1 << kind.bits) - 1, unsigned)
    key = intrin.reinterpret(unsigned, value)
    if kind.is_float:
        is_nan, is_zero = intrin.isnan(value), value == const(0, value.dtype)
        key = intrin.select(key >= sign, ones - key, key | sign)
        key = key if zeros_differ else intrin.select(is_zero, sign, key)
        key = intrin.select(is_nan, ones, key)
    elif kind.is_signed:
        key = key ^ sign
    return key if is_ascend else ones - key


def _value(key: PrimExpr, dtype: str, is_ascend: bool) -> PrimExpr:
    """The element that has a key among zeros that differ."""
    kind = parse_dtype(dtype)
    sign, ones = const(1 << (kind.bits - 1), key.dtype), const((1 << kind.bits) - 1, key.dtype)
    key = key if is_ascend else ones - key
    if kind.is_float:
        key = intrin.select(key >= sign, key ^ sign, ones - key)
    elif kind.is_signed:
        key = key ^ sign
    return intrin.reinterpret(dtype, key)


def _key_buffers(ib: IRBuilder, rows: Rows, size: PrimExpr) -> tuple[BufferVar, BufferVar]:
    """Keys and where they came from, two halves each: passes go from one to the other."""
    bits = parse_dtype(key_dtype(rows.buffer.dtype)).bits
    return ib.allocate(f"uint{bits}", (size * 2,), "keys"), ib.allocate(rows.length.dtype, (size * 2,), "origin")


def _rank_sort(ib: IRBuilder, rows: Rows, row: PrimExpr, size: int, length: PrimExpr, is_ascend: bool) -> BufferVar:
    """Where the elements of a short sorted row came from: the rank of each is how many stand before it.

    Of [5, 3, 5] the ranks are [1, 0, 2]: an equal element counts if it comes first. What is behind the end has the largest key.
    """
    index = rows.length.dtype
    padded = -(-size // _LANES) * _LANES
    bits = parse_dtype(key_dtype(rows.buffer.dtype)).bits
    keys = ib.allocate(f"uint{bits}", (padded,), "keys")
    rank, origin = ib.allocate("int32", (_LANES,), "rank", scope="local"), ib.allocate(index, (size,), "origin")
    with ib.for_range(0, length, "i") as i:
        keys[i] = key_of(rows.load(row, i), is_ascend)
    with ib.for_range(length, padded, "i") as i:
        keys[i] = const((1 << bits) - 1, keys.dtype)
    with ib.for_range(0, padded // _LANES, "vector", dtype=index) as vector:
        with ib.for_range(0, _LANES, "lane", dtype=index, kind="vectorize") as lane:
            rank[lane] = const(0, "int32")
        with ib.for_range(0, length, "other") as other:
            key = ib.let("key", keys[other])
            with ib.for_range(0, _LANES, "lane", dtype=index, kind="vectorize") as lane:
                place = vector * _LANES + lane
                first = arithmetic.any(key < keys[place], arithmetic.all(key == keys[place], other < place))
                rank[lane] = rank[lane] + first.astype("int32")
        with ib.for_range(0, _LANES, "lane", dtype=index) as lane, ib.if_scope(vector * _LANES + lane < length):
            origin[rank[lane]] = vector * _LANES + lane
    return origin
