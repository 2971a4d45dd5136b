"""AttachAttrLayoutFreeBuffers: arguments of tensor functions that are weights may have any layout."""

from __future__ import annotations

from typing import Any

from ...lower.passes import ModulePass
from ...tir.function import GlobalVar, IRModule, PrimFunc
from ..block_builder import BlockBuilder
from ..expr import Call, Constant, Function, Tuple, Var, VarBinding
from ..visitor import Mutator, walk
from .passes import graph_pass

LAYOUT_FREE = "layout_free_buffers"


def _callee(call: Any, mod: IRModule) -> PrimFunc | None:
    is_call = isinstance(call, Call) and call.op == "relax.call_tir" and isinstance(call.args[0], GlobalVar)
    func: Any = mod[call.args[0]] if is_call and call.args[0] in mod else None
    return func if isinstance(func, PrimFunc) else None


def _places(call: Call, weights: set[Any]) -> tuple[int, ...]:
    """The arguments of a call that are weights: constants, and parameters behind the inputs."""
    fields = call.args[1].fields if isinstance(call.args[1], Tuple) else ()
    return tuple(n for n, arg in enumerate(fields) if isinstance(arg, Constant) or (isinstance(arg, Var) and arg in weights))


def _weights(func: Function) -> set[Any]:
    return set(func.params[int(func.attrs["num_input"]) if "num_input" in func.attrs else len(func.params) :])


class _Attacher(Mutator):
    """Calls of tensor functions whose weights are other arguments than in other calls, as ones of functions of their own."""

    def __init__(self, mod: IRModule, kinds: dict[str, set[tuple[int, ...]]]) -> None:
        super().__init__()
        self._builder, self._mod, self._kinds = BlockBuilder.over(mod), mod, kinds
        self._free: set[Any] = set()

    def function(self, func: Function) -> Function:
        """A function of the module; one inside of another has no weights."""
        self._free = _weights(func)
        return super().function(func)

    def binding(self, binding: Any) -> Any:
        """The binding, whose call is looked at with the operands that it had."""
        func, call = _callee(binding.value, self._mod) if isinstance(binding, VarBinding) else None, binding.value
        places = _places(call, self._free) if func is not None else ()
        made = super().binding(binding)
        if func is None or not places or len(self._kinds.get(call.args[0].name_hint, ())) < 2:
            return made
        callee = self._builder.add_func(func.with_attr(LAYOUT_FREE, list(places)), call.args[0].name_hint)
        value = made[-1].value
        new = Call(value.op, (callee, *value.args[1:]), value.attrs, value.sinfo_args)
        return [*made[:-1], VarBinding(made[-1].var, new)]


def AttachAttrLayoutFreeBuffers() -> ModulePass:
    """A pass: tensor functions get the attribute "layout_free_buffers", the arguments that are weights.

    Weights are constants, and the parameters of functions behind the first "num_input" ones. A function whose calls have other arguments
    for weights becomes one for each kind of call.
    """

    def run(mod: IRModule) -> IRModule:
        functions: list[tuple[GlobalVar, Any]] = list(mod.functions_items())
        graphs = [(var, func) for var, func in functions if isinstance(func, Function)]
        kinds: dict[str, set[tuple[int, ...]]] = {}
        for _, func in graphs:
            weights = _weights(func)
            for node in walk(func.body):
                if _callee(node, mod) is not None:
                    kinds.setdefault(node.args[0].name_hint, set()).add(_places(node, weights))
        made = mod.clone()
        for name, found in kinds.items():
            (places,) = found if len(found) == 1 else ((),)
            if places:
                made.update_func(name, made[name].with_attr(LAYOUT_FREE, list(places)))
        attacher = _Attacher(made, kinds)
        for var, func in graphs:
            made.update_func(var, attacher.function(func))  # type: ignore[arg-type]
        left = {
            node.name_hint
            for _, func in made.functions_items()
            if isinstance(func, Function)
            for node in walk(func.body)
            if isinstance(node, GlobalVar)
        }
        for name, found in kinds.items():
            if len(found) > 1 and name not in left and "global_symbol" not in made[name].attrs:
                del made[name]
        return made

    return graph_pass("AttachAttrLayoutFreeBuffers", run)
