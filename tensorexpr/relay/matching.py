"""Values of algebraic types in graphs: how they are made, looked at and taken apart.

match (%xs) { Cons(%h, %t) => a, Nil => b }     c = adt.matches(xs, Cons); if c: h = adt.field(xs, 0); ...; a    else: b

A field is an object for the graph; what `generics` says of it is a cast behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import DeclarationError
from ..relax import expr as graph
from ..relax.block_builder import BlockBuilder
from ..relax.op import adt_field, adt_make, adt_matches, adt_unmatched
from ..relax.relations import BaseCheckResult, struct_info_base_check
from ..relax.struct_info import FuncStructInfo, ObjectStructInfo, StructInfo, TupleStructInfo
from ..tir.function import GlobalVar
from . import generics
from .adt import Clause, Constructor, Match, PatternConstructor, PatternTuple, PatternVar, code
from .expr import Call, Function, Var
from .visitor import Steps


def _vague(info: StructInfo) -> bool:
    """Whether a graph takes a value, or a part of it, for an object."""
    return isinstance(info, ObjectStructInfo) or (isinstance(info, TupleStructInfo) and any(map(_vague, info.fields)))


def with_effects(info: StructInfo) -> StructInfo:
    """The same of a value whose functions may have effects."""
    match info:
        case TupleStructInfo(fields):
            return TupleStructInfo(tuple(map(with_effects, fields)))
        case FuncStructInfo(params, ret):
            return FuncStructInfo(None if params is None else tuple(map(with_effects, params)), with_effects(ret), False)
    return info


class Matching:
    """What emits such values, and knows their types.

    Args:
        builder: where they are emitted.
        signatures: of functions of the module.
        pure: whether no function of the module has effects.
    """

    def __init__(self, builder: BlockBuilder, signatures: Mapping[str, StructInfo], pure: bool) -> None:
        self.builder, self.signatures, self.pure = builder, signatures, pure
        self._infos: dict[Any, StructInfo] = {}  # of values of a graph of which it knows less

    def shared(self, expr: Any) -> Steps:
        """Before a scope begins: what the code around computes too, lest both do."""
        raise NotImplementedError

    def inside(self, expr: Any, known: dict[Any, Any]) -> Steps:
        """A value in a scope of its own, in which `known` is known."""
        raise NotImplementedError

    def info(self, value: Any) -> StructInfo:
        """What is known of a value of the graph."""
        if isinstance(value, GlobalVar):
            return self.signatures.get(value.name_hint, ObjectStructInfo())
        if isinstance(value, graph.Tuple):
            return TupleStructInfo(tuple(map(self.info, value.fields)))
        found: StructInfo = self._infos.get(value) or value.struct_info
        return found

    def known_as(self, value: Any, info: StructInfo) -> Any:
        """A value of which `info` is known besides: cast to it where the graph doesn't know it."""
        if type(info) is ObjectStructInfo:
            return value
        whole = generics.joined(self.info(value), info)
        wanted = generics.erased(whole)
        if _vague(value.struct_info) and struct_info_base_check(wanted, value.struct_info) is not BaseCheckResult.PASS:
            value = self.builder.match_cast(value, wanted)
        if generics.is_generic(whole) and not isinstance(value, graph.Tuple):
            self._infos[value] = whole
        return value

    def parameter(self, name: str, info: StructInfo) -> graph.Var:
        """A parameter of a function."""
        info = info if self.pure else with_effects(info)
        if not generics.is_generic(info):
            return graph.Var(name, info)
        made = graph.Var(name, generics.erased(info))
        self._infos[made] = info
        return made

    def branch(self, steps: Steps) -> Steps:
        """A branch as a sequence of its own."""
        outer = self.builder.begin_scope()
        result = yield from steps
        return graph.SeqExpr(self.builder.end_scope(outer), result)

    def chosen(self, cond: Any, yes: Any, no: Any) -> Any:
        """One of two sequences."""
        made = self.builder.emit(graph.If(cond, yes, no))
        # Of two tensors `If` itself knows what they have in common.
        infos = self.info(yes.body), self.info(no.body)
        return self.known_as(made, generics.joined(*infos)) if any(map(_vague, infos)) or any(map(generics.is_generic, infos)) else made

    def made(self, constructor: Constructor, args: Sequence[Any]) -> Any:
        """A value of a constructor."""
        signature: Any = constructor.struct_info
        info = generics.returned(signature, [self.info(one) for one in args], f"constructor {constructor.name_hint}")
        return self.known_as(self.builder.emit(adt_make(tuple(args), constructor.tag)), info)

    @staticmethod
    def as_function(constructor: Constructor) -> Function:
        """A constructor as a function."""
        params = [Var(f"field{place}", one) for place, one in enumerate(constructor.inputs)]
        return Function(tuple(params), Call(constructor, params))

    def match(self, match: Match) -> Steps:
        """The value of the first clause whose pattern matches."""
        if not match.clauses:
            raise DeclarationError("a match without clauses has no value")
        value = yield match.data
        if isinstance(value, graph.Tuple):
            info, value = self.info(value), self.builder.emit(value)
            value = self.known_as(value, info)
        for clause in match.clauses:
            yield from self.shared(clause.rhs)
        return (yield from self._clauses(value, match.clauses, match.complete))

    def _clauses(self, value: Any, clauses: Sequence[Clause], complete: bool) -> Steps:
        if not clauses:
            return self.builder.emit(adt_unmatched(value))
        first, *rest = clauses
        pattern = code(first.lhs)
        if not pattern or (complete and not rest):
            return (yield from self._clause(value, first))
        cond = self.builder.emit(adt_matches(value, pattern))
        yes = yield from self.branch(self._clause(value, first))
        no = yield from self.branch(self._clauses(value, rest, complete))
        return self.chosen(cond, yes, no)

    def _clause(self, value: Any, clause: Clause) -> Steps:
        known: dict[Any, Any] = {}
        for var, path, info in pattern_fields(clause.lhs, self.info(value), ()):
            field = self.builder.emit(adt_field(value, path)) if path else value
            known[var] = self.known_as(field, generics.joined(info, var.struct_info))
        return (yield from self.inside(clause.rhs, known))


def pattern_fields(pattern: Any, info: StructInfo, path: tuple[int, ...]) -> Iterator[tuple[Var, tuple[int, ...], StructInfo]]:
    """The variables of a pattern, where in a value they are, and what is known of them."""
    infos: Sequence[StructInfo]
    match pattern:
        case PatternVar(var):
            yield var, path, info
            return
        case PatternConstructor(constructor, patterns):
            signature: FuncStructInfo = constructor.struct_info  # type: ignore[assignment]
            values: generics.Values = {}
            generics.bind(signature.ret, info, values)
            infos = [generics.instance(one, values) for one in signature.params or ()]
        case PatternTuple(patterns):
            infos = info.fields if isinstance(info, TupleStructInfo) else [ObjectStructInfo()] * len(patterns)
        case _:
            return
    for place, (part, one) in enumerate(zip(patterns, infos, strict=False)):
        yield from pattern_fields(part, one, (*path, place))


__all__ = ["Matching", "pattern_fields"]
