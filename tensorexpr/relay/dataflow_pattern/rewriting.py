"""Rewrites of what patterns match, and functions of it: `rewrite`, `partition`, `DFPatternCallback`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ...dataclass import dataclass
from ...errors import DeclarationError, TypeMismatchError
from ...lower.passes import deep_recursion
from ...relax import expr as graph
from ...relax.dpl.matcher import Matcher
from ...tir.op_registry import Op
from ..expr import Attrs, Call, Function, Let, Var
from ..visitor import ExprMutator, free_vars, operands, substitute, walk
from . import patterns as dp

# A rewrite that makes what it matches again would never end.
_MOST_ROUNDS = 100
_ORIGIN = "PartitionedFromPattern"
_INNER = (
    dp.CallPattern,
    dp.TuplePattern,
    dp.TupleGetItemPattern,
    dp.IfPattern,
    dp.LetPattern,
    dp.ConstantPattern,
    dp.FunctionPattern,
    dp.OnPath,
)


class DFPatternMap:
    """What each part of a pattern matched, as lists: `found[x][0]`."""

    def __init__(self, found: Mapping[Any, Any]) -> None:
        self._found = found

    def __getitem__(self, pattern: Any) -> list[Any]:
        if pattern in self._found:
            return [self._found[pattern]]
        # A path matches all that is between the ends.
        between = [expr for one, expr in self._found.items() if isinstance(one, dp.OnPath) and one.path is pattern]
        if not between:
            raise KeyError(f"{pattern!r} is no part of the pattern that matched anything")
        return between

    def __contains__(self, pattern: Any) -> bool:
        return pattern in self._found or any(isinstance(one, dp.OnPath) and one.path is pattern for one in self._found)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._found)


class DFPatternCallback:
    """A rewrite: set `pattern`, and give `callback(pre, post, node_map)`, which returns what stands in place of a match.

    Args:
        require_type: accepted: types are known whenever they are asked for.
        rewrite_once: look through an expression once; else until nothing matches that changes.
    """

    pattern: Any

    def __init__(self, require_type: bool = False, rewrite_once: bool = False) -> None:
        self.require_type, self.rewrite_once = require_type, rewrite_once

    def rewrite(self, expr: Any) -> Any:
        """An expression with matches replaced; see `rewrite`."""
        return rewrite(self, expr)

    def callback(self, pre: Any, post: Any, node_map: Any) -> Any:
        """What stands in place of a match.

        Args:
            pre: what matched, as it was before this round.
            post: the same with operands that were rewritten already.
            node_map: what each part of the pattern matched in `post`.
        """
        raise NotImplementedError(f"{type(self).__name__}: give the method callback(pre, post, node_map)")


@dataclass(frozen=True)
class Match:
    """A match: what it is computed by, and of what.

    Args:
        root: the whole.
        inner: by `id`: what belongs to it, the root included.
        inputs: the values that it is computed of, in the order of their first uses.
        found: what each part of the pattern stands for.
    """

    root: Any
    inner: Mapping[int, Any]
    inputs: tuple[Any, ...]
    found: Mapping[Any, Any]


def match_of(pattern: Any, expr: Any) -> Match | None:
    """The match of a pattern at an expression; None if there is none."""
    found = Matcher().extract(pattern, expr)
    if found is None:
        return None
    matched = {id(one) for part, one in found.items() if isinstance(part, _INNER) or (isinstance(part, dp.Step) and not part.is_leaf)} | {
        id(expr)
    }
    inner, inputs, waiting = dict[int, Any](), dict[int, Any](), [expr]
    while waiting:
        one = waiting.pop()
        if id(one) in inner or id(one) in inputs:
            continue
        if id(one) not in matched:
            inputs[id(one)] = one
            continue
        inner[id(one)] = one
        if not isinstance(one, Function):
            waiting += reversed(operands(one) if not isinstance(one, graph.Call) else one.args)
    return Match(expr, inner, tuple(inputs.values()), found)


def _users(root: Any) -> dict[int, list[int]]:
    """By `id`: the expressions that use each expression."""
    found: dict[int, list[int]] = {}
    for node in walk(root):
        for one in operands(node):
            found.setdefault(id(one), []).append(id(node))
    return found


def _is_closed(match: Match, users: Mapping[int, Sequence[int]]) -> bool:
    """Whether what is inside of a match is used outside only by what the match alone uses; constants may be used anywhere.

    Of multiply(add, sigmoid(add)) with the sigmoid outside, both compute the sum.
    """
    waiting = [id(one) for one in match.inner.values() if one is not match.root and not isinstance(one, graph.Constant)]
    seen = {*match.inner}
    while waiting:
        for user in users.get(waiting.pop(), ()):
            if user not in seen:
                if not users.get(user):  # a result
                    return False
                seen.add(user)
                waiting.append(user)
    return True


def matches_in(pattern: Any, root: Any, check: Callable[[Any], bool] = lambda one: True) -> list[Match]:
    """Matches that don't overlap, later values first, of which nothing inside is used outside.

    Args:
        pattern: the pattern.
        root: of the expressions that are looked at.
        check: a predicate of what matched.
    """
    users, taken, found = _users(root), _partitioned(root), list[Match]()
    for node in reversed(list(walk(root))):
        match = match_of(pattern, node) if id(node) not in taken else None
        if match is None or not taken.isdisjoint(match.inner) or not _is_closed(match, users) or not check(match.root):
            continue
        taken.update(key for key, one in match.inner.items() if not isinstance(one, graph.Constant))
        found.append(match)
    return found


def _partitioned(root: Any) -> set[int]:
    """By `id`: what functions of former partitions are made of, which stay as they are."""
    functions = (node for node in walk(root) if isinstance(node, Function) and _ORIGIN in node.attrs)
    return {id(one) for func in functions for one in walk(func.body)}


class _Replacing(ExprMutator):
    """Puts others in place of matches, operands first."""

    def __init__(self, made: Mapping[int, Callable[[Any, Any], Any]]) -> None:
        super().__init__()
        self._made = made

    def visit(self, expr: Any) -> Any:
        """An expression, or what stands in its place."""
        if expr in self.memo_map:
            return self.memo_map[expr]
        post = super().visit(expr)
        if id(expr) in self._made:
            post = self.memo_map[expr] = self._made[id(expr)](expr, post)
        return post


def _replaced(root: Any, made: Mapping[int, Callable[[Any, Any], Any]]) -> Any:
    mutator = _Replacing(made)
    for node in walk(root):  # from the operands up, so that no method calls itself deeply
        mutator.visit(node)
    return mutator.visit(root)


def _round(callback: Any, expr: Any) -> Any:
    def replace(pre: Any, post: Any) -> Any:
        found = Matcher().extract(callback.pattern, post)
        return post if found is None else callback.callback(pre, post, DFPatternMap(found))

    return _replaced(expr, {id(match.root): replace for match in matches_in(callback.pattern, expr)})


def rewrite(callbacks: Any, expr: Any, mod: Any = None) -> Any:
    """An expression, or function, with what patterns match replaced, again and again until nothing changes.

    Args:
        callbacks: a `DFPatternCallback`, or several, which take turns.
        expr: of Relay.
        mod: accepted: what is known of an expression follows from it.

    Raises:
        DeclarationError: if it doesn't come to an end, as a rewrite makes what it matches.
    """
    listed = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]
    for one in listed:
        if not hasattr(one, "callback") or not hasattr(one, "pattern"):
            raise TypeMismatchError(f"rewrite takes objects of DFPatternCallback with a pattern, not {one!r}")
    with deep_recursion:
        for number in range(_MOST_ROUNDS):
            before = expr
            for one in listed:
                if number == 0 or not getattr(one, "rewrite_once", False):
                    expr = _round(one, expr)
            if expr is before:
                return expr
    names = ", ".join(type(one).__name__ for one in listed)
    raise DeclarationError(f"{names}: after {_MOST_ROUNDS} rounds there are still matches that change; pass rewrite_once=True")


def _function(match: Match, attrs: Mapping[str, Any]) -> tuple[Function, tuple[Any, ...]]:
    """A match as a function of its inputs, and these."""
    params = [Var(f"FunctionVar_0_{n}", dp.known_info(one)) for n, one in enumerate(match.inputs)]
    body = substitute(match.root, dict(zip(match.inputs, params, strict=True)))
    # In the order in which the body uses them.
    order = [one for one in free_vars(body) if one in params]
    given = {param: value for param, value in zip(params, match.inputs, strict=True)}
    outside = set(map(id, match.inputs))
    inside = walk(match.root, lambda one: () if id(one) in outside else operands(one))
    names = "".join(_word(one) for one in inside if id(one) not in outside)
    made = Function(tuple(order), body, None, (), Attrs({_ORIGIN: names, **attrs}))
    return made, tuple(given[one] for one in order)


def _word(node: Any) -> str:
    """What a node adds to the name of a function that was partitioned."""
    match node:
        case graph.Call():
            return f"{node.op if isinstance(node.op, Op) else 'FunctionCall'}_"
        case graph.Tuple():
            return "Tuple_"
        case graph.TupleGetItem():
            return f"TupleGetItem{node.index}_"
        case graph.If():
            return "If_"
        case Let():
            return "Let_"
    return ""


def partition(pattern: Any, expr: Any, attrs: Mapping[str, Any] | None = None, check: Callable[[Any], bool] = lambda one: True) -> Any:
    """An expression in which what a pattern matches is a call of a function of its own.

    Constants that the pattern names (`is_constant`) stand in the function, other operands are its parameters.

    Args:
        pattern: the pattern. A match of which something inside is used outside stays.
        expr: an expression or a function.
        attrs: attributes of the functions, beside "PartitionedFromPattern", the names of their operators.
        check: a predicate of a match; what it refuses stays.
    """

    def made(match: Match) -> Callable[[Any, Any], Any]:
        def call(pre: Any, post: Any) -> Any:
            again = match_of(pattern, post)
            if again is None:  # an operand that became a call of another function was a part of it
                return post
            func, args = _function(again, attrs or {})
            return Call(func, args)

        return call

    with deep_recursion:
        return _replaced(expr, {id(match.root): made(match) for match in matches_in(pattern, expr, check)})


def match(pattern: Any, expr: Any) -> bool:
    """Whether an expression matches a pattern."""
    return Matcher().match(pattern, expr)
