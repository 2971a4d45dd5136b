"""A product with a sparse matrix: sums over as many elements as each row has.

python examples/from_tvm/sparse.py
"""

import numpy as np

import tensorexpr as tvm
from tensorexpr import te, topi

ROWS, OUTPUTS, INPUTS, HEIGHT, WIDTH = 32, 64, 48, 8, 2


def main() -> None:
    """relu(x @ w.T + bias) where w consists of the few blocks that aren't zero."""
    random = np.random.default_rng(0)
    present = random.random((OUTPUTS // HEIGHT, INPUTS // WIDTH)) < 0.3
    blocks_of_w = random.random((np.count_nonzero(present), HEIGHT, WIDTH), np.float32)
    columns_of_w = present.nonzero()[1].astype("int32")
    starts_of_w = np.cumsum([0, *present.sum(axis=1)], dtype="int32")

    X = te.placeholder((ROWS, INPUTS), name="X")
    data = te.placeholder(blocks_of_w.shape, name="data")
    columns = te.placeholder(columns_of_w.shape, "int32", name="columns")
    starts = te.placeholder(starts_of_w.shape, "int32", name="starts")
    bias = te.placeholder((OUTPUTS,), name="bias")

    product = topi.nn.sparse_dense(X, data, columns, starts)
    out = topi.nn.relu(te.compute(product.shape, lambda i, j: product[i, j] + bias[j], name="with_bias"))
    blocks = product.op.input_tensors[0]
    print(product.op.tag, "reads", blocks.op.tag)

    s = te.create_schedule(out.op)
    s[product].compute_inline()
    s[out.op.input_tensors[0]].compute_inline()
    outer, column, inner, _ = s[out].tile(out.op.axis[0], out.op.axis[1], 4, HEIGHT)
    s[out].reorder(outer, column, inner)
    s[out].parallel(outer)
    s[blocks].compute_at(s[out], column)
    i, _, j = blocks.op.axis
    element, width = blocks.op.reduce_axis
    s[blocks].reorder(element, i, width, j)
    s[blocks].vectorize(j)
    args = [X, data, columns, starts, bias, out]
    print(tvm.lower(s, args, simple_mode=True))

    x, b = random.random((ROWS, INPUTS), np.float32), random.random(OUTPUTS, np.float32)
    found = np.empty((ROWS, OUTPUTS), np.float32)
    tvm.build(s, args)(x, blocks_of_w, columns_of_w, starts_of_w, b, found)
    w = np.zeros((*present.shape, HEIGHT, WIDTH), np.float32)
    w[present] = blocks_of_w
    dense = w.transpose(0, 2, 1, 3).reshape(OUTPUTS, INPUTS)
    np.testing.assert_allclose(found, np.maximum(x @ dense.T + b, 0), rtol=1e-5)
    print(f"{blocks_of_w.size} of {OUTPUTS * INPUTS} weights are stored")


if __name__ == "__main__":
    main()
