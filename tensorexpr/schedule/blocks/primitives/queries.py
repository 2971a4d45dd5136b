"""Primitives that only ask: blocks by name, loops around a block, blocks below, producers and consumers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....errors import ScheduleError
from ....tir.block import BlockRealize
from ..diagnostics import PrimitiveError
from ..handles import BlockRef, LoopRef
from ..instruction import Applied, Primitive, State, block_of
from ..program import Node
from ..scope import Scope, written


class GetBlock(Primitive):
    """The block of a name."""

    kind, method, attrs, output, is_pure = "GetBlock", "get_block", ("name", "func_name"), "block", True

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        name, func = attrs
        if func not in state.programs:
            raise ScheduleError(f"the module has no function {func!r}; functions: {', '.join(state.programs)}")
        state[func].block_node(name)
        return Applied(state, (BlockRef(func, name),))


class GetLoops(Primitive):
    """The loops around a block within its scope, outermost first."""

    kind, method, inputs, output, is_pure = "GetLoops", "get_loops", ("block",), "loop", True

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        ref = block_of(state, inputs[0], "get_loops")
        program = state.program_of(ref)
        return Applied(state, tuple(LoopRef(ref.func, loop.loop_var) for loop in program.loops_above(program.block_node(ref.name))))


class GetChildBlocks(Primitive):
    """The blocks directly below a block or loop, in the order of the text."""

    kind, method, inputs, output, is_pure = "GetChildBlocks", "get_child_blocks", ("*block_or_loop",), "block", True

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        ref, node = place_of(state, inputs[0], "get_child_blocks")
        return Applied(state, _refs(ref.func, [below.stmt for below in state.program_of(ref).child_blocks(node)]))


class GetProducers(Primitive):
    """The blocks in the same scope that write what a block reads."""

    kind, method, inputs, output, is_pure = "GetProducers", "get_producers", ("block",), "block", True

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        ref, scope, realize = _in_scope(state, inputs[0], "get_producers")
        return Applied(state, _refs(ref.func, scope.producers(realize.block)))


class GetConsumers(Primitive):
    """The blocks in the same scope that read what a block writes."""

    kind, method, inputs, output, is_pure = "GetConsumers", "get_consumers", ("block",), "block", True

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        ref, scope, realize = _in_scope(state, inputs[0], "get_consumers")
        return Applied(state, _refs(ref.func, scope.consumers(realize.block)))


class GetOutputBlocks(Primitive):
    """The blocks within a block that write a buffer which outlives it."""

    kind, method, inputs, output, is_pure = "GetOutputBlocks", "get_output_blocks", ("scope_block",), "block", True

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        ref = block_of(state, inputs[0], "get_output_blocks")
        program = state.program_of(ref)
        scope = Scope.of(program, program.block_node(ref.name))
        own = set(program.block(ref.name).alloc_buffers)
        return Applied(state, _refs(ref.func, [c for c in scope.children if any(buffer not in own for buffer in written(c.block))]))


def place_of(state: State, ref: Any, primitive: str) -> tuple[BlockRef | LoopRef, Node]:
    """Where a block or loop stands.

    Raises:
        ScheduleError: if it is neither.
    """
    if isinstance(ref, LoopRef):
        return ref, state.program_of(ref).loop_node(ref.var)
    ref = block_of(state, ref, primitive)
    return ref, state.program_of(ref).block_node(ref.name)


def _in_scope(state: State, block: Any, primitive: str) -> tuple[BlockRef, Scope, BlockRealize]:
    ref = block_of(state, block, primitive)
    program = state.program_of(ref)
    node = program.block_node(ref.name)
    if node is program.root:
        raise PrimitiveError(f"{primitive}: the root block has no producers and consumers; give one of the blocks inside of it", node.stmt)
    return ref, Scope.around(program, node), program.realize(ref.name)


def _refs(func: str, realizes: Sequence[Any]) -> tuple[BlockRef, ...]:
    return tuple(BlockRef(func, realize.block.name_hint) for realize in realizes)
