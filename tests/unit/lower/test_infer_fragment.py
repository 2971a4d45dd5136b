"""Fragments of matrix units, described by the calls that use them."""

from __future__ import annotations

import pytest

from tensorexpr.errors import LoweringError
from tensorexpr.script import from_source
from tensorexpr.tir import IRModule, PrimFunc, transform

HEAD = """@T.prim_func
def main(A: T.Buffer((256,), "float16"), C: T.Buffer((256,), "float32")):
    tx = T.launch_thread("threadIdx.x", 32)
    a = T.allocate([256], "float16", "wmma.matrix_a")
    b = T.allocate([256], "float16", "wmma.matrix_b")
    c = T.allocate([256], "float32", "wmma.accumulator")
"""


def load(name: str, shape: str = "16, 16, 16", layout: str = "row_major") -> str:
    return f'T.tvm_load_matrix_sync({name}, {shape}, 0, T.tvm_access_ptr(T.type_annotation("float16"), A.data, 0, 256, 1), 16, "{layout}")'


def store(shape: str = "16, 16, 16") -> str:
    return f'T.tvm_store_matrix_sync(c, {shape}, 0, T.tvm_access_ptr(T.type_annotation("float32"), C.data, 0, 256, 2), 16, "row_major")'


FILL = "T.tvm_fill_fragment(c, 16, 16, 16, 0, T.float32(0.0))"
PRODUCT = "T.tvm_mma_sync(c, 0, a, 0, b, 0, c, 0)"


def through(*calls: str) -> str:
    func = from_source(HEAD + "".join(f"    {call}\n" for call in calls))
    assert isinstance(func, PrimFunc)
    made = transform.InferFragment()(IRModule({"main": func}))["main"]
    assert isinstance(made, PrimFunc)
    return made.script()


def test_fragments_have_a_shape_and_those_of_operands_a_layout() -> None:
    text = [line.strip() for line in through(FILL, load("a"), load("b", layout="col_major"), PRODUCT, store()).splitlines()]
    for name, layout in (("a", "row_major"), ("b", "col_major")):
        at = text.index(f'T.attr({name}, "fragment_shape", "16, 16, 16")')
        assert text[at - 1].startswith(f"{name} = T.allocate([256]")
        assert text[at + 1] == f'T.attr({name}, "fragment_layout", "{layout}")'
    # It is stored row by row, and might be stored otherwise again.
    assert 'T.attr(c, "fragment_shape", "16, 16, 16")' in text and not any("(c, " in line and "layout" in line for line in text)


def test_a_function_without_fragments_stays() -> None:
    func = from_source('@T.prim_func\ndef main(A: T.Buffer((4,), "float32")):\n    A[0] = 1.0\n')
    assert isinstance(func, PrimFunc)
    assert transform.InferFragment()(IRModule({"main": func}))["main"] is func


@pytest.mark.parametrize(
    "calls, message",
    [
        ((load("a"), load("a", "32, 8, 16")), "a is a fragment of 16, 16, 16 and of 32, 8, 16"),
        ((load("b"), load("b", layout="col_major")), "b is loaded as row_major and as col_major"),
        ((FILL, store("32, 8, 16")), "c is a fragment of 16, 16, 16 and of 32, 8, 16"),
        ((load("a", "32, 8, 16"), FILL, PRODUCT), "a product takes c of 16, 16, 16 and a of 32, 8, 16"),
        ((load("a", "tx, 8, 16"),), "by its pointer and three constants"),
    ],
)
def test_calls_that_disagree(calls: tuple[str, ...], message: str) -> None:
    with pytest.raises(LoweringError, match=message):
        through(*calls)
