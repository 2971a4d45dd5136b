"""Functions of blocks from tensors: parameters, attributes, dtypes. What they look like is in tests/golden."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.errors import DeclarationError
from tensorexpr.script import from_source
from tensorexpr.te import to_prim_func
from tensorexpr.te.from_prim_func import tensors_of
from tensorexpr.te.index_dtype import retyped
from tensorexpr.te.to_prim_func import prim_func_later
from tensorexpr.tir.rewriting import variables, walk
from tensorexpr.tir.structural import structural_equal
from tensorexpr.tir.verify import verify_well_formed
from tests import programs
from tests.block_programs import DECLARED


@pytest.mark.parametrize("name", DECLARED)
def test_the_result_is_well_formed_and_always_the_same(name: str) -> None:
    func = te.create_prim_func(DECLARED[name]())
    assert verify_well_formed(func)
    assert structural_equal(func, te.create_prim_func(DECLARED[name]()))


@pytest.mark.parametrize("name", DECLARED)
def test_a_body_that_is_made_later_is_the_same(name: str) -> None:
    later = prim_func_later(DECLARED[name](), "int64")
    assert structural_equal(later, te.create_prim_func(DECLARED[name](), "int64"))


def test_functions_that_differ_in_attributes_share_a_later_body(monkeypatch: pytest.MonkeyPatch) -> None:
    a = te.placeholder((4,), name="A")
    func = prim_func_later([a, te.compute((4,), lambda i: a[i] + 1, name="B")], "int64")
    made = []
    monkeypatch.setattr(to_prim_func._Builder, "_body", lambda self: made.append(self))
    named = func.with_attr("global_symbol", "f").with_attrs({"n": 1}).without_attr("n")
    assert named.params == func.params
    assert named.attrs == {}
    assert not hasattr(named, "nothing")
    assert not made
    monkeypatch.undo()
    with ThreadPoolExecutor(4) as pool:
        bodies = list(pool.map(lambda one: one.body, [func, named] * 8))
    assert all(body is bodies[0] for body in bodies)
    assert structural_equal(pickle.loads(pickle.dumps(named)), named)


def test_what_a_body_would_refuse_is_refused_at_once() -> None:
    a, b = te.placeholder((4,), name="A"), te.placeholder((4,), name="B")
    with pytest.raises(DeclarationError, match="placeholder B is read but missing"):
        prim_func_later([a, te.compute((4,), lambda i: a[i] + b[i], name="C")], "int64")
    ends = te.placeholder((4,), "int64", name="ends")
    k = te.reduce_axis((0, ends[0]), "k")
    with pytest.raises(DeclarationError, match="has no constant bounds"):
        prim_func_later([a, ends, te.compute((4,), lambda i: te.sum(a[i], k), name="C")], "int64")


def test_attributes_and_parameters_in_order() -> None:
    v, alpha = te.placeholder((16,), name="V"), te.var("alpha", "float32")
    q = te.compute((16,), lambda i: v[i] * alpha, name="Q")
    func = te.create_prim_func([q, alpha, v])
    assert dict(func.attrs) == {"global_symbol": "main", "tir.noalias": True}
    assert [p.name for p in func.params] == ["var_Q", "alpha", "var_V"]
    assert func.params[1] is alpha


def test_an_intermediate_may_be_an_argument() -> None:
    a, b, c, out = programs.matmul_add()
    product = next(t for t in out.op.input_tensors if t.name == "matmul")
    func = te.create_prim_func([a, b, c, product, out])
    assert isinstance(func.body, tir.BlockRealize) and func.body.block.alloc_buffers == ()


def test_blocks_have_names_of_their_own() -> None:
    a = te.placeholder((4,), name="A")
    first = te.compute((4,), lambda i: a[i] + 1.0, name="A")
    second = te.compute((4,), lambda i: first[i] + 1.0, name="A")
    func = te.create_prim_func([a, second])
    assert [b.name_hint for b in walk(func.body) if isinstance(b, tir.Block)] == ["A", "A_1", "root"]


def test_free_layouts_are_numbers_of_parameters() -> None:
    a, w = te.placeholder((8,), name="A"), te.placeholder((8,), name="W")
    out = te.compute((8,), lambda i: a[i] * w[i], name="out", attrs={"layout_free_placeholders": [w], "kept": 1})
    func = te.create_prim_func([a, w, out])
    assert list(func.attrs["layout_free_buffers"]) == [1]
    block = next(b for b in walk(func.body) if isinstance(b, tir.Block))
    assert dict(block.annotations) == {"kept": 1}


def test_index_dtype_override() -> None:
    n = te.var("n")
    a = te.placeholder((n, 4), name="A")
    out = te.compute((n, 4), lambda i, j: tir.if_then_else(i < n - 1, a[i, j], 0.0) + (i * 4 + j).astype("float32"), name="out")
    func = te.create_prim_func([a, out], index_dtype_override="int64")
    assert {v.dtype for v in walk(func.body) if isinstance(v, tir.Var) and v.dtype != "handle"} == {"int64"}
    assert all(extent.dtype == "int64" for buffer in func.buffer_map.values() for extent in buffer.shape)
    assert verify_well_formed(func)


def test_values_keep_their_dtype_when_indices_change_theirs() -> None:
    i, wide = tir.Var("i"), tir.Var("i", "int64")
    new = retyped(tir.Select(i < 3, i, i * 2), {i: wide}, "int64")
    assert new.dtype == "int32" and wide in set(walk(new))
    assert retyped(tir.max(i, 3), {}, "int64") is tir.max(i, 3)


def test_externs_are_blocks_that_state_what_they_touch() -> None:
    a = te.placeholder((4, 4), name="A")
    b = te.compute((4, 4), lambda i, j: a[i, j] + 1.0, name="B")
    columns = tir.decl_buffer((4, 4), name="view", strides=[te.var("s0"), te.var("s1")], elem_offset=te.var("start"))

    def firsts(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tir.Stmt:
        i = tir.Var("i")
        return tir.For(i, tir.const(0), tir.const(4), tir.ForKind.SERIAL, tir.BufferStore(outs[0], ins[0][i, 0] * 2.0, (i,)))

    c = te.extern((4,), [b], firsts, in_buffers=[columns], dtype="float32", name="C")
    func = te.create_prim_func([a, c])
    text = str(func)
    assert "T.reads(B[0:4, 0:4])" in text and "T.writes(C[0:4])" in text and "view = T.match_buffer(B[0:4, 0:4]" in text
    given, out = np.arange(16, dtype="float32").reshape(4, 4), tvm.nd.empty((4,))
    tvm.build(func)(tvm.nd.array(given), out)
    np.testing.assert_array_equal(out.numpy(), (given[:, 0] + 1) * 2)


def test_a_reduction_range_that_depends_on_other_axes_is_bounded_by_a_condition() -> None:
    x = te.placeholder((4, 4, 4), name="x")

    def below(i: tir.Var) -> Any:
        outer = te.reduce_axis(tvm.ir.Range.from_min_extent(0, i))
        inner = te.reduce_axis(tvm.ir.Range.from_min_extent(1, outer))
        return te.sum(x[i, outer, inner - 1], axis=[outer, inner])

    func = te.create_prim_func([x, te.compute((4,), below, name="y")])
    given, out = np.arange(64, dtype="float32").reshape(4, 4, 4), tvm.nd.empty((4,))
    tvm.build(func)(tvm.nd.array(given), out)
    np.testing.assert_array_equal(out.numpy(), [sum(given[i, r, s] for r in range(i) for s in range(r)) for i in range(4)])


def test_conditions_on_indices_are_simple_and_those_on_data_stay() -> None:
    a, d = te.placeholder((4,), name="a"), te.placeholder((6,), "int32", name="d")
    padded = te.compute((6,), lambda i: te.if_then_else(te.all(i >= 1, i - 1 < 4), a[i - 1], 0.0), name="b")
    kept = te.compute((6,), lambda i: te.if_then_else(d[i] + 1 > 3, 1.0, 0.0), name="e")
    text = str(te.create_prim_func([a, d, padded, kept]))
    assert "1 <= v_i and v_i < 5" in text and "3 < d[v_i] + 1" in text


@pytest.mark.parametrize(
    ("index", "region"),
    [
        (lambda place: place, "X[0:16]"),
        (lambda place: te.max(te.min(place, 9), 2), "X[2:10]"),
        (lambda place: te.min(place, 9), "X[0:16]"),
        (lambda place: place * 2 + 3, "X[0:16]"),
    ],
)
def test_places_that_floats_are_rounded_to_are_bounded_by_what_clamps_them(index: Any, region: str) -> None:
    x = te.placeholder((16,), name="X")
    y = te.compute((4,), lambda i: x[index(te.floor(i.astype("float32") * 1.5).astype("int32"))], name="Y")
    assert f"T.reads({region})" in te.create_prim_func([x, y]).script()


def test_rounded_places_are_wide_where_indices_are() -> None:
    x = te.placeholder((16,), name="X")
    y = te.compute((4,), lambda i: x[te.min(te.floor(i.astype("float32")).astype("int32"), 9)], name="Y")
    assert 'X[T.min(T.Cast("int64", T.floor(' in te.create_prim_func([x, y], "int64").script()


def test_a_size_that_is_passed_is_that_size_wherever_it_stands() -> None:
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="B")
    orders: list[list[Any]] = [[n, a, b], [a, n, b], [a, b, n]]
    for params in orders:
        func = te.create_prim_func(params, index_dtype_override="int64")
        assert [variables(func.buffer_map[var].shape[0]) for var in func.buffer_map] == [{n}, {n}]


def test_axes_that_skip_values_are_no_tensors() -> None:
    func: Any = from_source(
        "@T.prim_func(check_well_formed=False)\ndef f(A: T.Buffer((8,)), B: T.Buffer((4,))):\n    for i in range(4):\n"
        "        with T.block('b'):\n            v = T.axis.spatial(4, i * 2)\n            B[v] = A[v] + 1.0"
    )
    with pytest.raises(DeclarationError, match="give axis v other values than its range"):
        tensors_of(func)
