"""What tensors say of themselves when a graph runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr import relax
from tensorexpr.errors import DeclarationError, ParseError, TypeMismatchError
from tensorexpr.ir import structural_equal
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.runtime.ndarray import array
from tensorexpr.script import from_source

WHOLE = """
@R.function
def main(x: R.Tensor, axis: R.Prim("int64")):
    return (x.ndim, x.shape[axis], x.strides[axis], x.dtype.type_code, x.dtype.bits, x.dtype.lanes, x.byte_offset, x.elem_offset)
"""


@pytest.mark.parametrize(
    ("dtype", "code", "bits"),
    [("float32", 2, 32), ("int8", 0, 8), ("uint16", 1, 16), ("bool", 1, 1), ("bfloat16", 4, 16), ("float16", 2, 16), ("int64", 0, 64)],
)
def test_numbers_of_any_tensor(dtype: str, code: int, bits: int) -> None:
    func: Any = from_source(WHOLE)
    given = array(np.zeros((2, 3, 5), "int8"), dtype=dtype)
    ex = relax.build(func, progress=False)
    found = relax.VirtualMachine(ex)["main"](given, 1)
    assert [int(one) for one in found] == [3, 3, 5, code, bits, 1, 0, 0]
    assert [int(one) for one in Evaluator(relax.build(func, upto=0))("main", given, 1)] == [3, 3, 5, code, bits, 1, 0, 0]


def test_what_is_known_before_is_in_the_struct_info() -> None:
    x = relax.Var("x", relax.TensorStructInfo((7, 4), "bfloat16"))
    known: list[Any] = [x.ndim, x.shape[0], x.dtype.bits, x.dtype.type_code, x.byte_offset]
    assert [int(one.struct_info.value) for one in known] == [2, 7, 16, 4, 0]
    assert str(relax.op.exp(x).shape[1]) == "R.inspect.tensor_shape_i(R.exp(x), R.prim_value(1))"
    unknown: Any = relax.Var("y", relax.TensorStructInfo(dtype="float32", ndim=2)).shape[1]
    assert unknown.struct_info.value is None
    assert [int(one.struct_info.value) for one in x.shape] == [7, 4]
    with pytest.raises(DeclarationError, match="axis 2 of a tensor of 2 axes"):
        x.shape[2]
    with pytest.raises(TypeMismatchError, match="how many axes it has is known when the graph runs"):
        list(relax.Var("z", relax.TensorStructInfo(dtype="float32")).strides)


def test_values_that_are_no_tensors_have_no_shape() -> None:
    assert not hasattr(relax.Tuple((relax.const(1.0),)), "shape") and not hasattr(relax.Var("f", relax.ObjectStructInfo()), "dtype")
    with pytest.raises(ParseError, match="a Var has no 'ndim'"):
        from_source("@R.function\ndef main(x: R.Tuple(R.Tensor)):\n    return x.ndim\n")


def test_the_text_of_queries_is_read_back() -> None:
    func: Any = from_source(WHOLE)
    assert structural_equal(from_source(func.script()), func)
