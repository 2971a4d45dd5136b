"""Functions that return a number, as functions that write it into one more buffer: what machines and the interpreter run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeGuard

from ..errors import DeclarationError
from .buffer import decl_buffer
from .dtype import parse_dtype
from .expr import Call, IntImm, Var
from .function import PrimFunc
from .rewriting import walk
from .stmt import Allocate, AllocateConst, AssertStmt, AttrStmt, BufferStore, DeclBuffer, Evaluate, IfThenElse, LetStmt, SeqStmt, Stmt, seq

_AROUND = (Allocate, AllocateConst, AssertStmt, AttrStmt, DeclBuffer, LetStmt)


def returned_dtype(func: PrimFunc) -> str | None:
    """The dtype of what a function returns; None for nothing, or an error code of int32."""
    found = [node.args[0] for node in walk(func.body) if _is_return(node)]
    # `return 0` of no stated type is the status with which functions of C end.
    if not found or (func.ret_type is None and all(isinstance(value, IntImm) and value.value == 0 for value in found)):
        return None
    return found[0].dtype


def _is_return(node: object) -> TypeGuard[Call]:
    return isinstance(node, Call) and node.op == "tir.ret"


def with_result(func: PrimFunc, dtype: str) -> PrimFunc:
    """`func` with one more parameter, a buffer of one element that takes what it returned.

    Raises:
        DeclarationError: if it returns vectors, values of several dtypes, or out of a loop.
    """
    if parse_dtype(dtype).lanes != 1 or parse_dtype(dtype).code == "handle":
        raise DeclarationError(f"a function returns a number, not {dtype}")
    result = decl_buffer((1,), dtype, "result")
    handle = Var("result", "handle")

    def stored(stmt: Stmt) -> Stmt:
        """The statement, at the end of the function, with stores for returns."""
        if isinstance(stmt, Evaluate) and _is_return(stmt.value):
            value = stmt.value.args[0]
            if value.dtype != dtype:
                raise DeclarationError(f"the function returns {value} ({value.dtype}) here, and {dtype} elsewhere")
            return BufferStore(result, value, (IntImm("int32", 0),))
        if isinstance(stmt, SeqStmt):
            return _sequence(list(stmt.seq), stored)
        if isinstance(stmt, IfThenElse):
            return IfThenElse(stmt.condition, stored(stmt.then_case), None if stmt.else_case is None else stored(stmt.else_case))
        if isinstance(stmt, _AROUND):
            return replace(stmt, body=stored(stmt.body))
        # Left are loops and the like, where a store in place of a return would let the next iteration run.
        if any(map(_is_return, walk(stmt))):
            raise DeclarationError(f"a return inside of a {type(stmt).__name__} leaves it early; keep the value, and return it at the end")
        return stmt

    return replace(func, params=(*func.params, handle), buffer_map={**func.buffer_map, handle: result}, body=stored(func.body))


def _sequence(stmts: list[Stmt], stored: Callable[[Stmt], Stmt]) -> Stmt:
    """Statements of which one may return early: what comes after it is its other case."""
    for number, stmt in enumerate(stmts):
        if not any(map(_is_return, walk(stmt))):
            continue
        rest = stmts[number + 1 :]
        if isinstance(stmt, IfThenElse) and rest and not _returns(stmt):
            if stmt.else_case is not None or not _returns(stmt.then_case):
                raise DeclarationError(
                    "a condition under which a function returns only sometimes; return in all of its cases or at the end"
                )
            # What follows is reached only where the condition is false, as the first case always returns.
            return seq(*stmts[:number], IfThenElse(stmt.condition, stored(stmt.then_case), stored(seq(*rest))))
        last = stored(stmt)
        if rest and not _returns(stmt):
            raise DeclarationError(
                f"a return under a condition inside of a {type(stmt).__name__}, and statements behind that; return at the end"
            )
        return seq(*stmts[:number], last)  # nothing after a return runs
    return seq(*stmts)


def _returns(stmt: Stmt) -> bool:
    """Whether a statement always returns."""
    if isinstance(stmt, SeqStmt):
        return any(map(_returns, stmt.seq))
    if isinstance(stmt, IfThenElse):
        return stmt.else_case is not None and _returns(stmt.then_case) and _returns(stmt.else_case)
    if isinstance(stmt, _AROUND):
        return _returns(stmt.body)
    return isinstance(stmt, Evaluate) and _is_return(stmt.value)
