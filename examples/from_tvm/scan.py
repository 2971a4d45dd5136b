"""A recurrence: balances of accounts that bear interest, month by month.

python examples/from_tvm/scan.py
"""

import numpy as np

import tensorexpr as tvm
from tensorexpr import te

RATE = 1.01


def main() -> None:
    """balance[t] = RATE * balance[t - 1] + paid[t], for many accounts at once."""
    months, accounts = te.var("months"), te.var("accounts")
    paid = te.placeholder((months, accounts), name="paid")
    balance = te.placeholder((months, accounts), name="balance")
    start = te.compute((1, accounts), lambda _, i: paid[0, i], name="start")
    step = te.compute((months, accounts), lambda t, i: balance[t - 1, i] * RATE + paid[t, i], name="step")
    result = te.scan(start, step, balance, inputs=[paid], name="result")

    s = te.create_schedule(result.op)
    s[step].vectorize(s[step].split(step.op.axis[1], factor=8)[1])
    func = tvm.build(s, [paid, result])

    payments = np.random.default_rng(0).integers(0, 100, (24, 10)).astype("float32")
    out = np.empty_like(payments)
    func(payments, out)
    wanted = payments.copy()
    for month in range(1, len(wanted)):
        wanted[month] += np.float32(RATE) * wanted[month - 1]
    np.testing.assert_allclose(out, wanted, rtol=1e-5)
    print("after two years:", out[-1].round(2))


if __name__ == "__main__":
    main()
