"""Copies, other layouts and padding change no result, whatever the sizes and whatever was done before."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensorexpr import tir
from tensorexpr.errors import ScheduleError
from tensorexpr.script import from_source
from tensorexpr.tir.structural import structural_equal
from tests import caching_programs as programs
from tests.caching_programs import Request
from tests.effort import share_of

SIZES: dict[str, Callable[[st.DrawFn], list[int]]] = {
    "chain": lambda draw: [draw(st.integers(1, 9)), draw(st.integers(1, 9))],
    "two_readers": lambda draw: [draw(st.integers(1, 9)), draw(st.integers(1, 9))],
    "matmul_relu": lambda draw: [draw(st.integers(1, 6)) for _ in range(3)],
    "conv": lambda draw: [draw(st.integers(1, 3)), draw(st.integers(2, 4))],
    "transpose": lambda draw: [draw(st.integers(1, 6)), draw(st.integers(1, 6))],
    "nested": lambda draw: [draw(st.integers(1, 3)), draw(st.integers(1, 4))],
    "fused": lambda draw: [draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 5))],
    "guarded": lambda draw: [draw(st.integers(2, 12)), draw(st.integers(2, 5))],
    "accumulate": lambda draw: [draw(st.integers(1, 9))],
    "resize": lambda draw: [draw(st.sampled_from([4, 8, 9]))],
    "padding": lambda draw: [draw(st.integers(1, 9)), draw(st.integers(0, 3)), draw(st.integers(0, 3))],
}


def names(sch: tir.Schedule) -> list[str]:
    """The blocks, without the root."""
    return [name for name in sch._state["main"].blocks if name != "root"]


@st.composite
def functions(draw: st.DrawFn) -> tir.PrimFunc:
    """A function of a random size."""
    name = draw(st.sampled_from(sorted(SIZES)))
    return programs.PROGRAMS[name](*SIZES[name](draw))


@st.composite
def preparations(draw: st.DrawFn) -> Request:
    """A loop split or two exchanged, perhaps."""
    kind, place, factor = draw(st.sampled_from(["none", "none", "split", "reorder"])), draw(st.integers(0, 20)), draw(st.integers(2, 4))

    def prepare(sch: tir.Schedule) -> None:
        block = names(sch)[place % len(names(sch))]
        loops = sch.get_loops(block)
        if kind == "split" and loops:
            sch.split(loops[place % len(loops)], [None, factor])
        elif kind == "reorder" and len(loops) > 1:
            sch.reorder(loops[1], loops[0])

    return prepare


def rotation(ndim: int) -> Callable[..., list[tir.PrimExpr]]:
    """The map that exchanges first and last."""
    return lambda *at: [at[-1], *at[1:-1], at[0]] if ndim > 1 else [at[0]]


def tiles(factor: int) -> Callable[..., list[tir.PrimExpr]]:
    """The map that divides the last index, its quotient first."""
    return lambda *at: [at[-1] // factor, *at[:-1], at[-1] % factor]


KINDS = ["cache_read", "cache_write", "cache_inplace", "cache_index", "reindex_read", "reindex_write", "rcr", "rcw", "read_at", "write_at"]
KINDS += ["block_layout", "einsum", "padding", "layout"]


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """A copy, an intermediate buffer's layout, a block's layout, or padding."""
    place, number, factor = draw(st.integers(0, 20)), draw(st.integers(0, 1)), draw(st.integers(1, 5))
    kind = draw(st.sampled_from(KINDS))

    def request(sch: tir.Schedule) -> object:
        block = names(sch)[place % len(names(sch))]
        loops, axes = sch.get_loops(block), sch.get(sch.get_block(block)).iter_vars
        loop = loops[place % len(loops)] if loops else None
        mapped = rotation(len(axes)) if number else tiles(factor)
        found: dict[str, Callable[[], object]] = {
            "cache_read": lambda: sch.cache_read(block, number, "global"),
            "cache_write": lambda: sch.cache_write(block, 0, "global"),
            "cache_inplace": lambda: sch.cache_inplace(block, 0, "global"),
            "cache_index": lambda: sch.cache_index(block, "global", factor - 1),
            "reindex_read": lambda: sch.reindex(block, ("read", number)),
            "reindex_write": lambda: sch.reindex(block, ("write", 0)),
            "rcr": lambda: sch.reindex_cache_read(block, 0, "global", lambda *at: [axis for axis in reversed(at)]),
            "rcw": lambda: sch.reindex_cache_write(block, 0, "global", lambda *at: [axis for axis in reversed(at)]),
            "read_at": lambda: sch.read_at(loop, block, number, "global"),
            "write_at": lambda: sch.write_at(loop, block, 0, "global"),
            "block_layout": lambda: sch.transform_block_layout(block, mapped),
            "einsum": lambda: sch.pad_einsum(block, [factor] * len(axes)),
            "padding": lambda: sch.decompose_padding(block, loop),
            "layout": lambda: _intermediate_layout(sch, block, factor, bool(number)),
        }
        return found[kind]()

    return request


def _intermediate_layout(sch: tir.Schedule, block: str, factor: int, swapped: bool) -> None:
    """Another layout for what a block writes, if that is no parameter."""
    buffer = sch.get(sch.get_block(block)).writes[0].buffer
    if any(buffer is param for param in sch.mod["main"].buffer_map.values()):
        raise ScheduleError("a parameter")
    sch.transform_layout(block, ("write", 0), rotation(buffer.ndim) if swapped else tiles(factor), pad_value=5.0)


def scheduled(func: tir.PrimFunc, asked: list[Request]) -> tir.Schedule:
    """The schedule after those requests that are legal."""
    sch = tir.Schedule(func)
    for request in asked:
        try:
            request(sch)
        except ScheduleError:
            continue
    return sch


@settings(deadline=None, derandomize=True, max_examples=share_of(120))
@given(functions(), preparations(), st.lists(requests(), min_size=1, max_size=3))
@example(programs.guarded(10, 4), lambda sch: None, [lambda sch: sch.reindex_cache_read("C", 0, "global", lambda i: (i // 4, i % 4))])
@example(programs.conv(2, 3), lambda sch: None, [lambda sch: sch.reindex("P", ("read", 0))])
def test_results_stay(func: tir.PrimFunc, prepare: Request, asked: list[Request]) -> None:
    sch = scheduled(func, [prepare, *asked])
    arrays = programs.arguments(func)
    wanted, found = programs.interpreted(func, arrays), programs.interpreted(sch.mod["main"], arrays)
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array, err_msg=f"{name}\n{sch.mod}\n{sch.trace}")


@settings(deadline=None, derandomize=True, max_examples=share_of(25))
@given(functions(), preparations(), st.lists(requests(), min_size=1, max_size=3))
def test_traces_replay(func: tir.PrimFunc, prepare: Request, asked: list[Request]) -> None:
    sch = scheduled(func, [prepare, *asked])
    assert sch.trace is not None
    again = tir.Schedule(func)
    tir.schedule.Trace.apply_json_to_schedule(json.loads(json.dumps(sch.trace.as_json())), again)
    assert structural_equal(again.mod, sch.mod)
    assert str(again.trace) == str(sch.trace)


@settings(deadline=None, derandomize=True, max_examples=share_of(40))
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 5), st.booleans(), st.sampled_from(["A", "C", "D"]))
def test_layouts_of_parameters(n: int, m: int, factor: int, swapped: bool, name: str) -> None:
    """The arrays that go with the new signature are the old ones mapped, with the value in their padding."""
    func = programs.two_readers(n, m)
    sch = tir.Schedule(func)
    mapped = tir.IndexMap.from_func(rotation(2) if swapped else tiles(factor), 2)
    block = "D" if name == "A" else name
    sch.transform_layout(block, name, mapped, pad_value=3.0)
    after = sch.mod["main"]
    arrays = programs.arguments(func)
    wanted = programs.interpreted(func, arrays)
    given_arrays = {other: _laid_out(array, mapped) if other == name else array for other, array in arrays.items()}
    found = programs.interpreted(after, given_arrays)
    for other, array in wanted.items():
        np.testing.assert_array_equal(found[other], _laid_out(array, mapped) if other == name else array)


def _laid_out(array: np.ndarray, mapped: tir.IndexMap) -> np.ndarray:
    inside = mapped.map_ndarray(np.ones(array.shape, "float32"))
    padded: np.ndarray = np.where(inside > 0, mapped.map_ndarray(array), np.float32(3))
    return padded


COMPILED: list[tuple[str, Request]] = [
    ("fused", lambda sch: (sch.cache_read("C", 0, "global"), sch.cache_write("B", 0, "global"))),
    ("nested", lambda sch: (sch.cache_read("B", 0, "global"), sch.cache_write("C", 0, "global"))),
    ("conv", lambda sch: (sch.reindex("Y", "P"), sch.decompose_padding("P", sch.get_loops("P")[2]))),
    ("resize", lambda sch: sch.cache_index("B", "global")),
    ("matmul_relu", lambda sch: (sch.pad_einsum("C", [4, 4, 4]), sch.transform_layout("C", ("write", 0), tiles(3), pad_value=0.0))),
    ("accumulate", lambda sch: sch.cache_inplace("A", 0, "global")),
]


@pytest.mark.parametrize(("name", "request_"), COMPILED, ids=[name for name, _ in COMPILED])
def test_compiled_results_stay(name: str, request_: Request) -> None:
    func = programs.PROGRAMS[name]()
    sch = tir.Schedule(func)
    request_(sch)
    arrays = programs.arguments(func)
    wanted, found = programs.interpreted(func, arrays), programs.compiled(sch.mod["main"], arrays)
    for buffer, array in wanted.items():
        np.testing.assert_array_equal(found[buffer], array)


@settings(deadline=None, derandomize=True, max_examples=share_of(40))
@given(st.integers(1, 9), st.integers(0, 3), st.integers(0, 3), st.integers(0, 4), st.integers(0, 1))
def test_padding_comes_apart(n: int, before: int, after: int, factor: int, at: int) -> None:
    func = programs.padding(n, before, after)
    sch = tir.Schedule(func)
    loops = sch.get_loops("B")
    if factor > 1 and (n + before + after) % factor == 0:
        loops = sch.split(loops[0], [None, factor])
    elif factor == 1:
        loops = [sch.add_unit_loop(loops[0]), *loops]
    loop = loops[min(at, len(loops) - 1)]
    if before + after == 0:
        assert not sch.can_decompose_padding("B", loop), "nothing is padded"
        return
    assert sch.can_decompose_padding("B", loop)
    sch.decompose_padding("B", loop)
    arrays = programs.arguments(func)
    np.testing.assert_array_equal(programs.interpreted(sch.mod["main"], arrays)["B"], programs.interpreted(func, arrays)["B"])


@settings(deadline=None, derandomize=True, max_examples=share_of(12))
@given(st.sampled_from([4, 8, 9]), st.integers(0, 2), st.booleans())
def test_indices_are_computed_before(n: int, cse_thresh: int, split: bool) -> None:
    func = programs.resize(n)
    sch = tir.Schedule(func)
    if split:
        sch.split(sch.get_loops("B")[0], [None, 3])
    assert len(sch.cache_index("B", "global", cse_thresh)) == (3 if cse_thresh < 2 else 2)
    arrays = programs.arguments(func)
    np.testing.assert_array_equal(programs.interpreted(sch.mod["main"], arrays)["B"], programs.interpreted(func, arrays)["B"])


def test_names_of_cached_indices_are_free() -> None:
    """Of a block that is named as the second of its indices would be."""
    func = from_source(programs.resize(8).script().replace('T.block("B")', 'T.block("index_1")'))
    sch = tir.Schedule(func)
    made = [sch.get(block).name_hint for block in sch.cache_index("index_1", "global")]
    assert len({*made, "index_1"}) == len(made) + 1 >= 3
    assert sorted(names(sch)) == sorted([*made, "index_1"])
