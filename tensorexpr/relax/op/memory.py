"""Storages and the tensors inside: `relax.op.memory.alloc_storage`."""

from ..ops.memory import alloc_storage, kill_storage, kill_tensor
from ..ops.memory import alloc_tensor_in as alloc_tensor

__all__ = ["alloc_storage", "alloc_tensor", "kill_storage", "kill_tensor"]
