"""A pass of one's own among those of lowering, and an instrument that watches them.

python examples/from_tvm/custom_pass.py
"""

import numpy as np

import tensorexpr as tvm
from tensorexpr import te, tir


@tir.transform.prim_func_pass(opt_level=0)
def halves_by_products(func: tir.PrimFunc, mod: tvm.IRModule, ctx: tvm.transform.PassContext) -> tir.PrimFunc:
    """x / 2.0 becomes x * 0.5, which is the same number and cheaper."""

    def rewrite(node: object) -> object:
        match node:
            case tir.Div(a=x, b=tir.FloatImm(value=2.0)):
                return x * tir.const(0.5, x.dtype)
        return None

    return func.with_body(tir.stmt_functor.ir_transform(func.body, None, rewrite, ["tir.Div"]))


@tvm.instrument.pass_instrument
class Counter:
    """Counts the passes that run."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def run_before_pass(self, mod: tvm.IRModule, info: tvm.transform.PassInfo) -> None:
        """Note a pass."""
        self.seen.append(info.name)


def main() -> None:
    """Lower with the pass and see what became of the division."""
    a = te.placeholder((64,), name="a")
    b = te.compute((64,), lambda i: a[i] / 2.0 + 1.0, name="b")
    s = te.create_schedule(b.op)
    counter = Counter()
    with tvm.transform.PassContext(config={"tir.add_lower_pass": [(1, halves_by_products)]}, instruments=[counter]):
        text = str(tvm.lower(s, [a, b]))
        func = tvm.build(s, [a, b])
    assert "/" not in text.split("for", 1)[1] and "0.5" in text
    x, out = np.arange(64, dtype="float32"), np.empty(64, "float32")
    func(x, out)
    np.testing.assert_array_equal(out, x / 2 + 1)
    print(text)
    print(f"{len(counter.seen)} passes ran, {len(set(counter.seen))} different ones; among them {counter.seen[0]}")


if __name__ == "__main__":
    main()
