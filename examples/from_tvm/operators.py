"""Operators by name: a small head of a network in topi, its schedule chosen by rules.

python examples/from_tvm/operators.py
"""

import numpy as np

import tensorexpr as tvm
from tensorexpr import te, topi


def main() -> None:
    """softmax(relu(x @ w.T + bias))."""
    x, w, bias = te.placeholder((8, 40), name="x"), te.placeholder((10, 40), name="w"), te.placeholder((10,), name="bias")
    scores = topi.nn.relu(topi.nn.dense(x, w, bias))
    chances = topi.nn.softmax(scores)
    func = tvm.build([x, w, bias, chances], schedule="auto")
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype("float32") for shape in ((8, 40), (10, 40), (10,))]
    out = np.empty((8, 10), "float32")
    func(*arrays, out)
    wanted = np.maximum(arrays[0] @ arrays[1].T + arrays[2], 0)
    wanted = np.exp(wanted - wanted.max(1, keepdims=True))
    np.testing.assert_allclose(out, wanted / wanted.sum(1, keepdims=True), rtol=1e-4, atol=1e-6)
    print("most likely classes:", out.argmax(1))


if __name__ == "__main__":
    main()
