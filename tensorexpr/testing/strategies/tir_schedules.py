"""Random schedules of functions of blocks: any registered primitive, with arguments drawn by the names that it declares.

Property-test your own module with it:

    @given(st.data())
    def test_my_function(data):
        sch = data.draw(tir_schedules(my_module))
        ...  # run sch.mod, compare with my_module

A primitive that somebody registers is drawn too if its arguments have names that `ARGUMENTS` knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

from ...arith import IndexMap
from ...dataclass import dataclass
from ...errors import ScheduleError
from ...schedule.blocks.handles import BlockRV, LoopRV
from ...schedule.blocks.instruction import KINDS, Primitive
from ...schedule.blocks.program import ROOT, BlockProgram
from ...schedule.blocks.schedule import Schedule
from ...tir.block import Block
from ...tir.expr import Var
from ...tir.function import IRModule, PrimFunc

FACTORS = (1, 2, 3, 4, 5, 7, 8)
# They change what is computed, on the caller's word, or need something that no module has by itself.
BY_PROMISE = frozenset({"UnsafeSetDType", "UnsafeHideBufferAccess", "AnnotateBufferAccess", "Tensorize", "ScheduleTensors", "Assert"})
_T = TypeVar("_T")


@st.composite
def tir_schedules(draw: st.DrawFn, mod: PrimFunc | IRModule, max_steps: int = 6, without: Sequence[str] = ()) -> Schedule:
    """A schedule of a module made of up to `max_steps` random primitives.

    Primitives that are illegal where they were drawn are refused, and it is checked that this changed nothing. Sampling
    primitives decide at random, by a seed that is drawn.

    Args:
        mod: a function of blocks, or a module of one.
        max_steps: the most primitives besides those that ask for blocks and loops.
        without: kinds of primitives, by their names in traces, that are not to be used.

    Raises:
        AssertionError: if a primitive that was refused changed the module.
    """
    schedule = Schedule(mod, seed=draw(st.integers(0, 1000)), error_render_level="fast")
    kinds = [kind for kind in drawable_kinds() if kind not in without]
    for _ in range(draw(st.integers(0, max_steps))):
        _step(draw, schedule, KINDS[_pick(draw, kinds)])
    return schedule


def drawable_kinds() -> list[str]:
    """The primitives that schedules are made of, by their names in traces; some that succeed often more than once."""
    return [
        kind
        for kind, primitive in sorted(KINDS.items())
        if kind not in BY_PROMISE and all(name in ARGUMENTS for name in (*primitive.inputs, *primitive.attrs))
        for _ in range(_WEIGHTS.get(kind, 1))
    ]


_WEIGHTS = {"Split": 3, "ComputeAt": 3, "ReverseComputeAt": 3, "ComputeInline": 2, "ReverseComputeInline": 2, "Reorder": 2, "Fuse": 2}
_WEIGHTS |= {"CacheRead": 2, "CacheWrite": 2, "DecomposeReduction": 2, "RFactor": 2, "Parallel": 2, "Vectorize": 2}


@dataclass
class _Choice:
    """The arguments of one primitive while they are drawn."""

    draw: st.DrawFn
    schedule: Schedule
    primitive: Primitive
    block: str = ""

    def name(self) -> str:
        """A block, the same for all arguments of the primitive."""
        if not self.block:
            self.block = _pick(self.draw, _block_names(self.schedule) or [ROOT])
        return self.block

    def block_rv(self) -> BlockRV:
        """A handle of the block."""
        return self.schedule.get_block(self.name())

    def stated(self) -> Block:
        """The block itself."""
        found = self.schedule.get(self.block_rv())
        assert isinstance(found, Block)
        return found

    def loops(self) -> list[LoopRV]:
        """Loops: of the block, or of one that it deals with if the primitive takes the block too."""
        block = self.block_rv()
        if "block" in self.primitive.inputs and self.draw(st.integers(0, 3)) != 0:
            ask = self.schedule.get_producers if "reverse" in self.primitive.method else self.schedule.get_consumers
            others = ask(block) if self.primitive.method != "decompose_reduction" else []
            block = _pick(self.draw, others) if others else block
        return self.schedule.get_loops(block)


def _function(schedule: Schedule) -> PrimFunc:
    """The function that is worked on."""
    found = schedule.mod[schedule.func_working_on or next(iter(schedule.mod.functions_items()))[0]]
    assert isinstance(found, PrimFunc)
    return found


def _block_names(schedule: Schedule) -> list[str]:
    """The blocks of the function that is worked on, in the order of the text; none that has no name of its own."""
    blocks = BlockProgram(_function(schedule)).blocks
    return [name for name, nodes in blocks.items() if name not in ("", ROOT) and len(nodes) == 1]


def _pick(draw: st.DrawFn, options: Sequence[_T]) -> _T:
    return options[draw(st.integers(0, len(options) - 1))]


def _loop(choice: _Choice) -> LoopRV:
    return _pick(choice.draw, choice.loops() or [LoopRV()])


def _neighbours(choice: _Choice) -> list[LoopRV]:
    """Some loops of a nest that follow one another; of two nests for a primitive that merges nests."""
    loops = choice.loops() or [LoopRV()]
    if choice.primitive.method == "merge":
        other = choice.schedule.get_loops(choice.schedule.get_block(_pick(choice.draw, _block_names(choice.schedule) or [ROOT])))
        return [_pick(choice.draw, loops), _pick(choice.draw, other or loops)]
    first = choice.draw(st.integers(0, len(loops) - 1))
    return loops[first : first + choice.draw(st.integers(1, 3))]


def _some_order(choice: _Choice) -> list[LoopRV]:
    order = choice.draw(st.permutations(choice.loops() or [LoopRV()]))
    return order[: choice.draw(st.integers(1, len(order)))]


def _factors(choice: _Choice) -> list[Any]:
    """Factors of a loop, or parts of it where it is cut."""
    factor = _pick(choice.draw, FACTORS)
    return list(_pick(choice.draw, ([None, factor], [factor, None], [None, factor, 2], [factor, factor])))


def _place(choice: _Choice) -> LoopRV | BlockRV:
    return _loop(choice) if choice.draw(st.booleans()) else choice.block_rv()


def _index_map(choice: _Choice) -> IndexMap:
    """The axes of the block, or the dimensions of one of its buffers, in another order, one of them perhaps in two."""
    block = choice.stated()
    axes = [Var(axis.var.name, axis.var.dtype) for axis in block.iter_vars]
    if choice.primitive.kind == "TransformLayout":
        regions = (*block.writes, *block.reads)
        axes = [Var(f"d{n}") for n in range(_pick(choice.draw, regions).buffer.ndim)] if regions else []
    order: list[Any] = list(choice.draw(st.permutations(axes)))
    cut: bool = choice.draw(st.booleans())
    if order and cut:
        place, factor = choice.draw(st.integers(0, len(order) - 1)), _pick(choice.draw, FACTORS)
        order[place : place + 1] = [order[place] // factor, order[place] % factor]
    return IndexMap(tuple(axes), tuple(order))


def _from(*options: Any) -> Callable[[_Choice], Any]:
    return lambda choice: _pick(choice.draw, options)


ARGUMENTS: Mapping[str, Callable[[_Choice], Any]] = {
    "block": _Choice.block_rv,
    "scope_block": lambda choice: choice.schedule.get_block(ROOT),
    "block_or_loop": _place,
    "*block_or_loop": lambda choice: [_place(choice)],
    "target": _place,
    "consumer_blocks": lambda choice: [],
    "new_order": lambda choice: choice.draw(st.permutations(range(len(choice.stated().iter_vars)))),
    "index_map": _index_map,
    "loop": _loop,
    "*loops": _neighbours,
    "*ordered_loops": _some_order,
    "factors...": _factors,
    "ann_key": _from("note", "other note"),
    "ann_val": _from(1, "text", [1, 2]),
    "assume_injective_transform": _from(0),
    "axis": _from(0, 1),
    "axis_separators": _from([], [1]),
    "buffer_index": _from(0, 0, 1),
    "buffer_index_type": _from(0, 1),
    "candidates": _from([1, 2, 4]),
    "cse_thresh": _from(0, 1),
    "balanced": _from(0, 0, 0, 1),
    "disable_predication": _from(0),
    "factor": _from(1, 4, 8),
    "factor_axis": _from(0, 1, -1),
    "func_name": lambda choice: getattr(choice.schedule.func_working_on, "name_hint", None),
    "index": _from(-1, -1, -2, 0, 1),
    "innerpart_factor": _from(1, 2),
    "max_innermost_factor": _from(4, 16),
    "n": _from(2, 3),
    "name": lambda choice: choice.name(),
    "offset": _from(0, 1, 3),
    "pad_value": _from(None),
    "padding": lambda choice: [_pick(choice.draw, FACTORS) for _ in choice.stated().iter_vars],
    "partition_pos": _from(0, 1),
    "preserve_unit_iters": _from(0, 1),
    "preserve_unit_loops": _from(0, 1),
    "probs": _from([0.2, 0.3, 0.5]),
    "read_buffer_index": _from(0, 0, 1),
    "storage_scope": _from("global", "local"),
    "thread_axis": _from("vthread.x", "vthread.y"),
    "write_buffer_index": _from(0, 0, 1),
}
"""How arguments are drawn, by the names that primitives give their inputs and attributes."""


def _step(draw: st.DrawFn, schedule: Schedule, primitive: Primitive) -> None:
    """Apply one primitive, or find that it is refused and nothing has changed."""
    choice = _Choice(draw, schedule, primitive)
    inputs: list[Any] = []
    for name in primitive.inputs:
        value = ARGUMENTS[name](choice)
        # "*loops" and "factors..." are as many inputs as are drawn
        inputs.extend(value) if name.startswith("*") or name.endswith("...") else inputs.append(value)
    attrs = [ARGUMENTS[name](choice) for name in primitive.attrs]
    sampled: bool = draw(st.booleans())
    if primitive.kind == "Split" and sampled:
        inputs[1:] = _sampled(schedule, inputs[0])
    if primitive.kind == "TransformLayout" and _is_parameter(choice, *attrs[:2]):
        return  # callers would have to give arrays of another layout
    before, length = schedule.mod, len(schedule.trace.insts) if schedule.trace else 0
    try:
        schedule.run(primitive.kind, inputs, attrs)
    except ScheduleError:
        unchanged = schedule.mod is before and schedule.trace is not None and len(schedule.trace.insts) == length
        assert unchanged, f"{primitive.kind} was refused, but changed the schedule"


def _is_parameter(choice: _Choice, index: int, side: int) -> bool:
    """True if a block reads (side 0) or writes (1) a parameter there."""
    block = choice.stated()
    regions = (block.reads, block.writes)[side]
    func = _function(choice.schedule)
    return index < len(regions) and regions[index].buffer in func.buffer_map.values()


def _sampled(schedule: Schedule, loop: LoopRV) -> list[Any]:
    """Factors that were sampled, where the loop can be tiled."""
    try:
        return list(schedule.sample_perfect_tile(loop, 2))
    except ScheduleError:
        return [None, 2]
