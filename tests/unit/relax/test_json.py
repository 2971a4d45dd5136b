"""Graphs saved and loaded."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relax
from tensorexpr.errors import RecordError
from tensorexpr.ir import load_json, save_json, structural_equal
from tensorexpr.relax import BlockBuilder, TensorStructInfo, Var, op
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.struct_info import FuncStructInfo, ObjectStructInfo, PrimStructInfo, ShapeStructInfo, TupleStructInfo
from tensorexpr.script import from_source
from tensorexpr.tir.expr import Var as Symbol
from tensorexpr.tir.function import GlobalVar
from tensorexpr.tir.global_info import VDevice

from . import programs
from .programs import expected, inputs

Network: Any = programs.Network
DEVICE = VDevice(tvm.target.Target("llvm"), 1)


def test_networks_are_what_they_were() -> None:
    again = load_json(save_json(Network))
    assert structural_equal(again, Network) and again.script() == Network.script() and save_json(again) == save_json(Network)
    given = inputs()
    np.testing.assert_allclose(Evaluator(again)("main", *given), expected(*given), rtol=1e-5)


def test_constants_and_attributes_are_kept_to_the_bit() -> None:
    x = Var("x", TensorStructInfo((2, 3)))
    values = {
        "float32": np.array([[np.nan, -0.0, np.inf], [1e-45, 1, 2]], "float32"),
        "float64": np.array([[0.1, 0.2, 0.3]]),
        "int8": np.array([-128, 0, 127], "int8"),
        "bool": np.array([True, False, True]),
        "bfloat16": tvm.nd.array(np.array([1.5, 2, 3], "float32")).numpy(),
    }
    bb = BlockBuilder()
    with bb.function(
        "main", [x], {"names": ["a", "b"], "weight": 0.1, "deep": {"k": (1, None, True)}, "array": tvm.nd.array(values["int8"])}
    ):
        made = bb.emit(op.nn.softmax(x, -1))
        made = bb.emit(op.nn.layer_norm(made, op.ones((3,), "float32"), op.zeros((3,), "float32"), axes=[-1], epsilon=1e-5))
        bb.emit_func_output([made, *(relax.const(value) for value in values.values())])
    mod = bb.get()
    again = load_json(save_json(mod))
    assert structural_equal(again, mod)
    assert (
        again["main"].attrs["weight"] == 0.1 and again["main"].attrs["names"] == ("a", "b") and again["main"].attrs["deep"]["k"][1] is None
    )
    fields = again["main"].body.body.fields[1:]
    for value, field in zip(values.values(), fields, strict=True):
        assert field.data.numpy().tobytes() == value.tobytes()


def test_struct_infos_and_loose_nodes() -> None:
    n = Symbol("n", "int64")
    infos: list[Any] = [
        ObjectStructInfo(), PrimStructInfo("int64"), PrimStructInfo("int64", n + 1), ShapeStructInfo((n, 2)), ShapeStructInfo(ndim=3),
        TensorStructInfo((n, n * 2), "float16", DEVICE), TensorStructInfo(None, "", None, 3),
        TupleStructInfo(()),
        FuncStructInfo((TensorStructInfo((n,)),), ObjectStructInfo(), False), FuncStructInfo.opaque_func(),
    ]  # fmt: skip
    again = load_json(save_json(infos))
    assert structural_equal(list(again), infos, map_free_vars=True)
    assert [type(one) for one in again] == [type(one) for one in infos]
    call = op.add(relax.const([1.0, 2.0]), relax.const([3.0, 4.0]))
    assert structural_equal(load_json(save_json(call)), call)
    assert structural_equal(load_json(save_json({"a": call}))["a"], call)
    derived = FuncStructInfo(None, ObjectStructInfo(), True, lambda call, ctx: ObjectStructInfo())
    with pytest.raises(RecordError, match="by a function of Python"):
        save_json(derived)


def test_closures_choices_and_casts() -> None:
    mod = from_source("""
@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor(("n",), "float32"), c: R.Tensor((), "bool"), s: R.Shape(["n"])) -> R.Object:
        n = T.int64()
        m = T.int64()
        @R.function
        def inner(y: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
            return R.add(y, x)
        if c:
            z = inner(x)
        else:
            z = x
        w = R.match_cast(z, R.Tensor((m,), "float32"))
        _ = R.print(w, format="{}")
        v = R.call_packed("f", w, R.dtype("int8"), R.str("a"), R.prim_value(n), sinfo_args=R.Object)
        return v
""")
    again = load_json(save_json(mod))
    assert structural_equal(again, mod) and again.script() == mod.script()


def changed(change: Any) -> str:
    data = json.loads(save_json(Network))
    change(data, lambda key, number=0: [node for node in data["nodes"] if node["type_key"] == key][number])
    return json.dumps(data)


def _rename(data: Any, node: Any) -> None:
    node("relax.Op")["repr_str"] = "relax.system"


def _bytes(data: Any, node: Any) -> None:
    node("relax.NDArray")["repr_str"] = "float32;1000;AAAA"


def _negative(data: Any, node: Any) -> None:
    node("relax.NDArray")["repr_str"] = "float32;-1,-4;AAAAAAAAAAAAAAAAAAAAAA=="


def _field(data: Any, node: Any) -> None:
    del node("relax.Var")["attrs"]["name_hint"]


def _kind(data: Any, node: Any) -> None:
    node("relax.VarBinding")["attrs"]["var"] = str(data["nodes"].index(node("relax.Op")))


def _swapped(data: Any, node: Any) -> None:
    bindings = data["nodes"][int(node("relax.DataflowBlock")["attrs"]["bindings"])]
    bindings["data"].reverse()


def _index(data: Any, node: Any) -> None:
    node("relax.TupleGetItem")["attrs"]["index"] = "7"


def _key(data: Any, node: Any) -> None:
    node("relax.Function")["type_key"] = "relax.Nothing"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (_rename, "no operator 'relax.system'"),
        (_bytes, "has 4000 bytes, not 3"),
        (_negative, "has 16 bytes, not 16|an array of"),
        (_field, "has exactly the attrs"),
        (_kind, "var is Var, not"),
        (_swapped, "not well-formed: main"),
        (_index, "element 7 of a tuple of 2"),
        (_key, "has no place here"),
    ],
)
def test_texts_that_are_none(change: Any, text: str) -> None:
    with pytest.raises(RecordError, match=text):
        load_json(changed(change))


def test_modules_keep_their_names() -> None:
    again = load_json(save_json(Network))
    assert [var.name_hint for var in again.get_global_vars()] == [var.name_hint for var in Network.get_global_vars()]
    assert GlobalVar("helper") in again
