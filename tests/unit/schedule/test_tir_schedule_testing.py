"""tir.schedule as programs import it, its checks, and traces read from their text."""

from __future__ import annotations

import importlib

import pytest

from tensorexpr import te, tir
from tensorexpr.errors import RecordError, ScheduleError
from tensorexpr.schedule.blocks.testing import assert_structural_equal_ignore_global_symbol, verify_trace_roundtrip
from tensorexpr.schedule.blocks.trace_python import apply_python
from tensorexpr.tir.structural import structural_equal


def rows() -> tir.PrimFunc:
    a = te.placeholder((16, 32), name="A")
    b = te.compute((16, 32), lambda i, j: a[i, j] * 2.0, name="B")
    return te.create_prim_func([a, te.compute((16, 32), lambda i, j: b[i, j] + 1.0, name="C")])


def scheduled() -> tir.Schedule:
    sch = tir.Schedule(rows())
    i, j = sch.get_loops("C")
    v, w = sch.sample_perfect_tile(i, 2, decision=[4, 4])
    sch.split(i, [v // 2, w * 2])
    sch.split(j, [None, 8])
    sch.transform_layout("B", ("write", 0), lambda y, x: (y // 4, x, y % 4))
    sch.annotate(sch.get_block("B"), "note", {"a": [1, 2.5, "x"]})
    return sch


@pytest.mark.parametrize("text_format", ["json", "python", ["python", "json"]])
def test_a_trace_is_replayed_from_its_texts(text_format: str | list[str]) -> None:
    sch = scheduled()
    fresh = verify_trace_roundtrip(sch, rows(), text_format=text_format)
    assert fresh is not sch and structural_equal(fresh.mod, sch.mod)


def test_an_unknown_text_is_refused() -> None:
    with pytest.raises(ValueError, match='as "json" and "python", not as \'yaml\''):
        verify_trace_roundtrip(scheduled(), rows(), text_format="yaml")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sch.mod.clear()", "calls a primitive"),
        ("x = 3", "calls a primitive"),
        ("sch.copy()", "no primitive is called 'copy'"),
        ("b = sch.get_block(name=open('x'))", "no argument of a trace"),
        ("a, b = sch.get_loops(block=sch)", "no argument of a trace"),
        ("sch.get_block(", "no text of a trace"),
        ('a, b, c = sch.get_loops(block="B")', "gives 2 values here"),
    ],
)
def test_text_that_is_no_trace_is_refused_and_never_run(text: str, words: str) -> None:
    with pytest.raises(RecordError, match=words):
        apply_python(text, tir.Schedule(rows()))


def test_functions_are_compared_but_for_their_symbols() -> None:
    func = rows()
    assert_structural_equal_ignore_global_symbol(func.with_attr("global_symbol", "one"), func.with_attr("global_symbol", "two"))
    with pytest.raises(ValueError, match="differ"):
        assert_structural_equal_ignore_global_symbol(func, scheduled().mod["main"])


@pytest.mark.parametrize("name", ["instruction", "schedule", "testing", "trace"])
def test_the_modules_of_tir_schedule_are_those_of_blocks(name: str) -> None:
    assert importlib.import_module(f"tensorexpr.tir.schedule.{name}") is importlib.import_module(f"tensorexpr.schedule.blocks.{name}")
    assert tir.schedule.Trace is importlib.import_module("tensorexpr.schedule.blocks").Trace


def test_instructions_and_handles_by_themselves() -> None:
    schedule = tir.schedule
    block, loops = schedule.BlockRV(), [schedule.LoopRV(), schedule.LoopRV()]
    inst = schedule.Instruction(schedule.InstructionKind.get("GetLoops"), [block], [], loops)
    assert str(inst) == "_, _ = sch.get_loops(block=_)"
    assert inst.kind.same_as(schedule.InstructionKind.get("GetLoops")) and inst.inputs[0].same_as(block)
    assert str(schedule.Trace([], {})).splitlines()[-1] == "  pass"


def test_errors_are_of_the_classes_that_programs_catch() -> None:
    sch = tir.Schedule(rows())
    with pytest.raises(TypeError, match="takes a loop"):
        sch.parallel(sch.get_block("B"))
    with pytest.raises(IndexError, match="of another schedule"):
        sch.get(tir.Schedule(rows()).get_block("B"))
    with pytest.raises(ScheduleError, match="of another schedule"):
        sch.get(tir.Schedule(rows()).get_block("B"))
