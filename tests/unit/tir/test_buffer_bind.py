"""BufferBind: a buffer that stands for a box of another, in every tool that handles statements."""

from __future__ import annotations

import numpy as np
import pytest

from tensorexpr import tir
from tensorexpr.lower.pipeline import lower
from tensorexpr.lower.rebuild import Copier
from tensorexpr.tir.interpreter import InterpreterError, interpret
from tensorexpr.tir.rewriting import walk
from tensorexpr.tir.structural import structural_equal
from tensorexpr.tir.structural_digest import structural_hash
from tensorexpr.tir.verify import violations


def constant(value: int) -> tir.PrimExpr:
    return tir.IntImm("int32", value)


def add_one_by_tiles(factor: int = 16, name: str = "tile") -> tir.PrimFunc:
    """C = A + 1 on 8 x 32, by tiles of 4 x factor, in buffers with free strides and offsets."""
    a, c = tir.decl_buffer((8, 32), name="A"), tir.decl_buffer((8, 32), name="C")
    i, j, x, y = (tir.Var(n, "int32") for n in "ijxy")
    tiles = [
        tir.decl_buffer((4, factor), name=f"{name}_{n}", strides=[tir.Var(f"s{n}", "int32"), 1], elem_offset=tir.Var(f"o{n}", "int32"))
        for n in range(2)
    ]
    body: tir.Stmt = tiles[1].vstore([x, y], tiles[0].vload([x, y]) + 1.0)
    for var, extent in ((y, factor), (x, 4)):
        body = tir.For(var, constant(0), constant(extent), tir.ForKind.SERIAL, body)
    box = (tir.Range.from_min_extent(i * 4, constant(4)), tir.Range.from_min_extent(j * factor, constant(factor)))
    for buffer, source in ((tiles[1], c), (tiles[0], a)):
        body = tir.BufferBind(buffer, tir.BufferRegion(source, box), body)
    for var, extent in ((j, 32 // factor), (i, 2)):
        body = tir.For(var, constant(0), constant(extent), tir.ForKind.SERIAL, body)
    handles = [tir.Var(b.name, "handle") for b in (a, c)]
    return tir.PrimFunc(tuple(handles), body, None, dict(zip(handles, (a, c), strict=True)))


def check(func: tir.PrimFunc) -> None:
    x, y = np.random.default_rng(0).random((8, 32), np.float32), np.zeros((8, 32), np.float32)
    interpret(func, [x, y])
    np.testing.assert_array_equal(y, x + 1)


@pytest.mark.parametrize("phase", [None, 1, 2, 3])
def test_it_means_the_box(phase: int | None) -> None:
    func = add_one_by_tiles()
    check(func if phase is None else lower(func, upto=phase)["main"])


def test_phase_one_leaves_none() -> None:
    body = lower(add_one_by_tiles(), upto=1)["main"].body
    assert not any(isinstance(node, tir.BufferBind) for node in walk(body))


def test_it_defines_its_pointer_strides_and_offset() -> None:
    func = add_one_by_tiles()
    assert violations(func) == []
    outside = func.with_body(tir.stmt_functor.stmt_seq(func.body, tir.Evaluate(bind_of(func).buffer.elem_offset + 1)))
    assert any("o0" in found for found in violations(outside))


def bind_of(func: tir.PrimFunc) -> tir.BufferBind:
    found: list[tir.BufferBind] = []
    tir.stmt_functor.post_order_visit(func.body, lambda node: found.append(node) if isinstance(node, tir.BufferBind) else None)
    return found[-1]


def test_equality_and_hash_see_through_names() -> None:
    one, other = add_one_by_tiles(), add_one_by_tiles(name="other")
    assert structural_equal(one, other) and structural_hash(one) == structural_hash(other)
    assert not structural_equal(one, add_one_by_tiles(8))
    assert structural_hash(one) != structural_hash(add_one_by_tiles(8))


def test_copies_have_names_of_their_own() -> None:
    func = add_one_by_tiles()
    renewed = tir.stmt_functor.renew_defs(func)
    copied = func.with_body(Copier({}).stmt(func.body))
    for other in (renewed, copied):
        assert structural_equal(func, other)
        assert bind_of(other).buffer.data is not bind_of(func).buffer.data
        assert bind_of(other).buffer.strides[0] is not bind_of(func).buffer.strides[0]
        check(other)


def test_substitution_reaches_the_box() -> None:
    func = add_one_by_tiles()
    outer = func.body
    assert isinstance(outer, tir.For)
    inner = tir.stmt_functor.substitute(outer.body, {outer.loop_var: constant(1)})
    x, y = np.ones((8, 32), np.float32), np.zeros((8, 32), np.float32)
    interpret(func.with_body(inner), [x, y])
    assert (y[4:] == 2).all() and (y[:4] == 0).all()


def test_script() -> None:
    text = add_one_by_tiles().script()
    assert 'tile_0 = T.match_buffer(A[i * 4:i * 4 + 4, j * 16:j * 16 + 16], (4, 16), strides=("s0", 1), elem_offset="o0")' in text
    assert "tile_1[x, y] = tile_0[x, y] + T.float32(1.0)" in text


def test_views_and_offsets_of_a_bound_buffer() -> None:
    """Its pointer and offset may be used by themselves: through a view of one dimension."""
    a = tir.decl_buffer((4, 8), name="A")
    row = tir.decl_buffer((8,), name="row", offset_factor=1)
    view = tir.decl_buffer((4,), name="view", data=row.data, elem_offset=row.elem_offset + 2)
    body = tir.DeclBuffer(view, view.vstore([0], tir.Broadcast(tir.FloatImm("float32", 3.0), 4)))
    box = tir.BufferRegion(a, (tir.Range.from_min_extent(constant(2), constant(1)), tir.Range.from_min_extent(constant(0), constant(8))))
    handle = tir.Var("A", "handle")
    func = tir.PrimFunc((handle,), tir.BufferBind(row, box, body), None, {handle: a})
    wanted = np.zeros((4, 8), np.float32)
    wanted[2, 2:6] = 3
    for version in (func, lower(func)["main"]):
        found = np.zeros((4, 8), np.float32)
        interpret(version, [found])
        np.testing.assert_array_equal(found, wanted)


def test_pointers_reach_the_box() -> None:
    """A C function gets a pointer to the box; what it may write counts as written."""
    a = tir.decl_buffer((4, 8), name="A")
    row = tir.decl_buffer((8,), name="row", offset_factor=1)
    calls = (
        tir.call_extern("int32", "fill", row.access_ptr("w", offset=1, extent=3), 5.0),
        tir.call_extern("int32", "fill", tir.address_of(row.vload([6])), 6.0),
    )
    body = tir.stmt_functor.stmt_seq(*map(tir.Evaluate, calls))
    box = tir.BufferRegion(a, (tir.Range.from_min_extent(constant(1), constant(1)), tir.Range.from_min_extent(constant(0), constant(8))))
    handle = tir.Var("A", "handle")
    func = tir.PrimFunc((handle,), tir.BufferBind(row, box, body), None, {handle: a})

    def fill(memory: np.ndarray[tuple[int], np.dtype[np.float32]], value: float) -> int:
        memory[0] = value
        return len(memory)

    for version in (func, lower(func)["main"]):
        found = np.zeros((4, 8), np.float32)
        interpret(version, [found], externs={"fill": fill})
        assert found[1, 1] == 5 and found[1, 6] == 6 and found.sum() == 11


def test_a_read_through_a_pointer_is_checked() -> None:
    data = tir.decl_buffer((4,), name="t")
    call = tir.Evaluate(tir.call_extern("int32", "use", data.access_ptr("r")))
    func = tir.PrimFunc((), tir.Allocate(data.data, "float32", (constant(4),), tir.IntImm("bool", 1), call), None, {})
    with pytest.raises(InterpreterError, match=r"t\[0\] is read, but nothing was written there"):
        interpret(func, [], externs={"use": len})


def test_access_pointers_count_in_elements_or_vectors() -> None:
    row = tir.decl_buffer((8,), name="row", offset_factor=4)
    whole, vectors = row.access_ptr("rw"), row.access_ptr("r", content_lanes=4, offset=4)
    assert str(whole) == 'T.tvm_access_ptr(T.type_annotation("float32"), row, row_elem_offset, 8, 3)'
    assert str(vectors) == 'T.tvm_access_ptr(T.type_annotation("float32x4"), row, (row_elem_offset + 4) // 4, 1, 1)'
    m, n = tir.SizeVar("m", "int32"), tir.SizeVar("n", "int32")
    apart = tir.decl_buffer((m, n), strides=[n + 1, 1], name="apart")
    assert str(apart.access_ptr("r", offset=100).args[3]) == "(n + 1) * m - 100"  # type: ignore[attr-defined]
    columns = tir.decl_buffer((4, 8), strides=[1, 4], name="columns")
    assert str(columns.access_ptr("r").args[3]) == "32"  # type: ignore[attr-defined]
