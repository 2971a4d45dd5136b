"""Arrays of constants, extents that nobody knows, statements about tensors, and what modules say of devices."""

# mypy: disable-error-code="valid-type, no-untyped-def, name-defined, attr-defined, operator, arg-type, type-arg, union-attr"

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.errors import CodegenError, DeclarationError
from tensorexpr.script import ir as I
from tensorexpr.script import tir as T
from tensorexpr.tir.interpreter import InterpreterError, interpret

VALUES = [1.0, 2.5, float("inf"), -4.0]


@I.ir_module
class Reversed:
    I.module_attrs({"a": 3})
    I.module_global_infos({"vdevice": [I.vdevice("llvm"), I.vdevice("cuda", 1)], "other": [I.dummy_global_info()]})

    @T.prim_func
    def reverse(A: T.Buffer((4,), "float32")):
        data = T.allocate_const([1.0, 2.5, float("inf"), -4.0], "float32", [4])
        B = T.decl_buffer((4,), "float32", data=data)
        for i in T.parallel(4):
            A[i] = B[3 - i]


def test_constants_are_read_by_the_interpreter_and_by_compiled_code() -> None:
    func = Reversed["reverse"]
    runs: list[Any] = [lambda a: interpret(func, [a]), tvm.build(func)]
    for run in runs:
        found = np.zeros(4, "float32")
        run(found)
        np.testing.assert_array_equal(found, VALUES[::-1])
    node = func.body
    assert isinstance(node, tir.AllocateConst) and node.irmod_storage_idx is None and node.data is not None
    np.testing.assert_array_equal(node.data.numpy(), VALUES)


def test_constants_and_global_infos_are_printed_read_compared_and_pickled() -> None:
    again = tvm.script.from_source(Reversed.script())
    tvm.ir.assert_structural_equal(Reversed, again)
    assert tvm.ir.structural_hash(Reversed) == tvm.ir.structural_hash(again)
    copy = pickle.loads(pickle.dumps(Reversed))
    assert tvm.ir.structural_equal(copy, Reversed) and copy.global_infos == Reversed.global_infos
    other = tir.AllocateConst(tir.Var("p", "handle"), "float32", [4], [0.0] * 4, tir.Evaluate(0))
    same = tir.AllocateConst(tir.Var("q", "handle"), "float32", [4], np.zeros(4), tir.Evaluate(0))
    assert tvm.ir.structural_equal(other, same)
    assert not tvm.ir.structural_equal(other, tir.AllocateConst(tir.Var("p", "handle"), "float32", [4], VALUES, tir.Evaluate(0)))


def test_constants_are_not_written() -> None:
    @T.prim_func
    def wrong(A: T.Buffer((1,), "float32")):
        data = T.allocate_const([1.0], "float32", [1])
        B = T.decl_buffer((1,), "float32", data=data)
        B[0] = A[0]

    with pytest.raises(CodegenError, match="the constant data is written"):
        tvm.build(wrong)
    with pytest.raises(InterpreterError, match="read-only"):
        interpret(wrong, [np.ones(1, "float32")])
    with pytest.raises(DeclarationError, match="3 values are no array"):
        tir.AllocateConst(tir.Var("p", "handle"), "float32", [4], [1, 2, 3], tir.Evaluate(0))


def test_tensors_in_statements() -> None:
    tensor = te.placeholder((4,), name="A")
    assert isinstance(tensor, tir.DataProducer)
    assert str(tir.ProducerStore(tensor, tir.const(1.0, "float32"), [0])) == "A[0] = T.float32(1.0)"
    realize = tir.ProducerRealize(tensor, [tir.Range(0, 4)], True, tir.Evaluate(0), "shared")
    assert str(realize).splitlines()[0] == 'with T.realize(A[0:4], "shared"):'


def test_unknown_extents_print_and_are_one() -> None:
    assert str(tir.Any()) == "T.Any()" and tir.Any().dtype == "int32" and tir.Any() is tir.Any()


def test_modules_know_devices_and_other_names() -> None:
    first, second = Reversed.global_infos["vdevice"]
    assert isinstance(first, tvm.ir.VDevice) and str(first.target.kind) == "llvm"
    assert isinstance(second, tvm.ir.VDevice) and (second.vdevice_id, second.memory_scope) == (1, "global")
    changed = Reversed.clone()
    changed.update_global_info("vdevice", [first])
    assert len(changed.global_infos["vdevice"]) == 1 and len(Reversed.global_infos["vdevice"]) == 2
    assert not tvm.ir.structural_equal(changed, Reversed)
    with pytest.raises(DeclarationError, match="global infos are lists"):
        changed.update_global_info("vdevice", [3])
    with pytest.raises(ValueError, match="the module defines no type"):
        changed.get_type("List")


def test_functions_get_other_names_where_they_are_called() -> None:
    @I.ir_module
    class Two:
        @T.prim_func
        def main(A: T.Buffer((1,), "float32")):
            Two.inner(A.data)

        @T.prim_func(private=True)
        def inner(data: T.handle("float32")):
            A = T.Buffer((1,), data=data)
            A[0] = T.float32(1)

    renamed = Two.replace_global_vars({"inner": "helper", "main": "entry"})
    assert [var.name_hint for var in renamed.get_global_vars()] == ["entry", "helper"]
    assert renamed["entry"].attrs["global_symbol"] == "entry" and "Module.helper(A.data)" in renamed.script()
    with pytest.raises(DeclarationError, match="two functions would be called 'main'"):
        Two.replace_global_vars({"inner": "main"})


def test_calls_of_devices_take_their_arguments_by_name() -> None:
    a, b = tir.Var("a", "int8x4"), tir.Var("b", "int8x4")
    assert tir.dp4a(a, vec2=b) is tir.dp4a(a, b, 0)
    assert str(tir.call_cpacked("f", 1)) == 'T.call_cpacked("f", 1)'
    with pytest.raises(TypeError, match="dp4a takes vec1, vec2, acc, not other"):
        tir.dp4a(a, other=b)
    assert tir.atan2(x1=tir.Var("x", "float32"), x2=1.0).op == "tir.atan2"
    assert (tir.Var("x") != 3).__class__ is tir.expr.NotEqualOp
    assert isinstance(tir.const(3), tir.expr.ConstExpr) and tir.expr.IntImmEnum(3).asobject() is tir.const(3)
