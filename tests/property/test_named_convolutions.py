"""Convolutions by every name that TVM has for them, under the schedule of the same name, are what their layouts say."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import te, topi
from tensorexpr.topi.testing import conv_python, conv_transpose_python
from tests.effort import share_of

# Name -> layouts of data and weights (those of transposed convolutions have inputs before outputs).
PLAIN = {
    "conv1d_ncw": ("NCW", "OIW"),
    "conv1d_nwc": ("NWC", "WIO"),
    "group_conv1d_ncw": ("NCW", "OIW"),
    "group_conv1d_nwc": ("NWC", "WIO"),
    "conv2d_nchw": ("NCHW", "OIHW"),
    "conv2d_nhwc": ("NHWC", "HWIO"),
    "conv2d_hwcn": ("HWCN", "HWIO"),
    "group_conv2d_nchw": ("NCHW", "OIHW"),
    "group_conv2d_nhwc": ("NHWC", "HWIO"),
    "conv3d_ncdhw": ("NCDHW", "OIDHW"),
    "conv3d_ndhwc": ("NDHWC", "DHWIO"),
}
TRANSPOSED = {
    "conv1d_transpose_ncw": ("NCW", "OIW"),
    "group_conv1d_transpose_ncw": ("NCW", "OIW"),
    "conv2d_transpose_nchw": ("NCHW", "OIHW"),
    "group_conv2d_transpose_nchw": ("NCHW", "OIHW"),
    "conv3d_transpose_ncdhw": ("NCDHW", "OIDHW"),
    "group_conv3d_transpose_ncdhw": ("NCDHW", "OIDHW"),
}
DTYPES = [("float32", "float32"), ("float64", "float64"), ("int8", "int32"), ("float16", "float32"), ("uint8", "int32")]


class Geometry(NamedTuple):
    """Along each axis: extent, taps, stride, paddings at both ends, and the dilation or the padding of the output."""

    extent: int
    taps: int
    stride: int
    low: int
    high: int
    more: int


@st.composite
def geometries(draw: st.DrawFn, name: str) -> list[Geometry]:
    found = []
    for _ in range(int(name[name.index("d") - 1])):
        taps, stride = draw(st.integers(1, 3)), draw(st.integers(1, 3))
        low, high = (draw(st.integers(0, taps - 1)) for _ in range(2))
        more = draw(st.integers(0, stride - 1)) if name in TRANSPOSED else draw(st.integers(1, 2))
        one = Geometry(draw(st.integers(1, 7)), taps, stride, low, high, more)
        left = (one.extent - 1) * stride + taps + more if name in TRANSPOSED else one.extent + 1 - (taps - 1) * more + low + high
        assume(left > (low + high if name in TRANSPOSED else 1))
        found.append(one)
    return found


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, list[Geometry], int, tuple[int, int, int], tuple[str, str]]:
    name = draw(st.sampled_from([*PLAIN, *TRANSPOSED]))
    groups = draw(st.integers(1, 3)) if name.startswith("group") else 1
    sizes = draw(st.tuples(st.integers(1, 2), st.integers(1, 5), st.integers(1, 9)))
    return name, draw(geometries(name)), groups, sizes, draw(st.sampled_from(DTYPES))


def arranged(array: Any, given: str, wanted: str) -> Any:
    """An array of one layout in another one of the same letters."""
    return np.ascontiguousarray(array.transpose([given.index(letter) for letter in wanted]))


@settings(deadline=None, derandomize=True, max_examples=share_of(30))
@given(case=cases())
@example(case=("group_conv2d_nhwc", [Geometry(5, 3, 2, 1, 0, 2), Geometry(4, 1, 1, 0, 0, 1)], 3, (2, 2, 1), ("int8", "int32")))
@example(case=("group_conv3d_transpose_ncdhw", [Geometry(2, 3, 2, 1, 2, 1)] * 3, 2, (1, 3, 2), ("float32", "float32")))
@example(case=("conv2d_hwcn", [Geometry(7, 2, 1, 0, 1, 1)] * 2, 1, (2, 3, 9), ("float16", "float32")))
def test_named_convolutions_are_what_their_layouts_say(case: Any) -> None:
    name, geometry, groups, (batch, inputs, outputs), (dtype, out_dtype) = case
    is_transposed = name in TRANSPOSED
    layout, kernel_layout = {**PLAIN, **TRANSPOSED}[name]
    extents, taps, strides, low, high, more = (list(column) for column in zip(*geometry, strict=True))
    rng, spatial = np.random.default_rng(0), "DHW"[-len(geometry) :]
    shapes = (batch, groups * inputs, *extents), (groups * inputs, outputs, *taps) if is_transposed else (groups * outputs, inputs, *taps)
    data, weight = (rng.integers(0 if dtype == "uint8" else -4, 5, shape).astype(dtype) for shape in shapes)
    pairs = list(zip(low, high, strict=True))
    if is_transposed:
        expected = conv_transpose_python(data, weight, strides, pairs, more, groups)
    else:
        expected = conv_python(data, weight, strides, pairs, more, groups)
        weight = arranged(weight, "OI" + spatial, kernel_layout)
    data = arranged(data, "NC" + spatial, layout)
    x, w = te.placeholder(data.shape, dtype, "x"), te.placeholder(weight.shape, dtype, "w")
    last = [groups] * name.startswith("group")
    padding = [*low, *high]
    if is_transposed:
        out = getattr(topi.nn, name)(x, w, strides, padding, out_dtype, more, *last)
    elif name == "conv3d_ndhwc" or name == "conv3d_ncdhw":
        out = getattr(topi.nn, name)(x, w, strides, padding, more, 1, out_dtype)
    else:
        out = getattr(topi.nn, name)(x, w, strides, padding, more, *last, out_dtype)
    target = tvm.target.Target("llvm -num-cores=1")
    with target:
        s = getattr(topi.generic, f"schedule_{name}")([out])
        func = tvm.build(s, [x, w, out], target)
    found = np.full([int(extent) for extent in out.shape], 77, out_dtype)
    func(data, weight, found)
    np.testing.assert_array_equal(arranged(found, layout, "NC" + spatial), expected.astype(out_dtype))
    assert prod(found.shape) == expected.size
