"""A first program: declare a saxpy, give it a schedule, build it, save it, load it again.

python examples/from_tvm/get_started.py
"""

import numpy as np

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.contrib import utils


def main() -> None:
    """Declare, schedule, build, check, save and load."""
    n = te.var("n")
    alpha = te.var("alpha", "float32")
    x, y = te.placeholder((n,), name="x"), te.placeholder((n,), name="y")
    z = te.compute((n,), lambda i: alpha * x[i] + y[i], name="z")

    s = te.create_schedule(z.op)
    chunk, lane = s[z].split(z.op.axis[0], factor=256)
    s[z].parallel(chunk)
    s[z].vectorize(s[z].split(lane, factor=8)[1])
    saxpy = tvm.build(s, [alpha, x, y, z], tvm.target.Target("llvm"), name="saxpy")

    device = tvm.cpu(0)
    a, b = (np.random.default_rng(seed).random(1000, np.float32) for seed in (1, 2))
    out = tvm.nd.empty((1000,), "float32", device)
    saxpy(0.5, tvm.nd.array(a, device), tvm.nd.array(b, device), out)
    np.testing.assert_allclose(out.numpy(), np.float32(0.5) * a + b, rtol=1e-6)

    with utils.tempdir() as folder:
        saxpy.export_library(folder.relpath("saxpy.tar"))
        again = tvm.runtime.load_module(folder.relpath("saxpy.tar"))
        again(2.0, a, b, out)
    np.testing.assert_allclose(out.numpy(), 2 * a + b, rtol=1e-6)
    print(tvm.lower(s, [alpha, x, y, z], simple_mode=True))
    print("saxpy and its saved copy agree with NumPy; a GPU is here:", tvm.cuda(0).exist)


if __name__ == "__main__":
    main()
