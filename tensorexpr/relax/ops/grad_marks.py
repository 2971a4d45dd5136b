"""What says to `Gradient` which values it keeps, and which it derives by; elsewhere these operators change nothing."""

from __future__ import annotations

from ... import topi
from ..struct_info import StructInfo
from .row import Expr, Pattern, operator

NO_GRAD, START, END = MARKS = ("relax.grad.no_grad", "relax.grad.start_checkpoint", "relax.grad.end_checkpoint")
BARRIER = "relax.grad.optimization_barrier"


@operator("grad.no_grad", Pattern.ELEMENTWISE, te=topi.identity, numpy=lambda input: input, as_is=True)
def no_grad(input: Expr) -> StructInfo:
    """A value by which nothing is derived."""
    return input.struct_info


@operator("grad.start_checkpoint", Pattern.ELEMENTWISE, te=topi.identity, numpy=lambda input: input, as_is=True)
def start_checkpoint(input: Expr) -> StructInfo:
    """A value that is kept: what is computed from it up to an `end_checkpoint` is computed again for the derivatives."""
    return input.struct_info


@operator("grad.end_checkpoint", Pattern.ELEMENTWISE, te=topi.identity, numpy=lambda input: input, as_is=True)
def end_checkpoint(input: Expr) -> StructInfo:
    """The last value that is computed again, and not kept; see `start_checkpoint`."""
    return input.struct_info


# No tensor computation, so that it stays until all passes that merge equal values are done; FuseOps lets it go.
@operator("grad.optimization_barrier", Pattern.OPAQUE, numpy=lambda input: input, as_is=True)
def optimization_barrier(input: Expr) -> StructInfo:
    """A value of its own for all passes: what is computed of it isn't merged with what was computed of `input` before.

    `Gradient` puts it in front of what it computes again, which would live from the first time on if it were merged.
    """
    return input.struct_info


__all__ = ["BARRIER", "MARKS", "end_checkpoint", "no_grad", "optimization_barrier", "start_checkpoint"]
