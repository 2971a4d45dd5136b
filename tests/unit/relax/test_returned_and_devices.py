"""What functions say that they return, and on which devices of a module tensors live."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relax
from tensorexpr.errors import DeclarationError, PassError
from tensorexpr.ir import structural_equal
from tensorexpr.relax import TensorStructInfo, op, transform
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.relations import is_base_of
from tensorexpr.script import from_source
from tensorexpr.tir.expr import Var as Symbol

VDevice: Any = tvm.ir.VDevice
LANGUAGES = "from tensorexpr.script import ir as I\nfrom tensorexpr.script import relax as R\nfrom tensorexpr.script import tir as T\n"


def module(text: str) -> Any:
    return from_source(LANGUAGES + text)


def returns(stated: str, body: str, params: str = 'x: R.Tensor(("n", 4), "float32")') -> str:
    func: Any = from_source(f"{LANGUAGES}\n@R.function\ndef main({params}) -> {stated}:\n    {body}\n")
    return str(func.ret_struct_info)


def test_a_function_returns_what_its_body_says() -> None:
    whole = 'R.Tensor((n, 4), dtype="float32")'
    for stated in ("R.Object", "R.Tensor", 'R.Tensor(ndim=2, dtype="float32")', 'R.Tensor(("n", 4), "float32")'):
        assert returns(stated, "y = R.exp(x)\n    return y") == whole
    assert returns("R.Tuple(R.Tensor, R.Object)", "return (x, R.shape([4]))") == f"R.Tuple({whole}, R.Shape([4]))"


def test_what_is_stated_stays_where_it_is_more() -> None:
    called = 'y = R.call_pure_packed("f", x, sinfo_args=R.Object)\n    return y'
    assert returns('R.Tensor((2, 4), "float32")', called) == 'R.Tensor((2, 4), dtype="float32")'


def test_symbols_that_callers_know() -> None:
    cast = 'y = R.match_cast(x, R.Tensor(("m", 4), "float32"))\n    return y'
    assert returns("R.Tensor", cast, params='x: R.Tensor("float32", ndim=2)') == 'R.Tensor(dtype="float32", ndim=2)'


def test_passes_say_it_again() -> None:
    x, n = relax.Var("x", TensorStructInfo((4,))), relax.Var("w", TensorStructInfo((4,)))
    func = relax.Function((x, n), op.add(x, n), TensorStructInfo((4,)))

    class Wider(relax.visitor.Mutator):
        def rewrite(self, expr: Any) -> Any:
            return op.reshape(expr, (2, 2)) if isinstance(expr, relax.Call) and expr.op == "relax.add" else expr

    assert Wider().function(func).ret_struct_info == TensorStructInfo((2, 2))
    empty = relax.Function.create_empty((x,), relax.ObjectStructInfo())
    assert str(empty.ret_struct_info) == "R.Object"


def test_symbols_as_variables_of_before() -> None:
    body = 'n = T.Var("n", "int64")\n    y = R.call_dps_packed("f", (x,), out_sinfo=R.Tensor((n, 4), dtype="float32"))\n    return y'
    assert returns("R.Tensor", body) == 'R.Tensor((n, 4), dtype="float32")'


def test_calls_of_functions_with_fewer_results_are_made_once() -> None:
    text = """
@I.ir_module
class Module:
    @R.function(private=True)
    def parts(x: R.Tensor((4,), "float32")):
        return (R.exp(x), R.sin(x), R.add(x, x))

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        found = Module.parts(x)
        return (found[0], found[2])
"""
    before: Any = module(text)
    after: Any = transform.RemoveUnusedOutputs()(before)
    assert after.script().count("parts(x)") == 1 and len(after["parts"].ret_struct_info.fields) == 2
    x = np.arange(4, dtype="float32")
    for one, other in zip(Evaluator(before)("main", x), Evaluator(after)("main", x), strict=True):
        np.testing.assert_array_equal(one, other)


def products(make: Any, *shapes: Any, num_input: int | None = None) -> str:
    bb = relax.BlockBuilder()
    params = [relax.Var(name, TensorStructInfo(shape)) for name, shape in zip("xab", shapes, strict=True)]
    with bb.function("main", params, {} if num_input is None else {"num_input": num_input}):
        bb.emit_func_output(bb.emit(make(*params)))
    after: Any = transform.AdjustMatmulOrder()(transform.Normalize()(bb.get()))
    if not any(isinstance(extent, Symbol) for shape in shapes for extent in shape):
        given = [np.random.default_rng(0).standard_normal(shape).astype("float32") for shape in shapes]
        np.testing.assert_allclose(Evaluator(after)("main", *given), Evaluator(bb.get())("main", *given), rtol=1e-4, atol=1e-5)
    first = next(one.value for one in after["main"].body.bindings() if one.value.op == "relax.matmul")
    return " ".join(getattr(arg, "name_hint", "?") for arg in first.args)


def test_orders_of_three_factors() -> None:
    low = Symbol("r", "int64")

    def adapted(x: Any, a: Any, b: Any) -> Any:
        return op.matmul(x, op.matmul(a, b))

    assert products(adapted, (16,), (16, low), (low, 32)) == "x a"
    assert products(adapted, (1, 16), (16, 2), (2, 32)) == "x a"
    assert products(lambda x, a, b: op.matmul(op.matmul(a, b), x), (16,), (32, low), (low, 16)) == "b x"
    turned = products(lambda x, a, b: op.matmul(x, op.permute_dims(op.matmul(a, b))), (1, 16), (32, 2), (2, 16))
    assert turned != "a b"
    # Which is cheaper depends on the sizes, or is computed but once.
    rows = Symbol("m", "int64")
    assert products(adapted, (rows, 16), (16, low), (low, 32)) == "a b"
    assert products(adapted, (1, 16), (16, 2), (2, 32), num_input=1) == "a b"


DEVICES = """
@I.ir_module
class Module:
    I.module_global_infos({"vdevice": [I.vdevice("llvm"), I.vdevice("cuda", 0), I.vdevice("cuda", 1)]})

    @R.function
    def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        on = R.hint_on_device(x, R.device(2, 1))
        z = R.add(on, y)
        host = R.to_vdevice(z, "vdevice:0")
        same = R.hint_on_device(host, R.cpu())
        return same
"""


def test_where_tensors_live() -> None:
    before: Any = module(DEVICES)
    after: Any = transform.RealizeVDevice()(before)
    cpu, _, second = after.global_infos["vdevice"]
    func = after["main"]
    infos = [var.struct_info for var in (*func.params, *(one.var for one in func.body.bindings()))]
    assert [info.vdevice for info in infos] == [second, second, second, second, cpu, cpu]
    assert func.ret_struct_info.vdevice == cpu and "hint_on_device" not in func.script()
    assert structural_equal(from_source(after.script()), after)
    x = np.ones((2, 3), "float32")
    np.testing.assert_array_equal(Evaluator(after)("main", x, x), 2 * x)


def test_another_device() -> None:
    before: Any = transform.RealizeVDevice()(module(DEVICES))
    new = VDevice("metal", 3)
    after: Any = transform.UpdateVDevice(new, 2)(before)
    assert after.global_infos["vdevice"][2] == new and "cuda" not in after["main"].script()
    assert after["main"].params[0].struct_info.vdevice == new
    with pytest.raises(PassError, match="lists 3 devices; none has the index 3"):
        transform.UpdateVDevice(new, 3)(before)


def test_devices_by_their_places() -> None:
    one, other, third = VDevice("llvm"), VDevice({"kind": "cuda", "arch": "sm_80"}), VDevice("cuda", 1)
    listed = (one, other, third)
    assert VDevice.of("cuda:1", listed) == third and VDevice.of("vdevice:1:global", listed) == other
    assert VDevice.of("metal:2", listed) == VDevice("metal", 2)
    assert [device.short(listed) for device in listed] == ["llvm:0:global", "cuda:0:global", "cuda:1:global"]
    assert VDevice("cuda", 5).short(listed) is None
    with pytest.raises(DeclarationError, match="'cuda:2' is no device of the module, which lists 2"):
        VDevice.of("cuda:2", listed)
    wished = DEVICES.replace("R.device(2, 1)", "R.device(8, 0)")
    with pytest.raises(PassError, match=r"wishes for device metal:0, and the module lists llvm:0, cuda:0, cuda:1"):
        transform.RealizeVDevice()(module(wished))


def test_tensors_fit_on_their_device() -> None:
    here, there, somewhere = (TensorStructInfo((2,), vdevice=VDevice.of(device)) for device in ("llvm", "cuda", None))
    assert is_base_of(somewhere, here) and not is_base_of(here, there) and not is_base_of(here, somewhere)
    assert tvm.relax.op.hint_on_device(relax.Var("x", somewhere), tvm.cuda(1)).attrs["dst_vdevice"] == VDevice("cuda", 1)


def test_symbols_of_one_function_of_several() -> None:
    text = '\n    @R.function\n    def {0}(x: R.Tensor(("m", "n"), "float32")):\n        return R.exp(x)\n'
    mod = module("@I.ir_module\nclass Module:" + text.format("first") + text.format("second"))
    own = mod["first"].params[0].struct_info.extents[1]
    made: Any = transform.BindSymbolicVars({own: 16})(mod)
    assert [str(made[name].params[0].struct_info.shape) for name in ("first", "second")] == ["R.shape([m, 16])", "R.shape([m, n])"]
    with pytest.raises(DeclarationError, match="no function has a symbol rows; there are m, n"):
        transform.BindSymbolicVars({"rows": 16})(mod)


def test_functions_that_call_themselves_keep_their_variable() -> None:
    info = TensorStructInfo((), "bool")
    loop = relax.Var("loop", relax.FuncStructInfo((info,), relax.ObjectStructInfo(), True))
    x, i, y = relax.Var("x", info), relax.Var("i", info), relax.Var("y", info)
    again = relax.Var("again", info)
    call = relax.BindingBlock((relax.VarBinding(again, relax.Call(loop, [i], struct_info=info)),))
    inner = relax.Function((i,), relax.SeqExpr((call,), again))
    body = relax.BindingBlock((relax.VarBinding(loop, inner), relax.VarBinding(y, relax.Call(loop, [x], struct_info=info))))
    func = relax.Function((x,), relax.SeqExpr((body,), y), attrs={"global_symbol": "main"})  # type: ignore[arg-type]
    made = relax.visitor.Mutator().function(func)
    assert relax.analysis.well_formed(tvm.IRModule({"main": made}))  # type: ignore[dict-item]
