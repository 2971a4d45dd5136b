"""Pad einsum: the axes of a sum of products get extents that are multiples of numbers; its operands are padded with zeros.

for i, j, k in T.grid(127, 126, 60)            ->   A_pad: A_pad[v0, v1] = if_then_else(v0 < 127 and v1 < 60, A[v0, v1], 0)
    C: C[vi, vj] += A[vi, vk] * B[vk, vj]           B_pad: ...
                                                    for i, j, k in T.grid(128, 128, 64)
                                                        C: C_pad[vi, vj] += A_pad[vi, vk] * B_pad[vk, vj]
                                                    C_pad: C[v0, v1] = C_pad[v0, v1]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ....tir.arithmetic import all as all_of
from ....tir.arithmetic import as_int, const
from ....tir.block import Block, BlockRealize
from ....tir.buffer import Buffer, BufferRegion
from ....tir.expr import Add, BufferLoad, Cast, Div, FloorDiv, FloorMod, IterVar, Mod, Mul, PrimExpr, Range, Var
from ....tir.intrin import if_then_else
from ....tir.rewriting import variables, walk
from ....tir.stmt import BufferStore, For, Stmt, seq
from ..accesses import check_plain_use, redirected
from ..bindings import TRUE
from ..copying import copy_block, scoped_copy
from ..diagnostics import PrimitiveError
from ..instruction import BlockPrimitive
from ..nests import looped
from ..program import BlockProgram, Node, block_at, fresh
from ..scope import Scope, check_complete_or_reduction
from .transform_block_layout import own_loops


def pad_einsum(program: BlockProgram, name: str, padding: Sequence[int]) -> BlockProgram:
    """The program with a block's axes padded to multiples, one number for each axis."""
    node = program.block_node(name)
    realize, block = program.realize(name), block_at(node)
    if len(padding) != len(block.iter_vars) or any(type(number) is not int or number < 1 for number in padding):
        raise PrimitiveError(
            f"pad_einsum takes a positive number for each of the {len(block.iter_vars)} axes of {name}, not {list(padding)}", node.stmt
        )
    check_complete_or_reduction(Scope.around(program, node), realize, "pad_einsum")
    loops = own_loops(program, node, "pad_einsum")
    extents = {axis.var: (_known(axis, node), number) for axis, number in zip(block.iter_vars, padding, strict=True)}
    padded = {var: -(-extent // number) * number for var, (extent, number) in extents.items()}
    accesses = _accesses(node, {var: extent for var, (extent, _) in extents.items()})
    _check_sums(node, {var for var, (extent, _) in extents.items() if padded[var] != extent})
    return _padded(program, node, loops, padded, {b: at for b, at in accesses.items() if _grows(b, at, padded)})


def _grows(buffer: Buffer, indices: Sequence[Var], padded: Mapping[Var, int]) -> bool:
    return any(as_int(extent) != padded[var] for extent, var in zip(buffer.shape, indices, strict=True))


def _padded(
    program: BlockProgram, node: Node, loops: Sequence[For], padded: Mapping[Var, int], accesses: Mapping[Buffer, Sequence[Var]]
) -> BlockProgram:
    realize, block = node.stmt, block_at(node)
    assert isinstance(realize, BlockRealize)
    written = {region.buffer for region in block.writes}
    taken = set(program.blocks)
    before: list[Stmt] = []
    after: list[Stmt] = []
    made: Stmt = replace(realize, block=replace(block, iter_vars=tuple(_wider(axis, padded[axis.var]) for axis in block.iter_vars)))
    copies: list[Buffer] = []
    for buffer, indices in sorted(accesses.items(), key=lambda item: item[0] in written):
        check_plain_use(node.stmt, buffer, "pad_einsum", node.stmt)
        shape = [const(padded[var], var.dtype) for var in indices]
        copy = scoped_copy(buffer, shape, f"{buffer.name}_pad", buffer.scope())
        name = fresh(copy.name, taken)
        taken.add(name)
        copies.append(copy)
        (after if buffer in written else before).append(_nest(name, buffer, copy, buffer in written))
        made = redirected(made, buffer, copy, [const(0, var.dtype) for var in indices])
    if not copies:
        return program
    # `own_loops` has seen that each axis is a loop of its own
    values = {value: padded[axis.var] for axis, value in realize.bindings()}
    for loop in reversed(loops):
        made = replace(loop, extent=const(values[loop.loop_var], loop.loop_var.dtype), body=made)
    top = loops[0] if loops else realize
    return program.replace(top, seq(*before, made, *after)).allocated(block_at(program.scope_of(node)).name_hint, *copies)


def _wider(axis: IterVar, extent: int) -> IterVar:
    return replace(axis, dom=Range.from_min_extent(const(0, axis.var.dtype), const(extent, axis.var.dtype)))


def _nest(name: str, buffer: Buffer, copy: Buffer, is_output: bool) -> Stmt:
    """The block that pads an operand, or takes the result out of its padding."""
    shape = buffer.shape if is_output else copy.shape
    loops = [Var(f"i{place}", extent.dtype) for place, extent in enumerate(shape)]
    axes = [
        IterVar(Range.from_min_extent(const(0, extent.dtype), extent), Var(f"v{place}", extent.dtype)) for place, extent in enumerate(shape)
    ]
    point = tuple(axis.var for axis in axes)
    if is_output:
        block = copy_block(name, axes, copy, point, buffer, point)
    else:
        grown = [(var, old) for var, old, new in zip(point, buffer.shape, copy.shape, strict=True) if as_int(old) != as_int(new)]
        inside = all_of(*(var < old for var, old in grown))
        value = if_then_else(inside, BufferLoad(buffer, point), const(0, buffer.dtype))
        regions = (BufferRegion.from_point(buffer, point),), (BufferRegion.from_point(copy, point),)
        block = Block(tuple(axes), *regions, name, BufferStore(copy, value, point))
    return looped(loops, shape, BlockRealize(tuple(loops), TRUE, block))


def _known(axis: IterVar, node: Node) -> int:
    extent = None if axis.dom is None or as_int(axis.dom.min) != 0 else as_int(axis.dom.extent)
    if extent is None:
        raise PrimitiveError(f"pad_einsum: the axis {axis.var.name} has no constant extent from 0", node.stmt)
    return extent


def _accesses(node: Node, extents: Mapping[Var, int]) -> dict[Buffer, tuple[Var, ...]]:
    """The buffers that the block uses, each at axes of its own, one for each dimension and of its extent."""
    block = block_at(node)
    found: dict[Buffer, tuple[Var, ...]] = {}
    for stmt in (block.body, block.init):
        if stmt is not None and not isinstance(stmt, BufferStore):
            raise PrimitiveError(f"pad_einsum: {block.name_hint} is no einsum: it does more than one store", node.stmt)
        for inner in () if stmt is None else walk(stmt):
            if not isinstance(inner, (BufferLoad, BufferStore)):
                continue
            at = tuple(index for index in inner.indices if isinstance(index, Var) and index in extents)
            buffer = inner.buffer
            plain = len(set(at)) == len(inner.indices) and found.setdefault(buffer, at) == at
            if not plain or any(as_int(extent) != extents[var] for extent, var in zip(buffer.shape, at, strict=True)):
                shown = ", ".join(map(str, inner.indices))
                raise PrimitiveError(
                    f"pad_einsum: {block.name_hint} is no einsum: it uses {buffer.name} at [{shown}], not at all values of axes of its own",
                    node.stmt,
                )
    return found


def _check_sums(node: Node, grown: set[Var]) -> None:
    """What is added for padding is zero: of a reduced axis that grows, every factor is padded."""
    block = block_at(node)
    store = block.body
    assert isinstance(store, BufferStore)
    # 0 / 0 is NaN, and a NaN in the padding of a sum spreads to all of it.
    odd = next((part for part in walk(store.value) if isinstance(part, (Div, Mod, FloorDiv, FloorMod))), None)
    if odd is not None:
        raise PrimitiveError(f"pad_einsum: {block.name_hint} divides ({odd}), and padding is zero", node.stmt)
    for axis in block.iter_vars:
        if axis.iter_type == IterVar.COMM_REDUCE and axis.var in grown and not _adds_zero(store, axis.var):
            raise PrimitiveError(
                f"pad_einsum: padding {axis.var.name} with zeros would change {block.name_hint}; it must add products of elements at it",
                node.stmt,
            )


def _adds_zero(store: BufferStore, axis: Var) -> bool:
    value = store.value
    if not isinstance(value, Add):
        return False
    # C + term or term + C; with C on both sides there is no term whose factors could be zero
    own = [side for side in (value.a, value.b) if isinstance(side, BufferLoad) and side.buffer is store.buffer]
    added = value.b if own and own[0] is value.a else value.a
    return len(own) == 1 and all(_is_zero_at(factor, axis) for factor in _factors(added))  # all, not any: 0 * inf isn't 0


def _factors(product: PrimExpr) -> list[PrimExpr]:
    # A cast of zero is zero.
    if isinstance(product, Cast):
        return _factors(product.value)
    return [*_factors(product.a), *_factors(product.b)] if isinstance(product, Mul) else [product]


def _is_zero_at(factor: PrimExpr, axis: Var) -> bool:
    return isinstance(factor, BufferLoad) and axis in {var for index in factor.indices for var in variables(index)}


class PadEinsum(BlockPrimitive):
    """The instruction."""

    kind, method, attrs = "PadEinsum", "pad_einsum", ("padding",)
    change = staticmethod(pad_einsum)
