"""Each operator by itself on random operands: what its rule says of the result is so, and its kernel agrees with NumPy's meaning.

Shapes have extents from 0, which are numbers or symbols; elements are of any dtype that the operator takes, NaN and infinities among them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tensorexpr import relax
from tensorexpr.relax import BlockBuilder, TensorStructInfo, Var, op
from tensorexpr.relax.evaluator import Evaluator, matched
from tensorexpr.relax.ops import activation, pool
from tensorexpr.relax.ops.row import ROWS
from tensorexpr.script import from_source
from tensorexpr.tir.expr import Var as Symbol
from tensorexpr.tir.structural import structural_equal

from . import operator_cases
from .operator_draws import CASES, Draw

assert operator_cases  # its import fills the table


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_a_pair_with_nan_is_nan(name: str) -> None:
    x = np.array([np.nan, 1, np.nan, 2, np.inf], "float32")
    y = np.array([1, np.nan, np.nan, 3, np.nan], "float32")
    bb = BlockBuilder()
    params = [Var(one, TensorStructInfo((5,))) for one in "xy"]
    with bb.function("main", params):
        bb.emit_func_output([bb.emit(getattr(op, name)(*params)), bb.emit(getattr(op, name)(params[0], 0.0)), bb.emit(op.sign(params[0]))])
    found = relax.VirtualMachine(relax.build(bb.get()))["main"](x, y)
    same(numpy_of(found), (getattr(np, name)(x, y), getattr(np, name)(x, np.float32(0)), np.sign(x)))


NAN_CASES: dict[str, tuple[Any, tuple[int, ...]]] = {
    "max of rows": (lambda x: op.max(x, 1), (7, 100)),
    "min of rows": (lambda x: op.min(x, -1), (7, 100)),
    "max of columns": (lambda x: op.max(x, 0), (37, 40)),
    "min of all": (op.min, (1000,)),
    "max_pool2d": (lambda x: op.nn.max_pool2d(x, (3, 3), (2, 2), (1, 1)), (1, 2, 15, 15)),
    "max_pool2d of pixels last": (lambda x: op.nn.max_pool2d(x, (3, 3), (2, 2), (1, 1), layout="NHWC"), (1, 15, 15, 16)),
    "adaptive_max_pool2d": (lambda x: op.nn.adaptive_max_pool2d(x, (4, 4)), (1, 2, 15, 15)),
    "max_pool_with_places": (lambda x: pool.max_pool_with_places(x, (3, 3), (2, 2), (1, 1)), (1, 2, 15, 15)),
    "relu": (op.nn.relu, (100,)),
    "clip": (lambda x: op.clip(x, 0, 6), (100,)),
    "clip by crossed bounds": (lambda x: op.clip(x, 3, 1), (100,)),
    "relu6": (activation.relu6, (100,)),
    "hard_sigmoid": (activation.hard_sigmoid, (100,)),
    "elu": (activation.elu, (100,)),
    "silu": (op.nn.silu, (100,)),
}


@pytest.mark.parametrize("name", NAN_CASES)
def test_kernels_keep_nan_and_infinities_as_numpy_does(name: str) -> None:
    make, shape = NAN_CASES[name]
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape, np.float32)
    # NaN at the ends too: which operand is the running value decides what one comparison makes of it.
    x.flat[[0, x.size - 1, *rng.integers(0, x.size, 5)]] = np.nan
    x.flat[rng.integers(1, x.size - 1, 5)] = -np.inf
    bb, given_x = BlockBuilder(), Var("x", TensorStructInfo(shape))
    with bb.function("main", [given_x]):
        bb.emit_func_output(bb.emit(make(given_x)))
    mod = bb.get()
    expected = Evaluator(mod)("main", x)
    assert np.isnan(np.asarray(expected[0] if isinstance(expected, (tuple, list)) else expected)).any()
    same(numpy_of(relax.VirtualMachine(relax.build(mod))["main"](x)), expected)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint64"])
def test_powers_of_integers_are_exact(dtype: str) -> None:
    """3^39 has 62 bits, more than any float; exponents below 0 give whole numbers of 1 and -1 alone."""
    bits, low = np.iinfo(dtype).bits, max(np.iinfo(dtype).min, -3)
    base, exponent = (x.ravel().astype(dtype) for x in np.meshgrid(np.arange(low, 4), np.arange(low, bits)))
    bb, params = BlockBuilder(), [Var(one, TensorStructInfo(base.shape, dtype)) for one in "xy"]
    with bb.function("main", params):
        bb.emit_func_output(bb.emit(op.power(*params)))
    whole = [int(b) ** int(e) if e >= 0 else int(b) ** int(-e) if abs(int(b)) == 1 else 0 for b, e in zip(base, exponent, strict=True)]
    expected = np.array([one % 2**bits for one in whole], np.uint64).astype(f"uint{bits}").view(dtype)
    same(Evaluator(bb.get())("main", base, exponent), expected)
    same(numpy_of(relax.VirtualMachine(relax.build(bb.get()))["main"](base, exponent)), expected)


def test_a_window_of_minus_infinities_is_minus_infinity() -> None:
    bb, x = BlockBuilder(), Var("x", TensorStructInfo((1, 1, 4, 4)))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(op.nn.max_pool2d(x, (2, 2), (2, 2), (1, 1))))
    found = relax.VirtualMachine(relax.build(bb.get()))["main"](np.full((1, 1, 4, 4), -np.inf, "float32"))
    assert (found.numpy() == -np.inf).all()


def same(found: Any, expected: Any) -> None:
    if isinstance(expected, (tuple, list)):
        for one, other in zip(found, expected, strict=True):
            same(one, other)
        return
    if not hasattr(expected, "dtype"):
        assert found == expected
        return
    assert found.dtype == expected.dtype and found.shape == expected.shape
    if found.dtype == object:
        assert found.tolist() == expected.tolist()
        return
    kind = str(expected.dtype)
    rtol = {"float64": 1e-9, "float16": 4e-3, "bfloat16": 2e-2}.get(kind, 1e-4)
    if "float" in kind:
        found, expected = found.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol / 10)


def numpy_of(value: Any) -> Any:
    return [numpy_of(one) for one in value] if isinstance(value, (tuple, list)) else value.numpy() if hasattr(value, "numpy") else value


@pytest.mark.parametrize("name", CASES)
def test_operator(name: str) -> None:
    @st.composite
    def drawn(draw: st.DrawFn) -> tuple[Any, list[Any], Any]:
        d = Draw(draw, name)
        call = CASES[name](d)
        bb = BlockBuilder()
        with bb.function("main", d.params):
            bb.emit_func_output(bb.emit(call))
        return bb.get(), d.arrays, call

    @settings(deadline=None, derandomize=True, max_examples=3, phases=[Phase.generate])
    @given(drawn())
    def check(case: tuple[Any, list[Any], Any]) -> None:
        mod, arrays, call = case
        assert str(call.op) in (f"relax.{name}", f"relax.{name.removesuffix('_like')}")
        text = mod.script()
        # Constants stand behind a text, devices and maps of indices have none that is read.
        if "metadata" not in text and not name.endswith(("device", "layout_transform")):
            assert structural_equal(from_source(text), mod)
        with np.errstate(all="ignore"):
            expected = Evaluator(mod)("main", *arrays)
        symbols: dict[Symbol, int] = {}
        for param, array in zip(mod["main"].params, arrays, strict=True):
            matched(array, param.struct_info, symbols, "operand")
        matched(expected, call.struct_info, symbols, name)
        with np.errstate(all="ignore"):
            same(numpy_of(relax.VirtualMachine(relax.build(mod))["main"](*arrays)), expected)

    check()


def test_every_operator_is_drawn() -> None:
    """Those with a meaning of their own and without effects; tests/unit/relax has what networks are made of, and what asks for shapes."""
    meant = {row.name for row in ROWS.values() if row.numpy is not None and row.is_pure}
    elsewhere = {"shape_of", "quantize", "dequantize", "requantize", "narrow_cast"}
    elsewhere |= {"reshaped_extents", "sparse_reshape", "sparse_fill_empty_rows"}  # tests/unit/relay/dynamic_cases.py
    asked = ("ndim", "shape_i", "stride_i", "byte_offset", "elem_offset", "dtype_code", "dtype_bits", "dtype_lanes")
    elsewhere |= {f"inspect.tensor_{name}" for name in asked}  # test_inspection.py has all of them
    elsewhere |= {"memory.view", "memory.ensure_zero_copy"}  # test_memory_views.py
    elsewhere |= {f"adt.{name}" for name in ("make", "matches", "field", "unmatched")}  # tests/unit/relay/test_adt.py
    elsewhere |= {"builtin.stop_lift_params"}  # test_layouts_and_weights.py
    assert {name for name in meant if not name.startswith(("nn.", "image.", "grad."))} - elsewhere - set(CASES) == set()


def test_the_last_part_of_a_split_is_what_is_left() -> None:
    bb, x = BlockBuilder(), Var("x", TensorStructInfo((7,)))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(op.split(x, 3)))
    values = np.arange(7, dtype="float32")
    same(numpy_of(relax.VirtualMachine(relax.build(bb.get()))["main"](values)), (values[:3], values[3:6], values[6:]))
