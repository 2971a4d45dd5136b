"""A function of blocks, which answers where its loops and blocks are and is rewritten in one place at a time.

The function is immutable: a rewrite gives a new program that shares all but the path to the change. A loop is known by its
variable and a block by its name, which both stay when something around them changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from ...dataclass import dataclass, replace
from ...errors import ScheduleError
from ...tir.block import Block, BlockRealize
from ...tir.buffer import Buffer
from ...tir.expr import IntImm, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import map_children, substitute
from ...tir.scopes import parts
from ...tir.stmt import AllocateConst, DeclBuffer, For, SeqStmt, Stmt, is_no_op, seq

ROOT = "root"


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """A statement and the one around it."""

    stmt: Stmt
    parent: Node | None

    def ancestors(self) -> Iterator[Node]:
        """The nodes around this one, the nearest first."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent


def realized(node: Node) -> BlockRealize:
    """The realization at a node of a block."""
    assert isinstance(node.stmt, BlockRealize)
    return node.stmt


def block_at(node: Node) -> Block:
    """The block of a realization."""
    return realized(node).block


def holds_for_scope(node: Node) -> bool:
    """True for a declaration around all that a scope does: a constant, or a buffer's, which decides nothing about what runs."""
    while isinstance(node.stmt, (AllocateConst, DeclBuffer)) and node.parent is not None:
        node = node.parent
        if isinstance(node.stmt, Block):
            return True
    return False


def loops_around(node: Node) -> list[For]:
    """The loops around a node within its scope, outermost first."""
    found: list[For] = []
    for above in node.ancestors():
        if isinstance(above.stmt, BlockRealize):
            break
        if isinstance(above.stmt, For):
            found.append(above.stmt)
    return found[::-1]


def common_ancestors(nodes: Sequence[Node]) -> list[Node]:
    """The statements around all of several, innermost first."""
    # By identity of nodes: all must come from `block_node` or `loop_node` of one program, as `child_blocks` makes others.
    chains = [{id(one) for one in (node, *node.ancestors())} for node in nodes[1:]]
    return [above for above in nodes[0].ancestors() if all(id(above) in chain for chain in chains)]


def inner_statements(stmt: Stmt) -> tuple[Stmt, ...]:
    """The statements directly inside, but for the init of a block."""
    if isinstance(stmt, Block):
        return (stmt.body,)
    return (stmt.block,) if isinstance(stmt, BlockRealize) else parts(stmt).bodies


def map_inner(stmt: Stmt, change: Callable[[Stmt], Stmt]) -> Stmt:
    """A statement with those directly inside changed, but for the init of a block."""
    made = {id(inner): change(inner) for inner in inner_statements(stmt)}
    return map_children(stmt, lambda child: made.get(id(child), child)) if made else stmt


@dataclass(frozen=True, eq=False)
class BlockProgram:
    """A function whose body is the realization of its root block."""

    func: PrimFunc

    @staticmethod
    def of(func: PrimFunc) -> BlockProgram:
        """The program of a function; a root block is put around its body if there is none, and loops get variables of their own."""
        body = func.body
        if not isinstance(body, BlockRealize) or body.iter_values or body.block.iter_vars:
            body = BlockRealize((), IntImm("bool", 1), Block((), (), (), ROOT, body))
            func = func.without_attr("from_legacy_te_schedule")  # which says that there are no blocks to lower
        return BlockProgram(func.with_body(_own_variables(body, set())))

    @cached_property
    def _nodes(self) -> tuple[Node, ...]:
        """All statements, outer ones first, in the order of the text."""
        found: list[Node] = []
        stack = [Node(self.func.body, None)]
        while stack:
            node = stack.pop()
            found.append(node)
            stack.extend(Node(inner, node) for inner in reversed(inner_statements(node.stmt)))
        return tuple(found)

    @cached_property
    def loops(self) -> dict[Var, Node]:
        """The loops by their variables."""
        return {node.stmt.loop_var: node for node in self._nodes if isinstance(node.stmt, For)}

    @cached_property
    def blocks(self) -> dict[str, tuple[Node, ...]]:
        """The realizations of blocks by the blocks' names, the root among them."""
        found: dict[str, tuple[Node, ...]] = {}
        for node in self._nodes:
            if isinstance(node.stmt, BlockRealize):
                name = node.stmt.block.name_hint or (ROOT if node is self.root else "")
                found[name] = (*found.get(name, ()), node)
        return found

    @property
    def root(self) -> Node:
        """The realization of the root block."""
        return self._nodes[0]

    def block_node(self, name: str) -> Node:
        """Where the block of a name is realized.

        Raises:
            ScheduleError: if there is none or more than one.
        """
        found = self.blocks.get(name, ())
        if len(found) != 1:
            there = ", ".join(name for name in self.blocks if name != ROOT) or "none"
            raise ScheduleError(
                f"no block is called {name!r}; blocks: {there}"
                if not found
                else f"{len(found)} blocks are called {name!r}: give each a name of its own to schedule it"
            )
        return found[0]

    def realize(self, name: str) -> BlockRealize:
        """The realization of a block."""
        return realized(self.block_node(name))

    def block(self, name: str) -> Block:
        """The block of a name."""
        return self.realize(name).block

    def loop_node(self, var: Var) -> Node:
        """Where the loop over a variable stands.

        Raises:
            ScheduleError: if it is gone: split, fused or moved with its block.
        """
        node = self.loops.get(var)
        if node is None:
            raise ScheduleError(f"the loop over {var.name} is gone: a primitive split, fused or removed it; ask for it with get_loops")
        return node

    def loop(self, var: Var) -> For:
        """The loop over a variable."""
        stmt = self.loop_node(var).stmt
        assert isinstance(stmt, For)
        return stmt

    def scope_of(self, node: Node) -> Node:
        """The realization of the block around a node; the root's own for the root."""
        return next((above for above in node.ancestors() if isinstance(above.stmt, BlockRealize)), self.root)

    def loops_above(self, node: Node) -> list[For]:
        """The loops around a node within its scope, outermost first."""
        return loops_around(node)

    def child_blocks(self, node: Node) -> list[Node]:
        """The realizations below a node that no other block lies between, in the order of the text."""
        found: list[Node] = []
        stack = [Node(inner, node) for inner in reversed(inner_statements(node.stmt))]
        if isinstance(node.stmt, BlockRealize):
            stack = [Node(node.stmt.block.body, Node(node.stmt.block, node))]
        while stack:
            below = stack.pop()
            if isinstance(below.stmt, BlockRealize):
                found.append(below)
            else:
                stack.extend(Node(inner, below) for inner in reversed(inner_statements(below.stmt)))
        return found

    def node_of(self, stmt: Stmt) -> Node:
        """Where a statement of this program stands."""
        # By identity: equal statements may stand in two places.
        return next(node for node in self._nodes if node.stmt is stmt)

    def replaced(self, changes: Mapping[Stmt, Stmt | None]) -> BlockProgram:
        """The program with statements replaced; None takes one out, and with it the loops and branches that would be empty.

        What stands inside of a replaced statement isn't looked at.
        """
        # only the paths down to the changes are made anew; all else is shared, and keeps its identity
        body = _replaced(self.func.body, dict(changes), {id(above.stmt) for stmt in changes for above in self.node_of(stmt).ancestors()})
        if body is None:
            raise ScheduleError("nothing would be left of the function; keep at least the block that writes its result")
        return BlockProgram(self.func.with_body(body))

    def replace(self, old: Stmt, new: Stmt | None) -> BlockProgram:
        """The program with one statement replaced, or taken out."""
        return self.replaced({old: new})

    def map_block(self, name: str, change: Callable[[Block], Block]) -> BlockProgram:
        """The program with a block changed."""
        realize = self.realize(name)
        return self.replace(realize, replace(realize, block=change(realize.block)))

    def allocated(self, scope: str, *buffers: Buffer) -> BlockProgram:
        """The program with more buffers that exist within the block `scope`."""
        return self.map_block(scope, lambda block: replace(block, alloc_buffers=(*block.alloc_buffers, *buffers)))

    def fresh_block_name(self, stem: str) -> str:
        """`stem`, or it with the first number that makes it new."""
        return fresh(stem, self.blocks)

    def buffers(self) -> Iterator[Buffer]:
        """The parameters' buffers and those that blocks allocate."""
        yield from self.func.buffer_map.values()
        for nodes in self.blocks.values():
            for node in nodes:
                if isinstance(node.stmt, BlockRealize):
                    yield from node.stmt.block.alloc_buffers


def _own_variables(stmt: Stmt, seen: set[Var]) -> Stmt:
    """The statement with a variable of its own for each loop that uses one of `seen`; all are added there."""
    if isinstance(stmt, For):
        var = stmt.loop_var
        # programs find loops by their variables, so no two may share one
        if var in seen:
            var = Var(var.name, var.dtype)
            stmt = replace(stmt, loop_var=var, body=substitute(stmt.body, {stmt.loop_var: var}))
        seen.add(var)
    return map_inner(stmt, lambda inner: _own_variables(inner, seen))


def fresh(stem: str, taken: Mapping[str, object] | set[str]) -> str:
    """`stem`, or it with the first number that makes it new."""
    name, number = stem, 0
    while name in taken:
        number += 1
        name = f"{stem}_{number}"
    return name


def _replaced(stmt: Stmt, changes: dict[Stmt, Stmt | None], path: set[int]) -> Stmt | None:
    """A statement after changes below it, where `path` has the identities of the statements above them."""
    if stmt in changes:
        return changes[stmt]
    if id(stmt) not in path:
        return stmt
    inner = inner_statements(stmt)
    made = [_replaced(part, changes, path) for part in inner]
    if isinstance(stmt, SeqStmt):
        left = [part for part in made if part is not None]
        return seq(*left) if left else None
    # A loop or branch whose inside went goes with it; one that was empty before stays.
    if any(new is None or (is_no_op(new) and not is_no_op(old)) for old, new in zip(inner, made, strict=True)):
        return None
    by_old = dict(zip(map(id, inner), made, strict=True))
    return map_children(stmt, lambda child: by_old.get(id(child)) or child)
