"""Files that somebody has changed: whatever they say, what comes out is a module or an error of ours.

TENSOREXPR_FUZZ=10000 changes so many files, half of them models of the standard's tests, which take some seconds to make; a few hundred of
the first kind are enough to notice what is broken.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from tensorexpr.driver.conformance.cases import cases
from tensorexpr.errors import TensorExprError
from tensorexpr.relax.frontend.onnx import from_onnx
from tensorexpr.tir.function import IRModule

onnx = pytest.importorskip("onnx")
helper, FLOAT, INT64, BOOL = onnx.helper, onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL
FEW = 300
COUNT = int(os.environ.get("TENSOREXPR_FUZZ", FEW))


def tensor(name: str, shape: Any = None, kind: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def weight(name: str, values: Any) -> Any:
    return onnx.numpy_helper.from_array(np.asarray(values), name)


def model(nodes: list[Any], inputs: list[Any], outputs: list[Any], initial: list[Any], opset: int = 18) -> Any:
    return helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, initial), opset_imports=[helper.make_opsetid("", opset)])


def shapes() -> Any:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Slice", ["s", "one", "two"], ["n"]),
        helper.make_node("Concat", ["n", "rest"], ["t"], axis=0),
        helper.make_node("Reshape", ["x", "t"], ["r"]), helper.make_node("Slice", ["r", "zero", "one", "zero"], ["c"]),
        helper.make_node("Transpose", ["c"], ["y"], perm=[1, 0]), helper.make_node("ConstantOfShape", ["s"], ["z"]),
        helper.make_node("Unsqueeze", ["y", "zero"], ["u"]), helper.make_node("Expand", ["u", "big"], ["e"]),
    ]  # fmt: skip
    initial = [
        weight("one", np.array([1], "int64")),
        weight("two", np.array([2], "int64")),
        weight("zero", np.array([0], "int64")),
        weight("rest", np.array([-1], "int64")),
        weight("big", np.array([3, 1, 1], "int64")),
    ]
    return model(nodes, [tensor("x", [2, 3])], [tensor("e"), tensor("z")], initial)


def layers() -> Any:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "b"], ["a"]),
        helper.make_node("Clip", ["a", "", "six"], ["r"]),
        helper.make_node("LayerNormalization", ["r", "b"], ["l"], axis=-1, epsilon=1e-5),
        helper.make_node("Softmax", ["l"], ["p"], axis=-1),
        helper.make_node("ReduceMean", ["p"], ["q"], keepdims=0), helper.make_node("Split", ["p"], ["o", "k"], axis=1, num_outputs=2),
        helper.make_node("Pad", ["o", "pads"], ["y"], mode="reflect"),
    ]  # fmt: skip
    initial = [
        weight("w", np.ones((3, 4), "f")),
        weight("b", np.ones(4, "f")),
        weight("six", np.float32(6)),
        weight("pads", np.array([0, 1, 0, 1], "int64")),
    ]
    return model(nodes, [tensor("x", ["n", 3])], [tensor("y"), tensor("q")], initial)


def control() -> Any:
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["go"]), helper.make_node("Add", ["s", "x"], ["t"]), helper.make_node("Neg", ["t"], ["row"])],
        "body", [tensor("i", [], INT64), tensor("c", [], BOOL), tensor("s", [3])],
        [tensor("go", [], BOOL), tensor("t", [3]), tensor("row", [3])],
    )  # fmt: skip
    branches = [helper.make_graph([helper.make_node(op, ["last"], ["r"])], op, [], [tensor("r")]) for op in ("Neg", "Abs")]
    nodes = [
        helper.make_node("Loop", ["m", "", "x"], ["last", "rows"], body=body),
        helper.make_node("If", ["d"], ["y"], then_branch=branches[0], else_branch=branches[1]),
    ]
    return model(nodes, [tensor("x", [3]), tensor("d", [], BOOL)], [tensor("y"), tensor("rows")], [weight("m", np.int64(3))])


def functions() -> Any:
    inside = [helper.make_node("Add", ["a", "a"], ["t"]), helper.make_node("Celu", ["t"], ["r"])]
    made = model([helper.make_node("F", ["x"], ["y"], domain="own")], [tensor("x", [2])], [tensor("y")], [])
    made.functions.append(helper.make_function("own", "F", ["a"], ["r"], inside, [helper.make_opsetid("", 18)]))
    made.opset_import.append(helper.make_opsetid("own", 1))
    return made


def steps() -> Any:
    """Sequences of steps, and of tensors; weights of four bits."""
    row = helper.make_graph([helper.make_node("Neg", ["e"], ["r"])], "row", [tensor("e", [2, 3])], [tensor("r", [2, 3])])
    nodes = [
        helper.make_node("LSTM", ["x", "w", "r", "b"], ["all", "h", "c"], hidden_size=1),
        helper.make_node("GRU", ["x", "v", "u"], ["some"], hidden_size=1),
        helper.make_node("SplitToSequence", ["x", "", ], ["parts"], axis=0, keepdims=0),
        helper.make_node("SequenceMap", ["parts"], ["turned"], body=row),
        helper.make_node("ConcatFromSequence", ["turned"], ["y"], axis=0, new_axis=1),
        helper.make_node("DequantizeLinear", ["narrow", "scale"], ["z"]),
    ]  # fmt: skip
    initial = [
        *(weight(name, np.ones(shape, "f")) for name, shape in (("w", (1, 4, 3)), ("r", (1, 4, 1)), ("b", (1, 8)), ("v", (1, 3, 3)))),
        weight("u", np.ones((1, 3, 1), "f")),
        weight("scale", np.float32(0.5)),
        helper.make_tensor("narrow", onnx.TensorProto.INT4, [4], [1, -2, 3, -8]),
    ]
    return model(nodes, [tensor("x", [2, 2, 3])], [tensor(name) for name in ("all", "some", "y", "z")], initial, 21)


SOURCES = [make().SerializeToString() for make in (shapes, layers, control, functions, steps)]


def messages(proto: Any) -> list[Any]:
    """A message and all inside of it."""
    found = [proto]
    for field, value in proto.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for one in value if field.is_repeated else [value]:
                found += messages(one)
    return found


def a_field(data: bytes, draw: random.Random) -> bytes:
    """Another number, text, or none, in one place of the model."""
    proto = onnx.ModelProto.FromString(data)
    chosen = draw.choice([one for one in messages(proto) if one.ListFields()])
    field, value = draw.choice(chosen.ListFields())
    other: dict[Any, Callable[[], Any]] = {
        field.TYPE_STRING: lambda: draw.choice(["", "x", "t", "Reshape", "If", "../x", "a" * 300]),
        field.TYPE_BYTES: lambda: draw.choice([b"", b"\xff\xfe", bytes(range(64)), b"constant"]),
        field.TYPE_FLOAT: lambda: draw.choice([0.0, -1.0, float("nan"), float("inf")]),
        field.TYPE_DOUBLE: lambda: 0.5,
    }
    number = draw.choice([0, 1, -1, 2, 3, 7, 13, 1 << 20, (1 << 31) - 1])
    if field.type == field.TYPE_MESSAGE:
        if field.is_repeated and draw.random() < 0.5:
            value.add().CopyFrom(draw.choice(list(value)))
        elif field.is_repeated:
            del value[draw.randrange(len(value))]
        else:
            chosen.ClearField(field.name)
    elif field.is_repeated:
        value[draw.randrange(len(value))] = other.get(field.type, lambda: number)()
    elif draw.random() < 0.2:
        chosen.ClearField(field.name)
    else:
        try:
            setattr(chosen, field.name, other.get(field.type, lambda: number)())
        except ValueError:  # a number that an enumeration lacks
            chosen.ClearField(field.name)
    return bytes(proto.SerializeToString())


def some_bytes(data: bytes, draw: random.Random) -> bytes:
    """Bytes changed, left out, repeated, or cut off."""
    found = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 8])):
        at = draw.randrange(len(found))
        match draw.randrange(5):
            case 0:
                found[at] = draw.randrange(256)
            case 1:
                found[at] ^= 1 << draw.randrange(8)
            case 2:
                del found[at : at + draw.randrange(1, 9)]
            case 3:
                found[at:at] = found[at : at + draw.randrange(1, 33)]
            case 4:
                del found[at:]
        if not found:
            break
    return bytes(found)


@cache
def nodes() -> list[bytes]:
    """Models of one operator each, of the standard's tests, with all inputs but the first as initializers: more is known of them so."""
    made = []
    for case in [one for one in cases() if one.group.startswith("node")]:
        if case.source.data_sets:
            proto, (inputs, _) = onnx.ModelProto.FromString(case.model().SerializeToString()), next(iter(case.data_sets(case.model())))
            for info, value in list(zip(proto.graph.input, inputs, strict=False))[1:]:
                if isinstance(value, np.ndarray) and value.dtype != object:
                    proto.graph.initializer.append(onnx.numpy_helper.from_array(value, info.name))
            made.append(proto.SerializeToString())
    return made


@pytest.mark.parametrize("source", range(len(SOURCES)))
def test_the_files_that_are_changed_are_good(source: int) -> None:
    assert isinstance(from_onnx(SOURCES[source]), IRModule)


@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("change", [a_field, some_bytes])
def test_a_changed_file_is_a_module_or_an_error_of_ours(change: Callable[[bytes, random.Random], bytes], part: int) -> None:
    draw = random.Random(f"{change.__name__} {part}")
    failed = 0
    for n in range(max(2, COUNT // 20)):
        data = draw.choice(nodes() if n % 2 and COUNT > FEW else SOURCES)
        for _ in range(draw.choice([1, 1, 1, 2, 4])):
            try:
                data = change(data, draw)
            except Exception:  # what was changed before is no model any more
                break
        try:
            from_onnx(data)
        except TensorExprError:
            failed += 1
    assert failed
