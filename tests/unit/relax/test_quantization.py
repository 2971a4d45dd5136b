"""Quantisation after training: ranges, which operators become integers and why others don't, and how near results stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import relax, relay
from tensorexpr.errors import ArgumentError, DeclarationError
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.quantization import quantize
from tensorexpr.relax.quantization.ranges import BINS, Seen, by_entropy, by_extremes, by_percentile, scale_and_zero, weight_scales
from tensorexpr.relax.transform import FakeQuantizationToInteger
from tensorexpr.relay.build_module import bound_graph
from tests.effort import share_of

RNG = np.random.default_rng(3)
FLOATS = st.floats(-1e6, 1e6, width=32)


def weights(*shape: int) -> Any:
    return relay.const(RNG.normal(0, 0.3, shape).astype("float32"))


def network() -> Any:
    """A residual block with a norm, clips at 0 and at 6, a convolution by channel, and a classifier."""
    x = relay.var("x", shape=(1, 8, 9, 9))
    y = relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(x, weights(16, 8, 3, 3), padding=(1, 1)), weights(16)))
    z = relay.clip(relay.nn.conv2d(y, weights(16, 16, 3, 3), padding=(1, 1)), 0, 6)
    z = relay.nn.relu(relay.add(relay.nn.conv2d(z, weights(16, 16, 1, 1)), y))
    z = relay.nn.conv2d(z, weights(16, 1, 3, 3), groups=16)
    out = relay.nn.dense(relay.nn.batch_flatten(relay.nn.global_avg_pool2d(z)), weights(10, 16))
    return bound_graph(tvm.IRModule.from_expr(relay.Function((x,), relay.nn.softmax(out))), None)


SAMPLES = [{"x": RNG.normal(0, 1, (1, 8, 9, 9)).astype("float32")} for _ in range(3)]
NETWORK = network()


def operators(mod: Any) -> list[tuple[str, str]]:
    calls = [binding.value for binding in mod["main"].body.bindings()]
    return [(str(one.op).removeprefix("relax."), one.struct_info.dtype) for one in calls if hasattr(one, "op")]


@pytest.mark.parametrize(("method", "activations", "per_channel"), [("minmax", "uint8", True), ("entropy", "int8", True),
                                                                    ("percentile", "uint8", False)])  # fmt: skip
def test_a_network_on_integers(method: str, activations: str, per_channel: bool) -> None:
    made = quantize(NETWORK, SAMPLES, activations=activations, method=method, per_channel=per_channel)
    assert [site.reason for site in made.sites] == ["", "", "", "each window is of one channel", ""]
    assert "4 of 5 products and convolutions on integers; 3 samples seen" in str(made)
    vm = relax.VirtualMachine(relax.build(made.module, "llvm"))
    for sample in SAMPLES:
        exact, found = (Evaluator(mod)("main", sample["x"]) for mod in (NETWORK, made.module))
        np.testing.assert_allclose(found, exact, atol=0.05)
        np.testing.assert_allclose(vm["main"](sample["x"]).numpy(), found, atol=0.01)


def test_what_runs_is_integer_kernels() -> None:
    """Sums in int32, no clip that bytes do anyway, and bytes where two branches meet."""
    left = operators(FakeQuantizationToInteger()(quantize(NETWORK, SAMPLES).module))
    assert [dtype for name, dtype in left if name == "nn.conv2d"] == ["int32", "int32", "int32", "float32"]
    assert ("matmul", "int32") in left
    assert not {"clip"} & {name for name, _ in left}
    assert sum(name == "nn.relu" for name, _ in left) == 1  # the one behind the sum, which is read as floats


def test_a_norm_goes_into_the_weights_before_they_are_quantised() -> None:
    x = relay.var("x", shape=(1, 4, 5, 5))
    one = relay.const(np.full(6, 0.01, "float32"))
    y = relay.nn.batch_norm(relay.nn.conv2d(x, weights(6, 4, 3, 3)), one, one, one, one)[0]
    mod = bound_graph(tvm.IRModule.from_expr(relay.Function((x,), y)), None)
    data = RNG.normal(0, 1, (1, 4, 5, 5)).astype("float32")
    made = quantize(mod, [{"x": data}])
    assert [name for name, _ in operators(made.module)] == ["quantize", "dequantize", "dequantize", "nn.conv2d", "add"]
    exact = Evaluator(mod)("main", data)
    np.testing.assert_allclose(Evaluator(made.module)("main", data), exact, atol=0.03 * float(np.abs(exact).max()))


def test_what_stays_in_floats() -> None:
    x, y = relay.var("x", shape=(2, 4)), relay.var("y", shape=(4, 4))
    mod = bound_graph(tvm.IRModule.from_expr(relay.Function((x, y), relay.nn.dense(relay.nn.dense(x, weights(4, 4)), y))), None)
    given = {"x": np.ones((2, 4), "float32"), "y": np.ones((4, 4), "float32")}
    assert "in floats: matmul" in str(quantize(mod, [given])) and "the right operand isn't constant" in str(quantize(mod, [given]))
    with pytest.raises(DeclarationError, match="nothing of this network can be quantised: matmul: matmul isn't asked for"):
        quantize(mod, [given], operators=["nn.conv2d"])
    with pytest.raises(DeclarationError, match=r"no operator 'nn\.conv' is quantised; there are .*matmul.*nn\.conv2d"):
        quantize(mod, [given], operators=["matmul", "nn.conv"])
    with pytest.raises(DeclarationError, match="method 'guess': there are minmax, entropy, percentile"):
        quantize(mod, [given], method="guess")
    with pytest.raises(DeclarationError, match="not 101"):
        quantize(mod, [given], method="percentile", percentile=101)
    with pytest.raises(DeclarationError, match="uint8"):
        quantize(mod, [given], activations="int4")
    with pytest.raises(ArgumentError, match="quantize needs samples"):
        quantize(mod, [])
    with pytest.raises(ArgumentError, match="a sample has x; the network takes x, y"):
        quantize(mod, [{"x": given["x"]}])
    with pytest.raises(ArgumentError, match="x has numbers that aren't finite"):
        quantize(mod, [{**given, "x": np.full((2, 4), np.nan, "float32")}])


@given(low=FLOATS, high=FLOATS, dtype=st.sampled_from(["uint8", "int8"]))
@example(low=0.0, high=0.0, dtype="uint8")
@example(low=-1e-44, high=1e-44, dtype="int8")
@example(low=3.0, high=5.0, dtype="uint8")
def test_a_range_with_zero_in_it(low: float, high: float, dtype: str) -> None:
    """Zero is a number of the range, and its ends are within half a step of the last ones."""
    low, high = min(low, high), max(low, high)
    scale, zero = scale_and_zero(low, high, dtype)
    limits = np.iinfo(dtype)
    assert scale > 0 and limits.min <= zero <= limits.max
    assert (limits.min - zero) * scale <= min(low, 0) + 0.51 * scale
    assert (limits.max - zero) * scale >= max(high, 0) - 0.51 * scale


@given(st.integers(0, 2**32 - 1), st.sampled_from([None, 0, 1]))
def test_weights_are_within_half_a_step(seed: int, axis: int | None) -> None:
    values = np.random.default_rng(seed).normal(0, 1, (3, 4, 2)).astype("float32")
    values[1] = 0
    whole, scales = weight_scales(values, axis)
    step = scales.reshape([-1 if n == axis else 1 for n in range(3)])
    assert np.abs(whole.astype("float64") * step - values).max() <= 0.501 * step.max()
    assert scales.shape == (1 if axis is None else values.shape[axis],) and np.abs(whole).max() == 127


def seen(values: Any) -> Seen:
    low, high = float(values.min()), float(values.max())
    return Seen(low, high, np.histogram(values, BINS, (low, high))[0])


def test_ranges_leave_out_what_is_rare() -> None:
    values = np.append(RNG.normal(0, 1, 100_000), [30.0])
    whole, own = seen(values), by_extremes(seen(values))
    assert by_percentile(whole, 100) == own == (values.min(), 30.0)
    low, high = by_percentile(whole, 99.9)
    # 3.29 deviations leave out one in a thousand of a normal distribution; a bin is 0.017.
    assert -3.5 < low < -3.1 and 3.1 < high < 3.5
    low, high = by_entropy(whole)
    assert -8 < low < -2 and 2 < high < 8
    positive = seen(np.abs(values))
    assert by_entropy(positive)[0] < 0.1 and by_percentile(positive, 99.9)[0] == positive.low
    flat = seen(np.linspace(-1, 1, 50_000))
    np.testing.assert_allclose(by_entropy(flat), (-1, 1), atol=0.02)


@settings(max_examples=share_of(30), deadline=None)
@given(low=st.integers(-3, 2), high=st.integers(1, 8), scale=st.sampled_from([0.005, 6 / 255, 0.05]), zero=st.sampled_from([0, 5, 128]))
@example(low=0, high=6, scale=6 / 255, zero=0)
@example(low=0, high=6, scale=6.1 / 255, zero=0)
def test_clips_that_bytes_do_are_left_out(low: int, high: int, scale: float, zero: int) -> None:
    """And no others: the result is the same."""
    x = relax.Var("x", relax.TensorStructInfo((1024,), "float32"))
    bb = relax.BlockBuilder()
    factors = relax.const(np.float32(scale)), relax.const(np.array(zero, "uint8"))
    with bb.function("main", [x]):
        with bb.dataflow():
            data = bb.emit(relax.op.quantize(bb.emit(relax.op.clip(x, low, high)), *factors, -1, "uint8"))
            out = bb.emit_output(relax.op.dequantize(data, *factors, -1))
        bb.emit_func_output(out)
    made = FakeQuantizationToInteger()(bb.get())
    values = np.linspace(-20, 20, 1024).astype("float32")
    np.testing.assert_array_equal(Evaluator(made)("main", values), Evaluator(bb.get())("main", values))
    is_left = "clip" in {name for name, _ in operators(made)}
    assert is_left or (low <= -zero * scale + scale and high >= (255 - zero) * scale - scale)
