"""Debug locations: instructions say which line of the lowered program they come from, where that is asked for."""

from __future__ import annotations

import re

import numpy as np

import tensorexpr as tvm
from tensorexpr import te


def _program() -> tuple[te.Schedule, list[te.Tensor]]:
    source = te.placeholder((16,), name="A")
    doubled = te.compute((16,), lambda i: source[i] * 2, name="B")
    result = te.compute((16,), lambda i: doubled[i] + source[i], name="C")
    schedule = te.create_schedule(result.op)
    schedule[result].parallel(result.op.axis[0])
    return schedule, [source, result]


def test_locations_are_lines_of_the_lowered_program() -> None:
    schedule, args = _program()
    with tvm.transform.PassContext(config={"tir.enable_debug": True}):
        built = tvm.build(schedule, args)
        lines = tvm.lower(schedule, args).script().splitlines()
    text = built.get_source()
    located = {int(line) for line in re.findall(r"!DILocation\(line: (\d+),", text)}
    stores = {number for number, line in enumerate(lines, 1) if re.match(r"\s+\w+\[i\] = ", line)}
    assert len(stores) == 2 and stores <= located and max(located) <= len(lines)
    multiply = re.search(r"fmul .*!dbg !(\d+)", text)
    assert multiply is not None
    assert f"!{multiply[1]} = !DILocation(line: {min(stores)}," in text
    a, c = np.arange(16, dtype="float32"), np.zeros(16, "float32")
    built(a, c)
    np.testing.assert_array_equal(c, 3 * a)
    assert ".loc" in built.get_source("asm")


def test_nothing_is_added_unasked() -> None:
    schedule, args = _program()
    assert "dbg" not in tvm.build(schedule, args).get_source()
