"""What stands around the place that is being read: the function, its blocks and its loops."""

from __future__ import annotations

from typing import Any

from ...dataclass import dataclass, field
from ...errors import DeclarationError
from ...tir.block import Block, MatchBufferRegion
from ...tir.buffer import Buffer, BufferRegion
from ...tir.expr import IntImm, IterVar, PrimExpr, Range, Type, Var
from ...tir.stmt import Stmt


@dataclass(eq=False, slots=True)
class FunctionFrame:
    """A function whose body is being read."""

    name: str
    checked: bool = True  # refuse programs that are not well formed
    params: list[Var] = field(default_factory=list)
    buffer_map: dict[Var, Buffer] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)
    allocated: list[Buffer] = field(default_factory=list)
    has_blocks: bool = False
    private: bool = False
    ret_type: Type | None = None
    inferred: list[Block] = field(default_factory=list)  # whose regions the parser found
    stated: bool = False  # the attributes have been stated


@dataclass(eq=False, slots=True)
class BlockFrame:
    """A block whose body is being read. `reads` and `writes` are None until the block states them."""

    name: str
    realized: bool
    axes: list[IterVar] = field(default_factory=list)
    values: list[PrimExpr] = field(default_factory=list)
    predicate: PrimExpr = field(default_factory=lambda: IntImm("bool", 1))
    reads: list[BufferRegion] | None = None
    writes: list[BufferRegion] | None = None
    where: bool = False  # the predicate has been stated
    annotations: dict[str, Any] | None = None  # until the block states them
    allocated: list[Buffer] = field(default_factory=list)
    views: list[MatchBufferRegion] = field(default_factory=list)
    init: Stmt | None = None
    begun: bool = False  # a statement of the body has been seen


@dataclass(eq=False, slots=True)
class Context:
    """Where the parser stands."""

    function: FunctionFrame | None = None
    blocks: list[BlockFrame] = field(default_factory=list)
    loops: dict[Var, Range] = field(default_factory=dict)
    threads: dict[Var, str] = field(default_factory=dict)
    arms: list[dict[str, Stmt]] = field(default_factory=list)  # of each T.If around: T.Then, T.Else

    def block(self, what: str) -> BlockFrame:
        """The innermost block.

        Raises:
            DeclarationError: outside of blocks.
        """
        if not self.blocks:
            raise DeclarationError(f'{what} stands outside of a block; it belongs in `with T.block("name"):`')
        return self.blocks[-1]

    def owner(self) -> FunctionFrame:
        """The function.

        Raises:
            DeclarationError: outside of functions.
        """
        if self.function is None:
            raise DeclarationError("this stands outside of a function; write it in one under @T.prim_func")
        return self.function

    def begin(self) -> None:
        """Note that the innermost block's own lines are over."""
        if self.blocks:
            self.blocks[-1].begun = True
