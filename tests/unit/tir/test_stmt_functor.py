"""Visitors and rewrites that user passes are made of."""

from __future__ import annotations

import pytest

from tensorexpr import tir
from tensorexpr.errors import DeclarationError
from tensorexpr.tir.attrs import FrozenMap
from tensorexpr.tir.buffer import pointer_var
from tensorexpr.tir.rewriting import Node
from tensorexpr.tir.stmt_functor import (
    ir_transform,
    post_order_visit,
    pre_order_visit,
    renew_defs,
    stmt_list,
    substitute,
)
from tensorexpr.tir.verify import violations

TRUE = tir.const(True)
i, j, n = tir.Var("i"), tir.Var("j"), tir.Var("n")
A = tir.decl_buffer((8, 8), name="A")


def loop(var: tir.Var, extent: int, body: tir.Stmt, kind: tir.ForKind = tir.ForKind.SERIAL) -> tir.For:
    return tir.For(var, tir.const(0), tir.const(extent), kind, body)


STORE = tir.BufferStore(A, A[i, j] + 1.0, (i, j))
NEST = loop(i, 4, loop(j, 8, STORE))


def names(nodes: list[Node]) -> list[str]:
    return [type(node).__name__ for node in nodes if not isinstance(node, (tir.Var, tir.IntImm))]


def test_visits() -> None:
    seen: list[Node] = []
    post_order_visit(NEST, seen.append)
    assert names(seen) == ["BufferLoad", "FloatImm", "Add", "BufferStore", "For", "For"]
    assert len(seen) == len(set(seen))
    seen = []

    def visit(node: Node) -> bool:
        seen.append(node)
        return not isinstance(node, tir.BufferStore)

    pre_order_visit(NEST, visit)
    assert names(seen) == ["For", "For", "BufferStore"]


def test_transform_calls_in_order_and_only_where_enabled() -> None:
    log: list[str] = []

    def note(when: str) -> object:
        return lambda node: log.append(f"{when} {node.loop_var.name}")

    unchanged = ir_transform(NEST, note("pre"), note("post"), ["tir.For"])  # type: ignore[arg-type]
    assert unchanged is NEST
    assert log == ["pre i", "pre j", "post j", "post i"]


def test_transform_visits_from_left_to_right() -> None:
    one, two = (tir.BufferStore(A, tir.const(float(v)), (i, j)) for v in (1, 2))
    seen: list[Node] = []
    ir_transform(tir.stmt_seq(one, two), seen.append, None, [tir.BufferStore])
    assert seen == [one, two]


def test_transform_vectorises_as_the_tutorials_do() -> None:
    """Find loops in preorder, replace them in postorder."""
    wanted: list[Node] = []
    post_order_visit(NEST, lambda node: wanted.append(node) if isinstance(node, tir.For) and node.extent is tir.const(8) else None)
    outer, inner = tir.Var("j.outer"), tir.Var("j.inner")

    def split(node: Node) -> Node | None:
        if node not in wanted or not isinstance(node, tir.For):
            return None
        body = substitute(node.body, {node.loop_var: outer * 4 + inner})
        return loop(outer, 2, loop(inner, 4, body, tir.ForKind.VECTORIZED))

    text = str(ir_transform(NEST, None, split, ["tir.For"]))
    assert "for i, j_outer in T.grid(4, 2):" in text
    assert "for j_inner in T.vectorized(4):" in text
    assert "A[i, j_outer * 4 + j_inner] = A[i, j_outer * 4 + j_inner] + T.float32(1.0)" in text


def test_preorder_replacement_ends_the_descent() -> None:
    new = tir.Evaluate(tir.const(7))

    def replace_inner(node: Node) -> Node | None:
        return new if isinstance(node, tir.For) and node.loop_var is j else None

    def fail(node: Node) -> Node | None:
        assert not isinstance(node, tir.BufferStore)
        return None

    result = ir_transform(NEST, replace_inner, fail)
    assert isinstance(result, tir.For) and result.body is new


def test_substitute() -> None:
    axis = tir.IterVar(None, i)
    assert substitute(i * 2 + j, {axis: 3, j: n}) is n + 6
    assert substitute(NEST, {n: 3}) is NEST
    assert substitute(i + j, {i: j, j: i}) is j + i
    assert substitute(NEST, {i: 3, j: 4}) is NEST  # its own
    assert substitute(NEST.body, {i: 3, j: 4}) is not NEST.body
    with pytest.raises(DeclarationError, match="i is defined in a part"):
        substitute(tir.stmt_seq(NEST, STORE), {i: 3})
    sized = tir.decl_buffer((n,), name="S")
    moved = substitute(tir.BufferStore(sized, sized[0], (i,)), {n: 16})
    assert isinstance(moved, tir.BufferStore) and moved.buffer.shape == (tir.const(16),)
    assert isinstance(moved.value, tir.BufferLoad) and moved.value.buffer is moved.buffer
    pointer = pointer_var("new", "float32")
    assert substitute(sized[0], {sized.data: pointer}).buffer.data is pointer
    with pytest.raises(DeclarationError, match="can't become"):
        substitute(sized[0], {sized.data: 3})
    with pytest.raises(DeclarationError, match="replaces variables, not 'i'"):
        substitute(i + 1, {"i": 3})


def test_renew_defs() -> None:
    handle, stride = tir.Var("A", "handle"), tir.Var("stride")
    a = tir.decl_buffer((n, 8), name="A", strides=[stride, 1])
    view = tir.decl_buffer((64,), name="A", data=a.data)
    t = tir.decl_buffer((8,), name="t", data=pointer_var("t", "float32"))
    x, y, free = tir.Var("x"), tir.Var("y"), tir.Var("free")
    body: tir.Stmt = tir.BufferStore(t, view[tir.Let(x, i + n, x * 2 + stride)] + free.astype("float32"), (y,))
    body = tir.Allocate(t.data, "float32", (tir.const(8),), TRUE, tir.LetStmt(y, 1 + i, tir.AttrStmt(t, "key", n, body)))
    old = tir.PrimFunc((handle,), loop(i, 4, body), None, {handle: a}, FrozenMap({"global_symbol": "f"}))
    new = renew_defs(old)
    assert tir.structural_equal(old, new) and str(new) == str(old)
    assert not set(new.params) & set(old.params)

    def side_by_side(second: tir.PrimFunc) -> tir.PrimFunc:
        buffers = {**old.buffer_map, **second.buffer_map}
        return tir.PrimFunc((*old.params, *second.params, free), tir.stmt_seq(old.body, second.body), None, buffers)

    assert violations(side_by_side(new)) == []
    assert len(violations(side_by_side(old))) == 4  # the handle, i, t and y


def test_stmt_list() -> None:
    assert stmt_list(STORE) == [STORE]
    assert stmt_list(tir.stmt_seq(STORE, NEST)) == [STORE, NEST]


def test_a_node_that_is_made_is_not_the_one_replaced_elsewhere() -> None:
    x, y, b = tir.Var("x"), tir.Var("y"), tir.decl_buffer((2,), "int32", "B")
    wanted = x + 1
    stmt = tir.stmt_seq(tir.BufferStore(b, wanted, (tir.const(0),)), tir.BufferStore(b, y + 1, (tir.const(1),)))
    made = ir_transform(stmt, lambda node: tir.const(7) if node is wanted else None, lambda node: x if node is y else None)
    values = [one.value for one in stmt_list(made) if isinstance(one, tir.BufferStore)]
    assert [str(value) for value in values] == ["7", "x + 1"]
