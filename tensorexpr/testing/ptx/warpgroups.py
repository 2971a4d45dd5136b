"""wgmma: operands in shared memory are multiplied by four warps together, whose sums are theirs when their group has been waited for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from . import warps
from .access import Step, names_of
from .compute import operand
from .faults import DivergentBarrier
from .parser import Instruction, Kernel
from .units import GROUP, Product, swizzled

if TYPE_CHECKING:
    from .machine import Block

Array = np.ndarray[Any, np.dtype[Any]]
_REGISTER = re.compile(r"%\w+")


def sums_of(kernel: Kernel) -> dict[str, int]:
    """The registers that products of four warps add to, numbered."""
    products = (one for one in kernel.instructions if one.words[:2] == ("wgmma", "mma_async"))
    return {name: row for row, name in enumerate(dict.fromkeys(name for one in products for name in names_of(one.operands[0])))}


def watched(step: Step, one: Instruction, row_of: dict[str, int]) -> Step:
    """The step of an instruction of threads, which tells what it does to registers that units add to."""
    rows = np.array(sorted({row_of[name] for name in _REGISTER.findall(one.text) if name in row_of}), np.int64)
    if one.words[0] == "wgmma" or not len(rows):
        return step

    def run(block: Block, lanes: Array | None) -> None:
        block.sums.access(rows, block.threads if lanes is None else lanes, block.where(), one.line)
        step(block, lanes)

    return run


def made(kernel: Kernel, one: Instruction) -> Step | None:
    """wgmma: products, the fence in front of them, and the groups that they are waited for by."""
    match one.words[1]:
        case "mma_async":
            return _product(kernel, one)
        case "fence":
            return lambda block, lanes: block.sums.fence(block.threads if lanes is None else lanes)
        case "commit_group":
            return _commit
        case "wait_group":
            pending = int(one.operands[0])
            return lambda block, lanes: _wait(block, block.threads if lanes is None else lanes, pending)
    return None


def _commit(block: Block, lanes: Array | None) -> None:
    block.sums.commits[block.threads if lanes is None else lanes] += 1


def _wait(block: Block, threads: Array, pending: int) -> None:
    for product in block.sums.done(threads, pending):
        block.shared.end_product(product)


def _product(kernel: Kernel, one: Instruction) -> Step | None:
    if one.operands[3:6] != ("1", "1", "1"):  # sums that aren't kept, operands that are negated
        return None
    names, (a_kind, b_kind) = names_of(one.operands[0]), one.words[-2:]
    width = int(re.findall(r"n(\d+)k16", one.text)[0])
    left, right = (operand(kernel, text, "b64") for text in one.operands[1:3])
    turned = [text.strip() == "1" for text in one.operands[-2:]]
    numbers = sums_of(kernel)
    rows = np.array([numbers[name] for name in names], np.int64)
    row, column = warps.group_places(len(names))

    def run(block: Block, lanes: Array | None) -> None:
        threads, where = block.threads if lanes is None else lanes, block.where()
        a_words, b_words = left(block, lanes), right(block, lanes)
        for first in range(0, len(threads), GROUP):
            group = threads[first : first + GROUP]
            a_at = _places(a_words[first : first + GROUP], 64, turned[0], where)
            b_at = _places(b_words[first : first + GROUP], width, turned[1], where)
            cells = [block.shared.check_product(at, 16, where, group) for at in (a_at, b_at)]
            begun = Product(group, int(block.sums.commits[group[0]]), rows, np.unique(np.concatenate(cells)), one.line)
            block.sums.begin(begun, where)
            block.shared.begin_product(begun)
            a, b = (_rows(block, at, flag) for at, flag in zip((a_at, b_at), turned, strict=True))
            product = (warps.typed(a, a_kind) @ warps.typed(b, b_kind).T)[row, column].astype(np.float32)
            for name, more in zip(names, product, strict=True):  # nobody can look at them before they have been waited for
                had = np.ascontiguousarray(block.read(name, group)).view(np.float32)
                block.write(name, group, (had + more).view(np.uint32))

    return run


def _places(descriptors: Array, rows: int, turned: bool, where: object) -> Array:
    """Where the pieces of 8 rows by 16 bytes of an operand of wgmma begin, by rows / 8 and the two chunks; each row has 16 bytes."""
    if len(np.unique(descriptors)) > 1:
        raise DivergentBarrier(f"{where}: the threads of four warps have different descriptors; they tell one operand together")
    word = int(descriptors[0])
    begin, first, second = ((word >> shift & 0x3FFF) << 4 for shift in (0, 16, 32))
    eight, two, within = np.arange(rows // 8), np.arange(2), np.arange(8)
    mode = word >> 62 & 3
    if mode:
        # Rows of 128, 64 or 32 bytes follow each other, along the sum or, of a turned operand, along rows or columns.
        row = (128, 64, 32)[mode - 1]
        pieces = row // 16
        if turned:
            at = begin + (eight // pieces * first + eight % pieces * 16)[:, None, None] + two[None, :, None] * second + within * row
        else:
            at = begin + eight[:, None, None] * second + two[None, :, None] * 16 + within * row
        return np.asarray(swizzled(at.ravel().astype(np.int64), row))
    # Of a turned operand each piece has 8 products of 8 rows: the second distance is that of rows, the first that of products.
    at = begin + eight[:, None, None] * second + two[None, :, None] * first + within * 16
    return np.asarray(at.ravel().astype(np.int64))


def _rows(block: Block, places: Array, turned: bool) -> Array:
    """An operand of wgmma as (rows, 16) halves."""
    rows = len(places) // 2
    pieces = np.stack(block.shared.read(places, 2, 8), axis=-1).reshape(rows // 8, 2, 8, 8)
    if turned:  # [rows / 8][2][product][row]
        return np.asarray(pieces.transpose(0, 3, 1, 2).reshape(rows, 16))
    return np.asarray(pieces.transpose(0, 2, 1, 3).reshape(rows, 16))


def _fence(kernel: Kernel, one: Instruction) -> Step | None:
    """fence.proxy.async: units see what a thread has written to shared memory. Threads see each other's writes at once here."""
    if one.words[1:3] == ("proxy", "async") and all(word.startswith("shared") for word in one.words[3:]):
        return lambda block, lanes: block.shared.fence(block.threads if lanes is None else lanes)
    return lambda block, lanes: None


MAKERS = {"wgmma": made, "fence": _fence}
