"""Transform layout: the elements of a buffer stand in another order, wherever it is used.

    B: B[vi, vj] = A[vi, vj]       ->   B: B[vi // 16, vj, vi % 16] = A[vi, vj]           # (i, j) -> (i // 16, j, i % 16)
    C: C[vi, vj] = B[vi, vj]            C: C[vi, vj] = B[vi // 16, vj, vi % 16]

Where the new layout has room that no element needs, a pad_value says what stands there: the writer's axes become the new
indices, and it writes the value there; a writer that can't be changed so is followed by a block that writes the padding; of a
parameter that nobody writes it is assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....arith import IndexMap, index_map_from_json, relax
from ....arith.analyzer import Analyzer
from ....dataclass import dataclass, replace
from ....errors import DeclarationError
from ....tir.arithmetic import const
from ....tir.block import Block
from ....tir.buffer import Buffer
from ....tir.expr import BufferLoad, IntImm, PrimExpr, Range, Var
from ....tir.rewriting import variables, walk
from ..accesses import Indices, Redirection, odd_use
from ..bindings import bound_to_function
from ..buffers import region_at
from ..diagnostics import PrimitiveError
from ..instruction import Applied, Primitive, State, block_of
from ..layout_padding import Padding, with_padding
from ..program import BlockProgram, Node, realized
from .reindex import SIDES, Side, side_of


@dataclass(frozen=True)
class Owner:
    """Who has a buffer: the block that allocates it, or nobody for a parameter."""

    block: str | None


def transform_layout(
    program: BlockProgram, name: str, index: int, side: int, index_map: IndexMap, pad_value: IndexMap | None, assume_injective: bool
) -> BlockProgram:
    """The program with a buffer that a block reads or writes in another layout."""
    node = program.block_node(name)
    buffer = region_at(realized(node), SIDES[side], index, "transform_layout").buffer
    owner = _owner(program, buffer, node)
    _check_uses(program, buffer, node)
    try:
        index_map = bound_to_function(index_map, program.func)
    except DeclarationError as error:
        raise PrimitiveError(f"transform_layout of {buffer.name}: {error}", node.stmt) from error
    shape, padding = _planned(buffer, index_map, pad_value, assume_injective, node)
    new = replace(buffer, shape=shape)
    if owner.block is None:
        _check_sizes(program, buffer, new, node)
    moved = Redirection(buffer, new, _indices(index_map), _regions(index_map, shape), exact=True)
    if padding is not None:
        made = with_padding(program, buffer, new, moved, padding, owner.block)
    else:
        made = BlockProgram(program.func.with_body(moved(program.func.body)))
    return _owned(made, owner, buffer, new)


def _owner(program: BlockProgram, buffer: Buffer, node: Node) -> Owner:
    if any(buffer is param for param in program.func.buffer_map.values()):
        return Owner(None)
    # By blocks, not realizations: what a block allocates belongs to the block.
    for above in node.ancestors():
        if isinstance(above.stmt, Block) and any(buffer is own for own in above.stmt.alloc_buffers):
            return Owner(above.stmt.name_hint)
    raise PrimitiveError(
        f"transform_layout: {buffer.name} is neither a parameter nor allocated by a block around; a view has the layout of what it views",
        node.stmt,
    )


def _check_uses(program: BlockProgram, buffer: Buffer, node: Node) -> None:
    reason = "with strides of its own" if buffer.strides else odd_use(program.func.body, buffer)
    if reason is not None:
        raise PrimitiveError(f"transform_layout: {buffer.name} is used {reason}, which a new layout would break", node.stmt)


def _check_sizes(program: BlockProgram, old: Buffer, new: Buffer, node: Node) -> None:
    """Sizes that arguments define must still be what some argument has as an extent."""
    func = program.func
    buffers = (new if buffer is old else buffer for buffer in func.buffer_map.values())
    # After the change: an extent such as n
    # 16 defines no n.
    defined = {*func.params, *(extent for buffer in buffers for extent in buffer.shape if isinstance(extent, Var))}
    lost = next((extent for extent in old.shape if isinstance(extent, Var) and extent not in defined), None)
    if lost is not None:
        raise PrimitiveError(
            f"transform_layout: the size {lost.name} is known from the shape of {old.name} alone, which becomes "
            f"[{', '.join(map(str, new.shape))}]; make {lost.name} a parameter",
            node.stmt,
        )


def _owned(program: BlockProgram, owner: Owner, old: Buffer, new: Buffer) -> BlockProgram:
    """The program in which the new buffer takes the old one's place."""
    if owner.block is not None:
        buffers = tuple(new if own is old else own for own in program.block(owner.block).alloc_buffers)
        return program.map_block(owner.block, lambda block: replace(block, alloc_buffers=buffers))
    params = {var: new if param is old else param for var, param in program.func.buffer_map.items()}
    return BlockProgram(replace(program.func, buffer_map=params))


def _planned(
    buffer: Buffer, index_map: IndexMap, pad_value: IndexMap | None, assume_injective: bool, node: Node
) -> tuple[tuple[PrimExpr, ...], Padding | None]:
    """The new shape, and what stands in its padding."""
    try:
        shape = tuple(_of_dtype(extent, buffer) for extent in index_map.map_shape(buffer.shape))
        if assume_injective:
            return shape, None
        inverse, where = index_map.non_surjective_inverse(buffer.shape)
    except DeclarationError as error:
        raise PrimitiveError(f"transform_layout of {buffer.name}: {error}", node.stmt) from error
    if isinstance(where, IntImm) and not where.value:
        return shape, None
    if pad_value is None:
        raise PrimitiveError(
            f"transform_layout: in the new layout of {buffer.name}, [{', '.join(map(str, shape))}], nothing stands where {where}; "
            "give a pad_value, or factors of its shape",
            node.stmt,
        )
    if len(pad_value.initial_indices) != len(shape) or len(pad_value.final_indices) != 1:
        raise PrimitiveError(f"transform_layout: pad_value is one value for {len(shape)} indices, not {pad_value}", node.stmt)
    value = pad_value.final_indices[0]
    if value.dtype != buffer.dtype:
        raise PrimitiveError(f"transform_layout: {buffer.name} is {buffer.dtype}, but pad_value is {value.dtype}", node.stmt)
    other = next((node.buffer for node in walk(value) if isinstance(node, BufferLoad) and node.buffer is not buffer), None)
    if other is not None:
        raise PrimitiveError(
            f"transform_layout: pad_value reads {other.name}; it may read no buffer but {buffer.name}, whose padding it is", node.stmt
        )
    return shape, Padding(inverse, index_map, shape, buffer.shape, pad_value)


def _of_dtype(extent: PrimExpr, buffer: Buffer) -> PrimExpr:
    dtype = buffer.shape[0].dtype if buffer.shape else extent.dtype
    return IntImm(dtype, extent.value) if isinstance(extent, IntImm) and extent.dtype != dtype else extent


def _indices(index_map: IndexMap) -> Any:
    def mapped(indices: Indices, facts: Analyzer) -> Indices:
        return tuple(_simple(index, facts) for index in _map(index_map, indices))

    return mapped


def _map(index_map: IndexMap, indices: Sequence[PrimExpr]) -> list[PrimExpr]:
    """The new indices, of the type of the old ones."""
    if indices and all(index.dtype == var.dtype for index, var in zip(indices, index_map.initial_indices, strict=True)):
        return list(index_map.map_indices(indices))
    # the wider type, as an index of 64 bits may not fit in 32
    dtype = next((index.dtype for index in indices if index.dtype == "int64"), indices[0].dtype if indices else "int32")
    typed = {var: Var(var.name, dtype) for var in index_map.initial_indices}
    values: dict[Var, PrimExpr] = dict(typed)
    again = IndexMap(tuple(typed.values()), tuple(_retyped(index, values, dtype) for index in index_map.final_indices))
    return list(again.map_indices(indices))


def _retyped(expr: PrimExpr, values: dict[Var, PrimExpr], dtype: str) -> PrimExpr:
    if isinstance(expr, Var):
        return values.get(expr, expr)
    if isinstance(expr, IntImm):
        return IntImm(dtype, expr.value)
    a, b = getattr(expr, "a", None), getattr(expr, "b", None)
    if isinstance(a, PrimExpr) and isinstance(b, PrimExpr):
        return type(expr)(_retyped(a, values, dtype), _retyped(b, values, dtype))
    raise DeclarationError(f"an index map of {dtype} indices is made of +, -, *, // and %, not of {expr}")


def _regions(index_map: IndexMap, shape: Sequence[PrimExpr]) -> Any:
    def mapped(ranges: tuple[Range, ...], facts: Analyzer) -> tuple[Range, ...]:
        inside: dict[Var, Range] = {}
        indices: list[PrimExpr] = []
        for r in ranges:
            if isinstance(r.extent, IntImm) and r.extent.value == 1:
                indices.append(r.min)
                continue
            # a range of several places as a loop over them, whose image under the map is bounded below
            var = Var("t", r.min.dtype)
            inside[var] = Range.from_min_extent(const(0, var.dtype), r.extent)
            indices.append(r.min + var)
        return tuple(_side(index, extent, inside, facts) for index, extent in zip(_map(index_map, indices), shape, strict=True))

    return mapped


def _simple(index: PrimExpr, facts: Analyzer) -> PrimExpr:
    return index if isinstance(index, (Var, IntImm)) else facts.simplify(index)


def _side(index: PrimExpr, whole: PrimExpr, inside: dict[Var, Range], facts: Analyzer) -> Range:
    if not inside or not variables(index) & inside.keys():
        # No range enters this index, so it is a point.
        return Range.from_min_extent(_simple(index, facts), const(1, index.dtype))
    interval = relax(index, inside, facts)
    if interval is None:
        return Range.from_min_extent(const(0, whole.dtype), whole)
    low = facts.simplify(interval.min)
    return Range.from_min_extent(low, facts.simplify(interval.max - interval.min + 1))


class TransformLayout(Primitive):
    """The instruction."""

    kind, method = "TransformLayout", "transform_layout"
    inputs, attrs = ("block", "index_map"), ("buffer_index", "buffer_index_type", "pad_value", "assume_injective_transform")

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        ref = block_of(state, inputs[0], self.method)
        number, side, pad_value, assume = attrs
        program = transform_layout(state.program_of(ref), ref.name, number, side_of(side, self.method), inputs[1], pad_value, bool(assume))
        return Applied(state.updated(ref.func, program))

    def arguments(self, inputs: Sequence[Any], attrs: Sequence[Any]) -> list[tuple[str, Any]]:
        """The arguments of the method as a trace prints them: the buffer as ("read" or "write", number)."""
        number, side, pad_value, assume = attrs
        return [
            ("block", inputs[0]),
            ("buffer", Side(side_of(side, self.method), number)),
            ("index_map", inputs[1]),
            ("pad_value", pad_value),
            ("assume_injective_transform", bool(assume)),
        ]

    def attrs_from_json(self, attrs: Sequence[Any]) -> list[Any]:
        return [index_map_from_json(value, integers=False) if isinstance(value, str) else value for value in attrs]
