"""What LLVM knows: its version, its targets, and the features of CPUs. `build_module` is `tensorexpr.build`."""

from typing import TYPE_CHECKING

from ...later import later
from .llvm import (
    llvm_cpu_has_features,
    llvm_get_cpu_archlist,
    llvm_get_cpu_features,
    llvm_get_intrinsic_name,
    llvm_get_system_cpu,
    llvm_get_system_triple,
    llvm_get_system_x86_vendor,
    llvm_get_targets,
    llvm_lookup_intrinsic_id,
    llvm_version_major,
    target_has_features,
)

if TYPE_CHECKING:
    from ...runtime.build import build as build_module

__all__ = [
    "build_module",
    "llvm_cpu_has_features",
    "llvm_get_cpu_archlist",
    "llvm_get_cpu_features",
    "llvm_get_intrinsic_name",
    "llvm_get_system_cpu",
    "llvm_get_system_triple",
    "llvm_get_system_x86_vendor",
    "llvm_get_targets",
    "llvm_lookup_intrinsic_id",
    "llvm_version_major",
    "target_has_features",
]

__getattr__, __dir__ = later(__name__, {"tensorexpr.runtime.build": "build_module=build"})
