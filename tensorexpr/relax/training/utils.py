"""Derivatives of tensor functions, which `relax.transform.Gradient` finds by the names in calls of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...runtime.registry import register_func
from ..block_builder import BlockBuilder
from ..expr import Call, Var
from ..transform.gradient import TE_GRADIENT
from .append_loss import AppendLoss

TeGradient = Callable[..., Any]


def register_te_gradient(te_grad_name: str, te_grad_func: TeGradient | None = None) -> Any:
    """Register the derivative of tensor functions that are called by `R.call_tir_with_grad(..., te_grad_name=...)`.

    Args:
        te_grad_name: of it, which no other one may have.
        te_grad_func: from the adjoint of the result and the operands, as tensors of te, to the adjoints of the operands, a tensor or a list
            of tensors; it gets `te_grad_kwargs` of the call by name. For several results the first argument is a list. Without one this
            is a decorator.

    Returns:
        the function.

    Raises:
        ArgumentError: if the name is taken.
    """

    def register(func: TeGradient) -> TeGradient:
        def handler(orig_var: Var, call_tir_with_grad: Call, output_grad: Any, ctx: BlockBuilder) -> Call:
            operands: Any = call_tir_with_grad.args[1]
            return ctx.call_te(
                func, output_grad, *operands.fields, **call_tir_with_grad.attrs["te_grad_kwargs"], primfunc_name_hint=te_grad_name
            )

        register_func(TE_GRADIENT + te_grad_name, handler)
        return func

    return register if te_grad_func is None else register(te_grad_func)


__all__ = ["AppendLoss", "register_te_gradient"]
