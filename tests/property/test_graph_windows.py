"""Convolutions, pools, borders and resizes with random attributes, each alone: the machine agrees with the evaluator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr import relax
from tensorexpr.relax import BlockBuilder, TensorStructInfo, Var, op
from tensorexpr.relax.evaluator import Evaluator
from tests.effort import share_of

Case = tuple[Callable[..., Any], list[Any]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rank = draw(st.integers(1, 2))
    rng = np.random.default_rng(draw(st.integers(0, 100)))
    few = st.integers(1, 3)
    numbers = st.lists(few, min_size=rank, max_size=rank)
    size, strides, dilation = draw(numbers), draw(numbers), draw(numbers)
    padding = draw(st.lists(st.integers(0, 2), min_size=2 * rank, max_size=2 * rank))
    plane = [draw(st.integers((k - 1) * d + 1, 9)) for k, d in zip(size, dilation, strict=True)]
    groups, share = draw(few), draw(few)
    x = rng.integers(-4, 5, (2, groups * share, *plane)).astype(draw(st.sampled_from(["float32", "float64", "int32"])))
    letters = "W" if rank == 1 else "HW"
    kind = draw(st.sampled_from(["conv", "transpose", "max", "avg", "pad", "resize"]))
    if kind in ("conv", "transpose"):
        outputs = draw(few)
        weights = (groups * outputs, share) if kind == "conv" else (groups * share, outputs)
        w = rng.integers(-3, 4, (*weights, *size)).astype(x.dtype)
        name = f"conv{rank}d{'' if kind == 'conv' else '_transpose'}"
        attrs = {"strides": strides, "dilation": dilation, "groups": groups, "out_layout": f"N{letters}C"}
        reach = [(k - 1) * d for k, d in zip(size * 2, dilation * 2, strict=True)]
        pads = padding if kind == "conv" else [min(one, r) for one, r in zip(padding, reach, strict=True)]
        if kind == "transpose" and any(
            (n - 1) * s + r + 1 - pads[i] - pads[i + rank] < 1 for i, (n, s, r) in enumerate(zip(plane, strides, reach, strict=False))
        ):
            pads = [0] * 2 * rank
        return lambda a, b: getattr(op.nn, name)(a, b, padding=pads, **attrs), [x, w]
    if kind in ("max", "avg"):
        pads = [min(one, k - 1) for one, k in zip(padding, size * 2, strict=True)]
        options = draw(st.booleans()), draw(st.booleans())
        x = x.astype("float32")
        return lambda a: getattr(op.nn, f"{kind}_pool{rank}d")(a, size, strides, pads, dilation, *options), [x]
    if kind == "pad":
        width = draw(st.lists(st.integers(-1, 4), min_size=4 + 2 * rank, max_size=4 + 2 * rank))
        mode = draw(st.sampled_from(["constant", "reflect", "edge", "circular"]))
        width = [max(0, one) if n < 4 or plane[n // 2 - 2] < 3 else one for n, one in enumerate(width)]
        return lambda a: op.nn.pad(a, width, 3, mode), [x]
    method = draw(st.sampled_from(["nearest_neighbor", "linear", "cubic"]))
    mode = draw(st.sampled_from(["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric"]))
    target = [draw(st.integers(1, 12)) for _ in plane]
    smooth = method != "nearest_neighbor" and draw(st.booleans())
    axes = list(range(2, 2 + rank))
    return lambda a: op.image.resize(a, target, axes, method, mode, antialias=smooth), [x.astype("float32")]


@settings(deadline=None, derandomize=True, max_examples=share_of(30))
@given(cases())
def test_the_machine_agrees_with_the_evaluator(case: Case) -> None:
    make, arrays = case
    params = [Var(f"p{n}", TensorStructInfo(one.shape, str(one.dtype))) for n, one in enumerate(arrays)]
    bb = BlockBuilder()
    with bb.function("main", params):
        bb.emit_func_output(bb.emit(make(*params)))
    mod = bb.get()
    expected = Evaluator(mod)("main", *arrays)
    found = relax.VirtualMachine(relax.build(mod))["main"](*arrays).numpy()
    assert found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
