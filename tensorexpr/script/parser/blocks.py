"""What belongs to blocks: the block itself, its axes, its regions and its init. Name -> builder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...arith.analyzer import Analyzer
from ...arith.block_access import get_block_access_region, get_block_read_write_region
from ...errors import DeclarationError
from ...tir.arithmetic import as_int, cast, convert, is_const_int
from ...tir.attrs import FrozenMap
from ...tir.block import Block, BlockRealize
from ...tir.buffer import Buffer, BufferRegion
from ...tir.dtype import parse_dtype
from ...tir.expr import BufferLoad, IntImm, IterVar, PrimExpr, Range, Var
from ...tir.rewriting import variables, walk
from ...tir.stmt import Stmt
from .context import BlockFrame, Context, FunctionFrame
from .values import Number, Opened, Pending, as_condition, as_expr, as_region, span

_KINDS = {
    "spatial": IterVar.DATA_PAR,
    "S": IterVar.DATA_PAR,
    "reduce": IterVar.COMM_REDUCE,
    "R": IterVar.COMM_REDUCE,
    "scan": IterVar.ORDERED,
    "opaque": IterVar.DIM_INFO,
}
_LETTERS = {"S": IterVar.DATA_PAR, "R": IterVar.COMM_REDUCE}


def block(context: Context, name: str = "", no_realize: bool = False) -> Pending:
    """``with T.block("C"):``; one without a realization is a block alone."""
    name_hint = name
    if not isinstance(name_hint, str):
        raise DeclarationError(
            'T.block takes a name, and its axes are defined inside: for `with T.block([16], "C") as [vi]:` write '
            '`with T.block("C"):` and in it vi = T.axis.spatial(16, i)'
        )

    def make(target: str) -> Opened:
        if target:
            raise DeclarationError(f"a block has no value to call {target}; write `with T.block(...):`")
        context.begin()
        frame = BlockFrame(name_hint, not no_realize)
        context.blocks.append(frame)

        def close(body: Stmt) -> Stmt:
            # First of all: what is left of `context.blocks` are the blocks around.
            context.blocks.pop()
            owner = context.function or FunctionFrame("", False)  # which a builder may lack
            owner.has_blocks = True
            allocated = (buffer for buffers in (owner.allocated, *(b.allocated for b in context.blocks)) for buffer in buffers)
            # The innermost come last, and win; all win over what the body loads from, which may be views.
            known = {buffer.data: buffer for buffer in (*owner.buffer_map.values(), *allocated)}
            made = _finished(frame, body, known, is_root=not context.blocks and name_hint == "root")
            if frame.reads is None or frame.writes is None:
                owner.inferred.append(made)
            if frame.realized and owner.checked:
                _check_closed(frame, made, context.loops)
                _check_ranges(frame, context.loops)
            return BlockRealize(tuple(frame.values), frame.predicate, made) if frame.realized else made

        return Opened(None, close)

    return Pending("T.block", make, with_only=True)


def _finished(frame: BlockFrame, body: Stmt, known: Mapping[Var, Buffer], is_root: bool) -> Block:
    """The block, with the regions that it does not state taken from its body. A root says nothing of its own accord.

    `known` are the buffers around by their pointers.
    """
    made = Block(
        tuple(frame.axes), tuple(frame.reads or ()), tuple(frame.writes or ()), frame.name, body, frame.init,
        tuple(frame.allocated), tuple(frame.views), FrozenMap(frame.annotations or {}),
    )  # fmt: skip
    if (is_root and not frame.axes) or (frame.reads is not None and frame.writes is not None):
        return made
    buffers = {**_pointers(made), **known}
    reads, writes, opaque = get_block_access_region(made, buffers)
    # A call got an address: what lies behind it shows in no index.
    if opaque:
        _check_seen(frame, made, {region.buffer.data: region.buffer for region in opaque})
        reads, writes = get_block_read_write_region(made, buffers)  # from the address of an element a call reaches all others
    return replace(
        made,
        reads=made.reads if frame.reads is not None else tuple(map(_simplified, reads)),
        writes=made.writes if frame.writes is not None else tuple(map(_simplified, writes)),
    )


def _check_seen(frame: BlockFrame, block: Block, handed: Mapping[Var, Buffer]) -> None:
    """Refuse a pointer itself in the hands of a call, as TVM does: it is wide-spread that such blocks state what happens behind it."""
    bare = next((handed[node] for node in walk(block.body) if isinstance(node, Var) and node in handed), None)
    if bare is not None:
        raise DeclarationError(
            f"block {frame.name!r} hands the pointer of {bare.name} to a call, so nobody sees what is read and written; "
            "say it with T.reads and T.writes"
        )


def _simplified(region: BufferRegion) -> BufferRegion:
    """The region with extents as the parser has them where they are written out."""
    if all(isinstance(side.extent, (IntImm, Var)) for side in region.region):
        return region
    simplify = Analyzer().simplify
    return BufferRegion(region.buffer, tuple(Range.from_min_extent(side.min, simplify(side.extent)) for side in region.region))


def _check_closed(frame: BlockFrame, made: Block, loops: Mapping[Var, Range]) -> None:
    """A block with axes speaks of them alone.

    Raises:
        DeclarationError: if the variable of a loop around it is used inside.
    """
    inside = (node for part in (made.body, made.init) if part is not None for node in walk(part))
    # A block without axes has nothing to bind loops to: it may use them as they are.
    used = next((node for node in inside if isinstance(node, Var) and node in loops), None) if frame.axes else None
    if used is not None:
        raise DeclarationError(
            f"block {frame.name!r} uses the loop variable {used.name}; a block uses its axes: bind one, as in "
            f"v{used.name} = T.axis.spatial({loops[used].extent}, {used.name}), and write v{used.name} inside"
        )


def _check_ranges(frame: BlockFrame, loops: Mapping[Var, Range]) -> None:
    """An axis that is a whole loop can take all values of the loop.

    Raises:
        DeclarationError: if the loop runs past the axis's range, and no T.where says otherwise.
    """
    # Under T.where a loop may run past the axis: 3 * 4 steps for 10 elements.
    for axis, value in zip(frame.axes, frame.values, strict=True) if is_const_int(frame.predicate, 1) else ():
        loop = loops.get(value) if isinstance(value, Var) else None
        if loop is None or axis.dom is None:
            continue
        # Bounds that are no constants are left alone: they may agree when it runs.
        bounds = [(as_int(dom.min), as_int(dom.min + dom.extent)) for dom in (axis.dom, loop)]
        (low, end), (first, last) = bounds
        if low is not None and end is not None and first is not None and last is not None and not low <= first <= last <= end:
            raise DeclarationError(
                f"axis {axis.var.name} of block {frame.name!r} has the range {low}:{end}, but its loop {value} has {first}:{last}; "
                "make them equal, or say with T.where when the block runs"
            )


def _pointers(made: Block) -> dict[Var, Any]:
    """The buffers by their pointers, for calls that take pointers."""
    return {node.buffer.data: node.buffer for node in walk(made) if isinstance(node, BufferLoad)}


def init(context: Context) -> Pending:
    """``with T.init():`` what a reduction starts from."""

    def make(name: str) -> Opened:
        frame = context.block("T.init()")
        context.begin()

        def close(body: Stmt) -> None:
            if frame.init is not None:
                raise DeclarationError(f"block {frame.name!r} has an init already; a block has one")
            frame.init = body

        return Opened(None, close)

    return Pending("T.init", make, with_only=True)


def reads(context: Context, *regions: Any) -> None:
    """The regions that a block reads."""
    frame = context.block("T.reads")
    if frame.reads is not None:
        raise DeclarationError(f"block {frame.name!r} states its reads twice")
    frame.reads = _regions(regions)


def writes(context: Context, *regions: Any) -> None:
    """The regions that a block writes."""
    frame = context.block("T.writes")
    if frame.writes is not None:
        raise DeclarationError(f"block {frame.name!r} states its writes twice")
    frame.writes = _regions(regions)


def _regions(items: Sequence[Any]) -> list[BufferRegion]:
    return [as_region(r) for item in items for r in (item if isinstance(item, (list, tuple)) else (item,))]


def where(context: Context, predicate: Any) -> None:
    """The condition under which a block runs."""
    frame, condition = context.block("T.where"), as_condition(predicate)
    for axis, value in zip(frame.axes, frame.values, strict=True):
        if axis.var in variables(condition):
            raise DeclarationError(
                f"T.where says for which values of loops a block runs, and {axis.var.name} is an axis of the block; write {value} instead"
            )
    if frame.where:
        raise DeclarationError(f"block {frame.name!r} states its predicate twice")
    frame.predicate, frame.where = condition, True


def block_attr(context: Context, attrs: Mapping[str, Any]) -> None:
    """Annotations of a block."""
    frame, given = context.block("T.block_attr"), _mapping("T.block_attr", attrs)
    if frame.annotations is not None:
        raise DeclarationError(f"block {frame.name!r} states its attributes twice; write them in one dict")
    frame.annotations = dict(given)


def _mapping(what: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise DeclarationError(f'{what} takes a dict with strings for keys, as {{"key": 1}}')
    return value


def _axis(kind: int) -> Callable[..., Pending]:
    def build(context: Context, dom: Any, binding: Any = None, dtype: str = "int32") -> Pending:
        return Pending("T.axis", lambda name: Opened(_add_axis(context, name, kind, dom, binding, dtype)))

    return build


def _add_axis(context: Context, name: str, kind: int, dom: Any, binding: Any, dtype: str) -> Var:
    frame = context.block("T.axis")
    if binding is None and frame.realized:
        raise DeclarationError(f"axis {name} is bound to nothing; give its value, as in T.axis.spatial(16, i)")
    value = None if binding is None else as_expr(binding)
    bounds = _range_of(dom)
    if isinstance(binding, Number) and not variables(bounds.extent).isdisjoint(context.loops):
        raise DeclarationError(f"axis {name} has the extent {bounds.extent}, a loop, and the value {binding}; the extent comes first")
    wanted = bounds.extent.dtype if value is None else value.dtype
    if isinstance(binding, Number):  # a number has the type of the range
        wanted = bounds.extent.dtype
        value = convert(binding, wanted)
    if not parse_dtype(wanted).is_int:
        raise DeclarationError(f"axis {name} is bound to {value} ({wanted}); axes are integers")
    var = Var(name or "v", wanted)
    frame.axes.append(IterVar(Range.from_min_extent(cast(bounds.min, wanted), cast(bounds.extent, wanted)), var, kind))
    if value is not None:
        frame.values.append(value)
    return var


def _range_of(dom: Any) -> Range:
    if isinstance(dom, (tuple, list)):
        if len(dom) != 2:
            raise DeclarationError("the range of an axis is its extent, or a pair (first, end)")
        return Range.from_min_extent(*span(dom[0], dom[1]))
    extent: PrimExpr = as_expr(dom)
    return (
        Range.from_min_extent(IntImm(extent.dtype, 0), extent)
        if parse_dtype(extent.dtype).is_int
        else Range.from_min_extent(*span(0, extent))
    )


def remap(context: Context, kinds: str, bindings: Any, dtype: str = "int32") -> list[Pending] | Pending:
    """Axes bound to whole loops, one letter for each: S for spatial, R for reduce."""
    values = [as_expr(value) for value in (bindings if isinstance(bindings, (list, tuple)) else (bindings,))]
    if len(kinds) != len(values) or not set(kinds) <= set(_LETTERS):
        raise DeclarationError(f"T.axis.remap takes one letter, S or R, for each of its {len(values)} loops, not {kinds!r}")
    made = [_remapped(context, letter, value) for letter, value in zip(kinds, values, strict=True)]
    return made[0] if len(made) == 1 else made


def _remapped(context: Context, letter: str, value: PrimExpr) -> Pending:
    loop = context.loops.get(value) if isinstance(value, Var) else None
    if loop is None:
        raise DeclarationError(f"T.axis.remap takes variables of loops, not {value}; bind it with T.axis.spatial(extent, value)")
    dom = loop

    def make(name: str) -> Opened:
        frame = context.block("T.axis.remap")
        var = Var(name or "v", value.dtype)
        frame.axes.append(IterVar(dom, var, _LETTERS[letter]))
        frame.values.append(value)
        return Opened(var)

    return Pending("T.axis.remap", make)


BLOCKS: Mapping[str, Callable[..., Any]] = {
    "block": block,
    "init": init,
    "reads": reads,
    "writes": writes,
    "where": where,
    "block_attr": block_attr,
}
AXES: Mapping[str, Callable[..., Any]] = {**{name: _axis(kind) for name, kind in _KINDS.items()}, "remap": remap}
