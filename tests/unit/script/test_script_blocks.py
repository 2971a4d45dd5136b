"""Blocks of scripts: axes, regions and what the reader adds."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tensorexpr import tir
from tensorexpr.script import parse
from tensorexpr.tir.attrs import FrozenMap
from tensorexpr.tir.structural_difference import assert_structural_equal

TRUE = tir.const(True)
HEADER = '@T.prim_func\ndef main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16,), "float32"), n: T.int32):\n'


def read(text: str) -> tir.PrimFunc:
    """The function with these statements."""
    func = parse(HEADER + "\n".join("    " + line for line in text.split("\n")))
    assert isinstance(func, tir.PrimFunc)
    return func


def block_of(text: str) -> tuple[tir.PrimFunc, tir.BlockRealize]:
    """The one block below the root."""
    func = read(text)
    found = [node for node in tir.rewriting.walk(func.body) if isinstance(node, tir.BlockRealize) and node is not func.body]
    assert len(found) == 1
    return func, found[0]


def shown(regions: Sequence[tir.BufferRegion]) -> list[str]:
    """Regions as text."""
    return [f"{r.buffer.name}[{', '.join(f'{side.min}+{side.extent}' for side in r.region)}]" for r in regions]


@pytest.mark.parametrize(
    ("line", "kind", "low", "extent", "value"),
    [
        ("v = T.axis.spatial(16, i)", tir.IterVar.DATA_PAR, 0, 16, "i"),
        ("v = T.axis.S(16, i)", tir.IterVar.DATA_PAR, 0, 16, "i"),
        ("v = T.axis.reduce(16, i)", tir.IterVar.COMM_REDUCE, 0, 16, "i"),
        ("v = T.axis.R((2, 18), i + 2)", tir.IterVar.COMM_REDUCE, 2, 16, "i + 2"),
        ("v = T.axis.scan(16, i)", tir.IterVar.ORDERED, 0, 16, "i"),
        ("v = T.axis.opaque(16, i)", tir.IterVar.DIM_INFO, 0, 16, "i"),
        ("v = T.axis.spatial(1, 0)", tir.IterVar.DATA_PAR, 0, 1, "0"),
        ('v = T.axis.remap("S", [i])', tir.IterVar.DATA_PAR, 0, 16, "i"),
        ('(v,) = T.axis.remap("R", [i])', tir.IterVar.COMM_REDUCE, 0, 16, "i"),
    ],
)
def test_axes(line: str, kind: int, low: int, extent: int, value: str) -> None:
    _, realize = block_of(f'for i in range(16):\n    with T.block("B"):\n        {line}\n        C[v] = A[v, v]')
    (axis,) = realize.block.iter_vars
    assert axis.name == "v" and axis.iter_type == kind and axis.dom == tir.Range.from_min_extent(tir.const(low), tir.const(extent))
    assert str(realize.iter_values[0]) == value


def test_axes_have_the_dtype_of_their_loops() -> None:
    _, realize = block_of('for i in range(T.int64(16)):\n    with T.block("B"):\n        v = T.axis.spatial(16, i)\n        C[v] = A[v, v]')
    (axis,) = realize.block.iter_vars
    assert axis.dtype == "int64" and axis.dom == tir.Range.from_min_extent(tir.const(0, "int64"), tir.const(16, "int64"))


def test_several_axes_in_one_line() -> None:
    text = 'for i, j in T.grid(16, 8):\n    with T.block("B"):\n        v, w = T.axis.remap("SR", [i, j])\n        C[v] = A[v, w]'
    _, realize = block_of(text)
    assert [(axis.name, axis.iter_type) for axis in realize.block.iter_vars] == [("v", 0), ("w", 2)]


def test_what_is_stated_is_taken() -> None:
    text = """with T.block("B"):
    v = T.axis.spatial(16, n)
    T.where(n < 16)
    T.reads(A[0:16, v], C[v])
    T.writes([C[v:v + 2]])
    T.block_attr({"a": 1, "b": [T.bool(True), "x"], "c": None})
    D = T.alloc_buffer((4,), "int8", scope="local")
    M = T.match_buffer(A[v, 0:16], (16,), strides=("s",), elem_offset="e")
    C[v] = M[0] + A[v, v]"""
    _, realize = block_of(text)
    block = realize.block
    assert str(realize.predicate) == "n < 16"
    assert shown(block.reads) == ["A[0+16, v+1]", "C[v+1]"] and shown(block.writes) == ["C[v+2]"]
    assert dict(block.annotations) == {"a": 1, "b": [True, "x"], "c": None}
    assert [(b.name, b.dtype, b.scope()) for b in block.alloc_buffers] == [("D", "int8", "local")]
    (match,) = block.match_buffers
    assert match.buffer.name == "M" and [var.name for var in match.defines()] == ["M", "s", "e"]
    assert isinstance(block.body, tir.BufferStore)


def test_regions_that_are_not_stated_are_those_of_the_body() -> None:
    text = """for i, j, k in T.grid(4, 4, 16):
    with T.block("B"):
        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
        with T.init():
            C[vi] = 0.0
        for x in range(4):
            C[vi] += A[vi * 4 + x, vk] * A[vj, vk]"""
    _, realize = block_of(text)
    block = realize.block
    assert shown(block.writes) == ["C[vi+1]"]
    assert [r.buffer.name for r in block.reads] == ["A"], "what is reduced is no read of its own"
    assert isinstance(block.init, tir.BufferStore) and str(block.init.value) == "T.float32(0.0)"


def test_either_side_may_be_stated_alone() -> None:
    body = "v = T.axis.spatial(16, n)\n    {}\n    C[v] = A[v, v]"
    _, realize = block_of('with T.block("B"):\n    ' + body.format("T.reads(A[0:16, 0:16])"))
    assert shown(realize.block.reads) == ["A[0+16, 0+16]"] and shown(realize.block.writes) == ["C[v+1]"]
    _, realize = block_of('with T.block("B"):\n    ' + body.format("T.writes(C[0:16])"))
    assert shown(realize.block.reads) == ["A[v+1, v+1]"] and shown(realize.block.writes) == ["C[0+16]"]


LOOPED = 'for i in range(16):\n    with T.block("B"):\n        v = T.axis.spatial(16, i)\n        C[v] = A[v, v]'


def test_a_function_of_blocks_gets_a_root() -> None:
    func = read(LOOPED)
    assert isinstance(func.body, tir.BlockRealize) and func.body.block.name_hint == "root" and not func.body.block.iter_vars
    stated = read('with T.block("root"):\n' + "\n".join("    " + line for line in LOOPED.split("\n")))
    assert_structural_equal(func, stated)
    allocated = read("D = T.alloc_buffer((4,))\n" + LOOPED)
    assert isinstance(allocated.body, tir.BlockRealize) and [b.name for b in allocated.body.block.alloc_buffers] == ["D"]


def test_a_function_without_blocks_has_no_root() -> None:
    assert isinstance(read("C[0] = 1.0").body, tir.BufferStore)


def test_a_root_that_says_something_is_not_left_out() -> None:
    func = read('with T.block("root"):\n    T.reads(A[0:16, 0:16])\n    T.writes(C[0:16])\n    C[0] = A[0, 0]')
    assert isinstance(func.body, tir.BlockRealize) and shown(func.body.block.writes) == ["C[0+16]"]
    assert 'with T.block("root"):\n        T.reads(' in func.script()


def test_a_root_around_a_block_without_axes_is_written_out() -> None:
    """Read back, the inner block would be taken for the root."""
    func = read("C[0] = 1.0")
    inner = tir.BlockRealize((), TRUE, tir.Block((), (), (), "inner", func.body))
    nested = func.with_body(tir.BlockRealize((), TRUE, tir.Block((), (), (), "root", inner)))
    assert nested.script().count("with T.block") == 2 and "# with" not in nested.script()
    assert_structural_equal(parse(nested.script()), nested)


def test_a_view_that_is_a_statement_stays_one() -> None:
    """A view at the beginning of a block's body is not one of the block's own."""
    func = read("C[0] = 1.0")
    whole = next(buffer for buffer in func.buffer_map.values() if buffer.name == "C")
    view = tir.decl_buffer((16,), name="M")
    region = tir.BufferRegion.full_region(whole)
    bind = tir.BufferBind(view, region, tir.BufferStore(view, tir.const(1.0), (tir.const(0),)))
    block = tir.Block((), (region,), (region,), "B", bind)
    made = func.with_body(tir.BlockRealize((), TRUE, block))
    assert "with T.match_buffer(C[0:16], (16,)) as M:" in made.script()
    assert_structural_equal(parse(made.script()), made)


def test_a_block_alone() -> None:
    func = parse(
        HEADER + '    with T.block("B", no_realize=True):\n        v = T.axis.spatial(16)\n        C[v] = 1.0', check_well_formed=False
    )
    assert isinstance(func, tir.PrimFunc)
    found = [node for node in tir.rewriting.walk(func.body) if isinstance(node, tir.Block) and node.name_hint == "B"]
    assert len(found) == 1 and found[0].annotations == FrozenMap()


def test_programs_outside_of_the_schedulable_form_are_read() -> None:
    """Opaque blocks, while loops and several writers of one buffer."""
    text = """N = T.alloc_buffer((1,), "int32")
N[0] = 0
while N[0] < 4:
    with T.block("opaque"):
        T.reads(N[0])
        T.writes(C[0:16], N[0])
        C[N[0]] = 1.0
        N[0] = N[0] + 1
with T.block("again"):
    T.writes(C[5])
    T.reads()
    C[5] = 2.0"""
    func = read(text)
    assert_structural_equal(parse(func.script()), func)


def test_a_call_with_the_address_of_an_element_may_touch_all_of_a_buffer() -> None:
    source = """
@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            T.call_extern("int32", "step", T.address_of(A[vi]), T.address_of(B[vi]))
"""
    text = parse(source).script()
    assert "T.reads(A[0:8], B[0:8])" in text and "T.writes(A[0:8], B[0:8])" in text
