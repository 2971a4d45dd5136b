"""Values of a block that match the fields of a tuple together, as what several values are computed from at once.

a = R.matmul(x, wa)                                   t = R.split(R.matmul(x, R.concat([wa, wb], axis=1)), 2, axis=1)
b = R.matmul(x, wb)                               ->  a = t[0]
                                                      b = t[1]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..analysis import is_pure
from ..expr import Binding, BindingBlock, DataflowBlock, DataflowVar, Tuple, TupleGetItem, Var, VarBinding
from ..visitor import walk
from .matcher import Matcher
from .pattern import DFPattern, TuplePattern, WildcardPattern


def is_joint(pattern: DFPattern) -> bool:
    """Whether a pattern is a tuple of at least two values that are computed."""
    return isinstance(pattern, TuplePattern) and len(pattern) > 1 and not any(isinstance(one, WildcardPattern) for one in pattern.fields)


def rewritten(
    block: BindingBlock, pattern: Any, replaced: Callable[[Any, Mapping[Any, Any]], Any], values: Mapping[Var, Any]
) -> tuple[BindingBlock, Var] | None:
    """A block in which the first values that match together are fields of one value, and the variable of that; None if none do.

    Args:
        block: what is rewritten; new values in it may nest.
        pattern: of a tuple.
        replaced: from the tuple of the values and what the parts of the pattern match to the new value; None leaves them.
        values: what variables in front of the block are bound to.
    """
    bindings = block.bindings
    known = {**values, **{one.var: one.value for one in bindings if isinstance(one, VarBinding)}}
    for places, matched in _matches(Matcher(known), pattern, pattern.fields, bindings, ()):
        variables = [bindings[place].var for place in places]
        new = replaced(Tuple(tuple(variables)), matched)
        place = None if new is None else _place(bindings, places, new)
        if place is not None:
            kind = DataflowVar if isinstance(block, DataflowBlock) else Var
            whole = kind("_".join(var.name_hint for var in variables), new.struct_info)
            made = [VarBinding(whole, new), *(VarBinding(var, TupleGetItem(whole, number)) for number, var in enumerate(variables))]
            kept = [[one for n, one in enumerate(bindings) if n not in places and (n < place) is before] for before in (True, False)]
            return type(block)((*kept[0], *made, *kept[1])), whole
    return None


def _matches(
    matcher: Matcher, pattern: Any, left: Sequence[DFPattern], bindings: Sequence[Binding], places: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], Mapping[Any, Any]]]:
    """The places of bindings that match the patterns that are left, each one of its own, with what all parts match."""
    if not left:
        found = {one: matcher._bound[one] if one.by_value else expr for one, expr in matcher.found.items()}
        yield places, {**found, pattern: Tuple(tuple(bindings[place].var for place in places))}
        return
    for place, binding in enumerate(bindings):
        if place in places or not isinstance(binding, VarBinding) or isinstance(binding.value, (Var, Tuple, TupleGetItem)):
            continue
        before = len(matcher.found)
        if matcher.match(left[0], binding.var):
            yield from _matches(matcher, pattern, left[1:], bindings, (*places, place))
        matcher.forget(before)


def _place(bindings: Sequence[Binding], places: Sequence[int], new: Any) -> int | None:
    """Where the new value can stand: behind what it reads, in front of who reads one of its fields; None for nowhere."""
    homes = {one.var: number for number, one in enumerate(bindings)}
    fields = {bindings[place].var for place in places}
    read = [node for node in walk(new) if isinstance(node, Var)]
    if any(var in fields for var in read):
        return None  # it is made of what it shall replace
    begin = max([homes[var] + 1 for var in read if var in homes], default=0)
    readers = [n for n, one in enumerate(bindings) if n not in places and any(node in fields for node in walk(one.value))]
    # What has effects between the values may change what they read.
    between = bindings[min(*places, begin) : max(*places, begin)]
    if begin > min(readers, default=len(bindings)) or not all(is_pure(one.value) for one in between):
        return None
    return max(begin, min(places))


__all__ = ["is_joint", "rewritten"]
