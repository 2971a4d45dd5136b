"""Scripts whose words come from `script.parser`, as programs of 2023 import them."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path

import tensorexpr as tvm
from tensorexpr import script
from tensorexpr.script import parser

PROGRAM = """
from tensorexpr.script.parser import ir as I, relax as R, tir as T

factor = 2.0


@I.ir_module
class Doubled:
    @T.prim_func
    def double(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("B"):
                v = T.axis.spatial(4, i)
                b[v] = a[v] * T.float32(2)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Doubled
        return R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((4,), "float32"))


def inner():
    factor = 3.0

    @T.prim_func
    def scaled(a: T.Buffer((4,), "float32")):
        nonlocal factor
        for i in range(4):
            a[i] = a[i] * T.float32(factor)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        nonlocal factor
        return R.multiply(x, R.const(factor, "float32"))

    return scaled, main
"""


def test_programs_that_take_their_words_from_the_parser(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    spec = importlib.util.spec_from_file_location("program_of_the_parser", tmp_path / "program.py")
    assert spec is not None and spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    tvm.ir.assert_structural_equal(program.Doubled, script.from_source(program.Doubled.script()))
    scaled, main = program.inner()
    assert "T.float32(3.0)" in scaled.script() and "3.0" in main.script()


def test_the_words_are_the_same() -> None:
    for name in ("relax", "tir", "ir"):
        assert importlib.import_module(f"tensorexpr.script.parser.{name}") is getattr(script, name) is getattr(parser, name)


def test_types_by_the_names_of_their_classes() -> None:
    entry = importlib.import_module("tensorexpr.script.parser.relax.entry")
    R = script.relax
    assert isinstance(R.Object, entry.StructInfoProxy) and not isinstance(R.add, entry.StructInfoProxy)
    assert entry.TensorProxy is entry.Tensor is R.Tensor and R.Tensor.__name__ == "Tensor"
    assert R.Shape.as_struct_info() == tvm.relax.ShapeStructInfo(ndim=-1)


def test_modules_of_one_room_by_their_other_paths() -> None:
    passes = importlib.import_module("tensorexpr.relax.transform.transform")
    patterns = importlib.import_module("tensorexpr.relax.dpl.pattern")
    assert passes.FuseOps is tvm.relax.transform.FuseOps and patterns.is_op is tvm.relax.dpl.is_op
