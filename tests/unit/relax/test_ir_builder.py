"""Functions of graphs by the words of a builder."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr import ir, relax
from tensorexpr.errors import DeclarationError
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.ir_builder import FunctionFrame
from tensorexpr.script import from_source
from tensorexpr.script.ir_builder import IRBuilder
from tensorexpr.script.ir_builder import ir as I
from tensorexpr.script.ir_builder import relax as words
from tensorexpr.script.ir_builder import tir as T

R: Any = words
VECTOR = relax.TensorStructInfo((4,), "float32")

EXPECTED = """
@I.ir_module
class Module:
    I.module_attrs({"version": 2})
    @R.function(private=True)
    def square(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return R.multiply(x, x)

    @R.function
    def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((4,), "float32"):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            y = R.add(x, x)
            z = R.exp(y)
            R.output(z)
        s = Module.square(z)
        if c:
            r = R.negative(s)
        else:
            r = R.nn.relu(s)
        return r
"""


def test_a_module_is_what_its_script_is() -> None:
    with IRBuilder() as ib, I.ir_module():
        I.module_attrs({"version": 2})
        with R.function(is_private=True):
            R.func_name("square")
            x = R.arg("x", R.Tensor((4,), "float32"))
            R.func_ret_value(R.multiply(x, x))
        with R.function():
            R.func_name("main")
            R.func_attr({"num_input": 1})
            x, c = R.arg("x", VECTOR), R.arg("c", R.Tensor((), "bool"))
            with R.dataflow() as block:
                z = R.emit(R.exp(IRBuilder.name("y", R.emit(R.add(x, x)))))
                R.output(z)
            (z,) = block.output_vars
            s = R.emit(ir.GlobalVar("square")(z))
            with R.If(c) as choice:
                with R.Then():
                    R.emit(R.negative(s))
                with R.Else():
                    R.emit(R.nn.relu(s))
            R.func_ret_value(choice.var)
    made = ib.get()
    ir.assert_structural_equal(made, from_source(EXPECTED))
    assert made["main"].body.blocks[0].bindings[0].var.name_hint == "y"
    assert relax.analysis.well_formed(made)
    given = np.array([1, -1, 0, 2], "float32")
    np.testing.assert_allclose(Evaluator(made)("main", given, np.array(True)), -(np.exp(2 * given) ** 2), rtol=1e-5)


def test_casts_and_bindings_of_ones_own() -> None:
    with IRBuilder() as ib, R.function(is_pure=False):
        R.func_name("f")
        x = R.arg("x", R.Tensor("float32", ndim=1))
        n = T.int64()
        cast = R.emit_match_cast(x, R.Tensor((n,), "float32"))
        v = relax.Var("v", relax.TensorStructInfo((n,), "float32"))
        assert R.emit_var_binding(relax.VarBinding(v, R.add(cast, cast))) is v
        R.func_ret_struct_info(R.Tensor("float32", ndim=1))
        R.func_ret_value(R.emit(R.exp(v), R.Tensor("float32", ndim=1)))
    func = ib.get()
    assert not func.is_pure and func.ret_struct_info.ndim == 1 and func.ret_struct_info.shape is None
    np.testing.assert_allclose(Evaluator(ir.IRModule({"f": func}))("f", np.array([0.5], "float32")), [np.exp(1)], rtol=1e-6)


def test_functions_of_loops_stand_beside() -> None:
    with IRBuilder() as ib, I.ir_module():
        with T.prim_func():
            T.func_name("twice")
            a, b = T.arg("a", T.Buffer((4,), "float32")), T.arg("b", T.Buffer((4,), "float32"))
            with T.serial(4) as i:
                T.buffer_store(b, a[i] * 2.0, [i])
        with R.function():
            R.func_name("main")
            x = R.arg("x", VECTOR)
            R.func_ret_value(R.call_tir(ir.GlobalVar("twice"), (x,), out_sinfo=VECTOR))
    np.testing.assert_array_equal(relax.VirtualMachine(relax.build(ib.get()))["main"](np.ones(4, "float32")).numpy(), [2] * 4)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: R.emit(relax.const(1.0)), r"R\.emit stands outside of `with R\.function\(\):`"),
        (lambda: R.function().__enter__() and R.output(), r"R\.output stands outside of `with R\.dataflow\(\):`"),
        (lambda: R.function().__enter__() and R.Then().__enter__().__exit__(None, None, None), "this one emits nothing"),
        (lambda: R.function().__enter__() and R.If(relax.const(True)).__enter__().__exit__(None, None, None), "R.If has two branches"),
    ],
)
def test_words_in_the_wrong_place(wrong: Any, said: str) -> None:
    with pytest.raises(DeclarationError, match=said), IRBuilder():
        wrong()


def test_functions_have_one_result() -> None:
    with pytest.raises(DeclarationError, match="function 'f' has no result"), IRBuilder(), R.function() as frame:
        R.func_name("f")
    assert isinstance(frame, FunctionFrame)
    with pytest.raises(DeclarationError, match="has its result already"), IRBuilder(), R.function():
        R.func_ret_value(relax.const(1.0))
        R.func_ret_value(relax.const(1.0))


def test_functions_of_a_block_builder_may_be_made_inside_others() -> None:
    bb = relax.BlockBuilder()
    x, y = relax.Var("x", VECTOR), relax.Var("y", VECTOR)
    with bb.function("main", [x]):
        first = bb.emit(relax.op.exp(x))
        with bb.function("square", [y]):
            callee = bb.emit_func_output(bb.emit(relax.op.multiply(y, y)))
        with bb.dataflow():
            out = bb.emit_output(callee(first))
        bb.emit_func_output(out)
    assert relax.analysis.well_formed(bb.get())
    np.testing.assert_allclose(Evaluator(bb.get())("main", np.ones(4, "float32")), np.exp(2) * np.ones(4), rtol=1e-6)


def test_words_of_scripts_are_those_of_a_builder() -> None:
    """R of scripts inside of a builder: programs import one of the two."""
    from tensorexpr.script import relax as module

    script: Any = module
    with IRBuilder() as builder, R.function():
        script.func_name("main")
        x = script.arg("x", script.Tensor((4,), "float32"))
        with script.dataflow() as block:
            script.output(script.emit(script.add(x, x)))
        script.func_ret_value(block.output_vars[0])
    assert builder.get().attrs["global_symbol"] == "main"
    with pytest.raises(AttributeError):
        script.func_name("main")
