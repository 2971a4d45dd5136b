"""Neighbouring instructions of one kind that don't need each other's results, run as one operation on arrays.

fma %f1, %f9, %f5, %f1; fma %f2, %f9, %f6, %f2; ...    ->    [f1, f2, ...] = [f9, f9, ...] * [f5, f6, ...] + [f1, f2, ...]

A tile of a product is a hundred multiply-adds or products of matrix units in a row, each too small for NumPy to be worth the call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dataclass import dataclass
from . import alu, warps
from .access import names_of
from .compute import number_operand, operand
from .parser import Instruction, Kernel

if TYPE_CHECKING:
    from .machine import Block

Array = np.ndarray[Any, np.dtype[Any]]
Step = Callable[["Block", "Array | None"], None]
Getter = Callable[["Block", "Array | None"], Array]
_REGISTER = re.compile(r"%[\w$.]+")
_FUSED = {("fma", "rn", "f32"), ("fma", "rn", "f64")}
_MOST = 64


@dataclass(frozen=True)
class Run:
    """So many instructions, and what does all of them."""

    count: int
    step: Step


def runs_of(kernel: Kernel, leaders: Container[int], watched: Container[str]) -> dict[int, Run]:
    """The runs of a kernel by their first instruction.

    Args:
        kernel: the kernel.
        leaders: instructions that are jumped to.
        watched: registers whose accesses others look at.
    """
    found: dict[int, Run] = {}
    at, instructions = 0, kernel.instructions
    while at < len(instructions):
        length = _length(instructions, at, leaders, watched)
        if length > 1:
            members = instructions[at : at + length]
            found[at] = Run(length, (_products if members[0].words[0] == "mma" else _fused)(kernel, members))
        at += max(length, 1)
    return found


def _length(instructions: Sequence[Instruction], at: int, leaders: Container[int], watched: Container[str]) -> int:
    first, written = instructions[at], set[str]()
    if first.words not in _FUSED and first.words[0] != "mma":
        return 0
    length = 0
    for one in instructions[at : at + _MOST]:
        if one.words != first.words or one.guard or (length and at + length in leaders):
            break
        into, *sources = ([*_REGISTER.findall(text)] for text in one.operands)
        read = {name for names in sources for name in names}
        if written & (read | set(into)) or any(name in watched for name in (*into, *read)):
            break
        written.update(into)
        length += 1
    return length


class _Rows:
    """An operand of all instructions: each register is read once."""

    def __init__(self, names: Sequence[str], getter: Callable[[str], Getter]) -> None:
        distinct = list(dict.fromkeys(names))
        self._getters = [getter(name) for name in distinct]
        self._which = None if len(distinct) == len(names) else np.array([distinct.index(name) for name in names])

    def __call__(self, block: Block, lanes: Array | None) -> Array:
        values = [get(block, lanes) for get in self._getters]
        rows = np.concatenate(values).reshape(len(values), -1)
        return rows if self._which is None else rows[self._which]


def _fused(kernel: Kernel, members: Sequence[Instruction]) -> Step:
    kind = members[0].words[-1]
    sides = [_Rows([one.operands[number] for one in members], lambda text: number_operand(kernel, text, kind)) for number in (1, 2, 3)]
    into = [one.operands[0] for one in members]

    def run(block: Block, lanes: Array | None) -> None:
        made = alu.bits(alu.fused(*(side(block, lanes) for side in sides)), kind)
        for name, row in zip(into, made, strict=True):
            block.write(name, lanes, row)

    return run


_STORED = {"f32": "f32", "f64": "b64"}


def _products(kernel: Kernel, members: Sequence[Instruction]) -> Step:
    """mma.sync: the warps of all instructions side by side."""
    words = members[0].words
    m, n, k = map(int, re.findall(r"\d+", next(word for word in words if re.match(r"^m\d+n\d+k\d+$", word))))
    d_kind, a_kind, b_kind, c_kind = words[-4:]
    lists = [[names_of(text) for text in one.operands] for one in members]
    sides = [
        [
            _Rows([one[number][register] for one in lists], lambda text, kind=kind: operand(kernel, text, _STORED.get(kind, "b32")))  # type: ignore[misc]
            for register in range(len(lists[0][number]))
        ]
        for number, kind in ((1, a_kind), (2, b_kind), (3, c_kind))
    ]

    def run(block: Block, lanes: Array | None) -> None:
        a, b, c = ([np.ascontiguousarray(rows(block, lanes)).reshape(-1, 32) for rows in side] for side in sides)
        results = warps.multiplied((m, n, k), (a_kind, b_kind, d_kind), a, b, c)
        for register, value in enumerate(results):
            for one, row in zip(lists, value.reshape(len(lists), -1), strict=True):
                block.write(one[0][register], lanes, row)

    return run
