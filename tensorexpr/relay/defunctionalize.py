"""Programs of functions as values as programs without: a value that was a function is its number and what it was made of.

fn (%y) { add(%x, %y) }           Closure0(%x), of the type Function0 of all fn (int32) -> int32
%f(%n)                            @apply0(%f, %n)
def @apply0(%f, %a0) { match (%f) { Closure0(%x) => add(%x, %a0), ... } }

There is a type for each type of functions, and a copy of a function of the module for the types of each call. (J. Reynolds, Definitional
interpreters for higher-order programming languages, 1972.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..dataclass import dataclass, field
from ..errors import DeclarationError
from ..lower.passes import deep_recursion
from ..relax import expr as graph
from ..relax.struct_info import FuncStructInfo, ObjectStructInfo, StructInfo, TupleStructInfo
from ..tir.function import GlobalVar, IRModule
from ..tir.op_registry import Op
from .adt import Clause, Constructor, Match, Pattern, PatternConstructor, PatternTuple, PatternVar, TypeData
from .expr import Call, Function, If, Let, Tuple, TupleGetItem, Var
from .generics import Values, bind, instance, is_open, joined
from .references import Reference, RefRead, RefWrite, held_by, made_of
from .ty import TupleType, info_of, type_of
from .type_functor import parts
from .type_names import GlobalTypeVar, Named, TypeCall, TypeVar, called
from .visitor import free_vars, remade

_MOST = 1000  # copies of functions: one that calls itself with ever other types has no end
_UNKNOWN = ObjectStructInfo()
Valued = tuple[Any, StructInfo]


@dataclass(eq=False)
class _Functions:
    """All functions of one type.

    Args:
        header: the type of their values.
        apply: calls one of them.
        info: what they take and return.
        params: of `apply` behind the function, which all clauses share.
        clauses: of `apply`.
    """

    header: GlobalTypeVar
    apply: GlobalVar
    info: FuncStructInfo
    params: tuple[Var, ...]
    clauses: list[Clause] = field(default_factory=list)


@dataclass(eq=False)
class _Scope:
    """What the variables of a function are: values with what is known of them, or functions, which each use makes a value of."""

    variables: dict[Any, Any] = field(default_factory=dict)
    known: dict[Any, Valued] = field(default_factory=dict)

    def captured(self, fn: Function) -> dict[Any, Any]:
        """The variables around that a function uses, itself or by way of functions."""
        found: dict[Any, Any] = {}
        waiting = free_vars(fn)
        while waiting:
            var = waiting.pop(0)
            if var in self.variables and var not in found:
                found[var] = self.variables[var]
                waiting += free_vars(found[var]) if isinstance(found[var], Function) else []
        return found


class _Defunctionalizer:
    """Rewrites functions of a module, which gets the types and functions that are needed."""

    def __init__(self, mod: IRModule) -> None:
        self._mod = mod
        self._types: dict[str, _Functions] = {}
        self._copies: dict[tuple[str, str], GlobalVar] = {}
        self._named: dict[tuple[Any, str], Constructor] = {}  # values of functions that capture nothing, by what they call

    def main(self, func: Function) -> Function:
        """The function that the program begins with."""
        infos = [one.struct_info for one in func.params]
        if func.type_params or any(isinstance(one, FuncStructInfo) for one in infos):
            raise DeclarationError("Defunctionalization begins at a function that takes no functions and has no type parameters")
        made = self._copy(func, infos, info_of(func.ret_type) or _UNKNOWN)
        for one in self._types.values():
            makers: list[Any] = [clause.lhs.constructor for clause in one.clauses]  # type: ignore[attr-defined]
            self._mod.update_func(one.header, TypeData(one.header, (), tuple(makers)))  # type: ignore[arg-type]
            value = Var("f", one.header())
            body = Match(value, tuple(one.clauses), bool(makers))  # of no functions there are no calls that run
            applied: Any = Function((value, *one.params), body, self._type(one.info.ret))
            self._mod.update_func(one.apply, applied)
        return made

    # Types

    def _type(self, info: StructInfo) -> Any:
        """The type of a value, in which functions are values of algebraic types; None if nothing is known."""
        match info:
            case FuncStructInfo():
                return self._functions(info).header()
            case TupleStructInfo(fields):
                return TupleType(tuple(map(self._type, fields)))
            case Named() if isinstance(info.type, TypeCall):
                return called(info.type.func, tuple(self._type(info_of(one) or _UNKNOWN) for one in info.type.args))
        return type_of(info)

    def _functions(self, info: FuncStructInfo) -> _Functions:
        typ = type_of(info)
        key = str(typ)
        if _has_parameters(typ):
            raise DeclarationError(
                f"Defunctionalization: nothing says which types {key} has where it is a value; a function around it does"
            )
        if key not in self._types:
            number = len(self._types)
            header, apply = GlobalTypeVar(f"Function{number}"), GlobalVar(f"apply{number}")
            # Before its parameters, whose types may be those of functions that take such ones.
            self._types[key] = made = _Functions(header, apply, info, ())
            made.params = tuple(Var(f"a{n}", self._type(one)) for n, one in enumerate(info.params or ()))
        return self._types[key]

    def _var(self, name: str, info: StructInfo) -> Var:
        return Var(name, self._type(info))

    # Functions

    def _copy(self, func: Function, infos: Sequence[StructInfo], ret: StructInfo) -> Function:
        params = [self._var(one.name_hint, info) for one, info in zip(func.params, infos, strict=True)]
        scope = _Scope(dict(zip(func.params, zip(params, infos, strict=True), strict=True)))
        body, found = self._visit(func.body, scope, ret)
        return Function(tuple(params), body, self._type(joined(ret, found)), (), func.attrs)

    def _specialised(self, gvar: GlobalVar, infos: Sequence[StructInfo], ret: StructInfo) -> GlobalVar:
        """The copy of a function of the module for types of arguments."""
        given: Any = self._mod[gvar]
        if not isinstance(given, Function):
            return gvar
        func: Any = given
        key = gvar.name_hint, ", ".join(str(type_of(one)) for one in infos)
        if key not in self._copies:
            if len(self._copies) == _MOST:
                raise DeclarationError(f"Defunctionalization: @{gvar.name_hint} is called with ever more types, at last with {key[1]}")
            number, name = 0, f"{gvar.name_hint}_first_order"
            while name in self._mod:
                number += 1
                name = f"{gvar.name_hint}_first_order{number}"
            self._copies[key] = GlobalVar(name)
            self._mod.update_func(name, func)  # the name is taken from here on
            made: Any = self._copy(func, infos, ret)
            self._mod.update_func(name, made)
        return self._copies[key]

    def _value(self, what: Any, info: FuncStructInfo, fields: Sequence[Valued], call: Callable[[Any, _Functions], Any]) -> Call:
        """A function as a value.

        Args:
            what: nothing is captured by it, and it is the same everywhere; None for others.
            info: its type.
            fields: what is captured.
            call: what it computes, of the variables that hold these.
        """
        key = (what, str(type_of(info)))
        known = None if what is None else self._named.get(key)
        if known is None:
            kind = self._functions(info)
            name = f"Closure{sum(len(one.clauses) for one in self._types.values())}"
            known = Constructor(name, [self._type(one) for _, one in fields], kind.header)
            inner = [self._var(getattr(one, "name_hint", "c"), known_of) for one, known_of in fields]
            if what is not None:
                self._named[key] = known
            place = len(kind.clauses)
            pattern = PatternConstructor(known, tuple(map(PatternVar, inner)))
            kind.clauses.append(Clause(pattern, Tuple(())))  # its number is taken: what it computes may have functions of this type
            kind.clauses[place] = Clause(pattern, call(inner, kind))
        return Call(known, [one for one, _ in fields])

    def _closure(self, fn: Function, scope: _Scope, expected: StructInfo) -> Valued:
        """A function that stands in another one."""
        own = [one.struct_info for one in fn.params]
        values: Values = {}
        asked = expected.params if isinstance(expected, FuncStructInfo) and expected.params is not None else own
        for stated, given in zip(own, asked, strict=True):
            bind(stated, given, values)
        infos = [joined(instance(mine, values), given) for mine, given in zip(own, asked, strict=True)]
        ret = instance(info_of(fn.ret_type) or _UNKNOWN, values)
        ret = joined(ret, expected.ret) if isinstance(expected, FuncStructInfo) else ret
        captured = scope.captured(fn)
        held = [(var, one) for var, one in captured.items() if not isinstance(one, Function)]
        around = {var: one for var, one in captured.items() if isinstance(one, Function)}
        if is_open(ret):  # its type, by which it is found, says what it returns
            trial = _Scope({**captured, **dict(zip(fn.params, self._as_values(fn, infos), strict=True))})
            ret = self._visit(fn.body, trial, _UNKNOWN)[1]
        info = FuncStructInfo(tuple(infos), ret)

        def call(inner: Any, kind: _Functions) -> Any:
            bound = {var: (one, known) for (var, (_, known)), one in zip(held, inner, strict=True)}
            given = {one: (param, known) for one, param, known in zip(fn.params, kind.params, infos, strict=True)}
            return self._visit(fn.body, _Scope({**around, **bound, **given}), ret)[0]

        return self._value(None, info, [one for _, one in held], call), info

    def _as_values(self, fn: Function, infos: Sequence[StructInfo]) -> list[Valued]:
        return [(self._var(one.name_hint, info), info) for one, info in zip(fn.params, infos, strict=True)]

    def _by_name(self, callee: Any, expected: StructInfo) -> Valued:
        """An operator, a constructor or a function of the module as a value."""
        if isinstance(callee, Op):
            if not isinstance(expected, FuncStructInfo):
                raise DeclarationError(
                    f"Defunctionalization: nothing says which types the operator {callee} has here; a function around it does"
                )
            info = expected
        else:
            values: Values = {}
            signature = self._signature(callee)
            bind(signature, expected, values)
            info = instance(signature, values)  # type: ignore[assignment]
        infos = info.params or ()

        def call(_: Any, kind: _Functions) -> Any:
            own = self._specialised(callee, infos, info.ret) if isinstance(callee, GlobalVar) else callee
            return Call(own, kind.params)

        return self._value(callee, info, (), call), info

    def _signature(self, callee: Any) -> FuncStructInfo:
        func: Any = self._mod[callee] if isinstance(callee, GlobalVar) else callee
        found: FuncStructInfo = func.struct_info
        return found

    # Values

    def _visit(self, expr: Any, scope: _Scope, expected: StructInfo) -> Valued:
        """An expression without functions as values, and what is known of it as it was."""
        is_function = isinstance(expr, (Function, GlobalVar, Op, Constructor)) or isinstance(scope.variables.get(expr), Function)
        if is_function:  # what it is depends on where it is used
            return self._function(expr, scope, expected)
        if expr not in scope.known:
            scope.known[expr] = self._made(expr, scope, expected)
        return scope.known[expr]

    def _function(self, expr: Any, scope: _Scope, expected: StructInfo) -> Valued:
        given = scope.variables.get(expr, expr) if isinstance(expr, graph.Var) else expr
        return self._closure(given, scope, expected) if isinstance(given, Function) else self._by_name(given, expected)

    def _made(self, expr: Any, scope: _Scope, expected: StructInfo) -> Valued:
        match expr:
            case graph.Var():
                found: Valued = scope.variables.get(expr, (expr, expr.struct_info))
                return found
            case Reference():
                return self._reference(expr, scope)
            case graph.Call():
                return self._call(expr, scope, expected)
            case graph.Tuple(fields):
                asked = expected.fields if isinstance(expected, TupleStructInfo) and len(expected.fields) == len(fields) else ()
                made = [self._visit(one, scope, asked[n] if asked else _UNKNOWN) for n, one in enumerate(fields)]
                return Tuple([one for one, _ in made]), TupleStructInfo(tuple(info for _, info in made))
            case graph.TupleGetItem(whole, index):
                value, info = self._visit(whole, scope, _UNKNOWN)
                return TupleGetItem(value, index), info.fields[index] if isinstance(info, TupleStructInfo) else _UNKNOWN
            case graph.If(cond, yes, no):
                first, second = (no, yes) if self._is_open(yes, scope) else (yes, no)
                made, info = self._visit(first, scope, expected)
                known = joined(expected, info)
                chosen = {first: made, second: self._visit(second, scope, known)[0]}
                return If(self._visit(cond, scope, _UNKNOWN)[0], chosen[yes], chosen[no]), known
            case Let(var, value, body):
                return self._let([(var, value)], body, scope, expected)
            case Match(data, clauses):
                return self._match(expr, data, clauses, scope, expected)
        return expr, expr.struct_info

    def _let(self, bound: Sequence[tuple[Any, Any]], body: Any, scope: _Scope, expected: StructInfo) -> Valued:
        made: list[tuple[Any, Any]] = []
        for var, value in bound:
            if isinstance(value, Function):
                if var in free_vars(value):
                    raise DeclarationError(
                        f"Defunctionalization: %{var.name_hint} calls itself; LambdaLift makes a function of the module of it"
                    )
                scope.variables[var] = value
                continue
            found, info = self._visit(value, scope, var.struct_info)
            info = joined(var.struct_info, info)
            own = self._var(var.name_hint, info)
            scope.variables[var] = own, info
            made.append((own, found))
        result, known = self._visit(body, scope, expected)
        for own, found in reversed(made):
            result = Let(own, found, result)
        return result, known

    def _reference(self, call: Any, scope: _Scope) -> Valued:
        first, info = self._visit(call.args[0], scope, _UNKNOWN)
        if isinstance(call, RefRead):
            return RefRead(first), held_by(info)
        if isinstance(call, RefWrite):
            return RefWrite(first, self._visit(call.args[1], scope, held_by(info))[0]), TupleStructInfo(())
        return type(call)(first), made_of(info)

    def _call(self, call: Any, scope: _Scope, expected: StructInfo) -> Valued:
        callee = call.op
        if isinstance(callee, graph.Var) and isinstance(scope.variables.get(callee), Function):
            callee = scope.variables[callee]
        if isinstance(callee, Op):
            args = [self._visit(one, scope, _UNKNOWN) for one in call.args]
            dummies = [Var("x", info) for _, info in args]
            return remade(call, callee, [one for one, _ in args]), remade(call, callee, dummies).struct_info
        if isinstance(callee, Function):
            return self._let(list(zip(callee.params, call.args, strict=True)), callee.body, scope, expected)
        if isinstance(callee, (GlobalVar, Constructor)):
            made, infos, ret = self._arguments(call.args, self._signature(callee), scope, expected)
            own = self._specialised(callee, infos, ret) if isinstance(callee, GlobalVar) else callee
            return Call(own, made, call.attrs), ret
        value, info = self._visit(callee, scope, _UNKNOWN)
        if not isinstance(info, FuncStructInfo):
            raise DeclarationError(f"Defunctionalization: {callee} is called, and nothing says what it takes; InferType before says it")
        made, _, ret = self._arguments(call.args, info, scope, expected)
        return Call(self._functions(info).apply, [value, *made]), ret

    def _arguments(
        self, args: Sequence[Any], signature: FuncStructInfo, scope: _Scope, expected: StructInfo
    ) -> tuple[list[Any], list[StructInfo], StructInfo]:
        """Arguments, what is known of each, and of the result, with what type parameters of the signature stand for."""
        stated: Sequence[StructInfo] = signature.params if signature.params is not None else [_UNKNOWN] * len(args)
        if len(stated) != len(args):
            raise DeclarationError(f"a function of {len(stated)} parameters is called with {len(args)} arguments")
        values: Values = {}
        made: dict[int, Valued] = {}
        bind(signature.ret, expected, values)
        # Values first: they say what types functions among the arguments have.
        for place in sorted(range(len(args)), key=lambda n: (self._is_open(args[n], scope), isinstance(stated[n], FuncStructInfo))):
            made[place] = self._visit(args[place], scope, instance(stated[place], values))
            bind(stated[place], made[place][1], values)
        infos = [joined(instance(stated[place], values), made[place][1]) for place in range(len(args))]
        return [made[place][0] for place in range(len(args))], infos, instance(signature.ret, values)

    def _is_open(self, expr: Any, scope: _Scope) -> bool:
        """Whether an expression is a function whose types depend on where it is used."""
        found = scope.variables.get(expr, expr) if isinstance(expr, graph.Var) else expr
        func: Any = self._mod[found] if isinstance(found, GlobalVar) else found
        if isinstance(func, Function):
            return bool(func.type_params) or any(is_open(one.struct_info) for one in func.params)
        return isinstance(func, (Op, Constructor))

    def _match(self, match: Match, data: Any, clauses: Sequence[Clause], scope: _Scope, expected: StructInfo) -> Valued:
        value, info = self._visit(data, scope, _UNKNOWN)
        made, found = [], expected
        for clause in clauses:
            pattern = self._pattern(clause.lhs, info, scope)
            result, known = self._visit(clause.rhs, scope, found)
            made.append(Clause(pattern, result))
            found = joined(found, known)
        return Match(value, tuple(made), match.complete), found

    def _pattern(self, pattern: Pattern, info: StructInfo, scope: _Scope) -> Pattern:
        match pattern:
            case PatternVar(var):
                known = joined(var.struct_info, info)
                own = self._var(var.name_hint, known)
                scope.variables[var] = own, known
                return PatternVar(own)
            case PatternConstructor(constructor, patterns):
                signature, values = self._signature(constructor), Values()
                bind(signature.ret, info, values)
                fields = [instance(one, values) for one in signature.params or ()]
                return PatternConstructor(
                    constructor, tuple(self._pattern(one, f, scope) for one, f in zip(patterns, fields, strict=False))
                )
            case PatternTuple(patterns):
                elements = info.fields if isinstance(info, TupleStructInfo) else [_UNKNOWN] * len(patterns)
                return PatternTuple(tuple(self._pattern(one, element, scope) for one, element in zip(patterns, elements, strict=True)))
        return pattern


def _has_parameters(typ: Any) -> bool:
    return isinstance(typ, TypeVar) or any(map(_has_parameters, parts(typ)))


def Defunctionalization(func: Function, mod: IRModule) -> Function:
    """A function of which no value is a function.

    Args:
        func: the program begins with it, after `InferType`: of no function among its parameters and of no type parameters.
        mod: what it calls; gets types, their functions `apply...`, and copies of functions for the types that they are called with.

    Raises:
        DeclarationError: for a local function that calls itself, for which `LambdaLift` makes one of the module, and for functions whose
            types nothing says.
    """
    with deep_recursion:
        return _Defunctionalizer(mod).main(func)


__all__ = ["Defunctionalization"]
