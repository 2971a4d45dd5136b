"""Layouts that follow from those of results: a function that takes them means the same on tensors in these layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr import te, tir, topi
from tensorexpr.arith.index_map import IndexMap
from tensorexpr.errors import DeclarationError
from tensorexpr.relax.analysis import suggest_layout_transforms
from tensorexpr.script import from_source
from tensorexpr.tir.arithmetic import as_int
from tensorexpr.tir.block import Block
from tensorexpr.tir.interpreter import interpret
from tests.effort import share_of

LAYOUTS = {
    "as given": lambda n, c, h: (n, c, h),
    "moved": lambda n, c, h: (n, h, c),
    "blocked": lambda n, c, h: (n, c // 4, h, c % 4),
    "one": lambda n, c, h: ((n * 8 + c) * 6 + h,),
}


def elementwise() -> Any:
    x, b = te.placeholder((2, 8, 6), name="x"), te.placeholder((8, 6), name="b")
    return [x, b, topi.nn.relu(topi.add(x, b))]


def pool() -> Any:
    x, r = te.placeholder((2, 8, 13), name="x"), te.reduce_axis((0, 3), "r")
    return [x, te.compute((2, 8, 6), lambda n, c, h: te.max(x[n, c, h * 2 + r], axis=r), name="pool")]


def total() -> Any:
    x, r = te.placeholder((2, 8, 6, 5), name="x"), te.reduce_axis((0, 5), "r")
    return [x, te.compute((2, 8, 6), lambda n, c, h: te.sum(x[n, c, h, r], axis=r), name="total")]


def transposed() -> Any:
    x = te.placeholder((8, 2, 6), name="x")
    return [x, topi.transpose(x, (1, 0, 2))]


@given(st.sampled_from([elementwise, pool, total, transposed]), st.sampled_from(sorted(LAYOUTS)), st.integers(0, 9))
@settings(max_examples=share_of(16), deadline=None)
def test_what_is_suggested_keeps_the_meaning(make: Any, name: str, seed: int) -> None:
    func = te.create_prim_func(make())
    found = suggest_layout_transforms(func, [LAYOUTS[name]])
    buffers = [func.buffer_map[param] for param in func.params]
    maps: dict[str, IndexMap] = {}
    sch = tir.Schedule(func)
    for block, own in found.items():
        for what, layout in own.items():
            if isinstance(what, Block):
                sch.transform_block_layout(block.name_hint, layout)
            else:
                maps[what.name] = layout
                sch.transform_layout(sch.get_block(block.name_hint), what, layout)
    rng = np.random.default_rng(seed)
    arrays = [rng.integers(-9, 9, [as_int(extent) or 0 for extent in one.shape]).astype(one.dtype) for one in buffers]
    moved = [maps[one.name].map_ndarray(array) if one.name in maps else array.copy() for one, array in zip(buffers, arrays, strict=True)]
    interpret(func, arrays)
    interpret(sch.mod["main"], moved)
    expected = IndexMap.from_func(LAYOUTS[name]).map_ndarray(arrays[-1])
    np.testing.assert_array_equal(moved[-1], expected)
    # What is read in the order of the axes follows, where the layout has no numbers of another shape; a transpose reads what it read.
    assert ("x" in maps) is (make is not transposed and (name != "one" or make is not pool))


def copied(body: str, target: str = "(4, 4)", extra: str = "") -> Any:
    return from_source(f"""
@T.prim_func
def f(A: T.Buffer((4, 4), "float32"), B: T.Buffer({target}, "float32")):
    for i, j in T.grid(4, 4):
        with T.block("copy"):
            v, w = T.axis.remap("SS", [i, j])
            {body}
""")


@pytest.mark.parametrize(
    ("func", "layout"),
    [
        (copied("B[v * 4 + w] = A[v, w]", "(16,)"), lambda i: (i // 4, i % 4)),
        (copied("B[v * w, 0] = A[v, w]", "(10, 1)"), lambda i, j: (j, i)),
        (copied("B[w, v] = A[v, w]"), lambda i, j: (j, i)),
        (copied("B[v, w] = A[v, w]"), lambda i, j: (i, j // 3, j % 3)),
    ],
    ids=["several axes in an index", "a product", "another order", "padding"],
)
def test_blocks_of_which_nothing_follows(func: Any, layout: Any) -> None:
    assert suggest_layout_transforms(func, [layout]) == {}


def test_nothing_is_asked_for() -> None:
    assert suggest_layout_transforms(copied("B[v, w] = A[v, w]"), []) == {}


@pytest.mark.parametrize(
    ("layouts", "message"),
    [
        ([lambda i, j: (j, i)] * 3, "Incompatible PrimFunc and write_transformations: 3 layouts, and 2 buffers"),
        ([lambda i: (i,)], "Mismatch between output buffer shape and index map: B has 2 axes"),
    ],
)
def test_layouts_that_do_not_fit(layouts: Any, message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        suggest_layout_transforms(copied("B[v, w] = A[v, w]"), layouts)
