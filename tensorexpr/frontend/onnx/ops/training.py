"""Steps of optimisers: new parameters and states by gradients."""

from __future__ import annotations

from typing import Any

from .... import relax
from ..attributes import Attributes
from ..context import Context, Inputs
from ..registry import onnx_op

R = relax.op
_DOMAIN = "ai.onnx.preview.training"


def _groups(ctx: Context, inputs: Inputs, kinds: int) -> list[tuple[Any, ...]]:
    """The operands behind the rate and the step, by parameter: itself, its gradient and its states."""
    count = len(inputs) - 2
    if count % kinds:
        ctx.fail(f"{count} operands behind the rate and the step are no multiple of {kinds}")
    each = count // kinds
    return [tuple(inputs[2 + n + kind * each] for kind in range(kinds)) for n in range(each)]


def _number(x: Any, value: float) -> Any:
    return relax.const(value, x.struct_info.dtype)


def _scaled(x: Any, value: float) -> Any:
    return R.multiply(x, _number(x, value))


def _regularised(attrs: Attributes, x: Any, gradient: Any) -> Any:
    return R.add(_scaled(x, attrs.float("norm_coefficient", 0.0)), gradient)


def _in_order(rows: list[tuple[Any, ...]]) -> list[Any]:
    return [one for column in zip(*rows, strict=True) for one in column]


@onnx_op("Adagrad", domain=_DOMAIN)
def adagrad(ctx: Context, inputs: Inputs, attrs: Attributes) -> list[Any]:
    """Rates by the sum of all squared gradients (Duchi et al. 2011)."""
    rate, step = inputs[0], inputs[1]
    decay = _scaled(R.astype(step, ctx.dtype(0)), attrs.float("decay_factor", 0.0))
    rate = R.divide(rate, R.add(_number(rate, 1.0), decay))
    rows = []
    for x, gradient, squares in _groups(ctx, inputs, 3):
        g = ctx.emit(_regularised(attrs, x, gradient))
        new = ctx.emit(R.add(squares, R.multiply(g, g)))
        scale = R.add(R.sqrt(new), _number(x, attrs.float("epsilon", 0.0)))
        rows.append((R.subtract(x, R.divide(R.multiply(rate, g), scale)), new))
    return _in_order(rows)


@onnx_op("Adam", domain=_DOMAIN)
def adam(ctx: Context, inputs: Inputs, attrs: Attributes) -> list[Any]:
    """Rates by running means of gradients and of their squares (Kingma and Ba 2015)."""
    rate, step = inputs[0], inputs[1]
    alpha, beta = attrs.float("alpha", 0.9), attrs.float("beta", 0.999)
    steps = R.astype(step, ctx.dtype(0))
    left = [R.subtract(_number(rate, 1.0), R.power(_number(rate, base), steps)) for base in (alpha, beta)]
    first = R.greater(step, relax.const(0, ctx.dtype(1)))
    rate = R.where(first, R.divide(R.multiply(rate, R.sqrt(left[1])), left[0]), rate)
    rows = []
    for x, gradient, mean, squares in _groups(ctx, inputs, 4):
        g = ctx.emit(_regularised(attrs, x, gradient))
        v = ctx.emit(R.add(_scaled(mean, alpha), _scaled(g, 1.0 - alpha)))
        h = ctx.emit(R.add(_scaled(squares, beta), _scaled(R.multiply(g, g), 1.0 - beta)))
        scale = R.add(R.sqrt(h), _number(x, attrs.float("epsilon", 0.0)))
        new = R.subtract(x, R.divide(R.multiply(rate, v), scale))
        rows.append((_scaled(new, 1.0 - attrs.float("norm_coefficient_post", 0.0)), v, h))
    return _in_order(rows)


@onnx_op("Momentum", domain=_DOMAIN)
def momentum(ctx: Context, inputs: Inputs, attrs: Attributes) -> list[Any]:
    """Steps along a running sum of gradients, or ahead of it (Nesterov 1983)."""
    rate, step, mode = inputs[0], inputs[1], attrs.string("mode")
    if mode not in ("standard", "nesterov"):
        ctx.fail(f"its mode is standard or nesterov, not {mode!r}")
    alpha = attrs.float("alpha")
    rows = []
    for x, gradient, velocity in _groups(ctx, inputs, 3):
        beta = R.where(R.greater(step, relax.const(0, ctx.dtype(1))), _number(x, attrs.float("beta")), _number(x, 1.0))
        g = ctx.emit(_regularised(attrs, x, gradient))
        v = ctx.emit(R.add(_scaled(velocity, alpha), R.multiply(beta, g)))
        along = v if mode == "standard" else R.add(g, _scaled(v, alpha))
        rows.append((R.subtract(x, R.multiply(rate, along)), v))
    return _in_order(rows)
