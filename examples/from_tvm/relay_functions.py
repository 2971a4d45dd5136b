"""Functions of Relay: recursion, closures and references, what partial evaluation leaves of them, continuations, derivatives.

python examples/from_tvm/relay_functions.py
"""

import numpy as np

import tensorexpr as tvm
from tensorexpr import relay

PROGRAM = """
#[version = "0.0.5"]
def @repeat(%n: int32, %f: fn (Tensor[(4), float32]) -> Tensor[(4), float32], %x: Tensor[(4), float32]) -> Tensor[(4), float32] {
  if (%n == 0) { %x } else { @repeat(%n - 1, %f, %f(%x)) }
}
def @main(%x: Tensor[(4), float32], %scale: float32) -> Tensor[(4), float32] {
  let %steps = ref(0f);
  let %step = fn (%y: Tensor[(4), float32]) -> Tensor[(4), float32] {
    let %_ = ref_write(%steps, ref_read(%steps) + 1f);
    tanh(%y * %scale)
  };
  let %end = @repeat(3, %step, %x);
  %end / ref_read(%steps)
}
"""


def main() -> None:
    """Run a program with a loop, a closure and a counter; evaluate what is known of it, and derive it."""
    mod = relay.transform.InferType()(relay.fromtext(PROGRAM))
    x, scale = np.array([-1, 0, 0.5, 2], "float32"), np.float32(1.5)
    expected = x
    for _ in range(3):
        expected = np.tanh(expected * scale)
    expected = expected / 3

    def result(one: tvm.IRModule) -> np.ndarray:
        return relay.create_executor("vm", mod=one).evaluate()(x, scale).numpy()

    np.testing.assert_allclose(result(mod), expected, rtol=1e-5)

    # Three is known, and so are the closure and what the counter holds: three products and a quotient are left.
    passes = [relay.transform.PartialEvaluate(), relay.transform.DeadCodeElimination(inline_once=True, ignore_impurity=True)]
    known = tvm.transform.Sequential(passes)(mod)
    print(known["main"])
    np.testing.assert_allclose(result(known), expected, rtol=1e-5)
    print("operators left:", relay.analysis.list_op_freqs(known["main"]))

    # The same program with continuations: no function returns, each hands its result on.
    handed = relay.transform.to_cps(mod["main"], mod)
    print(f"{len(handed.params)} parameters with the continuation, and functions {sorted(var.name_hint for var in mod.get_global_vars())}")
    mod["handed"] = relay.transform.un_cps(handed)
    again = relay.create_executor("vm", mod=relay.transform.InferType()(mod)).evaluate(mod.get_global_var("handed"))(x, scale)
    np.testing.assert_allclose(again.numpy(), expected, rtol=1e-5)

    # Derivatives of the sum of the results: loops of known length, closures and references are evaluated first.
    derived = tvm.IRModule.from_expr(relay.transform.gradient(mod["main"], mod))
    _, (by_x, _) = relay.create_executor("vm", mod=derived).evaluate()(x, scale)
    step = np.float32(1e-2)
    for place in range(4):
        moved = np.eye(4, dtype="float32")[place] * step
        values = [relay.create_executor("vm", mod=known).evaluate()(x + sign * moved, scale).numpy().sum() for sign in (1, -1)]
        np.testing.assert_allclose(by_x.numpy()[place], (values[0] - values[1]) / (2 * step), atol=2e-3)
    print("derivatives agree with differences")


if __name__ == "__main__":
    main()
