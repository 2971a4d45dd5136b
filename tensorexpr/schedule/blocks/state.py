"""The state of a schedule as a thing of its own: a module, the places of its blocks and loops, and what is known of blocks.

It is the one mutable view of programs here, for those who write primitives of their own: `replace` changes the module, and places stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import IntEnum
from typing import NamedTuple

from ...errors import ScheduleError
from ...tir.block import Block, BlockRealize
from ...tir.expr import Var
from ...tir.function import IRModule, PrimFunc
from ...tir.rewriting import map_children
from ...tir.stmt import For, Stmt
from .affine import why_not_affine
from .block_scope import BlockScope, Dependency, DepKind, StmtSRef
from .coverage import is_covered
from .diagnostics import UnknownHandleError, WrongTypeError
from .program import BlockProgram, Node, inner_statements, realized

__all__ = ["BlockScope", "CachedFlags", "DepKind", "Dependency", "ScheduleDebugMask", "ScheduleState", "StmtSRef"]


class ScheduleDebugMask(IntEnum):
    """What is checked after each change; programs here are checked always, so masks are accepted and change nothing."""

    VERIFY_SREF_TREE = 1
    VERIFY_CACHED_FLAGS = 2


DEBUG_MASKS = {"all": 3, "none": 0}


def debug_mask_of(mask: str | int) -> int:
    """The number of a mask that a user gave.

    Raises:
        ValueError: for an unknown word.
    """
    if isinstance(mask, str):
        if mask not in DEBUG_MASKS:
            raise ValueError(f"debug_mask is 'all', 'none' or a number, not {mask!r}")
        return DEBUG_MASKS[mask]
    return int(mask)


class CachedFlags(NamedTuple):
    """What is known of a block.

    affine_binding: its axes are splits and fusions of the loops around it, each point is met once.
    region_cover: what it reads of buffers that other blocks of the scope write is written before.
    stage_pipeline: all blocks in it have region_cover, and none writes what one before it reads.
    """

    affine_binding: bool
    region_cover: bool
    stage_pipeline: bool


class ScheduleState:
    """A module, and where its blocks and loops stand.

    Args:
        mod: a module, or a function, which becomes one under the name "main".
        debug_mask: "all", "none" or a number; accepted, since programs here are checked always.
        enable_check: accepted, since programs here are checked always.
    """

    def __init__(self, mod: PrimFunc | IRModule, *, debug_mask: str | int = "none", enable_check: bool = True) -> None:
        if not isinstance(mod, (PrimFunc, IRModule)):
            raise WrongTypeError(f"ScheduleState takes a PrimFunc or an IRModule, not {type(mod).__name__}")
        self.debug_mask = debug_mask_of(debug_mask)
        self.enable_check = enable_check
        module = IRModule({"main": mod}) if isinstance(mod, PrimFunc) else mod
        self._attrs = module.attrs
        self._functions = {gv.name_hint: func for gv, func in module.functions_items()}
        self._programs: dict[str, BlockProgram] = {}
        self._places: dict[int, StmtSRef] = {}
        for name, func in self._functions.items():
            if isinstance(func, PrimFunc):
                self._programs[name] = BlockProgram.of(func)
                self._put(self._programs[name].func.body, None, {})

    @property
    def mod(self) -> IRModule:
        """The module as it is now."""
        functions = {name: self._programs[name].func if name in self._programs else func for name, func in self._functions.items()}
        return IRModule(functions, self._attrs)  # type: ignore[arg-type]

    def get_sref(self, stmt: Block | For) -> StmtSRef | None:
        """The place of a block or loop; None if it doesn't stand in the module."""
        found = self._places.get(id(stmt))
        # the identity of a statement that is gone may be another one's
        return found if found is not None and found.stmt is stmt else None

    def get_block_scope(self, block_sref: StmtSRef) -> BlockScope:
        """The dependences among the blocks directly within a block.

        Raises:
            IndexError: if there is no block.
        """
        program, node = self._block_node(block_sref)
        children = [self.get_sref(realized(child).block) for child in program.child_blocks(node)]
        return BlockScope([child for child in children if child is not None])

    def _get_cached_flags(self, block_sref: StmtSRef) -> CachedFlags:
        """What is known of a block; TVM's name for it, which its programs use."""
        program, node = self._block_node(block_sref)
        loops = program.loops_above(node)
        affine = node is program.root or why_not_affine(realized(node), loops) is None
        return CachedFlags(affine, self._has_cover(program, node), self._is_pipeline(program, node, block_sref))

    def _has_cover(self, program: BlockProgram, node: Node) -> bool:
        if node is program.root:
            return True
        siblings = program.child_blocks(program.scope_of(node))
        before = siblings[: next(place for place, child in enumerate(siblings) if child is node or child.stmt is node.stmt)]
        for region in realized(node).block.reads:
            producers = [child for child in before if any(made.buffer is region.buffer for made in realized(child).block.writes)]
            if producers and not is_covered(program, region, node, producers):
                return False
        return True

    def _is_pipeline(self, program: BlockProgram, node: Node, place: StmtSRef) -> bool:
        if any(dependency.kind == DepKind.WAR for dependency in self.get_block_scope(place).dependencies):
            return False
        return all(self._has_cover(program, child) for child in program.child_blocks(node))

    def replace(
        self, src_sref: StmtSRef, tgt_stmt: Block | For | BlockRealize, block_sref_reuse: Mapping[Block, Block] | None = None
    ) -> None:
        """Put another statement where a block or loop stands; the module changes, places of what stays remain.

        Args:
            src_sref: the place.
            tgt_stmt: a loop or a realization for a loop; a block for a block.
            block_sref_reuse: blocks within the old statement, and those of the new one that take their places; loops keep theirs
                with their variables.

        Raises:
            IndexError: if nothing stands at the place.
            ScheduleError: for a block where a loop stood, or a loop where a block stood.
        """
        name, node = self._node(src_sref)
        old = src_sref.stmt
        if isinstance(old, Block) == isinstance(tgt_stmt, (For, BlockRealize)):
            raise ScheduleError("replace puts a block in the place of a block, a loop or a BlockRealize in that of a loop")
        # Handles name places, not statements: what a user holds goes on standing for the successor of what it named.
        heirs = {id(new): self._places[id(before)] for before, new in (block_sref_reuse or {}).items() if id(before) in self._places}
        loops = {stmt.loop_var: self._places[id(stmt)] for stmt in _below(node.stmt) if isinstance(stmt, For)}
        if isinstance(tgt_stmt, Block):
            heirs.setdefault(id(tgt_stmt), src_sref)
        made: Stmt = tgt_stmt
        for above, below in _path(node):
            made = _with_child(above.stmt, below.stmt, made)
            if isinstance(made, (Block, For)):
                heirs[id(made)] = self._places[id(above.stmt)]
        func = self._programs[name].func
        # by identity: what the new program shares with the old one keeps its place
        kept = {id(stmt) for stmt in _below(made)}
        gone = [self._places.pop(id(stmt)) for stmt in [*_below(node.stmt), *(above.stmt for above, _ in _path(node))]
                if id(stmt) in self._places and id(stmt) not in kept]  # fmt: skip
        for place in gone:
            place.stmt = place.parent = None
        self._programs[name] = BlockProgram(func.with_body(made))
        self._put(made, None, heirs, loops)

    def _put(self, stmt: Stmt, parent: StmtSRef | None, heirs: Mapping[int, StmtSRef], loops: Mapping[Var, StmtSRef] | None = None) -> None:
        """Note the places of a statement and what is in it."""
        if isinstance(stmt, (Block, For)):
            inherited = (loops or {}).get(stmt.loop_var) if isinstance(stmt, For) else None
            place = heirs.get(id(stmt)) or self._places.get(id(stmt)) or inherited or StmtSRef(stmt)
            place.stmt, place.parent = stmt, parent
            self._places[id(stmt)] = parent = place
        for inner in inner_statements(stmt):
            self._put(inner, parent, heirs, loops)

    def _node(self, place: StmtSRef) -> tuple[str, Node]:
        for name, program in self._programs.items():
            for node in program._nodes:
                if node.stmt is place.stmt:
                    return name, node
        raise UnknownHandleError("this place is of another state, or what stood there is gone")

    def _block_node(self, place: StmtSRef) -> tuple[BlockProgram, Node]:
        """The realization of the block at a place."""
        if not isinstance(place.stmt, Block):
            raise UnknownHandleError("the place of a block is needed; a loop or nothing stands there")
        name, node = self._node(place)
        assert node.parent is not None
        return self._programs[name], node.parent


def _below(stmt: Stmt) -> list[Stmt]:
    """A statement and all in it."""
    found = [stmt]
    for inner in inner_statements(stmt):
        found += _below(inner)
    return found


def _path(node: Node) -> list[tuple[Node, Node]]:
    """The nodes around a node, the nearest first, each with the one below it."""
    found, below = [], node
    for above in node.ancestors():
        found.append((above, below))
        below = above
    return found


def _with_child(stmt: Stmt, old: Stmt, new: Stmt) -> Stmt:
    if isinstance(stmt, BlockRealize) and isinstance(new, Block):
        return replace(stmt, block=new)
    return map_children(stmt, lambda child: new if child is old else child)
