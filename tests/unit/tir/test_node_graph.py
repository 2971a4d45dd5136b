"""Nodes as saved graphs: what is written is read, text and all; anything else is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tensorexpr import tir
from tensorexpr.arith import IndexMap, index_map_from_json, index_map_to_json
from tensorexpr.errors import RecordError
from tensorexpr.tir.serialize.node_graph import read_graph, write_graph
from tensorexpr.tir.serialize.node_types import EXPRESSIONS
from tensorexpr.tir.structural import structural_equal

X, Y = tir.Var("x", "int32"), tir.Var("y", "int32")

# As TVM 0.19 saves IndexMap.from_func(lambda a, b: (b, a)).
SWAP = """{
  "root": 1, 
  "nodes": [
    {
      "type_key": ""
    }, 
    {
      "type_key": "tir.IndexMap", 
      "attrs": {
        "final_indices": "9", 
        "initial_indices": "2", 
        "inverse_index_map": "0"
      }
    }, 
    {
      "type_key": "Array", 
      "data": [3, 6]
    }, 
    {
      "type_key": "tir.Var", 
      "attrs": {
        "dtype": "int32", 
        "name": "4", 
        "span": "0", 
        "type_annotation": "5"
      }
    }, 
    {
      "type_key": "runtime.String", 
      "repr_str": "a"
    }, 
    {
      "type_key": "PrimType", 
      "attrs": {"dtype": "int32"}
    }, 
    {
      "type_key": "tir.Var", 
      "attrs": {
        "dtype": "int32", 
        "name": "7", 
        "span": "0", 
        "type_annotation": "8"
      }
    }, 
    {
      "type_key": "runtime.String", 
      "repr_str": "b"
    }, 
    {
      "type_key": "PrimType", 
      "attrs": {"dtype": "int32"}
    }, 
    {
      "type_key": "Array", 
      "data": [6, 3]
    }
  ], 
  "b64ndarrays": [], 
  "attrs": {"tvm_version": "0.19.0"}
}"""


def test_the_text_is_tvms() -> None:
    assert index_map_to_json(IndexMap.from_func(lambda a, b: (b, a))) == SWAP
    found = index_map_from_json(SWAP)
    assert (str(found), found.as_python(), found.to_json()) == ("(a, b) -> (b, a)", "lambda a, b: (b, a,)", SWAP)


@pytest.mark.parametrize(
    "expr",
    [
        X // 4 * 3 - Y % 5,
        tir.max(X, tir.min(Y, 3)),
        tir.all(X < Y, tir.any(X >= 1, Y <= 2)),
        tir.Not(X > Y),
        tir.Select(X < Y, X, Y),
        tir.if_then_else(X < Y, tir.Cast("float32", X), tir.const(0.1, "float32")),
        tir.exp(tir.const(float("inf"), "float64")),
        tir.Ramp(X, tir.const(2, "int32"), 4) + tir.Broadcast(Y, 4),
        tir.Let(X, Y + 1, X * X),
        tir.StringImm('a "quoted"\n text \u00e9'),
        tir.SizeVar("n", "int64") + 1,
        tir.const(-(1 << 62), "int64"),
    ],
    ids=str,
)
def test_expressions_come_back(expr: tir.PrimExpr) -> None:
    text = write_graph(expr, EXPRESSIONS)
    found = read_graph(text, EXPRESSIONS)
    assert structural_equal(found, expr, map_free_vars=True)
    assert write_graph(found, EXPRESSIONS) == text


def test_lists_mappings_and_strings_come_back() -> None:
    data = {"name": "x", "values": (X, X, None), "empty": (), "inner": {"k": X + 1}}
    text = write_graph(data, EXPRESSIONS)
    found = read_graph(text, EXPRESSIONS)
    assert found["name"] == "x" and found["empty"] == () and found["values"][2] is None
    assert found["values"][0] is found["values"][1] and found["inner"]["k"].a is found["values"][0]


def test_deep_nests_need_no_recursion() -> None:
    data: Any = X
    for _ in range(5_000):
        data = (data,)
    found = read_graph(write_graph(data, EXPRESSIONS), EXPRESSIONS)
    for _ in range(5_000):
        (found,) = found
    assert isinstance(found, tir.Var)


def graph(*nodes: dict[str, Any], root: int = 1) -> str:
    """A document of nodes behind None."""
    return json.dumps({"root": root, "nodes": [{"type_key": ""}, *nodes], "b64ndarrays": [], "attrs": {"tvm_version": "0.19.0"}})


def imm(dtype: str, value: str, **more: str) -> dict[str, Any]:
    """A constant."""
    return {"type_key": "IntImm", "attrs": {"dtype": dtype, "span": "0", "value": value, **more}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "has the fields root, nodes"),
        ("\x00", "a saved graph is JSON"),
        (graph(root=-1), "has no node -1"),
        (graph({"type_key": "Array", "data": [1]}), "refers to itself"),
        (graph({"type_key": "Array", "data": ["1"]}), "data is a list of numbers"),
        (graph({"type_key": "Map", "keys": ["a"], "data": []}), "as many keys as values"),
        (graph({"type_key": "os.system", "attrs": {}}), "'os.system' has no place here"),
        (graph(imm("int32", "1e3")), "is no integer"),
        (graph(imm("int8", "300")), "300 is no int8"),
        (graph(imm("float32", "1")), "an IntImm is an integer"),
        (graph(imm("int32", "1", evil="2")), "has exactly the attrs"),
        (graph(imm("int2000000000", "1")), "int2000000000"),
        (
            graph(
                {"type_key": "tir.Add", "attrs": {"a": "2", "b": "3", "dtype": "int32", "span": "0"}}, imm("int32", "1"), imm("int64", "1")
            ),
            "Add",
        ),
        (
            graph({"type_key": "tir.Add", "attrs": {"a": "2", "b": "2", "dtype": "int64", "span": "0"}}, imm("int32", "1")),
            "its dtype is int32",
        ),
        (
            graph({"type_key": "tir.Not", "attrs": {"a": "2", "dtype": "bool", "span": "0"}}, {"type_key": "Array", "data": []}),
            "a is PrimExpr",
        ),
        (graph({"type_key": "Op", "repr_str": "os.system"}), "no intrinsic 'os.system'"),
        (json.dumps({"root": 0, "nodes": [], "b64ndarrays": ["AAAA"]}), "with arrays"),
    ],
)
def test_anything_else_is_refused(text: str, message: str) -> None:
    with pytest.raises(RecordError) as error:
        read_graph(text, EXPRESSIONS)
    assert message in str(error.value)


def test_a_graph_that_explodes_is_refused() -> None:
    nodes = [{"type_key": "Array", "data": [n + 2] * 10} for n in range(30)]
    with pytest.raises(RecordError, match="stands for"):
        read_graph(graph(*nodes, {"type_key": "Array", "data": []}), EXPRESSIONS)


@pytest.mark.parametrize(
    ("final", "message"), [(imm("float32", "1"), "IntImm"), ({"type_key": "tir.StringImm", "attrs": {}}, "exactly the attrs")]
)
def test_index_maps_are_of_indices(final: dict[str, Any], message: str) -> None:
    index_map = {"type_key": "tir.IndexMap", "attrs": {"final_indices": "2", "initial_indices": "3", "inverse_index_map": "0"}}
    text = graph(index_map, {"type_key": "Array", "data": [4]}, {"type_key": "Array", "data": []}, final)
    with pytest.raises(RecordError, match=message):
        index_map_from_json(text)


def test_index_maps_use_their_own_indices() -> None:
    assert str(index_map_from_json(index_map_to_json(IndexMap((X,), (X,))))) == "(x) -> (x)"
    assert str(index_map_from_json(index_map_to_json(IndexMap((X,), (X + Y,))))) == "(x) -> (x + y)"
    with pytest.raises(RecordError, match="takes each index once"):
        index_map_from_json(index_map_to_json(IndexMap((X, X), (X,))))


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"keys": ["a"], "data": [2, 2]}, "as many keys as values"),
        ({"keys": ["a", "a"], "data": [2, 2]}, "a key twice"),
        ({"keys": [1], "data": [2]}, "are texts, or nodes among its data"),
        ({"data": [3, 2]}, "a Map is no key of a Map"),
        ({"data": [4, 2]}, "a Map is no key of a Map"),
        ({"data": [2, 2, 2]}, "as many keys as values"),
    ],
)
def test_maps_have_keys(attrs: dict[str, Any], message: str) -> None:
    text = {"type_key": "runtime.String", "repr_str": "a"}
    nodes = [
        {"type_key": ""},
        {"type_key": "Map", **attrs},
        text,
        {"type_key": "Map", "keys": [], "data": []},
        {"type_key": "Array", "data": [3]},
    ]
    with pytest.raises(RecordError, match=message):
        read_graph(json.dumps({"root": 1, "nodes": nodes}), EXPRESSIONS)
