"""Whose mistake an error of the importer is: the model's, or ours. Either names the node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr import errors, relax
from tensorexpr.errors import DeclarationError, InternalError, ModelError, TensorExprError
from tensorexpr.frontend.onnx import registry
from tensorexpr.relax.frontend.onnx import from_onnx
from tests.effort import share_of

onnx = pytest.importorskip("onnx")
helper, FLOAT = onnx.helper, onnx.TensorProto.FLOAT


def one_node(node: Any, inputs: int = 1, shape: Any = (2,), opset: int = 18, arrays: Any = ()) -> Any:
    given_inputs = [helper.make_tensor_value_info(f"x{n}", FLOAT, shape) for n in range(inputs)]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    initial = [onnx.numpy_helper.from_array(np.asarray(values), name) for name, values in arrays]
    graph = helper.make_graph([node], "g", given_inputs, outputs, initial)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def inside_of_a_function() -> Any:
    made = one_node(helper.make_node("F", ["x0"], ["y"], domain="own", name="outer"))
    body = [helper.make_node("Neg", ["a"], ["r"], name="odd")]
    made.functions.append(helper.make_function("own", "F", ["a"], ["r"], body, [helper.make_opsetid("", 18)]))
    made.opset_import.append(helper.make_opsetid("own", 1))
    return made


PLAIN = one_node(helper.make_node("Neg", ["x0"], ["y"], name="odd"))
# All but those that take other arguments than a message.
OURS = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, TensorExprError)]
OTHERS = [
    one
    for one in (
        KeyError,
        IndexError,
        TypeError,
        ValueError,
        AttributeError,
        AssertionError,
        ZeroDivisionError,
        RecursionError,
        StopIteration,
    )
]


@settings(deadline=None, max_examples=share_of(60))
@given(st.sampled_from(OURS), st.sampled_from([PLAIN, inside_of_a_function()]))
def test_what_an_operator_refuses_is_the_models_fault(kind: Any, model: Any) -> None:
    def refuse(*args: Any) -> Any:
        raise kind("it doesn't fit")

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(registry._CONVERTERS, ("", "Neg"), {1: refuse})
        with pytest.raises(ModelError, match="it doesn't fit") as caught:
            from_onnx(model)
    # What is a ModelError already says where by itself.
    assert issubclass(kind, ModelError) or "Neg 'odd' (opset 18)" in str(caught.value)


@settings(deadline=None, max_examples=share_of(60))
@given(st.sampled_from([InternalError, *OTHERS]), st.sampled_from([PLAIN, inside_of_a_function()]))
def test_a_mistake_of_ours_stays_one_and_names_the_node(kind: Any, model: Any) -> None:
    mistake = kind("it is broken")

    def fail(*args: Any) -> Any:
        raise mistake

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(registry._CONVERTERS, ("", "Neg"), {1: fail})
        with pytest.raises(InternalError, match=r"Neg 'odd' \(opset 18\): .*it is broken.*R.Tensor\(\(2,\)") as caught:
            from_onnx(model)
    root: Any = caught.value
    while root.__cause__ is not None:
        root = root.__cause__
    assert root is mistake
    assert kind is InternalError or f"{kind.__name__}: " in str(caught.value)


def test_no_memory_for_what_a_model_wants_is_no_mistake_of_ours() -> None:
    def fail(*args: Any) -> Any:
        raise MemoryError("4 TiB")

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(registry._CONVERTERS, ("", "Neg"), {1: fail})
        with pytest.raises(ModelError, match=r"Neg 'odd'.*4 TiB"):
            from_onnx(PLAIN)


@pytest.mark.parametrize(
    ("operator", "inputs", "outputs", "message"),
    [
        ("Neg", [], ["y"], "has 0 operands, where the standard has 1"),
        ("Neg", ["x0", "x0"], ["y"], "has 2 operands, where the standard has 1"),
        ("Add", ["x0"], ["y"], "has 1 operands, where the standard has 2"),
        ("Clip", ["", "x0"], ["y"], "leaves out its operand 0, input"),
        ("Concat", [], ["y"], "has 0 operands, where the standard has 1 or more"),
        ("Slice", ["x0", "x0"], ["y"], "has 2 operands, where the standard has 3 to 5"),
        ("Neg", ["x0"], ["y", "z"], "has 2 results, where the standard has 1"),
    ],
)
def test_operands_and_results_that_the_standard_hasnt(operator: str, inputs: list[str], outputs: list[str], message: str) -> None:
    with pytest.raises(ModelError, match=rf"{operator} 'odd' \(opset 18\) {message}"):
        from_onnx(one_node(helper.make_node(operator, inputs, outputs, name="odd")))


def test_operands_left_out_at_the_end_arent_counted() -> None:
    from_onnx(one_node(helper.make_node("Clip", ["x0", "", ""], ["y"])))
    from_onnx(one_node(helper.make_node("Neg", ["x0"], ["y", ""])))


def test_a_function_with_fewer_inputs_than_its_call() -> None:
    made = inside_of_a_function()
    made.graph.node[0].input.append("x0")
    with pytest.raises(ModelError, match=r"F of own 'outer'.*2 operands, where the function has 1"):
        from_onnx(made)


def test_recurrent_layers_of_data_without_steps_and_maps_without_a_body_are_the_models_fault() -> None:
    lstm = helper.make_node("LSTM", ["x0", "w", "r"], ["y"], name="steps", hidden_size=1)
    weights = [("w", np.ones((1, 4, 2), "f")), ("r", np.ones((1, 4, 1), "f"))]
    with pytest.raises(ModelError, match=r"LSTM 'steps'.*\(3,\).*takes sequences, steps and features"):
        from_onnx(one_node(lstm, shape=(3,), arrays=weights))
    with pytest.raises(DeclarationError, match=r"takes data \[time, batch, features\]"):
        relax.op.nn.lstm(*[relax.const(np.ones((4, 2), "f"))] * 6)
    model = one_node(helper.make_node("SequenceMap", ["s"], ["y"], name="rows"))
    model.graph.node.insert(0, helper.make_node("SequenceConstruct", ["x0"], ["s"]))
    with pytest.raises(ModelError, match=r"SequenceMap 'rows'.*body"):
        from_onnx(model)


@pytest.mark.parametrize("count", [0, 2, (1 << 31) - 1])
def test_a_scan_goes_along_operands_that_there_are(count: int) -> None:
    tensors = [[helper.make_tensor_value_info(name, FLOAT, [])] for name in ("e", "r")]
    body = helper.make_graph([helper.make_node("Neg", ["e"], ["r"])], "body", *tensors)
    node = helper.make_node("Scan", ["x0"], ["y"], name="turns", body=body, num_scan_inputs=count)
    with pytest.raises(ModelError, match=f"Scan 'turns'.*1 operands.*goes along {count}"):
        from_onnx(one_node(node))


def test_a_shape_of_another_number_of_dimensions_names_the_input() -> None:
    model = one_node(helper.make_node("Neg", ["x0"], ["y"]), shape=("n", 3))
    with pytest.raises(ModelError, match=r"input 'x0' has 2 dimensions, \(n, 3\); the shape that was given is \(1, 2, 3\)"):
        from_onnx(model, {"x0": (1, 2, 3)})
    assert "(5, 4)" in str(from_onnx(model, {"x0": (5, 4)}))  # extents may be others
