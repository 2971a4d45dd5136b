"""What every function must keep after every pass: definitions before uses and once, and operands of the right types."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import LoweringError
from .block_rules import block_violations
from .buffer import Buffer
from .dtype import parse_dtype
from .expr import BufferLoad, Let, PrimExpr, Var
from .function import IRModule, PrimFunc
from .rewriting import walk
from .scopes import buffer_vars, parts, uses
from .stmt import Allocate, AllocateConst, BufferRealize, BufferStore, DeclBuffer, IfThenElse, SeqStmt, Stmt, While


def violations(func: PrimFunc, regions: bool = True) -> list[str]:
    """Everything that is wrong with `func`, one sentence each; empty if it is well formed.

    Args:
        regions: with what its blocks leave out when they say what they read and write.
    """
    return list(_Check(func, regions=regions).run())


def verify_well_formed(obj: PrimFunc | IRModule, assert_mode: bool = True) -> bool:
    """Check a function, or all of a module.

    Args:
        assert_mode: raise on the first function that is not well formed, in place of returning False.

    Raises:
        LoweringError: listing what is wrong.
    """
    functions = [func for _, func in obj.functions_items()] if isinstance(obj, IRModule) else [obj]
    for func in functions:
        found = violations(func)
        if found and assert_mode:
            name = func.attrs.get("global_symbol", "main")
            raise LoweringError(f"function {name} is not well formed: {'; '.join(found[:10])}")
        if found:
            return False
    return True


def verify_ssa(func: PrimFunc) -> bool:
    """True if every variable is defined at most once and used only where its definition holds.

    A `Let` may stand in several places, as expressions are shared, but always with the same value.
    """
    check = _Check(func, types=False)
    return next(check.run(), None) is None and _lets_agree(func)


def _lets_agree(func: PrimFunc) -> bool:
    values: dict[Var, PrimExpr] = {}
    return all(values.setdefault(node.var, node.value) is node.value for node in walk(func.body) if isinstance(node, Let))


class _Check:
    """One walk over a function with the variables that are defined where it stands."""

    def __init__(self, func: PrimFunc, types: bool = True, regions: bool = True) -> None:
        self._func = func
        self._regions = regions
        self._types = types
        self._live: set[Var] = set()
        self._ever: set[Var] = set()
        self._realized: set[Buffer] = set()
        self._known_exprs: set[PrimExpr] = set()  # whose types have been checked
        self._buffer_vars: dict[Buffer, list[Var]] = {}

    def run(self) -> Iterator[str]:
        """Yield the violations in reading order."""
        yield from self._signature()
        stack: list[Stmt | tuple[Var, ...]] = [self._func.body]
        while stack:
            stmt = stack.pop()
            if isinstance(stmt, tuple):
                self._live.difference_update(stmt)
                continue
            own = parts(stmt)
            defines = own.defines
            if isinstance(stmt, BufferRealize) and stmt.buffer in self._realized:
                defines = ()  # a parameter: it has its memory
            for buffer in own.buffers:
                yield from self._buffer(buffer, skip_data=buffer.data in defines)
            for expr in own.exprs:
                yield from self._expr(expr)
            if self._types:
                yield from _statement_types(stmt)
                yield from block_violations(stmt, self._regions)
            for var in defines:
                if var in self._ever:
                    yield f"{var.name} is defined more than once, again by a {type(stmt).__name__}"
                self._ever.add(var)
                self._live.add(var)
            for buffer in own.inner_buffers:
                yield from self._buffer(buffer)
            for expr in own.inner_exprs:
                yield from self._expr(expr)
            # Below the bodies on the stack: it is taken off when they are done, and ends the scope.
            stack.append(defines)
            stack.extend(reversed(own.bodies))

    def _signature(self) -> Iterator[str]:
        """Parameters, the pointers of their buffers, and the sizes that arrays bring along."""
        params = self._func.params
        if len(set(params)) != len(params):
            yield "a parameter occurs twice"
        for handle, buffer in self._func.buffer_map.items():
            if handle not in params:
                yield f"buffer_map has {handle.name}, which is no parameter"
            elif handle.dtype != "handle":
                yield f"buffer_map gives {handle.name}, a {handle.dtype}, a buffer"
            self._realized.add(buffer)
            self._live.update((buffer.data, *buffer_vars(buffer)))
        self._live.update(params)
        self._ever.update(self._live)

    def _buffer(self, buffer: Buffer, skip_data: bool = False) -> Iterator[str]:
        used = self._buffer_vars.get(buffer)
        if used is None:
            used = self._buffer_vars[buffer] = buffer_vars(buffer)
        if not skip_data and buffer.data not in self._live:
            yield f"buffer {buffer.name} is used where its pointer {buffer.data.name} is not defined"
        for var in used:
            if var not in self._live:
                yield f"buffer {buffer.name} is shaped by {var.name}, which is not defined there"

    def _expr(self, expr: PrimExpr) -> Iterator[str]:
        variables, buffers = uses(expr)
        for var in variables:
            if var not in self._live:
                yield f"{var.name} is used in {expr} where it is not defined"
        for buffer in buffers:
            yield from self._buffer(buffer)
        # Expressions are interned, so one that was checked is right wherever it stands.
        if self._types and expr not in self._known_exprs:
            self._known_exprs.add(expr)
            for node in walk(expr):
                if isinstance(node, BufferLoad):
                    yield from _access_types(node)


def _access_types(node: BufferLoad | BufferStore) -> Iterator[str]:
    """Indices are integers, at most one of them a vector, and a predicate has a bool for each lane."""
    kinds = [parse_dtype(index.dtype) for index in node.indices]
    for index, kind in zip(node.indices, kinds, strict=True):
        if not kind.is_int:
            yield f"index {index} of {node.buffer.name} is {index.dtype}, not an integer"
    if sum(kind.lanes > 1 for kind in kinds) > 1:
        yield f"{node.buffer.name} is accessed with more than one vector index"
    if node.predicate is not None:
        lanes = parse_dtype(node.buffer.dtype).lanes
        for kind in kinds:
            lanes *= kind.lanes
        found = parse_dtype(node.predicate.dtype)
        if found.code != "bool" or found.lanes != lanes:
            yield f"the predicate of an access to {node.buffer.name} is {node.predicate.dtype}; it needs a bool for each of {lanes} lanes"


def _statement_types(stmt: Stmt) -> Iterator[str]:
    match stmt:
        case BufferStore():
            yield from _access_types(stmt)
        case IfThenElse() | While():
            if stmt.condition.dtype != "bool":
                yield f"the condition {stmt.condition} is {stmt.condition.dtype}, not bool"
        case Allocate() | AllocateConst():
            if stmt.buffer_var.dtype != "handle":
                yield f"{stmt.buffer_var.name} is allocated, but is {stmt.buffer_var.dtype}, not a handle"
            if not all(parse_dtype(extent.dtype).is_int for extent in stmt.extents):
                yield f"{stmt.buffer_var.name} is allocated with an extent that is no integer"
        case BufferRealize():
            if len(stmt.bounds) != len(stmt.buffer.shape):
                yield f"{stmt.buffer.name} has {len(stmt.buffer.shape)} dimensions and is realized with {len(stmt.bounds)} bounds"
        case DeclBuffer():
            if stmt.buffer.data.dtype != "handle":
                yield f"buffer {stmt.buffer.name} stands on {stmt.buffer.data.name}, which is {stmt.buffer.data.dtype}, not a handle"
        case SeqStmt():
            if len(stmt.seq) < 2 or any(isinstance(child, SeqStmt) for child in stmt.seq):
                yield "a sequence is nested or shorter than two"
