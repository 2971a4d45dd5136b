"""Memory that is only accessed in vectors: what may become vectors, and what says more than that and stays."""

from __future__ import annotations

import numpy as np
import pytest

from tensorexpr.script import from_source
from tensorexpr.tir import IRModule, PrimFunc, transform
from tensorexpr.tir.interpreter import interpret

COPY = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    t_data = T.allocate([16], "float32", "global")
    t = T.Buffer((16,), data=t_data{options})
    for i in range(4):
        t[{at}T.Ramp(i * 4, 1, 4)] = A[T.Ramp(i * 4, 1, 4)]
    for i in range(4):
        B[T.Ramp(i * 4, 1, 4)] = t[T.Ramp(i * 4, 1, 4)]
"""


def rewritten(text: str) -> PrimFunc:
    func = from_source(text)
    assert isinstance(func, PrimFunc)
    result = transform.PointerValueTypeRewrite()(IRModule({"main": func}))["main"]
    assert isinstance(result, PrimFunc)
    return result


def test_vectors_alone() -> None:
    assert "float32x4" in rewritten(COPY.format(options="", at="")).script()


def test_a_mask_keeps_scalars() -> None:
    masked = rewritten("""
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(4):
        B.vstore([T.Ramp(i * 4, 1, 4)], A[T.Ramp(i * 4, 1, 4)], predicate=T.Ramp(i * 4, 1, 4) < T.Broadcast(6, 4))
""")
    result = np.zeros(16, "float32")
    interpret(masked, [np.arange(1, 17, dtype="float32").reshape(4, 4), result])
    np.testing.assert_array_equal(result, [1, 2, 3, 4, 5, 6] + [0] * 10)


def test_an_offset_keeps_its_unit() -> None:
    text = rewritten(COPY.format(options=", elem_offset=4", at="").replace("T.allocate([16]", "T.allocate([20]")).script()
    assert 't_data = T.allocate([20], "float32", "global")' in text


def test_constants_are_scalars() -> None:
    text = """
@T.prim_func
def main(B: T.Buffer((4,), "float32")):
    t_data = T.allocate_const([1.0, 2.0, 3.0, 4.0], "float32", [4])
    t = T.Buffer((4,), data=t_data)
    B[T.Ramp(0, 1, 4)] = t[T.Ramp(0, 1, 4)]
"""
    assert "float32x4" not in rewritten(text).script().partition("allocate_const")[2].partition("\\n")[0]
    result = rewritten(text)
    assert result.script().count("allocate_const") == 1
    from_source(result.script())  # nothing is used that isn't defined


@pytest.mark.parametrize("node", ["t_data", "t"])
def test_attributes_speak_of_the_new_memory(node: str) -> None:
    text = COPY.format(options="", at="").replace(
        "    for i in range(4):\n        t[", f'    T.attr({node}, "volatile_scope", 1)\n    for i in range(4):\n        t['
    )
    result = rewritten(text).script()
    assert "float32x4" in result
    from_source(result)
