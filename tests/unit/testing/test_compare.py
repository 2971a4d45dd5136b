"""assert_allclose: the name that programs use."""

from __future__ import annotations

import numpy as np
import pytest

import tensorexpr as tvm


def test_close_arrays_pass_and_others_fail() -> None:
    a = np.array([1.0, 2.0], np.float32)
    tvm.testing.assert_allclose(tvm.nd.array(a), a)
    tvm.testing.assert_allclose(a, a + 1e-3, rtol=1e-2)
    with pytest.raises(AssertionError, match="Mismatched elements: 1 / 2"):
        tvm.testing.assert_allclose(a, np.array([1.0, 2.5]))
    with pytest.raises(AssertionError):
        tvm.testing.assert_allclose(a, np.ones((1, 2)))
    with pytest.raises(AssertionError, match="shapes"):
        tvm.testing.assert_allclose(np.ones(3), 1.0)
