"""Normalize, and names of functions: NormalizeGlobalVar, AttachGlobalSymbol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...dataclass import replace
from ...lower.passes import ModulePass
from ...tir.function import GlobalVar, IRModule
from ..expr import (
    Binding,
    BindingBlock,
    Call,
    DataflowBlock,
    DataflowVar,
    ExternFunc,
    Function,
    If,
    MatchCast,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from ..struct_info import RelaxExpr, TupleStructInfo
from ..visitor import Mutator, bound_info
from .passes import each_function, graph_pass

_OWN = (Call, TupleGetItem, If, Function)  # what has a variable of its own


class _Normalizer(Mutator):
    """Sequences whose operands are variables, constants and tuples of these; bindings are none the fewer."""

    def __init__(self) -> None:
        super().__init__()
        self._made: list[tuple[type[BindingBlock], list[Binding]]] = []
        self._kind: type[BindingBlock] = BindingBlock
        self._shared: dict[int, Var] = {}

    def visit(self, expr: Any) -> Any:
        """An expression, the variables of whose operands are bound in front of it."""
        match expr:
            case Var():
                found = self._variables.get(expr, expr)
                # Nothing as a value is written where it stands, as programs do.
                return Tuple(()) if found.struct_info == TupleStructInfo(()) else found
            case SeqExpr():
                self._take(expr)
                return self.visit(expr.body)
            case If(cond, yes, no):
                parts = self._leaf(cond), self._sequence(yes), self._sequence(no)
                return expr if parts == (cond, yes, no) else If(*parts)
            case Call():
                # A function that is called where it is defined is an operand like others.
                op = self._leaf(expr.op) if isinstance(expr.op, RelaxExpr) else expr.op
                args = tuple(map(self._leaf, expr.args))
                if op is expr.op and all(a is b for a, b in zip(args, expr.args, strict=True)):
                    return expr
                return Call(op, args, expr.attrs, expr.sinfo_args, None if isinstance(op, str) else expr.__dict__.get("struct_info"))
            case Tuple(fields):
                made = tuple(map(self._leaf, fields))
                return expr if all(a is b for a, b in zip(made, fields, strict=True)) else Tuple(made)
            case TupleGetItem(value, index):
                leaf = self._leaf(value)
                return expr if leaf is value else TupleGetItem(leaf, index)
        return super().visit(expr)

    def function(self, func: Function) -> Function:
        """A function whose body is a sequence that ends in a value of its own."""
        params = tuple(self.define(param, param.struct_info) for param in func.params)
        body = self._sequence(func.body)
        return func if body is func.body else replace(func, params=params, body=body)

    def _leaf(self, expr: Any) -> Any:
        """An operand: what is none of its own gets a variable, and the same one wherever it stands."""
        if id(expr) in self._shared:
            return self._shared[id(expr)]
        made = self.visit(expr)
        if not isinstance(made, _OWN):
            return made
        is_dataflow = self._kind is DataflowBlock
        self._shared[id(expr)] = var = (DataflowVar if is_dataflow else Var)("lv" if is_dataflow else "gv", made.struct_info)
        self._emit(VarBinding(var, made))
        return var

    def _emit(self, binding: Binding) -> None:
        if not self._made or self._made[-1][0] is not self._kind:
            self._made.append((self._kind, []))
        self._made[-1][1].append(binding)

    def _take(self, sequence: SeqExpr) -> None:
        """Bind what a sequence binds; inside of a dataflow block there are no others."""
        outer = self._kind, self._shared
        for block in sequence.blocks:
            self._kind = type(block) if outer[0] is BindingBlock else outer[0]
            for binding in block.bindings:
                self._shared = {}  # by identity: the expression, which is looked at, holds what is in it
                value = self.visit(binding.value)
                if isinstance(binding, MatchCast):
                    self._emit(MatchCast(self.define(binding.var, binding.struct_info), value, binding.struct_info))
                else:
                    self._emit(VarBinding(self.define(binding.var, bound_info(binding.var, value)), value))
        self._kind, self._shared = outer

    def _sequence(self, expr: Any) -> SeqExpr:
        """A sequence by itself; itself if nothing changes."""
        outer = self._made, self._kind, self._shared
        self._made, self._kind, self._shared = [], BindingBlock, {}
        body = self._leaf(expr)
        blocks = [kind(tuple(bindings)) for kind, bindings in self._made]
        self._made, self._kind, self._shared = outer
        before = expr.blocks if isinstance(expr, SeqExpr) else ()
        same = isinstance(expr, SeqExpr) and body is expr.body and len(blocks) == len(before)
        if same and all(type(a) is type(b) and _same(a.bindings, b.bindings) for a, b in zip(blocks, before, strict=True)):
            return expr  # type: ignore[no-any-return]
        return SeqExpr(tuple(blocks), body)


def _same(new: Sequence[Binding], old: Sequence[Binding]) -> bool:
    return len(new) == len(old) and all(a.var is b.var and a.value is b.value for a, b in zip(new, old, strict=True))


def Normalize() -> ModulePass:
    """A pass: every call, element and choice has a variable of its own, so operands are variables, constants and tuples of these.

    What a sequence inside of another one binds is bound by that, blocks of one kind that follow each other are one, and nothing as a value
    is `R.tuple()` where it is used.
    """
    return each_function("Normalize", lambda func, mod: _Normalizer().function(func))


class _Renamer(Mutator):
    """Functions of a module by other names."""

    def __init__(self, names: dict[str, str]) -> None:
        super().__init__()
        self._names = names

    def rewrite(self, expr: Any) -> Any:
        """The variable of a function by its new name."""
        if isinstance(expr, GlobalVar) and self._names.get(expr.name_hint, expr.name_hint) != expr.name_hint:
            return GlobalVar(self._names[expr.name_hint])
        return expr


def renamed(mod: IRModule, names: dict[str, str]) -> IRModule:
    """A module whose functions have other names, where they are called too."""
    made = IRModule(attrs=mod.attrs, global_infos=mod.global_infos)
    for var, func in mod.functions_items():
        new: Any = _Renamer(names).function(func) if isinstance(func, Function) else func
        made.update_func(names.get(var.name_hint, var.name_hint), new)
    return made


def NormalizeGlobalVar() -> ModulePass:
    """A pass: functions are called as their "global_symbol" says; private ones of such a name get another."""

    def run(mod: IRModule) -> IRModule:
        functions: dict[str, Any] = {var.name_hint: func for var, func in mod.functions_items()}
        names = {name: str(func.attrs["global_symbol"]) for name, func in functions.items() if "global_symbol" in func.attrs}
        # Public names come first: they are promises, private ones are not.
        taken = set(names.values())
        for name in functions:
            if name not in names:
                names[name], number = name, 0
                while names[name] in taken:
                    number += 1
                    names[name] = f"{name}_{number}"
                taken.add(names[name])
        return mod if all(a == b for a, b in names.items()) else renamed(mod, names)

    return graph_pass("NormalizeGlobalVar", run)


def AttachGlobalSymbol() -> ModulePass:
    """A pass: every function has its name as "global_symbol", so all are visible outside of the module."""

    def run(mod: IRModule) -> IRModule:
        made = mod.clone()
        for var, func in mod.functions_items():
            if not isinstance(func, ExternFunc) and func.attrs.get("global_symbol") != var.name_hint:
                made.update_func(var, func.with_attr("global_symbol", var.name_hint))
        return made

    return graph_pass("AttachGlobalSymbol", run)
