"""Tensor functions of a graph as kernels: scheduled, lowered, and with the layouts in which their loops read constant weights."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from ..arith.index_map import IndexMap
from ..dataclass import dataclass, field, replace
from ..errors import DeclarationError, ScheduleError
from ..log import once
from ..lower.phase0 import schedule_to_func
from ..lower.pipeline import lower
from ..runtime.build import build as build_functions
from ..schedule.given_layouts import given_arguments, given_inputs, given_layout
from ..schedule.layout_rewrite import as_declared, with_given_layouts
from ..schedule.te_schedule import Schedule, create_schedule
from ..schedule.trace import Trace
from ..spaces.default import default_schedule
from ..target import Target
from ..te.operation import PlaceholderOp
from ..te.tensor import Tensor
from ..tir.arithmetic import as_int
from ..tir.function import IRModule, PrimFunc
from ..tune.streaming import ask_ahead
from .kernel_tasks import weights_of
from .kernels import BuiltKernel, constant_arguments, recorded_of
from .regions import Regions, in_regions, regions_of
from .stated_layouts import with_stated_layouts
from .tensor_function import Argument, plain_arguments

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Kernel:
    """A tensor function that is ready for code generation.

    Args:
        func: lowered, under its name.
        origin: where its schedule comes from.
        layouts: for each argument that is passed packed, where its elements are.
    """

    func: PrimFunc
    origin: str
    layouts: Mapping[int, IndexMap] = field(default_factory=dict)


def built_kernel(func: PrimFunc, symbol: str, target: Target, constants: Sequence[int] = (), recorded: Trace | None = None) -> BuiltKernel:
    """A tensor function in machine code; see `kernel_of`."""
    kernel = kernel_of(func, symbol, target, constants, recorded)
    made = build_functions(IRModule({symbol: kernel.func}), target=target)
    return BuiltKernel(symbol, made._source(), kernel.origin, kernel.layouts)


def kernel_of(func: PrimFunc, name: str, target: Target, constants: Sequence[int] = (), recorded: Trace | None = None) -> Kernel:
    """A tensor function with a schedule.

    A function whose loops are those that its computation has by default gets one by rules; loops that somebody wrote otherwise stay.

    Args:
        func: of blocks.
        name: of the kernel.
        target: what it will run on.
        constants: arguments that may be passed in any layout.
        recorded: the program that records have for it. One that doesn't fit any more is left out, which is said once.

    Raises:
        ScheduleError: if the rules make an illegal schedule of a computation of known sizes, which is a mistake of theirs.
    """
    if func.attrs.get("tir.is_scheduled"):
        return Kernel(func.with_attr("global_symbol", name), str(func.attrs.get("schedule.origin", "as given: it is scheduled")))
    try:
        args = plain_arguments(func)
    except DeclarationError as error:
        return Kernel(func.with_attr("global_symbol", name), f"as given: {error}")
    regions = regions_of(func)
    tensors = [one for one in args if isinstance(one, Tensor)]
    if len(tensors) < len(args):  # numbers, of which neither layouts nor records know
        return _lowered(default_schedule(tensors, target), args, (), name, target, "rule", regions)
    tensors, stated = with_stated_layouts(tensors, constants)
    if stated:
        made = _lowered(default_schedule(tensors, target), tensors, (), name, target, "rule", regions)
        return replace(made, layouts=stated)
    weights = weights_of(tensors, constants)
    if recorded is not None:
        try:
            outputs = tuple(tensor.op for tensor in tensors if not isinstance(tensor.op, PlaceholderOp))
            return _lowered(Schedule(outputs, as_declared(recorded)), tensors, weights, name, target, "record", regions)
        except ScheduleError as error:
            once(_logger, f"the recorded program of {name} does not fit and is not used: {error}")
    try:
        return _lowered(default_schedule(tensors, target), tensors, weights, name, target, "rule", regions)
    except ScheduleError as error:
        # What regions of open sizes cover can't always be proved; of numbers it can, and a rule that fails there is mistaken.
        if not any(as_int(extent) is None for tensor in tensors for extent in tensor.shape):
            raise
        return Kernel(func.with_attr("global_symbol", name), f"as given: {error}")


def _lowered(
    s: Schedule, given: Sequence[Argument], weights: Sequence[int], name: str, target: Target, origin: str, regions: Regions
) -> Kernel:
    args, layouts = list(given), dict[int, IndexMap]()
    if weights:
        s, tensors, layouts = _packed(s, [one for one in given if isinstance(one, Tensor)], weights)
        args = [*tensors]
    # Behind packing, which changes how loops go through a weight's lines.
    ask_ahead(s, target)
    with target:
        # Where elements lie is no choice of a schedule: the loops of the parts, in terms of the larger tensors.
        # Whether arguments may overlap is said by the context, as for a schedule.
        loops: Any = in_regions(schedule_to_func(s, args, name).without_attr("tir.noalias"), regions) if regions else s
        return Kernel(lower(loops, None if regions else args, name)[name], origin, layouts)


def _packed(s: Schedule, tensors: Sequence[Tensor], weights: Sequence[int]) -> tuple[Schedule, list[Tensor], dict[int, IndexMap]]:
    """A schedule that is given weights as it reads them, with its arguments and the layouts of these."""
    unscheduled = create_schedule([tensor.op for tensor in tensors if not isinstance(tensor.op, PlaceholderOp)]).tree
    tree = with_given_layouts(s.trace, unscheduled, [tensors[n] for n in weights]).apply(unscheduled)
    given = given_inputs(tree)
    layouts = {n: given_layout(tree, tensors[n]) for n in weights if tensors[n] in given}
    return Schedule.going_on(tree), given_arguments(tree, tensors), layouts


def kernels_of(mod: IRModule, target: Target) -> dict[str, Kernel]:
    """The kernels of a module's tensor functions, by name."""
    constants = constant_arguments(mod)
    functions = [(var.name_hint, func) for var, func in mod.functions_items() if isinstance(func, PrimFunc)]
    given = {name: constants.get(name, ()) for name, _ in functions}
    return {name: kernel_of(func, name, target, given[name], recorded_of(func, given[name], target)) for name, func in functions}
