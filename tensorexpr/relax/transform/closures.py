"""LambdaLift: functions inside of functions become private functions of the module."""

from __future__ import annotations

from collections.abc import Iterator

from ...lower.passes import ModulePass
from ...tir.function import GlobalVar, IRModule
from ..expr import Binding, Call, Function, Var, VarBinding
from ..visitor import Mutator, bindings_of, walk
from .passes import graph_pass


def _captured(func: Function, own: Var | None) -> list[Var]:
    """The variables from around a closure, except the one that it is."""
    inner = {own, *func.params, *(binding.var for binding in bindings_of(func))}
    inner |= {param for node in walk(func) if isinstance(node, Function) for param in node.params}
    return list(dict.fromkeys(node for node in walk(func.body) if isinstance(node, Var) and node not in inner))


class _Lifter(Mutator):
    """Takes functions out of one function.

    Args:
        name: of that function.
        mod: where they go.
        escaping: variables of closures that aren't just called.
    """

    def __init__(self, name: str, mod: IRModule, escaping: set[Var]) -> None:
        super().__init__()
        self._name, self._mod, self._escaping = name, mod, escaping
        self._lifted: dict[Var, tuple[GlobalVar, list[Var]]] = {}

    def binding(self, binding: Binding) -> list[Binding]:
        """None for a closure that is lifted."""
        func = binding.value
        if not isinstance(func, Function) or not isinstance(binding, VarBinding):
            return super().binding(binding)
        # A closure that it calls is gone by then: what that one takes from around is asked for here, too.
        #     f = fn(y): y + x;  g = fn(y): f(y)    ->    f(y, x), g(y, x): f(y, x)
        used = _captured(func, binding.var)
        captured = list(dict.fromkeys(one for var in used for one in (self._lifted[var][1] if var in self._lifted else [var])))
        if captured and binding.var in self._escaping:
            return super().binding(binding)
        # Private functions have the names of where they stood, which may be taken.
        name, number = f"{self._name}_{binding.var.name_hint}", 0
        while name in self._mod:
            number += 1
            name = f"{self._name}_{binding.var.name_hint}_{number}"
        var = GlobalVar(name)
        self._mod.update_func(name, func)  # type: ignore[arg-type]  # taken; what it becomes is known when its own closures are lifted
        self._lifted[binding.var] = var, captured
        if not captured:
            self._variables[binding.var] = var
        fresh = {one: Var(one.name_hint, one.struct_info) for one in captured}
        inner = _Lifter(name, self._mod, self._escaping)
        inner._variables, inner._lifted = {**self._variables, **fresh}, self._lifted
        made = inner.function(Function(func.params, func.body, func.ret_struct_info, func.is_pure, func.attrs))
        attrs = made.without_attr("global_symbol").attrs
        self._mod.update_func(
            name,
            Function((*made.params, *fresh.values()), made.body, made.ret_struct_info, made.is_pure, attrs),  # type: ignore[arg-type]
        )
        return []

    def _call(self, call: Call) -> Call:
        known = self._lifted.get(call.op) if isinstance(call.op, Var) else None
        if known is None:
            return super()._call(call)
        var, captured = known
        return Call(var, [self.visit(one) for one in (*call.args, *captured)], call.attrs, call.sinfo_args, call.struct_info)


def _escaping(func: Function) -> Iterator[Var]:
    """Variables of closures that are used as values."""
    closures = {binding.var for binding in bindings_of(func) if isinstance(binding.value, Function)}
    called = {id(node.op): 0 for node in walk(func) if isinstance(node, Call) and isinstance(node.op, Var)}
    for node in walk(func):
        if isinstance(node, Call) and isinstance(node.op, Var):
            called[id(node.op)] += 1
    # It occurs more often than it is called: somewhere it is passed on.
    for var in closures:
        if sum(node is var for node in walk(func)) > called.get(id(var), 0):
            yield var


def LambdaLift() -> ModulePass:
    """A pass: closures become private functions, which take what they use from around as further arguments.

    A closure that is passed on as a value, and uses something from around, stays where it is.
    """

    def run(mod: IRModule) -> IRModule:
        made = mod.clone()
        for var, func in mod.functions_items():
            if isinstance(func, Function):
                made.update_func(var, _Lifter(var.name_hint, made, set(_escaping(func))).function(func))
        return made

    return graph_pass("LambdaLift", run)
