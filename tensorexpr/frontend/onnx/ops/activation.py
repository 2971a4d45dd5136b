"""Functions of each element that networks have between their layers."""

from __future__ import annotations

from typing import Any

from .... import relax
from ....tir.arithmetic import as_int
from ..attributes import Attributes
from ..context import Context, Inputs
from ..registry import onnx_op

R = relax.op

# Operator -> the call, and its attributes with their defaults.
_ACTIVATIONS: dict[str, tuple[Any, dict[str, float]]] = {
    "Celu": (R.nn.celu, {"alpha": 1.0}),
    "Elu": (R.nn.elu, {"alpha": 1.0}),
    "HardSigmoid": (R.nn.hard_sigmoid, {"alpha": 0.2, "beta": 0.5}),
    "HardSwish": (R.nn.hard_swish, {}),
    "LeakyRelu": (R.nn.leakyrelu, {"alpha": 0.01}),
    "Mish": (R.nn.mish, {}),
    "Selu": (R.nn.selu, {"alpha": 1.6732632423543772, "gamma": 1.0507009873554805}),
    "Softplus": (R.nn.softplus, {}),
    "Softsign": (R.nn.softsign, {}),
    "Swish": (R.nn.swish, {"alpha": 1.0}),
    "ThresholdedRelu": (R.nn.thresholded_relu, {"alpha": 1.0}),
}


def _activation(name: str) -> None:
    function, defaults = _ACTIVATIONS[name]

    def convert(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
        return function(inputs[0], **{key: attrs.float(key, value) for key, value in defaults.items()})

    onnx_op(name)(convert)


for _name in _ACTIVATIONS:
    _activation(_name)


@onnx_op("Gelu")
def gelu(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """x times the normal distribution's function, or its approximation."""
    return (R.nn.gelu_tanh if attrs.string("approximate", "none") == "tanh" else R.nn.gelu)(inputs[0])


@onnx_op("PRelu")
def prelu(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """x where it is positive, else x times a slope, which broadcasts; up to opset 6 a slope for each channel."""
    shape = ctx.extents(1)
    if ctx.opset < 7 and len(shape) == 1 and ctx.rank(0) > 1 and as_int(shape[0]) != 1:
        return R.nn.prelu(inputs[0], inputs[1], 1)
    places = [n for n, extent in enumerate(shape, ctx.rank(0) - len(shape)) if as_int(extent) != 1]
    if len(places) == 1 and str(ctx.extents(0)[places[0]]) == str(shape[places[0] - ctx.rank(0)]):
        return R.nn.prelu(inputs[0], R.reshape(inputs[1], [-1]), places[0])
    return R.where(R.less(inputs[0], relax.const(0, ctx.dtype(0))), R.multiply(inputs[0], inputs[1]), inputs[0])
