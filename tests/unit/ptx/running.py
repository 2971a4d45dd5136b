"""Building and running the kernels of `programs` on the emulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr.runtime.device_module import DeviceModule
from tensorexpr.testing.ptx import Emulator, emulator, ptxas

from . import programs

Array = np.ndarray[Any, np.dtype[Any]]
TARGET = "cuda -arch=sm_80"
needs_ptxas = pytest.mark.skipif(ptxas() is None, reason="no ptxas here; the extra cuda-dev brings it")


@dataclass(frozen=True)
class Case:
    """A kernel, its inputs, and what it should give within a tolerance."""

    program: Any
    shapes: Sequence[tuple[int, ...]]
    result: tuple[int, ...]
    reference: Callable[..., Array]
    dtype: str = "float32"

    def inputs(self) -> list[Array]:
        """Values that are always the same."""
        rng = np.random.default_rng(7)
        return [rng.standard_normal(shape).astype(self.dtype) for shape in self.shapes]

    def build(self) -> DeviceModule:
        """The module."""
        inputs, args = self.program() if callable(self.program) and not hasattr(self.program, "body") else (self.program, None)
        module: Any = tvm.build(inputs, args, target=TARGET)
        assert isinstance(module, DeviceModule)
        return module

    def run(self, module: DeviceModule, device: Emulator | None = None) -> Array:
        """What the module computes."""
        device = device or emulator()
        output = tvm.nd.empty(self.result, "float32", device)
        module(*(tvm.nd.array(value, device) for value in self.inputs()), output)
        return np.asarray(output.numpy())

    def expected(self) -> Array:
        """What it should."""
        return np.asarray(self.reference(*(value.astype("float64") for value in self.inputs())))

    def is_right(self, found: Array) -> bool:
        """Whether a result is the reference's, within rounding."""
        return bool(np.allclose(found, self.expected(), rtol=2e-5, atol=2e-5))


def _softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


CASES = {
    "elementwise": Case(programs.elementwise, [(1000,)], (1000,), lambda x: np.exp(x) * 2),
    "reverse": Case(programs.reverse, [(1024,)], (1024,), lambda x: x.reshape(8, 128)[:, ::-1].ravel()),
    "reduction": Case(programs.reduction, [(64, 256)], (64,), lambda x: x.sum(axis=1)),
    "softmax": Case(programs.softmax, [(8, 128)], (8, 128), _softmax),
    "gemm": Case(programs.gemm, [(64, 64), (64, 64)], (64, 64), lambda x, y: x @ y),
    "tensor_cores": Case(programs.tensor_cores, [(16, 64), (64, 8)], (16, 8), lambda x, y: x @ y, "float16"),
}


def with_text(module: DeviceModule, text: str) -> DeviceModule:
    """The module with other PTX."""
    functions = {name: module[name].made for name in module.function_names}
    return DeviceModule(replace(module.code, assembly=text), functions, module.target, module.lowered)
