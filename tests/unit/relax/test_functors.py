"""Visitors, mutators and passes of users."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relax, topi
from tensorexpr.errors import DeclarationError, PassError, TypeMismatchError
from tensorexpr.ir import structural_equal
from tensorexpr.relax import DataflowBlockRewrite, PyExprMutator, PyExprVisitor, op
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.expr_functor import mutator, visitor
from tensorexpr.script import from_source

from . import programs
from .programs import expected, inputs

TEXT = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            a = R.add(x, x)
            b = R.multiply(a, x)
            R.output(b)
        if c:
            y = R.exp(b)
        else:
            t = R.tanh(b)
            y = R.negative(t)
        z = (y, b)
        w = z[0]
        return w
"""
MOD: Any = from_source(TEXT)
X = np.array([0.5, -1.0, 0.25, 2.0], "float32")


def agree(made: Any, result: Any) -> None:
    for choice in (True, False):
        np.testing.assert_allclose(Evaluator(made)("main", X, np.array(choice)), result(choice), rtol=1e-5)
        np.testing.assert_allclose(relax.VirtualMachine(relax.build(made))["main"](X, np.array(choice)).numpy(), result(choice), rtol=1e-5)
    assert structural_equal(from_source(made.script()), made)


def test_visitors_see_all_in_order() -> None:
    seen: list[str] = []

    @visitor
    class Lists(PyExprVisitor):
        def visit_call_(self, op: Any) -> None:
            seen.append(str(op.op))
            super().visit_call_(op)

        def visit_var_def_(self, var: Any) -> None:
            seen.append(f"{var.name_hint} =")

        def visit_if_(self, op: Any) -> None:
            seen.append("if")
            super().visit_if_(op)

    Lists().visit_expr(MOD["main"])
    assert seen == [
        "x =", "c =", "relax.add", "a =", "relax.multiply", "b =", "if", "relax.exp", "y =", "relax.tanh", "t =", "relax.negative", "y1 =",
        "y =", "z =", "w =",
    ]  # fmt: skip
    with pytest.raises(TypeMismatchError, match="not int"):
        Lists().visit_expr(3)
    with pytest.raises(TypeMismatchError, match=r"class of relax\.PyExprVisitor"):
        visitor(int)


def test_mutators_replace_calls() -> None:
    found: list[Any] = []

    @mutator
    class Rewrites(PyExprMutator):
        def visit_call_(self, op: Any) -> Any:
            call = self.visit_expr_post_order(op)
            if call.op == tvm.ir.Op.get("relax.add"):
                return relax.op.multiply(relax.op.negative(call.args[0]), relax.op.exp(call.args[1]))
            if call.op == tvm.ir.Op.get("relax.multiply"):
                found.append(self.lookup_binding(call.args[0]))
                return self.builder_.call_te(topi.multiply, *call.args)
            if call.op == tvm.ir.Op.get("relax.exp"):
                return relax.op.negative(self.builder_.emit(relax.op.tanh(call.args[0])))
            return call

    rewrites = Rewrites(MOD)
    func = rewrites.visit_expr(MOD["main"])
    rewrites.builder_.update_func(MOD.get_global_var("main"), func)
    made: Any = rewrites.builder_.get()
    assert str(found[0].op) == "relax.multiply" and MOD["main"].body.blocks[0].bindings[0].value.op == "relax.add"
    names = [str(b.value.op) for b in made["main"].body.blocks[0].bindings]
    assert names == ["relax.negative", "relax.exp", "relax.multiply", "relax.call_tir"]
    assert all(isinstance(b.var, relax.DataflowVar) for b in made["main"].body.blocks[0].bindings[:-1])
    agree(made, lambda choice: -np.tanh(-X * np.exp(X) * X))


def test_mutators_replace_variables() -> None:
    @mutator
    class Squares(PyExprMutator):
        def visit_var_binding_(self, binding: Any) -> None:
            if binding.var.name_hint != "a":
                super().visit_var_binding_(binding)
                return
            self.set_var_remap(binding.var.vid, self.builder_.emit(op.square(self.visit_expr(binding.value)), "sq"))

    made = MOD.clone()
    made.update_func("main", Squares().visit_expr(MOD["main"]))
    assert "sq" in made.script()
    agree(made, lambda choice: np.exp(4 * X**3) if choice else -np.tanh(4 * X**3))
    assert PyExprMutator().visit_expr(MOD["main"]) is MOD["main"]
    network: Any = programs.Network
    assert structural_equal(PyExprMutator(network).visit_expr(network["main"]), network["main"])


def test_other_hooks_of_mutators() -> None:
    @mutator
    class Constants(PyExprMutator):
        def visit_constant_(self, op: Any) -> Any:
            return relax.const(op.data.numpy() + 1)

        def visit_global_var_(self, op: Any) -> Any:
            return self.builder_.add_func(MOD["main"], "other")

        def visit_var_def_(self, var: Any) -> Any:
            return self.with_struct_info(var, var.struct_info)

    x = relax.Var("x", relax.TensorStructInfo((4,)))
    made = Constants().visit_expr(relax.Function((x,), op.add(x, 1.0)))
    assert "R.const(2.0" in made.script()
    scoped = Constants().visit_with_new_scope(op.add(op.exp(x), x))
    assert isinstance(scoped, relax.SeqExpr) and len(scoped.blocks[0].bindings) == 1


def test_passes_of_users() -> None:
    transform: Any = tvm.ir.transform

    @transform.module_pass(opt_level=0, name="Twice")
    class Twice:
        def __init__(self, op_name: str) -> None:
            self.op_name = op_name

        def transform_module(self, mod: Any, ctx: Any) -> Any:
            made = mod.clone()
            name = self.op_name

            @mutator
            class Rewrites(PyExprMutator):
                def visit_call_(self, op: Any) -> Any:
                    call = self.visit_expr_post_order(op)
                    return relax.op.add(call, call) if call.op == name else call

            for var, func in mod.functions.items():
                if isinstance(func, relax.Function):
                    made.update_func(var, Rewrites(mod).visit_expr(func))
            return made

    twice: Any = Twice
    made = tvm.transform.Sequential([twice("relax.tanh"), twice("relax.exp")])(MOD)
    agree(made, lambda choice: 2 * np.exp(2 * X * X) if choice else -2 * np.tanh(2 * X * X))

    @relax.transform.function_pass(opt_level=0)
    class Names:
        def transform_function(self, func: Any, mod: Any, ctx: Any) -> Any:
            return func.with_attr("seen", True)

    names: Any = Names
    assert names()(MOD)["main"].attrs["seen"]

    @relax.transform.dataflowblock_pass(opt_level=0)
    class Drops:
        def transform_dataflowblock(self, block: Any, mod: Any, ctx: Any) -> Any:
            last = block.bindings[-1]
            return relax.DataflowBlock((relax.VarBinding(last.var, op.negative(mod["main"].params[0])),))

    drops: Any = Drops
    agree(drops()(MOD), lambda choice: np.exp(-X) if choice else -np.tanh(-X))
    lost = relax.transform.dataflowblock_pass(lambda block, mod, ctx: relax.DataflowBlock(block.bindings[:1]), opt_level=0, name="lost")
    with pytest.raises(PassError, match="pass lost lost b, which"):
        lost(MOD)
    with pytest.raises(PassError, match="returned NoneType for a dataflow block"):
        relax.transform.dataflowblock_pass(lambda block, mod, ctx: None, opt_level=0, name="none")(MOD)


def test_blocks_changed_step_by_step() -> None:
    block = MOD["main"].body.blocks[0]
    a, x = block.bindings[0].var, MOD["main"].params[0]
    rewrite = DataflowBlockRewrite(block, MOD["main"])
    rewrite.add(op.exp(a), "a", is_dfvar=True)
    rewrite.add(relax.VarBinding(relax.Var("k", x.struct_info), op.exp(a)))
    assert [b.var.name_hint for b in rewrite.mutated_dfb().bindings] == ["a", "b", "a1", "k"]
    with pytest.raises(DeclarationError, match="variable a is used by b, a1, k"):
        rewrite.remove_unused(a)
    rewrite.replace_all_uses(a, x)
    rewrite.remove_unused(a)
    with pytest.raises(DeclarationError, match="no variable a"):
        rewrite.remove_unused(a)
    rewrite.remove_unused(a, allow_undef=True)
    rewrite.remove_all_unused()
    assert [b.var.name_hint for b in rewrite.mutated_dfb().bindings] == ["b"]
    assert rewrite.mutated_root_fn().body.blocks[0] is rewrite.mutated_dfb()
    agree(rewrite.mutate_irmodule(MOD), lambda choice: np.exp(X * X) if choice else -np.tanh(X * X))
    with pytest.raises(DeclarationError, match="none of the blocks"):
        DataflowBlockRewrite(block, rewrite.mutated_root_fn())


def test_mutated_networks_mean_what_they_have_meant() -> None:
    network: Any = programs.Network

    @mutator
    class Legalises(PyExprMutator):
        def visit_call_(self, op: Any) -> Any:
            call = self.visit_expr_post_order(op)
            return self.builder_.call_te(topi.concatenate, call.args[0], 1) if call.op == "relax.concat" else call

    legalises = Legalises(network)
    for var, func in network.functions.items():
        if isinstance(func, relax.Function):
            legalises.builder_.update_func(var, legalises.visit_expr(func))
    given = inputs()
    np.testing.assert_allclose(Evaluator(legalises.builder_.get())("main", *given), expected(*given), rtol=1e-5)
