"""Recurrent layers of all kinds, sizes and loop orders: kernels agree with the rows' meaning on NumPy's arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensorexpr import relax
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.topi.nn import recurrent_loops
from tensorexpr.topi.nn.recurrent import GATES

KINDS = ("lstm", "gru", "rnn", "bytes")


def layer(d: dict[str, Any], rng: Any) -> tuple[Any, dict[str, Any]]:
    """A call of a row on variables and constants, and arrays for the variables."""
    kind, hidden, lead, batch = d["kind"], d["hidden"], d["lead"], d["batch"]
    count, steps = GATES[kind if kind != "bytes" else "lstm"], 3
    ways = lead[0] if lead else 1
    arrays: dict[str, Any] = {"gates": rng.uniform(-1, 1, (steps, batch, ways * count * hidden))}
    if kind == "bytes":
        arrays["weights"] = rng.integers(-128, 128, (*lead, hidden, count * hidden), "int8")
        arrays["scales"] = rng.uniform(0.001, 0.004, (*lead, count * hidden))
        zeros = arrays["zeros"] = rng.integers(-40, 40, (*lead, count * hidden), "int32")
        arrays["sums"] = (arrays["weights"].astype("int32") - zeros[..., None, :]).sum(-2, dtype="int32")
    else:
        arrays["weights"] = rng.uniform(-0.4, 0.4, (*lead, hidden, count * hidden))
    arrays |= {name: rng.uniform(-1, 1, (*lead, batch, hidden)) for name in (("state", "cells") if count == 4 else ("state",))}
    if count == 3:
        arrays["bias"] = rng.uniform(-1, 1, (*lead, hidden))
    if count == 4:
        arrays["peepholes"] = rng.uniform(-1, 1, (*lead, 3 * hidden))
    if d["lengths"]:
        arrays["lengths"] = rng.integers(0, steps + 1, batch).astype("int32")
    arrays = {name: one if one.dtype.kind == "i" else one.astype("float32") for name, one in arrays.items()}
    constant = {"weights", "scales", "zeros", "sums"} if d["constant"] else set()
    given_ = {name: relax.const(one) if name in constant else relax.Var(name, relax.TensorStructInfo(one.shape, str(one.dtype)))
              for name, one in arrays.items()}  # fmt: skip
    attrs = {"clip": d["clip"], "reverse": d["reverse"]}
    if count > 1:
        attrs["input_forget" if count == 4 else "linear_before_reset"] = d["coupled"]
    row = {"lstm": "lstm_steps", "gru": "gru_steps", "rnn": "rnn_steps", "bytes": "lstm_steps_of_bytes"}[kind]
    call = getattr(relax.op.nn, row)(*given_.values(), **attrs)
    return (call, [one for one in given_.values() if isinstance(one, relax.Var)]), {n: arrays[n] for n in arrays if n not in constant}


@settings(deadline=None, derandomize=True, max_examples=3)
@given(
    st.fixed_dictionaries(
        {
            "kind": st.sampled_from(KINDS),
            "hidden": st.sampled_from([1, 3, 16, 20, 40, 64]),
            "lead": st.sampled_from([(), (1,), (2,)]),
            "batch": st.integers(1, 3),
            "lengths": st.booleans(),
            "constant": st.booleans(),
            "clip": st.sampled_from([0.0, 0.5]),
            "reverse": st.booleans(),
            "coupled": st.booleans(),
            "shared": st.booleans(),
        }
    )
)
# panels behind the last unit, groups of four behind the last row
@example({"kind": "bytes", "hidden": 18, "lead": (2,), "batch": 2, "lengths": True, "constant": True, "clip": 0.0, "reverse": False,
          "coupled": False, "shared": True})  # fmt: skip
# two products a step, of which the second reads what the first gives
@example({"kind": "gru", "hidden": 72, "lead": (2,), "batch": 2, "lengths": False, "constant": True, "clip": 0.0, "reverse": False,
          "coupled": False, "shared": True})  # fmt: skip
def test_kernels_agree_with_the_meaning(d: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    (call, variables), arrays = layer(d, rng)
    bb = relax.BlockBuilder()
    with bb.function("main", variables):
        with bb.dataflow():
            out = bb.emit_output(call)
        bb.emit_func_output(out)
    mod = bb.get()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recurrent_loops, "_SHARED", 0 if d["shared"] else 1 << 40)
        found = relax.VirtualMachine(relax.build(mod))["main"](*arrays.values())
    wanted = Evaluator(mod)("main", *arrays.values())
    # A state that is rounded to one of 256 levels may get the next one where float32 and float64 differ.
    tolerance = 5e-3 if d["kind"] == "bytes" else 1e-5
    for one, exact in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one.numpy(), exact, rtol=tolerance, atol=tolerance)
