"""Derivatives beside differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...tir.dtype import parse_dtype, to_numpy
from ..build_module import create_executor
from ..gradient import gradient


def check_grad(
    func: Any, inputs: Sequence[Any] | None = None, test_inputs: Sequence[Any] | None = None, eps: float = 1e-6, atol: float = 1e-5,
    rtol: float = 1e-3, scale: float | None = None, mean: float = 0, mode: str = "higher_order", target_devices: Any = None,
    executor_kind: str = "debug",
) -> None:  # fmt: skip
    """Compare the derivatives of a function with differences of its values.

    Args:
        func: the function, of parameters whose types are stated; best of float64.
        inputs: its arguments; normal numbers if None, as small as the differences, which else were lost in rounding.
        test_inputs: those of them by which is derived; all if None.
        eps: half the distance of two values whose difference is taken.
        atol, rtol: how much derivatives may differ.
        scale, mean: of the normal numbers; ten times `eps` without.
        mode: see `gradient`.
        target_devices: accepted: networks run on the CPU.
        executor_kind: see `create_executor`.

    Raises:
        AssertionError: where they differ.
    """
    rng = np.random.default_rng(0)
    types = [param.checked_type for param in func.params]
    made = [
        np.asarray(mean + (10 * eps if scale is None else scale) * rng.standard_normal([int(n) for n in t.shape])).astype(to_numpy(t.dtype))
        for t in types
    ]
    given = made if inputs is None else [np.asarray(one) for one in inputs]
    by = [n for n, one in enumerate(given) if test_inputs is None or any(one is np.asarray(other) for other in test_inputs)]
    run = create_executor(executor_kind).evaluate(func)
    _, derivatives = create_executor(executor_kind).evaluate(gradient(func, mode=mode))(*given)
    for n in by:
        if not parse_dtype(types[n].dtype).is_float:
            continue
        expected = np.zeros(given[n].shape, "float64")
        for place in np.ndindex(given[n].shape):
            sides = []
            for sign in (1, -1):
                moved = given[n].copy()
                moved[place] += sign * eps
                sides.append(float(np.sum(np.asarray(run(*given[:n], moved, *given[n + 1 :]).numpy(), "float64"))))
            expected[place] = (sides[0] - sides[1]) / (2 * eps)
        np.testing.assert_allclose(derivatives[n].numpy(), expected, rtol, atol)
