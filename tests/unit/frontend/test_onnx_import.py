"""Models of ONNX become graphs: names, shapes, symbols, what inputs have to say, and what no file may do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relax
from tensorexpr.errors import ModelError, UnsupportedOperatorError
from tensorexpr.relax.frontend import detach_params
from tensorexpr.relax.frontend.onnx import from_onnx

onnx = pytest.importorskip("onnx")
helper, FLOAT, INT64 = onnx.helper, onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


def tensor(name: str, shape: Any = None, kind: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any], initial: Sequence[Any] = (), opset: int = 18) -> Any:
    graph = helper.make_graph(list(nodes), "g", list(inputs), list(outputs), [onnx.numpy_helper.from_array(a, n) for n, a in initial])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def run(mod: Any, *args: Any) -> Any:
    found = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())["main"](*args)
    return [one.numpy() for one in found] if isinstance(found, tuple) else found.numpy()


ADD = model([helper.make_node("Add", ["x", "w"], ["y"])], [tensor("x", [2, 3])], [tensor("y")], [("w", np.ones((2, 3), "float32"))])


def test_a_model_is_a_function() -> None:
    x = np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(run(from_onnx(ADD), x), x + 1)
    np.testing.assert_array_equal(run(from_onnx(ADD.SerializeToString()), x), x + 1)


def test_initializers_as_parameters() -> None:
    mod, params = detach_params(from_onnx(ADD, keep_params_in_input=True))
    assert [one.name_hint for one in mod["main"].params] == ["x", "w"]
    assert mod["main"].attrs["num_input"] == 1
    x = np.zeros((2, 3), "float32")
    np.testing.assert_array_equal(run(mod, x, *params["main"]), x + 1)


def test_a_model_stays_as_it_is() -> None:
    before = ADD.SerializeToString()
    from_onnx(ADD, opset=17, keep_params_in_input=True)
    from_onnx(ADD, opset=13)
    assert ADD.SerializeToString() == before


def test_symbols_of_shapes() -> None:
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Mul", ["s", "s"], ["y"])]
    mod = from_onnx(model(nodes, [tensor("x", [2, "n"])], [tensor("y")]))
    np.testing.assert_array_equal(run(mod, np.zeros((2, 5), "float32")), [4, 25])


@pytest.mark.parametrize(("name", "shown"), [("a.b", "a_b"), ("0x", "input_0x"), ("a/b:0", "a/b:0")])
def test_names_of_inputs(name: str, shown: str) -> None:
    one = model([helper.make_node("Neg", [name], ["y"])], [tensor(name, [2])], [tensor("y")])
    vm = relax.VirtualMachine(relax.build(from_onnx(one), "llvm"), tvm.cpu())
    vm.set_input("main", **{shown: np.ones(2, "float32")})
    vm.invoke_stateful("main")
    np.testing.assert_array_equal(vm.get_outputs("main").numpy(), [-1, -1])
    assert from_onnx(one, sanitize_input_names=False)["main"].params[0].name_hint == name


def test_all_unsupported_operators_are_listed() -> None:
    nodes = [helper.make_node(op, ["x"], [out], domain="own", name=f"node_{op}") for op, out in (("Foo", "a"), ("Bar", "y"))]
    made = model(nodes, [tensor("x", [2])], [tensor("y")])
    made.opset_import.append(helper.make_opsetid("own", 3))
    with pytest.raises(UnsupportedOperatorError, match=r"own::Bar \(opset 3\): 'node_Bar'\n  own::Foo \(opset 3\): 'node_Foo'"):
        from_onnx(made)


def test_functions_of_the_model() -> None:
    body = [helper.make_node("Add", ["a", "b"], ["t"]), helper.make_node("Neg", ["t"], ["r"])]
    function = helper.make_function("own", "F", ["a", "b"], ["r"], body, [helper.make_opsetid("", 18)])
    made = model([helper.make_node("F", ["x", "x"], ["y"], domain="own")], [tensor("x", [2])], [tensor("y")])
    made.functions.append(function)
    made.opset_import.append(helper.make_opsetid("own", 1))
    np.testing.assert_array_equal(run(from_onnx(made), np.ones(2, "float32")), [-2, -2])


def broken(**changes: Any) -> Any:
    made = onnx.ModelProto()
    made.CopyFrom(ADD)
    for name, change in changes.items():
        change(made.graph if name == "graph" else made)
    return made


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda g: g.node.append(helper.make_node("Neg", ["x"], ["y"])), "'y' is made twice"),
        (lambda g: g.node.append(helper.make_node("Neg", ["nowhere"], ["z"])), "uses 'nowhere', which no input"),
        (lambda g: g.input.append(tensor("x", [1])), "'x' is there twice"),
        (lambda g: g.output.append(tensor("other")), "nothing makes the output 'other'"),
        (lambda g: g.initializer[0].dims.__setitem__(0, -2), "an extent is negative"),
        (lambda g: g.initializer[0].dims.__setitem__(0, 1 << 62), "more than any memory holds"),
        (lambda g: g.initializer[0].dims.__setitem__(0, 5), "has 24 bytes, where its shape"),
        (lambda g: setattr(g.initializer[0], "data_type", 99), "99 is no element type"),
        (lambda g: setattr(g.node[0], "op_type", ""), "has no operator"),
        (lambda g: g.input[0].ClearField("type"), "the input 'x' has no type"),
    ],
)
def test_what_a_graph_must_not_be(change: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        from_onnx(broken(graph=change))


def test_a_circle_is_named() -> None:
    nodes = [helper.make_node("Neg", ["b"], ["a"], name="first"), helper.make_node("Neg", ["a"], ["b"], name="second")]
    with pytest.raises(ModelError, match="in a circle: Neg 'first', Neg 'second'"):
        from_onnx(model(nodes, [tensor("x", [2])], [tensor("a")]))


def test_nodes_in_another_order() -> None:
    nodes = [helper.make_node("Neg", ["a"], ["y"]), helper.make_node("Abs", ["x"], ["a"])]
    np.testing.assert_array_equal(run(from_onnx(model(nodes, [tensor("x", [2])], [tensor("y")])), np.array([-1, 2], "float32")), [-1, -2])


def test_an_opset_that_there_isnt() -> None:
    with pytest.raises(ModelError, match="is of opset 999; the installed package"):
        from_onnx(broken(model=lambda m: setattr(m.opset_import[0], "version", 999)))


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "link", ""])
def test_data_outside_of_the_models_folder(tmp_path: Any, name: str) -> None:
    (tmp_path / "secret").write_bytes(b"\0" * 24)
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "secret")
    made = broken()
    weight = made.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value=name)
    (folder / "m.onnx").write_bytes(made.SerializeToString())
    with pytest.raises(ModelError, match="isn't inside of the model's folder"):
        from_onnx(folder / "m.onnx")
    with pytest.raises(ModelError, match="the folder of the model isn't known"):
        from_onnx(made)


def test_data_beside_the_model(tmp_path: Any) -> None:
    made = broken()
    weight = made.graph.initializer[0]
    (tmp_path / "weights").write_bytes(b"12345678" + weight.raw_data)
    weight.ClearField("raw_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", "weights"), ("offset", "8")):
        weight.external_data.add(key=key, value=value)
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    np.testing.assert_array_equal(run(from_onnx(str(tmp_path / "m.onnx")), np.zeros((2, 3), "float32")), np.ones((2, 3)))


def test_shapes_that_contradict_name_the_node() -> None:
    made = model([helper.make_node("Add", ["x", "z"], ["y"], name="sum")], [tensor("x", [2]), tensor("z", [3])], [tensor("y")])
    with pytest.raises(ModelError, match=r"Add 'sum' \(opset 18\): .*don't broadcast.*R.Tensor\(\(2,\).*R.Tensor\(\(3,\)"):
        from_onnx(made)


def test_what_is_no_model() -> None:
    for wrong in (b"\xff\xfe\0garbage", 5, "/nowhere/model.onnx"):
        with pytest.raises(ModelError):
            from_onnx(wrong)
    with pytest.raises(ModelError, match="has no graph"):
        from_onnx(b"")


def test_an_input_that_there_isnt() -> None:
    with pytest.raises(ModelError, match="has no input 'q'; it has 'x'"):
        from_onnx(ADD, shape_dict={"q": [1]})


@pytest.mark.parametrize("step", [-1, -3])
def test_ranges_downwards_from_extents(step: int) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"], start=1, end=2),
        helper.make_node("Squeeze", ["s"], ["n"]),
        helper.make_node("Constant", [], ["zero"], value_int=0),
        helper.make_node("Constant", [], ["step"], value_int=step),
        helper.make_node("Range", ["n", "zero", "step"], ["r"]),
    ]
    mod = from_onnx(model(nodes, [tensor("x", [1, "w"])], [tensor("r", kind=onnx.TensorProto.INT64)]))
    for width in (4, 7):
        np.testing.assert_array_equal(run(mod, np.zeros((1, width), "float32")), np.arange(width, 0, step))


@pytest.mark.parametrize(("fmod", "wanted"), [(0, [2, -2]), (1, [-1, 1])])
def test_remainders_of_known_numbers_have_the_sign_that_is_asked_for(fmod: int, wanted: list[int]) -> None:
    nodes = [
        helper.make_node("Constant", [], ["a"], value_ints=[-7, 7]),
        helper.make_node("Constant", [], ["b"], value_ints=[3, -3]),
        helper.make_node("Mod", ["a", "b"], ["r"], fmod=fmod),
        helper.make_node("Cast", ["r"], ["f"], to=onnx.TensorProto.FLOAT),
        helper.make_node("Add", ["x", "f"], ["y"]),
    ]
    mod = from_onnx(model(nodes, [tensor("x", [2])], [tensor("y")]))
    np.testing.assert_array_equal(run(mod, np.zeros(2, "float32")), wanted)


def test_ranges_of_floating_point_numbers_to_extents() -> None:
    """The grid of a detector: as many numbers as the image has columns, which aren't known."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"], start=1, end=2),
        helper.make_node("Squeeze", ["s"], ["n"]),
        helper.make_node("Cast", ["n"], ["limit"], to=onnx.TensorProto.FLOAT),
        helper.make_node("Constant", [], ["zero"], value_float=0.0),
        helper.make_node("Constant", [], ["two"], value_float=2.0),
        helper.make_node("Range", ["zero", "limit", "two"], ["r"]),
    ]
    mod = from_onnx(model(nodes, [tensor("x", [1, "w"])], [tensor("r")]))
    for width in (4, 7):
        np.testing.assert_array_equal(run(mod, np.zeros((1, width), "float32")), np.arange(0, width, 2).astype("float32"))


def _ints(*values: int) -> Any:
    return np.array(values, "int64")


_ONES = np.ones((4, 1, 3, 3), "float32")


@pytest.mark.parametrize(
    ("operator", "shapes", "attributes", "message"),
    [
        ("Conv", [(1, 1, 5, 5), _ONES], {"dilations": [-1, 1]}, r"dilations of \[-1, 1\]"),
        ("Conv", [(1, 1, 5, 5), _ONES], {"strides": [0, 1]}, r"strides of \[0, 1\]"),
        ("Conv", [(1, 1, 5, 5), _ONES], {"pads": [-1, 0, 0, 0]}, r"pads of \[-1, 0, 0, 0\]"),
        ("Conv", [(1, 1, 5, 5), _ONES], {"kernel_shape": [2, 2]}, r"kernel_shape is \[2, 2\], where the weights have \[3, 3\]"),
        ("AveragePool", [(1, 1, 2, 2)], {"kernel_shape": [0, 1]}, r"a window of \[0, 1\]"),
        ("ConvTranspose", [(1, 4, 2, 2), _ONES], {"pads": [5, 5, 5, 5]}, "a negative extent"),
        ("Resize", [(1, 1, 2, 2), None, np.array([1, 1, -2, 2], "float32")], {}, "a negative extent"),
        ("Split", [(4, 3), _ints(1, 2)], {}, r"parts of \[1, 2\] elements of an axis of 4"),
        ("Split", [(4, 3), _ints(5, -1)], {}, r"parts of \[5, -1\]"),
        ("Slice", [(4, 3), _ints(0, 1), _ints(2, 3), _ints(0, -2)], {}, "an axis is named twice"),
        ("TopK", [(2, 3), _ints(-1)], {}, "-1 elements"),
        ("Gather", [(2, 3), _ints(1, 7)], {}, "the index 7 of an axis of 2"),
        ("Gather", [(2, 3), _ints(-4)], {"axis": 1}, "the index -4 of an axis of 3"),
        ("GatherElements", [(2, 3), _ints(9).reshape(1, 1)], {}, "the index 9 of an axis of 2"),
        ("GatherND", [(2, 3), _ints(1, 3).reshape(1, 2)], {}, "the index 3 of an axis of 3"),
        ("ScatterND", [(2, 3), _ints(1, -4).reshape(1, 2), np.ones(1, "float32")], {}, "the index -4 of an axis of 3"),
        ("ScatterElements", [(2, 3), _ints(2).reshape(1, 1), np.ones((1, 1), "float32")], {}, "the index 2 of an axis of 2"),
        ("Tile", [(2, 3), _ints(-1, 1)], {}, "a negative extent"),
        ("Tile", [(2, 3), _ints(1 << 40, 1 << 40)], {}, "more elements than a process can address"),
        ("Expand", [(1, 1), _ints(1 << 40, 1 << 40)], {}, "more elements than a process can address"),
        ("ConstantOfShape", [_ints(1 << 32, 1 << 32)], {}, "more elements than a process can address"),
        ("Split", [(4,)], {"axis": 3}, "axis 3 of a tensor of 1 axes"),
        ("Split", [(4,)], {"num_outputs": 0}, "0 parts"),
        ("Concat", [_ints(1), _ints(2)], {"axis": 2}, "axis"),
        ("Reshape", [_ints(1, 2), _ints(3, -1)], {}, "2.* elements can't be a tensor of shape"),
        ("Expand", [_ints(1, 2), _ints(3)], {}, "broadcast"),
        ("Squeeze", [_ints(1), _ints(3)], {}, "axis"),
        ("LayerNormalization", [(2, 3), np.ones(3, "float32")], {"axis": 5}, "axis 5 of a tensor of 2 axes"),
        ("DFT", [(1, 0, 1)], {}, "a transform of length 0"),
        ("DFT", [(1, 4, 1)], {"axis": 7}, "axis 7 of a tensor of 3 axes"),
        ("Resize", [(1, 1, 2, 2), None, np.ones(3, "float32")], {}, "3 scales or sizes for 4 axes"),
        ("Resize", [(1, 1, 2, 2), None, None, _ints(2, 2)], {}, "2 scales or sizes for 4 axes"),
        ("Resize", [(1, 1, 2, 2), None, None, _ints(2)], {"axes": [4]}, "axis 4 of a tensor of 4 axes"),
        ("MaxPool", [(1, 1, 4, 4, 4)], {"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER"}, "windows over 2 axes of data with 3"),
        ("MaxUnpool", [(1, 1, 2), (1, 1, 2)], {"kernel_shape": [2, 2]}, "windows over 2 axes of data with 1"),
        ("ConvTranspose", [(1, 4, 2, 2), _ONES], {"output_padding": [1]}, "output_padding has 1 numbers for 2 axes"),
        ("ConvTranspose", [(1, 4, 2), _ONES], {"output_shape": [4, 4]}, "windows over 2 axes of data with 1"),
        ("ConvTranspose", [(1, 4, 2, 2), _ONES], {"strides": [1]}, "strides has 1 numbers for 2 axes"),
        ("Col2Im", [(5, 15), _ints(5, 5), _ints(1, 5)], {}, "from columns of 2 axes, which are 3"),
        ("Col2Im", [(1, 7, 5), _ints(5, 5), _ints(1, 5)], {}, "columns of 7 elements"),
        ("DepthToSpace", [(1, 8, 2, 2)], {"blocksize": 0}, "blocks of 0 pixels"),
        ("SpaceToDepth", [(1, 8, 2)], {"blocksize": 2}, "data of 3 axes, which are 4"),
        ("ConstantOfShape", [_ints(-1)], {}, "a negative extent"),
        ("OneHot", [(2,), _ints(3, 4), np.ones(2, "float32")], {}, r"operand 1 has to be one number, and has the shape \[2\]"),
        ("Range", [_ints(0, 1), _ints(3), _ints(1)], {}, "operand 0 has to be one number"),
        ("RoiAlign", [(1, 1, 4, 4), (3, 4), _ints(0, 0, 0)], {"mode": "constant"}, "no mode 'constant'; there are avg and max"),
        ("SplitToSequence", [(4, 3), np.array(0, "int64")], {}, "parts of 0 elements"),
        ("SplitToSequence", [(1 << 30, 3)], {}, "there are 1 to 16384 parts"),
        ("SplitToSequence", [(4, 3), _ints(1, 2)], {}, r"parts of \[1, 2\] elements of an axis of 4"),
        ("GRU", [(4, 1, 3), (1, 9, 3), (1, 9)], {}, "the weights have three axes"),
        ("GRU", [(4, 1, 3), (1, 9, 3), (1, 9, 3)], {"direction": "bidirectional"}, "direction 1 of"),
        ("LSTM", [(4, 1, 3), np.ones((1, 16, 3), "float32"), np.ones((1, 16, 4), "float32")], {"hidden_size": 7}, "hidden_size is 7"),
    ],
)
def test_numbers_that_no_node_can_have_name_it(operator: str, shapes: list[Any], attributes: dict[str, Any], message: str) -> None:
    """Shapes are inputs of the graph, arrays its initializers, None is left out."""
    names = ["" if one is None else f"x{n}" for n, one in enumerate(shapes)]
    given = list(zip(names, shapes, strict=True))
    inputs = [helper.make_tensor_value_info(name, 1, one) for name, one in given if isinstance(one, tuple)]
    arrays = [onnx.numpy_helper.from_array(one, name) for name, one in given if isinstance(one, np.ndarray)]
    outputs = [onnx.ValueInfoProto(name=f"y{n}") for n in range(2 if operator in ("Split", "TopK") else 1)]
    node = helper.make_node(operator, names, [one.name for one in outputs], name="odd", **attributes)
    graph = helper.make_graph([node], "g", inputs, outputs, arrays)
    with pytest.raises(ModelError, match=rf"{operator} 'odd' \(opset 18\): .*{message}"):
        from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]))
