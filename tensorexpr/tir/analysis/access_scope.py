"""The innermost loop or block around all accesses of each buffer."""

from __future__ import annotations

from ...dataclass import dataclass, field
from ..block import BlockRealize
from ..buffer import Buffer, BufferRegion
from ..expr import BufferLoad, Var
from ..function import PrimFunc
from ..rewriting import walk
from ..scopes import parts
from ..stmt import BufferStore, For, Stmt
from ..thread import bound_tag

_Chain = tuple[Stmt, ...]


def detect_buffer_access_lca(func: PrimFunc) -> dict[Buffer, Stmt | None]:
    """For each buffer that a function takes or its blocks hold, the innermost `For` or `Block` around all its accesses.

    A view counts as an access of what it is a view of. Global memory is accessed by all blocks of threads of a launch.

    Returns:
        buffer -> statement; None where only the function itself is around all accesses.
    """
    return _Accesses(func).found()


@dataclass
class _Accesses:
    """Walks a function with the loops and blocks around the present point."""

    func: PrimFunc
    around: dict[Buffer, _Chain | None] = field(default_factory=dict)
    names: dict[Var, Buffer] = field(default_factory=dict)
    views: dict[Buffer, BufferRegion] = field(default_factory=dict)

    def found(self) -> dict[Buffer, Stmt | None]:
        """The statement of each buffer."""
        for buffer in self.func.buffer_map.values():
            self.names[buffer.data] = buffer
        self._visit(self.func.body, ())
        lowest = self.around.items()
        return {buffer: chain[-1] if chain else None for buffer, chain in lowest if chain is not None}

    def _visit(self, stmt: Stmt, chain: _Chain) -> None:
        if isinstance(stmt, BlockRealize):
            self._block(stmt, chain)
            return
        if isinstance(stmt, For):
            inside = (*chain, stmt)
            # Bounds are evaluated once, outside of the loop.
            self._expressions(stmt, chain)
            self._visit(stmt.body, inside)
            return
        self._expressions(stmt, chain)
        if isinstance(stmt, BufferStore):
            self._access(stmt.buffer, chain)
        for body in parts(stmt).bodies:
            self._visit(body, chain)

    def _expressions(self, stmt: Stmt, chain: _Chain) -> None:
        own = parts(stmt)
        for expr in own.exprs:
            for node in walk(expr):
                if isinstance(node, BufferLoad):
                    self._access(node.buffer, chain)
                elif isinstance(node, Var) and node in self.names:
                    self._access(self.names[node], chain)

    def _block(self, realize: BlockRealize, chain: _Chain) -> None:
        block = realize.block
        self._expressions(realize, chain)
        inside = (*chain, block)
        for buffer in block.alloc_buffers:
            self.names[buffer.data] = buffer
        for match in block.match_buffers:
            self.names[match.buffer.data] = match.buffer
            self.views[match.buffer] = match.source
            self._access(match.source.buffer, inside)
        for body in parts(block).bodies:
            self._visit(body, inside)

    def _access(self, buffer: Buffer, chain: _Chain) -> None:
        if buffer in self.views:
            self._meet(self.views[buffer].buffer, chain)
        self._meet(buffer, self._grid(buffer, chain))

    def _grid(self, buffer: Buffer, chain: _Chain) -> _Chain:
        """Global memory that threads access belongs to the whole launch."""
        if buffer.scope() != "global":
            return chain
        # Outermost first: the launch begins at the first loop over blocks.
        launch = next((place for place, stmt in enumerate(chain) if (bound_tag(stmt) or "").startswith("blockIdx")), None)
        return chain if launch is None else chain[: launch + 1]

    def _meet(self, buffer: Buffer, chain: _Chain) -> None:
        known = self.around.get(buffer)
        if buffer not in self.around or known is None:
            self.around[buffer] = chain
            return
        common = 0
        while common < min(len(known), len(chain)) and known[common] is chain[common]:
            common += 1
        self.around[buffer] = known[:common]
