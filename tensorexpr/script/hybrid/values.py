"""Expressions of hybrid functions: constants of Python, elements of tensors, arithmetic and intrinsics."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from ...dataclass import dataclass
from ...errors import TensorExprError
from ...target import Target
from ...te.hybrid.runtime import CASTS
from ...tir import arithmetic, intrin
from ...tir.arithmetic import as_int, cast, convert
from ...tir.buffer import Buffer
from ...tir.dtype import parse_dtype
from ...tir.expr import BufferLoad, FloatImm, IntImm, PrimExpr
from ..parser.source import Source, suggestion

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: _quotient(a, b),
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.Pow: lambda a, b: intrin.power(a, b),
    ast.BitAnd: lambda a, b: a & b,
    ast.BitOr: lambda a, b: a | b,
    ast.BitXor: lambda a, b: a ^ b,
    ast.LShift: lambda a, b: a << b,
    ast.RShift: lambda a, b: a >> b,
}
_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.Eq: lambda a, b: convert(a).equal(convert(b)),
    ast.NotEq: lambda a, b: arithmetic.logical_not(convert(a).equal(convert(b))),
}
_CALLS: Mapping[str, Callable[..., Any]] = {
    **{name: getattr(intrin, name) for name in ("sqrt", "rsqrt", "log", "exp", "tanh", "sigmoid", "power", "popcount", "round", "likely")},
    **{name: getattr(intrin, name) for name in ("abs", "floor")},
    "min": arithmetic.minimum,
    "max": arithmetic.maximum,
    "ceil_div": lambda a, b: (a + b - 1) // b,
    "max_num_threads": lambda *_: _max_num_threads(),
}


def _quotient(a: Any, b: Any) -> Any:
    """a / b; by a constant as a product with its inverse, which is what TE makes of it, so that results have the same bits."""
    inexact = isinstance(a, PrimExpr) and parse_dtype(a.dtype).is_float
    return a * (1.0 / b) if inexact and isinstance(b, (int, float)) and b else a / b


def _max_num_threads() -> int:
    """The threads of a block of the current target; one without a target."""
    target = Target.current()
    return 1 if target is None else int(target.attrs.get("max_num_threads", 1))


@dataclass(frozen=True)
class Scalar:
    """A name that a function assigns: an element of storage of its own."""

    buffer: Buffer

    def value(self) -> PrimExpr:
        """What it holds."""
        return BufferLoad(self.buffer, (IntImm("int32", 0),))


@dataclass(frozen=True)
class Rows:
    """`a[i]` of a buffer with more dimensions."""

    buffer: Buffer
    indices: tuple[Any, ...]

    @property
    def shape(self) -> tuple[Any, ...]:
        """The extents of what is left."""
        return self.buffer.shape[len(self.indices) :]

    @property
    def dtype(self) -> str:
        """The dtype of an element."""
        return self.buffer.dtype


def plain(value: Any) -> Any:
    """Constants as Python numbers, so that what only depends on them is known while the function is read."""
    # A number of Python has no dtype: int64's 1 would come back as int32's.
    if isinstance(value, (IntImm, FloatImm)) and value.dtype in ("int32", "float32", "bool"):
        return bool(value.value) if value.dtype == "bool" else value.value
    return value


class Values:
    """The value of each expression; `names` has what names mean at this place."""

    def __init__(self, source: Source, names: Mapping[str, Any]) -> None:
        self.source, self.names = source, names

    def fail(self, node: ast.AST, message: str) -> TensorExprError:
        """An error at a place of the function."""
        return self.source.error(node, message)

    def value(self, node: ast.expr) -> Any:
        """A constant of Python, an expression, a buffer or a sequence of such.

        Raises:
            ParseError: for what a hybrid function can't say.
        """
        try:
            return self._value(node)
        except TensorExprError as error:
            # It has a place already, that of the innermost expression.
            if type(error).__name__ == "ParseError":
                raise
            raise self.fail(node, str(error)) from error
        except (TypeError, ValueError, IndexError, ZeroDivisionError, OverflowError) as error:
            raise self.fail(node, f"{type(error).__name__}: {error}") from error

    def scalar(self, node: ast.expr) -> PrimExpr:
        """The value of an expression that is a number."""
        found = self.value(node)
        if isinstance(found, (Buffer, Rows, tuple, list, str)) or found is None:
            raise self.fail(node, f"a number is wanted here, not {ast.unparse(node)}")
        return convert(found)

    def _value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self._name(node, name)
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return tuple(self.value(item) for item in items)
            case ast.Attribute(value=owner, attr=attr):
                return self._attribute(node, self.value(owner), attr)
            case ast.Subscript(value=owner, slice=index):
                return self._item(node, self.value(owner), self.value(index))
            case ast.BinOp(left=left, op=op, right=right):
                return plain(_BINARY[type(op)](self._operand(left), self._operand(right))) if type(op) in _BINARY else self._no(node)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._operand(operand)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self._operand(operand)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                known = self._operand(operand)
                return (not known) if isinstance(known, (bool, int)) else arithmetic.logical_not(convert(known))
            case ast.BoolOp(op=op, values=values):
                parts = [self._operand(value) for value in values]
                if all(isinstance(part, (bool, int)) for part in parts):
                    return all(parts) if isinstance(op, ast.And) else any(parts)
                return plain((arithmetic.all if isinstance(op, ast.And) else arithmetic.any)(*map(convert, parts)))
            case ast.Compare(left=left, ops=ops, comparators=others):
                return self._compare(left, ops, others)
            case ast.IfExp(test=test, body=yes, orelse=no):
                condition = self._operand(test)
                if isinstance(condition, (bool, int)):
                    return self.value(yes if condition else no)
                a, b = convert(self._operand(yes)), convert(self._operand(no))
                return intrin.if_then_else(condition, a, cast(b, a.dtype))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return self._call(node, name, args)
        return self._no(node)

    def _operand(self, node: ast.expr) -> Any:
        found = self.value(node)
        if isinstance(found, (Buffer, Rows, tuple, list)):
            raise self.fail(node, f"{ast.unparse(node)} is no number; take an element of it")
        return found

    def _no(self, node: ast.expr) -> Any:
        raise self.fail(node, f"a hybrid function can't say {ast.unparse(node)!r}; it is read, not run")

    def _name(self, node: ast.Name, name: str) -> Any:
        if name not in self.names:
            raise self.fail(node, f"{name} has no value here{suggestion(name, self.names)}")
        found = self.names[name]
        return found.value() if isinstance(found, Scalar) else plain(found)

    def _attribute(self, node: ast.expr, owner: Any, attr: str) -> Any:
        if isinstance(owner, (Buffer, Rows)) and attr in ("shape", "dtype"):
            found = getattr(owner, attr)
            return tuple(map(plain, found)) if attr == "shape" else found
        raise self.fail(node, f"a tensor has .shape and .dtype, and nothing else has members here; not .{attr}")

    def _item(self, node: ast.expr, owner: Any, index: Any) -> Any:
        indices = index if isinstance(index, tuple) else (index,)
        if isinstance(owner, Rows):
            owner, indices = owner.buffer, (*owner.indices, *indices)
        if isinstance(owner, Buffer):
            return owner[tuple(map(convert, indices))] if len(indices) == len(owner.shape) else Rows(owner, indices)
        for one in indices:
            place = as_int(one)
            if place is None or not hasattr(owner, "__getitem__"):
                raise self.fail(node, f"{ast.unparse(node)}: a sequence is indexed with constants, which {one} isn't; use const_range")
            owner = owner[place]
        return plain(owner)

    def _compare(self, left: ast.expr, ops: list[ast.cmpop], others: list[ast.expr]) -> Any:
        values = [self._operand(part) for part in (left, *others)]
        parts = []
        for op, a, b in zip(ops, values, values[1:], strict=False):
            if type(op) not in _COMPARE:
                raise self.fail(left, "a hybrid function compares with <, <=, >, >=, == and !=")
            parts.append(plain(_COMPARE[type(op)](a, b)))
        if all(isinstance(part, bool) for part in parts):
            return all(parts)
        return arithmetic.all(*map(convert, parts))

    def _call(self, node: ast.Call, name: str, args: list[ast.expr]) -> Any:
        if name == "len":
            (given,) = (self.value(arg) for arg in args)
            return plain(given.shape[0]) if isinstance(given, (Buffer, Rows)) else len(given)
        values = [self._operand(arg) for arg in args]
        if name in CASTS:
            return cast(convert(values[0]), name)
        if name not in _CALLS:
            raise self.fail(node, f"a hybrid function can't call {name}{suggestion(name, (*_CALLS, *CASTS, 'len'))}")
        if name in ("min", "max", "ceil_div", "max_num_threads"):
            return plain(_CALLS[name](*values))
        return _CALLS[name](*map(convert, values))
