"""Patterns of values of graphs: `is_op("relax.add")(wildcard(), is_const())`.

A pattern says whether an expression is one of its kind, given what variables are bound to (`matcher.Matcher`).
The same pattern object in two places means the same value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from typing import Any

from ...errors import TypeMismatchError
from ...later import later
from ...tir.expr import Type
from ...tir.function import GlobalVar, PrimFunc
from ...tir.op_registry import Op
from ...tir.structural import structural_equal
from ..expr import Call, Constant, DataflowVar, ExternFunc, Function, RelaxExpr, Tuple, TupleGetItem, Var
from ..extents import same_shapes
from ..ops.row import row_of
from ..relations import BaseCheckResult, bind_symbols, struct_info_base_check
from ..struct_info import ShapeExpr, StructInfo, TensorStructInfo, extent, with_symbols
from ..types import get_static_type
from .matcher import Matcher
from .sequence import Relations

# The words make patterns of this module, in which programs look for them too.
__getattr__, __dir__ = later(
    __name__,
    {
        ".words": "has_attr has_dtype is_call_dps_packed is_call_packed is_call_tir is_const is_dfv is_expr is_gv is_op is_shape is_tuple "
        "is_tuple_get_item is_var make_fused_bias_activation_pattern wildcard"
    },
)


class DFPattern(Relations):
    """Base of patterns."""

    # Whether the match is what a variable is bound to, not the variable.
    by_value = True

    def matches(self, expr: Any, matcher: Matcher) -> bool:
        """Whether an expression is one of its kind."""
        raise NotImplementedError

    def __call__(self, *args: DFPattern, varg_default_wildcard: bool = False, add_constraint: bool = True) -> CallPattern:
        """A call of what this matches.

        Args:
            args: patterns of the arguments, all of them.
            varg_default_wildcard: let there be more arguments than those.
            add_constraint: inside of a `PatternContext`, let it know that the arguments are used by the call.
        """
        made = CallPattern(self, args, varg_default_wildcard)
        if add_constraint:
            made.note_arguments(args)
        return made

    def __or__(self, other: DFPattern) -> DFPattern:
        return OrPattern(self, other)

    def __and__(self, other: DFPattern) -> DFPattern:
        return AndPattern(self, other)

    def __invert__(self) -> DFPattern:
        return NotPattern(self)

    def optional(self, option: Callable[[DFPattern], DFPattern]) -> DFPattern:
        """This, or what `option` makes of it."""
        return self | option(self)

    def where(self, predicate: Callable[[Any], bool]) -> DFPattern:
        """This, of which a predicate of the matched expression holds."""
        return FilterPattern(self, predicate)

    def has_attr(self, attrs: Mapping[str, Any]) -> DFPattern:
        """This, with attributes: of a call, of its operator, or of a function."""
        return AttrPattern(self, attrs)

    def has_struct_info(self, struct_info: StructInfo) -> DFPattern:
        """This, of which as much is known; symbols of `struct_info` stand for any extents, the same ones in all parts of a pattern."""
        return StructInfoPattern(self, struct_info)

    def has_type(self, ttype: Type | StructInfo) -> DFPattern:
        """This, a value of a type such as `relax.DynTensorType(2, "float32")`; of a struct info as `has_struct_info`."""
        return StructInfoPattern(self, ttype) if isinstance(ttype, StructInfo) else TypePattern(self, ttype)

    def has_dtype(self, dtype: str) -> DFPattern:
        """This, a tensor of a dtype."""
        return DataTypePattern(self, dtype)

    def has_shape(self, shape: Sequence[Any]) -> DFPattern:
        """This, a tensor whose extents are proved to be these."""
        return ShapePattern(self, shape)

    def match(self, expr: Any, var2val: Mapping[Var, Any] | None = None) -> bool:
        """Whether an expression matches.

        Args:
            expr: the expression.
            var2val: what variables are bound to (`relax.analysis.get_var2val`), to look behind them; without it they are just variables.
        """
        return Matcher(var2val).match(self, expr)

    def extract_matched_expr(self, expr: Any, var2val: Mapping[Var, Any] | None = None) -> dict[DFPattern, Any] | None:
        """What each pattern matches, if the whole matches an expression: see `match`.

        A wildcard matches the variable that is there, a pattern of calls, tuples or constants what it is bound to.
        """
        return Matcher(var2val).extract(self, expr)


class ExprPattern(DFPattern):
    """One expression; operators are told by their name."""

    def __init__(self, expr: Any) -> None:
        self.expr = expr

    def matches(self, expr: Any, matcher: Matcher) -> bool:
        """Whether it is the same."""
        found = expr if isinstance(self.expr, Var) else matcher.value(expr)
        return bool(found == self.expr if isinstance(self.expr, Op) else structural_equal(self.expr, found))

    def __repr__(self) -> str:
        return f"is_op({str(self.expr)!r})" if isinstance(self.expr, Op) else f"is_expr({self.expr})"


class WildcardPattern(DFPattern):
    """Anything."""

    by_value = False

    def matches(self, expr: Any, matcher: Matcher) -> bool:
        """Always."""
        return True

    def __repr__(self) -> str:
        return "wildcard()"


class _Named(DFPattern):
    """A kind of node, by its name if one is given."""

    kind: type = Var
    word = "is_var"

    def __init__(self, name_hint: str = "") -> None:
        self.name = name_hint

    def matches(self, expr: Any, matcher: Matcher) -> bool:
        """Whether it is of the kind and has the name."""
        found = expr if issubclass(self.kind, Var) else matcher.value(expr)
        return isinstance(found, self.kind) and self.name in ("", getattr(found, "name_hint", getattr(found, "global_symbol", "")))

    def __repr__(self) -> str:
        return f"{self.word}({self.name!r})"


class VarPattern(_Named):
    """A variable."""

    by_value = False


class DataflowVarPattern(_Named):
    """A variable of a dataflow block."""

    by_value = False
    kind, word = DataflowVar, "is_dfv"


class GlobalVarPattern(_Named):
    """A function of the module."""

    kind, word = GlobalVar, "is_gv"


class ExternFuncPattern(_Named):
    """A registered function."""

    kind, word = ExternFunc, "ExternFuncPattern"

    def __init__(self, global_symbol: str = "") -> None:
        super().__init__(global_symbol)


class ConstantPattern(DFPattern):
    """A constant tensor."""

    def matches(self, expr: Any, matcher: Matcher) -> bool:
        """Whether it is one."""
        return isinstance(matcher.value(expr), Constant)

    def __repr__(self) -> str:
        return "is_const()"


# Operators whose two operands a pattern may name in either order.
_COMMUTATIVE = ("relax.add", "relax.multiply")


class CallPattern(DFPattern):
    """A call; of sums and products the operands match in either order, the one that is written first."""

    def __init__(self, op: DFPattern, args: Sequence[DFPattern], varg_default_wildcard: bool = False) -> None:
        self.op, self.args, self.varg_default_wildcard = op, tuple(args), varg_default_wildcard
        odd = next((one for one in self.args if not isinstance(one, DFPattern)), None)
        if odd is not None:
            raise TypeMismatchError(f"arguments of a pattern are patterns, such as wildcard() or is_const(), not {odd!r}")

    def matches(self, expr: Any, matcher: Matcher) -> bool:
        """Whether it is a call whose callee and arguments match."""
        call = matcher.value(expr)
        if not isinstance(call, Call) or not matcher.match(self.op, call.op):
            return False
        enough = len(call.args) >= len(self.args) if self.varg_default_wildcard else len(call.args) == len(self.args)
        if not enough:
            return False
        if matcher.all(zip(self.args, call.args, strict=False)):
            return True
        may_swap = call.op in _COMMUTATIVE and len(self.args) == len(call.args) == 2
        return may_swap and matcher.all(zip(self.args, reversed(call.args), strict=True))

    def __repr__(self) -> str:
        return f"{self.op!r}({', '.join(map(repr, self.args))})"


class FunctionPattern(DFPattern):
    """A function by patterns of its parameters and its body."""

    def __init__(self, params: Sequence[DFPattern], body: DFPattern) -> None:
        self.params, self.body = tuple(params), body

    def matches(self, expr: Any, matcher: Matcher) -> bool:
        """Whether it is one whose parts match."""
        func = matcher.value(expr)
        if not isinstance(func, Function) or len(func.params) != len(self.params):
            return False
        # Its own variables to look behind, and the matches from outside: a parameter's pattern may occur in both.
        inside = Matcher({binding.var: binding.value for binding in func.body.bindings()}, matcher)
        pairs = zip(self.params, func.params, strict=True)
        return all(inside.match(one, param) for one, param in pairs) and inside.match(self.body, func.body.body)


class TuplePattern(DFPattern):
    """A tuple, field by field."""

    def __init__(self, fields: Sequence[DFPattern]) -> None:
        self.fields = tuple(fields)

    def matches(self, expr: Any, matcher: Matcher) -> bool:
        """Whether it is one whose fields match."""
        found = matcher.value(expr)
        if not isinstance(found, Tuple) or len(found.fields) != len(self.fields):
            return False
        return all(matcher.match(one, given) for one, given in zip(self.fields, found.fields, strict=True))

    def __getitem__(self, index: int | None) -> TupleGetItemPattern:
        if index is None:  # any field
            return TupleGetItemPattern(self, None)
        if not -len(self.fields) <= index < len(self.fields):
            raise IndexError(f"field {index} of a pattern of {len(self.fields)} fields")
        return TupleGetItemPattern(self, index % len(self.fields))

    def __len__(self) -> int:
        return len(self.fields)

    def __repr__(self) -> str:
        return f"is_tuple({list(self.fields)})"


class UnorderedTuplePattern(TuplePattern):
    """A tuple whose fields match in some order."""

    def matches(self, expr: Any, matcher: Matcher) -> bool:
        """Whether it is one whose fields match in an order."""
        found = matcher.value(expr)
        if not isinstance(found, Tuple) or len(found.fields) != len(self.fields):
            return False
        return any(matcher.all(zip(order, found.fields, strict=True)) for order in permutations(self.fields))


class TupleGetItemPattern(DFPattern):
    """One field of a tuple; any for None."""

    def __init__(self, tuple_value: DFPattern, index: int | None = None) -> None:
        self.tuple, self.index = tuple_value, index

    def matches(self, expr: Any, matcher: Matcher) -> bool:
        """Whether it is that field of a tuple that matches."""
        found = matcher.value(expr)
        return isinstance(found, TupleGetItem) and self.index in (None, found.index) and matcher.match(self.tuple, found.tuple_value)

    def __repr__(self) -> str:
        return f"is_tuple_get_item({self.tuple!r}, {self.index})"


class PrimArrPattern(DFPattern):
    """A shape whose extents are proved to be these."""

    def __init__(self, shape: Sequence[Any]) -> None:
        self.shape = tuple(map(extent, shape))

    def matches(self, expr: Any, matcher: Matcher) -> bool:
        """Whether it is that shape."""
        found = matcher.value(expr)
        return isinstance(found, ShapeExpr) and same_shapes(self.shape, found.values)

    def __getitem__(self, index: int) -> Any:
        return self.shape[index]

    def __len__(self) -> int:
        return len(self.shape)

    def __repr__(self) -> str:
        return f"is_shape({list(self.shape)})"


class OrPattern(DFPattern):
    """One of two."""

    def __init__(self, left: DFPattern, right: DFPattern) -> None:
        self.left, self.right = left, right

    def matches(self, expr: Any, matcher: Matcher) -> bool:
        """Whether one of them matches; the left one is tried first."""
        # The first match stays: the right one isn't tried later, if what is around them fails.
        return matcher.match(self.left, expr) or matcher.match(self.right, expr)

    def __repr__(self) -> str:
        return f"({self.left!r} | {self.right!r})"


class AndPattern(OrPattern):
    """Both of two."""

    def matches(self, expr: Any, matcher: Matcher) -> bool:
        """Whether both match."""
        return matcher.match(self.left, expr) and matcher.match(self.right, expr)

    def __repr__(self) -> str:
        return f"({self.left!r} & {self.right!r})"


class _Around(DFPattern):
    """Another pattern, and something more."""

    def __init__(self, pattern: DFPattern) -> None:
        self.pattern = pattern
        self.by_value = pattern.by_value

    def holds(self, expr: Any) -> bool:
        """Whether what the pattern matches has what is asked for beside."""
        raise NotImplementedError

    def matches(self, expr: Any, matcher: Matcher) -> bool:
        """Whether the pattern matches, and the rest holds."""
        # First what costs little: a match may walk through many bindings.
        return self.holds(matcher.value(expr)) and matcher.match(self.pattern, expr)

    def __repr__(self) -> str:
        return f"{self.pattern!r}.{type(self).__name__}"


class NotPattern(_Around):
    """What a pattern doesn't match."""

    def __init__(self, to_reject: DFPattern) -> None:
        super().__init__(to_reject)
        self.by_value = False

    def matches(self, expr: Any, matcher: Matcher) -> bool:
        """Whether the pattern doesn't match."""
        return not matcher.tried(self.pattern, expr)

    def __repr__(self) -> str:
        return f"~{self.pattern!r}"


class FilterPattern(_Around):
    """A pattern, and a predicate of the expression."""

    def __init__(self, pattern: DFPattern, predicate: Callable[[Any], bool]) -> None:
        super().__init__(pattern)
        self.predicate = predicate

    def matches(self, expr: Any, matcher: Matcher) -> bool:
        """Whether the pattern matches; only then the predicate is asked."""
        return matcher.match(self.pattern, expr) and bool(self.predicate(matcher.value(expr) if self.by_value else expr))


class StructInfoPattern(_Around):
    """A pattern, and what is known of the value."""

    def __init__(self, pattern: DFPattern, struct_info: StructInfo) -> None:
        super().__init__(pattern)
        self.struct_info = struct_info

    def matches(self, expr: Any, matcher: Matcher) -> bool:
        """Whether as much is known. A symbol has the extent that it has met first, in whichever part of the whole pattern."""
        given = getattr(matcher.value(expr), "struct_info", None)
        if given is None:
            return False
        values: dict[Any, Any] = {}
        for pattern, found in matcher.found.items():
            if isinstance(pattern, StructInfoPattern):
                bind_symbols(pattern.struct_info, found.struct_info, values)
        bind_symbols(self.struct_info, given, values)
        fits = struct_info_base_check(with_symbols(self.struct_info, values), given) == BaseCheckResult.PASS
        return fits and matcher.match(self.pattern, expr)


class TypePattern(_Around):
    """A pattern, and the type of the value, as `analysis.get_static_type` tells it: a struct info without extents."""

    def __init__(self, pattern: DFPattern, ttype: Type) -> None:
        super().__init__(pattern)
        self.type = ttype

    def holds(self, expr: Any) -> bool:
        """Whether it is of this type."""
        given = getattr(expr, "struct_info", None)
        return given is not None and get_static_type(given) == self.type


class DataTypePattern(_Around):
    """A pattern, and the dtype of a tensor."""

    def __init__(self, pattern: DFPattern, dtype: str) -> None:
        super().__init__(pattern)
        self.dtype = dtype

    def holds(self, expr: Any) -> bool:
        """Whether it has the dtype."""
        return getattr(getattr(expr, "struct_info", None), "dtype", None) == self.dtype


class ShapePattern(_Around):
    """A pattern, and the shape of a tensor."""

    def __init__(self, pattern: DFPattern, shape: Sequence[Any]) -> None:
        super().__init__(pattern)
        self.shape = tuple(map(extent, shape))

    def holds(self, expr: Any) -> bool:
        """Whether it has the shape."""
        info = getattr(expr, "struct_info", None)
        return isinstance(info, TensorStructInfo) and info.extents is not None and same_shapes(self.shape, info.extents)


class AttrPattern(_Around):
    """A pattern, and attributes."""

    def __init__(self, pattern: DFPattern, attrs: Mapping[str, Any]) -> None:
        super().__init__(pattern)
        self.attrs = dict(attrs)

    def holds(self, expr: Any) -> bool:
        """Whether it has them."""
        if isinstance(expr, Op):
            return all(expr.get_attr(key) == value for key, value in self.attrs.items())
        if not isinstance(expr, (Call, Function, PrimFunc)):
            return False
        known = expr.attrs
        if isinstance(expr, Call) and (row := row_of(expr)) is not None:
            # Attributes count however they were passed, or left out.
            known = {**dict(known), **{key: value for key, value in row.bound(expr).items() if not isinstance(value, RelaxExpr)}}  # type: ignore[assignment]
        return all(key in known and structural_equal(known[key], value) for key, value in self.attrs.items())
