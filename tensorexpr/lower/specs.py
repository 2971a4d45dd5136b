"""What holds after each phase, as a program: which nodes may exist, what accesses look like, and SSA form throughout.

`check_module` raises on the first violation: an InternalError that names our pass, a LoweringError that names a user's.
"""

from __future__ import annotations

from ..dataclass import dataclass, replace
from ..errors import InternalError, LoweringError
from ..tir.arithmetic import is_const_int
from ..tir.block import Block, BlockRealize
from ..tir.buffer import Buffer
from ..tir.dtype import parse_dtype
from ..tir.expr import BufferLoad, IntImm, IterVar, PrimExpr, ProducerLoad, Reduce, Var
from ..tir.function import IRModule, PrimFunc
from ..tir.stmt import (
    Allocate,
    AllocateConst,
    AttrStmt,
    BufferBind,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Stmt,
    While,
)
from ..tir.thread import VIRTUAL_TAGS, bound_tag
from .rebuild import FreeVars, operands, own_expressions, sub_statements, walk_statements


@dataclass(frozen=True, slots=True)
class Spec:
    """The invariants of one phase's result."""

    title: str
    no_statements: tuple[type[Stmt], ...] = ()
    no_loops: tuple[ForKind, ...] = ()
    flat: bool = False
    constant_registers: bool = False
    no_virtual_threads: bool = False


_NO_VECTORS = (ForKind.VECTORIZED, ForKind.UNROLLED)
_FLAT = Spec("flat storage", no_statements=(BufferRealize, BufferBind, BlockRealize, Block), flat=True)
_LOOPS = replace(_FLAT, title="loops as they will run", no_loops=_NO_VECTORS, constant_registers=True, no_virtual_threads=True)
SPECS: dict[int, Spec] = {
    0: Spec("loop nests over multi-dimensional buffers"),
    1: _FLAT,
    2: _LOOPS,
    3: replace(_LOOPS, title="only what code generation knows"),
}


def check_module(mod: IRModule, pass_name: str, phase: int | None, by_user: bool, free: FreeVars | None = None) -> None:
    """Check every function: SSA form and dtypes always, and the spec of `phase` unless it is None.

    Args:
        mod: the module after a pass.
        pass_name: who is to blame.
        phase: whose spec has to hold, from 0 to 3.
        by_user: a user's pass it was.
        free: the variables of expressions that earlier checks have found: a pass leaves most expressions as they are.

    Raises:
        InternalError: if a pass of ours broke a rule.
        LoweringError: if a user's pass did.
    """
    for var, func in mod.functions.items():
        problem = _scoping_problem(func, free or FreeVars()) or (None if phase is None else _phase_problem(func, SPECS[phase]))
        if problem is not None:
            raise _error(f"after {pass_name}, function {var.name_hint!r}: {problem}", by_user)


def check_statements(mod: IRModule, pass_name: str, phase: int, by_user: bool) -> None:
    """The part of the spec of `phase` that a walk over the statements alone can tell; cheap enough for every lowering."""
    spec = SPECS[phase]
    for var, func in mod.functions.items():
        for stmt in walk_statements(func.body):
            problem = _statement_problem(stmt, spec)
            if problem is not None:
                raise _error(f"after {pass_name}, function {var.name_hint!r}: {problem}", by_user)


def _error(message: str, by_user: bool) -> Exception:
    return LoweringError(message) if by_user else InternalError(message)


def _statement_problem(stmt: Stmt, spec: Spec) -> str | None:
    if isinstance(stmt, spec.no_statements):
        return f"a {type(stmt).__name__} is left, but the phase promises {spec.title}"
    if isinstance(stmt, For) and stmt.kind in spec.no_loops:
        return f"the loop {stmt.loop_var.name} is still {stmt.kind.name}, but the phase promises {spec.title}"
    if spec.no_virtual_threads and bound_tag(stmt) in VIRTUAL_TAGS:
        return f"there is still a loop over {bound_tag(stmt)}, but the phase promises {spec.title}"
    if isinstance(stmt, BufferStore):
        return _access_problem(stmt.buffer, stmt.indices, stmt.predicate, spec)
    if isinstance(stmt, Allocate) and spec.flat and len(stmt.extents) != 1:
        return f"the allocation {stmt.buffer_var.name} has {len(stmt.extents)} extents, but the phase promises {spec.title}"
    return None


def _phase_problem(func: PrimFunc, spec: Spec) -> str | None:
    seen: set[PrimExpr] = set()
    for stmt in walk_statements(func.body):
        problem = _statement_problem(stmt, spec)
        stack = list(own_expressions(stmt))
        while stack and problem is None:
            expr = stack.pop()
            if expr in seen:
                continue
            seen.add(expr)
            problem = _expression_problem(expr, spec)
            stack.extend(operands(expr))
        if problem is not None:
            return problem
    return None


def _expression_problem(expr: PrimExpr, spec: Spec) -> str | None:
    if isinstance(expr, (ProducerLoad, Reduce)):
        return f"a {type(expr).__name__} is left; it belongs to tensor expressions"
    if isinstance(expr, BufferLoad):
        return _access_problem(expr.buffer, expr.indices, expr.predicate, spec)
    return None


def _access_problem(buffer: Buffer, indices: tuple[PrimExpr, ...], predicate: PrimExpr | None, spec: Spec) -> str | None:
    if spec.flat and (len(indices) != 1 + len(buffer.axis_separators) or buffer.strides or not is_const_int(buffer.elem_offset, 0)):
        return f"the access to {buffer.name} isn't flat, but the phase promises {spec.title}"
    if spec.constant_registers and buffer.scope() == "register" and not all(isinstance(i, IntImm) for i in indices):
        return f"register {buffer.name} is indexed by {', '.join(map(str, indices))}, which is no constant"
    if predicate is not None:
        parsed = parse_dtype(predicate.dtype)
        if parsed.code != "bool" or parsed.lanes != parse_dtype(buffer.access_dtype(indices)).lanes:
            return f"the predicate of an access to {buffer.name} is {predicate.dtype}"
    return None


def _scoping_problem(func: PrimFunc, free: FreeVars) -> str | None:
    """The first variable that is used out of its scope or bound twice, a condition that is no bool, or a wrong loop dtype."""
    scope: set[Var] = set(func.params)
    for buffer in func.buffer_map.values():
        scope.add(buffer.data)
        for expr in (*buffer.shape, *buffer.strides, buffer.elem_offset):
            scope |= free(expr)
    return _check_scope(func.body, scope, set(scope), free)


def _bound_by(stmt: Stmt) -> tuple[Var, ...]:
    match stmt:
        case For():
            return (stmt.loop_var,)
        case Allocate() | AllocateConst():
            return (stmt.buffer_var,)
        case LetStmt():
            return (stmt.var,)
        case BufferRealize():
            return (stmt.buffer.data,)
        case BufferBind() | Block():
            return stmt.defines()
        case AttrStmt(node=IterVar() as axis):
            return (axis.var,)
    return ()


def _check_scope(stmt: Stmt, scope: set[Var], bound: set[Var], free: FreeVars) -> str | None:
    known = scope | set(stmt.defines()) if isinstance(stmt, Block) else scope  # a block's regions are in terms of its axes
    for expr in own_expressions(stmt):
        unknown = free(expr) - known
        if unknown:
            names = ", ".join(sorted(v.name for v in unknown))
            return f"{names} is used in a {type(stmt).__name__} outside its definition: {expr}"
    if isinstance(stmt, (BufferStore, DeclBuffer)) and stmt.buffer.data not in scope:
        return f"buffer {stmt.buffer.name} is accessed outside its allocation"
    if isinstance(stmt, BufferBind) and stmt.source.buffer.data not in scope:
        return f"buffer {stmt.source.buffer.name} is bound outside its allocation"
    problem = _type_problem(stmt)
    if problem is not None:
        return problem
    own = _bound_by(stmt)
    for var in own:
        # Everywhere, not only in scope: passes keep facts by variable, and a second definition would inherit those of the first.
        if var in bound:
            return f"{var.name} is defined twice"
        bound.add(var)
        scope.add(var)
    for inner in sub_statements(stmt):
        problem = _check_scope(inner, scope, bound, free)
        if problem is not None:
            return problem
    scope.difference_update(own)
    return None


def _type_problem(stmt: Stmt) -> str | None:
    if isinstance(stmt, (IfThenElse, While)) and stmt.condition.dtype != "bool":
        return f"a condition is {stmt.condition.dtype}: {stmt.condition}"
    return None
