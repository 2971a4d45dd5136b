"""Lesson 10: a module of PyTorch as a graph, and as what `torch.compile` runs. Needs `pip install torch`.

python examples/10_torch_module.py [--size N]
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import torch

import tensorexpr as tvm
from tensorexpr import relax
from tensorexpr.frontend.torch import relax_dynamo
from tensorexpr.relax.frontend.torch import from_exported_program


class Block(torch.nn.Module):
    """A convolution with batch norm, its rectified values added to the input, and scores."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm = torch.nn.BatchNorm2d(width)
        self.head = torch.nn.Linear(width, 10)

    def forward(self, x: Any) -> Any:
        """Scores of images."""
        x = x + torch.relu(self.norm(self.conv(x)))
        return torch.softmax(self.head(x.mean((2, 3))), -1)


def main() -> None:
    """Import, look at the graph and its kernels, run, and compile by PyTorch's own command."""
    parser = argparse.ArgumentParser(description="A module of PyTorch.")
    parser.add_argument("--size", type=int, default=32, help="channels")
    options = parser.parse_args()
    module = Block(options.size).eval()
    x = torch.randn(1, options.size, 28, 28)
    with torch.no_grad():
        expected = module(x).numpy()
        program = torch.export.export(module, (x,))

    mod = from_exported_program(program, unwrap_unit_return_tuple=True)
    print("operators:", ", ".join(line.split("= R.")[1].split("(")[0] for line in mod.script().splitlines() if "= R." in line))

    executable = relax.build(mod, "llvm")
    machine = relax.VirtualMachine(executable, tvm.cpu())
    given = tvm.nd.array(x.numpy())
    np.testing.assert_allclose(machine["main"](given).numpy(), expected, rtol=1e-4, atol=1e-5)
    print("kernels:", ", ".join(executable.origins))

    compiled = torch.compile(module, backend=relax_dynamo())  # or backend="tensorexpr", once both packages are installed
    with torch.no_grad():
        np.testing.assert_allclose(compiled(x).numpy(), expected, rtol=1e-4, atol=1e-5)
    print("the graph and the compiled module compute what PyTorch does")


if __name__ == "__main__":
    main()
