"""Rules that a program registers for intrinsics go before what code generation would do."""

from __future__ import annotations

import numpy as np
import pytest

import tensorexpr
from tensorexpr import te, tir
from tensorexpr.ir import register_intrin_lowering
from tensorexpr.tir import op_registry


def test_a_registered_rule_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(op_registry, "_lowering", {})
    register_intrin_lowering("tir.plus_square", target="llvm", f=lambda call: call.args[0] * call.args[0] + tir.const(1, call.dtype))
    register_intrin_lowering("tir.exp", target="default", f=lambda call: call.args[0] + tir.const(2, call.dtype))
    register_intrin_lowering("tir.sqrt", target="cuda", f=lambda call: call.args[0])
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: tir.call_intrin("float32", "tir.plus_square", tir.exp(A[i])) + tir.sqrt(A[i]), name="B")
    s = te.create_schedule(B.op)
    s[B].vectorize(s[B].op.axis[0])
    a, b = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    tensorexpr.build(s, [A, B], target="llvm")(a, b)
    np.testing.assert_allclose(b, (a + 2) ** 2 + 1 + np.sqrt(a), rtol=1e-6)
