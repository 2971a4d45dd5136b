"""What calls of operators become: functions with extents of int64, numbers among their operands, and no more arguments than they read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr import build, relax, topi
from tensorexpr.errors import ArgumentError, DeclarationError
from tensorexpr.lower import lower
from tensorexpr.relax import op
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.tensor_function import plain_tensors
from tensorexpr.relax.transform import AnnotateTIROpPattern, CanonicalizeBindings, FuseOps, FuseTIR, LegalizeOps, RemoveUnusedParameters
from tensorexpr.spaces import default_schedule
from tensorexpr.target import Target
from tensorexpr.te.from_prim_func import tensors_of
from tensorexpr.tir.expr import IntImm, Var
from tensorexpr.tir.function import PrimFunc

from . import structure_programs

programs: Any = structure_programs
N = Var("n", "int64")


def functions(mod: Any) -> dict[str, PrimFunc]:
    """The tensor functions of a module."""
    return {var.name_hint: func for var, func in mod.functions_items() if isinstance(func, PrimFunc)}


def of_one_call(make: Any, *infos: Any, legalized: bool = True) -> Any:
    """A module of one call."""
    params = [relax.Var(f"x{n}", info) for n, info in enumerate(infos)]
    bb = relax.BlockBuilder()
    with bb.function("main", params):
        bb.emit_func_output(bb.emit(make(*params)))
    return LegalizeOps()(bb.get()) if legalized else bb.get()


def tensor(*shape: Any) -> relax.TensorStructInfo:
    return relax.TensorStructInfo(shape, "float32")


def test_functions_count_in_int64_and_their_kernels_in_int32() -> None:
    (func,) = functions(of_one_call(lambda x, y: op.concat([x, y], 0), tensor(2, 5), tensor(3, 5))).values()
    assert "T.grid(T.int64(5), T.int64(5))" in func.script() and "T.grid(5" not in func.script()
    assert {extent.dtype for one in plain_tensors(func) for extent in one.shape} == {"int32"}


def test_a_function_that_is_read_from_blocks_has_the_same_kernel() -> None:
    (func,) = functions(of_one_call(op.matmul, tensor(4, 24), tensor(24, 32))).values()
    target, tensors = Target("llvm -mcpu=core-avx2"), tensors_of(func)
    assert tensors[0].op is not plain_tensors(func)[0].op
    # The blocks count in int64: what is proved to fit is narrowed when they are lowered.
    made = [build(lower(default_schedule(given, target), given, "f"), target=target) for given in (tensors, plain_tensors(func))]
    assert made[0].get_source() == made[1].get_source()


@pytest.mark.parametrize(
    ("make", "reads"),
    [(op.zeros_like, 0), (lambda x: op.full_like(x, relax.const(2.0)), 0), (op.flatten, 1), (lambda x: op.broadcast_to(x, (2, N, 3)), 1)],
)
def test_functions_take_what_they_read_and_know_extents_from_what_they_write(make: Any, reads: int) -> None:
    plain = of_one_call(make, tensor(N, 3), legalized=False)
    mod = LegalizeOps()(plain)
    (func,) = functions(mod).values()
    assert len(func.params) == reads + 1 and plain_tensors(func)
    x = np.ones((2, 3), "float32")
    np.testing.assert_array_equal(relax.VirtualMachine(relax.build(mod))["main"](x).numpy(), Evaluator(plain)("main", x))


def test_a_group_gets_the_symbols_that_only_a_result_tells() -> None:
    x = relax.Var("x", tensor(3))
    y = relax.Var("y", tensor(N, 3))
    bb = relax.BlockBuilder()
    with bb.function("main", [x, y]):
        with bb.dataflow():
            rows = bb.emit(op.broadcast_to(x, (N, 3)))
            out = bb.emit_output(op.add(op.multiply(rows, rows), y))
        bb.emit_func_output(out)
    given = np.arange(3, dtype="float32"), np.ones((2, 3), "float32")
    np.testing.assert_array_equal(relax.VirtualMachine(relax.build(bb.get()))["main"](*given).numpy(), given[0] ** 2 + given[1])


def test_numbers_are_operands() -> None:
    x = np.linspace(-1, 1, 12, dtype="float32").reshape(4, 3)
    run = relax.VirtualMachine(relax.build(programs.Numbers))["main"]
    for found in (run(x, 0.25, 2), Evaluator(programs.Numbers)("main", x, 0.25, 2)):
        for value, wanted in zip(found, (np.maximum(x, np.float32(0.25)) * np.float32(0.5), x[2], np.zeros((3, 2))), strict=True):
            np.testing.assert_array_equal(value.numpy() if hasattr(value, "numpy") else value, wanted)
    with pytest.raises(ArgumentError, match=r"argument \d .a. of main is a str, where a number"):
        run(x, "0.25", 2)


def test_numbers_of_groups_are_arguments_or_become_code() -> None:
    x = np.arange(4, dtype="float32")
    for bind, count in ((False, 4), (True, 2)):
        groups = FuseOps(bind_numbers=bind)(AnnotateTIROpPattern()(programs.Groups))
        made = FuseTIR()(groups)
        # What nothing uses any more is gone.
        assert [len(func.params) for func in functions(made).values()] == [count]
        np.testing.assert_array_equal(Evaluator(made)("main", x), 6 * x)


def test_groups_of_tuples_and_with_names_of_their_own_become_private_functions() -> None:
    pair = relax.TupleStructInfo((tensor(4), tensor(4), tensor(4)))
    bb, p, q = relax.BlockBuilder(), relax.Var("p", pair), relax.Var("q", pair)
    with bb.function("group", [p], attrs={"Primitive": True}):
        with bb.dataflow():
            out = bb.emit_output(bb.call_te(topi.add, p[0], p[2]))
        bb.emit_func_output(out)
    with bb.function("main", [q]):
        bb.emit_func_output(bb.emit(relax.Call(bb.get().get_global_var("group"), [q])))
    made = FuseTIR()(bb.get())
    assert [len(func.params) for func in functions(made).values()] == [3] and "global_symbol" not in made["group"].attrs
    x = np.arange(4, dtype="float32")
    np.testing.assert_array_equal(Evaluator(made)("main", (x, x, x)), 2 * x)


def test_a_parameter_that_alone_tells_a_symbol_stays() -> None:
    with_symbol, sizes = relax.Var("x", tensor(N)), relax.Var("s", relax.ShapeStructInfo((N,)))
    bb, y = relax.BlockBuilder(), relax.Var("y", tensor(N - 1))
    with bb.function("inner", [with_symbol, sizes, y], private=True):
        bb.emit_func_output(bb.emit(op.add(y, op.zeros((N - 1,), "float32"))))
    a, b = relax.Var("a", tensor(3)), relax.Var("b", tensor(2))
    with bb.function("main", [a, b]):
        bb.emit_func_output(bb.emit(relax.Call(bb.get().get_global_var("inner"), [a, relax.ShapeExpr((IntImm("int64", 3),)), b])))
    made = RemoveUnusedParameters()(bb.get())
    assert relax.analysis.well_formed(made)


def test_calls_of_functions_with_fewer_parameters_keep_their_own_symbols() -> None:
    m, k = Var("m", "int64"), Var("k", "int64")
    bb, x = relax.BlockBuilder(), relax.Var("x", tensor(m))
    with bb.function("inner", [x, relax.Var("size", relax.PrimStructInfo(value=m))], private=True):
        bb.emit_func_output(bb.emit(op.exp(x)))
    a = relax.Var("a", tensor(k))
    with bb.function("main", [a]):
        bb.emit_func_output(bb.emit(relax.Call(bb.get().get_global_var("inner"), [a, relax.PrimValue(k)])))
    made: Any = RemoveUnusedParameters()(bb.get())
    assert relax.analysis.well_formed(made) and len(made["inner"].params) == 1
    assert made["main"].ret_struct_info == tensor(k)


def test_symbols_of_casts_are_the_extents_that_are_known() -> None:
    made = CanonicalizeBindings()(programs.Casts)
    text = made.script()
    assert text.count("match_cast") == 1, "y has k elements, and n is the extent of another tensor: that is a check"
    assert "n * 4" in text and "T.int64()\n        a" not in text
    assert "return (out, c)" in text and "s: R.Tensor" not in text, "a result keeps its variable, what is only read is the constant"
    x, y = np.ones((2, 4), "float32"), np.ones(2, "float32")
    np.testing.assert_array_equal(Evaluator(made)("main", x, y)[0], Evaluator(programs.Casts)("main", x, y)[0])
    with pytest.raises(ArgumentError):
        Evaluator(made)("main", x, np.ones(3, "float32"))


def test_casts_that_contradict_are_refused() -> None:
    x, y = relax.Var("x", tensor(16)), relax.Var("y", tensor(32))
    bb = relax.BlockBuilder()
    with bb.function("main", [x, y]):
        a, b = (bb.match_cast(one, tensor(N)) for one in (x, y))
        bb.emit_func_output(bb.emit(op.add(a, b)))
    with pytest.raises(DeclarationError, match="n is 16 by one match_cast and 32 by another"):
        CanonicalizeBindings()(bb.get())
