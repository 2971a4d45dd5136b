"""Sketch generation: apply the rules stage by stage, from the last to the first, in every way they allow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TypeVar

from ...errors import TuningError
from ...schedule.layout_rewrite import layout_free_inputs
from ...schedule.steps import Annotate
from ...schedule.trace import Trace
from ...schedule.tree import LoopKind, Root, ScheduleTree
from ...spaces.gpu import is_gpu
from ...spaces.stages import extents
from ...spaces.state import SketchState
from ...target import Target
from ...te.operation import Operation
from ...tune.space import Sketch
from ..layout_rewrite import LayoutRewriteOption, rewrite_layouts
from .rule import Meet, RuleOptions, SketchRule
from .rules import ANSOR_RULES, CPU_RULES, GPU_RULES
from .rules.spaces import PlanProgram

MAX_SKETCHES = 256
_NAMELESS = ("SkipStage", "ContractionTiling", "PlanProgram")  # the first says nothing, the others more
# Iterations that a core does in some ten microseconds, 16 at a time; a fork and join takes one, and more on a busy machine.
FEW_ITERATIONS = 1 << 20
_Item = TypeVar("_Item")
# Programs that go on from one stage to the next. The choices of several contractions multiply; what each of them does best
# hardly depends on the others, so a part of the combinations, in which most choices occur, is enough.
MAX_OPEN = 32


def generate_sketches(
    outputs: tuple[Operation, ...], initial: ScheduleTree, options: RuleOptions, custom: Sequence[SketchRule] = (), most: int = MAX_OPEN
) -> list[Sketch]:
    """All sketches of a program.

    Args:
        outputs: the operations whose results are wanted.
        initial: the tree of the unscheduled program.
        options: what rules may ask for, and whether they are Ansor's only.
        custom: rules that are tried first. On each stage rules are tried in order; one that says APPLY_AND_SKIP_REST ends the
            list for that stage.
        most: programs that go on from one stage to the next; Ansor's rules make all of theirs.

    Raises:
        TuningError: if Ansor's rules, of which none may be left out, make more than MAX_SKETCHES programs, or the rules make none; for
            Ansor's rules and a GPU.
    """
    on_gpu = is_gpu(options.target)
    if on_gpu and options.only_ansor:
        raise TuningError(
            f'rules="ansor" are the paper\'s for CPUs, and the target is {options.target}; leave the parameter out for rules that make '
            "blocks of threads, or search with meta_schedule, whose rules for GPUs are those of TVM"
        )
    rules = (*custom, *(ANSOR_RULES if options.only_ansor else GPU_RULES if on_gpu else CPU_RULES))
    start = initial.order[-1] if initial.order else None
    open_states: list[tuple[SketchState, int | None]] = [(SketchState(initial), start)]
    done: list[SketchState] = []
    while open_states:
        following: list[tuple[SketchState, int | None]] = []
        for state, stage in open_states:
            if stage is None:
                done.append(state)
            else:
                following.extend(_continued(state, stage, options, rules))
        # Ansor's rules are there to be compared with the paper's: none of their programs may be missing
        open_states = following if options.only_ansor else spread(following, most)
        # Checked after each stage: the number could grow exponentially before the end.
        if len(open_states) + len(done) > MAX_SKETCHES:
            raise TuningError(f"the sketch rules make more than {MAX_SKETCHES} programs; give fewer rules or a smaller computation")
    finished: dict[Trace, SketchState] = {}  # rules may make the same program, the plan of a single sum for one
    for state in done:
        # After all rules, as a stage that no rule took may still have been inlined or moved by a rule for its reader.
        final = _with_simple_stages(state, options)
        finished.setdefault(final.trace, final)
    if not finished:
        raise TuningError("the sketch rules made no program; the last rule must apply to every stage")
    named = [(_name_of(state), trace, _known(state)) for trace, state in finished.items()]
    if not options.only_ansor and not on_gpu and options.target.num_cores > 1 and _is_little_work(initial):
        # Behind the others, so that their numbers are the same on any target.
        named += [(f"{name}+Serial", serial, first) for name, trace, first in named if (serial := _on_one_thread(trace)) is not None]
    finish = _finish(initial, options)
    return [Sketch(f"sketch{n}:{name}", outputs, initial, trace, first, finish) for n, (name, trace, first) in enumerate(named)]


def planned_sketch(outputs: tuple[Operation, ...], initial: ScheduleTree, target: Target) -> Sketch:
    """The sketch whose first program is the plan that rules make of a whole computation for a CPU."""
    state = PlanProgram().program(SketchState(initial), RuleOptions(target))
    return Sketch(f"sketch0:{_name_of(state)}", outputs, initial, state.trace, _known(state))


def _name_of(state: SketchState) -> str:
    return "+".join(state.rules) or "Plain"


def _known(state: SketchState) -> tuple[tuple[int, ...], ...] | None:
    """What to try first, if the rules prefer something for every open decision."""
    return state.preferred if len(state.preferred) == len(state.trace.open_decisions) else None


def _finish(initial: ScheduleTree, options: RuleOptions) -> Callable[[Trace], Trace] | None:
    """What is done to programs when all decisions are made: layouts of inputs are rewritten, where no rule chose them.

    To copy an input into another layout costs time, so that it is a choice of sketches; Ansor's have no such choice.
    """
    option = options.layout_rewrite
    chosen = option is LayoutRewriteOption.INSERT_TRANSFORM_STAGE and not options.only_ansor
    if option is LayoutRewriteOption.NO_REWRITE or chosen or not layout_free_inputs(initial):
        return None
    return lambda trace: rewrite_layouts(trace, initial, option)


def spread(items: list[_Item], most: int) -> list[_Item]:
    """At most so many of the items, the first among them: one out of each of as many blocks, each time one place further.

    The items are the choices of a stage for one program after the other, so that most programs and most choices stay.
    """
    if len(items) <= most:
        return items
    block = len(items) // most
    # 32 of 64: 0, 3, 4, 7, 8, ... where always the first of a block would be one choice throughout
    return [items[number * len(items) // most + number % block] for number in range(most)]


def _continued(state: SketchState, stage: int, options: RuleOptions, rules: Sequence[SketchRule]) -> list[tuple[SketchState, int | None]]:
    made: list[tuple[SketchState, int | None]] = []
    for rule in rules:
        meets = rule.meets(state, stage, options)
        if meets is Meet.SKIP:
            continue
        note = rule.name not in _NAMELESS
        made.extend((after.note(rule.name) if note else after, next_stage) for after, next_stage in rule.apply(state, stage, options))
        if meets is Meet.APPLY_AND_SKIP_REST:
            break
    return made


def _with_simple_stages(state: SketchState, options: RuleOptions) -> SketchState:
    """The program with loops for every stage at the root that nobody scheduled."""
    for stage in state.tree.order:
        node = state.stage(stage)
        if node.is_placeholder or stage in state.finished or not isinstance(node.attach, Root) or not len(node.spatial):
            continue
        custom = node.relations or node.marks  # a custom rule has been here
        if custom and is_gpu(options.target):
            continue  # whoever bound some loops says where the others run
        state = _outermost_parallel(state, stage) if custom else state.scheduled(stage, options.target)
    return state


def _outermost_parallel(state: SketchState, stage: int) -> SketchState:
    """The outermost loop in parallel, if it may be and nobody said something else."""
    node = state.stage(stage)
    first = node.leaf[0]
    if node.is_reduction(first) or any(node.mark(axis).kind is not LoopKind.SERIAL for axis in node.leaf):
        return state
    return state.add(Annotate(stage, first, "parallel"))


def _is_little_work(tree: ScheduleTree) -> bool:
    """True if threads may cost more than they save."""
    return sum(prod(extents(stage, [*stage.spatial, *stage.reduction])) for stage in tree.stages if stage.has_loops) <= FEW_ITERATIONS


def _on_one_thread(trace: Trace) -> Trace | None:
    """The same program without parallel loops; None if it has none."""
    # Marks alone are left out, so that samples keep their numbers and what sketches prefer still fits.
    steps = tuple(step for step in trace if not (isinstance(step, Annotate) and step.kind == "parallel"))
    return Trace(steps) if len(steps) < len(trace) else None
