"""Partial evaluation: what is known of a program's values is computed before it runs (Jones, Gomard and Sestoft 1993, chapter 7).

def @main(%x) { let %f = fn (%n, %y) { if (%n == 0) { %y } else { %f(%n - 1, %y * %x) } }; %f(2, %x) }
def @main(%x) { let %x0 = multiply(%x, %x); let %x1 = multiply(%x0, %x); %x1 }

A value is known in part: a tuple whose fields are known, a constructor, a function with what it captured, a reference whose content
is followed while no call that isn't known may change it. What is left to run is named in the order of the program, so that effects keep
theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..dataclass import dataclass, field, replace
from ..lower.passes import ModulePass, deep_recursion
from ..relax import expr as graph
from ..relax.struct_info import FuncStructInfo, ObjectStructInfo, StructInfo, TupleStructInfo
from ..tir.function import GlobalVar, IRModule
from ..tir.op_registry import Op
from . import generics
from .adt import Clause, Constructor, Match, Pattern, PatternConstructor, PatternTuple, PatternVar
from .constants import folded
from .expr import Call, Function, If, Let, Tuple, TupleGetItem, Var
from .lets import Lets, known_info
from .matching import pattern_fields
from .references import RefCreate, Reference, RefRead, RefWrite
from .ty import info_of, type_of
from .visitor import remade

# A bound for programs that unfold to more than anybody wants to read: calls behind it stay calls.
_MOST_CALLS = 20_000
_DEEPEST = 400
_OPAQUE = ("Primitive", "Compiler", "Composite")  # what passes made, and others compile


@dataclass(eq=False)
class _Value:
    """A value that is computed when the program runs, or a constant: `atom` stands for it."""

    atom: Any

    @property
    def data(self) -> Any:
        """The constant that it is."""
        return self.atom if isinstance(self.atom, graph.Constant) else None


@dataclass(eq=False)
class _Lazy(_Value):
    """A value without effects that is put into the program where something there uses it."""

    atom: Any = field(default=None, init=False)
    atoms: dict[Lets, Any] = field(default_factory=dict, init=False)


@dataclass(eq=False)
class _Fields(_Lazy):
    """A tuple, or a value of a constructor."""

    fields: tuple[_Value, ...]
    constructor: Constructor | None = None
    size: int = field(init=False)  # how many constructors it is made of

    def __post_init__(self) -> None:
        self.size = int(self.constructor is not None) + sum(getattr(one, "size", 0) for one in self.fields)


@dataclass(eq=False)
class _Cell(_Value):
    """A reference that was made here."""


@dataclass(eq=False)
class _Closure(_Lazy):
    """A function with what is known around it; the variable by which it may call itself."""

    func: Function
    around: _Known
    name: Any = None


class _Known:
    """The values of variables and nodes in a body, and of those around it; what type parameters are there."""

    def __init__(self, around: _Known | None = None, types: Mapping[Any, StructInfo] | None = None) -> None:
        self._own: dict[Any, _Value] = {}
        self._around = around
        self.types: dict[Any, StructInfo] = {**(around.types if around else {}), **(types or {})}

    def get(self, node: Any) -> _Value | None:
        scope: _Known | None = self
        while scope is not None:
            if node in scope._own:
                return scope._own[node]
            scope = scope._around
        return None

    def define(self, node: Any, value: _Value) -> _Value:
        self._own[node] = value
        return value


def _measures(args: Sequence[_Value]) -> dict[Any, float]:
    """Natural numbers of what is known of arguments: of integers their values, of algebraic values how many constructors they have."""
    found: dict[Any, float] = {}
    waiting: list[tuple[Any, _Value]] = list(enumerate(args))
    while waiting:
        place, one = waiting.pop()
        data = one.data
        if isinstance(one, _Fields) and one.constructor is None:
            waiting += [((place, number), part) for number, part in enumerate(one.fields)]
        elif isinstance(one, _Fields):
            found[place] = one.size
        elif data is not None and data.data.shape == () and str(data.data.dtype).startswith(("int", "uint")):
            number = int(data.data.numpy())
            found[place] = number if number >= 0 else float("inf")
    return found


class _Evaluator:
    """Evaluates functions of a module as far as their values are known."""

    def __init__(self, mod: IRModule) -> None:
        self._mod = mod
        self._store: dict[_Cell, _Value] = {}  # what references hold
        self._active: dict[Any, dict[Any, float]] = {}  # of functions that are being evaluated: the least of their arguments so far
        self._calls = self._depth = 0

    def top(self, func: Function) -> Function:
        """A function of the module."""
        return self._residual(func, _Known(), None)

    # What is put into the program.

    def _atom(self, value: _Value, lets: Lets) -> Any:
        """What stands for a value."""
        if not isinstance(value, _Lazy):
            return value.atom
        for one in lets.outwards():
            if one in value.atoms:
                return value.atoms[one]
        return value.atoms.setdefault(lets, self._written(value, lets))

    def _written(self, value: _Lazy, lets: Lets) -> Any:
        if isinstance(value, _Fields):
            parts = [self._atom(one, lets) for one in value.fields]
            made = Tuple(parts) if value.constructor is None else Call(value.constructor, parts)
            return lets.named(made, self._info(value))
        assert isinstance(value, _Closure)
        var = Var(lets.fresh() if value.name is None else value.name.name_hint, self._info(value))
        # The name is there before the body, which may mention it.
        value.atoms[lets] = var
        made_func = self._residual(value.func, value.around, lets)
        return lets.bound(var, made_func)

    def _residual(self, func: Function, around: _Known, lets: Lets | None) -> Function:
        """A function of arguments that aren't known."""
        known, body = _Known(around), Lets(lets)
        infos = [one.struct_info_annotation for one in func.params]
        params = [Var(one.name_hint, info and generics.instance(info, known.types)) for one, info in zip(func.params, infos, strict=True)]
        for param, one in zip(func.params, params, strict=True):
            known.define(param, _Value(one))
        outer, self._store = self._store, {}  # it runs some time
        result = self._atom(self.value(func.body, known, body), body)
        self._store = outer
        stated = info_of(func.ret_type)
        ret = None if stated is None else type_of(generics.instance(stated, known.types))
        return replace(func, params=tuple(params), body=body.around(result), ret_type=ret)

    def _info(self, value: _Value) -> StructInfo:
        match value:
            case _Fields(fields=fields, constructor=None):
                return TupleStructInfo(tuple(map(self._info, fields)))
            case _Fields(fields=fields, constructor=constructor):
                signature: Any = constructor.struct_info  # type: ignore[union-attr]
                return generics.returned(signature, [self._info(one) for one in fields])
            case _Closure(func=func, around=around):
                return generics.instance(known_info(func), around.types)
        if isinstance(value.atom, GlobalVar):
            return self._signature(value.atom)
        info: StructInfo = value.atom.struct_info
        return info

    def _signature(self, var: GlobalVar) -> StructInfo:
        if var not in self._mod or not isinstance(self._mod[var], Function):
            return ObjectStructInfo()
        func: Any = self._mod[var]
        return FuncStructInfo(tuple(one.struct_info for one in func.params), info_of(func.ret_type) or ObjectStructInfo())

    # What is computed.

    def value(self, expr: Any, known: _Known, lets: Lets) -> _Value:
        """The value of an expression."""
        whole = expr
        while isinstance(expr, Let) and known.get(expr) is None:
            if isinstance(expr.value, Function) and not any(key in expr.value.attrs for key in _OPAQUE):
                known.define(expr.var, known.define(expr.value, _Closure(expr.value, known, expr.var)))
            else:
                known.define(expr.var, self.value(expr.value, known, lets))
            expr = expr.body
        found = known.get(expr)
        return known.define(whole, known.define(expr, self._computed(expr, known, lets)) if found is None else found)

    def _computed(self, expr: Any, known: _Known, lets: Lets) -> _Value:
        match expr:
            case Function() if not any(key in expr.attrs for key in _OPAQUE):
                return _Closure(expr, known)
            case Reference():
                return self._reference(expr, known, lets)
            case graph.Call():
                return self._call(expr, known, lets)
            case graph.Tuple(fields):
                return _Fields(tuple(self.value(one, known, lets) for one in fields))
            case graph.TupleGetItem(whole, index):
                value = self.value(whole, known, lets)
                if isinstance(value, _Fields):
                    return value.fields[index]
                return _Value(lets.named(TupleGetItem(self._atom(value, lets), index)))
            case graph.If(cond, yes, no):
                condition = self.value(cond, known, lets)
                if condition.data is not None:
                    return self.value(yes if bool(condition.data.data.numpy()) else no, _Known(known), lets)
                branches = self._ways([(yes, {}), (no, {})], known, lets)
                return _Value(lets.named(If(self._atom(condition, lets), *branches)))
            case Match():
                return self._match(expr, known, lets)
        return _Value(expr)

    def _ways(self, ways: list[tuple[Any, dict[Any, _Value]]], known: _Known, lets: Lets) -> list[Any]:
        """Expressions of which one is computed. Behind them is known what each of them leaves alone."""
        before, after, made = self._store, list[dict[_Cell, _Value]](), []
        for expr, values in ways:
            self._store, scope, inner = dict(before), _Known(known), Lets(lets)
            for node, value in values.items():
                scope.define(node, value)
            made.append(inner.around(self._atom(self.value(expr, scope, inner), inner)))
            after.append(self._store)
        self._store = {cell: value for cell, value in before.items() if all(one.get(cell) is value for one in after)}
        return made

    def _reference(self, expr: Any, known: _Known, lets: Lets) -> _Value:
        given = [self.value(one, known, lets) for one in expr.args]
        atoms = [self._atom(one, lets) for one in given]
        match expr:
            case RefCreate():
                cell = _Cell(lets.named(RefCreate(atoms[0])))
                self._store[cell] = given[0]
                return cell
            case RefRead():
                held = self._store.get(given[0])  # type: ignore[call-overload]
                if held is None:
                    held = _Value(lets.named(RefRead(atoms[0])))
                    if isinstance(given[0], _Cell):
                        self._store[given[0]] = held
                return held  # type: ignore[no-any-return]
        lets.named(RefWrite(*atoms))
        if isinstance(given[0], _Cell):
            self._store[given[0]] = given[1]
        else:
            self._store = {}  # which one it is isn't known
        return _Fields(())

    def _call(self, call: Any, known: _Known, lets: Lets) -> _Value:
        args = [self.value(one, known, lets) for one in call.args]
        if isinstance(call.op, Constructor):
            return _Fields(tuple(args), call.op)
        if isinstance(call.op, Op):
            return self._operator(call, args, lets)
        callee = self.value(call.op, known, lets)
        found = self._unfolded(callee, args, lets)
        if found is not None:
            return found
        self._store = {}  # whatever it calls may write
        signature = self._info(callee)
        made = remade(call, self._atom(callee, lets), [self._atom(one, lets) for one in args])
        is_known = isinstance(signature, FuncStructInfo) and len(signature.params or ()) == len(args)
        info = generics.returned(signature, [self._info(one) for one in args]) if is_known else None  # type: ignore[arg-type]
        return _Value(lets.named(made, info))

    def _operator(self, call: Any, args: list[_Value], lets: Lets) -> _Value:
        constants = [self._constant(one) for one in args]
        if all(one is not None for one in constants):
            found = folded(remade(call, call.op, constants))
            if isinstance(found, graph.Tuple):
                return _Fields(tuple(map(_Value, found.fields)))
            if found is not None:
                return _Value(found)
        return _Value(lets.named(remade(call, call.op, [self._atom(one, lets) for one in args])))

    def _constant(self, value: _Value) -> Any:
        """A constant, or a tuple of them; None for what isn't known."""
        if not isinstance(value, _Fields) or value.constructor is not None:
            return value.data
        parts = [one.data for one in value.fields]
        return None if any(one is None for one in parts) else Tuple(parts)

    def _unfolded(self, callee: _Value, args: list[_Value], lets: Lets) -> _Value | None:
        """What a function returns, if it is known, and less is known of no argument's size than in the call of itself around."""
        key: Any = callee
        match callee:
            case _Closure(func=func, around=around):
                pass
            case _Value(atom=GlobalVar() as key) if key in self._mod and isinstance(self._mod[key], Function):
                func, around = self._mod[key], _Known()  # type: ignore[assignment]
            case _:
                return None
        measures, least = _measures(args), self._active.get(key)
        is_less = least is None or any(number < least.get(place, float("inf")) for place, number in measures.items())
        is_open = len(args) == len(func.params) and not any(name in func.attrs for name in _OPAQUE)
        if not is_less or not is_open or self._calls >= _MOST_CALLS or self._depth >= _DEEPEST:
            return None
        merged = dict(measures)
        for place, number in (least or {}).items():
            merged[place] = min(number, merged.get(place, number))
        self._active[key], self._calls, self._depth = merged, self._calls + 1, self._depth + 1
        infos = [self._info(one) for one in args]
        types = generics.bindings(FuncStructInfo(tuple(one.struct_info for one in func.params), ObjectStructInfo()), infos, str(key))
        inner = _Known(around, types)
        for param, one in zip(func.params, args, strict=True):
            inner.define(param, one)
        found = self.value(func.body, inner, lets)
        self._depth -= 1
        if least is None:
            del self._active[key]
        else:
            self._active[key] = least
        return found

    def _match(self, match: Match, known: _Known, lets: Lets) -> _Value:
        data = self.value(match.data, known, lets)
        for clause in match.clauses:
            values: dict[Any, _Value] = {}
            verdict = _matched(clause.lhs, data, values)
            if verdict is None:
                break
            if verdict:
                inner = _Known(known)
                for var, value in values.items():
                    inner.define(var, value)
                return self.value(clause.rhs, inner, lets)
        patterns, ways = [], []
        for clause in match.clauses:
            infos = {var: info for var, _, info in pattern_fields(clause.lhs, self._info(data), ())}
            values = {}
            patterns.append(_renamed(clause.lhs, values, known.types, infos))
            ways.append((clause.rhs, values))
        atom = self._atom(data, lets)
        made = self._ways(ways, known, lets)
        return _Value(lets.named(Match(atom, tuple(map(Clause, patterns, made)), match.complete)))


def _matched(pattern: Pattern, value: _Value, values: dict[Any, _Value]) -> bool | None:
    """Whether a pattern matches; None where that isn't known. `values` gets those of its variables."""
    if isinstance(pattern, PatternVar):
        values[pattern.var] = value
        return True
    if not isinstance(pattern, (PatternConstructor, PatternTuple)):
        return True
    if not isinstance(value, _Fields):
        return None
    if isinstance(pattern, PatternConstructor) and value.constructor is not None and pattern.constructor.tag != value.constructor.tag:
        return False
    verdict: bool | None = True
    for part, one in zip(pattern.patterns, value.fields, strict=False):  # a constructor without patterns is one of any fields
        found = _matched(part, one, values)
        if found is False:
            return False
        verdict = None if found is None else verdict
    return verdict


def _renamed(pattern: Pattern, values: dict[Any, _Value], types: Mapping[Any, StructInfo], infos: Mapping[Any, StructInfo]) -> Pattern:
    """A pattern with variables of its own, of which `infos` are known besides what they state."""
    if isinstance(pattern, PatternVar):
        stated, info = pattern.var.struct_info_annotation, infos[pattern.var]
        info = info if stated is None else generics.joined(generics.instance(stated, types), info)
        made = Var(pattern.var.name_hint, None if type(info) is ObjectStructInfo else info)
        values[pattern.var] = _Value(made)
        return PatternVar(made)
    if not isinstance(pattern, (PatternConstructor, PatternTuple)):
        return pattern
    return replace(pattern, patterns=tuple(_renamed(one, values, types, infos) for one in pattern.patterns))


def evaluated(func: Function, mod: IRModule) -> Function:
    """A function of a module, of which what is known is computed."""
    with deep_recursion:
        return _Evaluator(mod).top(func)


def PartialEvaluate() -> ModulePass:
    """Calls, branches, matches and references that are known are computed; what is left has a name for each value.

    A function that calls itself is followed while an integer that it gets, or the number of constructors of a value, becomes smaller.
    `DeadCodeElimination` removes what nothing uses behind it.
    """

    def on_module(mod: IRModule, ctx: Any) -> IRModule:
        made = mod.clone()
        for var, func in mod.functions_items():
            if isinstance(func, Function) and not any(key in func.attrs for key in _OPAQUE):
                made.update_func(var, evaluated(func, mod))
        return made

    return ModulePass("PartialEvaluate", lambda func, ctx: func, 1, by_user=False, module_func=on_module)


__all__ = ["PartialEvaluate"]
