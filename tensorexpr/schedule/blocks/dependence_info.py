"""Which blocks of a function or module depend on which, without a schedule."""

from __future__ import annotations

from ...errors import ScheduleError
from ...tir.block import Block
from ...tir.function import IRModule, PrimFunc
from ...tir.scopes import parts
from ...tir.stmt import For, Stmt
from .block_scope import BlockScope, StmtSRef


class BlockDependenceInfo:
    """The places of all blocks of a program, and for each the dependences among the blocks directly within it.

    Args:
        mod: a function, or a module of functions.
    """

    def __init__(self, mod: PrimFunc | IRModule) -> None:
        self.mod = IRModule.from_expr(mod)
        self._places: dict[Stmt, StmtSRef] = {}
        self._scopes: dict[StmtSRef, BlockScope] = {}
        for func in self.mod.functions.values():
            self._visit(func.body, None)

    def _visit(self, stmt: Stmt, parent: StmtSRef | None) -> list[StmtSRef]:
        """The places of the blocks directly within a statement; those of all below it are noted."""
        if isinstance(stmt, Block):
            # Loops are no parents here: a block's parent is the block around it.
            place = self._places[stmt] = StmtSRef(stmt, parent)
            inner = [child for body in parts(stmt).bodies for child in self._visit(body, place)]
            self._scopes[place] = BlockScope(inner)
            return [place]
        if isinstance(stmt, For):
            self._places[stmt] = StmtSRef(stmt, parent)
        return [child for body in parts(stmt).bodies for child in self._visit(body, parent)]

    def get_sref(self, block: Block) -> StmtSRef | None:
        """The place of a block, or None if it isn't one of the program's."""
        return self._places.get(block)

    def get_block_scope(self, block_sref: StmtSRef) -> BlockScope:
        """The dependences among the blocks directly within a block.

        Raises:
            ScheduleError: for a place that is not one of a block of the program.
        """
        found = self._scopes.get(block_sref)
        if found is None:
            raise ScheduleError(f"{block_sref} is no block of this program")
        return found
