"""The tasks of a network: its distinct tensor functions behind the passes on graphs, and how often each is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..auto_scheduler.compute_dag import ComputeDAG
from ..auto_scheduler.layout_rewrite import LayoutRewriteOption
from ..auto_scheduler.options import HardwareParams
from ..auto_scheduler.search_task import SearchTask
from ..auto_scheduler.workload import register_workload_tensors
from ..dataclass import dataclass
from ..errors import DeclarationError, TypeMismatchError, WorkloadError
from ..target import Target
from ..te.operation import ComputeOp
from ..te.tensor import Tensor
from ..tir.arithmetic import as_int
from ..tir.expr import Mul, Reduce
from ..tir.function import IRModule, PrimFunc
from ..tir.rewriting import walk as walk_expression
from .expr import Function
from .kernel_tasks import weights_of, with_free_layouts, workload_key
from .kernels import constant_arguments
from .tensor_function import plain_tensors
from .transform.bind import BindParams
from .transform.meta_schedule import calls_of
from .transform.pipeline import run_phases


@dataclass(frozen=True)
class NetworkTask:
    """A task of a network.

    Args:
        task: what is searched.
        kernels: the tensor functions that it stands for: functions of one computation share a task.
        count: how often they are called, in the text of the graph.
        is_simple: whether it sums no products: elementwise chains, pools, softmax.
    """

    task: SearchTask
    kernels: tuple[str, ...]
    count: int
    is_simple: bool


def network_graph(mod: Any, params: Mapping[Any, Any] | None = None) -> IRModule:
    """A network as one module of graphs, whose parameters are constants.

    Args:
        mod: a module of graphs or of Relay's functions, or one function.
        params: values of parameters of "main".

    Raises:
        TypeMismatchError: for anything else.
    """
    if isinstance(mod, Function) or hasattr(mod, "as_module"):
        mod = mod.as_module() if hasattr(mod, "as_module") else IRModule.from_expr(mod)
    if not isinstance(mod, IRModule):
        raise TypeMismatchError(f"a network is a module of graphs or of Relay's functions, not {type(mod).__name__}")
    # Relay's functions say themselves which graph they are.
    other = next((func for func in mod.functions.values() if hasattr(func, "module_to_graph")), None)
    graph: IRModule = mod if other is None else other.module_to_graph(mod)
    return BindParams("main", dict(params))(graph) if params else graph


def fused_graph(mod: Any, params: Mapping[Any, Any] | None = None) -> IRModule:
    """A network behind the passes on graphs, as `relax.build` makes kernels of it; see `network_graph`."""
    return run_phases(network_graph(mod, params))


def tasks_of_graph(mod: IRModule, target: Target, hardware_params: HardwareParams | None = None) -> list[NetworkTask]:
    """The tasks of a fused graph, in the order of its functions; those without a computation of known sizes have none.

    Args:
        mod: of `fused_graph`.
        target: what to tune for.
        hardware_params: numbers of the machine that differ from the target's.
    """
    constants, calls = constant_arguments(mod), calls_of(mod)
    found: dict[str, tuple[list[Tensor], tuple[int, ...], list[str]]] = {}
    for var, func in mod.functions_items():
        name = var.name_hint
        tensors = _searched(func)
        if tensors is None or not calls[name]:
            continue
        weights = weights_of(tensors, constants.get(name, ()))
        found.setdefault(workload_key(tensors, weights), (tensors, weights, []))[2].append(name)
    made: list[NetworkTask] = []
    for key, (tensors, weights, names) in found.items():
        free = with_free_layouts(tensors, weights)
        try:
            dag = ComputeDAG(free)
        except WorkloadError:  # recurrences, for which there are no rules
            continue
        register_workload_tensors(key, free)
        # Whoever builds the network packs its weights, so that programs are measured with packed ones.
        option = LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED if weights else None
        task = SearchTask(
            compute_dag=dag, workload_key=key, target=target, hardware_params=hardware_params, layout_rewrite_option=option, desc=names[0]
        )
        made.append(NetworkTask(task, tuple(names), sum(calls[name] for name in names), not _sums_products(dag)))
    return made


def _searched(func: Any) -> list[Tensor] | None:
    """The tensors of a function that the search may schedule; None for one that is scheduled, written by hand, or of open sizes."""
    if not isinstance(func, PrimFunc) or func.attrs.get("tir.is_scheduled"):
        return None
    try:
        tensors = plain_tensors(func)
    except DeclarationError:
        return None
    sizes = [as_int(extent) for tensor in tensors for extent in tensor.shape]
    is_computed = all(isinstance(tensor.op, ComputeOp) or not tensor.op.input_tensors for tensor in tensors)
    return tensors if None not in sizes and is_computed else None


def _sums_products(dag: ComputeDAG) -> bool:
    """Whether a computation has products, convolutions or the like: sums of what is multiplied."""
    sums = [body for op in dag.ops if isinstance(op, ComputeOp) and op.reduce_axis for body in op.body if isinstance(body, Reduce)]
    return any(isinstance(node, Mul) for one in sums for source in one.source for node in walk_expression(source))


def extracted(
    mods: Sequence[Any],
    params: Sequence[Mapping[Any, Any] | None],
    target: Target,
    hardware_params: HardwareParams | None = None,
    include_simple_tasks: bool = False,
) -> tuple[list[SearchTask], list[int]]:
    """The tasks of some networks and how often they run, each computation once; see `auto_scheduler.extract_tasks`."""
    tasks: dict[str, SearchTask] = {}
    counts: dict[str, int] = {}
    for mod, given in zip(mods, params, strict=True):
        for one in tasks_of_graph(fused_graph(mod, given), target, hardware_params):
            if include_simple_tasks or not one.is_simple:
                key = one.task.workload_key
                tasks.setdefault(key, one.task)
                counts[key] = counts.get(key, 0) + one.count
    return list(tasks.values()), list(counts.values())
