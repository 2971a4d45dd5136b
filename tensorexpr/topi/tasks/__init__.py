"""Operators as AutoTVM's tasks for x86, by TVM's names ("conv2d_NCHWc.x86"), with TVM's workloads and knobs.

convolutions     conv2d_NCHWc, depthwise_conv2d_NCHWc, conv3d, group_conv2d
products         dense layers, batched products
low_precision    conv2d_NCHWc, dense and batched products of uint8 and int8
bitserial        convolutions and dense layers of integers of few bits
library_calls    products by BLAS, which have no knobs
kernels          convolutions and products of networks, with what is fused behind them
dispatch         the operators of topi.x86, by the logs in force
shared           what their schedules have in common

Loaded when a task of such a name is asked for.
"""

from . import bitserial, convolutions, dispatch, kernels, library_calls, low_precision, products

__all__ = ["bitserial", "convolutions", "dispatch", "kernels", "library_calls", "low_precision", "products"]
