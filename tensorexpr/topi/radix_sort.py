"""Unsigned keys put in order by one digit after the other, and runs of keys that are in order merged by several threads."""

from __future__ import annotations

from collections.abc import Callable
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
                behind = before
                for place in places:
                    behind = behind + counts[place]
                behind = ib.let("behind", behind)
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


def sort_by_threads(ib: IRBuilder, keys: BufferVar, size: int, parts: int, emit: Callable[[PrimExpr, PrimExpr], None]) -> None:
    """Sort `size` keys at the begin of a buffer by `parts` threads, a power of two, and call `emit` with each place and its key.

    Each thread sorts a part by its digits. Then neighbouring parts are merged until one is left, every merge cut over the threads, too.

    Args:
        ib: where the loops are built; in no parallel loop.
        keys: twice as many, and one more: passes go from one half to the other, and the end of a run is read beyond.
    """
    index = "int32"

    def bound(n: Any) -> PrimExpr:
        return arithmetic.floordiv(arithmetic.cast(n, "int64") * size, parts).astype(index)

    with ib.for_range(0, parts, "part", kind="parallel") as part:
        begin = ib.let("begin", bound(part))
        length = ib.let("length", bound(part + 1) - begin)
        found = radix_sort(ib, keys, None, begin, length, begin * 2 + size)
        with ib.if_scope(arithmetic.convert(found != begin)), ib.for_range(0, length, "i") as i:
            keys[begin + i] = keys[begin + size + i]
    runs, source = parts, 0
    while runs > 1:
        target, last = size - source, runs == 2

        def write(place: PrimExpr, key: PrimExpr, target: int = target, last: bool = last) -> None:
            if last:
                emit(place, key)
            else:
                keys[place + target] = key

        each = parts // runs * 2  # parts of two runs, and the threads that merge them
        with ib.for_range(0, parts, "part", kind="parallel") as part:
            pair = arithmetic.floordiv(part, each) * each
            begin, middle, end = (ib.let("bound", bound(pair + n)) for n in (0, each // 2, each))
            first, behind = bound(part) - begin, bound(part + 1) - begin
            merge(
                ib,
                keys,
                (source + begin, source + middle, source + end),
                (first, behind),
                lambda k, key, begin=begin, write=write: write(begin + k, key),
            )
        runs, source = runs // 2, target


def merge(
    ib: IRBuilder,
    keys: BufferVar,
    runs: tuple[PrimExpr, PrimExpr, PrimExpr],
    span: tuple[PrimExpr, PrimExpr],
    emit: Callable[[PrimExpr, PrimExpr], None],
) -> None:
    """Some of the keys of two runs in order: those at places from span[0] to span[1], with which `emit` is called.

    Args:
        runs: begin of the first run, end of it and begin of the second one, end of that.
    """
    begin, middle, end = runs
    index = middle.dtype
    first = ib.let("first", span[0])
    at = ib.allocate(index, (2,), "at", scope="local")
    # How many of the first places are the first run's: those whose key is no more than that of the second run which would stand there else.
    at[0], at[1] = arithmetic.maximum(first - (end - middle), const(0, index)), arithmetic.minimum(first, middle - begin)
    with ib.while_loop(at[0] < at[1]):
        half = ib.let("half", arithmetic.floordiv(at[0] + at[1], 2))
        with ib.if_scope(keys[begin + half] <= keys[middle + first - 1 - half]):
            at[0] = half + 1
        with ib.else_scope():
            at[1] = half
    taken_before = ib.let("taken", at[0])
    at[0], at[1] = begin + taken_before, middle + first - taken_before
    with ib.for_range(first, span[1], "k") as k:
        left, right = ib.let("left", keys[at[0]]), ib.let("right", keys[at[1]])
        from_first = arithmetic.any(at[1] >= end, arithmetic.all(at[0] < middle, left <= right))
        is_left = ib.let("is_left", intrin.select(from_first, const(1, index), const(0, index)))
        emit(k, intrin.select(arithmetic.convert(is_left == 1), left, right))
        at[0], at[1] = at[0] + is_left, at[1] + (1 - is_left)
