"""What the hot loop of a kernel is made of, read from its assembly: quality tested for CPUs that nobody here has.

The hot loop is the innermost loop with the most multiply-adds, or, of kernels without any, with the most vector instructions. Where a
CPU has no fused multiply-add, each vector addition to a product counts as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..codegen.emit import emit_module
from ..codegen.spills import COMMENT, FRAME_POINTER, FUNCTION, JUMP, LABEL
from ..dataclass import dataclass
from ..lower.pipeline import lower
from ..runtime import engine
from ..target import Target
from ..target.machine import Machine

_PREFIX = re.compile(r"^\{\w+\}\s+")  # an encoding that the assembler is asked for
# `b.ne` may go on, `b` doesn't
_LEAVES = re.compile(r"^(jmp|b|retq?|ud2|br)\b(?!\.)")  # after it the next line isn't executed
_BITS = {"x": 128, "y": 256, "z": 512}

_X86_REGISTER = re.compile(r"%([xyz])mm\d+")
_X86_MEMORY = re.compile(r"-?[\w.]*\((%\w+)?[^)]*\)")
_X86_FMA = re.compile(r"^vf(n?)m(add|sub)\w*p[sdh]\b|^vdpbf16ps\b|^vpdp\w+|^v?pmaddwd\b")
_X86_ADD = re.compile(r"^v?(add|sub)p[sd]\b")
_X86_MULTIPLY = re.compile(r"^v?mulp[sd]\b")
_X86_LANE = re.compile(r"^v?(pinsr[bwdq]|insertps|movhps|movlps|movhpd|movlpd)\b")
_X86_GATHER = re.compile(r"^vp?gather")
_X86_MASKED_STORE = re.compile(r"^vp?maskmov\w+\s+%[xy]mm\d+,\s*%[xy]mm\d+,.*\)$")

_ARM_VECTOR = re.compile(r"\b[vqds]\d+\b")
_ARM_FMA = re.compile(r"^(fml[as]|[us]dot|bfdot|[us]ml[as]l2?|ml[as])\s+v\d+\.(4s|2d|8h|16b)")
_ARM_LOAD = re.compile(r"^(ldr|ldur|ldp|ld1r?|ld[234]r?|ldnp)\s+\{?\s*[vqds]\d+")
_ARM_LANE = re.compile(r"^ld1\s+\{\s*v\d+\.[bhsd]\s*\}\[\d+\]")
_ARM_STACK = re.compile(r"\[(sp|x29)(?:,\s*#-?\d+)?\]")


@dataclass(frozen=True, slots=True)
class HotLoop:
    """Counts of instructions of one pass through a loop.

    Args:
        vectors: instructions on vector registers.
        multiply_adds: of vectors.
        bits: of the widest vector that is calculated with.
        loads: instructions' reads of memory into vectors; a pair counts twice, a broadcast as one.
        lane_loads: of these, those that fill single lanes: a strided or gathered load, element by element.
        gathers: gather instructions.
        masked_stores: stores of some lanes by a vector mask, without mask registers; microcoded on some cores.
        guards: jumps other than the one that closes the loop, and detours.
        detours: jumps to blocks outside of the loop that come back, as compilers place what is rarely done.
        spills: vector registers that are saved to the stack or read from there.
        text: the loop.
    """

    vectors: int
    multiply_adds: int
    bits: int
    loads: int
    lane_loads: int
    gathers: int
    masked_stores: int
    guards: int
    detours: int
    spills: int
    text: str

    def balance(self, machine: Machine) -> float:
        """Cycles of the multiply-adds for each cycle of the loads: below 1 a loop waits for its loads."""
        return self.multiply_adds / machine.fma_per_cycle / max(1.0, self.loads / machine.loads_per_cycle)

    def problems(self, machine: Machine, balance: float = 0.0, spills: int = 0, detours: int = 0) -> list[str]:
        """What is wrong with a hot loop on a machine, in words; nothing if it is as it should be.

        Args:
            balance: the least that `balance()` may be; 0 for loops that the memory bounds.
            spills, detours: the most that are accepted.
        """
        masked = self.masked_stores and not machine.mask_registers
        ordered = {
            f"vectors of {self.bits} bits, where registers have {machine.vector_bits}": self.bits < machine.vector_bits,
            f"{self.spills} moves to and from the stack": self.spills > spills,
            f"{self.gathers} gathers and {self.lane_loads} loads of single lanes": self.gathers + self.lane_loads > 0,
            f"{self.masked_stores} masked stores without mask registers": bool(masked),
            f"{self.guards} guards": self.guards > 0,
            f"{self.detours} detours": self.detours > detours,
            f"{self.multiply_adds} multiply-adds for {self.loads} loads": self.balance(machine) < balance,
        }
        return [problem for problem, holds in ordered.items() if holds]


def assembly(schedule: Any, args: Sequence[Any], target: Target) -> str:
    """The assembly of a schedule for any target that code is generated for, which need not be this machine."""
    with target:
        module = lower(schedule, args, "kernel", None)
    functions = {str(var.name_hint): func for var, func in module.functions_items()}
    return engine.emit_assembly(emit_module(functions, target).text, target)


def hot_loop(asm: str) -> HotLoop | None:
    """The hot loop of x86-64 (AT&T) or AArch64 assembly; None without a loop on vectors."""
    found = [_count(lines, detours) for lines, detours in _innermost_loops(asm)]
    found = [loop for loop in found if loop.vectors]
    # multiply-adds of wide vectors first: a loop over what a vector left has as many of them, one lane each
    return max(found, key=lambda loop: (loop.multiply_adds * loop.bits, loop.vectors), default=None)


def _innermost_loops(asm: str) -> Iterator[tuple[list[str], int]]:
    """The lines between a label and a jump back to it, where no other loop lies between, and how many detours leave them.

    A jump back from where its label doesn't lead, without leaving the lines between, ends a detour, and closes no loop. So does one
    behind an earlier one after which control leaves: what lies between is reached by a jump only.
    """
    lines = [_PREFIX.sub("", COMMENT.sub("", line).strip()) for line in asm.splitlines()]
    labels: dict[str, int] = {}
    spans: list[tuple[int, int]] = []
    places: dict[str, int] = {}
    has_frame = False
    for number, line in enumerate(lines):
        if has_frame:
            lines[number] = line.replace("(%rbp)", "(%rsp)")  # a slot, whichever end of the frame it is counted from
        if label := LABEL.match(line):
            labels[label[1]] = places[label[1]] = number
        elif FUNCTION.match(line):
            labels, has_frame = {}, False
        elif FRAME_POINTER.match(line):
            has_frame = True
        elif (jump := JUMP.match(line)) and jump[1] in labels:
            spans.append((labels[jump[1]], number))
    spans = [(start, end) for start, end in spans if end in _reached(lines, places, start, end)]
    closed = {start: _last([end for begin, end in spans if begin == start], lines) for start, _ in spans}
    for start, end in sorted(closed.items()):
        # no other loop begins inside
        if not any(start < begin <= end for begin in closed):
            inside = [line for line in lines[start : end + 1] if line and not line.startswith((".", "#"))]
            left = [places.get(jump[1], start) for line in inside if (jump := JUMP.match(line))]
            yield inside, sum(not start <= place <= end and _comes_back(lines, places, place, start, end) for place in left)


def _last(ends: Sequence[int], lines: Sequence[str]) -> int:
    """The jump back that closes a loop, of one or several."""
    return next((end for end in sorted(ends) if _LEAVES.match(next(filter(None, lines[end + 1 :]), ""))), max(ends))


def _reached(lines: Sequence[str], places: Mapping[str, int], start: int, end: int) -> set[int]:
    """The lines that control comes to from the first one without leaving those up to the last one."""
    found, waiting = set[int](), [start]
    while waiting:
        number = waiting.pop()
        if number in found or not start <= number <= end:
            continue
        found.add(number)
        if jump := JUMP.match(lines[number]):
            waiting.append(places.get(jump[1], end + 1))
        if not _LEAVES.match(lines[number]):
            waiting.append(number + 1)
    return found


def _comes_back(lines: Sequence[str], places: Mapping[str, int], place: int, start: int, end: int) -> bool:
    """True if what stands at a place goes on into a loop."""
    for line in lines[place:]:
        if (jump := JUMP.match(line)) and start <= places.get(jump[1], -1) <= end:
            return True
        if _LEAVES.match(line):
            break
    return False


def _count(lines: Sequence[str], detours: int) -> HotLoop:
    is_arm = not any("%" in line for line in lines)
    counts = dict.fromkeys(
        ("vectors", "multiply_adds", "adds", "multiplies", "loads", "lane_loads", "gathers", "masked_stores", "spills"), 0
    )
    bits = 0
    for line in lines:
        facts, width = _arm(line) if is_arm else _x86(line)
        bits = max(bits, width)
        for name, count in facts.items():
            counts[name] += count
    adds, multiplies = counts.pop("adds"), counts.pop("multiplies")
    # where nothing is fused, a product and its addition are two instructions; one alone is no multiply-add
    counts["multiply_adds"] += min(adds, multiplies)
    jumps = sum(JUMP.match(line) is not None for line in lines)
    # one jump closes the loop
    return HotLoop(bits=bits, guards=jumps - detours - 1, detours=detours, text="\n".join(lines), **counts)


def _x86(line: str) -> tuple[dict[str, int], int]:
    """What one instruction adds to the counts, and the bits that it calculates with."""
    registers = _X86_REGISTER.findall(line)
    memory = _X86_MEMORY.search(line)
    if not registers:
        return {}, 0
    # in AT&T's order the destination comes last
    is_store = memory is not None and line.endswith(")")
    facts = {
        "vectors": 1,
        "multiply_adds": int(bool(_X86_FMA.match(line))),
        "adds": int(bool(_X86_ADD.match(line))),
        "multiplies": int(bool(_X86_MULTIPLY.match(line))),
        "loads": int(memory is not None and not is_store),
        "lane_loads": int(memory is not None and bool(_X86_LANE.match(line))) if not is_store else 0,
        "gathers": int(bool(_X86_GATHER.match(line))),
        "masked_stores": int(bool(_X86_MASKED_STORE.match(line))),
        # 64(%rsp) is a slot, (%rsp,%rax,4) an element of an array
        "spills": int(memory is not None and memory[1] == "%rsp" and "," not in memory[0]),
    }
    return facts, max(_BITS[name] for name in registers)


def _arm(line: str) -> tuple[dict[str, int], int]:
    if not _ARM_VECTOR.search(line):
        return {}, 0
    load = _ARM_LOAD.match(line)
    facts = {
        "vectors": 1,
        "multiply_adds": int(bool(_ARM_FMA.match(line))),
        # ld4 { v0.4s, ..., v3.4s } fills four registers
        "loads": 0 if load is None else 2 if load[1] in ("ldp", "ldnp") else max(1, len(re.findall(r"\bv\d+\.", line))),
        "lane_loads": int(bool(_ARM_LANE.match(line))),
        "spills": int(bool(_ARM_STACK.search(line))),
    }
    return facts, 128 if re.search(r"\bq\d+|v\d+\.(4s|2d|8h|16b)", line) else 64
