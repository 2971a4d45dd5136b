"""Values that come from shared memory which nothing has written, until somebody uses them.

Compilers read early what is used under a condition, and several neighbours at once of which one is needed. So a read alone is no fault: the
value is one that nobody may use, as the registers that are computed from it. A store, an address, a branch or another thread uses it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from .faults import UninitialisedRead
from .parser import Instruction

if TYPE_CHECKING:
    from .machine import Block

Array = np.ndarray[Any, np.dtype[Any]]
_REGISTER = re.compile(r"%[\w$.]+")
_EFFECTS = ("st", "red", "atom", "cp", "shfl", "mma", "wgmma", "wmma", "ldmatrix", "stmatrix", "vote", "redux")


class Poison:
    """The registers that hold such values: for each thread the line that read it, or 0."""

    def __init__(self, threads: int) -> None:
        self._lines: dict[str, Array] = {}
        self._threads = threads

    def __bool__(self) -> bool:
        return bool(self._lines)

    def mark(self, name: str, threads: Array, lines: Array) -> None:
        """A register of threads holds what these lines read, 0 for values that are known."""
        had = self._lines.get(name)
        if had is None:
            if not lines.any():
                return
            had = self._lines[name] = np.zeros(self._threads, np.int32)
        had[threads] = lines
        if not had.any():
            del self._lines[name]

    def refuse(self, block: Block, names: list[str], threads: Array) -> None:
        """Threads use registers.

        Raises:
            UninitialisedRead: if one holds such a value.
        """
        for name in names:
            lines = self._lines.get(name)
            if lines is not None and lines[threads].any():
                thread = int(threads[np.nonzero(lines[threads])[0][0]])
                raise UninitialisedRead(
                    f"{block.where()}: thread {thread} uses {name}, which comes from what it read at line {lines[thread]} of shared memory "
                    "that nothing has written"
                )

    def pass_on(self, block: Block, one: Instruction, lanes: Array | None) -> None:
        """What an instruction makes of such values, before it runs.

        Raises:
            UninitialisedRead: if it uses one.
        """
        threads = block.threads if lanes is None else lanes
        op = one.words[0]
        if op in _EFFECTS:
            self.refuse(block, _REGISTER.findall(" ".join(one.operands)), threads)
        if op in ("st", "red", "cp"):
            return
        sources = [_REGISTER.findall(operand) for operand in one.operands[1:]]
        if op == "ld":
            self.refuse(block, sources[0], threads)
            lines = np.zeros(len(threads), np.int32)
        elif op == "selp":
            chosen, rest = (self._of(names, threads) for names in sources[:2])
            condition = self._of(sources[2], threads)
            lines = np.where(condition > 0, condition, np.where(block.read(sources[2][0], lanes), chosen, rest))
        else:
            lines = self._of([name for names in sources for name in names], threads)
            if op in ("and", "or") and lines.any():
                lines = np.where(self._settled(block, one, lanes, threads), 0, lines)
        for name in _REGISTER.findall(one.operands[0]) if one.operands else ():
            self.mark(name, threads, lines)

    def _of(self, names: list[str], threads: Array) -> Array:
        found = np.zeros(len(threads), np.int32)
        for name in names:
            lines = self._lines.get(name)
            if lines is not None:
                found = np.maximum(found, lines[threads])
        return found

    def _settled(self, block: Block, one: Instruction, lanes: Array | None, threads: Array) -> Array:
        """Where an operand that is known decides what `and` or `or` of predicates gives, whatever the other one is."""
        settled = np.zeros(len(threads), np.bool_)
        for operand in one.operands[1:3] if one.words[-1] == "pred" else ():
            if operand.startswith("%"):
                known = self._of([operand], threads) == 0
                settled |= known & (block.read(operand, lanes) == (one.words[0] == "or"))
        return settled
