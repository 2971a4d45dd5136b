"""Weights that are constants are packed when a graph is built: kernels take them as they read them, and compute the same."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensorexpr import relax
from tensorexpr.relax import op
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.kernel_cache import built_kernels
from tensorexpr.relax.kernel_schedules import kernels_of
from tensorexpr.relax.kernels import Packing, _Packed, constant_arguments
from tensorexpr.relax.transform.pipeline import LAST_GRAPH_PHASE
from tensorexpr.relax.visitor import walk
from tensorexpr.target import Target

RNG = np.random.default_rng(0)
TARGET = "llvm -mcpu=skylake-avx512 -num-cores=2"


def weight(*shape: int) -> Any:
    return relax.const(RNG.uniform(-1, 1, shape).astype("float32"))


def module(make: Callable[..., Any], shape: tuple[int, ...]) -> Any:
    x = relax.Var("x", relax.TensorStructInfo(shape, "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(make(bb.emit, x))
        bb.emit_func_output(out)
    return bb.get()


def constants(mod: Any) -> list[tuple[int, ...]]:
    return [tuple(node.data.shape) for node in walk(mod["main"].body) if isinstance(node, relax.Constant) and node.data.ndim > 1]


def check(mod: Any) -> None:
    """What runs on this machine, and what a module for another one means, is what the operators mean."""
    shape = [extent.value for extent in mod["main"].params[0].struct_info.shape.values]
    x = RNG.uniform(-1, 1, shape).astype("float32")
    wanted = Evaluator(mod)("main", x)
    np.testing.assert_allclose(relax.VirtualMachine(relax.build(mod))["main"](x).numpy(), wanted, rtol=1e-4, atol=1e-4)
    packed = relax.build(mod, TARGET, upto=4)
    np.testing.assert_allclose(Evaluator(packed)("main", x), wanted, rtol=1e-4, atol=1e-4)


def test_the_weights_of_a_product_and_its_epilogue() -> None:
    w, b = weight(40, 70), weight(70)
    mod = module(lambda e, x: e(op.nn.relu(e(e(op.add(e(op.matmul(x, w)), b)) * 2.0))), (33, 40))
    assert all(shape != (40, 70) for shape in constants(relax.build(mod, TARGET, upto=4)))
    check(mod)


def test_the_weights_of_a_convolution_with_channels_that_no_panel_divides() -> None:
    w, b = weight(40, 20, 3, 3), weight(1, 40, 1, 1)
    mod = module(lambda e, x: e(op.nn.relu(e(op.add(e(op.nn.conv2d(x, w, padding=1)), b)))), (1, 20, 14, 14))
    assert all(shape != (40, 20, 3, 3) for shape in constants(relax.build(mod, TARGET, upto=4)))
    check(mod)


def test_a_residual_beside_the_product_keeps_its_weights_packed() -> None:
    w, b = weight(128, 128), weight(128)
    mod = module(lambda e, x: e(op.add(e(op.add(e(op.matmul(x, w)), b)), x)), (32, 128))
    assert (128, 128) not in constants(relax.build(mod, TARGET, upto=4))
    check(mod)


def test_weights_that_one_call_computes_stay_as_they_are() -> None:
    w = weight(8, 8)
    mod = module(lambda e, x: e(op.matmul(e(op.matmul(x, w)), x)), (8, 8))
    legal = relax.transform.LegalizeOps()(mod)
    assert constant_arguments(legal) == {"matmul": ()}
    check(mod)


def test_functions_that_others_may_call_take_what_they_say() -> None:
    w = weight(64, 64)
    legal = relax.transform.LegalizeOps()(module(lambda e, x: e(op.matmul(x, w)), (64, 64)))
    assert constant_arguments(legal) == {"matmul": (1,)}
    legal.update_func("matmul", legal["matmul"].with_attr("global_symbol", "matmul"))
    assert constant_arguments(legal) == {"matmul": ()}


def test_a_panel_of_weights_lies_together() -> None:
    """Its rows a whole width of the weights apart, each line of a panel would come from a page of its own."""
    w = weight(256, 64, 1, 1)
    packed = relax.build(module(lambda e, x: e(op.nn.conv2d(x, w)), (1, 64, 14, 14)), TARGET, upto=4)
    (shape,) = [one for one in constants(packed) if len(one) > 2]
    assert shape[0] > 1  # panels
    assert 64 in shape[1:]  # sums inside of these


def test_weights_that_are_packed_are_let_go_of_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the packing has them then: the largest first, so that the others have room where it was."""
    weights = [weight(40, 70), weight(70, 50), weight(50, 40)]
    given = [weakref.ref(one.data) for one in weights]
    sizes = [one.data.shape for one in weights]
    mod = module(lambda e, x: e(op.matmul(e(op.matmul(e(op.matmul(x, weights[0])), weights[1])), weights[2])), (33, 40))
    mod = relax.build(mod, TARGET, upto=LAST_GRAPH_PHASE)
    packing = Packing({name: one.layouts for name, one in kernels_of(mod, Target(TARGET)).items()})
    mod = packing.placed(mod)
    weights.clear()
    gc.collect()  # builders hold each other
    assert all(one() is None for one in given)  # the arrays alone are left, without what the graph had around them
    waiting = {one.given.shape: weakref.ref(one.given) for one in packing._waiting}
    assert set(waiting) == set(sizes)
    left: list[int] = []
    fill = _Packed.fill

    def counted(one: Any) -> None:
        left.append(sum(ref() is not None for ref in waiting.values()))
        fill(one)

    monkeypatch.setattr(_Packed, "fill", counted)
    packing.fill()
    assert left == [3, 2, 1]
    assert all(ref() is None for ref in waiting.values())
    assert len(constants(mod)) == 3


@pytest.mark.skipif(sys.version_info < (3, 11), reason="until Python 3.11 a caller keeps the arguments of a call until it returns")
def test_a_build_lets_go_of_weights_that_others_are_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def made() -> Any:
        w = weight(32, 24)
        given.append(weakref.ref(w.data))
        return module(lambda e, x: e(e(op.matmul(x, w)) * 2.0), (8, 32))

    seen: list[bool] = []

    def built(mod: Any, *args: Any) -> Any:
        seen.append(given[0]() is None)
        return built_kernels(mod, *args)

    monkeypatch.setattr(sys.modules["tensorexpr.relax.build"], "built_kernels", built)
    relax.build(made())
    assert seen == [True]
    kept = made()
    relax.build(kept)
    # What somebody else has stays.
    assert given[1]() is not None
