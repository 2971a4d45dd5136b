"""Compiled functions on arrays of other frameworks. They take anything with DLPack as it is; these are for programs that ask for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..runtime import ndarray as nd


def convert_func(tvm_func: Callable[..., Any], tensor_type: type, to_dlpack_func: Callable[[Any], Any]) -> Callable[..., Any]:
    """A function that hands arguments of one type on as arrays on the same memory.

    Args:
        tvm_func: the compiled function.
        tensor_type: the type of the arguments to convert; others are passed as they are.
        to_dlpack_func: makes a DLPack capsule of one.
    """

    def converted(*args: Any) -> Any:
        return tvm_func(*(nd.from_dlpack(to_dlpack_func(arg)) if isinstance(arg, tensor_type) else arg for arg in args))

    return converted


def to_pytorch_func(tvm_func: Callable[..., Any]) -> Callable[..., Any]:
    """A function that takes PyTorch's tensors and writes to them.

    Raises:
        ImportError: without PyTorch.
    """
    import torch

    return convert_func(tvm_func, torch.Tensor, torch.Tensor.__dlpack__)
