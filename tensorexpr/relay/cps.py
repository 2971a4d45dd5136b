"""Continuations: functions that don't return but hand their result on (Danvy and Filinski 1992, in one pass).

fn (%x) { if (%f(%x)) { 1 } else { 2 } }     fn (%x, %k) { %f(%x, fn (%v) { if (%v) { %k(1) } else { %k(2) } }) }

What is computed without calling a function of the program keeps its form. Behind `PartialEvaluate` the continuations are gone again, and
what lies behind a branch is known in each of its ways: references whose content was one of two values are followed through both.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..errors import DeclarationError, TypeMismatchError
from ..lower.passes import deep_recursion
from ..relax import expr as graph
from ..relax.struct_info import FuncStructInfo, ObjectStructInfo, StructInfo, TupleStructInfo
from ..tir.function import GlobalVar, IRModule
from ..tir.op_registry import Op
from . import generics
from .adt import Clause, Constructor, Match, Pattern, PatternConstructor, PatternTuple, PatternVar
from .expr import Call, Function, If, Let, Tuple, TupleGetItem, Var
from .lets import ATOMS, Lets, known_info
from .matching import pattern_fields
from .ty import info_of, type_of
from .type_names import Named, TypeVar
from .visitor import remade, substitute

Known = ChainMap[Any, Any]
# From what stands for a value, and the Lets of the body that it is in, to how that body ends.
Behind = Callable[[Any, Lets], Any]
_OPAQUE = ("Primitive", "Compiler", "Composite")


class _Converter:
    """Makes such functions; those of the module that they call are added to it."""

    def __init__(self, mod: IRModule | None) -> None:
        self._mod = mod
        self._made: dict[str, GlobalVar] = {}
        self.answer = TypeVar("answer")

    def info(self, info: StructInfo) -> StructInfo:
        """What is known of a value whose functions take continuations."""
        match info:
            case FuncStructInfo(params, ret):
                taken = tuple(map(self.info, params or ()))
                return FuncStructInfo((*taken, FuncStructInfo((self.info(ret),), self._answer)), self._answer, info.purity)
            case TupleStructInfo(fields):
                return TupleStructInfo(tuple(map(self.info, fields)))
            case Named() if getattr(info.type, "args", ()):
                args = tuple(type_of(self.info(info_of(one) or ObjectStructInfo())) for one in info.type.args)  # type: ignore[attr-defined]
                return Named(type(info.type)(*(args if hasattr(info.type, "value") else (info.type.func, args))))  # type: ignore[attr-defined]
        return info

    @property
    def _answer(self) -> StructInfo:
        return Named(self.answer)

    def top(self, func: Function) -> Function:
        """A function of the module; what all of its continuations return is one of its type parameters."""
        made = self.function(func, ChainMap(), None)
        return replace(made, type_params=(*func.type_params, self.answer))

    def function(self, func: Function, known: Known, lets: Lets | None) -> Function:
        """A function that hands its result on."""
        params = [self._variable(one) for one in func.params]
        inner, body, handed = known.new_child(dict(zip(func.params, params, strict=True))), Lets(lets), Var("k")
        infos: list[StructInfo] = []

        def end(atom: Any, lets: Lets) -> Any:
            infos.append(known_info(atom))
            return Call(handed, (atom,))

        made = body.around(self.value(func.body, inner, body, end))
        # What it hands on is known behind its body only.
        stated = info_of(func.ret_type)
        ret = self.info(stated) if stated is not None else _common(infos)
        typed = Var("k", FuncStructInfo((ret,), self._answer))
        return replace(func, params=(*params, typed), body=substitute(made, {handed: typed}), ret_type=self.answer)

    def _variable(self, var: Any, info: StructInfo | None = None) -> Var:
        stated = var.struct_info_annotation if info is None else info
        return Var(var.name_hint, None if stated is None or type(stated) is ObjectStructInfo else self.info(stated))

    def value(self, expr: Any, known: Known, lets: Lets, behind: Behind) -> Any:
        """How the body ends in which an expression is computed."""
        if expr in known:
            return behind(known[expr], lets)

        def defined(atom: Any, lets: Lets) -> Any:
            known[expr] = atom
            return behind(atom, lets)

        match expr:
            case GlobalVar():
                return behind(self._of_module(expr), lets)
            case Let(var, value, body):
                return self._bound(var, value, known, lets, lambda atom, lets: self.value(body, known, lets, defined))
            case Function() if not any(key in expr.attrs for key in _OPAQUE):
                return defined(lets.named(self.function(expr, known, lets)), lets)
            case graph.Call() if not isinstance(expr.op, (Op, Constructor, Function)) or self._is_open(expr.op):
                return self.value(expr.op, known, lets, lambda op, lets: self._call(op, expr.args, known, lets, defined))
            case graph.Call():
                return self._values(expr.args, known, lets, lambda atoms, lets: defined(lets.named(remade(expr, expr.op, atoms)), lets))
            case graph.Tuple(fields):
                return self._values(fields, known, lets, lambda atoms, lets: defined(lets.named(Tuple(atoms)), lets))
            case graph.TupleGetItem(whole, index):
                return self.value(whole, known, lets, lambda atom, lets: defined(lets.named(TupleGetItem(atom, index)), lets))
            case graph.If(cond, yes, no):
                return self.value(cond, known, lets, lambda atom, lets: self._joined(
                    [(yes, {}), (no, {})], known, lets, defined, lambda ways: If(atom, *ways)))  # fmt: skip
            case Match(data, clauses):
                return self.value(data, known, lets, lambda atom, lets: self._match(atom, clauses, expr.complete, known, lets, defined))
        if isinstance(expr, (*ATOMS, Function)):
            return behind(expr, lets)
        raise TypeMismatchError(f"to_cps: {type(expr).__name__} is no expression of Relay")

    @staticmethod
    def _is_open(op: Any) -> bool:
        return isinstance(op, Function) and not any(key in op.attrs for key in _OPAQUE)

    def _bound(self, var: Any, value: Any, known: Known, lets: Lets, behind: Behind) -> Any:
        if not isinstance(value, Function) or not self._is_open(value):

            def named(atom: Any, lets: Lets) -> Any:
                known[var] = atom
                return behind(atom, lets)

            return self.value(value, known, lets, named)
        # A function may call itself by the variable.
        known[var] = name = self._variable(var)
        return behind(lets.bound(name, self.function(value, known, lets)), lets)

    def _values(self, exprs: Sequence[Any], known: Known, lets: Lets, behind: Callable[[list[Any], Lets], Any]) -> Any:
        """The same for several expressions, in order."""

        def following(atoms: list[Any], lets: Lets) -> Any:
            if len(atoms) == len(exprs):
                return behind(atoms, lets)
            return self.value(exprs[len(atoms)], known, lets, lambda atom, lets: following([*atoms, atom], lets))

        return following([], lets)

    def _call(self, op: Any, args: Sequence[Any], known: Known, lets: Lets, behind: Behind) -> Any:
        def called(atoms: list[Any], lets: Lets) -> Any:
            signature = self._signature(op) if isinstance(op, GlobalVar) else op.struct_info
            result: StructInfo = ObjectStructInfo()
            if isinstance(signature, FuncStructInfo) and len(signature.params or ()) == len(atoms) + 1:
                *taken, last = signature.params  # type: ignore[misc]
                values = generics.bindings(FuncStructInfo(tuple(taken), self._answer), [known_info(one) for one in atoms], str(op))
                result = generics.instance(last.params[0], values) if isinstance(last, FuncStructInfo) and last.params else result
            return Call(op, (*atoms, lets.named(self._continuation(result, behind, lets))))

        return self._values(args, known, lets, called)

    def _continuation(self, info: StructInfo, behind: Behind, lets: Lets) -> Function:
        handed, body = Var("v", None if type(info) is ObjectStructInfo else info), Lets(lets)
        return Function((handed,), body.around(behind(handed, body)), self.answer)

    def _joined(
        self, ways: Sequence[tuple[Any, dict[Any, Any]]], known: Known, lets: Lets, behind: Behind, choose: Callable[[list[Any]], Any]
    ) -> Any:
        """Branches that hand their values to one continuation, which stands in front of them."""
        rest, infos, made = Var("k"), list[StructInfo](), []

        def end(atom: Any, lets: Lets) -> Any:
            infos.append(known_info(atom))
            return Call(rest, (atom,))

        for expr, values in ways:
            inner = Lets(lets)
            made.append(inner.around(self.value(expr, known.new_child(values), inner, end)))
        function = self._continuation(_common(infos), behind, lets)
        typed = lets.bound(Var("k", function.struct_info), function)
        return choose([substitute(one, {rest: typed}) for one in made])

    def _match(self, data: Any, clauses: Sequence[Clause], complete: bool, known: Known, lets: Lets, behind: Behind) -> Any:
        patterns, ways = [], []
        for clause in clauses:
            infos = {var: info for var, _, info in pattern_fields(clause.lhs, known_info(data), ())}
            values: dict[Any, Any] = {}
            patterns.append(self._pattern(clause.lhs, values, infos))
            ways.append((clause.rhs, values))
        return self._joined(
            ways, known, lets, behind, lambda made: Match(data, tuple(map(Clause, patterns, made)), complete)
        )  # fmt: skip

    def _pattern(self, pattern: Pattern, values: dict[Any, Any], infos: dict[Any, StructInfo]) -> Pattern:
        """A pattern with variables of its own."""
        if isinstance(pattern, PatternVar):
            values[pattern.var] = made = self._variable(pattern.var, infos[pattern.var])
            return PatternVar(made)
        if not isinstance(pattern, (PatternConstructor, PatternTuple)):
            return pattern
        return replace(pattern, patterns=tuple(self._pattern(one, values, infos) for one in pattern.patterns))

    def _of_module(self, var: GlobalVar) -> GlobalVar:
        """The function of the module that takes a continuation in place of one that doesn't."""
        name = var.name_hint
        if name in self._made:
            return self._made[name]
        func: Any = self._mod[var] if self._mod is not None and var in self._mod else None
        if self._mod is None or not isinstance(func, Function):
            raise DeclarationError(f"to_cps: @{name} is no function of Relay in a module that is given: to_cps(func, mod)")
        if func.ret_type is None:
            raise DeclarationError(f"to_cps: what @{name} returns isn't stated: relay.transform.InferType()(mod) states it")
        made = GlobalVar(f"{name}_cps")
        self._made[name] = made  # it may call itself
        self._mod.update_func(made, self.top(func))  # type: ignore[arg-type]
        return made

    def _signature(self, var: GlobalVar) -> StructInfo:
        name = next(own for own, made in self._made.items() if made == var)
        func: Any = self._mod[name]  # type: ignore[index]
        return self.info(FuncStructInfo(tuple(one.struct_info for one in func.params), info_of(func.ret_type)))  # type: ignore[arg-type]


def _common(infos: Sequence[StructInfo]) -> StructInfo:
    found: StructInfo = ObjectStructInfo()
    for one in infos:
        found = generics.joined(found, one)
    return found


def to_cps(func: Any, mod: IRModule | None = None) -> Function:
    """A function that takes, behind its parameters, what its result is handed to; so do all functions in it.

    Args:
        func: a function with known types (`transform.InferType`).
        mod: the module whose functions it calls; it gets those that hand on, `NAME_cps` for each.

    Raises:
        TypeMismatchError: for what is no function.
        DeclarationError: for a function of no module, or whose result isn't stated.
    """
    if not isinstance(func, Function):
        raise TypeMismatchError(f"to_cps takes a function of Relay, not {type(func).__name__}")
    with deep_recursion:
        return _Converter(mod).top(func)


def un_cps(func: Any) -> Function:
    """The function that returns what one of `to_cps` hands on.

    Raises:
        TypeMismatchError: for a function whose last parameter is no function.
    """
    info = func.params[-1].struct_info if isinstance(func, Function) and func.params else None
    if not isinstance(info, FuncStructInfo) or len(info.params or ()) != 1:
        raise TypeMismatchError("un_cps takes a function whose last parameter is a function of one value: what to_cps returns")
    result: Any = info.params[0]  # type: ignore[index]
    handed = Var("v", None if type(result) is ObjectStructInfo else result)
    params = tuple(Var(one.name_hint, one.struct_info_annotation) for one in func.params[:-1])
    body = Call(func, (*params, Function((handed,), handed, type_of(result))))
    kept = tuple(one for one in func.type_params if one is not getattr(info.ret, "type", None))
    return Function(params, body, type_of(result), kept, func.attrs)


__all__ = ["to_cps", "un_cps"]
