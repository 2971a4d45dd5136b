"""NumPy references by the names and layouts that programs use agree with the operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr import topi
from tensorexpr.topi import testing
from tests.operators import assert_same, run, values


@pytest.mark.parametrize(
    ("reference", "operator", "data", "kernel"),
    [
        ("conv2d_nchw_python", "conv2d_nchw", (1, 2, 5, 4), (3, 2, 3, 2)),
        ("conv2d_nhwc_python", "conv2d_nhwc", (1, 5, 4, 2), (3, 2, 2, 3)),
        ("conv2d_hwcn_python", "conv2d_hwcn", (5, 4, 2, 1), (3, 2, 2, 3)),
        ("depthwise_conv2d_python_nchw", "depthwise_conv2d_nchw", (1, 2, 5, 4), (2, 2, 3, 2)),
        ("depthwise_conv2d_python_nhwc", "depthwise_conv2d_nhwc", (1, 5, 4, 2), (3, 2, 2, 2)),
    ],
)
def test_convolutions(reference: str, operator: str, data: Any, kernel: Any) -> None:
    x, w = values(*data), values(*kernel)
    wanted = getattr(testing, reference)(x, w, 2, "SAME")
    assert_same(run(lambda a, k: getattr(topi.nn, operator)(a, k, 2, "SAME", 1), x, w), wanted, 1e-4)


def test_others() -> None:
    x, y = values(2, 3, 4), values(2, 5, 4)
    assert_same(run(topi.nn.batch_matmul, x, y), testing.batch_matmul(x, y), 1e-4)
    assert_same(run(lambda t: topi.nn.dilate(t, [1, 2, 3]), x), testing.dilate_python(x, [1, 2, 3]))
    assert_same(run(lambda t: topi.strided_slice(t, [0, 1], [2, 3], [1, 2]), x), testing.strided_slice_python(x, [0, 1], [2, 3], [1, 2]))
    assert_same(testing.dense(x[0], y[0], np.ones(5, "float32"), True, True), np.maximum(x[0] @ y[0].T + 1, 0))
    gamma, beta = values(4), values(4)
    assert_same(run(lambda a, g, b: topi.nn.layer_norm(a, g, b, [-1]), x, gamma, beta), testing.layer_norm_python(x, gamma, beta, -1), 1e-4)
    assert testing.get_injective_schedule("llvm").__name__ == "schedule_injective"
    with pytest.raises(AttributeError, match="no attribute 'conv4d_python'"):
        _ = testing.conv4d_python
