"""Operators of gradients as functions that make calls."""

from ..ops.pool_grad import avg_pool2d_backward, max_pool2d_backward

__all__ = ["avg_pool2d_backward", "max_pool2d_backward"]
