# mypy: ignore-errors
# Functions under @R.function are read and never run: their annotations are no types of Python's.
"""Programs as courses on machine learning compilation have them, in the forms of 2022, of 2023 to 2024 and of 2025: all run."""

from __future__ import annotations

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relax, te, topi
from tensorexpr.ir import structural_equal
from tensorexpr.script import from_source
from tensorexpr.script import ir as I
from tensorexpr.script import relax as R
from tensorexpr.script import tir as T
from tensorexpr.script.relax import Tensor

RNG = np.random.default_rng(7)
X, W0, B0, W1 = (RNG.uniform(-1, 1, shape).astype("float32") for shape in ((1, 32), (16, 32), (16,), (4, 16)))
RESULT = np.maximum(X @ W0.T + B0, 0) @ W1.T


@tvm.register_func("tests.generations.relu", override=True)
def lib_relu(x: tvm.nd.NDArray, out: tvm.nd.NDArray) -> None:
    np.maximum(np.from_dlpack(x), 0, out=np.from_dlpack(out))


@tvm.register_func("tests.generations.linear", override=True)
def lib_linear(x: tvm.nd.NDArray, w: tvm.nd.NDArray, b: tvm.nd.NDArray, out: tvm.nd.NDArray) -> None:
    np.from_dlpack(out)[...] = np.from_dlpack(x) @ np.from_dlpack(w).T + np.from_dlpack(b)


@tvm.script.ir_module
class In2022:
    @T.prim_func
    def head(x: T.handle, w: T.handle, y: T.handle) -> None:
        T.func_attr({"global_symbol": "head", "tir.noalias": True})
        X = T.match_buffer(x, (1, 16), "float32")
        W = T.match_buffer(w, (4, 16), "float32")
        Y = T.match_buffer(y, (1, 4), "float32")
        for i, j, k in T.grid(1, 4, 16):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vj, vk]

    @R.function
    def main(x: Tensor((1, 32), "float32"), w0: Tensor((16, 32), "float32"), b0: Tensor((16,), "float32"), w1: Tensor((4, 16), "float32")):
        with R.dataflow():
            lv0 = R.call_tir("tests.generations.linear", (x, w0, b0), (1, 16), dtype="float32")
            lv1 = R.call_tir("tests.generations.relu", (lv0,), (1, 16), dtype="float32")
            out = R.call_tir(head, (lv1, w1), (1, 4), dtype="float32")  # noqa: F821
            R.output(out)
        return out


@I.ir_module
class In2023:
    @T.prim_func
    def head(x: T.Buffer((1, 16), "float32"), w: T.Buffer((4, 16), "float32"), y: T.Buffer((1, 4), "float32")):
        for i, j, k in T.grid(1, 4, 16):
            with T.block("y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    y[vi, vj] = T.float32(0)
                y[vi, vj] = y[vi, vj] + x[vi, vk] * w[vj, vk]

    @R.function
    def main(
        x: R.Tensor((1, "n"), "float32"),
        w0: R.Tensor((16, "n"), "float32"),
        b0: R.Tensor((16,), "float32"),
        w1: R.Tensor((4, 16), "float32"),
    ) -> R.Tensor((1, 4), "float32"):
        cls = In2023
        with R.dataflow():
            lv0 = R.call_dps_packed("tests.generations.linear", (x, w0, b0), R.Tensor((1, 16), "float32"))
            lv1 = R.call_dps_packed("tests.generations.relu", (lv0,), R.Tensor((1, 16), "float32"))
            out = R.call_tir(cls.head, (lv1, w1), out_sinfo=R.Tensor((1, 4), dtype="float32"))
            R.output(out)
        return out


@I.ir_module
class In2025:
    @R.function
    def main(
        x: R.Tensor((1, 32), "float32"), w0: R.Tensor((16, 32), "float32"), b0: R.Tensor((16,), "float32"), w1: R.Tensor((4, 16), "float32")
    ) -> R.Tensor((1, 4), "float32"):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            lv0: R.Tensor((1, 16), "float32") = R.matmul(x, R.permute_dims(w0)) + b0
            lv1 = R.nn.relu(lv0)
            w1_t = R.permute_dims(w1, axes=None)
            out: R.Tensor((1, 4), "float32") = R.matmul(lv1, w1_t, out_dtype="void")
            R.output(out)
        return out


@pytest.mark.parametrize("mod", [In2022, In2023, In2025])
@pytest.mark.parametrize("build", [relax.vm.build, relax.build, tvm.compile])
def test_networks_of_all_years(mod, build) -> None:
    vm = relax.VirtualMachine(build(mod, target="llvm"), tvm.cpu())
    found = vm["main"](*map(tvm.nd.array, (X, W0, B0, W1)))
    np.testing.assert_allclose(found.numpy(), RESULT, rtol=1e-4, atol=1e-5)
    assert structural_equal(from_source(mod.script()), mod)
    params = dict(zip(("w0", "b0", "w1"), map(tvm.nd.array, (W0, B0, W1)), strict=True))
    bound = relax.transform.BindParams("main", params)(mod)
    vm = relax.vm.VirtualMachine(build(bound, target="llvm"), tvm.cpu())
    np.testing.assert_allclose(vm["main"](tvm.nd.array(X)).numpy(), RESULT, rtol=1e-4, atol=1e-5)
    assert structural_equal(from_source(bound.script(show_meta=True)), bound)


def test_builders_of_all_years() -> None:
    old = relax.Var("x", (1, 32), relax.DynTensorType(2, "float32"))
    assert old.struct_info == relax.Var("x", relax.TensorStructInfo((1, 32), "float32")).struct_info == R.Tensor((1, 32), "float32")
    w0, b0, w1 = relax.const(W0), relax.const(B0), relax.const(W1)

    def by_tensors(bb, x):
        a = te.placeholder((1, 32), name="a")
        assert a.dtype == "float32"
        lv = bb.emit_te(topi.add, bb.emit_te(topi.nn.dense, x, w0), b0)
        return bb.emit_output(bb.call_te(topi.nn.dense, bb.emit_te(topi.nn.relu, lv, primfunc_name_hint="activation"), w1))

    def by_operators_of_2022(bb, x):
        lv = bb.emit(relax.op.relu(relax.op.add(relax.op.dense(x, w0), b0)))
        return bb.emit_output(relax.op.nn.dense(lv, w1))

    def by_operators(bb, x):
        lv = bb.emit(relax.op.nn.relu(relax.op.linear(x, w0, b0)))
        return bb.emit_output(relax.op.matmul(lv, relax.op.permute_dims(w1)))

    for make in (by_tensors, by_operators_of_2022, by_operators):
        bb = relax.BlockBuilder()
        x = relax.Var("x", relax.TensorStructInfo((1, 32), "float32"))
        with bb.function("main", [x]):
            with bb.dataflow():
                out = make(bb, x)
            bb.emit_func_output(out)
        found = relax.VirtualMachine(relax.build(bb.get(), "llvm"), tvm.cpu())["main"](tvm.nd.array(X))
        np.testing.assert_allclose(found.numpy(), RESULT, rtol=1e-4, atol=1e-5)


@I.ir_module
class Shapes:
    @R.function
    def old(x: Tensor(None, "float32", ndim=2)) -> R.Object:
        n, m = T.int64(), T.int64()
        R.match_shape(x, (n, m))
        y = R.call_tir("tests.generations.relu", (x,), (n, m), dtype="float32")
        z = R.call_packed("tests.generations.shape", y, type_args=(Tensor(ndim=2, dtype="float32")))
        return z

    @R.function(pure=False)
    def new(x: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("n * m",), "float32"):
        n, m = T.int64(), T.int64()
        y = R.call_packed("tests.generations.shape", x, sinfo_args=R.Tensor((n, m), "float32"))
        w = R.call_pure_packed("tests.generations.shape", y, sinfo_args=(R.Tensor((n, m), "float32"),))
        R.assert_op(R.const(True, "bool"), format="never")
        return R.reshape(w, R.shape([n * m]))


@tvm.register_func("tests.generations.shape", override=True)
def shape(x: tvm.nd.NDArray) -> tvm.nd.NDArray:
    return tvm.nd.array(x.numpy() + 1)


def test_shapes_of_all_years() -> None:
    x = RNG.uniform(-1, 1, (3, 5)).astype("float32")
    vm = relax.VirtualMachine(relax.build(Shapes))
    np.testing.assert_allclose(vm["old"](x).numpy(), np.maximum(x, 0) + 1, rtol=1e-6)
    np.testing.assert_allclose(vm["new"](x).numpy(), (x + 2).reshape(-1), rtol=1e-6)
    assert structural_equal(from_source(Shapes.script()), Shapes)


@tvm.script.ir_module
class Words2022:
    """Types and operators without R, and products by rows of the weights."""

    @R.function
    def main(x: Tensor((1, 32), "float32"), w0: Tensor((16, 32), "float32"), b0: Tensor((16,), "float32"), w1: Tensor((4, 16), "float32")):
        with relax.dataflow():
            lv0 = relax.add(relax.nn.dense(x, w0), b0)
            gv0 = relax.nn.dense(relax.nn.relu(lv0), w1)
            relax.output(gv0)
        return gv0


@relax.expr_functor.mutator
class FuseProducts(relax.PyExprMutator):
    """Gives `dense + bias` a function of its own, by the operators' names."""

    def __init__(self, mod: tvm.IRModule) -> None:
        super().__init__(mod)
        self.add, self.dense = (tvm.ir.Op.get(f"relax.{name}") for name in ("add", "nn.dense"))

    def transform(self) -> tvm.IRModule:
        for var, func in self.builder_.get().functions.items():
            self.builder_.update_func(var, relax.analysis.remove_all_unused(self.visit_expr(func)))
        return self.builder_.get()

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        call = self.visit_expr_post_order(call)
        product = self.lookup_binding(call.args[0]) if call.op == self.add else None
        if not isinstance(product, relax.Call) or product.op != self.dense:
            return call
        given = (*product.args, call.args[1])
        params = [relax.Var(name, one.struct_info) for name, one in zip("xwb", given, strict=True)]
        bb = relax.BlockBuilder()
        with bb.function("fused", params):
            with bb.dataflow():
                gv = bb.emit_output(relax.op.add(bb.emit(relax.op.nn.dense(*params[:2])), params[2]))
            bb.emit_func_output(gv)
        return relax.Call(self.builder_.add_func(bb.get()["fused"].with_attr("Primitive", 1), "fused"), given, None, None)


def test_a_pass_on_the_words_of_2022() -> None:
    mod = FuseProducts(Words2022).transform()
    assert mod["fused"].attrs["Primitive"] == 1 and "R.nn.dense(" in mod["main"].script() and "R.add(" not in mod["main"].script()
    for one in (Words2022, mod):
        found = relax.VirtualMachine(relax.vm_build.build(one, "llvm"), tvm.cpu())["main"](X, W0, B0, W1)
        np.testing.assert_allclose(found.numpy(), RESULT, rtol=1e-4, atol=1e-5)


def test_types_need_no_word_around() -> None:
    text = Words2022.script().replace("R.Tensor", "Tensor")
    assert structural_equal(from_source(text), Words2022) and structural_equal(from_source(text, {"Tensor": te.Tensor}), Words2022)


def test_a_result_that_ends_with_its_block_is_what_was_given_out() -> None:
    bb, x = relax.BlockBuilder(), relax.Var("x", R.Tensor((1, 32), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            lv = bb.emit(relax.op.matmul(x, relax.const(W0.T, relax.DynTensorType(2, "float32"))))
            gv = bb.emit_output(lv)
        bb.emit_func_output((lv, x))
    assert bb.get()["main"].body.body.fields == (gv, x) and relax.analysis.well_formed(bb.get())
