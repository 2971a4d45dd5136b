"""A function of blocks in TVMScript, transformed block by block.

python examples/from_tvm/tensor_ir.py
"""

import numpy as np

import tensorexpr as tvm
from tensorexpr import tir
from tensorexpr.script import tir as T


@tvm.script.ir_module
class Smooth:
    """out[i] = the mean of three neighbours."""

    @T.prim_func
    def main(a: T.Buffer((130,), "float32"), out: T.Buffer((128,), "float32")):  # type: ignore[valid-type,no-untyped-def]
        """Two blocks, so that there is something to place."""
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        total = T.alloc_buffer((128,), "float32")
        for i in range(128):
            with T.block("total"):
                vi = T.axis.spatial(128, i)
                total[vi] = a[vi] + a[vi + 1] + a[vi + 2]
        for i in range(128):
            with T.block("out"):
                vi = T.axis.spatial(128, i)
                out[vi] = total[vi] * T.float32(1 / 3)


def main() -> None:
    """Place one block inside of the other, in lanes, and say what was done."""
    sch = tir.Schedule(Smooth)
    chunk, lane = sch.split(sch.get_loops(sch.get_block("out"))[0], [None, 16])
    sch.compute_at(sch.get_block("total"), chunk)
    sch.vectorize(lane)
    func = tvm.build(sch.mod, target="llvm")
    x, out = np.random.default_rng(0).random(130, np.float32), np.empty(128, "float32")
    func(x, out)
    np.testing.assert_allclose(out, (x[:-2] + x[1:-1] + x[2:]) / 3, rtol=1e-5)
    print(sch.mod["main"].script())
    print(sch.trace)


if __name__ == "__main__":
    main()
