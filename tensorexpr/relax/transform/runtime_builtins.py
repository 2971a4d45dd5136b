"""Passes by which TVM prepares a module for its machine. Memory has names of its own there; the rest `relax.build` does itself.

In `relax.build` sizes are computed, arguments checked and results written in place by the executable, after kernels are fused. A graph
that had these written out before would be fused less, so the passes of these names change nothing.
"""

from __future__ import annotations

from typing import Any

from ...errors import DeclarationError
from ...lower.passes import ModulePass
from ..expr import Call
from ..ops.memory import kill_object, vm_alloc_storage, vm_alloc_tensor
from ..visitor import Mutator
from .passes import each_function, graph_pass


class _Lowered(Mutator):
    """Memory by the names of the machine."""

    def rewrite(self, expr: Any) -> Any:
        """The same call by its other name.

        Raises:
            DeclarationError: for a tensor that has no storage yet.
        """
        match expr.op if isinstance(expr, Call) else None:
            case "relax.memory.alloc_storage":
                size, device, scope, dtype = expr.args
                return vm_alloc_storage(size, device, dtype, scope)
            case "relax.memory.alloc_tensor":
                return vm_alloc_tensor(*expr.args)
            case "relax.memory.kill_storage" | "relax.memory.kill_tensor":
                return kill_object(*expr.args)
            case "relax.builtin.alloc_tensor":
                raise DeclarationError(f"LowerRuntimeBuiltin: {expr} has no storage; LowerAllocTensor or StaticPlanBlockMemory give it one")
        return expr


def LowerRuntimeBuiltin() -> ModulePass:
    """A pass: storages and tensors are made by `R.vm.alloc_storage` and `R.vm.alloc_tensor`, and given up by `R.vm.kill_object`.

    What is left, such as reshapes and shapes of tensors, executables know as it is.

    Raises:
        DeclarationError: for a tensor that has no storage yet.
    """
    return each_function("LowerRuntimeBuiltin", lambda func, mod: _Lowered().function(func))


VMBuiltinLower = LowerRuntimeBuiltin


def ComputePrimValue() -> ModulePass:
    """A pass that changes nothing: executables compute expressions of sizes."""
    return graph_pass("ComputePrimValue", lambda mod: mod)


def VMShapeLower(*, emit_err_ctx: bool = True) -> ModulePass:
    """A pass that changes nothing: executables check arguments and compute sizes.

    Args:
        emit_err_ctx: accepted; errors always name the function and the parameter.
    """
    return graph_pass("VMShapeLower", lambda mod: mod)
