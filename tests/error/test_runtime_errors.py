"""One test per message of a refused call: the function, the argument, what came, what is needed, and a remedy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr.codegen.signature import BufferParam, ScalarParam, Signature
from tensorexpr.errors import ArgumentError
from tensorexpr.runtime import ndarray as nd
from tensorexpr.runtime.arguments import ArgumentChecker
from tensorexpr.runtime.build import build, compile_functions
from tensorexpr.target import Target
from tensorexpr.tir.expr import IntImm, SizeVar, Var
from tensorexpr.tir.function import IRModule

N = Var("n")
FOUR, ZERO = IntImm("int32", 4), IntImm("int32", 0)
CHECKER = ArgumentChecker(
    Signature(
        "matmul",
        (
            BufferParam("A", "float32", (N, FOUR), (), ZERO, 4, True, False),
            BufferParam("B", "bfloat16", (FOUR, FOUR), (), ZERO, 2, True, False),
            BufferParam("C", "float32", (N, FOUR), (), ZERO, 4, False, True),
            ScalarParam("count", "int8", Var("count", "int8")),
            ScalarParam("scale", "float32", Var("scale", "float32")),
        ),
        (N,),
    )
)


def arguments(**changes: Any) -> tuple[Any, ...]:
    """Fitting arguments with some replaced."""
    fitting = {
        "A": np.zeros((8, 4), np.float32),
        "B": nd.empty((4, 4), "bfloat16"),
        "C": np.zeros((8, 4), np.float32),
        "count": 3,
        "scale": 1.5,
    }
    return tuple({**fitting, **changes}.values())


def frozen() -> np.ndarray[Any, Any]:
    """A read-only array."""
    array = np.zeros((8, 4), np.float32)
    array.flags.writeable = False
    return array


def test_the_fitting_arguments_fit() -> None:
    assert len(CHECKER.block(arguments())[1]) == 5


def test_too_few() -> None:
    with pytest.raises(ArgumentError) as error:
        CHECKER.block(arguments()[:2])
    assert str(error.value) == (
        "matmul takes 5 arguments, A: float32[n, 4], B: bfloat16[4, 4], C: float32[n, 4], count: int8, scale: float32; got 2"
    )


MEMORY = np.zeros((8, 4), np.float32)
BIG = np.zeros(200, np.uint8)

CASES: dict[str, tuple[dict[str, Any], str]] = {
    "no array": (
        {"A": [[1.0]]},
        "matmul: argument A (1 of 5) is a list, needs an array float32[n, 4]; pass a NumPy array, an nd.array, or anything with __dlpack__",
    ),
    "dtype": (
        {"A": np.zeros((8, 4))},
        "matmul: argument A (1 of 5) has dtype float64, needs float32; convert it with x.astype('float32')",
    ),
    "bfloat16": (
        {"B": np.zeros((4, 4), np.float16)},
        "matmul: argument B (2 of 5) has dtype float16, needs bfloat16; convert it with x.astype('bfloat16')",
    ),
    "byte order": (
        {"A": np.zeros((8, 4), np.dtype(np.float32).newbyteorder())},
        "matmul: argument A (1 of 5) has dtype >f4, needs float32; convert it with x.astype('float32')",
    ),
    "rank": (
        {"A": np.zeros(32, np.float32)},
        "matmul: argument A (1 of 5) has 1 dimensions (32,), needs 2: [n, 4]; reshape it",
    ),
    "constant extent": (
        {"B": nd.empty((4, 5), "bfloat16")},
        "matmul: argument B (2 of 5) has shape (4, 5), needs (4, 4)",
    ),
    "constant extent beside a variable": (
        {"A": np.zeros((8, 5), np.float32)},
        "matmul: argument A (1 of 5) has extent 1 5, needs 4",
    ),
    "variable extent": (
        {"C": np.zeros((9, 4), np.float32)},
        "matmul: argument C (3 of 5) has extent 0 9, but n is 8 (extent 0 of A)",
    ),
    "strides": (
        {"A": np.zeros((4, 8), np.float32).T},
        "matmul: argument A (1 of 5) has strides (4, 32), needs compact rows; pass np.ascontiguousarray(x)",
    ),
    "read-only": (
        {"C": frozen()},
        "matmul: argument C (3 of 5) is read-only, and the function writes it; pass a writable array, such as x.copy()",
    ),
    "overlap": (
        {"A": MEMORY, "C": MEMORY},
        "matmul: argument C (3 of 5) is written and overlaps argument A (1) in memory; pass a copy as A",
    ),
    "alignment": (
        {"A": BIG[1:129].view(np.float32).reshape(8, 4)},
        f"matmul: argument A (1 of 5) starts at address {BIG.ctypes.data + 1:#x}, needs a multiple of 4; copy it: x.copy()",
    ),
    "integer": (
        {"count": 2.5},
        "matmul: argument count (4 of 5) is a float, needs an integer (int8)",
    ),
    "range": (
        {"count": 128},
        "matmul: argument count (4 of 5) is 128, which int8 can't hold: it ends at -128 and 127",
    ),
    "number": (
        {"scale": "x"},
        "matmul: argument scale (5 of 5) is a str, needs a number (float32)",
    ),
    "complex": (
        {"scale": np.complex64(1)},
        "matmul: argument scale (5 of 5) is a complex64, needs a number (float32)",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_message(case: str) -> None:
    changes, message = CASES[case]
    with pytest.raises(ArgumentError) as error:
        CHECKER.block(arguments(**changes))
    assert str(error.value) == message


def test_repeated_elements_of_an_output() -> None:
    stride = Var("s")
    written = BufferParam("out", "float32", (FOUR,), (stride,), ZERO, 4, False, True)
    checker = ArgumentChecker(Signature("fill", (written,), (stride,)))
    with pytest.raises(
        ArgumentError, match=r"fill: argument out \(1 of 1\) is written, and its strides \(0,\) repeat elements; pass x.copy"
    ):
        repeated = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (4,), (0,))
        checker.block((repeated,))


def test_building_nothing() -> None:
    with pytest.raises(ArgumentError, match="build: the module holds no function to compile"):
        compile_functions({}, Target("llvm"))


def test_building_for_several_targets() -> None:
    with pytest.raises(ArgumentError, match="a mapping of targets to modules has one entry here, for the CPU; got 2"):
        build({"llvm": IRModule(), "llvm -num-cores=1": IRModule()})


def test_an_integer_beyond_all_floats() -> None:
    with pytest.raises(ArgumentError, match=r"argument scale .* is an integer of 1329 bits, which float32 can't hold"):
        CHECKER.block(arguments(scale=10**400))


def test_a_size_below_zero() -> None:
    size = SizeVar("n")
    checker = ArgumentChecker(Signature("f", (BufferParam("A", "float32", (size + 3,), (), ZERO, 4, True, False),), (size,)))
    assert len(checker.block((np.zeros(3, np.float32),))[1]) == 1
    with pytest.raises(ArgumentError, match="extent 0 1, so n would be -2; a size is 0 or more"):
        checker.block((np.zeros(1, np.float32),))
