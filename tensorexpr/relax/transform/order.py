"""TopologicalSort: bindings of dataflow blocks in another order that is as good."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from ...errors import DeclarationError
from ...lower.passes import ModulePass
from ...tir.expr import Var as Symbol
from ..expr import Binding, BindingBlock, DataflowBlock, DataflowVar, MatchCast, Var
from ..struct_info import symbols_of
from ..visitor import Mutator, walk
from .passes import each_function

ORDERS, DIRECTIONS = ("depth-first", "breadth-first"), ("from-inputs", "from-outputs")


def _needs(block: BindingBlock) -> list[list[int]]:
    """For each binding the ones that stand before it in any order: those of its operands and of the symbols that they have."""
    home: dict[Any, int] = {}
    found: list[list[int]] = []
    for number, binding in enumerate(block.bindings):
        nodes = [node for node in walk(binding.value) if isinstance(node, Var)]
        symbols: list[Symbol] = [symbol for node in (*nodes, binding.var) for symbol in symbols_of(node.struct_info)]
        found.append(list(dict.fromkeys(home[node] for node in (*nodes, *symbols) if node in home)))
        home[binding.var] = number
        if isinstance(binding, MatchCast):
            for symbol in symbols_of(binding.struct_info):
                # The first cast that has a symbol gives it its value, later ones check it.
                home.setdefault(symbol, number)
    return found


def _as_ready(needs: Sequence[Sequence[int]], users: Sequence[Sequence[int]], depth_first: bool) -> list[int]:
    """By what has become ready last, or first."""
    missing = [len(own) for own in needs]
    waiting = deque(n for n, count in enumerate(missing) if not count)
    order: list[int] = []
    while waiting:
        number = waiting.popleft()
        order.append(number)
        ready = []
        for user in users[number]:
            missing[user] -= 1
            if not missing[user]:
                ready.append(user)
        if depth_first:
            waiting.extendleft(reversed(ready))
        else:
            waiting.extend(ready)
    return order


def _as_needed(needs: Sequence[Sequence[int]], outputs: Iterable[int]) -> list[int]:
    """What an output needs in front of it."""
    order: dict[int, None] = {}
    # A stack in place of recursion: chains of values are longer than Python's stack is deep.
    stack = [(number, False) for number in reversed([*outputs, *range(len(needs))])]
    while stack:
        number, done = stack.pop()
        if done:
            order[number] = None
        elif number not in order:
            stack.append((number, True))
            stack.extend((one, False) for one in reversed(needs[number]))
    return list(order)


def _sorted(block: BindingBlock, depth_first: bool, from_inputs: bool) -> list[int]:
    """The bindings of a block by their numbers, in the new order."""
    needs = _needs(block)
    users: list[list[int]] = [[n for n, own in enumerate(needs) if number in own] for number in range(len(needs))]
    if from_inputs:
        return _as_ready(needs, users, depth_first)
    if not depth_first:
        # The same on the graph turned round, read from its end.
        return _as_ready(users, needs, False)[::-1]
    return _as_needed(needs, [n for n, binding in enumerate(block.bindings) if not isinstance(binding.var, DataflowVar)])


class _Sorter(Mutator):
    """Orders blocks."""

    def __init__(self, depth_first: bool, from_inputs: bool) -> None:
        super().__init__()
        self._depth_first, self._from_inputs = depth_first, from_inputs

    def block(self, block: BindingBlock) -> BindingBlock:
        """A dataflow block in the new order."""
        if not isinstance(block, DataflowBlock):
            return super().block(block)
        found = _sorted(block, self._depth_first, self._from_inputs)
        bindings: list[Binding] = [block.bindings[n] for n in found]
        return block if found == list(range(len(found))) else DataflowBlock(tuple(bindings))


def TopologicalSort(order: str = "depth-first", direction: str = "from-inputs") -> ModulePass:
    """A pass: bindings of dataflow blocks in an order that decides how long values live.

    Args:
        order: "depth-first": a value is used as soon as it is there; "breadth-first": all that is ready is computed first.
        direction: "from-inputs" or "from-outputs".

    Raises:
        DeclarationError: for other words.
    """
    if order not in ORDERS or direction not in DIRECTIONS:
        raise DeclarationError(f"TopologicalSort: {' or '.join(ORDERS)}, {' or '.join(DIRECTIONS)}; not {order!r}, {direction!r}")
    return each_function("TopologicalSort", lambda func, mod: _Sorter(order == ORDERS[0], direction == DIRECTIONS[0]).function(func))
