"""Signatures of private functions: ExpandTupleArguments, RemoveUnusedParameters, RemoveUnusedOutputs.

All three change functions that nothing outside of the module sees and that are only called, never passed on, and their calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ...dataclass import dataclass, replace
from ...lower.passes import ModulePass
from ...tir.function import GlobalVar, IRModule
from ..analysis import definable_tir_vars_in_struct_info, derive_call_ret_struct_info, free_symbolic_vars, remove_all_unused
from ..expr import Call, Function, SeqExpr, Tuple, TupleGetItem, Var
from ..struct_info import FuncStructInfo, TupleStructInfo
from ..visitor import Mutator, walk
from .canonicalize import canonical
from .passes import graph_pass
from .rewriting import Rewriter


@dataclass(frozen=True)
class _Change:
    """A new function, and what its calls become: arguments, and the result in terms of the new one."""

    func: Function
    args: Callable[[Sequence[Any]], Sequence[Any]] = lambda args: args
    result: Callable[[Any], Any] | None = None


class _Calls(Rewriter):
    """Rewrites calls of changed functions."""

    def __init__(self, changes: dict[str, _Change], func: Function) -> None:
        super().__init__({}, func)
        self._changes = changes
        self._made: list[Call] = []

    def rewrite(self, expr: Any) -> Any:
        """The call of the new function."""
        change = self._changes.get(expr.op.name_hint) if isinstance(expr, Call) and isinstance(expr.op, GlobalVar) else None
        # Calls that were made here come by again, as operands of what takes their elements.
        if change is None or any(expr is one for one in self._made):
            return expr
        args = [self.leaf(arg) for arg in change.args(expr.args)]
        new, info = Call(expr.op, args, expr.attrs, expr.sinfo_args, change.func.ret_struct_info), change.func.struct_info
        # In the caller's symbols.
        self._made.append(new.with_struct_info(derive_call_ret_struct_info(info, new)) if isinstance(info, FuncStructInfo) else new)
        # Bound once: what is made of its elements must not call it for each.
        return self._made[-1] if change.result is None else change.result(self.emit(self._made[-1]))


def private_functions(mod: IRModule) -> dict[str, Function]:
    """Functions of graphs that nothing outside of the module sees, and that are called and never passed on."""
    escaping: set[str] = set()
    for _, func in mod.functions_items():
        if isinstance(func, Function):
            named = Counter(node.name_hint for node in walk(func) if isinstance(node, GlobalVar))
            callees = (node.op for node in walk(func) if isinstance(node, Call))
            called = Counter(callee.name_hint for callee in callees if isinstance(callee, GlobalVar))
            # Named more often than called: somewhere it is passed on.
            escaping.update(name for name in named if named[name] != called[name])
    return {
        var.name_hint: func  # type: ignore[misc]
        for var, func in mod.functions_items()
        if isinstance(func, Function) and "global_symbol" not in func.attrs and var.name_hint not in escaping
    }


def _changed(name: str, find: Callable[[IRModule, Function, str], _Change | None]) -> ModulePass:
    """A pass that changes private functions and their calls, while it finds some to change."""

    def run(mod: IRModule) -> IRModule:
        found = {name: find(mod, func, name) for name, func in private_functions(mod).items()}
        changes = {name: change for name, change in found.items() if change is not None}
        if not changes:
            return mod
        made = mod.clone()
        for var, func in mod.functions_items():
            if isinstance(func, Function):
                own = changes[var.name_hint].func if var.name_hint in changes else func
                made.update_func(var, remove_all_unused(canonical(_Calls(changes, own).function(own))))
        # Again: a parameter that was only passed on is unused once the callee takes it no more.
        return run(made)

    return graph_pass(name, run)


def _expanded(mod: IRModule, func: Function, name: str) -> _Change | None:
    places = [n for n, param in enumerate(func.params) if isinstance(param.struct_info, TupleStructInfo)]
    if not places:
        return None
    params: list[Var] = []
    whole: dict[Var, Any] = {}
    for param in func.params:
        info = param.struct_info
        new = [Var(f"{param.name_hint}_{n}", one) for n, one in enumerate(info.fields)] if isinstance(info, TupleStructInfo) else [param]
        params += new
        if isinstance(info, TupleStructInfo):
            whole[param] = Tuple(tuple(new))

    def args(given: Sequence[Any]) -> list[Any]:
        made: list[Any] = []
        for param, arg in zip(func.params, given, strict=True):
            info = param.struct_info
            made += (
                [arg]
                if not isinstance(info, TupleStructInfo)
                else arg.fields
                if isinstance(arg, Tuple)
                else [TupleGetItem(arg, n) for n in range(len(info.fields))]
            )
        return made

    return _Change(Mutator(whole).function(replace(func, params=tuple(params))), args)


def _without_unused(mod: IRModule, func: Function, name: str) -> _Change | None:
    used = {node for node in walk(func.body) if isinstance(node, Var)}
    wanted = set(free_symbolic_vars(replace(func, params=tuple(param for param in func.params if param in used))))
    # A tensor that nobody reads stays if its shape alone gives a symbol its value.
    kept = [n for n, p in enumerate(func.params) if p in used or not wanted.isdisjoint(definable_tir_vars_in_struct_info(p.struct_info))]
    if len(kept) == len(func.params):
        return None
    return _Change(replace(func, params=tuple(func.params[n] for n in kept)), lambda args: [args[n] for n in kept])


def _without_outputs(mod: IRModule, func: Function, name: str) -> _Change | None:
    info = func.ret_struct_info
    body = next((b.value for b in func.body.bindings() if b.var is func.body.body), func.body.body)
    if not isinstance(info, TupleStructInfo) or not isinstance(body, Tuple):
        return None
    used = _used_elements(mod, name, len(info.fields))
    kept = sorted(used)
    if not kept or len(kept) == len(info.fields):
        return None
    result = body.fields[kept[0]] if len(kept) == 1 else Tuple(tuple(body.fields[n] for n in kept))
    new = replace(func, body=SeqExpr(func.body.blocks, result), ret_struct_info=None)  # type: ignore[arg-type]  # what the body says
    nothing = Tuple(())

    def elements(call: Any) -> Any:
        if len(kept) == 1:
            return Tuple(tuple(call if n in used else nothing for n in range(len(info.fields))))
        return Tuple(tuple(TupleGetItem(call, kept.index(n)) if n in used else nothing for n in range(len(info.fields))))

    return _Change(new, result=elements)


def _used_elements(mod: IRModule, name: str, count: int) -> set[int]:
    """The elements of a function's result that are used; all where the tuple is used as such."""
    used: set[int] = set()
    for _, func in mod.functions_items():
        if not isinstance(func, Function):
            continue
        sequences = [node for node in walk(func) if isinstance(node, SeqExpr)]
        bound = {b.var: b.value for sequence in sequences for b in sequence.bindings()}
        results = {var for var, value in bound.items() if _calls(value, name)}
        uses = Counter(node for node in walk(func) if isinstance(node, Var) and node in results)
        for node in walk(func):
            if isinstance(node, TupleGetItem) and (node.tuple_value in results or _calls(node.tuple_value, name)):
                # What uses are left in the end are of the whole tuple.
                used.add(node.index)
                uses[node.tuple_value] -= 1
        # A call without a variable, such as one that is returned: all of it is used.
        direct = sum(_calls(node, name) for node in walk(func)) != len(results)
        if direct or any(uses[var] > 0 for var in results):
            return set(range(count))
    return used


def _calls(expr: Any, name: str) -> bool:
    return isinstance(expr, Call) and isinstance(expr.op, GlobalVar) and expr.op.name_hint == name


def ExpandTupleArguments() -> ModulePass:
    """A pass: private functions take the elements of tuples one by one."""
    return _changed("ExpandTupleArguments", _expanded)


def RemoveUnusedParameters() -> ModulePass:
    """A pass: private functions take nothing that they don't use."""
    return _changed("RemoveUnusedParameters", _without_unused)


def RemoveUnusedOutputs() -> ModulePass:
    """A pass: private functions return nothing that no call uses."""
    return _changed("RemoveUnusedOutputs", _without_outputs)
