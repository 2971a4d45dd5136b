"""Transposed weights of products become weights that are transposed.

nn.dense(%x, transpose(%w))    with values of %w    nn.dense(%x, %w.T)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...runtime.ndarray import NDArray, array
from ..expr import Call, Function, Var
from ..ty import TensorType
from ..visitor import ExprMutator, free_vars

Converted = tuple[Function, dict[str, NDArray]]


def values_of(params: Mapping[str, Any]) -> dict[str, Any]:
    """The values of parameters as NumPy's arrays."""
    return {name: value.numpy() if isinstance(value, NDArray) else np.asarray(value) for name, value in params.items()}


def converted(mutator: ExprMutator, func: Function, values: Mapping[str, Any]) -> Converted:
    """A function with another body, its parameters as its body uses them, and their values."""
    body = mutator.visit(func.body)
    used = free_vars(body)
    params = [*(one for one in func.params if one in used), *(one for one in used if one not in func.params)]
    kept = {one.name_hint for one in params}
    return Function(tuple(params), body), {name: array(value) for name, value in values.items() if name in kept}


class _Turned(ExprMutator):
    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__()
        self.values = values
        self._made: dict[str, Var] = {}

    def visit_call(self, call: Any) -> Any:
        """A product whose weight is a transposed parameter."""
        made = super().visit_call(call)
        weight = made.args[1] if made.op == "nn.dense" else None
        if not isinstance(weight, Call) or weight.op != "transpose" or not isinstance(weight.args[0], Var):
            return made
        name = weight.args[0].name_hint
        if name not in self.values or self.values[name].ndim != 2 or tuple(weight.attrs["axes"] or (1, 0)) != (1, 0):
            return made
        turned = np.ascontiguousarray(self.values[name].T)
        self.values[f"{name}.T"] = turned
        var = self._made.setdefault(name, Var(f"{name}.T", TensorType(turned.shape, str(turned.dtype))))
        return Call(made.op, (made.args[0], var), made.attrs)


def convert(func: Function, params: Mapping[str, Any]) -> Converted:
    """The function with transposed weights, and the values of its parameters.

    Args:
        func: of Relay.
        params: values of weights by name.
    """
    values = values_of(params)
    return converted(_Turned(values), func, values)


__all__ = ["convert"]
