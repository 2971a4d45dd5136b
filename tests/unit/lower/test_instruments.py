"""Instruments: told before and after each pass, once per pass."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from tensorexpr.errors import InternalError, LoweringError
from tensorexpr.lower import lower, transform
from tensorexpr.lower.context import PassContext
from tensorexpr.lower.instruments import (
    DiffInstrument,
    DumpIR,
    PassInstrument,
    PassPrintingInstrument,
    PassTimingInstrument,
    PrintAfterAll,
    PrintBeforeAll,
    VerifyInstrument,
    pass_instrument,
)
from tensorexpr.lower.passes import Pass, PassInfo
from tensorexpr.lower.pipeline import FINAL, PHASES
from tensorexpr.tir.expr import Var
from tensorexpr.tir.function import IRModule

from .builder import flat, func, loop, store, unrolled

B = flat("B", 8)
COUNT = sum(map(len, PHASES.values())) + len(FINAL)
FIRST = next(one.name for passes in PHASES.values() for one in passes)


def _module() -> IRModule:
    return IRModule({"main": func(unrolled("i", 2, lambda i: store(B, 1.0, i)), B)})


def test_timing() -> None:
    timing = PassTimingInstrument()
    with PassContext(instruments=[timing]):
        lower(_module())
        table = timing.render().splitlines()
    assert len(timing.rows) == len(table) == COUNT
    assert re.fullmatch(rf"{FIRST}: \d+us \[\d+us\] \([\d.]+%; [\d.]+%\)", table[0])


def test_timing_nests() -> None:
    timing = PassTimingInstrument()
    with PassContext(instruments=[timing]):
        transform.Sequential([transform.Simplify(), transform.RemoveNoOp()])(_module())
        table = timing.render().splitlines()
    assert [line.split(":")[0] for line in table] == ["sequential", "\ttir.Simplify", "\ttir.RemoveNoOp"]
    assert "(100.00%; 100.00%)" in table[0]


def test_a_context_that_an_instrument_does_not_let_in_leaves_no_trace() -> None:
    class Failing(PassInstrument):
        def enter_pass_ctx(self) -> None:
            raise ValueError("not today")

    first = Picky()
    outside = PassContext.current()
    with pytest.raises(ValueError, match="not today"), PassContext(instruments=[first, Failing()]):
        pass
    assert first.events == ["enter", "exit"]
    assert PassContext.current() is outside


def test_every_instrument_is_asked_and_required_passes_run_anyway() -> None:
    first, second = Picky(), Picky()
    with PassContext(instruments=[first, second], required_pass=["tir.Simplify"]):
        transform.Simplify()(_module())
    assert first.events == second.events == ["enter", "before tir.Simplify", "after tir.Simplify", "exit"]


def test_printing() -> None:
    file = io.StringIO()
    with PassContext(instruments=[PassPrintingInstrument(["tir.UnrollLoop"], ["tir.Simplify"], file)]):
        lower(_module())
    assert [line for line in file.getvalue().splitlines() if line.startswith(("Print IR before", "Print IR after"))] == [
        "Print IR after: tir.Simplify",
        "Print IR before: tir.UnrollLoop",
    ]


def test_print_all(capsys: pytest.CaptureFixture[str]) -> None:
    with PassContext(instruments=[PrintBeforeAll(), PrintAfterAll()]):
        lower(_module(), upto=1)
    text = capsys.readouterr().out
    assert (
        text.count("Before Running Pass: The meta data of the pass - pass name: tir.")
        == text.count("After Running Pass: ")
        == len(PHASES[1]) + 1  # and the pass by which threads are shown as they are launched
    )


def test_dump(tmp_path: Path) -> None:
    with PassContext(instruments=[DumpIR(tmp_path / "dump")]):
        lower(_module())
    names = sorted(path.name for path in (tmp_path / "dump").iterdir())
    assert len(names) == COUNT
    assert names[0] == f"000_{FIRST}.unchanged.py"
    assert sum(name.endswith("_tir.UnrollLoop.py") for name in names) == 1


def test_diff() -> None:
    texts: list[str] = []
    with PassContext(instruments=[DiffInstrument(texts.append)]):
        lower(_module())
    assert len(texts) == 1
    assert texts[0].startswith("--- before tir.UnrollLoop\n+++ after tir.UnrollLoop\n")


def test_verify() -> None:
    broken = Pass("tir.Broken", lambda f, c: f.with_body(loop("i", 2, lambda i: store(B, 1.0, Var("nowhere")))))
    with PassContext(instruments=[VerifyInstrument()]), pytest.raises(InternalError, match=r"after tir\.Broken, .* nowhere is used"):
        broken(_module())


@pass_instrument
class Picky:
    """Lets no pass run but one, and notes when contexts begin and end."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def enter_pass_ctx(self) -> None:
        self.events.append("enter")

    def exit_pass_ctx(self) -> None:
        self.events.append("exit")

    def should_run(self, mod: IRModule, info: PassInfo) -> bool:
        return info.name == "tir.UnrollLoop"

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        self.events.append(f"before {info.name}")

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        self.events.append(f"after {info.name}")


def test_all_hooks() -> None:
    picky = Picky()
    with PassContext(instruments=[picky]):
        lower(_module())
    assert picky.events == ["enter", "before tir.UnrollLoop", "after tir.UnrollLoop", "exit"]


def test_override_instruments() -> None:
    first, second = Picky(), Picky()
    with PassContext(instruments=[first]) as ctx:
        ctx.override_instruments([second])
        lower(_module())
    assert first.events == ["enter", "exit"]
    assert second.events[0] == "enter"


def test_an_instrument_has_hooks() -> None:
    with pytest.raises(LoweringError, match="takes a class with any of enter_pass_ctx, exit_pass_ctx, should_run"):
        pass_instrument(type("Nothing", (), {}))
