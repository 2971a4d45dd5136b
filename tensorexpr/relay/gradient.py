"""Derivatives of Relay's functions: those of graphs (`relax.transform.Gradient`), between `to_graph` and `from_graph`."""

from __future__ import annotations

from typing import Any

from ..errors import DeclarationError, TypeMismatchError
from ..lower.passes import ModulePass
from ..relax import expr as graph
from ..relax import transform as on_graphs
from ..relax.struct_info import TensorStructInfo, TupleStructInfo
from ..relax.transform.gradient import with_gradient
from ..relax.transform.inline import inline_functions
from ..tir.dtype import parse_dtype
from ..tir.function import GlobalVar, IRModule, PrimFunc
from .adt import Match
from .expr import Function, Tuple, TupleGetItem
from .from_graph import function_from_graph
from .ops.elementwise import add
from .ops.reduce import sum as total_of
from .partial_eval import evaluated
from .to_graph import recursive, to_graph
from .unused import without_dead_values
from .visitor import has_effects, substitute, walk

_MAIN = "main"
_MODES = ("higher_order", "first_order")


def _first(value: Any, info: Any) -> tuple[Any, Any]:
    """The first tensor of a value, and what is known of it."""
    while isinstance(info, TupleStructInfo) and info.fields:
        value, info = TupleGetItem(value, 0), info.fields[0]
    return value, info


def _total(value: Any, info: Any) -> Any:
    """The sum of all elements of a value's tensors of floats; None if there are none."""
    if isinstance(info, TupleStructInfo):
        parts = [_total(TupleGetItem(value, n), one) for n, one in enumerate(info.fields)]
        whole = None
        for part in parts:
            whole = part if whole is None else whole if part is None else add(whole, part)
        return whole
    is_float = isinstance(info, TensorStructInfo) and info.dtype and parse_dtype(info.dtype).is_float
    return total_of(value) if is_float else None


def gradient(expr: Any, mod: IRModule | None = None, mode: str = "higher_order") -> Any:
    """A function that returns what a function does, and the derivatives of its result by its parameters, as a tuple.

    Derivatives are those of the sum of all elements. Where a function returns several tensors, those of the first one are taken in
    the mode "higher_order", as in TVM, and those of all of them in the mode "first_order".

    Args:
        expr: the function, or its name in the module.
        mod: with functions that it calls. Derivatives that are tensor functions, of operators for which there is no rule, are added to it.
        mode: "higher_order" or "first_order"; both give functions that can be derived again.

    Raises:
        DeclarationError: for another mode, and operators without a derivative.
        TypeMismatchError: for what is no function of Relay, or returns no floats there.
    """
    return _derived(expr, mod, mode, mod)


def _derived(expr: Any, mod: IRModule | None, mode: str, kept: IRModule | None) -> Any:
    """See `gradient`; tensor functions go to `kept`, whose own keep their names."""
    if mode not in _MODES:
        raise DeclarationError(f"gradient: mode {mode!r}; there are {', '.join(_MODES)}")
    if isinstance(expr, GlobalVar) and mod is not None:
        expr = mod[expr]
    if not isinstance(expr, Function):
        raise TypeMismatchError(f"gradient takes a function, not a {type(expr).__name__}")
    whole: Any = IRModule() if mod is None else mod.clone()
    for var, func in () if kept is None else kept.functions_items():
        if isinstance(func, PrimFunc):
            whole.update_func(var, func)
    expr = _first_order(expr, whole)
    whole.update_func(GlobalVar(_MAIN), expr)
    # What functions of the module return, and what Lets bind, is known to the graph alone.
    graph_main: Any = to_graph(whole)[_MAIN]
    info = graph_main.ret_struct_info
    loss = _total(*(_first(expr.body, info) if mode == "higher_order" else (expr.body, info)))
    if loss is None:
        hint = "" if _total(expr.body, info) is None else ' first; mode="first_order" derives the sum of all results'
        raise TypeMismatchError(f"gradient: the function returns {info}, which has no floats to derive{hint}")
    whole.update_func(GlobalVar(_MAIN), Function(expr.params, Tuple([loss, expr.body])))
    made: Any = to_graph(whole)
    functions = ((var.name_hint, func) for var, func in made.functions_items() if isinstance(func, graph.Function))
    others: dict[Any, Any] = {name: func for name, func in functions if name != _MAIN}
    main: Any = made[_MAIN]
    # What is called is derived, too: its body stands where it is called.
    made.update_func(GlobalVar(_MAIN), inline_functions(main, others))
    made = on_graphs.ConvertToDataflow(1)(on_graphs.Normalize()(made)).clone()
    # Not by the pass, whose function has symbols of its own: here extents stay those of the parameters.
    derived: Any = function_from_graph(with_gradient(made[_MAIN], _MAIN, made))
    _keep_kernels(derived, made, kept)
    if isinstance(derived, graph.Function):
        raise DeclarationError(
            "gradient: the function's shapes are values; its derivatives are functions of graphs (relax.transform.Gradient)"
        )
    # Parameters keep their places, and the sum goes.
    params = dict(zip(derived.params, expr.params, strict=True))
    body = substitute(derived.body, params)
    results, derivatives = (_field(body, n) for n in (0, 1))
    return Function(expr.params, Tuple([_field(results, 1), derivatives]), None, (), expr.attrs)


def _keep_kernels(derived: Any, made: IRModule, mod: IRModule | None) -> None:
    """Tensor functions that a derivative calls, where whoever asked for it finds them.

    Raises:
        DeclarationError: without a module.
    """
    called = {node.name_hint: node for node in walk(derived) if isinstance(node, GlobalVar) and isinstance(made[node], PrimFunc)}
    if called and mod is None:
        raise DeclarationError(
            f"gradient: {', '.join(called)} are tensor functions, which stand in a module: pass mod=, an IRModule that gets them, or use "
            "relay.transform.FirstOrderGradient"
        )
    for name, var in called.items():
        assert mod is not None
        mod.update_func(GlobalVar(name), made[var])


def _first_order(func: Function, mod: IRModule) -> Function:
    """A function without references, and without functions that call themselves, where partial evaluation finds one.

    Raises:
        DeclarationError: where it doesn't: what a reference holds depends on values that are known when the function runs.
    """
    nodes = list(walk(func))
    unrolled = {node.name_hint for node in nodes if isinstance(node, GlobalVar) and node in mod} & set(recursive(mod))
    effects = has_effects(func) or any(has_effects(one) for _, one in mod.functions_items() if isinstance(one, Function))
    if not effects and not unrolled and not any(isinstance(node, Match) for node in nodes):
        return func
    made: Function = without_dead_values(evaluated(func, mod))
    if has_effects(made):
        raise DeclarationError("gradient: what a reference holds isn't known before the function runs; write it without references")
    return made


def _field(value: Any, index: int) -> Any:
    return value.fields[index] if isinstance(value, graph.Tuple) else TupleGetItem(value, index)


def FirstOrderGradient() -> ModulePass:
    """Each function as one that returns what it did and its derivatives; see `gradient`."""

    def on_module(mod: IRModule, ctx: Any) -> IRModule:
        made = mod.clone()
        for var, func in mod.functions_items():
            if isinstance(func, Function):
                made.update_func(var, _derived(func, mod, "first_order", made))
        return made

    return ModulePass("FirstOrderGradient", lambda func, ctx: func, 0, by_user=False, module_func=on_module)


__all__ = ["FirstOrderGradient", "gradient"]
