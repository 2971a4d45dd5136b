"""Quantised graphs as integer kernels: which operators are left, that numbers are those of the standard, and where they may differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relax
from tensorexpr.errors import DeclarationError
from tensorexpr.relax import BlockBuilder, TensorStructInfo, Var, const, op, transform
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.ops.integer_products import integer_conv, integer_matmul

Array = Any
RNG = np.random.default_rng(7)


def module(make: Callable[..., Any], *given: tuple[Sequence[int], str]) -> Any:
    """A module whose "main" is what `make` returns for tensors of these shapes and dtypes."""
    params = [Var(f"x{n}", TensorStructInfo(shape, dtype)) for n, (shape, dtype) in enumerate(given)]
    bb = BlockBuilder()
    with bb.function("main", params):
        with bb.dataflow():
            out = bb.emit_output(bb.normalize(make(*params)))
        bb.emit_func_output(out)
    return bb.get()


def left(mod: Any) -> str:
    """The operators of a function, in order."""
    values = [binding.value for binding in mod["main"].body.bindings()]
    return " ".join(str(value.op).removeprefix("relax.").removeprefix("nn.") for value in values if hasattr(value, "op"))


def integers(shape: Sequence[int], dtype: str, rng: Any = RNG) -> Array:
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max + 1, tuple(shape)).astype(dtype)


def arguments(mod: Any, seed: int = 0) -> list[Array]:
    rng, found = np.random.default_rng(seed), []
    for param in mod["main"].params:
        info: Any = param.struct_info
        shape = [int(extent.value) for extent in info.extents]
        found.append(rng.normal(0, 2, shape).astype("float32") if info.dtype == "float32" else integers(shape, info.dtype, rng))
    return found


def scalar(value: float, dtype: str) -> Any:
    return const(np.array(value, dtype))


def q(x: Any, scale: float = 0.05, zero: int = 120, dtype: str = "uint8") -> Any:
    return op.quantize(x, scalar(scale, "float32"), scalar(zero, dtype), 1, dtype)


def dq(x: Any, scale: float = 0.05, zero: int = 120) -> Any:
    return op.dequantize(x, scalar(scale, "float32"), scalar(zero, x.struct_info.dtype), 1)


def weights(*shape: int, axis: int, dtype: str = "int8", zero: int = 0, seed: int = 1) -> Any:
    """Dequantised weights with a scale for each element of an axis."""
    rng = np.random.default_rng(seed)
    scale, zeros = rng.uniform(0.01, 0.02, shape[axis]).astype("float32"), np.full(shape[axis], zero, dtype)
    return op.dequantize(const(integers(shape, dtype, rng)), const(scale), const(zeros), axis)


def bias(count: int, of: Any, x_scale: float = 0.05) -> Any:
    """A bias as exporters write it: integers by the scale of the sums."""
    scale = of.args[1].data.numpy() * np.float32(x_scale)
    return op.dequantize(const(RNG.integers(-2000, 2000, count).astype("int32")), const(scale), const(np.zeros(count, "int32")), 0)


W, WC = weights(24, 40, axis=1), weights(16, 6, 3, 3, axis=0)
U8 = "uint8"
IMAGE = (1, 6, 9, 8)

CASES: dict[str, tuple[Callable[..., Any], Sequence[tuple[Sequence[int], str]], str]] = {
    "product": (lambda x: q(op.matmul(dq(x), W)), [((5, 24), U8)], "matmul subtract requantize"),
    "of signed bytes": (
        lambda x: q(op.matmul(dq(x, 0.05, 3), W)),
        [((5, 24), "int8")],
        "astype add astype matmul subtract requantize",
    ),
    "without a zero": (lambda x: q(op.matmul(dq(x, 0.05, 0), W)), [((5, 24), U8)], "matmul requantize"),
    "bias": (lambda x: q(op.matmul(dq(x), W) + bias(40, W)), [((5, 24), U8)], "matmul add requantize"),
    "a bias of floats": (
        lambda x: q(op.matmul(dq(x), W) + const(np.linspace(0.1, 0.7, 40).astype("float32"))),
        [((5, 24), U8)],
        "matmul subtract dequantize add quantize",
    ),
    "floats behind": (lambda x: op.nn.gelu(op.matmul(dq(x), W)), [((5, 24), U8)], "matmul subtract dequantize gelu"),
    "relu": (lambda x: q(op.nn.relu(op.matmul(dq(x), W)), 0.05, 0), [((5, 24), U8)], "matmul subtract requantize"),
    "weights of unsigned bytes": (
        lambda x: q(op.matmul(dq(x), weights(24, 40, axis=1, dtype=U8, zero=128))),
        [((5, 24), U8)],
        "matmul subtract requantize",
    ),
    "transposed weights": (
        lambda x: q(op.matmul(dq(x), op.permute_dims(weights(40, 24, axis=0)))),
        [((5, 24), U8)],
        "matmul subtract requantize",
    ),
    "both computed": (
        lambda x, y: q(op.matmul(dq(x), dq(q(y)))),
        [((2, 5, 24), U8), ((2, 24, 7), "float32")],
        "quantize matmul astype sum subtract multiply subtract astype sum multiply subtract requantize",
    ),
    "conv": (lambda x: q(op.nn.conv2d(dq(x), WC, 1, 1)), [(IMAGE, U8)], "pad conv2d subtract requantize"),
    "conv, bias and relu": (
        lambda x: q(op.nn.relu(op.nn.conv2d(dq(x), WC, 2, 1) + op.reshape(bias(16, WC), (1, 16, 1, 1))), 0.1, 0),
        [(IMAGE, U8)],
        "pad conv2d add requantize",
    ),
    "conv with groups": (
        lambda x: q(op.nn.conv2d(dq(x, 0.05, 0), weights(8, 3, 1, 1, axis=0), groups=2)),
        [(IMAGE, U8)],
        "conv2d requantize",
    ),
    "windows of one channel stay floats": (
        lambda x: q(op.nn.conv2d(dq(x), weights(6, 1, 3, 3, axis=0), groups=6)),
        [(IMAGE, U8)],
        "dequantize conv2d quantize",
    ),
    "a sum of two": (
        lambda x, y: q(op.add(dq(x), dq(y, 0.1, 7)), 0.2, 9),
        [(IMAGE, U8), (IMAGE, U8)],
        "dequantize dequantize add quantize",
    ),
    "moves": (lambda x: q(op.permute_dims(op.reshape(dq(x), (6, 72)))), [(IMAGE, U8)], "reshape permute_dims"),
    "pool": (lambda x: q(op.nn.max_pool2d(dq(x), 3, 2, 1)), [(IMAGE, U8)], "max_pool2d"),
    "concat": (
        lambda x, y: q(op.concat([dq(x), dq(y, 0.1, 7)], 1)),
        [(IMAGE, U8), (IMAGE, U8)],
        "dequantize quantize concat",
    ),
    "the same again": (lambda x: dq(q(dq(x))), [(IMAGE, U8)], "dequantize"),
    "another scale": (lambda x: q(dq(x), 0.1), [(IMAGE, U8)], "dequantize quantize"),
    "behind moves": (
        lambda x: q(op.matmul(op.reshape(op.permute_dims(dq(x), [1, 0, 2]), (6, 24)), W)),
        [((3, 6, 8), U8)],
        "permute_dims reshape matmul subtract requantize",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_left(name: str) -> None:
    make, given, expected = CASES[name]
    mod = module(make, *given)
    made = transform.FoldConstant()(transform.FakeQuantizationToInteger()(mod))
    assert left(made) == expected
    args = arguments(mod)
    before, after = Evaluator(mod)("main", *args), Evaluator(made)("main", *args)
    assert after.dtype == before.dtype
    assert after.shape == before.shape
    if before.dtype == np.float32:
        np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-5)
    else:
        assert np.abs(after.astype(int) - before.astype(int)).max() <= 1
        assert (after != before).mean() <= 0.01


@pytest.mark.parametrize("name", CASES)
def test_kernels_are_what_the_evaluator_says(name: str) -> None:
    make, given, _ = CASES[name]
    mod = module(make, *given)
    executable = relax.build(mod, "llvm")
    args = arguments(mod, 1)
    got = relax.VirtualMachine(executable, tvm.cpu())["main"](*args).numpy()
    expected = Evaluator(transform.FakeQuantizationToInteger()(mod))("main", *args)
    if got.dtype == np.float32:
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    else:
        # Sums of floats are fused with products where the CPU can, which rounds once where the evaluator does twice.
        assert np.abs(got.astype(int) - expected.astype(int)).max() <= (1 if name in ("a bias of floats", "a sum of two") else 0)


def exact(value: Array, scale: Any, zero: Any, dtype: str) -> Array:
    """Quantised without any rounding but the last one, by fractions of float64."""
    limits = np.iinfo(dtype)
    return np.clip(np.rint(value / scale) + zero, limits.min, limits.max)


@pytest.mark.parametrize("seed", range(24))
def test_products_are_off_by_a_step_next_to_halves_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, k, n = (int(one) for one in rng.integers(1, 40, 3))
    x_dtype, w_dtype, y_dtype = rng.choice(["int8", U8], 3)
    x_zero, y_zero = (int(integers((), dtype, rng)) for dtype in (x_dtype, y_dtype))
    w_zero = int(integers((), w_dtype, rng)) if seed % 3 else 0
    x_scale, y_scale = (float(one) for one in rng.uniform(0.01, 0.3, 2).astype("float32"))
    w, w_scale = integers((k, n), w_dtype, rng), rng.uniform(0.001, 0.02, n if seed % 2 else 1).astype("float32")
    zeros = np.full(w_scale.shape, w_zero, w_dtype)
    mod = module(
        lambda x: q(op.matmul(dq(x, x_scale, x_zero), op.dequantize(const(w), const(w_scale), const(zeros), 1)), y_scale, y_zero, y_dtype),
        ((m, k), x_dtype),
    )
    made = transform.FakeQuantizationToInteger()(mod)
    assert "matmul" in left(made)
    assert "requantize" in left(made)
    x = integers((m, k), x_dtype, rng)
    got = Evaluator(made)("main", x).astype(int)
    value = ((x.astype(int) - x_zero) @ (w.astype(int) - w_zero)) * (np.float64(np.float32(x_scale)) * w_scale.astype(np.float64))
    steps = value / np.float64(np.float32(y_scale))
    off = got != exact(value, np.float64(np.float32(y_scale)), y_zero, y_dtype)
    assert np.abs(got - exact(value, np.float64(np.float32(y_scale)), y_zero, y_dtype)).max() <= 1
    # Three roundings to 24 bits: of the product of scales, of their quotient, and of the scaled sum.
    assert (np.abs(np.abs(steps - np.floor(steps)) - 0.5)[off] <= 4 * 2.0**-24 * np.abs(steps[off])).all()


@pytest.mark.parametrize("left_dtype", ["int8", U8])
@pytest.mark.parametrize("right_dtype", ["int8", U8])
def test_sums_are_exact(left_dtype: str, right_dtype: str) -> None:
    a, b = integers((2, 5, 13), left_dtype), integers((2, 13, 6), right_dtype)
    zeros = {
        "none": (None, None),
        "numbers": (integers((), left_dtype), integers((), right_dtype)),
        "rows and columns": (integers((5,), left_dtype), integers((6,), right_dtype)),
        "of each matrix": (integers((2, 5, 1), left_dtype), integers((2, 1, 6), right_dtype)),
    }
    for p, r in zeros.values():
        column = 0 if p is None else p.astype(int).reshape(-1, 1) if p.ndim == 1 else p.astype(int)
        expected = (a.astype(int) - column) @ (b.astype(int) - (0 if r is None else r.astype(int)))
        for known in (True, False):
            given = [one for one in (p, r) if one is not None and not known]

            def product(x: Any, y: Any, *zeros: Any, known: bool = known, p: Any = p, r: Any = r) -> Any:
                first, second = zeros or (None if one is None else const(one) for one in (p, r))
                return integer_matmul(x, y, first, second)

            mod = module(product, (a.shape, left_dtype), (b.shape, right_dtype), *((one.shape, str(one.dtype)) for one in given))
            np.testing.assert_array_equal(Evaluator(mod)("main", a, b, *given), expected)


@pytest.mark.parametrize("data_dtype", ["int8", U8])
@pytest.mark.parametrize("weight_dtype", ["int8", U8])
@pytest.mark.parametrize("zeros", [(None, None), (3, None), (5, 128), (100, 7)])
def test_windows_see_zeros_around(data_dtype: str, weight_dtype: str, zeros: tuple[int | None, int | None]) -> None:
    x, w = integers((1, 4, 6, 5), data_dtype), integers((6, 2, 3, 3), weight_dtype)
    p, r = (
        None if one is None else np.array(min(one, np.iinfo(dtype).max), dtype)
        for one, dtype in zip(zeros, (data_dtype, weight_dtype), strict=True)
    )
    attrs = {"strides": [2, 1], "padding": [1, 0, 2, 1], "dilation": [1, 1], "groups": 2}
    mod = module(
        lambda a, b: integer_conv(a, b, attrs, None if p is None else const(p), None if r is None else const(r)),
        (x.shape, data_dtype),
        (w.shape, weight_dtype),
    )
    plain = module(lambda a, b: op.nn.conv2d(a, b, **attrs), (x.shape, "int32"), (w.shape, "int32"))
    expected = Evaluator(plain)("main", x.astype("int32") - (0 if p is None else int(p)), w.astype("int32") - (0 if r is None else int(r)))
    np.testing.assert_array_equal(Evaluator(mod)("main", x, w), expected)


def test_sums_that_32_bits_may_not_hold_stay_floats() -> None:
    mod = module(lambda x: op.matmul(dq(x), weights(200000, 1, axis=1)), ((1, 200000), U8))
    assert "int32" not in transform.FakeQuantizationToInteger()(mod).script()


def test_biases_that_sums_of_32_bits_may_not_hold_stay_floats() -> None:
    mod = module(
        lambda x: op.dequantize(x, scalar(0.5, "float32"), scalar(0, "int32"), 1) + const(np.full(4, 100, "float32")), ((2, 4), "int32")
    )
    x = np.full((2, 4), 2**31 - 100, "int32")
    made = transform.FakeQuantizationToInteger()(mod)
    np.testing.assert_allclose(Evaluator(made)("main", x), Evaluator(mod)("main", x))


def test_a_graph_without_quantisation_stays_as_it_is() -> None:
    mod = module(lambda x: op.permute_dims(op.reshape(op.nn.relu(x), (4, 6))), ((2, 12), "float32"))
    made = transform.FakeQuantizationToInteger()(mod)
    assert made["main"] is mod["main"]


def test_results_of_requantisation_are_integers() -> None:
    x = Var("x", TensorStructInfo((2,), "int32"))
    with pytest.raises(DeclarationError, match="results are integers, not float32"):
        op.requantize(x, scalar(1, "float32"), scalar(0, "int32"), out_dtype="float32")


def test_halves_go_to_even_numbers_and_ends_saturate() -> None:
    x = np.array([-3, -1, 1, 3, 5, 4000, -4000], "int32")
    mod = module(lambda a: op.requantize(a, scalar(0.5, "float32"), scalar(1, "int8")), (x.shape, "int32"))
    expected = [-1, 1, 1, 3, 3, 127, -128]
    assert Evaluator(mod)("main", x).tolist() == expected
    assert relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())["main"](x).numpy().tolist() == expected


@pytest.mark.parametrize(("dtype", "zeros"), [("int8", (-128, 0, 5, 127)), ("uint8", (0, 7, 255)), ("int16", (-32768, 9, 32767))])
def test_ends_and_halves_whatever_stands_for_zero(dtype: str, zeros: Sequence[int]) -> None:
    """Numbers far outside, and those next to both ends, of sums and of floats."""
    sums = np.array([*range(-9, 10), *(sign * (span + n) for sign in (-1, 1) for span in (510, 131070) for n in range(-3, 4))], "int32")
    sums = np.concatenate([sums, np.array([2**31 - 1, -(2**31)], "int32")])
    floats = np.concatenate([sums * np.float32(0.5), np.array([np.inf, -np.inf, 1e30, -1e30], "float32")]).astype("float32")
    for zero in zeros:
        for x, make in ((sums, op.requantize), (floats, op.quantize)):
            scale = 0.5 if x is sums else 1.0
            mod = module(lambda a, z=zero, m=make, s=scale: m(a, scalar(s, "float32"), scalar(z, dtype), 0, dtype), (x.shape, x.dtype.name))
            limits = np.iinfo(dtype)
            expected = np.clip(np.rint(x.astype("float64") * scale) + zero, limits.min, limits.max).tolist()
            assert Evaluator(mod)("main", x).tolist() == expected
            assert relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())["main"](x).numpy().tolist() == expected
