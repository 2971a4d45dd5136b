"""A long short-term memory, step by step (Hochreiter and Schmidhuber 1997, with the forget gates of Gers et al. 2000)."""

from __future__ import annotations

from ..expr import Function, var
from ..op import add, multiply, nn, sigmoid, split, tanh, zeros
from .init import Workload, create_workload
from .layers import Layers, function_of


def get_net(iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32") -> Function:
    """The network: `iterations` steps that all read "data", with the same weights; returns the last output."""
    make = Layers(dtype=dtype)
    data = var("data", shape=(batch_size, num_hidden), dtype=dtype)
    weights = {side: make.weight(f"{side}_weight", 4 * num_hidden, num_hidden) for side in ("i2h", "h2h")}
    biases = {side: make.weight(f"{side}_bias", 4 * num_hidden) for side in weights}
    output = memory = zeros((batch_size, num_hidden), dtype)
    for _ in range(iterations):
        sides = zip((data, output), weights, strict=True)
        gates = add(*(nn.bias_add(nn.dense(value, weights[side], 4 * num_hidden), biases[side]) for value, side in sides))
        enter, forget, new, leave = split(gates, 4, 1)
        memory = add(multiply(sigmoid(forget), memory), multiply(sigmoid(enter), tanh(new)))
        output = multiply(sigmoid(leave), tanh(memory))
    return function_of(output)


def get_workload(iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32") -> Workload:
    """The network as a module, and weights."""
    return create_workload(get_net(iterations, num_hidden, batch_size, dtype))
