"""Networks of small modules, parts as functions of their own, and numbers that functions return."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

from tensorexpr import relax
from tensorexpr.errors import DeclarationError, TypeMismatchError
from tensorexpr.relax import BlockBuilder, op
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.frontend import nn as frontend
from tensorexpr.relax.testing import nn
from tensorexpr.script import from_source
from tensorexpr.tir import Var as Symbol
from tensorexpr.tir.structural import structural_equal


def test_a_network_of_modules() -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2, bias=False), nn.LogSoftmax())
    bb = BlockBuilder()
    with bb.function("main"):
        data = nn.Placeholder((2, 4), name="data")
        bb.emit_func_output(model(data), params=[data, *model.parameters()])
    mod: Any = bb.get()
    assert [tuple(param.shape) for param in nn.init_params(mod)] == [(4, 3), (3,), (3, 2)]
    x, w, b, v = (np.random.default_rng(n).random(shape, "float32") for n, shape in enumerate([(2, 4), (4, 3), (3,), (3, 2)]))
    logits = np.maximum(x @ w + b, 0) @ v
    expected = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    np.testing.assert_allclose(Evaluator(mod)("main", x, w, b, v), expected, rtol=1e-5, atol=1e-6)
    assert structural_equal(from_source(mod.script()), mod)


class _Scale(nn.Module):
    define_subroutine: ClassVar[bool] = True

    def __init__(self, factor: float, size: int) -> None:
        self.factor, self.weight = factor, nn.Parameter((size,), name="weight")

    def forward(self, value: Any) -> Any:
        return nn.emit(value * self.weight * relax.const(self.factor, "float32"))


class _Block(nn.Module):
    define_subroutine: ClassVar[bool] = True

    def __init__(self) -> None:
        self.parts = [_Scale(2.0, 3), _Scale(2.0, 3), _Scale(5.0, 3)]

    def forward(self, value: Any, offset: Any) -> Any:
        for part in self.parts:
            value = part(value)
        return value + offset


@pytest.mark.parametrize("dataflow", [False, True])
def test_parts_as_functions(dataflow: bool) -> None:
    model, n = _Block(), Symbol("n", "int64")
    x = nn.Placeholder((n, 3), name="x")
    bb = BlockBuilder()
    with bb.function("main", [x, *model.parameters()]):
        if dataflow:
            with bb.dataflow():
                out = bb.emit_output(model(x, offset=op.sum(x)))
        else:
            out = model(x, offset=op.sum(x))
        bb.emit_func_output(out)
    mod: Any = bb.get()
    # Two scales are equal, the third has another factor.
    assert sorted(var.name_hint for var in mod.get_global_vars()) == ["_block", "_scale", "_scale1", "main"]
    assert "global_symbol" not in mod["_block"].attrs and relax.analysis.well_formed(mod)
    x_, *weights = (np.random.default_rng(n).random(shape, "float32") for n, shape in enumerate([(2, 3), (3,), (3,), (3,)]))
    expected = x_ * weights[0] * weights[1] * weights[2] * 20 + x_.sum()
    np.testing.assert_allclose(Evaluator(mod)("main", x_, *weights), expected, rtol=1e-5)


def test_parts_of_networks_to_deploy_as_functions() -> None:
    class Layer(frontend.Linear):
        define_subroutine: ClassVar[bool] = True

    class Net(frontend.Module):
        def __init__(self) -> None:
            self.one, self.two = Layer(4, 4), Layer(4, 4)

        def forward(self, x: Any) -> Any:
            return self.two(self.one(x))

    mod, params = Net().export_tvm({"forward": {"x": frontend.spec.Tensor((2, 4), "float32")}})
    assert sorted(var.name_hint for var in mod.get_global_vars()) == ["forward", "layer"] and len(params) == 4
    arrays = [np.random.default_rng(n).random(tuple(param.stated), "float32") for n, (_, param) in enumerate(params)]
    x = np.ones((2, 4), "float32")
    expected = (x @ arrays[0].T + arrays[1]) @ arrays[2].T + arrays[3]
    np.testing.assert_allclose(Evaluator(mod)("forward", x, *arrays), expected, rtol=1e-5)


def test_marks_of_functions() -> None:
    bb = BlockBuilder()
    x = nn.Placeholder((3,), name="x")
    with bb.function("main", [x]):
        with bb.dataflow():
            out = nn.emit_checkpoint_sequential([op.sin, op.exp, op.tanh], 2, x)
            pair = nn.emit_checkpoint(lambda value, scale: [value * scale, value], out, scale=x)
            first = nn.emit(nn.checkpoint(op.exp, pair[0]))
            out = bb.emit_output(op.sum(first + pair[1]))
        bb.emit_func_output(out)
    mod = bb.get()
    text = mod.script()
    assert text.count("start_checkpoint") == 5 and "lv_ecp" in text and "x_scp" in text
    found = Evaluator(relax.transform.Gradient("main")(mod))("main_adjoint", np.ones(3, "float32"))
    assert found[1][0].shape == (3,)
    with pytest.raises(DeclarationError, match="0 functions in 2 segments"):
        nn.emit_checkpoint_sequential([], 2, x)


def test_what_no_network_is() -> None:
    with pytest.raises(TypeMismatchError, match="the shape of a Parameter is a list"):
        nn.Parameter(3)  # type: ignore[arg-type]
    with pytest.raises(DeclarationError, match=r"in `with bb\.function"):
        nn.emit(nn.Placeholder((3,)))
    with pytest.raises(DeclarationError, match="_Scale has define_subroutine set"):
        _Scale(1.0, 3)(nn.Placeholder((3,)))
    bb = BlockBuilder()
    weight = nn.Parameter((Symbol("n", "int64"),), name="w")
    with bb.function("main", [weight]):
        bb.emit_func_output(weight)
    with pytest.raises(DeclarationError, match=r"init_params: w is .* bind its symbols"):
        nn.init_params(bb.get())


def test_an_operand_that_stands_twice_is_computed_once() -> None:
    bb = BlockBuilder()
    x = nn.Placeholder((3,), name="x")
    with bb.function("main", [x]):
        value: Any = x
        for _ in range(20):
            value = value + value
        bb.emit_func_output(bb.emit(value))
    assert len(list(bb.get()["main"].body.bindings())) == 20  # type: ignore[attr-defined]


NUMBERS: Any = from_source("""
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def fits(n: T.int64) -> T.bool:
        T.ret(n % 16 == 0)

    @T.prim_func(private=True)
    def element(A: T.Buffer((3,), "int64"), k: T.int64) -> T.int64:
        T.ret(A[k] * T.int64(2))

    @T.prim_func(private=True)
    def half(k: T.int64) -> T.float32:
        T.ret(T.Cast("float32", k) * T.float32(0.5))

    @R.function
    def chosen(A: R.Tensor(("n",), "float32")) -> R.Prim("int64"):
        n = T.int64()
        cls = Module
        cond: R.Prim("bool") = cls.fits(R.prim_value(n))
        if cond:
            out: R.Prim("int64") = R.prim_value(5)
        else:
            out: R.Prim("int64") = R.prim_value(n + 1)
        return out

    @R.function
    def taken(A: R.Tensor((3,), "int64")) -> R.Prim("int64"):
        cls = Module
        return cls.element(A, R.prim_value(1))

    @R.function
    def halved(k: R.Prim(value="k")) -> R.Prim("float32"):
        k = T.int64()
        cls = Module
        return cls.half(R.prim_value(k))

    @R.function
    def both(A: R.Tensor(("n",), "float32")) -> R.Prim("bool"):
        n = T.int64()
        return R.prim_value((n % 16 == 0 and not n >= 100) or T.Select(n == 5, T.Cast("int64", n * 3) == 15, False))
""")


def test_numbers_that_functions_return() -> None:
    machine, evaluate = relax.VirtualMachine(relax.build(NUMBERS, "llvm")), Evaluator(NUMBERS)
    for call in (evaluate, lambda name, *args: machine[name](*args)):
        found = [(call("chosen", np.zeros(n, "float32")), call("both", np.zeros(n, "float32"))) for n in (16, 5, 6, 112)]
        assert found == [(5, True), (6, True), (7, False), (5, False)]
        assert all(isinstance(one, bool) for _, one in found)
        assert call("taken", np.array([3, 0, 5])) == 0 and call("halved", 3) == 1.5
    assert structural_equal(from_source(NUMBERS.script()), NUMBERS)
