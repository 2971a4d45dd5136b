"""Functions for known sizes, and modules: their attributes and functions."""

from __future__ import annotations

import pytest

import tensorexpr
from tensorexpr import te, tir
from tensorexpr.errors import DeclarationError
from tensorexpr.ir.module import IRModule
from tensorexpr.tir.verify import verify_well_formed
from tests import programs
from tests.block_programs import symbolic


def scaled() -> tir.PrimFunc:
    a, alpha = te.placeholder((8,), name="A"), te.var("alpha", "float32")
    return te.create_prim_func([alpha, a, te.compute((8,), lambda i: a[i] * alpha, name="B")])


def test_a_scalar_becomes_a_number_and_is_no_parameter_any_more() -> None:
    func = scaled()
    new = func.specialize({func.params[0]: 2.0})
    assert [p.name for p in new.params] == ["var_A", "var_B"]
    assert "B[v_i] = A[v_i] * T.float32(2.0)" in new.script()
    verify_well_formed(new)


def test_a_buffer_gives_its_sizes() -> None:
    func = te.create_prim_func(symbolic())
    new = func.specialize({func.params[0]: tir.decl_buffer((3, 5), name="A")})
    assert 'def main(A: T.Buffer((3, 5), "float32"), C: T.Buffer((3, 5), "float32")):' in new.script()
    assert "T.grid(3, 5)" in new.script()
    verify_well_formed(new)


def test_a_buffer_may_leave_sizes_open() -> None:
    func = te.create_prim_func(symbolic())
    n = te.var("rows")
    new = func.specialize({func.params[0]: tir.decl_buffer((n, 5), name="A")})
    assert "C = T.match_buffer(var_C, (rows, 5))" in new.script()


def test_what_does_not_fit() -> None:
    func = te.create_prim_func(symbolic())
    with pytest.raises(DeclarationError, match=r"specialize: x is no parameter of the function; its parameters: var_A, var_C"):
        func.specialize({tir.Var("x"): 1})
    with pytest.raises(DeclarationError, match=r"parameter var_A is a buffer; give it a tir.Buffer"):
        func.specialize({func.params[0]: 3})
    with pytest.raises(DeclarationError, match="dtype, dimensions, strides and scope must be the same"):
        func.specialize({func.params[0]: tir.decl_buffer((3,), name="A")})
    with pytest.raises(DeclarationError, match="n would be both 3 and 4"):
        func.specialize({func.params[0]: tir.decl_buffer((3, 5), name="A"), func.params[1]: tir.decl_buffer((4, 5), name="C")})
    fixed = te.create_prim_func(programs.matmul())
    with pytest.raises(DeclarationError, match="specialize: A has 16 where Z has 8"):
        fixed.specialize({fixed.params[0]: tir.decl_buffer((8, 16), name="Z")})
    with pytest.raises(DeclarationError, match=r"parameter alpha is float32, not T\.int64\(2\) \(int64\)"):
        scaled_func = scaled()
        scaled_func.specialize({scaled_func.params[0]: tir.const(2, "int64")})


def test_attributes_of_functions() -> None:
    func = scaled()
    assert dict(func.with_attrs({"a": 1}).attrs) == {"a": 1}
    assert func.with_attrs(dict(func.attrs)) is func
    assert "global_symbol" not in func.without_attr("global_symbol").attrs
    assert func.with_body(func.body) is func


def test_modules() -> None:
    func = scaled()
    mod = IRModule.from_expr(func.with_attr("global_symbol", "linear"))
    assert IRModule.from_expr(mod) is mod
    assert mod.get_global_var("linear").name_hint == "linear"
    mod.update({"other": func})
    mod.update_func(mod.get_global_var("other"), func.with_attr("x", 1))
    assert [(var.name_hint, f.attrs.get("x")) for var, f in mod.functions_items()] == [("linear", None), ("other", 1)]
    assert mod.functions.items()[0][0].name_hint == "linear" and dict(mod.functions.items()) == dict(mod.functions)
    marked = mod.with_attr("a", 1).with_attrs({"b": 2})
    assert (marked.get_attr("a"), marked.get_attr("b"), mod.get_attr("a")) == (1, 2, None)
    assert marked.without_attr("a").attrs.keys() == {"b"}
    assert tensorexpr.ir.IRModule is IRModule


def test_structural_assertions_say_where() -> None:
    left, right = te.create_prim_func(programs.matmul()), te.create_prim_func(programs.matmul())
    tensorexpr.ir.assert_structural_equal(left, right)
    assert tensorexpr.ir.structural_equal(left, right)
    assert tensorexpr.ir.structural_hash(left) == tensorexpr.ir.structural_hash(right)

    def spoil(node: tir.rewriting.Node) -> tir.rewriting.Node | None:
        return node.a - node.b if isinstance(node, tir.Add) and node.dtype == "float32" else None

    other = right.with_body(tir.rewriting.post_order_rewrite(right.body, spoil))
    with pytest.raises(ValueError, match=r"(?s)lhs: C\[v_i, v_j\] \+ A.*rhs: C\[v_i, v_j\] - A.*in lhs: C\[v_i, v_j\] = "):
        tensorexpr.ir.assert_structural_equal(left, other)


def test_free_variables_may_stand_for_each_other() -> None:
    x, y = tir.Var("x"), tir.Var("y")
    tensorexpr.ir.assert_structural_equal(x + 1, y + 1, map_free_vars=True)
    with pytest.raises(ValueError, match=r"(?s)lhs: x.*rhs: y"):
        tensorexpr.ir.assert_structural_equal(x + 1, y + 1)
