"""Expressions over a stage's axes as plain data, so that steps can carry them, compare them and write them as JSON.

    data ::= integer | ("axis", number) | ("thread", tag) | (operator, data, data) | ("not", data)

A thread stands for its number among those of a tag of a grid. Operators are those of `OPERATORS`. A program may come from a file,
so `problem_of` checks depth, size and kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ..errors import ScheduleError, TensorExprError
from ..tir import arithmetic
from ..tir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BinaryExpr,
    Call,
    CmpExpr,
    FloorDiv,
    FloorMod,
    IntImm,
    LogicalExpr,
    Mul,
    Not,
    Or,
    PrimExpr,
    Sub,
    Var,
)  # fmt: skip
from ..tir.thread import HARDWARE_TAGS

AXIS, THREAD, NOT = "axis", "thread", "not"
MAX_DEPTH, MAX_NODES = 32, 512

# name -> (what it builds, how Python writes it, the node it stands for)
OPERATORS: Mapping[str, tuple[Callable[[Any, Any], PrimExpr], str, type[PrimExpr]]] = {
    "+": (arithmetic.add, "+", Add),
    "-": (arithmetic.subtract, "-", Sub),
    "*": (arithmetic.multiply, "*", Mul),
    "//": (arithmetic.floordiv, "//", FloorDiv),
    "%": (arithmetic.floormod, "%", FloorMod),
    "<": (lambda a, b: a < b, "<", LT),
    "<=": (lambda a, b: a <= b, "<=", LE),
    ">": (lambda a, b: a > b, ">", GT),
    ">=": (lambda a, b: a >= b, ">=", GE),
    "==": (lambda a, b: arithmetic.compare(EQ, a, b), "==", EQ),
    "!=": (lambda a, b: arithmetic.compare(NE, a, b), "!=", NE),
    "and": (arithmetic.logical_and, "&", And),
    "or": (arithmetic.logical_or, "|", Or),
}
_NAMES = {node: name for name, (_, _, node) in OPERATORS.items()}


def encode(expr: PrimExpr, axes: Mapping[Var, int] | Mapping[Var, str], threads: Mapping[Var, str] = MappingProxyType({})) -> Any:
    """An expression as data.

    Args:
        axes: the number of each axis' variable.
        threads: the tag of each thread axis' variable, where these may be spoken of.

    Raises:
        ScheduleError: for nodes that have no data form, naming them.
    """
    match expr:
        case IntImm(_, value):
            return int(value)
        case Var() if expr in threads:
            return (THREAD, threads[expr])
        case Var():
            if expr not in axes:
                raise ScheduleError(f"{expr.name} is no axis of the stage; its axes: {', '.join(var.name for var in axes)}")
            return (AXIS, axes[expr])
        case Not(a):
            return (NOT, encode(a, axes, threads))
        # a hint for branches, which doesn't change the value
        case Call(_, "tir.likely", (value,)):
            return encode(value, axes, threads)
        case BinaryExpr(a, b) | CmpExpr(a, b) | LogicalExpr(a, b) if type(expr) in _NAMES:
            return (_NAMES[type(expr)], encode(a, axes, threads), encode(b, axes, threads))
    raise ScheduleError(f"{expr} has no form in a schedule; use integers, the stage's axes and {' '.join(OPERATORS)}")


def decode(data: Any, axes: Sequence[Var] | Mapping[str, Var], threads: Mapping[str, Var] = MappingProxyType({})) -> PrimExpr:
    """The expression of data that `problem_of` has passed, with these variables as axes, and as threads by their tags.

    Raises:
        ScheduleError: for operands that an operator doesn't take.
    """
    try:
        return _decoded(data, axes, threads)
    except TensorExprError as error:
        names = axes if isinstance(axes, Mapping) else [var.name for var in axes]
        raise ScheduleError(f"{as_python(data, names)} has no value: {error}") from error


def _decoded(data: Any, axes: Any, threads: Mapping[str, Var]) -> PrimExpr:
    if isinstance(data, int):
        return IntImm("int32" if -(1 << 31) <= data < 1 << 31 else "int64", data)
    if data[0] == AXIS:
        var: PrimExpr = axes[data[1]]
        return var
    if data[0] == THREAD:  # where nobody says which loop runs over them, nothing is known of it
        found: PrimExpr | None = threads.get(data[1])
        return Var(data[1], "int32") if found is None else found
    if data[0] == NOT:
        return arithmetic.logical_not(_decoded(data[1], axes, threads))
    a, b = _decoded(data[1], axes, threads), _decoded(data[2], axes, threads)
    # A file may say anything; what divides by 0 or by an unknown sign must not get into a program.
    if data[0] in ("//", "%") and not (isinstance(b, IntImm) and b.value > 0):
        raise ScheduleError(f"the divisor {b} is no positive constant")
    return OPERATORS[data[0]][0](a, b)


def as_python(data: Any, names: Any) -> str:
    """The data as Python, with these names of the axes."""
    if isinstance(data, int):
        return str(data)
    if data[0] == AXIS:
        return str(names[data[1]])
    if data[0] == THREAD:
        return f'te.thread_axis("{data[1]}").var'
    if data[0] == NOT:
        return f"~({as_python(data[1], names)})"
    # Parentheses around every operand, so that no precedence has to be known.
    left, right = (as_python(part, names) if _is_leaf(part) else f"({as_python(part, names)})" for part in data[1:])
    return f"{left} {OPERATORS[data[0]][1]} {right}"


def axes_of(data: Any) -> Iterator[int]:
    """The numbers of the axes in data."""
    if isinstance(data, tuple):
        if data[0] == AXIS:
            yield data[1]
        elif data[0] != THREAD:
            for part in data[1:]:
                yield from axes_of(part)


def tags_of(data: Any) -> Iterator[str]:
    """The tags of the threads in data."""
    if isinstance(data, tuple):
        if data[0] == THREAD:
            yield data[1]
        elif data[0] != AXIS:
            for part in data[1:]:
                yield from tags_of(part)


def problem_of(data: Any, names: Collection[str] | None = None) -> str | None:
    """What keeps `data` from being an expression, or None. With `names`, axes are given by one of these in place of a number."""
    count = 0
    # With a stack, as a file may nest deeper than Python recurses; `decode` and the others recurse over what has passed here.
    stack: list[tuple[Any, int]] = [(data, 0)]
    while stack:
        item, depth = stack.pop()
        count += 1
        if depth > MAX_DEPTH or count > MAX_NODES:
            return f"an expression of more than {MAX_NODES} nodes or {MAX_DEPTH} levels"
        # `type`, as True is an instance of int
        if type(item) is int and -(1 << 62) < item < 1 << 62:
            continue
        if not isinstance(item, tuple) or not item or not isinstance(item[0], str):
            return f"{str(item)[:60]!r}, which is no integer, axis or operation"
        kind, *parts = item
        if kind == AXIS:
            if len(parts) != 1 or (type(parts[0]) is not int if names is None else parts[0] not in names):
                return f"{str(item)[:60]!r}: an axis is given by its {'number' if names is None else 'name'}"
            continue
        if kind == THREAD:
            if len(parts) != 1 or parts[0] not in HARDWARE_TAGS:
                return f"{str(item)[:60]!r}: threads are given by their tag, one of {', '.join(HARDWARE_TAGS)}"
            continue
        if len(parts) != (1 if kind == NOT else 2 if kind in OPERATORS else -1):
            return f"{str(item)[:60]!r}: the operations are {NOT} of one and {' '.join(OPERATORS)} of two"
        stack.extend((part, depth + 1) for part in parts)
    return None


def _is_leaf(data: Any) -> bool:
    return isinstance(data, int) or data[0] in (AXIS, THREAD)
