"""What `te.create_prim_func` refuses, one test for each message."""

from __future__ import annotations

import pytest

from tensorexpr import te
from tensorexpr.errors import DeclarationError
from tests import programs


def spare() -> te.Tensor:
    return te.placeholder((4,), name="A")


def test_a_missing_input() -> None:
    a, _, c = programs.matmul()
    with pytest.raises(DeclarationError, match=r"placeholder B is read but missing from the arguments \(A, C\); pass every input"):
        te.create_prim_func([a, c])


def test_the_same_tensor_twice() -> None:
    a = spare()
    with pytest.raises(DeclarationError, match="argument 1, A, is given twice; each tensor is one argument"):
        te.create_prim_func([a, a])


def test_no_tensors() -> None:
    with pytest.raises(DeclarationError, match=r"inputs and outputs, as in \[A, B, C\]; got none"):
        te.create_prim_func([])


def test_something_else() -> None:
    with pytest.raises(DeclarationError, match="argument 1 is 3; it takes tensors and scalar variables"):
        te.create_prim_func([spare(), 3])  # type: ignore[list-item]


def test_a_scalar_that_is_no_argument() -> None:
    a, alpha = spare(), te.var("alpha", "float32")
    with pytest.raises(DeclarationError, match="alpha is neither an argument nor a size of one; add it to the arguments"):
        te.create_prim_func([a, te.compute((4,), lambda i: a[i] * alpha, name="B")])


def test_an_unknown_index_dtype() -> None:
    with pytest.raises(DeclarationError, match="index_dtype_override is one of int32, int64, not 'int8'"):
        te.create_prim_func([spare()], index_dtype_override="int8")
