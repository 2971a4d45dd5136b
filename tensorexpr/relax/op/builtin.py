"""Memory for tensors: `relax.op.builtin.alloc_tensor`."""

from ..ops.memory import alloc_tensor, stop_lift_params

__all__ = ["alloc_tensor", "stop_lift_params"]
