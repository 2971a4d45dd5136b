"""An intrinsic of one's own takes the place of the innermost loops.

python examples/from_tvm/tensorize.py
"""

import numpy as np

import tensorexpr as tvm
from tensorexpr import te, tir

LANES = 8


def add_of_lanes() -> te.TensorIntrin:
    """z[0:8] = x[0:8] + y[0:8], as one vector operation."""
    x, y = te.placeholder((LANES,), name="x"), te.placeholder((LANES,), name="y")
    z = te.compute((LANES,), lambda i: x[i] + y[i], name="z")
    buffers = {t: tir.decl_buffer(t.shape, t.dtype, t.op.name, offset_factor=1, strides=[1]) for t in (x, y, z)}

    def body(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tir.Stmt:
        vector = f"float32x{LANES}"
        return outs[0].vstore([0], ins[0].vload([0], vector) + ins[1].vload([0], vector))

    return te.decl_tensor_intrin(z.op, body, binds=buffers)


def main() -> None:
    """Tensorize the rows of a sum of matrices."""
    a, b = te.placeholder((12, 40), name="a"), te.placeholder((12, 40), name="b")
    c = te.compute((12, 40), lambda i, j: a[i, j] + b[i, j], name="c")
    s = te.create_schedule(c.op)
    _, lane = s[c].split(c.op.axis[1], factor=LANES)
    s[c].tensorize(lane, add_of_lanes())
    x, y = (np.random.default_rng(seed).random((12, 40), np.float32) for seed in (0, 1))
    out = np.empty_like(x)
    tvm.build(s, [a, b, c])(x, y, out)
    np.testing.assert_array_equal(out, x + y)
    print(tvm.lower(s, [a, b, c], simple_mode=True))


if __name__ == "__main__":
    main()
