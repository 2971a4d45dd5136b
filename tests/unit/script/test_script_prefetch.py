"""T.prefetch of a box: read, printed, lowered to a call for each cache line; and of an address."""

from __future__ import annotations

from typing import Any

import pytest

import tensorexpr as tvm
from tensorexpr import tir
from tensorexpr.errors import ParseError
from tensorexpr.script import from_source

TEXT = "@T.prim_func\ndef f(A: T.Buffer((8, 64), 'float32')):\n    T.prefetch(A, [T.Range(0, 4), T.Range(0, 32)])\n    A[0, 0] = 1.0"


def test_a_box_is_prefetched_line_by_line() -> None:
    func: Any = from_source(TEXT)
    assert isinstance(func.body[0], tir.Prefetch)
    tvm.ir.assert_structural_equal(from_source(func.script()), func)
    lowered = tvm.lower(func).script()
    assert "T.prefetch(A_1[" in lowered and "T.Range" not in lowered


def test_one_range_for_each_dimension() -> None:
    with pytest.raises(ParseError, match="a range for each dimension of A, 2, not 1"):
        from_source(TEXT.replace(", T.Range(0, 32)", ""))
    assert "T.prefetch(T.address_of(A[0, 0]), 0, 3, 1)" in str(
        from_source(TEXT.replace("A, [T.Range(0, 4), T.Range(0, 32)]", "T.address_of(A[0, 0]), 0, 3, 1"))
    )
