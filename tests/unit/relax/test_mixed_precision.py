"""Networks of half precision from graphs of float32: how near kernels come to what float32 says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relax
from tensorexpr.relax import BlockBuilder, TensorStructInfo, Var, const, op, transform
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.testing.networks import bert_layer
from tensorexpr.script import from_source


def residual() -> Any:
    """Two residual blocks behind a strided convolution, with a classifier (He et al. 2016)."""
    rng, bb = np.random.default_rng(0), BlockBuilder()
    x = Var("x", TensorStructInfo((1, 3, 12, 12), "float32"))

    def weights(*shape: int) -> Any:
        return const((rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype("float32"))

    def conv(y: Any, channels: int, size: int, stride: int) -> Any:
        given = int(y.struct_info.extents[1])
        made = op.nn.conv2d(y, weights(channels, given, size, size), stride, size // 2)
        return bb.emit(op.add(made, const(rng.standard_normal((1, channels, 1, 1)).astype("float32"))))

    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(op.nn.max_pool2d(op.nn.relu(conv(x, 16, 3, 2)), 3, 2, 1))
            for channels, stride in ((16, 1), (32, 2)):
                short = y if channels == 16 else conv(y, channels, 1, stride)
                inner = conv(bb.emit(op.nn.relu(conv(y, channels, 3, stride))), channels, 3, 1)
                y = bb.emit(op.nn.relu(op.add(inner, short)))
            scores = op.matmul(op.mean(y, [2, 3]), weights(32, 10))
            out = bb.emit_output(op.nn.softmax(scores))
        bb.emit_func_output(out)
    return bb.get()


NETWORKS: dict[str, Callable[[], Any]] = {"residual": residual, "bert": lambda: bert_layer(tokens=12, width=32, heads=2, layers=2)}
# Rounding to so many bits, some twenty times one after the other; sums of half precision round as often as they have terms.
BOUNDS = {("bfloat16", "float32"): 2**-8 * 8, ("bfloat16", "bfloat16"): 2**-8 * 32, ("float16", "float32"): 2**-11 * 8}


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize(("dtype", "sums"), BOUNDS)
def test_kernels_are_near_float32(network: str, dtype: str, sums: str) -> None:
    mod = NETWORKS[network]()
    made: Any = transform.ToMixedPrecision(sums, dtype=dtype)(mod)
    products = [b.value for b in made["main"].body.bindings() if str(getattr(b.value, "op", "")) in ("relax.matmul", "relax.nn.conv2d")]
    assert products
    assert {arg.struct_info.dtype for call in products for arg in call.args} == {dtype}
    assert {call.struct_info.dtype for call in products} == {sums}
    rng = np.random.default_rng(1)
    given = [rng.standard_normal([int(n) for n in param.struct_info.extents]).astype("float32") for param in mod["main"].params]
    expected = Evaluator(mod)("main", *given)
    got = relax.VirtualMachine(relax.build(made, "llvm"), tvm.cpu())["main"](*given).numpy()
    assert got.dtype == np.float32
    error = np.abs(got - expected).max() / np.abs(expected).max()
    assert 0 < error <= BOUNDS[dtype, sums]  # what is equal was computed in float32


BRANCHES = """
@I.ir_module
class Module:
    @R.function
    def main(
        c: R.Tensor((), "bool"), x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")
    ) -> R.Tensor((4, 4), "float32"):
        if c:
            p = R.matmul(x, y)
            z = R.exp(p)
        else:
            q = R.matmul(y, x)
            z = R.tanh(q)
        with R.dataflow():
            a = R.matmul(x, z)
            b = R.exp(a)
            R.output(b)
        with R.dataflow():
            d = R.matmul(b, x)
            R.output(d)
        return d
"""


@pytest.mark.parametrize("condition", [True, False])
def test_what_is_cast_in_a_branch_or_a_block_stays_there(condition: bool) -> None:
    mod: Any = from_source(BRANCHES)
    made: Any = transform.ToMixedPrecision()(mod)
    assert relax.analysis.well_formed(made)
    rng = np.random.default_rng(2)
    x, y = (rng.standard_normal((4, 4)).astype("float32") * 0.3 for _ in range(2))
    given = [np.array(condition), x, y]
    np.testing.assert_allclose(Evaluator(made)("main", *given), Evaluator(mod)("main", *given), rtol=0.03, atol=0.03)
