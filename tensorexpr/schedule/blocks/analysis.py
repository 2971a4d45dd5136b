"""Questions about schedules that rules of searches ask: which blocks there are, and where an intrinsic's loops would stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from ...arith import IndexMap, linear_form
from ...arith.analyzer import Analyzer
from ...dataclass import dataclass, field
from ...errors import ScheduleError
from ...tir.arithmetic import as_int, const, convert, floordiv, floormod
from ...tir.block import BlockRealize
from ...tir.buffer import Buffer
from ...tir.expr import FloorDiv, FloorMod, IntImm, PrimExpr, Range, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import variables
from ...tir.stmt import For
from .block_scope import StmtSRef
from .handles import BlockRV
from .primitives.compute_inline import check_no_output
from .program import BlockProgram, Node, realized
from .schedule import Schedule


def has_block(sch: Schedule, block_name: str) -> bool:
    """True if exactly one block of the function that is worked on has the name."""
    try:
        # of a copy: the question leaves no instruction in the trace
        sch.copy().get_block(block_name)
    except ScheduleError:
        return False
    return True


def is_output_block(sch: Schedule, block: BlockRV) -> bool:
    """True if a block writes what outlives the scope that it stands in."""
    program, node = program_of(sch, block)
    try:
        check_no_output(program, node, "is_output_block")
    except ScheduleError:
        return True
    return False


@dataclass(frozen=True, eq=False)
class TensorizeInfo:
    """Where the loops of an intrinsic's description would stand.

    loop_map: a place of a loop around the block -> the loop of the description that would be split off from it.
    desc_loop_indexer: a loop of the description -> its number, from the outermost.
    block_iter_paddings: what to pad the axes of the block to multiples of; None where it needs none.
    """

    loop_map: dict[StmtSRef, For]
    desc_loop_indexer: dict[For, int]
    block_iter_paddings: list[int] | None = field(default=None)


def get_tensorize_loop_mapping(sch: Schedule, block: BlockRV, desc_func: PrimFunc, allow_padding: bool = False) -> TensorizeInfo | None:
    """The loops around a block that the loops of a description would be split off from, from the last axes on.

    The last axis of each kind, spatial or reduced, is taken for the description's last one of that kind, and so on.

    Args:
        allow_padding: take also loops whose extents are no multiples, and say what to pad their axes to.

    Returns:
        None if there is no such loop for one of the description's.
    """
    program, node = program_of(sch, block)
    described = BlockProgram.of(desc_func)
    inner = innermost(described)
    if inner is None:
        return None
    desc_loops, loops = described.loops_above(inner), program.loops_above(node)
    analyzer = Analyzer()
    found: dict[StmtSRef, For] = {}
    paddings = [1] * len(realized(node).block.iter_vars)
    place = len(paddings)
    for axis, value in reversed(list(zip(realized(inner).block.iter_vars, realized(inner).iter_values, strict=True))):
        own = next((loop for loop in desc_loops if _step(value, loop.loop_var, analyzer)), None)
        # From the last axis on, each kind by itself: a batch in front of a product shifts the spatial axes, not their order from behind.
        kinds = [other.iter_type for other in realized(node).block.iter_vars[:place]]
        if own is None or axis.iter_type not in kinds:
            return None
        place = len(kinds) - 1 - kinds[::-1].index(axis.iter_type)
        at = next((loop for loop in loops if _step(realized(node).iter_values[place], loop.loop_var, analyzer)), None)
        whole, part = (None if loop is None else as_int(loop.extent) for loop in (at, own))
        sref = None if at is None else sch.state.get_sref(at)
        if sref is None or whole is None or part is None:
            return None
        if whole % part and not allow_padding:
            return None
        paddings[place] = part if whole % part else 1
        found[sref] = own
    needed = paddings if any(padding > 1 for padding in paddings) else None
    return TensorizeInfo(found, {loop: number for number, loop in enumerate(desc_loops)}, needed)


def program_of(sch: Schedule, block: BlockRV) -> tuple[BlockProgram, Node]:
    """The program that a block of a schedule stands in, and where."""
    realize = sch.realization(block)
    for func in sch.mod.functions.values():
        program = BlockProgram(func)
        for node in program.blocks.get(realize.block.name_hint, ()):
            if node.stmt is realize:
                return program, node
    return program, program.root


def innermost(program: BlockProgram) -> Node | None:
    """The only block of a description that has axes."""
    nodes: Sequence[Node] = [node for found in program.blocks.values() for node in found if realized(node).block.iter_vars]
    return nodes[0] if len(nodes) == 1 and isinstance(nodes[0].stmt, BlockRealize) else None


def _step(value: PrimExpr, var: Var, analyzer: Analyzer) -> bool:
    """True if a value grows by one with a variable."""
    return var in variables(value) and var not in variables(analyzer.simplify(value - var))


@dataclass(frozen=True, slots=True)
class _Split:
    """Of the loop number `loop`, (variable // lower) % extent, times `scale` in a flat index."""

    loop: int
    lower: int
    extent: int
    scale: int


def suggest_index_map(buffer: Buffer, indices: Sequence[PrimExpr], loops: Sequence[For], predicate: PrimExpr | bool) -> IndexMap | None:
    """A layout in which the elements of a buffer stand in the order in which loops touch them.

        indices [i // 16 * 4 + j // 16, i % 16 * 16 + j % 16], loops i, j   ->   (x, y) -> (x // 4, y // 16, x % 4, y % 16)

    Args:
        indices: where the buffer is accessed, in terms of the loops.
        loops: around the access, outermost first.
        predicate: of the access; layouts are suggested for accesses without one.

    Returns:
        None if the shape isn't constant, or the indices aren't made of parts of loops, each once.
    """
    shape = [as_int(extent) for extent in buffer.shape]
    if as_int(convert(predicate)) != 1 or any(extent is None for extent in shape):
        return None
    strides = [prod(size for size in shape[place + 1 :] if size is not None) for place in range(len(shape))]
    parts = _parts(indices, strides, loops)
    if parts is None or not parts:
        return None
    # In the order in which the loops run: by loop, and of one loop the slower digits first.
    numbered = sorted(enumerate(parts), key=lambda item: (item[1].loop, -item[1].lower))
    groups: list[list[int]] = []
    for place, _ in numbered:
        # Digits of one loop that are neighbours in the flat index as well stay one dimension.
        if groups and groups[-1][-1] + 1 == place and parts[place - 1].loop == parts[place].loop:
            groups[-1].append(place)
        else:
            groups.append([place])
    dtype = indices[0].dtype
    initial = tuple(Var(f"i{place}", dtype) for place in range(len(shape)))
    facts = Analyzer(
        {var: Range.from_min_extent(const(0, dtype), const(size or 1, dtype)) for var, size in zip(initial, shape, strict=True)}
    )
    flat: PrimExpr = const(0, dtype)
    for var, stride in zip(initial, strides, strict=True):
        flat = flat + var * stride
    final = (
        facts.simplify(floormod(floordiv(flat, parts[group[-1]].scale), prod(parts[place].extent for place in group))) for group in groups
    )
    return IndexMap(initial, tuple(final))


def _parts(indices: Sequence[PrimExpr], strides: Sequence[int], loops: Sequence[For]) -> list[_Split] | None:
    """The parts of loops in a flat index, outermost first, of which each goes on where the next one ends; None if they don't."""
    analyzer = Analyzer({loop.loop_var: Range.from_min_extent(loop.min, loop.extent) for loop in loops})
    found: list[_Split] = []
    for index, stride in zip(indices, strides, strict=True):
        form = linear_form(analyzer.simplify(index))
        for atom, scale in form.terms.items():
            part = _part(atom, {loop.loop_var: (number, as_int(loop.extent)) for number, loop in enumerate(loops)})
            if part is None:
                return None
            found.append(_Split(*part, scale * stride))
    found.sort(key=lambda split: -split.scale)
    # From the fastest part on: each steps by what the faster ones reach together, or the flat index has gaps or repeats.
    reached = 1
    for split in reversed(found):
        if split.scale != reached:
            return None
        reached *= split.extent
    return found


def _part(atom: PrimExpr, loops: Mapping[Var, tuple[int, int | None]]) -> tuple[int, int, int] | None:
    """Loop, divisor and extent of a part of a loop."""
    match atom:
        case Var() if atom in loops:
            number, extent = loops[atom]
            return None if extent is None else (number, 1, extent)
        # i of 16: i // 4 is a digit of 4 values. A divisor of 3 would leave a last block of another length, which is no digit.
        case FloorDiv(inner, IntImm(value=divisor)):
            found = _part(inner, loops)
            return None if found is None or found[2] % divisor else (found[0], found[1] * divisor, found[2] // divisor)
        case FloorMod(inner, IntImm(value=extent)):
            found = _part(inner, loops)
            return None if found is None or found[2] % extent else (found[0], found[1], extent)
    return None
