"""Branches and loops of ONNX: of one branch that is known, of two, unrolled, and taken by the virtual machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr.errors import ArgumentError, ModelError
from tensorexpr.relax.frontend.onnx import from_onnx

onnx = pytest.importorskip("onnx")
from .test_onnx_import import model, run, tensor  # noqa: E402

helper, FLOAT, INT64, BOOL = onnx.helper, onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL


def constant(name: str, value: Any) -> Any:
    return helper.make_node("Constant", [], [name], value=onnx.numpy_helper.from_array(np.asarray(value)))


def branch(op: str) -> Any:
    return helper.make_graph([helper.make_node(op, ["x"], ["r"])], op, [], [tensor("r")])


def test_two_branches() -> None:
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch("Neg"), else_branch=branch("Abs"))
    mod = from_onnx(model([node], [tensor("c", [], BOOL), tensor("x", [2])], [tensor("y")]))
    x = np.array([-1, 2], "float32")
    np.testing.assert_array_equal(run(mod, np.bool_(True), x), -x)
    np.testing.assert_array_equal(run(mod, np.bool_(False), x), np.abs(x))


def test_a_branch_that_does_not_fit_the_shapes_is_an_error_where_it_is_taken() -> None:
    """As of networks with weights for inputs of two lengths."""
    branches = {}
    for name, rows in (("then_branch", 2), ("else_branch", 3)):
        nodes = [constant("w", np.ones((rows, 4), "float32")), helper.make_node("MatMul", ["x", "w"], ["r"])]
        branches[name] = helper.make_graph(nodes, name, [], [tensor("r")])
    node = helper.make_node("If", ["c"], ["y"], **branches)
    mod = from_onnx(model([node], [tensor("c", [], BOOL), tensor("x", [1, 2])], [tensor("y")]))
    x = np.array([[1, 2]], "float32")
    np.testing.assert_array_equal(run(mod, np.bool_(True), x), np.full((1, 4), 3.0))
    with pytest.raises(ArgumentError, match=r"this branch doesn't fit the shapes.*MatMul"):
        run(mod, np.bool_(False), x)
    with pytest.raises(ModelError, match="MatMul"):
        from_onnx(model([node], [tensor("c", [], BOOL), tensor("x", [1, 5])], [tensor("y")]))


def test_a_branch_that_is_known() -> None:
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch("Neg"), else_branch=branch("Abs"))
    made = from_onnx(model([constant("c", np.bool_(False)), node], [tensor("x", [2])], [tensor("y")]))
    assert "if" not in str(made["main"]) and "R.abs" in str(made["main"])


def sums(trips: Any, condition: Any = None, ends: bool = False) -> Any:
    """Turns of s = s + i + x, whose result is s after the last, and s of each."""
    nodes = [
        helper.make_node("Cast", ["i"], ["f"], to=FLOAT), helper.make_node("Add", ["f", "x"], ["a"]),
        helper.make_node("Add", ["s", "a"], ["t"]), helper.make_node("Identity", ["t"], ["row"]),
    ]  # fmt: skip
    if ends:
        nodes += [constant("seven", np.float32(7)), helper.make_node("Less", ["t", "seven"], ["go"])]
    else:
        nodes += [helper.make_node("Identity", ["c"], ["go"])]
    body = helper.make_graph(
        nodes,
        "body",
        [tensor("i", [], INT64), tensor("c", [], BOOL), tensor("s", [])],
        [tensor("go", [], BOOL), tensor("t", []), tensor("row", [])],
    )
    first = [] if trips is None else [constant("m", np.int64(trips))]
    names = ["" if trips is None else "m", "" if condition is None else "start", "s0"]
    first += [] if condition is None else [constant("start", np.bool_(condition))]
    loop = helper.make_node("Loop", names, ["last", "rows"], body=body)
    return from_onnx(model([*first, loop], [tensor("s0", []), tensor("x", [])], [tensor("last"), tensor("rows")]))


def expected(turns: int) -> np.ndarray[Any, Any]:
    return np.cumsum(np.arange(turns) + 1).astype("float32")


@pytest.mark.parametrize("trips", [1, 5, 300])
@pytest.mark.parametrize("condition", [None, True])
def test_so_many_turns(trips: int, condition: bool | None) -> None:
    mod = sums(trips, condition)
    assert ("R.loop" in str(mod["main"])) == (trips == 300)
    last, rows = run(mod, np.float32(0), np.float32(1))
    np.testing.assert_allclose(rows, expected(trips))
    np.testing.assert_allclose(last, expected(trips)[-1])


@pytest.mark.parametrize(("trips", "turns"), [(None, 4), (100, 4), (2, 2)])
def test_turns_while_a_condition_holds(trips: int | None, turns: int) -> None:
    last, rows = run(sums(trips, True, ends=True), np.float32(0), np.float32(1))
    np.testing.assert_allclose(rows, expected(turns))
    np.testing.assert_allclose(last, rows[-1])


@pytest.mark.parametrize(("trips", "condition"), [(0, None), (5, False)])
def test_no_turn(trips: int, condition: bool | None) -> None:
    last, rows = run(sums(trips, condition), np.float32(3), np.float32(1))
    assert rows.shape == (0,)
    assert last == 3


@pytest.mark.parametrize("length", [4, 40])
@pytest.mark.parametrize("backwards", [0, 1])
def test_scan(length: int, backwards: int) -> None:
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "e"], ["t"]), helper.make_node("Identity", ["t"], ["row"])],
        "body", [tensor("s", [3]), tensor("e", [3])], [tensor("t", [3]), tensor("row", [3])],
    )  # fmt: skip
    scan = helper.make_node(
        "Scan", ["s0", "x"], ["last", "rows"], body=body, num_scan_inputs=1, scan_input_axes=[1], scan_output_axes=[-1],
        scan_input_directions=[backwards], scan_output_directions=[backwards],
    )  # fmt: skip
    mod = from_onnx(model([scan], [tensor("s0", [3]), tensor("x", [3, length])], [tensor("last"), tensor("rows")]))
    assert ("R.loop" in str(mod["main"])) == (length == 40)
    x = np.random.default_rng(0).standard_normal((3, length)).astype("float32")
    last, rows = run(mod, np.zeros(3, "float32"), x)
    wanted = np.cumsum(x[:, ::-1], 1)[:, ::-1] if backwards else np.cumsum(x, 1)
    np.testing.assert_allclose(rows, wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(last, x.sum(1), rtol=1e-5, atol=1e-5)


def test_a_body_of_other_arguments() -> None:
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["go"])], "body", [tensor("i", [], INT64), tensor("c", [], BOOL)], [tensor("go")]
    )
    loop = helper.make_node("Loop", ["", "", "x"], ["y"], body=body)
    with pytest.raises(ModelError, match="its body takes 2 values and returns 1, where there are 1 states"):
        from_onnx(model([loop], [tensor("x", [])], [tensor("y")]))
