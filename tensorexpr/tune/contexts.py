"""Contexts that are entered by `with`, one within another: the order in which they are asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Context = TypeVar("Context")


def inner_to_outer(innermost: Context, around: Callable[[Context], Sequence[Context]]) -> Iterator[Context]:
    """A context and all around it, from the inside to the outside, each once.

    Args:
        innermost: where to begin.
        around: the contexts in which one was entered; the last is of its innermost entry.
    """
    # `with a, b, a:` leaves a within b and b within a: links between contexts make a circle, which the second visit would walk for ever.
    # What a context doesn't know at first it doesn't know later, so that it is enough to ask it where it stands innermost.
    asked: set[int] = set()
    left = [innermost]
    while left:
        context = left.pop()
        if id(context) not in asked:
            asked.add(id(context))
            yield context
            left += around(context)
