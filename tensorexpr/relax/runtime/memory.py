"""Where values lie in an arena: two that live at one time never overlap.

Offsets are given out greedily, as in Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference" (2020): values in
some order, each into the gap between those that live with it that it fills best. The best of several orders is kept.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from ...dataclass import dataclass
from ...errors import InternalError

ALIGNMENT = 64
# An arena this close to what lives at one time isn't worth more search; and more values than this aren't placed again and again.
_GOOD = 1.02
_MOST_TRIED = 400
_SHUFFLES = 20


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A value in memory.

    Args:
        size: in bytes.
        first: the step that writes it.
        last: the last step that reads it, no earlier than `first`.
    """

    size: int
    first: int
    last: int

    @property
    def room(self) -> int:
        """The bytes that it takes of an arena."""
        return -(-self.size // ALIGNMENT) * ALIGNMENT

    def meets(self, other: Lifetime) -> bool:
        """Whether both live at one time. A step's operands live with its results."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True)
class Arena:
    """Offsets of values, and the bytes in all."""

    offsets: tuple[int, ...]
    size: int


def largest_sum(values: Sequence[Lifetime]) -> int:
    """The most bytes that live at one time: no arena is smaller."""
    changes: dict[int, int] = {}
    for value in values:
        changes[value.first] = changes.get(value.first, 0) + value.room
        changes[value.last + 1] = changes.get(value.last + 1, 0) - value.room
    most = now = 0
    for step in sorted(changes):
        now += changes[step]
        most = max(most, now)
    return most


def place(values: Sequence[Lifetime]) -> Arena:
    """Offsets, multiples of `ALIGNMENT`, at which values that live at one time don't overlap."""
    bound = largest_sum(values)
    best: Arena | None = None
    for order in _orders(values):
        made = _placed(values, order)
        if best is None or made.size < best.size:
            best = made
        if best.size <= bound * _GOOD:
            break
    found = best or Arena((), 0)
    check(values, found)
    return found


def check(values: Sequence[Lifetime], arena: Arena) -> None:
    """Prove that values which live at one time don't overlap, and that all lie inside.

    Raises:
        InternalError: naming two that do, or one that doesn't.
    """
    events: dict[int, tuple[list[int], list[int]]] = {}
    for n, value in enumerate(values):
        if arena.offsets[n] % ALIGNMENT or arena.offsets[n] < 0 or arena.offsets[n] + value.size > arena.size:
            raise InternalError(f"value {n} of {value.size} bytes at {arena.offsets[n]} lies outside an arena of {arena.size} bytes")
        events.setdefault(value.first, ([], []))[0].append(n)
        events.setdefault(value.last + 1, ([], []))[1].append(n)
    alive: set[int] = set()
    for step in sorted(events):
        born, gone = events[step]
        # Ends are noted one step later, so what ends is gone before the next is born; a step's operands and results do meet.
        alive.difference_update(gone)
        for n in born:
            for other in alive:
                below, above = sorted((n, other), key=lambda one: arena.offsets[one])
                # Of two that are empty, or one, any places do.
                if values[n].size and values[other].size and arena.offsets[below] + values[below].size > arena.offsets[above]:
                    raise InternalError(f"values {below} and {above} live at step {step} and overlap at {arena.offsets[above]}")
            alive.add(n)


def _orders(values: Sequence[Lifetime]) -> Iterator[list[int]]:
    keys: tuple[Callable[[Lifetime], tuple[int, ...]], ...] = (
        lambda v: (-v.room, v.first - v.last),
        lambda v: (v.first - v.last, -v.room),
        lambda v: (-v.room * (v.last - v.first + 1),),
        lambda v: (v.first, -v.room),
    )
    everything = range(len(values))
    by_size = sorted(everything, key=lambda n: keys[0](values[n]))
    yield by_size
    if len(values) > _MOST_TRIED:
        return
    for key in keys[1:]:
        yield sorted(everything, key=lambda n, key=key: key(values[n]))  # type: ignore[misc]
    # A fixed seed: a library that is loaded plans its stretches again, and has to find the offsets that were compiled in.
    chance = random.Random(0)
    for _ in range(_SHUFFLES):  # by size, but for chance
        yield sorted(everything, key=lambda n: -values[n].room * chance.uniform(0.3, 1.0))


def _placed(values: Sequence[Lifetime], order: Sequence[int]) -> Arena:
    offsets = [0] * len(values)
    done: list[int] = []  # by offset
    size = 0
    for n in order:
        value = values[n]
        at = end = 0
        best: tuple[int, int] | None = None  # what is left of the gap, and where it starts
        # By offset, `end` is where the memory below `other` is taken up to: gaps between it and `other` are free for this lifetime.
        for other in done:
            if not value.meets(values[other]):
                continue
            gap = offsets[other] - end
            if gap >= value.room and (best is None or gap - value.room < best[0]):
                best = gap - value.room, end
            end = max(end, offsets[other] + values[other].room)
        at = end if best is None else best[1]
        offsets[n] = at
        size = max(size, at + value.room)
        _insert(done, n, offsets)
    return Arena(tuple(offsets), size)


def _insert(done: list[int], n: int, offsets: Sequence[int]) -> None:
    low, high = 0, len(done)
    while low < high:
        middle = (low + high) // 2
        if offsets[done[middle]] <= offsets[n]:
            low = middle + 1
        else:
            high = middle
    done.insert(low, n)
