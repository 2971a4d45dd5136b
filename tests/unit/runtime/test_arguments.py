"""Calls: what is accepted without copying, and that nothing runs before everything is checked. Messages: tests/error."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tensorexpr.errors import ArgumentError
from tensorexpr.runtime import ndarray as nd
from tensorexpr.runtime.arguments import ArgumentChecker
from tensorexpr.runtime.module import Module
from tensorexpr.tir.expr import Var

from .functions import buffer, module_of, scalar, signature


class Tensor:
    """An array of some other library: nothing but DLPack."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __dlpack__(self) -> Any:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class Subclass(np.ndarray[Any, Any]):
    """An array type of some other library."""


@pytest.mark.parametrize("wrap", [lambda x: x, nd.from_dlpack, Tensor, lambda x: x.view(Subclass), lambda x: x[None][0]])
def test_every_kind_of_array_is_written_in_place(add_one: Module, wrap: Any) -> None:
    array = np.zeros(3, np.float32)
    for _ in range(3):
        add_one(wrap(array))
    assert array.tolist() == [3, 0, 0]


def test_inputs_may_be_read_only_and_overlap_each_other() -> None:
    described = signature(buffer("a", (2,)), buffer("b", (2,)), buffer("out", (2,), written=True))
    function = module_of(described).entry_func
    both = np.zeros(3, np.float32)
    both.flags.writeable = False
    function(both[:2], both[1:], np.zeros(2, np.float32))


def test_arrays_side_by_side_do_not_overlap() -> None:
    function = module_of(signature(buffer("a", (2,)), buffer("out", (2,), written=True))).entry_func
    both = np.zeros(4, np.float32)
    function(both[:2], both[2:])
    function(both[2:], both[:2])
    with pytest.raises(ArgumentError, match="overlaps"):
        function(both[:2], both[1:3])


def test_interleaved_strided_arrays_do_not_overlap() -> None:
    s, t = Var("s"), Var("t")
    described = signature(buffer("a", (2,), strides=(s,)), buffer("out", (2,), strides=(t,), written=True), symbols=(s, t))
    function = module_of(described).entry_func
    both = np.zeros(4, np.float32)
    function(both[::2], both[1::2])
    with pytest.raises(ArgumentError, match="overlaps"):
        function(both[::2], both[2:])


@pytest.mark.parametrize("shape", [(0,), (3, 0)])
def test_empty_arrays(shape: tuple[int, ...]) -> None:
    names = [Var(name) for name in "nm"[: len(shape)]]
    described = signature(buffer("a", names), buffer("out", names, written=True), symbols=names)
    function = module_of(described).entry_func
    function(np.zeros(shape, np.float32), np.zeros(shape, np.float32))
    same = np.zeros(shape, np.float32)
    function(same, same)


def test_rank_zero() -> None:
    described = signature(buffer("a", ()), buffer("out", (), written=True))
    body = "%v = load float, ptr %0\nstore float %v, ptr %1\nret i32 0"
    function = module_of(described, body).entry_func
    out = np.zeros((), np.float32)
    function(np.array(5, np.float32), out)
    assert out == 5


def test_extents_of_one_may_have_any_stride() -> None:
    function = module_of(signature(buffer("a", (1, 3)))).entry_func
    function(np.zeros((4, 3), np.float32)[::4])
    function(np.broadcast_to(np.zeros(3, np.float32), (1, 3)))


def test_bfloat16_and_bool_arrays() -> None:
    described = signature(buffer("a", (2,), "bfloat16"), buffer("b", (2,), "bool"))
    function = module_of(described).entry_func
    function(np.zeros(2, ml_dtypes.bfloat16), np.zeros(2, bool))
    function(nd.empty((2,), "bfloat16"), nd.empty((2,), "bool"))


def test_an_equal_dtype_object_is_as_good() -> None:
    function = module_of(signature(buffer("a", (2,)))).entry_func
    array = np.zeros(2, np.dtype("f4", metadata={"unit": "m"}))
    function(array)


@pytest.mark.parametrize(
    ("dtype", "value", "word"),
    [
        ("int32", -5, -5),
        ("int64", np.int8(7), 7),
        ("uint64", 2**64 - 1, -1),
        ("int8", True, 1),
        ("bool", np.True_, 1),
        ("bool", 0, 0),
        ("float32", 1, 0x3FF0000000000000),
        ("float64", np.float32(-2), -0x4000000000000000),
        ("float16", np.int8(2), 0x4000000000000000),
    ],
)
def test_scalars(dtype: str, value: Any, word: int) -> None:
    described = signature(scalar("x", dtype), buffer("out", (1,), "int64", written=True))
    store = "store double %0, ptr %1" if dtype.startswith("float") else "store i64 %0, ptr %1"
    out = np.zeros(1, np.int64)
    module_of(described, f"{store}\nret i32 0").entry_func(value, out)
    assert out.tolist() == [word]


def test_no_arguments_at_all() -> None:
    function: Any = module_of(signature()).entry_func
    assert function() is None
    with pytest.raises(ArgumentError, match="argument"):
        function(np.zeros(1, np.float32))


def test_alignment_beyond_the_element_is_asked_for() -> None:
    checker = ArgumentChecker(signature(buffer("a", (4,), alignment=64)))
    memory = nd.empty((8,), "float32")[...]
    checker.block((memory[:4],))
    with pytest.raises(ArgumentError, match=r"starts at address 0x\w+, needs a multiple of 64; copy it"):
        checker.block((memory[1:5],))


def test_an_error_code_raises_its_message() -> None:
    described = signature(scalar("code", "int32"), errors=("first things first", "n must be even"))
    function = module_of(described, "%code = trunc i64 %0 to i32\nret i32 %code").entry_func
    function(0)
    for code, message in {1: "f: first things first", 2: "f: n must be even", 3: "f: it returned error code 3"}.items():
        for _ in range(2):
            with pytest.raises(ArgumentError) as error:
                function(code)
            assert str(error.value) == message


def test_nothing_runs_when_an_argument_is_refused(add_one: Module) -> None:
    array = np.zeros(3, np.float32)
    for wrong in (array.astype(np.float64), array[::2], array[None], None, [0.0]):
        with pytest.raises(ArgumentError):
            add_one(wrong)
    assert array.tolist() == [0, 0, 0]
