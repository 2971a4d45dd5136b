"""Weights of networks that aren't trained: numbers by the rules of their layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...runtime.ndarray import NDArray, array
from ...tir.function import IRModule
from ..expr import Function
from ..transform import InferType

_ONES, _ZEROS = ("gamma", "var"), ("bias", "beta", "mean", "avg")
Fill = Callable[[str, Any], None]
Workload = tuple[IRModule, dict[str, NDArray]]


class Initializer:
    """Fills weights by the ends of their names: `weight`, `bias`, `gamma`, `beta`, `mean`, `avg`, `var`."""

    def __call__(self, desc: str, arr: Any) -> None:
        """Fill an array in place.

        Args:
            desc: the name of the weights.
            arr: an array of NumPy.
        """
        arr[:] = 1 if desc.endswith(_ONES) else 0 if desc.endswith(_ZEROS) else self.numbers(arr.shape)

    def numbers(self, shape: tuple[int, ...]) -> Any:
        """Numbers of weights.

        Raises:
            NotImplementedError: if a class has none.
        """
        raise NotImplementedError(f"{type(self).__name__} has no numbers(shape)")


class Xavier(Initializer):
    """Uniform numbers that keep the variance of what passes through (Glorot and Bengio 2010, equation 16).

    Args:
        rnd_type, factor_type: accepted: "uniform" and "avg".
        magnitude: 3: the variance is `magnitude / 3` of the mean of inputs and outputs.
        seed: of the numbers.
    """

    def __init__(self, rnd_type: str = "uniform", factor_type: str = "avg", magnitude: float = 3, seed: int = 0) -> None:
        self.magnitude, self._random = magnitude, np.random.default_rng(seed)

    def numbers(self, shape: tuple[int, ...]) -> Any:
        """Uniform numbers, whose bound follows from how many numbers come in and go out."""
        window = int(np.prod(shape[2:]))
        inputs, outputs = (shape[1] if len(shape) > 1 else 1) * window, shape[0] * window
        bound = np.sqrt(self.magnitude / ((inputs + outputs) / 2))
        return self._random.uniform(-bound, bound, shape)


class Constant(Initializer):
    """The same number everywhere.

    Args:
        value: it.
    """

    def __init__(self, value: float) -> None:
        self.value = value

    def numbers(self, shape: tuple[int, ...]) -> Any:
        """The number."""
        return self.value


def create_workload(net: Function, initializer: Fill | None = None, seed: int = 0) -> Workload:
    """A module of a network, and its weights: of all parameters but "data" and "label".

    Args:
        net: the network.
        initializer: `f(name, array)` fills an array; Xavier without one.
        seed: of random numbers, those of `np.random` behind it among them: programs make the same inputs for two builds of a network.
    """
    np.random.seed(seed)
    mod: IRModule = InferType()(IRModule.from_expr(net))
    fill = initializer or Xavier(seed=seed)
    params: dict[str, NDArray] = {}
    main: Any = mod["main"]  # whose parameters have types
    for param in main.params:
        if param.name_hint not in ("data", "label"):
            made = np.zeros(param.type_annotation.concrete_shape, param.type_annotation.dtype)
            fill(param.name_hint, made)
            params[param.name_hint] = array(made)
    return mod, params
