"""Random graphs of elementwise operators, products, reductions and moves: every pass and the machine agree with the evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr import relax
from tensorexpr.ir import load_json, save_json, structural_equal, structural_hash
from tensorexpr.relax import BlockBuilder, TensorStructInfo, Var, analysis, op
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.script import from_source
from tensorexpr.tir.expr import Var as Symbol
from tests.effort import share_of

WEIGHTS = [relax.const(np.linspace(0.5, 1.5, 4).astype("float32")), relax.const(np.linspace(-1, 1, 16).reshape(4, 4).astype("float32"))]
# Operators on tensors of shape (n, 4), to tensors of that shape.
STEPS: tuple[Any, ...] = (
    op.add,
    op.multiply,
    lambda a, b: a * op.sigmoid(a) + op.clip(b + 3.0, 0, 6) * b / 6.0,
    lambda a, b: (a - op.mean(a, 1, True)) / op.sqrt(op.variance(a, 1, True) + 1e-3) * WEIGHTS[0] + WEIGHTS[0],
    op.maximum,
    lambda a, b: op.nn.softmax(a),
    lambda a, b: op.tanh(a),
    lambda a, b: a - op.mean(b, 1, keepdims=True),
    lambda a, b: op.matmul(a, op.matmul(op.permute_dims(b), b)) * 0.125,
    lambda a, b: op.concat([op.split(a, 2, 1)[1], op.split(b, [2], 1)[0]], 1),
    lambda a, b: op.flip(a, 1),
    lambda a, b: op.permute_dims(op.multiply(op.permute_dims(a), op.permute_dims(b))),
    lambda a, b: op.squeeze(op.nn.relu(op.expand_dims(a, 1)) + WEIGHTS[0], 1),
    lambda a, b: op.matmul(a * WEIGHTS[0] - 0.5, WEIGHTS[1]) / WEIGHTS[0] + WEIGHTS[0],
    lambda a, b: op.permute_dims(op.sum(op.permute_dims(op.expand_dims(a, 2), (1, 2, 0)), 1)) * 1.0 + 0.0,
    lambda a, b: op.reshape(op.reshape(a, (-1,)), (-1, 4)),
    lambda a, b: op.where(op.greater(a, b), a, b * 0.5),
    lambda a, b: op.nn.layer_norm(a, op.ones((4,), "float32"), op.zeros((4,), "float32")),
    lambda a, b: op.take(a, op.astype(op.clip(op.argmax(b, 1), 0, 0), "int64"), 0),
)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Any, int]:
    n = Symbol("n", "int64") if draw(st.booleans()) else 3
    x, y = (Var(name, TensorStructInfo((n, 4))) for name in "xy")
    bb = BlockBuilder()
    with bb.function("main", [x, y]):
        values: list[Any] = [x, y]
        with bb.dataflow():
            for _ in range(draw(st.integers(1, 6))):
                step, a, b = draw(st.sampled_from(STEPS)), draw(st.sampled_from(values)), draw(st.sampled_from(values))
                values.append(bb.emit(step(a, b)))
            out = bb.emit_output(values[-1])
        bb.emit_func_output(out)
    return bb.get(), 3


T = relax.transform
# Passes that leave functions as they are called.
PASSES: tuple[Any, ...] = (
    T.LegalizeOps(),
    T.DeadCodeElimination(),
    T.Normalize(),
    T.CanonicalizeBindings(),
    T.EliminateCommonSubexpr(),
    T.ToNonDataflow(),
    T.ConvertToDataflow(),
    T.TopologicalSort("breadth-first", "from-outputs"),
    T.TopologicalSort("depth-first", "from-inputs"),
    T.LambdaLift(),
    T.RecognizePatterns(),
    T.Simplify(),
    T.DecomposeOpsForInference(),
    T.AdjustMatmulOrder(),
    T.ExpandMatmulOfSum(),
    T.ReorderPermuteDimsAfterConcat(),
    T.FuseOps(),
    relax.get_pipeline("zero"),
)


@settings(deadline=None, derandomize=True, max_examples=share_of(12))
@given(graphs(), st.integers(0, 100))
def test_passes_and_machine_agree_with_the_evaluator(case: tuple[Any, int], seed: int) -> None:
    mod, rows = case
    rng = np.random.default_rng(seed)
    arrays = [rng.uniform(-1, 1, (rows, 4)).astype("float32") for _ in range(2)]
    expected = Evaluator(mod)("main", *arrays)
    if "metadata" not in mod.script():  # constants that a text leaves out can't be read
        again = from_source(mod.script())
        assert structural_equal(again, mod) and structural_hash(again) == structural_hash(mod)
        assert again.script() == mod.script()
    kept = from_source(mod.script(show_meta=True)), load_json(save_json(mod))
    assert all(structural_equal(one, mod) and structural_hash(one) == structural_hash(mod) for one in kept)
    main: Any = mod["main"]
    copied = relax.utils.copy_with_new_vars(main)
    assert structural_equal(copied, main) and not set(analysis.all_vars(copied)) & set(analysis.all_vars(main))
    assert structural_equal(relax.PyExprMutator(mod).visit_expr(main), main)
    bound = relax.transform.BindParams("main", {"y": arrays[1]})(mod)
    for made, given_arrays in (
        *((run(mod), arrays) for run in PASSES),
        (relax.transform.FoldConstant()(bound), arrays[:1]),
    ):
        assert analysis.well_formed(made)
        np.testing.assert_allclose(Evaluator(made)("main", *given_arrays), expected, rtol=2e-4, atol=2e-5)
    found = relax.VirtualMachine(relax.build(mod))["main"](*arrays).numpy()
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5)
