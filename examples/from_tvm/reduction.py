"""Sums and other reductions: over threads by rfactor, and with a reducer of one's own.

python examples/from_tvm/reduction.py
"""

import numpy as np

import tensorexpr as tvm
from tensorexpr import te


def largest_by_size() -> None:
    """The element furthest from zero of each row, by a reducer that keeps a pair."""
    m, n = te.var("m"), te.var("n")
    a = te.placeholder((m, n), name="a")
    k = te.reduce_axis((0, n), name="k")
    further = te.comm_reducer(lambda x, y: te.if_then_else(te.abs(x) >= te.abs(y), x, y), lambda dtype: te.const(0, dtype), name="further")
    b = te.compute((m,), lambda i: further(a[i, k], axis=k), name="b")
    func = tvm.build(te.create_schedule(b.op), [a, b])
    x = np.random.default_rng(1).standard_normal((5, 33)).astype("float32")
    out = np.empty(5, "float32")
    func(x, out)
    np.testing.assert_array_equal(out, x[np.arange(5), np.abs(x).argmax(1)])
    print("furthest from zero:", out.round(3))


def main() -> None:
    """A sum whose partial sums run side by side."""
    a = te.placeholder((16, 4096), name="a")
    k = te.reduce_axis((0, 4096), name="k")
    b = te.compute((16,), lambda i: te.sum(a[i, k], axis=k), name="b")
    s = te.create_schedule(b.op)
    _, lane = s[b].split(k, factor=16)
    partial = s.rfactor(b, lane)
    s[partial].compute_at(s[b], b.op.axis[0])
    s[b].parallel(b.op.axis[0])
    x = np.random.default_rng(0).random((16, 4096), np.float32)
    out = np.empty(16, "float32")
    tvm.build(s, [a, b])(x, out)
    np.testing.assert_allclose(out, x.sum(1), rtol=1e-5)
    print(tvm.lower(s, [a, b], simple_mode=True))
    largest_by_size()


if __name__ == "__main__":
    main()
