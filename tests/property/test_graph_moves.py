"""Products between transposes of any kind: what is read or written in place means what it did, by the evaluator and by the machine."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr import relax
from tensorexpr.relax import BlockBuilder, TensorStructInfo, Var, op
from tensorexpr.relax.evaluator import Evaluator
from tests.effort import share_of

BEHIND: tuple[Any, ...] = (
    lambda y, b: y,
    lambda y, b: op.add(y, b),
    lambda y, b: op.nn.silu(op.add(y, b)),
    lambda y, b: op.multiply(op.sigmoid(op.multiply(y, relax.const(0.5))), y),
    lambda y, b: op.nn.softmax(y),
)
ORDERS = st.permutations(range(4)).map(tuple)


@st.composite
def products(draw: st.DrawFn) -> Any:
    """A batched product of two transposed tensors, something behind it, and a transpose of that, which may be used twice."""
    batch, heads, rows, columns, summed = (draw(st.sampled_from(sizes)) for sizes in ((1, 2), (1, 3), (1, 5, 17), (1, 8, 33), (1, 6, 40)))
    left, right, behind = draw(ORDERS), draw(ORDERS), draw(st.one_of(st.none(), ORDERS))
    shapes = [
        [extents[order.index(n)] for n in range(4)]
        for extents, order in (((batch, heads, rows, summed), left), ((batch, heads, summed, columns), right))
    ]
    x, y = (Var(name, TensorStructInfo(shape)) for name, shape in zip("xy", shapes, strict=True))
    b = Var("b", TensorStructInfo((columns,)))
    bb = BlockBuilder()
    with bb.function("main", [x, y, b]):
        with bb.dataflow():
            made = bb.emit(op.matmul(bb.emit(op.permute_dims(x, left)), bb.emit(op.permute_dims(y, right))))
            made = bb.emit(draw(st.sampled_from(BEHIND))(made, b))
            moved = made if behind is None else bb.emit(op.permute_dims(made, behind))
            outputs = [bb.emit_output(op.abs(moved))] + ([bb.emit_output(op.negative(made))] if draw(st.booleans()) else [])
        bb.emit_func_output(tuple(outputs))
    return bb.get(), [*shapes, [columns]]


@settings(deadline=None, derandomize=True, max_examples=share_of(15))
@given(products(), st.integers(0, 100))
def test_products_between_transposes(case: Any, seed: int) -> None:
    mod, shapes = case
    rng = np.random.default_rng(seed)
    arrays = [rng.uniform(-1, 1, shape).astype("float32") for shape in shapes]
    wanted = Evaluator(mod)("main", *arrays)
    fused = relax.build(mod, upto=3)
    for found in (Evaluator(fused)("main", *arrays), relax.VirtualMachine(relax.build(mod))["main"](*arrays)):
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a.numpy() if hasattr(a, "numpy") else a, b, rtol=2e-4, atol=2e-5)
