"""Building and running Relay's modules: `relay.build`, `relay.create_executor`. Both hand over to the build of graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import ArgumentError, DeclarationError
from ..lower.context import PassContext
from ..lower.passes import deep_recursion
from ..relax.build import build as build_graph
from ..relax.expr import Function as GraphFunction
from ..relax.relations import BaseCheckResult, struct_info_base_check
from ..relax.runtime.machine import VirtualMachine
from ..relax.struct_info import TensorStructInfo, TupleStructInfo
from ..relax.transform.bind import BindParams
from ..runtime.ndarray import NDArray
from ..target import Target, TargetLike
from ..tir.dtype import to_numpy
from ..tir.function import GlobalVar, IRModule
from .alter_layout import AlterOpLayout, has_rules
from .atrous import with_dilation
from .backend import Executor, Runtime
from .backend.executor_factory import ExecutorFactoryModule
from .constants import with_known_shapes
from .expr import Constant, Function, as_expr, bind, const
from .external import graph_with_external
from .parameter_types import with_parameter_types
from .to_graph import reachable, to_graph
from .ty import type_of
from .values import result


def as_module(mod: Any) -> IRModule:
    """A module, of one or of a function.

    Raises:
        ArgumentError: for anything else.
    """
    if isinstance(mod, (Function, GraphFunction)):
        return IRModule.from_expr(mod)
    if not isinstance(mod, IRModule):
        raise ArgumentError(f"a network is an IRModule or a relay.Function, not {type(mod).__name__}")
    return mod


def bind_params_by_name(func: Any, params: Mapping[str, Any]) -> Any:
    """A function with constants in place of parameters, which leave its signature.

    Args:
        func: of Relay.
        params: arrays by names of parameters; names that it doesn't have are left out.

    Raises:
        DeclarationError: for a name that several parameters have, or a value of another type.
    """
    if not isinstance(func, Function):
        names = {param.name_hint for param in func.params}
        whole: Any = BindParams("main", {key: value for key, value in params.items() if key in names})(IRModule({"main": func}))
        return whole["main"]
    if any(param.name_hint in params and param.struct_info_annotation is None for param in func.params):
        func = with_parameter_types(func)  # float64, as NumPy makes weights, is rounded to what a convolution asks for
    named: dict[str, list[Any]] = {}
    for param in func.params:
        named.setdefault(param.name_hint, []).append(param)
    twice = [name for name in params if len(named.get(name, ())) > 1]
    if twice:
        raise DeclarationError(f"several parameters are called {', '.join(twice)}; bind them as variables")
    values = {named[name][0]: const(_given(named[name][0], value)) for name, value in params.items() if name in named}
    for param, value in values.items():
        stated = param.struct_info_annotation
        if stated is not None and struct_info_base_check(stated, value.struct_info) <= BaseCheckResult.FAIL_L1:
            raise DeclarationError(f"parameter %{param.name_hint} is {type_of(stated)}, and its value is {type_of(value.struct_info)}")
    return bind(func, values)


def _given(param: Any, value: Any) -> Any:
    """An array or a number in the dtype of a parameter, where that is one of floats or loses nothing."""
    info = param.struct_info_annotation
    if not isinstance(info, TensorStructInfo) or not info.dtype or not isinstance(value, (np.ndarray, np.generic, NDArray, int, float)):
        return value
    return (
        value
        if getattr(value, "dtype", None) == info.dtype
        else _fitting(np.asarray(value.numpy() if isinstance(value, NDArray) else value), info.dtype)
    )


def bound_graph(mod: Any, params: Mapping[str, Any] | None) -> IRModule:
    """A module as one of graphs, with values for parameters of "main" as constants."""
    return to_graph(_bound(mod, params))


def _bound(mod: Any, params: Mapping[str, Any] | None) -> IRModule:
    whole = as_module(mod).clone()
    if params and "main" in whole:
        whole.update_func("main", bind_params_by_name(whole["main"], params))
    for var, func in whole.functions_items():
        if isinstance(func, Function):
            whole.update_func(var, with_dilation(with_known_shapes(func)))
    # Layouts and implementations that programs ask for; those of a build are chosen behind it.
    whole = AlterOpLayout()(whole) if PassContext.current().enables("AlterOpLayout", 3) and has_rules() else whole
    if has_rules("FTVMStrategy"):
        from .strategies import with_strategies  # which loads AutoTVM

        whole = with_strategies(whole, Target.target_or_current(None))
    return whole


def _chosen(target: Any, target_host: Any) -> Target:
    """The target that is meant: one, of several the first."""
    made = Target.target_or_current(_listed(target)[0])
    return Target(made, target_host) if target_host is not None else made


def _listed(target: Any) -> list[Any]:
    """Targets one behind the other: those behind the first are for code generators of their kinds."""
    given = target.values() if isinstance(target, Mapping) and not {"kind"} & set(target) else target
    return list(given) if isinstance(given, (list, tuple)) or given is not target else [given]


def _of_generators(target: Any) -> list[Target]:
    return [Target(one) for one in _listed(target)[1:]]


def build(
    ir_mod: Any,
    target: Any = None,
    target_host: TargetLike | None = None,
    executor: Any = None,
    runtime: Any = None,
    workspace_memory_pools: Any = None,
    constant_memory_pools: Any = None,
    params: Mapping[str, Any] | None = None,
    mod_name: str = "default",
) -> ExecutorFactoryModule:
    """Build a network.

    Args:
        ir_mod: a module with a function "main", or a function.
        target: what for: a target, a list or mapping of one.
        target_host: its host.
        executor, runtime: `relay.backend.Executor` and `Runtime`, or their names; there is one of each. With {"link-params": True},
            to which the option "relay.FuseOps.link_params" of a PassContext and "-link-params=1" of a target are equal, `get_params()` of
            what is returned is empty, and C text (target "c") holds weights as arrays.
        workspace_memory_pools, constant_memory_pools: accepted.
        params: values of parameters, which become constants.
        mod_name: how the library calls it.

    Returns:
        What `graph_executor.GraphModule(lib["default"](dev))` runs, and `export_library` writes; as a triple graph, library, parameters.

    Raises:
        ArgumentError: for what is no module.
        DeclarationError, TypeMismatchError: for operands that don't fit, and code generators that there aren't (`external`).
        LoweringError, CodegenError, TargetError: from the steps.
    """
    for kind, given in ((Executor, executor), (Runtime, runtime)):
        if isinstance(given, str):
            kind(given)  # an unknown name is an error
    chosen = _chosen(target, target_host)
    with chosen:  # which strategies of operators ask for
        graph = graph_with_external(_bound(ir_mod, params), _of_generators(target))
    if "main" not in graph:
        raise DeclarationError(
            'a network is a function "main"; the module has ' + (", ".join(v.name_hint for v in graph.get_global_vars()) or "none")
        )
    executable = build_graph(graph, chosen)
    executable.links_params = _links(executor, chosen)
    return ExecutorFactoryModule(
        as_module(ir_mod), chosen, executable, mod_name, {} if executable.links_params else executable.get_params()
    )


def _links(executor: Any, target: Target) -> bool:
    """Whether parameters are part of the library for all who look at its parts: asked for in one of three places, or not by a graph."""
    made = Executor(executor) if isinstance(executor, str) else executor if isinstance(executor, Executor) else Executor()
    stated = target.attrs.get("link-params") or PassContext.current().config.get("relay.FuseOps.link_params")
    return bool(made["link-params"] or stated or made.name != "graph")


def optimize(mod: Any, target: Any = None, params: Mapping[str, Any] | None = None) -> tuple[IRModule, dict[str, Any]]:
    """The module behind the passes on graphs, as Relay's, and the parameters that are left: none, as those that were given are constants.

    What they compute by tensor functions of the module stays a function of graphs.
    """
    from ..relax.transform.pipeline import run_phases
    from .from_graph import from_graph

    with _chosen(target, None):
        return from_graph(run_phases(bound_graph(mod, params), upto=2)), {}


def _tensor(value: Any, info: Any) -> Any:
    """An argument: numbers are tensors without axes; those of Python have no dtype of their own, and so the one that is wanted."""
    if isinstance(value, Constant):
        return value.data
    if isinstance(value, tuple) and isinstance(info, TupleStructInfo) and len(value) == len(info.fields):
        return tuple(map(_tensor, value, info.fields))
    if isinstance(value, (bool, int, float)):
        return np.asarray(value, to_numpy(info.dtype) if isinstance(info, TensorStructInfo) else None)
    made = np.asarray(value) if isinstance(value, np.generic) else value
    return _fitting(made, info.dtype) if isinstance(made, np.ndarray) and isinstance(info, TensorStructInfo) and info.dtype else made


def _fitting(value: Any, dtype: str) -> Any:
    """An array in the dtype that is wanted: floats are rounded, integers have to fit; what doesn't is refused where it is used."""
    wanted = to_numpy(dtype)
    if value.dtype == wanted or value.dtype.kind not in "fiub":
        return value
    if wanted.kind == "f":
        return value.astype(wanted)
    made = value.astype(wanted) if wanted.kind in "iu" and value.dtype.kind in "iu" else value
    return made if np.array_equal(made, value) else value


class Interpreter:
    """Evaluates functions of a module: `create_executor("graph", mod).evaluate()(x)`.

    Args:
        kind: "graph", "vm", "aot" or "debug": all of them build.
        mod: the module; an empty one if None.
        device, target: where and what for.
        params: values of parameters of "main".
    """

    def __init__(self, kind: str, mod: Any, device: Any, target: Any, params: Mapping[str, Any] | None) -> None:
        Executor(kind if kind != "interpreter" else "debug")
        self.kind, self.mod, self.device, self.target = kind, IRModule() if mod is None else as_module(mod), device, target
        self.params = dict(params or {})

    def evaluate(self, expr: Any = None, binds: Mapping[Any, Any] | None = None) -> Any:
        """A function that takes arrays and returns arrays; of an expression that is no function, its value.

        Args:
            expr: a function, the GlobalVar of one, or an expression; "main" if None.
            binds: values of free variables.
        """
        chosen = self.mod.get_global_var("main") if expr is None else expr
        name = getattr(chosen, "name_hint", "main") if not isinstance(chosen, (Function, GraphFunction)) and chosen in self.mod else "main"
        whole = self.mod.clone()
        is_function = isinstance(chosen, (Function, GraphFunction)) or (isinstance(chosen, (str, GlobalVar)) and chosen in whole)
        if isinstance(chosen, (Function, GraphFunction)):
            whole.update_func("main", chosen)  # type: ignore[arg-type]
        elif not is_function:
            whole.update_func("main", Function((), bind(as_expr(chosen), binds or {})))  # type: ignore[arg-type]
        # The library of lists has two dozen functions, and a program calls a few of them.
        whole = reachable(whole, [name])
        chosen = _chosen(self.target, None)
        with chosen:
            built = graph_with_external(_bound(whole, self.params), _of_generators(self.target))
        machine = VirtualMachine(build_graph(built, chosen), self.device)
        if is_function:
            return self._caller(machine, name)
        with deep_recursion:  # lists are as deep as they are long
            return result(machine[name](), self.mod)

    def _caller(self, machine: VirtualMachine, name: str) -> Callable[..., Any]:
        params = machine.module.functions[name].params

        def call(*args: Any, **kwargs: Any) -> Any:
            left = [one for one in params if one.name_hint not in kwargs]
            if len(args) != len(left) or len(left) + len(kwargs) != len(params):
                shown = ", ".join([*("a value" for _ in args), *(f"{key}=..." for key in kwargs)])
                raise ArgumentError(f"{name} takes {', '.join(one.name_hint for one in params)}; given are {shown or 'none'}")
            given = {**dict(zip(left, args, strict=True)), **{one: kwargs[one.name_hint] for one in params if one not in left}}
            with deep_recursion:
                return result(machine[name](*(_tensor(given[one], one.struct_info) for one in params)), self.mod)

        return call


GraphExecutor = VMExecutor = AotExecutor = Interpreter


def create_executor(
    kind: str = "debug", mod: Any = None, device: Any = None, target: Any = "llvm", params: Mapping[str, Any] | None = None
) -> Interpreter:
    """What evaluates functions of a module; see `Interpreter`."""
    return Interpreter(kind, mod, device, target, params)


def build_config(opt_level: int = 2, required_pass: Any = None, disabled_pass: Any = None, trace: Any = None) -> PassContext:
    """A PassContext, by the name of the first releases."""
    return PassContext(opt_level=opt_level, required_pass=required_pass, disabled_pass=disabled_pass, trace=trace)


class BuildModule:
    """Builds modules step by step: `build`, then `get_graph_json`, `get_module`, `get_params`."""

    def __init__(self) -> None:
        self._built: ExecutorFactoryModule | None = None

    def build(
        self, mod: Any, target: Any = None, target_host: Any = None, executor: Any = None, runtime: Any = None,
        workspace_memory_pools: Any = None, constant_memory_pools: Any = None, params: Any = None, mod_name: str = "default",
    ) -> tuple[str, Any, dict[str, Any]]:  # fmt: skip
        """Build a network; returns graph, library and parameters. Arguments are those of `relay.build`."""
        self._built = build(mod, target, target_host, executor, runtime, workspace_memory_pools, constant_memory_pools, params, mod_name)
        return self.get_graph_json(), self.get_module(), self.get_params()

    def _made(self) -> ExecutorFactoryModule:
        if self._built is None:
            raise ArgumentError("BuildModule: nothing was built yet; call build(mod, target)")
        return self._built

    def get_graph_json(self) -> str:
        """The graph."""
        return self._made().get_graph_json()

    def get_module(self) -> Any:
        """The library."""
        return self._made().get_lib()

    def get_params(self) -> dict[str, Any]:
        """The parameters; see `ExecutorFactoryModule.get_params`."""
        return self._made().get_params()

    def optimize(self, mod: Any, target: Any = None, params: Any = None) -> tuple[IRModule, dict[str, Any]]:
        """As `relay.optimize`."""
        return optimize(mod, target, params)
