"""Memory and calls as LowerRuntimeBuiltin writes them: `relax.op.vm.alloc_storage`."""

from ..ops.memory import call_tir_dyn, kill_object
from ..ops.memory import vm_alloc_storage as alloc_storage
from ..ops.memory import vm_alloc_tensor as alloc_tensor

__all__ = ["alloc_storage", "alloc_tensor", "call_tir_dyn", "kill_object"]
