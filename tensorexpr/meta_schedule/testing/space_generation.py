"""What schedule rules make of a program, and whether that is what one expects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...schedule.blocks import Schedule, Trace
from ...target import TargetLike
from ...tir.function import IRModule, PrimFunc
from ...tir.structural import structural_equal
from ..schedule_rule import ScheduleRule
from ..space_generator import PostOrderApply
from ..tune_context import TuneContext

Decisions = Sequence[tuple[str, Any]]


def get_rules(kind: str, types: type | tuple[type, ...]) -> list[ScheduleRule]:
    """Those of the rules for a kind of target that are of some types."""
    rules: list[ScheduleRule] = ScheduleRule.create(kind)
    return [rule for rule in rules if isinstance(rule, types)]


def generate_design_space(
    kind: str,
    mod: IRModule,
    target: TargetLike,
    types: type | tuple[type, ...] | None,
    sch_rules: Sequence[ScheduleRule] | None = None,
) -> list[Schedule]:
    """The design spaces that rules make of a program, without postprocessors.

    Args:
        kind: of target, whose rules are used.
        mod: the program.
        target: what it is for.
        types: of the rules that are used.
        sch_rules: these rules instead; `types` is None then.

    Raises:
        ValueError: if both are given.
    """
    if sch_rules is not None and types is not None:
        raise ValueError("generate_design_space takes types of rules, or rules")
    rules = get_rules(kind, types or object) if sch_rules is None else list(sch_rules)
    space = PostOrderApply(sch_rules=rules, postprocs=[], mutator_probs={})
    made = TuneContext(mod, target=target, space_generator=space, task_name="test").generate_design_space()
    return [found for found in made if isinstance(found, Schedule)]


def structural_equal_no_gs(mod1: IRModule | PrimFunc, mod2: IRModule | PrimFunc) -> bool:
    """Whether two modules are the same but for the symbols of their functions."""
    return structural_equal(_without_symbols(mod1), _without_symbols(mod2))


def _without_symbols(mod: IRModule | PrimFunc) -> IRModule:
    if isinstance(mod, PrimFunc):
        return IRModule({"main": mod.without_attr("global_symbol")})
    return IRModule({var.name_hint: func.without_attr("global_symbol") for var, func in mod.functions.items()})


def check_sketches(
    mod: IRModule,
    sketches: Sequence[Schedule],
    expected_mods: Sequence[IRModule | PrimFunc],
    expected_decisions: Sequence[Decisions],
    *,
    debug_mask: str = "all",
) -> None:
    """Check that design spaces hold some programs.

    Args:
        mod: the program.
        sketches: its design spaces.
        expected_mods: one program of each of them, in any order.
        expected_decisions: for each program the names and values of the decisions that make it.
        debug_mask: accepted.

    Raises:
        AssertionError: for another number of design spaces, or a program that none of them holds.
    """
    assert len(expected_mods) == len(expected_decisions)
    assert len(sketches) == len(expected_mods), f"{len(sketches)} design spaces, but {len(expected_mods)} programs"
    left = list(sketches)
    for number, (expected, decisions) in enumerate(zip(expected_mods, expected_decisions, strict=True)):
        found = next((sketch for sketch in left if _makes(mod, sketch, expected, decisions)), None)
        assert found is not None, f"no design space holds program {number}:\n{expected}"
        left.remove(found)


def _makes(mod: IRModule, sketch: Schedule, expected: IRModule | PrimFunc, decisions: Decisions) -> bool:
    """Whether a design space makes a program with some decisions."""
    if [_kind(inst) for inst in _samples(_trace(sketch))] != [name for name, _ in decisions]:
        return False
    return structural_equal_no_gs(program_of(mod, sketch, decisions).mod, expected)


def program_of(mod: IRModule, sketch: Schedule, decisions: Decisions) -> Schedule:
    """The program that some decisions make of a design space.

    Args:
        mod: the unscheduled program.
        sketch: the design space.
        decisions: name and value of each of its decisions, in their order.
    """
    trace = _trace(sketch)
    chosen = {inst: value for inst, (_, value) in zip(_samples(trace), decisions, strict=True)}
    made = Schedule(mod)
    Trace(trace.insts, chosen).apply_to_schedule(made, remove_postproc=True)
    return made


def _samples(trace: Trace) -> list[Any]:
    return [inst for inst in trace.insts if inst in trace.decisions]


def print_sketches(sketches: Sequence[Schedule]) -> None:
    """Print programs of design spaces and the decisions that make them."""
    for number, sketch in enumerate(sketches):
        print(f"###### {number}")
        print(sketch.mod.script())
        for inst, decision in _trace(sketch).decisions.items():
            print(f"{_kind(inst)}: {decision}")


def _trace(sketch: Schedule) -> Trace:
    if sketch.trace is None:
        raise ValueError("a design space is a schedule with a trace")
    return sketch.trace


def _kind(inst: Any) -> str:
    return str(getattr(inst.kind, "name", inst.kind))
