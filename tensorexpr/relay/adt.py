"""Algebraic types: their constructors, `match` on values of them, and types with parameters.

type List[A] { Cons(A, List[A]), Nil }                   TypeData(List, [A], [Cons, Nil])
match (%xs) { Cons(%h, _) => %h, Nil => 0 }              Match(xs, [Clause(PatternConstructor(Cons, [PatternVar(h), ...]), h), ...])

A value is its constructor's number and its fields (`runtime.container.ADT`). Graphs know no such types: there it is an object, which
`adt_make`, `adt_matches` and `adt_field` of `relax.op` handle; `generics` says what its fields are where they are taken out.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from ..dataclass import dataclass
from ..errors import DeclarationError
from ..relax.struct_info import FuncStructInfo, ObjectStructInfo, StructInfo
from ..tir.structured import Declared, Parts, Structured
from ..tir.types import Type
from .expr import Call, Expr, Var, as_expr
from .generics import joined
from .ty import info_of
from .type_names import GlobalTypeVar, Named, TypeCall, TypeKind, TypeVar


class Constructor(Expr):
    """What makes values of an algebraic type: `cons(x, nil())`.

    Args:
        name_hint: what it is called.
        inputs: the types of the fields.
        belong_to: the GlobalTypeVar of its type.
    """

    def __init__(self, name_hint: str, inputs: Sequence[Any] = (), belong_to: Any = None) -> None:
        self.name_hint, self.inputs, self.belong_to = name_hint, tuple(inputs), belong_to
        # Those of its type, which knows them when it is defined.
        self.place: int | None = None
        self.type_vars: tuple[Any, ...] = ()

    @property
    def tag(self) -> int:
        """Its number, which no constructor of another type has.

        Raises:
            DeclarationError: before its type is defined.
        """
        if self.place is None:
            raise DeclarationError(
                f"constructor {self.name_hint} has no type yet: relay.TypeData({self.belong_to}, type_vars, [...]) defines it"
            )
        return (zlib.crc32(self.belong_to.name_hint.encode()) & 0x7FFFFF) << 8 | self.place

    def structural_parts(self) -> Parts:
        """Its name and its type's."""
        return ("name", self.name_hint), ("type", self.belong_to.name_hint)

    def __call__(self, *args: Any, attrs: Any = None) -> Call:
        """A value."""
        return Call(self, args)

    def _derived(self) -> StructInfo:
        made = TypeCall(self.belong_to, self.type_vars)
        return FuncStructInfo(tuple(info_of(one) or ObjectStructInfo() for one in self.inputs), Named(made))

    def __str__(self) -> str:
        return self.name_hint


@dataclass(frozen=True, eq=False)
class TypeData(Type):
    """The definition of an algebraic type: `mod[header] = TypeData(header, type_vars, constructors)`.

    Args:
        header: its name.
        type_vars: its parameters.
        constructors: what makes its values.
    """

    header: GlobalTypeVar
    type_vars: tuple[TypeVar, ...] = ()
    constructors: tuple[Constructor, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "type_vars", tuple(self.type_vars))
        object.__setattr__(self, "constructors", tuple(self.constructors))
        for place, one in enumerate(self.constructors):
            if one.belong_to != self.header:
                raise DeclarationError(f"constructor {one.name_hint} belongs to {one.belong_to}, not to {self.header}")
            one.place, one.type_vars = place, self.type_vars
            one.__dict__.pop("struct_info", None)  # which was derived before the parameters were known

    @staticmethod
    def module_text(mod: Any, metadata: bool = False) -> str:
        """The text of a module that has types of Relay."""
        from .text import module_text

        return module_text(mod, None, metadata)


class Pattern(Structured):
    """Base of patterns."""


@dataclass(frozen=True, eq=False)
class PatternWildcard(Pattern):
    """Any value."""


@dataclass(frozen=True, eq=False)
class PatternVar(Pattern):
    """Any value, by a name."""

    var: Var

    def structural_parts(self) -> Parts:
        """The variable that it defines."""
        return (("var", Declared(self.var)),)


@dataclass(frozen=True, eq=False)
class PatternConstructor(Pattern):
    """A value of a constructor, whose fields match patterns; of none, whatever they are."""

    constructor: Constructor
    patterns: tuple[Pattern, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "patterns", tuple(self.patterns))
        wanted = len(self.constructor.inputs)
        if self.patterns and len(self.patterns) != wanted:
            raise DeclarationError(
                f"a pattern of {self.constructor.name_hint} has {wanted} patterns for its fields, not {len(self.patterns)}"
            )


@dataclass(frozen=True, eq=False)
class PatternTuple(Pattern):
    """A tuple whose elements match patterns."""

    patterns: tuple[Pattern, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "patterns", tuple(self.patterns))


@dataclass(frozen=True, eq=False)
class Clause(Structured):
    """What a match is if its value matches a pattern."""

    structural_scope: ClassVar[bool] = True

    lhs: Pattern
    rhs: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "rhs", as_expr(self.rhs))


@dataclass(frozen=True, eq=False, repr=False)
class Match(Expr):
    """The value of the first clause whose pattern matches.

    Args:
        data: the value that is looked at.
        clauses: in order.
        complete: whether they are all that there can be, which is checked when the graph is made; else what matches none is an error
            when it runs.
    """

    data: Any
    clauses: tuple[Clause, ...]
    complete: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", as_expr(self.data))
        object.__setattr__(self, "clauses", tuple(self.clauses))

    def _derived(self) -> StructInfo:
        found: StructInfo = ObjectStructInfo()
        for clause in self.clauses:
            found = joined(found, clause.rhs.struct_info)
        return found


def pattern_vars(pattern: Pattern) -> tuple[Var, ...]:
    """The variables that a pattern binds, from the left."""
    if isinstance(pattern, PatternVar):
        return (pattern.var,)
    return tuple(var for one in getattr(pattern, "patterns", ()) for var in pattern_vars(one))


def code(pattern: Pattern) -> tuple[Any, ...]:
    """A pattern as `relax.ops.algebraic` takes it: () matches anything, (number, codes of fields...) a constructor, (-1, ...) a tuple."""
    match pattern:
        case PatternConstructor(constructor, patterns):
            return (constructor.tag, *map(code, patterns))
        case PatternTuple(patterns):
            parts = tuple(map(code, patterns))
            return (-1, *parts) if any(parts) else ()
    return ()


def unmatched(patterns: Sequence[Pattern], definition: Callable[[GlobalTypeVar], TypeData]) -> Iterator[Pattern]:
    """The values that no pattern matches, as patterns.

    Args:
        patterns: in order.
        definition: of types by name.
    """
    waiting: list[Pattern] = [PatternWildcard()]
    while waiting:
        candidate = waiting.pop(0)
        for pattern in patterns:
            verdict, narrower = _against(candidate, pattern, definition)
            if verdict:
                break
            if narrower is not None:  # neither all nor none of it: its parts are looked at instead
                waiting = [*narrower, *waiting]
                break
        else:
            yield candidate


def _against(candidate: Pattern, pattern: Pattern, definition: Any) -> tuple[bool, list[Pattern] | None]:
    """Whether a pattern matches all of a candidate, and else, if it matches some of it, the candidate as narrower ones."""
    match pattern:
        case PatternWildcard() | PatternVar():
            return True, None
        case PatternConstructor(constructor) if isinstance(candidate, PatternWildcard):
            every = definition(constructor.belong_to).constructors
            return False, [PatternConstructor(one, (PatternWildcard(),) * len(one.inputs)) for one in every]
        case PatternTuple(patterns) if isinstance(candidate, PatternWildcard):
            return False, [PatternTuple((PatternWildcard(),) * len(patterns))]
        case PatternConstructor(constructor) if constructor != candidate.constructor and constructor.tag != candidate.constructor.tag:  # type: ignore[attr-defined]
            return False, None
    parts: Any = candidate.patterns  # type: ignore[attr-defined]
    all_matched = True
    for place, (part, wanted) in enumerate(zip(parts, pattern.patterns, strict=False)):  # type: ignore[attr-defined]
        verdict, narrower = _against(part, wanted, definition)
        if narrower is not None:
            # `rebuilt` in order, so that counterexamples come in the order of constructors.
            return False, [_with(candidate, place, one) for one in narrower]
        if not verdict:
            all_matched = False
            break
    return all_matched, None


def _with(candidate: Any, place: int, part: Pattern) -> Pattern:
    parts = (*candidate.patterns[:place], part, *candidate.patterns[place + 1 :])
    return PatternTuple(parts) if isinstance(candidate, PatternTuple) else PatternConstructor(candidate.constructor, parts)


__all__ = [
    "Clause", "Constructor", "GlobalTypeVar", "Match", "Pattern", "PatternConstructor", "PatternTuple", "PatternVar", "PatternWildcard",
    "TypeCall", "TypeData", "TypeKind", "TypeVar",
]  # fmt: skip
