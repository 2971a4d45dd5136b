"""Modules behind FuseOps and behind FuseTIR, as they print: names of groups, their functions, and one computation for each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tensorexpr import relax
from tensorexpr.relax import op
from tensorexpr.relax.transform import AnnotateTIROpPattern, DeadCodeElimination, FuseOps, FuseTIR, LegalizeOps

FOLDER = Path(__file__).parent / "fused"
STEPS: dict[str, tuple[Any, ...]] = {
    "fuse_ops": (LegalizeOps(), AnnotateTIROpPattern(), FuseOps()),
    "fuse_tir": (LegalizeOps(), AnnotateTIROpPattern(), FuseOps(), FuseTIR(), DeadCodeElimination()),
}


def network() -> Any:
    """A convolution with a bias, a residual and an activation; a product whose result is used twice."""
    shapes = {"x": (1, 4, 5, 5), "w": (4, 4, 3, 3), "b": (1, 4, 1, 1), "d": (5, 6)}
    x, w, b, d = params = [relax.Var(name, relax.TensorStructInfo(shape, "float32")) for name, shape in shapes.items()]
    bb = relax.BlockBuilder()
    with bb.function("main", params):
        with bb.dataflow():
            y = bb.emit(op.add(bb.emit(op.nn.conv2d(x, w, padding=1)), b))
            y = bb.emit(op.nn.relu(bb.emit(op.add(y, x))))
            z = bb.emit(op.matmul(y, d))
            out = bb.emit_output(op.multiply(bb.emit(op.tanh(z)), bb.emit(op.sum(z, -1, keepdims=True))))
        bb.emit_func_output(out)
    return bb.get()


@pytest.mark.parametrize("name", STEPS)
def test_fused_modules_print_as_they_did(name: str) -> None:
    mod = network()
    for one in STEPS[name]:
        mod = one(mod)
    assert mod.script() + "\n" == (FOLDER / f"{name}.txt").read_text()
