"""A program of release 0.6: names at the top level, a pass on statements, the options of a lowering.

python examples/from_tvm/release_0_6.py
"""

from typing import Any

import numpy as np

import tensorexpr

tvm: Any = tensorexpr  # type checkers know the names of today


def doubled(stmt: Any) -> Any:
    """Every constant 2 becomes 4."""
    return tvm.ir_pass.IRTransform(stmt, None, lambda x: tvm.const(4.0, "float32") if x.value == 2 else None, ["FloatImm"])


def main() -> None:
    """The sum of rows times 2, with the pass times 4."""
    n = tvm.var("n")
    a = tvm.placeholder((n, 8), name="a")
    k = tvm.reduce_axis((0, 8), name="k")
    b = tvm.compute((n,), lambda i: tvm.sum(a[i, k] * 2.0, axis=k), name="b")
    s = tvm.create_schedule(b.op)
    print(tvm.lower(s, [a, b], simple_mode=True))
    ctx = tvm.context("llvm", 0)
    x, y = tvm.nd.array(np.ones((5, 8), "float32"), ctx), tvm.nd.array(np.zeros(5, "float32"), ctx)
    for options, wanted in (({}, 16), ({"add_lower_pass": [(1, doubled)]}, 32)):
        with tvm.build_config(**options):
            tvm.build(s, [a, b], "llvm", name="rows")(x, y)
        np.testing.assert_array_equal(y.asnumpy(), np.full(5, wanted))


if __name__ == "__main__":
    main()
