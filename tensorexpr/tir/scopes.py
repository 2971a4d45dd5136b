"""What a statement mentions and what it defines: the one table behind printing, checking and analysing scopes."""

from __future__ import annotations

from ..dataclass import dataclass
from .block import Block, BlockRealize
from .buffer import Buffer
from .expr import BufferLoad, IterVar, Let, PrimExpr, Reduce, Var
from .rewriting import children, walk
from .stmt import (
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    BufferBind,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    Prefetch,
    ProducerRealize,
    ProducerStore,
    SeqStmt,
    Stmt,
    While,
)


@dataclass(frozen=True, slots=True)
class Parts:
    """A statement taken apart: `exprs` and `buffers` that it mentions itself, in reading order, its `bodies`,
    and the variables that it `defines` for them. `inner_exprs` and `inner_buffers` are mentioned where those hold already."""

    exprs: tuple[PrimExpr, ...] = ()
    buffers: tuple[Buffer, ...] = ()
    bodies: tuple[Stmt, ...] = ()
    defines: tuple[Var, ...] = ()
    inner_exprs: tuple[PrimExpr, ...] = ()
    inner_buffers: tuple[Buffer, ...] = ()


def parts(stmt: Stmt) -> Parts:
    """Take a statement apart."""
    match stmt:
        case SeqStmt():
            return Parts(bodies=stmt.seq)
        case For():
            return Parts((stmt.min, stmt.extent), (), (stmt.body,), (stmt.loop_var,))
        case BufferStore():
            mask = () if stmt.predicate is None else (stmt.predicate,)
            return Parts((*stmt.indices, stmt.value, *mask), (stmt.buffer,))
        case IfThenElse():
            other = () if stmt.else_case is None else (stmt.else_case,)
            return Parts((stmt.condition,), (), (stmt.then_case, *other))
        case LetStmt():
            return Parts((stmt.value,), (), (stmt.body,), (stmt.var,))
        case Allocate():
            return Parts((*stmt.extents, stmt.condition), (), (stmt.body,), (stmt.buffer_var,))
        case AllocateConst():
            return Parts(stmt.extents, (), (stmt.body,), (stmt.buffer_var,))
        case BufferRealize():
            bounds = tuple(expr for r in stmt.bounds for expr in (r.min, r.extent))
            return Parts((*bounds, stmt.condition), (stmt.buffer,), (stmt.body,), (stmt.buffer.data,))
        case Evaluate():
            return Parts((stmt.value,))
        case ProducerStore():
            return Parts((*stmt.indices, stmt.value))
        case ProducerRealize():
            return Parts((*(expr for r in stmt.bounds for expr in (r.min, r.extent)), stmt.condition), (), (stmt.body,))
        case Prefetch():
            return Parts(tuple(expr for r in stmt.bounds for expr in (r.min, r.extent)), (stmt.buffer,))
        case BlockRealize():
            return Parts((*stmt.iter_values, stmt.predicate), (), (stmt.block,))
        case Block():
            return _block_parts(stmt)
        case While():
            return Parts((stmt.condition,), (), (stmt.body,))
        case DeclBuffer():
            return Parts((), (stmt.buffer,), (stmt.body,))
        case BufferBind():
            return _bind_parts(stmt)
        case AssertStmt():
            return Parts((stmt.condition, stmt.message), (), (stmt.body,))
        case AttrStmt():
            return _attr_parts(stmt)
    raise TypeError(f"{type(stmt).__name__} is no statement")


def _bind_parts(stmt: BufferBind) -> Parts:
    """A view mentions its shape, and the strides and the offset that it does not define."""
    defines, bound = stmt.defines(), stmt.buffer
    box = tuple(expr for r in stmt.source.region for expr in (r.min, r.extent))
    demands = tuple(expr for expr in (*bound.strides, bound.elem_offset) if expr not in defines)
    return Parts((*box, *bound.shape, *demands), (stmt.source.buffer,), (stmt.body,), defines)


def _block_parts(block: Block) -> Parts:
    """A block's regions are in terms of its axes, its views may be of its own buffers."""
    regions = block.regions()
    boxes = tuple(expr for region in regions for r in region.region for expr in (r.min, r.extent))
    views = (match.buffer for match in block.match_buffers)
    buffers = dict.fromkeys((*block.alloc_buffers, *(region.buffer for region in regions), *views))
    bodies = (block.body,) if block.init is None else (block.init, block.body)
    return Parts(tuple(block.domains()), (), bodies, block.defines(), boxes, tuple(buffers))


def _attr_parts(stmt: AttrStmt) -> Parts:
    """An attribute of a thread axis defines its variable; any other is about what exists already."""
    node = stmt.node
    if isinstance(node, IterVar):
        return Parts((stmt.value,), (), (stmt.body,), (node.var,))
    exprs = (node, stmt.value) if isinstance(node, PrimExpr) else (stmt.value,)
    return Parts(exprs, (node,) if isinstance(node, Buffer) else (), (stmt.body,))


def uses(expr: PrimExpr) -> tuple[list[Var], list[Buffer]]:
    """The free variables and the buffers of an expression, each once, in reading order."""
    variables: list[Var] = []
    buffers: dict[Buffer, None] = {}
    for node in walk(expr):
        if isinstance(node, Var):
            variables.append(node)
        elif isinstance(node, BufferLoad):
            buffers[node.buffer] = None
        elif isinstance(node, (Let, Reduce)):
            # Binders are rare: only where one is met does the walk that follows scopes begin.
            return list(_scoped_vars(expr)), list(dict.fromkeys(n.buffer for n in walk(expr) if isinstance(n, BufferLoad)))
    return variables, list(buffers)


def _scoped_vars(expr: PrimExpr) -> dict[Var, None]:
    """The free variables of an expression with binders inside."""
    found: dict[Var, None] = {}
    bound: dict[Var, int] = {}
    seen: set[PrimExpr] = set()  # valid for the variables that are bound right now
    stack: list[tuple[PrimExpr | None, tuple[Var, ...], int]] = [(expr, (), 0)]
    while stack:
        node, binders, change = stack.pop()
        if node is None:
            # A binding begins or ends: a node that was searched under another one may have other free variables now.
            seen.clear()
            for var in binders:
                bound[var] = bound.get(var, 0) + change
        elif isinstance(node, Var):
            if not bound.get(node):
                found[node] = None
        elif node not in seen:
            seen.add(node)
            stack.extend(reversed(_steps(node)))
    return found


_Step = tuple[PrimExpr | None, tuple[Var, ...], int]


def _steps(node: PrimExpr) -> list[_Step]:
    """The order in which a node's operands are visited, with its variables bound where they hold."""
    if isinstance(node, Let):
        return [(node.value, (), 0), (None, (node.var,), 1), (node.body, (), 0), (None, (node.var,), -1)]
    if not isinstance(node, Reduce):
        return [(child, (), 0) for child in children(node) if isinstance(child, PrimExpr)]
    combiner = node.combiner
    axes, operands = tuple(axis.var for axis in node.axis), combiner.lhs + combiner.rhs
    domains = [e for axis in node.axis if axis.dom is not None for e in (axis.dom.min, axis.dom.extent)]
    outer: list[_Step] = [(e, (), 0) for e in (*domains, *combiner.identity_element, *node.init)]
    inner: list[_Step] = [(e, (), 0) for e in (*node.source, node.condition)]
    result: list[_Step] = [(e, (), 0) for e in combiner.result]
    # Axes hold in source and condition alone, operands in the result alone; identities see neither.
    return [*outer, (None, axes, 1), *inner, (None, axes, -1), (None, operands, 1), *result, (None, operands, -1)]


def buffer_vars(buffer: Buffer) -> list[Var]:
    """The variables in a buffer's shape, strides and offset, each once."""
    exprs = (*buffer.shape, *buffer.strides, buffer.elem_offset)
    return list(dict.fromkeys(node for expr in exprs for node in walk(expr) if isinstance(node, Var)))
