"""Scripts whose words come from `script.parser`, as programs of 2023 import them."""

from __future__ import annotations

import tensorexpr as tvm
from tensorexpr import script
from tensorexpr.script.parser import ir as I
from tensorexpr.script.parser import relax as R
from tensorexpr.script.parser import tir as T


@I.ir_module
class Doubled:
    @T.prim_func
    def double(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")) -> None:
        for i in range(4):
            with T.block("B"):
                v = T.axis.spatial(4, i)
                b[v] = a[v] * T.float32(2)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Doubled
        return R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((4,), "float32"))


def test_words_from_the_parser_are_the_same() -> None:
    assert R.Tensor is script.relax.Tensor and T.prim_func is script.tir.prim_func and I.ir_module is script.ir_module
    tvm.ir.assert_structural_equal(Doubled, script.from_source(Doubled.script()))


def test_a_function_says_which_names_are_from_outside() -> None:
    factor = 2.0

    @T.prim_func
    def scaled(a: T.Buffer((4,), "float32")) -> None:
        nonlocal factor
        for i in range(4):
            a[i] = a[i] * T.float32(factor)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        nonlocal factor
        return R.multiply(x, R.const(factor, "float32"))

    assert "T.float32(2.0)" in scaled.script() and "2.0" in main.script()
