"""What is computed once: values by expression, as long as they are right where they are asked for.

Equal expressions are one object, so a memo by identity finds every repeated subexpression. An entry goes with the
block structure (`scope`), with a store to memory that it read (`invalidate`), and with a loop around it
(`forget_reads`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from ..tir.expr import PrimExpr, Var

_T = TypeVar("_T")

# Bits of `Memo.reads`: what a value depends on besides its operands. Each pointer variable has a further bit.
IMPURE = 1
REGISTERS = 2
_FIRST_MEMORY_BIT = 4


class Memo:
    """Results by key. `reads` collects what the value that is being computed depends on."""

    def __init__(self, noalias: bool) -> None:
        self.noalias = noalias
        self.memo: dict[Hashable, Any] = {}
        self.reads = 0
        self._log: list[Hashable] = []
        self._dependencies: dict[Hashable, int] = {}
        self._by_bit: dict[int, list[Hashable]] = {}
        self._bits: dict[Var, int] = {}
        self._kept: list[PrimExpr] = []

    def once(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """As `value`, for anything else that is worth remembering: `make` writes it."""
        found: _T | None = self.memo.get(key)
        if found is not None:
            # What is made of a remembered value depends on what that one read.
            self.reads |= self._dependencies.get(key, 0)
            return found
        outer, self.reads = self.reads, 0
        found = make()
        reads = self.reads
        # An effect happens each time that it stands in the program.
        if not reads & IMPURE:
            self.remember(key, found, reads)
        self.reads = outer | reads
        return found

    def remember(self, key: Hashable, result: Any, reads: int = 0) -> None:
        """Note a result that is right from here on, until something that it read is written."""
        self.memo[key] = result
        self._log.append(key)
        if not reads:
            return
        self._dependencies[key] = reads
        by_bit = self._by_bit
        while reads:
            bit = reads & -reads  # the lowest
            keys = by_bit.get(bit)
            if keys is None:
                by_bit[bit] = [key]
            else:
                keys.append(key)
            reads ^= bit

    def keep(self, expr: PrimExpr) -> PrimExpr:
        """An expression that code generation made itself, kept alive because the memo goes by identity."""
        self._kept.append(expr)
        return expr

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A region whose values are not defined after it: an arm of a branch, the body of a loop or a let."""
        mark = len(self._log)
        try:
            yield
        finally:
            # Keys that `invalidate` has dropped are in the log still.
            for key in self._log[mark:]:
                self.memo.pop(key, None)
                self._dependencies.pop(key, None)
            del self._log[mark:]

    def memory_bit(self, data: Var) -> int:
        """The bit of `reads` for the memory behind a pointer; one for all memory where pointers may overlap."""
        if not self.noalias:
            return _FIRST_MEMORY_BIT  # a store through one pointer may change what any other reads
        bit = self._bits.get(data)
        if bit is None:
            bit = self._bits[data] = _FIRST_MEMORY_BIT << len(self._bits)
        return bit

    def invalidate(self, bit: int) -> None:
        """Forget what was computed from memory (or registers) that is being written."""
        for key in self._by_bit.pop(bit, ()):
            self.memo.pop(key, None)
            self._dependencies.pop(key, None)

    def forget_reads(self) -> None:
        """Forget all that depends on memory or registers: a loop may change it before it is asked for again."""
        for bit in list(self._by_bit):  # `invalidate` takes bits out
            self.invalidate(bit)
