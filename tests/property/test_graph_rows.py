"""Random graphs of what works row by row, and of what doesn't, with several results: groups mean what their operators do, and are built."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr import relax
from tensorexpr.relax import BlockBuilder, TensorStructInfo, Var, op
from tensorexpr.relax.evaluator import Evaluator

_SCALE = relax.const(np.linspace(0.5, 1.5, 20).astype("float32"))
_SQUARE = relax.const(np.linspace(-0.3, 0.3, 400).reshape(20, 20).astype("float32"))
# Of tensors of (outer, inner, 20), to such ones.
STEPS: tuple[Any, ...] = (
    lambda a, b: op.add(a, b),
    lambda a, b: op.nn.silu(a),
    lambda a, b: op.nn.softmax(a),
    lambda a, b: op.nn.layer_norm(op.add(a, b), _SCALE, _SCALE),
    lambda a, b: op.nn.rms_norm(a, _SCALE),
    lambda a, b: op.multiply(a, op.sum(b, 2, keepdims=True)),
    lambda a, b: op.subtract(a, op.expand_dims(op.max(b, 2), 2)),
    lambda a, b: op.divide(a, op.add(op.sqrt(op.sum(op.multiply(a, a), -1, keepdims=True)), relax.const(1.0))),
    lambda a, b: op.subtract(a, op.mean(b, 1, keepdims=True)),  # rows of the outer axis alone
    lambda a, b: op.add(a, op.sum(b, (1, 2), keepdims=True)),
    lambda a, b: op.flip(a, 2),
    lambda a, b: op.flip(a, 1),
    lambda a, b: op.nn.softmax(op.multiply(a, b), 1),
    lambda a, b: op.nn.gelu(op.matmul(a, _SQUARE)),
    lambda a, b: op.add(op.reshape(op.reshape(a, (-1, 20)), a.struct_info.shape), b),
)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Any, tuple[int, ...]]:
    shape = (draw(st.sampled_from((1, 2, 18))), draw(st.sampled_from((1, 16, 21))), 20)
    x, y = (Var(name, TensorStructInfo(shape)) for name in "xy")
    bb = BlockBuilder()
    with bb.function("main", [x, y]):
        values: list[Any] = [x, y]
        with bb.dataflow():
            for _ in range(draw(st.integers(2, 7))):
                step, a, b = draw(st.sampled_from(STEPS)), draw(st.sampled_from(values[-3:])), draw(st.sampled_from(values))
                values.append(bb.emit(step(a, b)))
            wanted = draw(st.lists(st.sampled_from(values[2:]), max_size=2, unique=True))
            outputs = [bb.emit_output(one) for one in [*wanted, op.abs(values[-1])]]
        bb.emit_func_output(tuple(outputs))
    return bb.get(), shape


@settings(deadline=None, derandomize=True, max_examples=10)
@given(graphs(), st.integers(0, 100))
def test_groups_of_rows(case: Any, seed: int) -> None:
    mod, shape = case
    arrays = [np.random.default_rng(seed + n).uniform(-1, 1, shape).astype("float32") for n in range(2)]
    wanted = Evaluator(mod)("main", *arrays)
    executable = relax.build(mod)
    assert all(origin == "rule" for origin in executable.origins.values())
    for found in (Evaluator(relax.build(mod, upto=3))("main", *arrays), relax.VirtualMachine(executable)["main"](*arrays)):
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a.numpy() if hasattr(a, "numpy") else a, b, rtol=1e-3, atol=1e-4)
