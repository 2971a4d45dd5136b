"""Functions of numbers: built-in ones in vectors, and calls of the C library.

python examples/from_tvm/intrin_math.py
"""

import numpy as np

import tensorexpr as tvm
from tensorexpr import te


def main() -> None:
    """A logistic curve by exp, and a cube root by the C library, which has what no built-in offers."""
    n = te.var("n")
    x = te.placeholder((n,), name="x")
    logistic = te.compute((n,), lambda i: 1.0 / (1.0 + te.exp(-x[i])), name="logistic")
    root = te.compute((n,), lambda i: tvm.tir.call_pure_extern("float32", "cbrtf", logistic[i]), name="root")
    s = te.create_schedule(root.op)
    s[logistic].vectorize(s[logistic].split(logistic.op.axis[0], factor=8)[1])
    func = tvm.build(s, [x, root])
    values = np.linspace(-4, 4, 33, dtype="float32")
    out = np.empty_like(values)
    func(values, out)
    np.testing.assert_allclose(out, np.cbrt(1 / (1 + np.exp(-values))), rtol=1e-5)
    print("cube roots of a logistic curve:", out[::8].round(4))


if __name__ == "__main__":
    main()
