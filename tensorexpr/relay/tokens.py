"""The words of Relay's text: tokens, errors that show their line, numbers and types. `parser` reads programs of them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ..dataclass import dataclass, field
from ..errors import DeclarationError, DiagnosticError, TypeMismatchError
from ..ir.source import SourceName, Span
from ..tir.expr import IntImm
from ..tir.types import FuncType, TupleType
from .text import SUFFIXES
from .ty import EXTENTS, ShapeVar, TensorType, info_of
from .ty import Any as AnyExtent
from .type_names import GlobalTypeVar, RefType, TypeCall, TypeVar

_TOKENS = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/|\#\[version[^\]]*\])
    |(?P<local>%[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*|%\d+)
    |(?P<global>@[A-Za-z_][\w.]*)
    |(?P<number>-?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|inf|nan)(?:f64|f32|f16|f|[iu](?:8|16|32|64))?(?![\w]))
    |(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<name>[A-Za-z_][\w.]*)
    |(?P<sign>->|==|!=|<=|>=|[-+*/<>=(){}\[\],;:.?])""",
    re.VERBOSE | re.DOTALL,
)
_NUMBER = re.compile(r"(-?(?:inf|nan|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?))(\w*)")
_DTYPES = {suffix: kind for kind, suffix in SUFFIXES.items() if suffix} | {"f32": "float32", "i32": "int32"}


class RelayTextError(DeclarationError, DiagnosticError):
    """A text that is no program of Relay's."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a text, and where it stands."""

    kind: str
    text: str
    place: int


@dataclass(slots=True)
class Tokens:
    """One text, token by token.

    Args:
        text: the program.
        source: how errors call it.
    """

    text: str
    source: str
    tokens: list[Token] = field(default_factory=list)
    at: int = 0
    lines: list[int] = field(default_factory=list)  # where each begins
    symbols: dict[str, Any] = field(default_factory=dict)
    type_names: dict[str, Any] = field(default_factory=dict)  # algebraic types and, within what has them, type parameters

    def __post_init__(self) -> None:
        place = 0
        while place < len(self.text):
            found = _TOKENS.match(self.text, place)
            if found is None:
                self.fail(f"{self.text[place]!r} begins nothing", place)
            if found.lastgroup != "skip":
                self.tokens.append(Token(str(found.lastgroup), found.group(), place))
            place = found.end()
        self.tokens.append(Token("end", "the end", place))

    def _position(self, place: int) -> tuple[int, int]:
        """The line and the column of a character, from 1 on."""
        if not self.lines:
            self.lines = [0, *(found.end() for found in re.finditer("\n", self.text))]
        line = bisect_right(self.lines, place)
        return line, place - self.lines[line - 1] + 1

    def span(self, begin: int) -> Span:
        """From a token on to the last one that was taken."""
        last = self.tokens[max(self.at - 1, begin)]
        (line, column), (end_line, end_column) = self._position(self.tokens[begin].place), self._position(last.place + len(last.text))
        return Span(SourceName(self.source), line, end_line, column, end_column)

    def fail(self, message: str, place: int | None = None) -> NoReturn:
        """An error, with the line that it is about."""
        where = self.tokens[min(self.at, len(self.tokens) - 1)].place if place is None else place
        line, column = self._position(where)
        shown = self.text.splitlines()[line - 1] if line <= len(self.text.splitlines()) else ""
        raise RelayTextError(f"{self.source}:{line}:{column}: {message}\n    {shown}\n    {' ' * (column - 1)}^")

    # Tokens

    def next(self) -> Token:
        """The token at hand."""
        return self.tokens[self.at]

    def take(self, *texts: str) -> bool:
        """Whether the token at hand is one of these; then the one behind it is at hand."""
        if self.next().text in texts and self.next().kind in ("sign", "name"):
            self.at += 1
            return True
        return False

    def need(self, text: str) -> None:
        """Take a token.

        Raises:
            DeclarationError: if it is another one.
        """
        if not self.take(text):
            self.fail(f"expected {text!r}, not {self.next().text!r}")

    def taken(self, kind: str) -> str:
        """The text of the token at hand, which has to be of a kind."""
        token = self.next()
        if token.kind != kind:
            self.fail(f"expected a {kind}, not {token.text!r}")
        self.at += 1
        return token.text

    def listed(self, close: str, item: Callable[[], Any]) -> tuple[list[Any], bool]:
        """Items with commas between, up to a sign; and whether a comma stood behind the last one."""
        found: list[Any] = []
        while not self.take(close):
            found.append(item())
            if not self.take(","):
                self.need(close)
                return found, False
        return found, bool(found)

    # Types

    def type(self) -> Any:
        """A type; None for `_`."""
        if self.take("_"):
            return None
        if self.take("("):
            return TupleType(tuple(self.listed(")", self.type)[0]))
        if self.take("fn"):
            around = dict(self.type_names)
            own = self.type_params()
            self.need("(")
            params = self.listed(")", self.type)[0]
            self.need("->")
            function = FuncType(tuple(params), self.type(), own)
            self.type_names = around
            return function
        begin, name = self.at, self.taken("name")
        if name == "ref" and self.take("("):
            held = self.type()
            self.need(")")
            return RefType(held)
        known = self.type_names.get(name)
        if isinstance(known, GlobalTypeVar):
            return TypeCall(known, tuple(self.listed("]", self.type)[0]) if self.take("[") else ())
        if known is not None:
            return known
        extents: list[Any] = []
        if name == "Tensor":
            self.need("[")
            self.need("(")
            extents = self.listed(")", self.extent)[0]
            self.need(",")
            name = self.taken("name")
            self.need("]")
        try:
            made = TensorType(tuple(extents), name)
            info_of(made)  # which knows the dtypes that there are
            return made
        except TypeMismatchError as error:
            self.at = begin
            self.fail(str(error))

    def type_params(self) -> tuple[TypeVar, ...]:
        """`[A, B]`, known from here on; none where there is no bracket."""
        names = self.listed("]", lambda: self.taken("name"))[0] if self.take("[") else []
        made = tuple(map(TypeVar, names))
        self.type_names |= dict(zip(names, made, strict=True))
        return made

    def extent(self) -> Any:
        """An extent: `n * 4 + 1`."""
        found = self.product()
        while self.next().text in ("+", "-"):
            sign, other = self.taken("sign"), self.product()
            found = found + other if sign == "+" else found - other
        return found

    def product(self) -> Any:
        """Factors of an extent, with `*` between."""
        found = self.factor()
        while self.take("*"):
            found = found * self.factor()
        return found

    def factor(self) -> Any:
        """A number, `?`, or a name that is the same extent wherever it stands."""
        if self.take("("):
            found = self.extent()
            self.need(")")
            return found
        if self.take("?"):
            return AnyExtent()
        if self.next().kind == "name":
            name = self.taken("name")
            if name in EXTENTS and self.take("("):
                operands = self.listed(")", self.extent)[0]
                if len(operands) != 2:
                    self.fail(f"{name} of extents takes two, not {len(operands)}")
                # Numbers as nodes, so that two of them are one, too.
                return EXTENTS[name](*(IntImm("int64", one) if isinstance(one, int) else one for one in operands))
            return self.symbols.setdefault(name, ShapeVar(name))
        return self.integer()

    def integer(self) -> int:
        """A number without a point."""
        text = self.next().text
        if not re.fullmatch(r"-?\d+", text):
            self.fail(f"expected an integer, not {text!r}")
        self.at += 1
        return int(text)

    def number(self, text: str) -> tuple[Any, str]:
        """A number and its dtype: by its suffix; of none int32, or float32 with a point or exponent."""
        found = _NUMBER.fullmatch(text)
        assert found is not None  # the token's pattern is narrower
        digits, suffix = found.groups()
        whole = re.fullmatch(r"-?\d+", digits)
        kind = _DTYPES.get(suffix, "int32" if whole else "float32")
        if kind.startswith("float"):
            return float(digits), kind
        value = int(digits) if whole else None
        known = np.iinfo(kind)
        if value is None or not known.min <= value <= known.max:
            self.at -= 1
            self.fail(f"{text} is no {kind}")
        return value, kind
