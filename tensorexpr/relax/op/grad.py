"""Operators of gradients as functions that make calls."""

from ..ops.grad_marks import end_checkpoint, no_grad, optimization_barrier, start_checkpoint
from ..ops.pool_grad import avg_pool2d_backward, max_pool2d_backward

__all__ = [
    "avg_pool2d_backward", "end_checkpoint", "max_pool2d_backward", "no_grad", "optimization_barrier", "start_checkpoint",
]  # fmt: skip
