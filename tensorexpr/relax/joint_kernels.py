"""The kernels of a graph for a device, or as C: one module of all, each tensor function scheduled by rules or as it is given."""

from __future__ import annotations

from collections.abc import Mapping

from ..lower.device.launches import has_threads
from ..lower.pipeline import lower
from ..runtime.build import build
from ..schedule.own_loops import loops_in_threads
from ..target import Target
from ..target.kinds import DEVICE_KINDS
from ..tir.function import IRModule, PrimFunc
from .build_progress import Watch
from .kernel_cache import BuiltKernels
from .kernel_schedules import kernel_of
from .kernels import recorded_of


def joint_kernels(functions: Mapping[str, PrimFunc], target: Target, watch: Watch) -> BuiltKernels:
    """The kernels of a module.

    Args:
        functions: the tensor functions by name.
        target: of the device, or of kind "c".
        watch: is told of each kernel that is lowered.

    Raises:
        LoweringError, CodegenError: from the steps.
    """
    watch.begin(len(functions), 0)
    lowered: dict[str, PrimFunc] = {}
    origins: dict[str, str] = {}
    for name, func in functions.items():
        # Weights stay in the layout that the graph gives them: blocks of a device fetch them by way of shared memory, and C is to be read.
        made = kernel_of(func, name, target, (), recorded_of(func, (), target))
        lowered[name] = _in_threads(made.func, name, target) if target.kind in DEVICE_KINDS else made.func
        origins[name] = made.origin
        watch.made(name)
    module = build(IRModule({name: func for name, func in lowered.items()}), target=target)
    return BuiltKernels(module, origins, {name: {} for name in lowered})


def _in_threads(func: PrimFunc, name: str, target: Target) -> PrimFunc:
    """A function whose loops somebody wrote gets threads as those of an extern do; itself if it has some."""
    if has_threads(func):
        return func
    with target:
        flat = lower(func, name=name, upto=1)[name]
    return flat.with_body(loops_in_threads(flat.body))
