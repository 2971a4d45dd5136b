"""Weights that come one by one, results that go when they are there, and transforms of weights one after the other."""

# mypy: disable-error-code="valid-type, no-untyped-def, untyped-decorator, misc, operator, arg-type, no-untyped-call, attr-defined"

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relax
from tensorexpr.errors import DeclarationError
from tensorexpr.relax import BlockBuilder, Tuple, Var, const, op, transform
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.struct_info import ObjectStructInfo, ShapeStructInfo, TensorStructInfo, TupleStructInfo
from tensorexpr.script import from_source
from tensorexpr.script import ir as I
from tensorexpr.script import relax as R
from tensorexpr.script import tir as T
from tensorexpr.tir import Var as Symbol
from tensorexpr.tir.structural import structural_equal

A, B = np.random.default_rng(0).random((2, 3, 4), "float32")


def _plain(bundled: bool, several: bool = True, dataflow: bool = False) -> Any:
    """`transform_params`, from two weights, of which the first is needed last, to three results."""
    infos = [TensorStructInfo((Symbol("n", "int64"), 4)), TensorStructInfo((3, 4))]
    whole = Var("params", TupleStructInfo(tuple(infos)))
    weights = [Var(name, info) for name, info in zip("ab", infos, strict=True)]
    bb = BlockBuilder()
    with bb.function("transform_params", [whole] if bundled else weights):
        if dataflow:
            with bb.dataflow():
                out = bb.emit_output(_results(bb, [whole[0], whole[1]] if bundled else weights, several))
        else:
            out = _results(bb, [whole[0], whole[1]] if bundled else weights, several)
        bb.emit_func_output(out)
    return bb.get()


def _results(bb: Any, weights: Any, several: bool) -> Any:
    b = bb.emit(weights[1], "b")
    double = bb.emit(b * const(2.0, "float32"))
    a = bb.emit(weights[0], "a")
    summed = bb.emit(op.sum(a) + double)
    return Tuple((b, summed, const(7.0, "float32"))) if several else summed


class _Log:
    """Functions that load and store, and in which order they were called."""

    def __init__(self) -> None:
        self.order: list[Any] = []
        self.stored: dict[int, Any] = {}

    def get(self, *args: Any) -> Any:
        place = int(args[-2] if isinstance(args[-1], str) else args[-1])
        self.order.append(("get", place))
        return relax.const((A, B)[place]).data

    def set(self, *args: Any) -> Any:
        self.order.append(("set", int(args[-2])))
        self.stored[int(args[-2])] = args[-1].numpy()
        return ()

    def check(self) -> None:
        expected = (B, A.sum() + B * 2, 7.0)
        assert sorted(self.stored) == [0, 1, 2]
        for n, one in enumerate(expected):
            np.testing.assert_allclose(self.stored[n], one, rtol=1e-5)
        assert self.order[:2] == [("get", 1), ("set", 0)] and self.order.index(("get", 0)) < self.order.index(("set", 1))


@pytest.mark.parametrize("bundled", [False, True])
@pytest.mark.parametrize("dataflow", [False, True])
def test_by_registered_functions(bundled: bool, dataflow: bool) -> None:
    made: Any = transform.LazyTransformParams()(_plain(bundled, dataflow=dataflow))
    func, log = made["transform_params"], _Log()
    assert not func.params and not func.is_pure and relax.analysis.well_formed(made)
    assert structural_equal(from_source(made.script()), made)
    assert "kill_object" in str(func)
    found = Evaluator(made, {"get_item": log.get, "set_item": log.set})("transform_params")
    assert found == ()
    log.check()


def test_results_that_are_returned() -> None:
    loader, extra = Var("loader", ObjectStructInfo()), Var("extra", ObjectStructInfo())
    made: Any = transform.LazyTransformParams("load", None, [loader], [extra])(_plain(True))
    func, log = made["transform_params"], _Log()
    assert func.params == (loader, extra) and "set_item" not in str(func)
    found = Evaluator(made, {"load": log.get})("transform_params", "file", None)
    np.testing.assert_allclose(found[1], A.sum() + B * 2, rtol=1e-5)
    assert log.order == [("get", 1), ("get", 0)]


def test_by_callbacks() -> None:
    made: Any = transform.LazySetOutput()(transform.LazyGetInput()(_plain(False, dataflow=True)))
    func, log = made["transform_params"], _Log()
    assert [param.name_hint for param in func.params] == ["fget_param", "fset_output"] and func.attrs["num_input"] == 2
    assert relax.analysis.well_formed(made)
    assert relax.VirtualMachine(relax.build(made, "llvm"))["transform_params"](log.get, log.set) == ()
    log.check()
    one: Any = transform.LazySetOutput()(_plain(True, several=False))
    assert [param.name_hint for param in one["transform_params"].params] == ["params", "fset_output"]
    assert str(one["transform_params"]).count("fset_output(") == 1


def test_what_stays_a_parameter() -> None:
    """Inputs in front of the weights, and shapes, which tell what symbols are."""
    n = Symbol("n", "int64")
    rank, shape = Var("rank", TensorStructInfo((2,), "float32")), Var("shape", ShapeStructInfo((n,)))
    weight = Var("w", TensorStructInfo((4,), "float32"))
    bb = BlockBuilder()
    with bb.function("f_transform_params", [rank, weight, shape], {"num_input": 1}):
        bb.emit_func_output(bb.emit(op.broadcast_to(op.sum(weight) + op.sum(rank), (n,))))
    made: Any = transform.LazyTransformParams(fset_item=None)(bb.get())
    func = made["f_transform_params"]
    assert [param.name_hint for param in func.params] == ["rank", "symbolic_var_holder"]
    found = Evaluator(made, {"get_item": lambda place: relax.const(np.full(4, place + 1.0, "float32")).data})
    np.testing.assert_allclose(found("f_transform_params", np.ones(2, "float32"), (3,)), np.full(3, 6.0))


def test_what_is_no_lazy_transform() -> None:
    with pytest.raises(DeclarationError, match="LazySetOutput makes them so"):
        transform.LazyTransformParams(None)
    whole = Var("params", TupleStructInfo((TensorStructInfo((3,)), TensorStructInfo((3,)))))
    bb = BlockBuilder()
    with bb.function("transform_params", [whole]):
        bb.emit_func_output(bb.emit(op.concat(whole, 0)))
    with pytest.raises(DeclarationError, match="params is read as a whole"):
        transform.LazyTransformParams()(bb.get())


def _network(transposed: bool) -> Any:
    """A product with weights that the module's own `main_transform_params` scales."""
    x, w, b = (Var(name, TensorStructInfo(shape)) for name, shape in (("x", (2, 4)), ("w", (Symbol("m", "int64"), 4)), ("b", (4,))))
    bb = BlockBuilder()
    with bb.function("main", [x, w, b], {"num_input": 1}):
        with bb.dataflow():
            out = bb.emit_output(op.matmul(x, op.permute_dims(w * b)))
        bb.emit_func_output(out)
    n = Symbol("n", "int64")
    given = Var("given", TupleStructInfo((TensorStructInfo((4,)), TensorStructInfo((n, 4)))))
    with bb.function("main_transform_params", [given], {"num_input": 0}):
        with bb.dataflow():
            scaled = bb.emit(given[1] * const(3.0, "float32"))
            pair = (given[0], scaled) if transposed else (scaled, given[0])
            out = bb.emit_output(Tuple(pair))
        bb.emit_func_output(out)
    return bb.get()


def test_a_transform_behind_another_one() -> None:
    mod = _network(False)
    made: Any = transform.LiftTransformParams()(mod)
    assert relax.analysis.well_formed(made) and len(made.get_global_vars()) == 2
    x, w, b = (np.random.default_rng(n).random(shape, "float32") for n, shape in enumerate([(2, 4), (5, 4), (4,)]))
    evaluate = Evaluator(made)
    expected = Evaluator(mod)("main", x, *Evaluator(mod)("main_transform_params", (b, w)))
    np.testing.assert_allclose(evaluate("main", x, *evaluate("main_transform_params", (b, w))), expected, rtol=1e-6)
    assert "permute_dims" not in str(made["main"])
    assert structural_equal(transform.LiftTransformParams()(made), made)
    with pytest.raises(DeclarationError, match="main_transform_params, which the module has, returns"):
        transform.LiftTransformParams()(_network(True))


@I.ir_module
class Weights:
    @R.function
    def main(x: R.Tensor((2, 4), "float32"), w: R.Tensor((4, 5), "float32"), v: R.Tensor((4, 5), "float32"), b: R.Tensor((5,), "float32")):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            w2 = R.add(w, w)
            v2 = R.multiply(v, R.const(2.0, "float32"))
            y = R.add(R.matmul(x, w2), R.matmul(x, v2))
            z = R.add(y, b)
            R.output(z)
        return z


@pytest.mark.parametrize("kind", [list, tuple])
def test_weights_are_consumed(kind: Any) -> None:
    """Each weight leaves the caller's list when it is read; a tuple, which can't change, keeps them."""
    with tvm.transform.PassContext(config={"relax.lift_transform_params.consume_params": True}):
        made: Any = transform.LiftTransformParams()(Weights)
    assert relax.analysis.well_formed(made)
    machine: Any = relax.VirtualMachine(relax.build(made, "llvm"), tvm.cpu())
    x, *arrays = (np.random.default_rng(n).random(shape, "float32") for n, shape in enumerate([(2, 4), (4, 5), (4, 5), (5,)]))
    given, left = kind(map(tvm.nd.array, arrays)), []
    machine.set_instrument(lambda func, name, before, value, *args: left.append(sum(one is not None for one in given)) if before else None)
    found = machine["main_transform_params"](given)
    assert all(one is None for one in given) if kind is list else all(one is not None for one in given)
    if kind is list:  # before the last one is transformed the first is gone
        assert left[0] == 3 and sorted(left, reverse=True) == left and min(left) < 3
    machine.set_instrument(lambda *_: None)
    w, v, b = arrays
    np.testing.assert_allclose(machine["main"](x, *found).numpy(), x @ (2 * w) + x @ (2 * v) + b, rtol=1e-5)


def test_weights_are_read_where_they_are_needed() -> None:
    made: Any = transform.LiftTransformParams()(Weights)
    names = [binding.var.name_hint for binding in made["main_transform_params"].body.bindings()]
    assert names == ["w", "w2", "v", "v2", "b", "output_tuple"]
    assert [param.name_hint for param in made["main"].params] == ["x", "b", "w2", "v2"]


@I.ir_module
class Sizes:
    """Its size is that of a weight which no other value of the function has."""

    @R.function
    def main(x: R.Tensor((4,), "float32"), w: R.Tensor(("n",), "float32")):
        n = T.int64()
        R.func_attr({"num_input": 1})
        with R.dataflow():
            total = R.sum(w)
            y = R.add(x, total)
            z = R.zeros((n,), "float32")
            R.output(y, z)
        return y, z

    @R.function
    def again(x: R.Tensor((4,), "float32"), w: R.Tensor(("k",), "float32")):
        k = T.int64()
        R.func_attr({"num_input": 1})
        with R.dataflow():
            total = R.sum(w)
            y = R.multiply(x, total)
            z = R.ones((k + 1,), "float32")
            R.output(y, z)
        return y, z


@pytest.mark.parametrize("shared", [False, True])
def test_sizes_that_only_weights_told_are_told(shared: bool) -> None:
    made: Any = transform.LiftTransformParams(shared)(Sizes)
    assert relax.analysis.well_formed(made) and structural_equal(transform.LiftTransformParams(shared)(made), made)
    machine: Any = relax.VirtualMachine(relax.build(made, "llvm"), tvm.cpu())
    x, w = np.arange(4, dtype="float32"), np.ones(5, "float32")
    for name, wanted, length in (("main", x + 5, 5), ("again", x * 5, 6)):
        shape, total = machine["transform_params" if shared else f"{name}_transform_params"]((w,))
        assert tuple(shape) == (5,)
        y, z = machine[name](x, shape, total)
        np.testing.assert_allclose(y.numpy(), wanted)
        assert z.shape == (length,)


def test_others_than_those_that_are_named_stay() -> None:
    made: Any = transform.LiftTransformParams(["main"])(Sizes)
    assert structural_equal(made["again"], Sizes["again"]) and "transform_params" in made and "again_transform_params" not in made
