"""Stages with several results: products of complex numbers, and a maximum together with its place.

python examples/from_tvm/tuple_inputs.py
"""

import numpy as np

import tensorexpr as tvm
from tensorexpr import te


def complex_product() -> None:
    """Real and imaginary parts come from one stage, so that each input is read once."""
    n = te.var("n")
    ar, ai, br, bi = (te.placeholder((n,), name=name) for name in ("ar", "ai", "br", "bi"))
    cr, ci = te.compute((n,), lambda i: (ar[i] * br[i] - ai[i] * bi[i], ar[i] * bi[i] + ai[i] * br[i]), name="c")
    func = tvm.build(te.create_schedule(cr.op), [ar, ai, br, bi, cr, ci])
    rng = np.random.default_rng(0)
    x, y = (rng.random(7, np.float32) + 1j * rng.random(7, np.float32) for _ in range(2))
    parts = [np.ascontiguousarray(part, "float32") for part in (x.real, x.imag, y.real, y.imag)]
    real, imaginary = np.empty(7, "float32"), np.empty(7, "float32")
    func(*parts, real, imaginary)
    np.testing.assert_allclose(real + 1j * imaginary, x * y, rtol=1e-5)
    print("products:", (real + 1j * imaginary)[:3].round(3))


def main() -> None:
    """The place of each row's maximum."""
    m, n = te.var("m"), te.var("n")
    place, value = te.placeholder((m, n), "int32", name="place"), te.placeholder((m, n), name="value")
    k = te.reduce_axis((0, n), name="k")
    best = te.comm_reducer(
        lambda x, y: (te.if_then_else(x[1] >= y[1], x[0], y[0]), te.if_then_else(x[1] >= y[1], x[1], y[1])),
        lambda of_place, of_value: (te.const(-1, of_place), te.min_value(of_value)),
        name="best",
    )
    where, most = te.compute((m,), lambda i: best((place[i, k], value[i, k]), axis=k), name="found")
    func = tvm.build(te.create_schedule(where.op), [place, value, where, most])
    x = np.random.default_rng(0).random((6, 40), np.float32)
    found, maxima = np.empty(6, "int32"), np.empty(6, "float32")
    func(np.tile(np.arange(40, dtype="int32"), (6, 1)), x, found, maxima)
    np.testing.assert_array_equal(found, x.argmax(1))
    np.testing.assert_array_equal(maxima, x.max(1))
    print("places of the maxima:", found)
    complex_product()


if __name__ == "__main__":
    main()
