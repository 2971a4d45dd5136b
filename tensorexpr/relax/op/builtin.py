"""Memory for tensors: `relax.op.builtin.alloc_tensor`."""

from ..ops.memory import alloc_tensor

__all__ = ["alloc_tensor"]
