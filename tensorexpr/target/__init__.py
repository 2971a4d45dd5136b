"""What code is built for: CPUs, and the other kinds of machines that programs name.

target         Target: strings, dicts and tags in; attributes, features, caches out
reading        the forms of a target, and which options a kind has
kinds          the table of kinds: labels, options and their defaults
tag            well-known machines by name
models         Targets of device families by function: cuda(), arm_cpu(), ...
dispatch       functions whose meaning depends on the target
detect_target  the target of a device of this machine
virtual_device a device with its target and memory
compilation_config  the targets of a compilation, one for each kind of device
codegen        what LLVM knows of CPUs
"""

from typing import TYPE_CHECKING

from ..later import later
from .target import Target, TargetFeatures, TargetKind, TargetLike

if TYPE_CHECKING:
    from . import codegen, detect_target, models, tag
    from .compilation_config import CompilationConfig, make_compilation_config
    from .dispatch import GenericFunc, generic_func, get_native_generic_func, override_native_generic_func
    from .models import arm_cpu, bifrost, create, cuda, hexagon, intel_graphics, mali, micro, rasp, riscv_cpu, rocm, stm32
    from .tag import list_tags, register_tag
    from .virtual_device import VirtualDevice

__all__ = [
    "CompilationConfig",
    "GenericFunc",
    "Target",
    "TargetFeatures",
    "TargetKind",
    "TargetLike",
    "VirtualDevice",
    "arm_cpu",
    "bifrost",
    "codegen",
    "create",
    "cuda",
    "detect_target",
    "generic_func",
    "get_native_generic_func",
    "hexagon",
    "intel_graphics",
    "list_tags",
    "make_compilation_config",
    "mali",
    "micro",
    "models",
    "override_native_generic_func",
    "rasp",
    "register_tag",
    "riscv_cpu",
    "rocm",
    "stm32",
    "tag",
]

_HOMES = {
    ".compilation_config": "CompilationConfig make_compilation_config",
    ".dispatch": "GenericFunc generic_func get_native_generic_func override_native_generic_func",
    ".models": "arm_cpu bifrost create cuda hexagon intel_graphics mali micro rasp riscv_cpu rocm stm32",
    ".tag": "list_tags register_tag",
    ".virtual_device": "VirtualDevice",
}
current_target = Target.current  # as releases up to 0.6 call it

__getattr__, __dir__ = later(__name__, _HOMES, submodules="codegen detect_target models tag")
