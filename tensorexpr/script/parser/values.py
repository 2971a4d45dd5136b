"""What the parts of a script are worth while it is read.

numbers, strings, tuples, lists, dicts     Python data
tir expressions, buffers, axes             as they are
Access                                     A[i, 0:16]: a vector or a region, as the place asks
Pending                                    T.allocate(...), T.int32(): waits for its name
Loops                                      T.grid(8, 8), range(n): the header of a `for`
Builder, Namespace                         T.exp, T.axis
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NoReturn, cast

import numpy as np

from ...arith.analyzer import Analyzer
from ...dataclass import dataclass, field
from ...errors import DeclarationError
from ...tir.arithmetic import convert, match_types, subtract, to_bool
from ...tir.attrs import EMPTY, FrozenMap
from ...tir.buffer import Buffer, BufferRegion
from ...tir.dtype import parse_dtype
from ...tir.expr import Add, BufferLoad, Call, ExprOp, IntImm, Mul, PrimExpr, Ramp, Range
from ...tir.stmt import ForKind, Stmt


# Per thread: two threads may build programs at the same time, and each one's words belong to its own.
class _Active(threading.local):
    """The builders of programs that a thread has open (`script.ir_builder`), innermost last."""

    def __init__(self) -> None:
        self.builders: list[Any] = []


ACTIVE = _Active()
# `script.ir_builder` puts here what opens a builder in a context: the items that it collects, and what a script takes for a value.
BUILDING: list[Callable[[Any], AbstractContextManager[tuple[list[Any], Callable[[Any], Any]]]]] = []
Around = Callable[[Stmt], "Stmt | None"]
Number = (bool, int, float, np.bool_, np.integer, np.floating)


@dataclass(frozen=True, eq=False, slots=True)
class Opened:
    """A definition: what its name means, and what it puts around the statements that follow."""

    value: Any = None
    around: Around | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Pending:
    """Something that is made once its name is known.

    A statement has an effect besides its value; `with_only` if it can't stand without a `with`.
    """

    what: str
    make: Callable[[str], Opened]
    with_only: bool = False
    is_statement: bool = True


@dataclass(frozen=True, slots=True)
class Bounds:
    """``low:stop:step`` in an index."""

    low: Any
    stop: Any
    step: int = 1

    def range(self) -> Range:
        """The indices as a range."""
        low, extent = span(self.low, self.stop)
        if self.step != 1:
            raise DeclarationError(f"a region has no gaps, but the slice has a step of {self.step}; leave the step out")
        return Range.from_min_extent(low, extent)

    def vector(self) -> PrimExpr:
        """The indices as a vector, or as the one index."""
        low, extent = span(self.low, self.stop)
        if is_scalable(extent) and self.step == 1:
            return Ramp(low, IntImm(low.dtype, 1), cast(Any, extent))
        if not isinstance(extent, IntImm) or extent.value <= 0:
            raise DeclarationError(f"a slice of {extent} elements is no vector; the number of lanes is a positive constant")
        if extent.value % self.step:
            raise DeclarationError(f"a slice over {extent.value} elements can't have a step of {self.step}: it must divide them")
        lanes = extent.value // self.step
        return Ramp(low, IntImm(low.dtype, self.step), lanes) if lanes > 1 else low


def is_scalable(lanes: Any) -> bool:
    """Whether a number of lanes is T.vscale(), or that times a constant."""
    factors = (lanes.a, lanes.b) if isinstance(lanes, Mul) else (lanes,)
    return any(isinstance(one, Call) and one.op == "tir.vscale" for one in factors)


def span(low: Any, stop: Any) -> tuple[PrimExpr, PrimExpr]:
    """First index and number of indices of [low, stop). ``x:x + n`` has n of them, whatever x and n are."""
    first, end = match_types(low if isinstance(low, Number) else as_expr(low), stop if isinstance(stop, Number) else as_expr(stop))
    if any(not parse_dtype(bound.dtype).is_int or parse_dtype(bound.dtype).lanes > 1 for bound in (first, end)):
        raise DeclarationError(f"bounds are integers, not {first} ({first.dtype}) and {end} ({end.dtype})")
    if isinstance(first, IntImm) and isinstance(end, IntImm):
        return first, IntImm(first.dtype, end.value - first.value)
    # The end is taken as it is written: `0:n - 1` has n - 1 indices, in that form.
    if isinstance(first, IntImm) and first.value == 0:
        return first, end
    if isinstance(end, Add) and end.a is first:
        return first, end.b
    return first, Analyzer().simplify(subtract(end, first))


@dataclass(frozen=True, eq=False, slots=True)
class Access:
    """A part of a buffer whose indices hold at least one slice."""

    buffer: Buffer
    items: tuple[Any, ...]

    def indices(self) -> tuple[PrimExpr, ...]:
        """The indices of an access, with vectors for slices."""
        return tuple(item.vector() if isinstance(item, Bounds) else as_expr(item) for item in self.items)


@dataclass(frozen=True, eq=False, slots=True)
class LoopSpec:
    """One loop of a `for` header."""

    min: PrimExpr
    extent: PrimExpr
    kind: ForKind = ForKind.SERIAL
    thread: str | None = None
    annotations: FrozenMap = EMPTY


@dataclass(frozen=True, eq=False, slots=True)
class Loops:
    """The header of a `for`."""

    specs: tuple[LoopSpec, ...]


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Builder:
    """A name of the language that can be called. With `in_context`, its function takes the parser's context first.

    Outside of a script a call works where it needs no context.
    """

    name: str
    function: Callable[..., Any]
    in_context: bool = False
    dtype: str = ""  # of a type name, such as T.int32
    owner: Buffer | None = None  # of a method: its first argument

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The expression, where it is one."""
        if ACTIVE.builders:
            return ACTIVE.builders[-1].call(self, args, kwargs)
        if self.in_context:
            raise DeclarationError(f"{self.name} is read by @T.prim_func and can't be called outside of a script or an IRBuilder")
        made = self.function(*(() if self.owner is None else (self.owner,)), *args, **kwargs)
        return made.make("v").value if isinstance(made, Pending) else made

    def __repr__(self) -> str:
        return self.name

    def __iter__(self) -> NoReturn:
        raise TypeError(f"{self.name} is no list")  # else Python would count up through __getitem__, for ever

    def __getitem__(self, items: Any) -> Any:
        """The older spelling of a type: ``T.Buffer[(128, 128), "float32"]``."""
        return self(*items) if isinstance(items, tuple) and len(items) == 2 and isinstance(items[1], str) else self(items)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Namespace:
    """A name with names in it: T, T.axis, I."""

    name: str
    entries: Mapping[str, Any] = field(default_factory=dict)
    other: Callable[[str], Any] | None = None  # makes entries that are too many to list; None for a name that is none

    def __repr__(self) -> str:
        return self.name

    def __getattr__(self, name: str) -> Any:
        # Names of Python's own protocols, such as __iter__ and __wrapped__, are none of the language, whatever `other` would make of them.
        found = None if name.startswith("__") else self.find(name)
        if found is None:
            raise AttributeError(f"{self.name} has no {name!r}")
        return found

    def find(self, name: str) -> Any:
        """The entry of this name, or None."""
        found = self.entries.get(name)
        return found if found is not None or self.other is None else self.other(name)


def is_python(value: Any) -> bool:
    """True for what Python's own operators calculate with: numbers, strings, lists, and objects of the program around."""
    return not isinstance(value, (ExprOp, Access, Buffer, Pending, Builder, Namespace, Loops))


def as_expr(value: Any) -> PrimExpr:
    """A value as an expression.

    Raises:
        DeclarationError: for what is none.
    """
    if isinstance(value, PrimExpr):
        return value
    if isinstance(value, Access):
        return BufferLoad(value.buffer, value.indices())
    if isinstance(value, Buffer):
        name = value.name
        raise DeclarationError(f"buffer {name} stands where a value belongs; write an element, {name}[...], or the pointer, {name}.data")
    if isinstance(value, Pending):
        made = None if value.is_statement else value.make("v").value
        if isinstance(made, PrimExpr):
            return made
        raise DeclarationError(f"{value.what} needs a name: assign it first")
    if isinstance(value, (Builder, Namespace)):
        raise DeclarationError(f"{value.name} stands where a value belongs" + ("; call it" if isinstance(value, Builder) else ""))
    if isinstance(value, (ExprOp, str, np.generic, *Number)):
        return convert(value)
    raise DeclarationError(f"a {type(value).__name__} stands where a value belongs; expected a number or an expression")


def as_condition(value: Any) -> PrimExpr:
    """A value as a bool; numbers are compared with zero."""
    expr = as_expr(value)
    return expr if parse_dtype(expr.dtype).code == "bool" else to_bool(expr)


def as_region(value: Any) -> BufferRegion:
    """An access, an element or a whole buffer as a region.

    Raises:
        DeclarationError: for anything else.
    """
    if isinstance(value, Buffer):
        return BufferRegion.full_region(value)
    if isinstance(value, BufferLoad):
        return BufferRegion.from_point(value.buffer, value.indices)
    if isinstance(value, BufferRegion):
        return value
    if isinstance(value, Access):
        if len(value.items) != value.buffer.ndim:
            raise DeclarationError(f"buffer {value.buffer.name} has {value.buffer.ndim} dimensions, and the region {len(value.items)}")
        return BufferRegion(value.buffer, tuple(_side(item) for item in value.items))
    raise DeclarationError("expected a region of a buffer, such as A[i, 0:16]")


def _side(item: Any) -> Range:
    if isinstance(item, Bounds):
        return item.range()
    index = as_expr(item)
    return Range.from_min_extent(index, IntImm(index.dtype, 1))


def matched(*args: Any) -> tuple[PrimExpr, ...]:
    """Operands in one dtype; numbers take that of the others."""
    # numbers stay Python's, so that `match_types` gives them the dtype of the other operand
    values = [arg if isinstance(arg, Number) else as_expr(arg) for arg in args]
    if len(values) == 1:
        return (as_expr(values[0]),)
    first, second = match_types(values[0], values[1])
    if len(values) == 2:
        return first, second
    last, first = match_types(values[2], first)
    return (*match_types(first, second), last)
