"""Modules that PyTorch quantised: traces on plain integers, and exported programs of the operators on these."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch", reason="modules of PyTorch are read by PyTorch")

import tensorexpr as te  # noqa: E402  (behind the packages that CI may lack)
from tensorexpr import relax, relay  # noqa: E402
from tensorexpr.contrib import graph_executor  # noqa: E402
from tensorexpr.errors import DeclarationError  # noqa: E402
from tensorexpr.frontend.torch import from_exported_program  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
quantization = torch.ao.quantization


class Net(torch.nn.Module):  # type: ignore[misc]
    """Convolutions, a residual, pools, a view and a product."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.leave = quantization.QuantStub(), quantization.DeQuantStub()
        self.conv, self.relu = torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU()
        self.point, self.sum = torch.nn.Conv2d(8, 8, 1), torch.ao.nn.quantized.FloatFunctional()
        self.pool, self.last = torch.nn.AdaptiveAvgPool2d(2), torch.nn.Linear(32, 5)

    def forward(self, x: Any) -> Any:
        y = self.relu(self.conv(self.enter(x)))
        z = torch.max_pool2d(self.sum.add_relu(y, self.point(y)), 3, 1, 1)
        return self.leave(self.last(torch.flatten(self.pool(z), 1)))


def test_a_quantised_trace_runs_on_integers() -> None:
    """As PyTorch, to one step of the last quantisation: its kernels round biases to integers."""
    torch.manual_seed(0)
    x = torch.randn(2, 3, 6, 6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = Net().eval()
        net.qconfig = quantization.get_default_qconfig("x86")  # of 7 bits, whose sums saturate nowhere
        prepared = quantization.prepare(quantization.fuse_modules(net, [["conv", "relu"]]))
        prepared(x)
        made = quantization.convert(prepared)
        traced = torch.jit.trace(made, x)
    mod, params = relay.frontend.from_pytorch(traced, [("x", tuple(x.shape))])
    assert {str(value.dtype) for value in params.values()} >= {"int8"}  # weights are those that PyTorch packed
    library = relay.build(mod, "llvm", params=params)
    assert "uint8, (8, 3, 3, 3) int8" in library.module.explain()  # an integer kernel
    module = graph_executor.GraphModule(library["default"](te.cpu()))
    module.set_input("x", x.numpy())
    module.run()
    np.testing.assert_allclose(module.get_output(0).numpy(), made(x).numpy(), rtol=0, atol=1.01 * made.last.scale)


def test_quantised_operators_without_a_meaning_are_named() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = quantization.quantize_dynamic(torch.nn.Sequential(torch.nn.Linear(4, 3)).eval(), {torch.nn.Linear})
        traced = torch.jit.trace(made, torch.ones(1, 4))
    with pytest.raises(DeclarationError, match=r"quantized::linear_dynamic.*relay\.quantize\.quantize"):
        relay.frontend.from_pytorch(traced, [("x", (1, 4))])


def test_exported_programs_quantise() -> None:
    """What PyTorch's exports write: a scale or one for each channel, and ranges that are narrower than their dtype."""
    import torch.ao.quantization.fx._decomposed  # it registers the operators

    plain = torch.ops.quantized_decomposed

    class Pairs(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("scales", torch.tensor([0.1, 0.2, 0.05]))
            self.register_buffer("zeros", torch.tensor([0, 3, -4]))

        def forward(self, x: Any) -> Any:
            one = plain.quantize_per_tensor(x, 0.02, 5, -127, 127, torch.int8)
            each = plain.quantize_per_channel(x, self.scales, self.zeros, 1, -128, 127, torch.int8)
            other = plain.dequantize_per_channel(each, self.scales, self.zeros, 1, -128, 127, torch.int8)
            return one, plain.dequantize_per_tensor(one, 0.02, 5, -127, 127, torch.int8) + other

    x = 4 * torch.randn(4, 3)
    machine = relax.VirtualMachine(relax.build(from_exported_program(torch.export.export(Pairs(), (x,))), "llvm"))
    for found, wanted in zip(machine["main"](x.numpy()), Pairs()(x), strict=True):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-6, atol=1e-6)
