"""What a saved module may not hold, each with its message."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import tensorexpr as tvm
from tensorexpr import tir
from tensorexpr.errors import RecordError
from tensorexpr.tir.serialize.module_graph import module_from_graph, module_to_graph
from tests.meta_schedule_programs import matmul

TEXT = module_to_graph(matmul(8))


def changed(change: Callable[[list[Any]], None]) -> str:
    data = json.loads(TEXT)
    change(data["nodes"])
    return json.dumps(data)


def first(nodes: list[Any], key: str) -> dict[str, Any]:
    found: dict[str, Any] = next(node["attrs"] for node in nodes if node["type_key"] == key)
    return found


def number(nodes: list[Any], key: str) -> str:
    return str(next(n for n, node in enumerate(nodes) if node["type_key"] == key))


def cyclic(nodes: list[Any]) -> None:
    first(nodes, "tir.For")["body"] = number(nodes, "tir.For")


def unknown(nodes: list[Any]) -> None:
    nodes[int(number(nodes, "tir.Block"))]["type_key"] = "tir.Blob"


def separated(nodes: list[Any]) -> None:
    first(nodes, "tir.Buffer")["axis_separators"] = first(nodes, "tir.Buffer")["shape"]


def info(nodes: list[Any]) -> None:
    first(nodes, "IRModule")["global_infos"] = first(nodes, "tir.PrimFunc")["buffer_map"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (cyclic, "refers to itself"),
        (unknown, "'tir.Blob' has no place here"),
        (separated, "no increasing positions"),
        (info, "with global_infos has no place"),
        (lambda nodes: first(nodes, "tir.Buffer").update(buffer_type="7"), "no kind of buffer"),
        (lambda nodes: first(nodes, "tir.Buffer").update(data_alignment="3"), "aligned to 3"),
        (lambda nodes: first(nodes, "tir.Buffer").update(dtype="floaty"), "floaty"),
        (lambda nodes: first(nodes, "tir.For").update(kind="9"), "no kind of loop has the number 9"),
        (lambda nodes: first(nodes, "tir.For").update(more="0"), "has exactly the attrs"),
        (lambda nodes: first(nodes, "tir.IterVar").update(iter_type="77"), "no kind of axis has the number 77"),
        (lambda nodes: first(nodes, "tir.For").update(extent="99999"), "has no node 99999"),
        (lambda nodes: first(nodes, "tir.For").update(extent=number(nodes, "tir.Buffer")), "extent is PrimExpr"),
        (lambda nodes: first(nodes, "tir.PrimFunc").update(params=number(nodes, "tir.Block")), "params is a list of Var"),
        (lambda nodes: first(nodes, "tir.BufferStore").update(predicate=number(nodes, "tir.Buffer")), "predicate is PrimExpr"),
    ],
)
def test_what_is_refused(change: Callable[[list[Any]], None], message: str) -> None:
    with pytest.raises(RecordError, match=message):
        module_from_graph(changed(change))


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"root": 0, "nodes": []}', '{"root": "1", "nodes": [1]}', TEXT.replace('"root": 1', '"root": 3')]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(RecordError):
        module_from_graph(text)


def test_what_lowering_alone_makes_is_not_written() -> None:
    buffer = tir.decl_buffer((4,), name="B")
    view = tir.BufferBind(tir.decl_buffer((2,), name="V"), buffer[0:2], tir.Evaluate(tir.const(0)))
    with pytest.raises(RecordError, match="no node for a BufferBind"):
        module_to_graph(tvm.IRModule({"main": tir.PrimFunc((), view)}))


def test_what_a_function_returns_is_kept() -> None:
    func = tvm.script.from_source("@T.prim_func\ndef main(n: T.int32) -> T.int32:\n    T.ret(n + 1)")
    again = module_from_graph(module_to_graph(tir.IRModule({"main": func})))  # type: ignore[dict-item]
    assert str(again["main"].ret_type) == "T.int32"
