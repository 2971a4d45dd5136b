"""Layouts of what a tensor function reads, and of its loops, that follow from those of its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ...arith.index_map import IndexMap
from ...errors import DeclarationError
from ...tir.block import Block, BlockRealize
from ...tir.buffer import Buffer
from ...tir.expr import BufferLoad, PrimExpr, Var
from ...tir.function import PrimFunc
from ...tir.reduce import IterVar
from ...tir.rewriting import substitute, variables, walk
from ...tir.stmt import BufferStore

Suggestions: TypeAlias = dict[Block, dict[Block | Buffer, IndexMap]]


def suggest_layout_transforms(func: PrimFunc, write_buffer_transforms: Sequence[IndexMap | Callable[..., Any]]) -> Suggestions:
    """What to do with the blocks of a tensor function and with what they read, so that its results may have other layouts.

    A block is left out where nothing follows: if it holds other blocks, doesn't write each element by axes of its own in their order, or
    if the new layout has padding. Of what it reads, those buffers are left out whose elements aren't chosen by its axes in their order.

    Args:
        func: the function.
        write_buffer_transforms: the layouts of its last buffers, as maps or as functions of indices.

    Returns:
        by block, those of results first: the map of its axes, by the block itself, and the maps of the buffers that it writes and reads.

    Raises:
        DeclarationError: for more layouts than buffers, or one of another rank.
    """
    buffers = [func.buffer_map[param] for param in func.params if param in func.buffer_map]
    maps = [one if isinstance(one, IndexMap) else IndexMap.from_func(one) for one in write_buffer_transforms]
    if len(maps) > len(buffers):
        raise DeclarationError(f"Incompatible PrimFunc and write_transformations: {len(maps)} layouts, and {len(buffers)} buffers")
    known = dict(zip(buffers[len(buffers) - len(maps) :], maps, strict=True))
    for buffer, one in known.items():
        if len(buffer.shape) != len(one.initial_indices):
            raise DeclarationError(
                f"Mismatch between output buffer shape and index map: {buffer.name} has {len(buffer.shape)} axes, and {one} takes "
                f"{len(one.initial_indices)}"
            )
    blocks = [node.block for node in walk(func.body) if isinstance(node, BlockRealize) and node.block.iter_vars]
    if any(isinstance(node, BlockRealize) for block in blocks for node in walk(block.body)):
        return {}
    found: Suggestions = {}
    stated: set[Buffer] = set()
    # Readers before what they read: the layout of a tensor in between is known from its reader.
    for block in reversed(blocks):
        made = _of_block(block, known, stated)
        if made:
            found[block] = made
    return found


def _of_block(block: Block, known: dict[Buffer, IndexMap], stated: set[Buffer]) -> dict[Block | Buffer, IndexMap]:
    """The maps of a block and of its buffers, those aside that are stated; what follows for what it reads is known from then on."""
    stores = [node for part in (block.init, block.body) if part is not None for node in walk(part) if isinstance(node, BufferStore)]
    written = stores[0].buffer if stores else None
    if written is None or written not in known or any(store.buffer is not written for store in stores):
        return {}
    axes = _axes(block, [store.indices for store in stores])
    if axes is None or any(not isinstance(index, Var) for index in stores[0].indices):
        return {}
    spatial = {axis.var for axis in block.iter_vars if axis.iter_type == IterVar.DATA_PAR}
    if not spatial.issuperset(axes) or not _without_padding(known[written], written.shape):
        return {}
    places = _axes_of_block(block, known[written], axes)
    own = IndexMap(tuple(axis.var for axis in block.iter_vars), tuple(places))
    made: dict[Block | Buffer, IndexMap] = {block: _renamed(own)}
    # Once each: a reader of a tensor in between says its layout before the block that writes it.
    if written not in stated:
        made[written] = known[written]
        stated.add(written)
    for buffer, accesses in _reads(block, written).items():
        layout = _of_read(block, accesses, places)
        # Numbers of the results' shape may be in it, which another shape doesn't fit.
        if layout is not None and buffer not in known and _without_padding(layout, buffer.shape):
            made[buffer] = known[buffer] = layout
            stated.add(buffer)
    return made


def _without_padding(layout: IndexMap, shape: Sequence[PrimExpr]) -> bool:
    """Whether each place of the layout has an element."""
    try:
        layout.inverse(shape)
    except DeclarationError:
        return False
    return True


def _axes(block: Block, accesses: Sequence[Sequence[PrimExpr]]) -> list[Var] | None:
    """The axis of a block that each axis of a buffer follows, where all accesses say the same and in the block's order; else None."""
    found = {tuple(_axis(block, index) for index in indices) for indices in accesses}
    if len(found) != 1:
        return None
    order = [axis.var for axis in block.iter_vars]
    axes = [one for one in next(iter(found)) if one is not None]
    numbers = [order.index(one) for one in axes]
    return axes if len(axes) == len(accesses[0]) and numbers == sorted(set(numbers)) else None


def _axis(block: Block, index: PrimExpr) -> Var | None:
    """The axis that an index follows: its one spatial axis (of `h*2 + r` it is h), or the only axis that it has."""
    used = [axis for axis in block.iter_vars if axis.var in variables(index)]
    from ...arith.deduce import detect_linear_equation  # an analyzer of its own, which few programs need

    if not used or not detect_linear_equation(index, [axis.var for axis in used]):
        return None
    spatial = [axis.var for axis in used if axis.iter_type == IterVar.DATA_PAR]
    return spatial[0] if len(spatial) == 1 else used[0].var if len(used) == 1 else None


def _axes_of_block(block: Block, layout: IndexMap, axes: Sequence[Var]) -> list[PrimExpr]:
    """The new axes of a block by its old ones: those of the result take the places of the old ones in turn, others stay where they are."""
    new = list(layout.map_indices(axes))
    places: list[PrimExpr] = []
    for axis in block.iter_vars:
        if axis.var not in axes:
            places.append(axis.var)
        elif new:
            places.append(new.pop(0))
    return places + new


def _reads(block: Block, written: Buffer) -> Mapping[Buffer, list[Sequence[PrimExpr]]]:
    found: dict[Buffer, list[Sequence[PrimExpr]]] = {}
    for node in walk(block.body):
        if isinstance(node, BufferLoad) and node.buffer is not written:
            found.setdefault(node.buffer, []).append(node.indices)
    return found


def _of_read(block: Block, accesses: Sequence[Sequence[PrimExpr]], places: Sequence[PrimExpr]) -> IndexMap | None:
    """The layout of a buffer whose axes are in the order of the block's new ones; None where a new axis is made of more than its axes."""
    axes = _axes(block, accesses)
    if axes is None:
        return None
    order: list[PrimExpr] = []
    for place in places:
        used = variables(place)
        if used <= set(axes):
            order.append(place)
        elif not used.isdisjoint(axes):
            return None
    return _renamed(IndexMap(tuple(axes), tuple(order)))


def _renamed(layout: IndexMap) -> IndexMap:
    """A map with indices of its own, as a map outlives the block whose axes it is made of."""
    own = tuple(Var(f"i{n}", var.dtype) for n, var in enumerate(layout.initial_indices))
    values: Mapping[Var, PrimExpr] = dict(zip(layout.initial_indices, own, strict=True))
    return IndexMap(own, tuple(substitute(index, values) for index in layout.final_indices))
