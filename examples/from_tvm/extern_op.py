"""Stages that call what exists already: a product by NumPy's BLAS, and a function of Python.

python examples/from_tvm/extern_op.py
"""

import numpy as np

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.contrib import cblas

N, K, M = 48, 32, 20


@tvm.register_func("examples.sort_rows", override=True)
def sort_rows(source: tvm.nd.NDArray, target: tvm.nd.NDArray) -> None:
    """Sort each row of an array into another one; both share memory with the compiled code."""
    np.from_dlpack(target)[...] = np.sort(np.from_dlpack(source), axis=1)


def main() -> None:
    """relu(a @ b), its rows sorted: the library's product, our elementwise stage, Python's sort."""
    a, b = te.placeholder((N, K), name="a"), te.placeholder((K, M), name="b")
    product = cblas.matmul(a, b)
    positive = te.compute((N, M), lambda i, j: tvm.tir.max(product[i, j], 0.0), name="positive")
    ordered = te.extern(
        (N, M),
        [positive],
        lambda ins, outs: tvm.tir.call_packed("examples.sort_rows", ins[0], outs[0]),
        name="ordered",
        dtype="float32",
    )
    func = tvm.build(te.create_schedule(ordered.op), [a, b, ordered])
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(shape).astype("float32") for shape in ((N, K), (K, M)))
    out = np.empty((N, M), "float32")
    func(x, y, out)
    np.testing.assert_allclose(out, np.sort(np.maximum(x @ y, 0), axis=1), rtol=1e-4, atol=1e-5)
    print("the largest of the first rows:", out[:4, -1].round(3))


if __name__ == "__main__":
    main()
