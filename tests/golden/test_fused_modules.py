"""Modules behind FuseOps and behind FuseTIR, as they print: names of groups, their functions, and one computation for each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tensorexpr import relax
from tensorexpr.relax import op
from tensorexpr.relax.transform import AnnotateTIROpPattern, DeadCodeElimination, FuseOps, FuseTIR, LegalizeOps, RewriteDataflowReshape

FOLDER = Path(__file__).parent / "fused"
_FUSE_OPS: tuple[Any, ...] = (LegalizeOps(), RewriteDataflowReshape(), AnnotateTIROpPattern(), FuseOps())
STEPS: dict[str, tuple[Any, ...]] = {"fuse_ops": _FUSE_OPS, "fuse_tir": (*_FUSE_OPS, FuseTIR(), DeadCodeElimination())}


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


def attention() -> Any:
    """Heads cut out of rows, weighted by each other, and put together again: the products read and write them where they are."""
    q, k, v, mask = params = [relax.Var(name, relax.TensorStructInfo((1, 6, 8), "float32")) for name in "qkv"] + [
        relax.Var("mask", relax.TensorStructInfo((1, 1, 1, 6), "float32"))
    ]
    bb = relax.BlockBuilder()
    with bb.function("main", params):
        with bb.dataflow():

            def heads(value: Any, order: tuple[int, ...]) -> Any:
                return bb.emit(op.permute_dims(bb.emit(op.reshape(value, (1, 6, 2, 4))), order))

            scores = bb.emit(op.matmul(heads(q, (0, 2, 1, 3)), heads(k, (0, 2, 3, 1))))
            scores = bb.emit(op.add(bb.emit(op.multiply(scores, relax.const(0.5))), mask))
            mixed = bb.emit(op.matmul(bb.emit(op.nn.softmax(scores)), heads(v, (0, 2, 1, 3))))
            out = bb.emit_output(op.reshape(bb.emit(op.permute_dims(mixed, (0, 2, 1, 3))), (1, 6, 8)))
        bb.emit_func_output(out)
    return bb.get()


def residual() -> Any:
    """A sum of rows that a norm reads, and what comes behind it, too: one kernel with two results."""
    shapes = {"x": (32, 8), "r": (32, 8), "g": (8,), "w": (8, 8)}
    x, r, g, w = params = [relax.Var(name, relax.TensorStructInfo(shape, "float32")) for name, shape in shapes.items()]
    bb = relax.BlockBuilder()
    with bb.function("main", params):
        with bb.dataflow():
            total = bb.emit(op.add(x, r))
            inner = bb.emit(op.nn.gelu(bb.emit(op.matmul(bb.emit(op.nn.rms_norm(total, g)), w))))
            out = bb.emit_output(op.add(total, inner))
        bb.emit_func_output(out)
    return bb.get()


NETWORKS = {"": network, "_of_attention": attention, "_of_residual": residual}


@pytest.mark.parametrize("made", NETWORKS)
@pytest.mark.parametrize("name", STEPS)
def test_fused_modules_print_as_they_did(name: str, made: str) -> None:
    mod = NETWORKS[made]()
    for one in STEPS[name]:
        mod = one(mod)
    assert mod.script() + "\n" == (FOLDER / f"{name}{made}.txt").read_text()
