"""Special functions of PyTorch's programs, beside the standard library, series and identities."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from tensorexpr import relax, te
from tensorexpr.frontend.torch import special
from tensorexpr.te.reference import evaluate

FUNCTIONS: dict[str, Any] = {name: getattr(special, f"_{name}") for name in ("lgamma", "digamma", "erfc", "erfcx", "erfinv", "ndtri")}
FUNCTIONS |= {f"i{order}{'e' * scaled}": partial(special._bessel, order, bool(scaled)) for order in (0, 1) for scaled in (0, 1)}


def values(name: str, x: Any) -> Any:
    given = te.placeholder(x.shape, str(x.dtype), "x")
    with np.errstate(all="ignore"):
        return evaluate([special._te_of_element(given, FUNCTIONS[name], name)], {given: x})[0]


def series(order: int, x: float) -> float:
    """DLMF 10.25.2."""
    return math.fsum((x / 2) ** (2 * k + order) / (math.factorial(k) * math.factorial(k + order)) for k in range(80))


KNOWN: dict[str, tuple[Callable[[float], float], Any]] = {
    "lgamma": (math.lgamma, (0.1, 0.9999, 3.7, 9.99, 10.0, 300.5, -0.3, -7.51)),
    "erfc": (math.erfc, (-3.0, -0.2, 0.0, 0.499, 0.5, 2.0, 9.0, 26.0)),
    "erfcx": (lambda x: math.exp(x * x) * math.erfc(x), (-2.0, 0.0, 0.7, 4.0, 20.0)),
    "i0": (partial(series, 0), (0.0, -1.5, 7.99, 8.0, 30.0)),
    "i1": (partial(series, 1), (0.0, 1e-6, -1.5, 8.0, -30.0)),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_values(name: str) -> None:
    function, at = KNOWN[name]
    np.testing.assert_allclose(values(name, np.array(at)), [function(one) for one in at], 1e-11, 1e-14)


def test_inverses() -> None:
    y = np.array([-0.999, -0.5, -1e-9, 0.0, 0.3, 0.9999, 1 - 1e-12])
    np.testing.assert_allclose([math.erf(one) for one in values("erfinv", y)], y, 1e-11)
    # Far out the part itself is small, so that erfc tells what erf no longer does.
    p = np.array([1e-300, 1e-30, 1e-3, 0.2, 0.5, 0.8])
    np.testing.assert_allclose([math.erfc(-one / math.sqrt(2)) / 2 for one in values("ndtri", p)], p, 1e-9)


def test_derivatives_of_lgamma() -> None:
    x = np.array([0.2, 1.0, 3.5, 11.0, -0.4, -5.7])
    np.testing.assert_allclose(values("digamma", x + 1) - values("digamma", x), 1 / x, 1e-11)
    np.testing.assert_allclose(values("digamma", np.array([1.0, 0.5])), [-np.euler_gamma, -np.euler_gamma - 2 * math.log(2)], 1e-13)
    poles = values("digamma", np.array([-2.0, 0.0]))
    assert np.isnan(poles[0]) and np.isinf(poles[1])
    q = te.placeholder((2,), "float64", "q")
    found = evaluate([te.compute((2,), lambda i: special.zeta(te.const(2.0, "float64"), q(i)))], {q: np.array([1.0, 2.0])})[0]
    np.testing.assert_allclose(found, [math.pi**2 / 6, math.pi**2 / 6 - 1], 1e-13)


def test_ends() -> None:
    ends = np.array([np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(values("lgamma", np.array([0.0, -3.0, *ends])), [np.inf, np.inf, np.inf, np.inf, np.nan])
    np.testing.assert_array_equal(values("erfinv", np.array([1.0, -1.0, 1.5, *ends])), [np.inf, -np.inf, *[np.nan] * 4])
    np.testing.assert_array_equal(values("ndtri", np.array([0.0, 1.0, -0.5])), [-np.inf, np.inf, np.nan])
    np.testing.assert_array_equal(values("i0e", ends[2:]), [np.nan])


@pytest.mark.parametrize("name", ["lgamma", "i1"])
def test_kernels_agree(name: str) -> None:
    x = np.linspace(0.05, 0.95, 7).astype("float32")
    given = relax.Var("x", relax.TensorStructInfo((7,), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [given]):
        bb.emit_func_output(bb.emit_te(partial(special._te_of_element, function=FUNCTIONS[name], name=name), given))
    found = relax.VirtualMachine(relax.build(bb.get(), "llvm"))["main"](x)
    np.testing.assert_allclose(found.numpy(), values(name, x), 1e-6)
