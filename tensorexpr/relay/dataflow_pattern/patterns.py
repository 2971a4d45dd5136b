"""Patterns of Relay's expressions: those of graphs (`relax.dpl`) with the methods that Relay's have, and kinds that graphs lack.

There is one matcher, `relax.dpl.matcher`: Relay's calls, tuples and constants are those of graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import DeclarationError, TypeMismatchError
from ...relax import dpl
from ...relax import expr as graph
from ...relax.dpl.matcher import Matcher
from ...relax.struct_info import ObjectStructInfo, StructInfo
from ...tir.op_registry import Op
from ..expr import Function, If, Let
from ..kinds import ATTRIBUTE as KIND
from ..kinds import kind_of
from ..ty import TensorType, info_of

# Operators whose operands may stand in either order.
_COMMUTATIVE = ("add", "multiply")


class DFPattern(dpl.DFPattern):
    """Base of patterns: `pattern(args)` is a call, `a | b` one of two, `a + b` and the like a call of the operator."""

    def __call__(self, *args: Any, **_: Any) -> Any:
        """A call of what this matches; without arguments, or with None, one of any."""
        args = () if args == (None,) else args
        listed = [_pattern(one) for one in args[0]] if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(map(_pattern, args))
        return CallPattern(self, listed, varg_default_wildcard=not args)

    def __or__(self, other: Any) -> DFPattern:
        return AltPattern(self, _pattern(other))

    def __and__(self, other: Any) -> DFPattern:
        raise TypeMismatchError("patterns of Relay have no `&`; state what holds of a value by has_attr, has_type, has_dtype and has_shape")

    def __add__(self, other: Any) -> Any:
        return is_op("add")(self, other)

    def __sub__(self, other: Any) -> Any:
        return is_op("subtract")(self, other)

    def __mul__(self, other: Any) -> Any:
        return is_op("multiply")(self, other)

    def __truediv__(self, other: Any) -> Any:
        return is_op("divide")(self, other)

    def optional(self, option_constructor: Callable[[Any], Any]) -> DFPattern:
        """This, or what a function makes of it. The longer one is tried first."""
        return AltPattern(_pattern(option_constructor(self)), self)

    def has_attr(self, attrs: Mapping[str, Any]) -> DFPattern:
        """This, with attributes: of a call, of its operator, or of a function."""
        return AttrPattern(self, attrs)

    def has_type(self, ttype: Any) -> DFPattern:
        """This, of a type."""
        return TypePattern(self, ttype)

    def has_dtype(self, dtype: str) -> DFPattern:
        """This, a tensor of a dtype."""
        return DataTypePattern(self, dtype)

    def has_shape(self, shape: Sequence[Any]) -> DFPattern:
        """This, a tensor of a shape."""
        return ShapePattern(self, shape)

    def dominates(self, parent: Any, path: Any = None) -> DFPattern:
        """This, all of whose operands come from one value by a path.

        Args:
            parent: of that value.
            path: of everything between; anything if None.
        """
        return DominatorPattern(_pattern(parent), wildcard() if path is None else _pattern(path), self)

    def match(self, expr: Any, var2val: Any = None) -> bool:
        """Whether an expression matches."""
        return Matcher(var2val).match(self, expr)

    def partition(self, expr: Any, attrs: Mapping[str, Any] | None = None, check: Callable[[Any], bool] = lambda one: True) -> Any:
        """See `partition`."""
        from .rewriting import partition

        return partition(self, expr, attrs, check)

    def rewrite(self, callback: Any, expr: Any) -> Any:
        """See `rewrite`."""
        from .rewriting import rewrite

        return rewrite(callback, expr)


class ExprPattern(DFPattern, dpl.ExprPattern):
    """One expression, or an operator."""


class WildcardPattern(DFPattern, dpl.WildcardPattern):
    """Anything; behind `redirect_to` what another pattern matches."""

    target: DFPattern | None = None

    def redirect_to(self, pat: Any) -> None:
        """Let it stand for a pattern that may be made of it: `w.redirect_to(is_op("cast")(w) | dense)` is any number of casts of dense."""
        self.target = _pattern(pat)

    def matches(self, expr: Any, matcher: Matcher) -> bool:
        """Whether it is what it stands for."""
        return self.target is None or matcher.match(Step(self.target), expr)


class Step(DFPattern):
    """One of the repetitions of a pattern: each is noted by itself, so that a match knows all of them."""

    def __init__(self, target: DFPattern) -> None:
        self.target, self.is_leaf = target, False

    def matches(self, expr: Any, matcher: Matcher) -> bool:
        """Whether the pattern matches once more, with nothing that is known of the last time."""
        if not matcher.match(self.target, expr):
            return False
        matched: Any = self.target
        while isinstance(matched, dpl.OrPattern):
            matched = matched.left if matcher.found.get(matched.left) is expr else matched.right
        self.is_leaf = not isinstance(matched, _COMPUTED)
        return True


class VarPattern(DFPattern, dpl.VarPattern):
    """A variable; of that name if one is given."""


class ConstantPattern(DFPattern, dpl.ConstantPattern):
    """A constant tensor."""


class CallPattern(DFPattern, dpl.CallPattern):
    """A call; the operands of sums and products stand in either order."""

    def matches(self, expr: Any, matcher: Matcher) -> bool:
        """Whether it is a call whose callee and arguments match."""
        before = len(matcher.found)
        if super().matches(expr, matcher):
            return True
        matcher.forget(before)
        op = getattr(self.op, "expr", None)
        turns = isinstance(op, Op) and op in _COMMUTATIVE and len(self.args) == 2
        return turns and isinstance(expr, graph.Call) and expr.op == op and matcher.all(zip(self.args[::-1], expr.args, strict=False))


class TuplePattern(DFPattern, dpl.TuplePattern):
    """A tuple, field by field."""


class AnyTuplePattern(TuplePattern):
    """A tuple of any fields."""

    def matches(self, expr: Any, matcher: Matcher) -> bool:
        """Whether it is a tuple."""
        return isinstance(matcher.value(expr), graph.Tuple)


class TupleGetItemPattern(DFPattern, dpl.TupleGetItemPattern):
    """One field of a tuple; any for None."""


class AltPattern(DFPattern, dpl.OrPattern):
    """One of two."""


class _OfKnown(DFPattern):
    """What says something of the type: of a value whose type isn't known it doesn't hold."""

    def holds(self, expr: Any) -> bool:
        """Whether that is so."""
        return known_info(expr) is not None and super().holds(expr)  # type: ignore[misc]


class DataTypePattern(_OfKnown, dpl.DataTypePattern):
    """A pattern, and the dtype of a tensor."""


class ShapePattern(_OfKnown, dpl.ShapePattern):
    """A pattern, and the shape of a tensor."""

    def __init__(self, pattern: DFPattern, shape: Sequence[Any]) -> None:
        super().__init__(pattern, shape)
        self.shape = TensorType(tuple(shape)).shape  # extents as Relay's types have them: numbers are int32


class TypePattern(_OfKnown, dpl.StructInfoPattern):
    """A pattern, and a type of Relay."""

    def __init__(self, pattern: DFPattern, ttype: Any) -> None:
        self.type = ttype
        info = info_of(ttype)
        if info is None:
            raise TypeMismatchError("has_type takes a type, such as relay.TensorType((2, 3)), not None")
        super().__init__(pattern, info)


class AttrPattern(DFPattern, dpl.AttrPattern):
    """A pattern, and attributes."""

    def holds(self, expr: Any) -> bool:
        """Whether it has them; of a call those that its operator was registered with count, too."""
        if isinstance(expr, Function):
            return all(key in expr.attrs and expr.attrs[key] == value for key, value in self.attrs.items())
        op = expr if isinstance(expr, Op) else getattr(expr, "op", None)
        if KIND in self.attrs and isinstance(op, Op):
            others = {key: value for key, value in self.attrs.items() if key != KIND}
            return kind_of(op) == int(self.attrs[KIND]) and (not others or dpl.AttrPattern(self.pattern, others).holds(expr))
        return super().holds(expr)


_COMPUTED = (dpl.CallPattern, dpl.TuplePattern, dpl.TupleGetItemPattern)


class IfPattern(DFPattern):
    """One of two values by a condition."""

    def __init__(self, cond: DFPattern, true_branch: DFPattern, false_branch: DFPattern) -> None:
        self.cond, self.true_branch, self.false_branch = cond, true_branch, false_branch

    def matches(self, expr: Any, matcher: Matcher) -> bool:
        """Whether it is an If whose parts match."""
        if not isinstance(expr, If):
            return False
        return matcher.all(
            ((self.cond, expr.cond), (self.true_branch, expr.true_branch), (self.false_branch, expr.false_branch))
        )  # fmt: skip


class LetPattern(DFPattern):
    """A variable, what it is bound to, and what uses it."""

    def __init__(self, var: DFPattern, value: DFPattern, body: DFPattern) -> None:
        self.var, self.value, self.body = var, value, body

    def matches(self, expr: Any, matcher: Matcher) -> bool:
        """Whether it is a Let whose parts match."""
        return isinstance(expr, Let) and matcher.all(((self.var, expr.var), (self.value, expr.value), (self.body, expr.body)))


class FunctionPattern(DFPattern):
    """A function by patterns of its parameters and its body; of any parameters for None."""

    def __init__(self, params: Sequence[Any] | None, body: DFPattern) -> None:
        self.params, self.body = None if params is None else tuple(map(_pattern, params)), body

    def matches(self, expr: Any, matcher: Matcher) -> bool:
        """Whether it is one whose parts match."""
        if not isinstance(expr, Function) or (self.params is not None and len(self.params) != len(expr.params)):
            return False
        pairs = [] if self.params is None else list(zip(self.params, expr.params, strict=True))
        return matcher.all([*pairs, (self.body, expr.body)])


class OnPath(DFPattern):
    """A value between the two ends of a dominator: nothing of a pattern, but noted as one, so that a match knows it."""

    def __init__(self, path: DFPattern) -> None:
        self.path = path

    def matches(self, expr: Any, matcher: Matcher) -> bool:
        """Whether it may stand on the path. What the path's pattern matches here isn't what it matches elsewhere."""
        return matcher.tried(self.path, expr)


class DominatorPattern(DFPattern):
    """A value all of whose operands come from one other value.

    Example:
        relu(conv + sigmoid(conv)) with child relu(...), path elementwise, parent conv2d(...)

    Args:
        parent: of the value that all comes from.
        path: of everything between.
        child: of the value itself.
    """

    def __init__(self, parent: DFPattern, path: DFPattern, child: DFPattern) -> None:
        self.parent, self.path, self.child = parent, path, child

    def matches(self, expr: Any, matcher: Matcher) -> bool:
        """Whether the child matches, and every way back from it ends at one match of the parent."""
        if not matcher.match(self.child, expr):
            return False
        waiting, seen = list(graph_operands(expr)), set[int]()
        if not waiting:
            return False
        while waiting:
            one = waiting.pop()
            # The parent matches once: what it stands for then is the same value wherever a way ends.
            if id(one) in seen or matcher.match(self.parent, one):
                continue
            seen.add(id(one))
            before = graph_operands(one)
            if not before or not matcher.match(OnPath(self.path), one):
                return False
            waiting += before
        return self.parent in matcher.found


def known_info(expr: Any) -> StructInfo | None:
    """What is known of a value; None where a variable that it is computed of has no type."""
    try:
        info: StructInfo | None = getattr(expr, "struct_info", None)
    except (DeclarationError, TypeMismatchError):
        return None
    return None if type(info) is ObjectStructInfo else info


def graph_operands(expr: Any) -> tuple[Any, ...]:
    """The values that an expression is computed of, without the operator or function that is called."""
    match expr:
        case graph.Call():
            return tuple(expr.args)
        case graph.Tuple():
            return tuple(expr.fields)
        case graph.TupleGetItem():
            return (expr.tuple_value,)
    return ()


def _pattern(given: Any) -> Any:
    """A pattern; an expression stands for itself, a list for a tuple."""
    if isinstance(given, dpl.DFPattern):
        return given
    if isinstance(given, (list, tuple)):
        return is_tuple(given)
    return ExprPattern(given)


def wildcard() -> WildcardPattern:
    """Anything."""
    return WildcardPattern()


def is_var(name: str = "") -> VarPattern:
    """A variable; of that name if one is given."""
    return VarPattern(name)


def is_constant() -> ConstantPattern:
    """A constant."""
    return ConstantPattern()


def is_expr(expr: Any) -> ExprPattern:
    """One expression."""
    return ExprPattern(expr)


def is_op(op_name: str) -> ExprPattern:
    """An operator, to be called with patterns: ``is_op("nn.relu")(wildcard())``."""
    return ExprPattern(Op.of(op_name))


def is_tuple(fields: Any) -> TuplePattern:
    """A tuple of such fields; of any for None."""
    return AnyTuplePattern(()) if fields is None else TuplePattern(list(map(_pattern, fields)))


def is_tuple_get_item(tuple_value: Any, index: int | None = None) -> TupleGetItemPattern:
    """A field of a tuple; any for None."""
    return TupleGetItemPattern(_pattern(tuple_value), index)


def is_if(cond: Any, true_branch: Any, false_branch: Any) -> IfPattern:
    """An If."""
    return IfPattern(_pattern(cond), _pattern(true_branch), _pattern(false_branch))


def is_let(var: Any, value: Any, body: Any) -> LetPattern:
    """A Let."""
    return LetPattern(_pattern(var), _pattern(value), _pattern(body))


def has_type(ttype: Any, pattern: Any = None) -> TypePattern:
    """A value of a type."""
    return TypePattern(wildcard() if pattern is None else pattern, ttype)


def has_dtype(dtype: str, pattern: Any = None) -> DataTypePattern:
    """A tensor of a dtype."""
    return DataTypePattern(wildcard() if pattern is None else pattern, dtype)


def has_shape(shape: Sequence[Any], pattern: Any = None) -> ShapePattern:
    """A tensor of a shape."""
    return ShapePattern(wildcard() if pattern is None else pattern, shape)


def has_attr(attrs: Mapping[str, Any], pattern: Any = None) -> AttrPattern:
    """A call, an operator or a function with attributes."""
    return AttrPattern(wildcard() if pattern is None else pattern, attrs)


def dominates(parent: Any, path: Any, child: Any) -> DominatorPattern:
    """A value all of whose operands come from one other value by a path."""
    return DominatorPattern(_pattern(parent), _pattern(path), _pattern(child))
