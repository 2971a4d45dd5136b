"""Programs under decorators. Their annotations are words of TVMScript, which no type checker knows.

Python evaluates them here, as in most programs: there is no `from __future__ import annotations`.
"""

# mypy: disable-error-code="valid-type, no-untyped-def, name-defined"

from typing import Any

import numpy as np

import tensorexpr as tvm
from tensorexpr.script import ir as I
from tensorexpr.script import tir as T

SIZE = 16


@T.prim_func
def product(a: T.handle, B: T.Buffer((SIZE, SIZE), "float32"), C: T.Buffer[(16, 16), "float32"]):  # noqa: F821, a dtype
    """C = A @ B."""
    T.func_attr({"tir.noalias": True})
    A = T.match_buffer(a, [SIZE, SIZE], "float32")
    for v_i, v_j, v_k in T.grid(SIZE, SIZE, SIZE):  # a comment
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [v_i, v_j, v_k])
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@I.ir_module
class Both:
    """Two functions."""

    I.module_attrs({"version": 3})

    @T.prim_func
    def first(A: T.Buffer(SIZE, "float32")):
        T.func_attr({"global_symbol": "other"})
        for i in T.parallel(SIZE):
            A[i] = A[i] * 2.0

    @T.prim_func(private=True)
    def second(n: T.int32, A: T.Buffer((8,), "int32")):
        A[0] = n


PRODUCT: Any = product
BOTH: Any = Both


def with_the_longer_name() -> Any:
    """A module under @tvm.script.ir_module."""

    @tvm.script.ir_module
    class Module:
        @T.prim_func
        def main(A: T.Buffer((4,), "float32")):
            A[0] = 1.0

    return Module


def scale(n: int, sizes: tuple[int, ...], dtype: str) -> Any:
    """A function with constants of three scopes around it."""
    value = np.float32(2.5)

    @T.prim_func
    def made(A: T.Buffer((n, sizes[1]), dtype)):
        for i, j in T.grid(n, sizes[1]):
            A[i, j] = A[i, j] * value + SIZE

    return made


def store_of(n: int, value: int) -> Any:
    """A module with constants of the function around it."""

    @I.ir_module
    class Module:
        @T.prim_func
        def main(A: T.Buffer((n,), "int32")):
            A[0] = value

    return Module


def unknown_name() -> Any:
    """A function that mentions what is not there."""

    @T.prim_func
    def wrong(A: T.Buffer((4,), "float32")):
        A[0] = B[0]  # noqa: F821

    return wrong


def calls_python() -> Any:
    """A function that calls one of Python, which raises."""

    def helper(x: int) -> int:
        raise ValueError("of no use")

    @T.prim_func
    def wrong(A: T.Buffer((4,), "float32")):
        A[0] = helper(3)

    return wrong
