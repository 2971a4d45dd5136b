"""The fuzzer finds what is planted, shrinks it, and what it prints and writes repeats the failure."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tensorexpr import te
from tensorexpr.errors import RecordError, ScheduleError
from tensorexpr.lower.context import PassContext
from tensorexpr.lower.passes import Pass
from tensorexpr.lower.pipeline import PHASES
from tensorexpr.lower.rebuild import map_stmt
from tensorexpr.schedule import Schedule, create_schedule
from tensorexpr.schedule.steps import BalancedSplit, ComputeAt, RollingBuffer, Split
from tensorexpr.target import Target
from tensorexpr.testing.__main__ import main
from tensorexpr.testing.case import Case, loads, read, shrink
from tensorexpr.testing.check import ScheduleMismatch, assert_schedule_correct
from tensorexpr.testing.fuzz import MAX_FAILURES, Report, draw_case, fuzz
from tensorexpr.testing.program import check_program
from tensorexpr.testing.strategies.schedules import applied
from tensorexpr.tir.expr import Call, PrimExpr
from tensorexpr.tir.function import PrimFunc
from tensorexpr.tir.interpreter import IterationLimitError
from tensorexpr.tir.rewriting import walk
from tensorexpr.tir.stmt import IfThenElse, Stmt


def _is_guard(condition: PrimExpr) -> bool:
    """A condition that a schedule made, not one of the computation's own."""
    return any(isinstance(node, Call) and node.op == "tir.likely" for node in walk(condition))


def without_guards(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    def drop(stmt: Stmt) -> Stmt:
        result = map_stmt(stmt, drop)
        return result.then_case if isinstance(result, IfThenElse) and _is_guard(result.condition) else result

    return func.with_body(drop(func.body))


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on phase 1 starts by forgetting the guards of splits that don't divide."""
    monkeypatch.setitem(PHASES, 1, (Pass("planted", without_guards), *PHASES[1]))


def test_a_case_is_determined_by_seed_and_number() -> None:
    first = [draw_case(7, number).dumps() for number in range(8)]
    again = [draw_case(7, number).dumps() for number in reversed(range(8))]
    assert first == again[::-1]
    assert len({*first, *(draw_case(8, number).dumps() for number in range(8))}) == 16


def test_seeded_runs_agree() -> None:
    runs = [fuzz(1.0, seed=3, phases=(), cases=6) for _ in range(2)]
    assert (runs[0].cases, runs[0].steps) == (runs[1].cases, runs[1].steps) == (6, sum(len(draw_case(3, n).trace) for n in range(6)))
    assert not runs[0].failures


def test_schedules_have_as_many_steps_as_is_said() -> None:
    lengths = [len(draw_case(0, number, max_steps=3).trace) for number in range(30)]
    assert set(lengths) == {0, 1, 2, 3}


def test_outputs_that_roll_are_not_drawn() -> None:
    """Where the caller gets all of an output, no buffer of it can roll."""
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] * 2.0, name="B")
    c = te.compute((7,), lambda i: b[i] + b[i + 1], name="C")
    s = create_schedule([c.op, b.op])
    s[b].compute_at(s[c], c.op.axis[0])
    stage = s.tree.find(b.op)
    assert stage is not None and applied(s, RollingBuffer(stage.id)) is None


def test_time_is_up(tmp_path: Path) -> None:
    report = fuzz(0.0, corpus=tmp_path)
    assert report.cases == 0 and not list(tmp_path.iterdir())


def test_a_planted_bug_is_found_and_shrunk(planted: None, tmp_path: Path) -> None:
    said: list[str] = []
    report = fuzz(1.0, seed=1, corpus=tmp_path, phases=(1,), cases=9, say=said.append)
    assert 1 <= len(report.failures) <= MAX_FAILURES
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"case-1-{number}.json" for number in report.failures)
    shortest = min(report.failures.values(), key=lambda case: len(case.trace))
    assert len(shortest.trace) <= 2, "one split that doesn't divide is enough, and what makes its stage"
    for number, case in report.failures.items():
        assert any(isinstance(step, (Split, BalancedSplit, ComputeAt)) for step in case.trace), "boxes at the border have guards too"
        assert len(case.trace) <= len(draw_case(1, number).trace)
        assert shrink(case, (1,)).trace == case.trace, "no step can go any more"
        assert read(tmp_path / f"case-1-{number}.json").dumps() == case.dumps()
        assert any(case.error.splitlines()[0] in line for line in said)


def test_splits_that_multiply_without_end_are_not_run() -> None:
    """A step that goes can let those behind it, which name loops by numbers, split one loop ever again."""
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    schedule = create_schedule(B)
    for _ in range(6):
        schedule[B].split(schedule[B].leaf_iter_vars[0], 16)
    case = Case((A, B), schedule.trace, 0)
    with pytest.raises(IterationLimitError):
        case.check()
    assert "2 with too many iterations" in str(Report(cases=3, unfinished=2))


def test_what_bounds_and_arguments_refuse_is_no_failure() -> None:
    """The tree can't know that B is an argument, of which the loop makes one row alone."""
    A = te.placeholder((13,), name="A")
    B = te.compute((13,), lambda i: A[i], name="B")
    C = te.compute((1,), lambda i: B[i * 3 + 11], name="C")
    schedule = te.create_schedule([B.op, C.op])
    schedule[B].compute_at(schedule[C], C.op.axis[0])
    with pytest.raises(ScheduleError, match="it is an argument"):
        Case((A, B, C), schedule.trace).check()
    assert "3 refused, 0 failed" in str(Report(cases=5, refused=3))


def test_the_printed_program_fails_in_the_same_way(planted: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    [case] = [*fuzz(1.0, seed=1, phases=(1,), cases=1, say=said.append).failures.values()][:1]
    path = tmp_path / "program.py"
    path.write_text("\n".join(said[:3]))
    with pytest.raises(ScheduleMismatch) as caught:
        runpy.run_path(str(path))
    assert caught.value.problem == case.error
    assert str(caught.value).endswith(caught.value.program) and caught.value.program == said[2]
    monkeypatch.undo()
    assert case.check() is None
    subprocess.run([sys.executable, str(path)], check=True)


def test_a_corpus_is_replayed(planted: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["fuzz", "--minutes", "1", "--seed", "1", "--corpus", str(tmp_path), "--phases", "1", "--cases", "4"]
    assert main(arguments) == 1
    assert main(["replay", str(tmp_path), "--phases", "1"]) == 1
    assert "assert_schedule_correct(schedule" in capsys.readouterr().out
    monkeypatch.undo()
    assert main(["replay", str(tmp_path), "--phases", "1"]) == 0
    assert main(arguments) == 0
    capsys.readouterr()
    (tmp_path / "case-hostile.json").write_text("[]")
    assert main(["replay", str(tmp_path), "--phases", "1"]) == 1
    assert "case-hostile.json: a case is an object" in capsys.readouterr().out.replace(f"{tmp_path}/", "")


def test_a_corpus_without_cases_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(tmp_path)]) == 1
    assert "holds no case" in capsys.readouterr().err


@pytest.mark.parametrize("option", [["--phases", "4"], ["--seed", "-1"], ["--cases", "x"]])
def test_options_are_checked(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["fuzz", *option])
    assert "expected" in capsys.readouterr().err


def test_a_case_that_passes_is_not_shrunk() -> None:
    case = draw_case(0, 1)
    assert shrink(case, (0,), compiled=False) is case


def declared(*shape: Any) -> Any:
    """The JSON of a computation over a shape."""
    a = te.placeholder(shape, name="A")
    return te.serialize.dag_to_json([te.compute(shape, lambda *i: a(*i) + 1.0, name="B")])


def edited(**changes: Any) -> str:
    return json.dumps(json.loads(draw_case(1, 0).dumps()) | changes)


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[]", "an object with the fields"),
        (edited(more=1), "an object with the fields"),
        (edited(seed=-1), "the seed"),
        (edited(seed=True), "the seed"),
        (edited(seed=1 << 32), "the seed"),
        (edited(error=1), "the error"),
        (edited(target=7), "the target of a case is a string, not 7"),
        (edited(target="llvm -mcpu=abacus"), "the target of the case: mcpu 'abacus' is no"),
        (edited(target="cuda"), "the target of the case: target cuda: `build` makes kernels for it"),
        (edited(dag={}), "a computation is an object"),
        (edited(dag={"version": 1, "symbols": [], "ops": [], "outputs": []}), "no results"),
        (edited(dag=declared(te.var("n")), trace=[]), "has the shape"),
        (edited(dag=declared(1 << 20, 1 << 20), trace=[]), "up to 16777216 elements"),
        (edited(trace=[["erase_disk"]]), "no step is called"),
        (edited(trace=[["split", 99, 0, [None, 2]]]), "does not fit"),
        ('{"dag": NaN}', "no JSON number"),
        ('"' + "x" * (1 << 20), "at most"),
    ],
)
def test_what_is_no_case_is_refused(text: str, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        loads(text)


def test_unreadable_files_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe")
    for name in ("binary.json", "missing.json"):
        with pytest.raises(RecordError, match=name):
            read(tmp_path / name)


def test_a_program_of_symbolic_shapes_names_its_sizes(planted: None, tmp_path: Path) -> None:
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="B")
    s = create_schedule(b.op)
    s[b].split(b.op.axis[0], factor=4)
    with pytest.raises(ScheduleMismatch) as caught:
        assert_schedule_correct(s, [a, b], phases=(1,), compiled=False, sizes=[{n: 4}, {n: 5}])
    path = tmp_path / "program.py"
    path.write_text(caught.value.program)
    with pytest.raises(ScheduleMismatch) as again:
        runpy.run_path(str(path))
    assert again.value.problem == caught.value.problem


def test_a_program_names_operations_that_are_no_arguments() -> None:
    a = te.placeholder((4,), name="A")
    b, c = (te.compute((4,), lambda i, add=add: a[i] + add, name=f"B{add}") for add in (1.0, 2.0))
    program = check_program(Schedule((b.op, c.op)), [a, b])
    assert "Schedule((tensors[1].op, tensors[2].op,), trace)" in program and "schedule, tensors[:2], seed=0" in program


def test_a_program_without_json_form_is_described() -> None:
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i], name="B", attrs={"made_by": object()})
    program = check_program(create_schedule(b.op), [a, b])
    assert "no program of its own" in program and all(line.startswith("#") for line in program.splitlines())


def test_a_program_says_under_which_context_it_ran() -> None:
    case: Case = draw_case(1, 0)
    with PassContext(config={"tir.disable_vectorize": True}):
        assert "# It ran under a PassContext with tir.disable_vectorize;" in case.program()
    assert "It ran under" not in case.program()


ARM = "llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=neoverse-n1 -num-cores=3"


def test_cases_are_for_targets_that_need_not_be_here(planted: None, tmp_path: Path) -> None:
    """They are interpreted as lowered for them; the program says for which."""
    a = te.placeholder((5,), name="A")
    b = te.compute((5,), lambda i: a[i] + 1.0, name="B")
    s = create_schedule(b.op)
    s[b].split(b.op.axis[0], factor=4)
    case = loads(Case((a, b), s.trace, target=ARM).dumps())
    assert case.target == ARM and loads(Case((a, b), s.trace).dumps()).target == "llvm"
    found = case.check((1,))
    assert found is not None and found.problem.startswith("phase 1")
    assert f"with Target('{Target(ARM)}'):" in found.program and "compiled=False" in found.program
    path = tmp_path / "program.py"
    path.write_text(found.program)
    with pytest.raises(ScheduleMismatch) as caught:
        runpy.run_path(str(path))
    assert caught.value.problem == found.problem


def test_all_kinds_of_targets_are_drawn() -> None:
    drawn = {Target(draw_case(2, number, max_steps=0).target) for number in range(60)}
    assert {target.vector_bits for target in drawn} >= {128, 256, 512}
    assert {target.vector_registers for target in drawn} == {16, 32}
    assert {target.machine.mask_registers for target in drawn} == {True, False}
    assert len({target.num_cores for target in drawn}) >= 3 and len({target.arch for target in drawn}) == 2
    assert any(target.runs_here for target in drawn) and not all(target.runs_here for target in drawn)
