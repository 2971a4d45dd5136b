"""Unsigned keys put in order by one digit after the other, and runs of keys that are in order merged by several threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..tir import arithmetic, intrin
from ..tir.arithmetic import const
from ..tir.dtype import parse_dtype
from ..tir.expr import PrimExpr
from ..tir.ir_builder import BufferVar, IRBuilder

_DIGIT = 8  # bits: the counters of a pass stay in the first cache, as do the lines that it writes to
_VALUES = 1 << _DIGIT
_FROM_BOTH_ENDS = 2048  # keys: of fewer, as many counters again cost more to clear and to add up than is won


def radix_sort(
    ib: IRBuilder, keys: BufferVar, origin: BufferVar | None, begin: PrimExpr, length: PrimExpr, both: PrimExpr, most: int | None = None
) -> PrimExpr:
    """Sort keys, the lowest digit first; where the half begins that holds the result.

    A digit that all keys share takes no pass: small numbers in wide integers cost what they would in narrow ones.

    Args:
        ib: where the loops are built.
        keys: passes go from one half of it to the other.
        origin: what moves with the keys, in halves at the same places.
        begin: where the half begins that holds the keys.
        length: how many there are.
        both: the begins of both halves, added.
        most: no less than `length`, where that is known.
    """
    index, digits = both.dtype, parse_dtype(keys.dtype).bits // _DIGIT
    # A count waits for the one before it if both are of one value. So the second half of the keys is counted and moved from its end.
    ends = 2 if most is None or most >= _FROM_BOTH_ENDS else 1
    counts = ib.allocate(index, (ends * digits * _VALUES,), "counts")
    state = ib.allocate(index, (2,), "state", scope="local")  # where the half begins that holds the keys, and a running sum
    state[0] = begin
    with ib.for_range(0, ends * digits * _VALUES, "i", dtype=index) as i:
        counts[i] = const(0, index)

    def count(i: PrimExpr, end: int) -> None:
        key = ib.let("key", keys[state[0] + i])
        # All digits in one pass: how often a digit occurs doesn't depend on the order that passes change.
        for position in range(digits):
            place = ib.let("place", (end * digits + position) * _VALUES + _digit(key, const(position, index), index))
            counts[place] = counts[place] + 1

    _from_ends(ib, length, ends, count)
    with ib.for_range(0, digits, "number", dtype=index) as number:
        first = ib.let("first", number * _VALUES + _digit(keys[state[0]], number, index))
        found = counts[first] if ends == 1 else counts[first] + counts[digits * _VALUES + first]
        with ib.if_scope(arithmetic.all(length > 1, arithmetic.logical_not(arithmetic.convert(found == length)))):
            state[1] = const(0, index)
            with ib.for_range(0, _VALUES, "value", dtype=index) as value:
                # Counts become places: the first half's keys of a value go from its begin on, the second half's from its end back.
                places = [(end * digits + number) * _VALUES + value for end in range(ends)]
                before = ib.let("before", state[1])
                total: PrimExpr = before
                for place in places:
                    total = total + counts[place]
                behind = ib.let("behind", total)
                for place, bound in zip(places, (before, behind), strict=False):
                    counts[place] = bound
                state[1] = behind
            # A name for the value of now: state[0] changes below, and the other half then begins at both - source.
            source = ib.let("source", state[0])

            def move(i: PrimExpr, end: int, number: PrimExpr = number, source: PrimExpr = source) -> None:
                key = ib.let("key", keys[source + i])
                place = ib.let("place", (end * digits + number) * _VALUES + _digit(key, number, index))
                target = ib.let("target", counts[place] - end)
                counts[place] = target + (1 - end)
                keys[both - source + target] = key
                if origin is not None:
                    origin[both - source + target] = origin[source + i]

            _from_ends(ib, length, ends, move)
            state[0] = both - source
    return state[0]


def _from_ends(ib: IRBuilder, length: PrimExpr, ends: int, visit: Callable[[PrimExpr, int], None]) -> None:
    """Visit all places in order; of two ends, those of the first half in order and those of the second half in reverse, in turn."""
    each = length if ends == 1 else arithmetic.floordiv(length, 2)
    with ib.for_range(0, each, "i", dtype=length.dtype) as i:
        visit(i, 0)
        if ends == 2:
            visit(length - 1 - i, 1)
    if ends == 2:
        with ib.if_scope(arithmetic.convert(each * 2 < length)):
            visit(each, 0)


def _digit(key: PrimExpr, number: PrimExpr, index: str) -> PrimExpr:
    """A digit of a key, the lowest is number 0."""
    return ((key >> (number * _DIGIT).astype(key.dtype)) & const(_VALUES - 1, key.dtype)).astype(index)


def sort_by_parts(ib: IRBuilder, keys: BufferVar, size: int, parts: int, emit: Callable[[PrimExpr, PrimExpr], None]) -> None:
    """Sort `size` keys and call `emit` with each place and its key.

    Threads sort parts by their digits, each in a nearer cache than all of them would fit. Then neighbours are merged until one is left, and
    every merge is cut over the threads, too.

    Args:
        ib: where the loops are built; in no parallel loop.
        keys: a key that is never used, those to sort, as many again, and another one.
        size: how many there are.
        parts: a power of two.
    """
    index, halves = "int32", (1, 1 + size)

    def bound(n: Any) -> PrimExpr:
        return arithmetic.floordiv(arithmetic.cast(n, "int64") * size, parts).astype(index)

    with ib.for_range(0, parts, "part", kind="parallel") as part:
        begin = ib.let("begin", bound(part) + halves[0])
        length = ib.let("length", bound(part + 1) + halves[0] - begin)
        found = radix_sort(ib, keys, None, begin, length, begin * 2 + size)
        with ib.if_scope(arithmetic.convert(found != begin)), ib.for_range(0, length, "i") as i:
            keys[begin + i] = keys[begin + size + i]
    runs = parts
    while runs > 1:
        source, target = halves
        each = parts // runs * 2  # parts in two runs, and the threads that merge these

        def write(place: PrimExpr, key: PrimExpr, target: int | None = target if runs > 2 else None) -> None:
            if target is None:
                emit(place, key)
            else:
                keys[place + target] = key

        with ib.for_range(0, parts, "part", kind="parallel") as part:
            pair = arithmetic.floordiv(part, each) * each
            begin, middle, end = (ib.let("bound", bound(pair + n)) for n in (0, each // 2, each))
            span = bound(part) - begin, bound(part + 1) - begin
            merge(ib, keys, (source + begin, source + middle, source + end), span, partial(_moved, write, begin))
        runs, halves = runs // 2, (target, source)


def _moved(write: Callable[[PrimExpr, PrimExpr], None], begin: PrimExpr, place: PrimExpr, key: PrimExpr) -> None:
    write(begin + place, key)


def merge(
    ib: IRBuilder,
    keys: BufferVar,
    runs: tuple[PrimExpr, PrimExpr, PrimExpr],
    span: tuple[PrimExpr, PrimExpr],
    emit: Callable[[PrimExpr, PrimExpr], None],
) -> None:
    """Some of the keys of two runs in order: those at places from span[0] to span[1], with which `emit` is called.

    From both ends, as each step waits for the key that the one before it has chosen.

    Args:
        runs: begin of the first run, end of it and begin of the second one, end of that. A key in front of and behind them can be read.
    """
    begin, middle, end = runs
    index, most = middle.dtype, (1 << parse_dtype(keys.dtype).bits) - 1
    first, behind = ib.let("first", span[0]), ib.let("behind", span[1])
    low, high = _split(ib, keys, runs, first), _split(ib, keys, runs, behind)
    # Where each end stands in the first run and in the second one.
    at = ib.allocate(index, (4,), "at", scope="local")
    at[0], at[1] = begin + low, middle + first - low
    at[2], at[3] = begin + high - 1, middle + behind - high - 1

    def step(k: PrimExpr, is_back: bool) -> None:
        i, j = (at[2], at[3]) if is_back else (at[0], at[1])
        # Keys that nothing passes stand at the ends of the runs: of equal keys it doesn't matter which is taken.
        limit = const(0 if is_back else most, keys.dtype)
        left = ib.let("left", intrin.select(i >= begin if is_back else i < middle, keys[i], limit))
        right = ib.let("right", intrin.select(j >= middle if is_back else j < end, keys[j], limit))
        chosen = left > right if is_back else left <= right
        is_left = ib.let("is_left", arithmetic.convert(chosen).astype(index))
        emit(k, (arithmetic.maximum if is_back else arithmetic.minimum)(left, right))
        if is_back:
            at[2], at[3] = at[2] - is_left, at[3] - (1 - is_left)
        else:
            at[0], at[1] = at[0] + is_left, at[1] + (1 - is_left)

    half = ib.let("half", arithmetic.floordiv(behind - first, 2))
    with ib.for_range(0, half, "k") as k:
        step(first + k, False)
        step(behind - 1 - k, True)
    with ib.if_scope(arithmetic.convert(first + half * 2 < behind)):
        step(first + half, False)


def _split(ib: IRBuilder, keys: BufferVar, runs: tuple[PrimExpr, PrimExpr, PrimExpr], count: PrimExpr) -> PrimExpr:
    """How many of the first `count` keys in order are of the first run, whose keys go in front of equal ones."""
    begin, middle, end = runs
    range_ = ib.allocate(middle.dtype, (2,), "range", scope="local")
    range_[0], range_[1] = arithmetic.maximum(count - (end - middle), const(0, middle.dtype)), arithmetic.minimum(count, middle - begin)
    with ib.while_loop(range_[0] < range_[1]):
        half = ib.let("half", arithmetic.floordiv(range_[0] + range_[1], 2))
        with ib.if_scope(keys[begin + half] <= keys[middle + count - 1 - half]):
            range_[0] = half + 1
        with ib.else_scope():
            range_[1] = half
    return ib.let("split", range_[0])
