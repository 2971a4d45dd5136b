"""Patterns of several values of a dataflow block, and which of them use which."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from ..expr import Call, DataflowBlock, DataflowVar, Tuple, Var, VarBinding
from ..extents import same_shapes
from ..visitor import walk
from .matcher import Matcher
from .sequence import OPEN, Constraints, current


class PatternContext(Constraints):
    """Patterns that are made in ``with PatternContext() as ctx:`` belong to it, and `ctx.match_dfb` finds values for all of them at once.

    Args:
        incremental: begin with the patterns of the context around.
    """

    def __init__(self, incremental: bool = False) -> None:
        super().__init__()
        if incremental:
            around = current()
            self.edges, self.nodes, self.same_shapes = list(around.edges), dict(around.nodes), list(around.same_shapes)

    def __enter__(self) -> PatternContext:
        OPEN.contexts.append(self)
        return self

    def __exit__(self, *problem: Any) -> None:
        OPEN.contexts.pop()

    @staticmethod
    def current() -> Any:
        """The context that is open.

        Raises:
            DeclarationError: if none is.
        """
        return current()

    def match_dfb(self, dfb: DataflowBlock) -> dict[Any, Var] | None:
        """Variables of a block for the patterns, if there are such for all; the first ones in its order."""
        return next(self.matches(dfb), None)

    def matches(self, dfb: DataflowBlock, excluded: Collection[Var] = ()) -> Iterator[dict[Any, Var]]:
        """All ways to find variables of a block for the patterns; but for what is excluded."""
        block = _Block(dfb)
        # From the ends on: a match there settles the patterns of its operands, for which no variables have to be tried.
        sinks = [node for node in self.nodes if not any(edge.source is node for edge in self.edges)]
        order = [*sinks, *(node for node in self.nodes if node not in sinks)]
        matcher = Matcher(block.values)
        for _ in self._assign(order, 0, block, matcher, excluded):
            yield {pattern: expr for pattern, expr in matcher.found.items() if isinstance(expr, Var)}

    def _assign(self, order: list[Any], number: int, block: _Block, matcher: Matcher, excluded: Collection[Var]) -> Iterator[None]:
        """Every way to match the patterns from `number` on."""
        if not self._fits(block, matcher):
            return
        if number == len(order):
            yield
            return
        node = order[number]
        known = matcher.found.get(node)
        for var in [known] if known is not None else block.variables:
            if var in excluded:
                continue
            before = len(matcher.found)
            if matcher.match(node, var):
                yield from self._assign(order, number + 1, block, matcher, excluded)
            matcher.forget(before)

    def _fits(self, block: _Block, matcher: Matcher) -> bool:
        """Whether what is matched so far is used as it has to be, and all that use or are used are different values."""
        found = matcher.found
        # Three products that share an operand are three values; an operand alone may be any value, one of these too.
        sources = [edge.source for edge in self.edges if not any(edge.source is one for one in getattr(edge.user, "args", ()))]
        ends = dict.fromkeys([*(edge.user for edge in self.edges), *sources])
        values = [found[node] for node in ends if node in found]
        if len({*map(id, values)}) < len(values):
            return False
        for edge in self.edges:
            if edge.source in found and edge.user in found:
                if not block.uses(found[edge.user], found[edge.source], edge.index):
                    return False
                if edge.only and not block.only_used_by(found[edge.source], {found[edge.user]}):
                    return False
        return all(_one_shape([found[one] for one in group if one in found]) for group in self.same_shapes)


class _Block:
    """A dataflow block: what its variables are bound to, and who uses them."""

    def __init__(self, dfb: DataflowBlock) -> None:
        self.values = {binding.var: binding.value for binding in dfb.bindings if isinstance(binding, VarBinding)}
        self._users: dict[Var, list[Any]] = {}
        variables: dict[Var, None] = {}
        for binding in dfb.bindings:
            for node in walk(binding.value):
                if isinstance(node, Var):
                    variables[node] = None
                    self._users.setdefault(node, []).append(binding.var)
            variables[binding.var] = None
        self.variables = list(variables)

    def uses(self, user: Any, source: Any, index: int) -> bool:
        """Whether a value is an argument of another one."""
        value = self.values.get(user)
        args = list(value.args) if isinstance(value, Call) else [] if value is None else list(walk(value))
        if isinstance(value, Call) and len(args) > 1 and isinstance(args[1], Tuple):  # of a function that writes its results
            args = list(args[1].fields)
        if index != -1:
            return index < len(args) and args[index] is source
        return any(node is source for arg in args for node in walk(arg))

    def only_used_by(self, source: Any, users: set[Any]) -> bool:
        """Whether nothing else uses a value."""
        # Others are seen behind the block, where anything may use them.
        return isinstance(source, DataflowVar) and set(self._users.get(source, ())) <= users


def _one_shape(values: list[Any]) -> bool:
    shapes = [getattr(value.struct_info, "extents", None) for value in values]
    if len(shapes) < 2:
        return True
    first = shapes[0]
    return first is not None and all(other is not None and same_shapes(first, other) for other in shapes)
