"""Refuse functions that access buffers out of bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..arith import relax
from ..arith.analyzer import Analyzer
from ..errors import LoweringError
from ..tir.block import BlockRealize
from ..tir.buffer import Buffer
from ..tir.expr import BufferLoad, Call, PrimExpr, Range, Select, Var
from ..tir.function import PrimFunc
from ..tir.rewriting import substitute, variables
from ..tir.stmt import BufferRealize, BufferStore, For, IfThenElse, Stmt, While
from .context import PassContext
from .passes import Pass
from .rebuild import operands, own_expressions, sub_statements
from .scopes import inside_loop


def OOBChecker() -> Pass:
    """A pass that changes nothing and refuses every access that is proved to leave its buffer.

    Accesses under a condition on their own variables are left alone: the condition may be what keeps them inside.

    Raises:
        LoweringError: naming all those accesses with the values that their indices take.
    """

    def check(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        found = list(dict.fromkeys(_Check().statement(func.body, {}, frozenset())))
        if found:
            raise LoweringError(f"{len(found)} access(es) out of bounds: {'; '.join(found[:10])}")
        return func

    return Pass("tir.analysis.OOBChecker", check)


class _Check:
    """One walk with the ranges of loops, the values of blocks' axes, and the variables under conditions."""

    def __init__(self) -> None:
        self._analyzer = Analyzer()
        self._values: dict[Var, PrimExpr] = {}
        self._realized: set[Buffer] = set()

    def statement(self, stmt: Stmt, domain: Mapping[Var, Range], guarded: frozenset[Var]) -> Iterator[str]:
        """The wrong accesses of a statement, one sentence each."""
        match stmt:
            case For():
                with inside_loop(self._analyzer, stmt):
                    yield from self._inside(stmt, {**domain, stmt.loop_var: Range.from_min_extent(stmt.min, stmt.extent)}, guarded)
                return
            case BlockRealize():
                for axis, value in zip(stmt.block.iter_vars, stmt.iter_values, strict=True):
                    self._values[axis.var] = substitute(value, self._values)
                guarded |= variables(substitute(stmt.predicate, self._values))
            case IfThenElse() | While():
                guarded |= variables(substitute(stmt.condition, self._values))
            case BufferRealize():
                self._realized.add(stmt.buffer)
            case BufferStore():
                yield from self._access(stmt.buffer, stmt.indices, domain, guarded)
        yield from self._inside(stmt, domain, guarded)

    def _inside(self, stmt: Stmt, domain: Mapping[Var, Range], guarded: frozenset[Var]) -> Iterator[str]:
        for expr in own_expressions(stmt):
            yield from self._loads(expr, domain, guarded)
        for inner in sub_statements(stmt):
            yield from self.statement(inner, domain, guarded)

    def _loads(self, expr: PrimExpr, domain: Mapping[Var, Range], guarded: frozenset[Var]) -> Iterator[str]:
        stack, seen = [(expr, guarded)], set()
        while stack:
            node, conditions = stack.pop()
            if (node, conditions) in seen:
                continue
            seen.add((node, conditions))
            if isinstance(node, BufferLoad):
                yield from self._access(node.buffer, node.indices, domain, conditions)
            if isinstance(node, Call) and node.op == "tir.if_then_else":
                conditions |= variables(substitute(node.args[0], self._values))
            elif isinstance(node, Select):
                conditions |= variables(substitute(node.condition, self._values))
            stack.extend((operand, conditions) for operand in operands(node))

    def _access(self, buffer: Buffer, indices: tuple[PrimExpr, ...], domain: Mapping[Var, Range], guarded: frozenset[Var]) -> Iterator[str]:
        if buffer in self._realized:
            return
        for dimension, (index, extent) in enumerate(zip(indices, buffer.shape, strict=True)):
            place = substitute(index, self._values)
            if variables(place) & guarded:
                continue
            side = relax(place, domain, self._analyzer)
            if side is None:
                continue
            known = self._analyzer.known_true
            if known(side.min < 0) or known(side.max >= extent):
                element = f"{buffer.name}[{', '.join(map(str, indices))}]"
                yield f"dimension {dimension} of {element} reaches {side.min}..{side.max}, out of 0..{extent - 1}"
