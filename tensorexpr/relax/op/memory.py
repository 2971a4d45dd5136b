"""Storages and the tensors inside: `relax.op.memory.alloc_storage`."""

from ..ops.memory import alloc_storage, ensure_zero_copy, kill_storage, kill_tensor, view
from ..ops.memory import alloc_tensor_in as alloc_tensor

__all__ = ["alloc_storage", "alloc_tensor", "ensure_zero_copy", "kill_storage", "kill_tensor", "view"]
