"""Counting spills: vector registers that a loop saves to and restores from the stack, seen in the emitted assembly.

A tile that needs more registers than there are, or loads that LLVM merged and keeps alive for too long, show as moves
between vector registers and slots at a constant distance from the stack pointer. Arrays on the stack that are accessed
at constant places look the same and count too; indexed ones don't.
"""

from __future__ import annotations

import re

from ..dataclass import dataclass

# A slot, its base register (rsp, or rbp where that is the frame pointer) and a vector register in one instruction.
_X86_SLOT = re.compile(r"(?:-?\d+)?\(%(rsp|rbp)\)")
_X86_VECTOR = re.compile(r"%[xyz]mm\d+")
_ARM_ACCESS = re.compile(r"^\s*(ldr|ldp|ldur|str|stp|stur)\s+[qdvz]\d+.*\[(sp|x29)(?:,\s*#-?\d+)?\]")
# Of a line: what it defines, where it jumps to, what is no instruction of it, whether rbp is the frame pointer from there on.
LABEL = re.compile(r"^(\.L\w+|LBB\w+):")
JUMP = re.compile(r"^\s*(?:j\w+|b(?:\.\w+)?|cbn?z\s+\w+,|tbn?z\s+\w+,\s*#\d+,)\s+(\.L\w+|LBB\w+)\s*$")
COMMENT = re.compile(r"\s(?:#|//)\s.*$")
FUNCTION = re.compile(r"^([A-Za-z_$\"][^:]*):")
FRAME_POINTER = re.compile(r"^\s*movq\s+%rsp,\s*%rbp")


@dataclass(frozen=True, slots=True)
class SpillReport:
    """How many instructions inside loops write a vector register to the stack, and how many read one from there."""

    stores: int
    loads: int

    @property
    def total(self) -> int:
        """Both together."""
        return self.stores + self.loads


def count_spills(asm: str) -> SpillReport:
    """Count the vector spills inside the loops of x86-64 (AT&T) or AArch64 assembly."""
    lines = asm.splitlines()
    inside = _lines_in_loops(lines)
    stores = loads = 0
    has_frame = False
    for number, line in enumerate(lines):
        if FUNCTION.match(line):
            has_frame = False
        elif FRAME_POINTER.match(line):
            has_frame = True
        if inside[number]:
            kind = _spill_kind(line, has_frame)
            stores += kind == "store"
            loads += kind == "load"
    return SpillReport(stores, loads)


def _lines_in_loops(lines: list[str]) -> list[bool]:
    """Which lines lie between a label and a jump back to it."""
    labels: dict[str, int] = {}
    # +1 at a loop's label and -1 behind its jump, so that running sums are depths, without a walk for each loop.
    opened = [0] * (len(lines) + 1)
    for number, line in enumerate(lines):
        label = LABEL.match(line)
        if label:
            labels[label[1]] = number
            continue
        jump = JUMP.match(line)
        # A label that was seen before: a jump back, so a loop.
        if jump and jump[1] in labels:
            opened[labels[jump[1]]] += 1
            opened[number + 1] -= 1
    depth, inside = 0, []
    for change in opened[:-1]:
        depth += change
        inside.append(depth > 0)
    return inside


def _spill_kind(line: str, has_frame: bool) -> str | None:
    line = COMMENT.sub("", line)
    slot = _X86_SLOT.search(line)
    if slot is not None:
        if (slot[1] == "rbp" and not has_frame) or not _X86_VECTOR.search(line):
            return None
        # AT&T syntax has the destination last.
        return "store" if line.rstrip().endswith(")") else "load"
    arm = _ARM_ACCESS.match(line)
    return None if arm is None else "store" if arm[1].startswith("st") else "load"
