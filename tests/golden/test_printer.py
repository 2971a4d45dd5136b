"""Golden prints: TVMScript of whole programs, laid out as users know it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tensorexpr import tir
from tensorexpr.tir.attrs import FrozenMap
from tensorexpr.tir.buffer import pointer_var

Golden = Callable[[str, str], None]
TRUE = tir.const(True)
NAMES = {"global_symbol": "main", "tir.noalias": True, "from_legacy_te_schedule": True}


def loop(
    var: tir.Var, extent: int | tir.PrimExpr, body: tir.Stmt, kind: tir.ForKind = tir.ForKind.SERIAL, **annotations: object
) -> tir.For:
    return tir.For(var, tir.const(0, var.dtype), tir.convert(extent), kind, body, None, FrozenMap(annotations))


def flat(buffer: tir.Buffer, size: int) -> tir.Buffer:
    return tir.decl_buffer((size,), buffer.dtype, buffer.name, data=buffer.data)


def func(buffers: list[tir.Buffer], body: tir.Stmt, *scalars: tir.Var, **attrs: object) -> tir.PrimFunc:
    handles = [tir.Var(b.name, "handle") for b in buffers]
    return tir.PrimFunc((*handles, *scalars), body, None, dict(zip(handles, buffers, strict=True)), FrozenMap(attrs or NAMES))


def store(buffer: tir.Buffer, value: object, *indices: object) -> tir.Stmt:
    return tir.BufferStore(buffer, tir.convert(value), tuple(map(tir.convert, indices)))


def test_lowered_matmul(golden: Golden) -> None:
    a, b, c, out = (tir.decl_buffer((64, 64), name=name) for name in ("A", "B", "C", "out"))
    pointer = pointer_var("matmul", "float32")
    tile = tir.decl_buffer((512,), name="matmul", data=pointer)
    fa, fb, fc, fo = (flat(x, 4096) for x in (a, b, c, out))
    i_outer, j_outer, i, j, k = (tir.Var(n) for n in ("i.outer", "j.outer", "i", "j", "k"))
    i_inner, j_inner = tir.Var("i.inner"), tir.Var("j.inner")
    here = i_outer * 512 + i_inner * 64 + j_outer * 24
    update = store(tile, tile[i * 24 + j] + fa[i_outer * 512 + i * 64 + k] * fb[k * 64 + j_outer * 24 + j], i * 24 + j)
    compute = loop(i, 8, loop(j, 24, tir.stmt_seq(store(tile, tir.const(0.0), i * 24 + j), loop(k, 64, update))))
    copy = store(fo, tile[i_inner * 24 + j_inner] + fc[here + j_inner], here + j_inner)
    guard = tir.IfThenElse(tir.likely(j_outer * 24 + j_inner < 64), copy)
    write = loop(i_inner, 8, loop(j_inner, 24, guard, tir.ForKind.VECTORIZED))
    nest = tir.Allocate(pointer, "float32", (tir.const(512),), TRUE, loop(j_outer, 3, tir.stmt_seq(compute, write)))
    main = func([a, b, c, out], loop(i_outer, 8, nest, tir.ForKind.PARALLEL))
    golden("printer/lowered_matmul.py", str(tir.IRModule({"main": main})))


def test_realize_and_annotations(golden: Golden) -> None:
    a, b = tir.decl_buffer((16, 16), name="A"), tir.decl_buffer((16, 16), name="B", scope="local")
    out = tir.decl_buffer((16, 16), name="out")
    i, j, j2 = tir.Var("i"), tir.Var("j"), tir.Var("j")
    bounds = (tir.Range.from_min_extent(i, tir.const(1)), tir.Range.from_min_extent(tir.const(0), tir.const(16)))
    produce = loop(j, 16, store(b, tir.exp(a[i, j]), i, j), tir.ForKind.UNROLLED, pragma_unroll_explicit=True)
    consume = loop(j2, 16, store(out, b[i, j2] * 2.0, i, j2), pragma_auto_unroll_max_step=64)
    body = loop(i, 16, tir.BufferRealize(b, bounds, TRUE, tir.stmt_seq(produce, consume)))
    golden("printer/realize.py", str(func([a, out], body)))


def test_realize_with_a_condition_before_other_statements(golden: Golden) -> None:
    out, b = tir.decl_buffer((4,), name="out"), tir.decl_buffer((8,), name="B")
    i = tir.Var("i")
    inner = tir.BufferRealize(b, (tir.Range.from_min_extent(i * 2, tir.const(2)),), i < 3, store(b, tir.const(1.0), i * 2))
    golden("printer/realize_with.py", str(func([out], loop(i, 4, tir.stmt_seq(inner, store(out, tir.const(0.0), i))))))


def test_symbolic_shapes(golden: Golden) -> None:
    n, m, alpha = tir.SizeVar("n"), tir.SizeVar("m", "int64"), tir.Var("alpha", "float32")
    a = tir.decl_buffer((n, m), name="A")
    b = tir.decl_buffer((n + 1,), "float16", "B", strides=[tir.Var("stride")])
    c = tir.decl_buffer((n,), "int8", "C", elem_offset=4, scope="local", data_alignment=128, offset_factor=4)
    i, j = tir.Var("i"), tir.Var("j", "int64")
    body = loop(i, n, loop(j, m, store(a, a[i, j] * alpha + b[i].astype("float32") + c[i], i, j)))
    golden("printer/symbolic.py", str(func([a, b, c], body, alpha, global_symbol="scale")))


def test_symbolic_shape_that_is_a_parameter(golden: Golden) -> None:
    n = tir.Var("n")
    a, b = tir.decl_buffer((n, 4), name="A"), tir.decl_buffer((4,), name="B")
    i = tir.Var("i")
    golden("printer/symbolic_parameter.py", str(func([a, b], loop(i, n, store(a, b[0], i, 3)), n)))


def test_vectors_and_predicates(golden: Golden) -> None:
    a, out = tir.decl_buffer((64,), name="A"), tir.decl_buffer((64,), name="out")
    registers = tir.decl_buffer((2,), "float32x16", "acc", data=pointer_var("acc", "float32x16", "register"))
    i = tir.Var("i")
    ramp = tir.Ramp(i * 16, tir.const(1), 16)
    mask = tir.LT(ramp, tir.Broadcast(tir.const(60), 16))
    value = tir.BufferLoad(a, (ramp,), mask)
    body = tir.stmt_seq(
        tir.BufferStore(registers, tir.Broadcast(tir.const(0.0), 16), (tir.const(0),)),
        loop(i, 4, tir.stmt_seq(store(registers, registers[0] + value, 0), tir.BufferStore(out, registers[0], (ramp,), mask))),
        tir.BufferStore(out, a[tir.Ramp(tir.const(0), tir.const(2), 16)], (tir.Ramp(tir.const(16), tir.const(1), 16),)),
        tir.BufferStore(
            out, tir.Shuffle((a[tir.Ramp(tir.const(0), tir.const(1), 8)],), (7, 6)), (tir.Ramp(tir.const(0), tir.const(1), 2),)
        ),
        tir.BufferStore(out, a[tir.Ramp(tir.const(7), tir.const(-1), 8)], (tir.Ramp(tir.const(0), tir.const(1), 8),)),
    )
    nest = tir.Allocate(registers.data, "float32x16", (tir.const(2),), TRUE, body)
    golden("printer/vectors.py", str(func([a, out], nest)))


def test_lets_asserts_attributes_and_calls(golden: Golden) -> None:
    a = tir.decl_buffer((16,), "int32", "A")
    n, x, y, i = tir.Var("n"), tir.Var("x"), tir.Var("x"), tir.Var("i")
    tag = tir.IterVar(None, tir.Var("vthread"), tir.IterVar.THREAD_INDEX, "vthread")
    body = tir.stmt_seq(
        tir.LetStmt(x, n * 2, tir.AttrStmt(a, "storage_alignment", tir.const(64), store(a, x, 0))),
        tir.AttrStmt(i, "pragma_hint", tir.const(1), tir.Evaluate(tir.call_extern("int32", "touch", a.data, "text", n))),
        tir.AttrStmt(tag, "virtual_thread", tir.const(4), store(a, tag.var, tag.var)),
        tir.Evaluate(n),
        tir.While(a[0] < 10, store(a, a[0] + 1, 0)),
        tir.AssertStmt(n > 0, tir.StringImm('n is "0"'), tir.LetStmt(y, n // 2, tir.IfThenElse(y > 3, store(a, y, 1), store(a, -y, 1)))),
    )
    golden("printer/scopes.py", str(func([a], body, n, global_symbol="other", **{"tir.noalias": False})))


def test_loops_join_grids_only_where_they_may(golden: Golden) -> None:
    a = tir.decl_buffer((8, 8, 8), name="A")
    i, j, k = tir.Var("i"), tir.Var("j"), tir.Var("k")
    one = store(a, tir.const(1.0), i, j, k)
    body = tir.stmt_seq(
        loop(i, 8, loop(j, 8, loop(k, 8, one))),
        loop(i, 8, loop(j, i + 1, loop(k, 8, one))),
        loop(i, 8, loop(j, 8, loop(k, 8, one, tir.ForKind.VECTORIZED)), tir.ForKind.PARALLEL),
        tir.For(i, tir.const(2), tir.const(3), tir.ForKind.SERIAL, loop(j, 8, loop(k, 8, one, note="text"))),
        loop(i, 8, tir.For(j, i, 8 - i, tir.ForKind.UNROLLED, loop(k, 8, one))),
    )
    golden("printer/grids.py", str(func([a], body)))


def test_names_are_unique_within_a_scope_and_free_after_it(golden: Golden) -> None:
    a = tir.decl_buffer((8,), name="A")
    view, cast = flat(a, 8), tir.decl_buffer((8,), name="for")
    i, other = tir.Var("i"), tir.Var("i")
    body = tir.stmt_seq(
        loop(i, 8, store(view, view[i], i)),
        loop(i, 8, loop(other, 8, store(view, view[i] + cast[other], other))),
        loop(other, 8, store(a, view[other], other)),
    )
    nest = tir.DeclBuffer(cast, body)
    golden("printer/names.py", str(func([a], tir.Allocate(cast.data, "float32", (tir.const(8),), TRUE, nest, FrozenMap({"x": 1})))))


def test_module_of_several_functions(golden: Golden) -> None:
    a = tir.decl_buffer((), name="A")
    public, private = func([a], store(a, a[()] + 1.0)), func([a], tir.Evaluate(tir.const(0)), note=[1, {"b": 2.5}])
    module = tir.IRModule({"main": public, "second": private, "alias": public}, {"version": 3})
    golden("printer/module.py", str(module))


def test_loose_statement_declares_what_it_uses(golden: Golden) -> None:
    a = tir.decl_buffer((16, 16), name="A")
    n, i, j = tir.Var("n"), tir.Var("i"), tir.Var("j")
    view = tir.decl_buffer((n,), name="A", data=a.data)
    body = loop(i, 16, tir.stmt_seq(tir.IfThenElse(n < 3, store(a, view[i], i, j)), store(a, tir.const(0.0), 0, i)))
    golden("printer/loose.py", str(body))


@pytest.mark.parametrize("missing", [True, False])
def test_a_missing_or_different_golden_file_fails(golden: Golden, missing: bool, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        pytest.skip("files are being written")
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        golden("printer/no_such_file" if missing else "printer/names.py", "text")
