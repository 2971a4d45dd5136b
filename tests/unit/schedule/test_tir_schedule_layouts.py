"""Index maps of tir.Schedule: separators, stated inverses, and maps in traces of TVM."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tensorexpr import tir
from tensorexpr.arith import IndexMap
from tensorexpr.arith.index_map_graph import index_map_from_json
from tensorexpr.errors import DeclarationError
from tests import loop_programs

GOLDEN = Path(__file__).parents[2] / "golden/tir_schedule/tvm019_index_map.json"


def tiled(separator: list[object]) -> Callable[..., list[object]]:
    """Rows in tiles of four, with a separator or none."""
    return lambda i, j: [i // 4, j, *separator, i % 4]


def test_separators_are_kept_by_the_buffer_and_the_trace() -> None:
    made = []
    separators: list[list[object]] = [[IndexMap.AXIS_SEPARATOR], []]
    for separator in separators:
        sch = tir.Schedule(loop_programs.chain)
        sch.transform_layout("B", ("write", 0), tiled(separator))
        assert sch.trace is not None
        made.append((sch.mod, str(sch.trace)))
    assert "axis_separators=[" in made[0][0].script() and "axis_separators" not in made[1][0].script()
    assert "sch.set_axis_separator(" in made[0][1] and made[0][1].startswith(made[1][1])


def test_a_map_with_an_inverse_in_a_trace_of_tvm() -> None:
    """(i) -> (i // 4, i % 4) with (a, b) -> (a * 4 + b), as TVM 0.19 writes it."""
    text = GOLDEN.read_text()
    found = index_map_from_json(text)
    assert str(found) == "(i) -> (i // 4, i % 4)"
    assert str(found.inverse([16])) == "(i_o, i_i) -> (i_o * 4 + i_i)"
    func = tir.Schedule(loop_programs.shifted)
    trace = [[["GetBlock", [], ["B", "main"], ["b0"]], ["TransformLayout", ["b0", text], [0, 1, None, 0], []]], []]
    tir.schedule.Trace.apply_json_to_schedule(json.loads(json.dumps(trace)), func)
    (buffer,) = func.get(func.get_block("root")).alloc_buffers
    assert [int(extent.value) for extent in buffer.shape] == [4, 4]


def test_an_inverse_may_be_stated() -> None:
    plain = IndexMap.from_func(lambda i: [i // 4, i % 4])
    for inverse in (lambda a, b: [a * 4 + b], IndexMap.from_func(lambda a, b: [a * 4 + b])):
        assert str(IndexMap.from_func(lambda i: [i // 4, i % 4], None, inverse)) == str(plain)


@pytest.mark.parametrize(
    ("inverse", "message"),
    [
        (lambda a, b: [a * 4 + b + 1], "is not the inverse of (i) -> (i // 4, i % 4): it leads from [0, 0] to [1], not to [0]"),
        (lambda a, b: [a * 5 + b], "it leads from [1, 0] to [5], not to [4]"),
        (lambda a, b: [a, b], "gives 2 indices, not 1"),
        (lambda a: [a], "takes 1 indices, but there are 2 dimensions"),
    ],
)
def test_another_inverse_is_refused(inverse: Callable[..., object], message: str) -> None:
    with pytest.raises(DeclarationError) as error:
        IndexMap.from_func(lambda i: [i // 4, i % 4], inverse_index_map=inverse)
    assert message in str(error.value)
