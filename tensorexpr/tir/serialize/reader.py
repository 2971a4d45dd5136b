"""Rows to expressions, with everything checked on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ...dataclass import dataclass
from ...errors import RecordError, TensorExprError
from ..buffer import Buffer
from ..dtype import parse_dtype
from ..expr import CommReducer, IterVar, PrimExpr, Var
from .rows import READERS, shown

JSON = Any
_Made = TypeVar("_Made", PrimExpr, IterVar, CommReducer, Var)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a document may hold: rows, characters of a string, lanes of a vector, nodes once sharing is undone, depth."""

    rows: int = 100_000
    text: int = 4_096
    lanes: int = 1_024
    tree: int = 10_000_000
    depth: int = 5_000


class ExprReader:
    """Makes expressions of rows. All rows are checked and built at once; what they describe is fetched by number."""

    def __init__(
        self,
        rows: JSON,
        variables: Mapping[str, Var] | None = None,
        producer: Callable[[JSON], Any] | None = None,
        buffer: Callable[[JSON], Buffer] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._limits = limits or Limits()
        self._variables = dict(variables or {})
        self._producer = producer
        self._buffer = buffer
        self._made: list[Any] = []
        self._used: list[int] = []  # rows that the present one refers to
        self._weights: list[tuple[int, int]] = []  # by row: nodes of its tree, depth
        if not isinstance(rows, list) or len(rows) > self._limits.rows:
            raise RecordError(f"an expression table is a list of at most {self._limits.rows} rows")
        for number, row in enumerate(rows):
            self._read(number, row)

    def expr(self, number: JSON) -> PrimExpr:
        """The expression of a row."""
        return self._get(number, PrimExpr)

    def axis(self, number: JSON) -> IterVar:
        """The axis of a row."""
        return self._get(number, IterVar)

    def reducer(self, number: JSON) -> CommReducer:
        """The combiner of a row."""
        return self._get(number, CommReducer)

    def variable(self, number: JSON) -> Var:
        """The variable of a row."""
        return self._get(number, Var)

    def _get(self, number: JSON, kind: type[_Made]) -> _Made:
        # Rows refer to rows before them, so no document has a cycle. By `type`, as isinstance takes True for 1.
        if type(number) is not int or not 0 <= number < len(self._made):
            raise RecordError(f"{shown(number)} is no row of the table, which has {len(self._made)} so far")
        made = self._made[number]
        if not isinstance(made, kind):
            raise RecordError(f"row {number} is a {type(made).__name__}; a {kind.__name__} is needed")
        self._used.append(number)
        return made

    def _read(self, number: int, row: JSON) -> None:
        """Check one row and build what it describes."""
        name = row[0] if isinstance(row, list) and row else row
        if not isinstance(row, list) or not isinstance(name, str) or name not in READERS:
            raise RecordError(f"row {number} is no known node: {shown(name)}")
        arity, read = READERS[name]
        if len(row) != arity + 1:
            raise RecordError(f"row {number}: {name} has {arity} fields, not {len(row) - 1}")
        self._used = []
        try:
            made = read(self, *row[1:])
        except RecordError as error:
            raise RecordError(f"row {number}: {error}") from None
        except TensorExprError as error:
            raise RecordError(f"row {number} is an ill-typed {name}: {str(error)[:300]}") from error
        self._weigh(number)
        self._made.append(made)

    def _weigh(self, number: int) -> None:
        """Refuse what would explode when somebody walks it without sharing, or is too deep to be meant."""
        size, depth = 1, 1
        # The sums of what the row holds: a chain of x + x over 40 rows is a tree of 2^40 nodes.
        for used in self._used:
            size += self._weights[used][0]
            depth = max(depth, self._weights[used][1] + 1)
        if size > self._limits.tree or depth > self._limits.depth:
            raise RecordError(f"row {number} stands for {size} nodes, {depth} deep; at most {self._limits.tree} and {self._limits.depth}")
        self._weights.append((size, depth))

    # Checked fields.

    def exprs(self, numbers: JSON) -> tuple[PrimExpr, ...]:
        """A list of rows that are expressions."""
        return tuple(self.expr(number) for number in self.list(numbers))

    def list(self, value: JSON) -> Sequence[JSON]:
        """A list."""
        if not isinstance(value, list):
            raise RecordError(f"{shown(value)} is no list")
        return value

    def text(self, value: JSON) -> str:
        """A string within the limit."""
        if not isinstance(value, str) or len(value) > self._limits.text:
            raise RecordError(f"{shown(value)} is no string of at most {self._limits.text} characters")
        return value

    def dtype(self, value: JSON) -> str:
        """A known dtype, spelled as the IR does, with few enough lanes."""
        dtype = self.text(value)
        if len(dtype) > 32 or not dtype.isascii():
            raise RecordError(f"{shown(dtype)} is no dtype")
        parsed = parse_dtype(dtype)
        if str(parsed) != dtype or parsed.lanes > self._limits.lanes:
            raise RecordError(f"{dtype} is no dtype of at most {self._limits.lanes} lanes")
        return dtype

    def integer(self, value: JSON, low: int, high: int) -> int:
        """An integer in [low, high]."""
        if type(value) is not int or not low <= value <= high:
            raise RecordError(f"{shown(value)} is no integer from {low} to {high}")
        return value

    def lanes(self, value: JSON) -> int:
        """A number of lanes."""
        return self.integer(value, 2, self._limits.lanes)

    def scalar(self, number: JSON) -> PrimExpr:
        """A row that is an expression of one lane and no handle."""
        expr = self.expr(number)
        if parse_dtype(expr.dtype).lanes > 1 or expr.dtype == "handle":
            raise RecordError(f"row {number} is {expr.dtype}, not a scalar")
        return expr

    def outer(self, name: JSON) -> Var:
        """A variable that the caller knows by name."""
        found = self._variables.get(self.text(name))
        if found is None:
            raise RecordError(f"no variable {shown(name)}; known: {', '.join(self._variables) or 'none'}")
        return found

    def produced(self, value: JSON) -> Any:
        """The tensor that the caller sees in `value`."""
        return self._called(self._producer, "producer", value)

    def stored(self, value: JSON) -> Buffer:
        """The buffer that the caller sees in `value`."""
        found = self._called(self._buffer, "buffer", value)
        if not isinstance(found, Buffer):
            raise RecordError(f"{shown(value)} is no buffer")
        return found

    def _called(self, callback: Callable[[JSON], Any] | None, name: str, value: JSON) -> Any:
        if callback is None:
            raise RecordError(f"the table reads a {name}, which has no place here")
        try:
            return callback(value)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise RecordError(f"{shown(value)} names no {name}") from error
