"""Functions of numbers that CUDA has, called by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.errors import CodegenError
from tensorexpr.ir import register_intrin_lowering
from tensorexpr.testing.ptx import emulator

from .running import TARGET


def of_one(value: Any, dtype: str) -> Any:
    """A kernel that computes something of each element, and what it makes of 64 numbers."""
    a = te.placeholder((64,), dtype, name="A")
    b = te.compute(a.shape, lambda i: value(a[i]), name="B")
    s = te.create_schedule(b.op)
    block, thread = s[b].split(b.op.axis[0], 32)
    s[b].bind(block, te.thread_axis("blockIdx.x"))
    s[b].bind(thread, te.thread_axis("threadIdx.x"))
    x = np.linspace(0.1, 2.0, 64).astype(dtype)
    device = emulator()
    made = tvm.nd.empty((64,), dtype, device)
    tvm.build(s, [a, b], TARGET)(tvm.nd.array(x, device), made)
    return x, made.numpy()


@pytest.mark.parametrize(
    ("name", "dtype", "count", "expected"),
    [
        ("__expf", "float32", 1, np.exp),
        ("expf", "float32", 1, np.exp),
        ("log", "float64", 1, np.log),
        ("__nv_log2f", "float32", 1, np.log2),
        ("__nv_rsqrt", "float64", 1, lambda x: 1 / np.sqrt(x)),
        ("fabsf", "float32", 1, np.abs),
        ("__powf", "float32", 2, lambda x: x**x),
        ("__fdividef", "float32", 2, lambda x: x / x),
        ("rint", "float64", 1, np.rint),
    ],
)
def test_they_compute_what_they_are_called(name: str, dtype: str, count: int, expected: Any) -> None:
    x, found = of_one(lambda a: tvm.tir.call_pure_extern(dtype, name, *[a] * count), dtype)
    np.testing.assert_allclose(found, expected(x), 1e-5)


@pytest.mark.parametrize(("name", "dtype"), [("expf", "float64"), ("exp", "float32"), ("__nv_nothing", "float32"), ("f", "float32")])
def test_a_name_for_another_type_is_refused(name: str, dtype: str) -> None:
    with pytest.raises(CodegenError, match=f"call_pure_extern {name}: a kernel can call no function of the host; .* as expf"):
        of_one(lambda a: tvm.tir.call_pure_extern(dtype, name, a), dtype)


def test_a_rule_may_lower_to_them() -> None:
    """As programs choose between exact and fast functions; the intrinsic that a name stands for isn't lowered by the rule again."""
    seen = []

    def rule(op: Any) -> Any:
        seen.append(op)
        return tvm.tir.call_pure_extern("float32", "expf", op.args[0])

    name = "tir.exp_by_name"
    tvm.ir.register_op_attr(name, "TCallEffectKind", tvm.tir.CallEffectKind.Pure)
    register_intrin_lowering(name, target="cuda", f=rule, level=99)
    x, found = of_one(lambda a: tvm.tir.call_intrin("float32", name, a), "float32")
    assert seen
    np.testing.assert_allclose(found, np.exp(x), 1e-5)
