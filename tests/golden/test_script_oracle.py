"""Programs as TVM 0.19 prints them, made by running it on the declarations below: they are read as the same programs.

The declarations of `DECLARED` are the ones that were given to it, so the text is also what ours prints.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tensorexpr
from tensorexpr import te, tir
from tensorexpr.script import parse
from tensorexpr.te.tensor import Tensor
from tensorexpr.tir.structural_difference import assert_structural_equal

FOLDER = Path(__file__).parent / "script"
NAMES = sorted(path.stem for path in FOLDER.glob("tvm_*.py"))


def matmul() -> list[Tensor]:
    """C = A @ B."""
    a, b, k = te.placeholder((128, 128), name="A"), te.placeholder((128, 128), name="B"), te.reduce_axis((0, 128), name="k")
    return [a, b, te.compute((128, 128), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")]


def softmax() -> list[Tensor]:
    """Over the rows of a matrix."""
    a, k, k2 = te.placeholder((8, 16), name="A"), te.reduce_axis((0, 16), name="k"), te.reduce_axis((0, 16), name="k2")
    mx = te.compute((8,), lambda i: te.max(a[i, k], axis=k), name="mx")
    ex = te.compute((8, 16), lambda i, j: te.exp(a[i, j] - mx[i]), name="ex")
    s = te.compute((8,), lambda i: te.sum(ex[i, k2], axis=k2), name="s")
    return [a, te.compute((8, 16), lambda i, j: ex[i, j] / s[i], name="O")]


def convolution() -> list[Tensor]:
    """A padded convolution and what is positive of it."""
    x, w = te.placeholder((2, 8, 8), name="X"), te.placeholder((4, 2, 3, 3), name="W")
    zero = te.const(0.0, "float32")

    def padded(c: tir.Var, i: tir.Var, j: tir.Var) -> tir.PrimExpr:
        return te.if_then_else(te.all(i >= 1, i < 9, j >= 1, j < 9), x[c, i - 1, j - 1], zero)

    p = te.compute((2, 10, 10), padded, name="P")
    rc, ri, rj = (te.reduce_axis((0, extent), name=name) for name, extent in (("rc", 2), ("ri", 3), ("rj", 3)))
    y = te.compute((4, 8, 8), lambda o, i, j: te.sum(p[rc, i + ri, j + rj] * w[o, rc, ri, rj], axis=[rc, ri, rj]), name="Y")
    return [x, w, te.compute((4, 8, 8), lambda o, i, j: te.max(y[o, i, j], zero), name="R")]


def symbolic() -> list[Tensor]:
    """Sizes of both kinds."""
    n, m = te.var("n"), te.size_var("m")
    a = te.placeholder((n, m), name="A")
    return [a, te.compute((n, m), lambda i, j: a[i, j] * 2.0 + te.const(1, "float32"), name="B")]


def argmax() -> list[Tensor]:
    """A reduction of pairs."""
    reducer = te.comm_reducer(
        lambda x, y: (tir.Select(x[1] >= y[1], x[0], y[0]), tir.Select(x[1] >= y[1], x[1], y[1])),
        lambda a, b: (tir.const(-1, a), te.min_value(b)),
        name="argmax",
    )
    idx, val, k = te.placeholder((8, 16), "int32", name="idx"), te.placeholder((8, 16), name="val"), te.reduce_axis((0, 16), name="k")
    return [idx, val, *te.compute((8,), lambda i: reducer((idx[i, k], val[i, k]), axis=k), name="T")]


DECLARED: dict[str, Callable[[], list[Tensor]]] = {
    "tvm_matmul": matmul,
    "tvm_softmax": softmax,
    "tvm_conv": convolution,
    "tvm_symbolic": symbolic,
    "tvm_argmax": argmax,
}


def text_of(name: str) -> str:
    return (FOLDER / f"{name}.py").read_text().rstrip("\n")


def test_all_programs_are_there() -> None:
    assert len(NAMES) == 11 and set(DECLARED) <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_what_tvm_prints_is_read_and_printed_alike(name: str) -> None:
    text = text_of(name)
    assert parse(text).script() == text.replace("from tvm.script", "from tensorexpr.script")


@pytest.mark.parametrize("name", DECLARED)
def test_it_is_what_we_make_of_the_same_declaration(name: str) -> None:
    assert_structural_equal(parse(text_of(name)), te.create_prim_func(DECLARED[name]()))


@pytest.mark.parametrize("name", ["tvm_tiled", "tvm_cached", "tvm_scheduled"])
def test_products_that_tvm_scheduled_run(name: str) -> None:
    size = 128 if name == "tvm_scheduled" else 64
    rng = np.random.default_rng(0)
    a, b = (rng.random((size, size), dtype=np.float32) for _ in range(2))
    c = np.zeros((size, size), np.float32)
    tensorexpr.build(parse(text_of(name)))(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4)


def test_a_softmax_that_tvm_lowered_runs() -> None:
    """Its intermediates share memory under two views."""
    a, out = np.random.default_rng(0).random((8, 16), dtype=np.float32), np.zeros((8, 16), np.float32)
    tensorexpr.build(parse(text_of("tvm_softmax_lowered")))(a, out)
    raised = np.exp(a - a.max(1, keepdims=True))
    np.testing.assert_allclose(out, raised / raised.sum(1, keepdims=True), rtol=1e-5)
