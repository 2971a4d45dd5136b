"""wmma: tiles in fragments whose layout hardware keeps to itself. This interpreter has one of its own, which no program may rely on.

Element n of a tile, counted by rows or columns as the fragment was loaded, lies with thread n % 32; fragments with more room than elements
hold some several times. A product that takes a fragment for one of the other layout multiplies other elements, as it may on hardware.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from .access import Form, Step, address_of, names_of, read_memory, write_memory
from .compute import operand
from .parser import Instruction, Kernel
from .warps import typed

if TYPE_CHECKING:
    from .machine import Block

Array = np.ndarray[Any, np.dtype[Any]]
_WARP = 32
_BYTES = {"f16": 2, "bf16": 2, "s8": 1, "u8": 1, "f32": 4, "s32": 4}
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32}


def _shape(one: Instruction, part: str) -> tuple[int, int]:
    m, n, k = map(int, re.findall(r"\.m(\d+)n(\d+)k(\d+)\.", one.text)[0])
    return {"a": (m, k), "b": (k, n)}.get(part, (m, n))


def _places(shape: tuple[int, int], layout: str, numbers: Array) -> tuple[Array, Array]:
    """Row and column of elements that are counted by rows or by columns."""
    if layout == "row":
        return numbers // shape[1], numbers % shape[1]
    return numbers % shape[0], numbers // shape[0]


def _move(kernel: Kernel, one: Instruction) -> Step:
    """wmma.load and wmma.store."""
    stores, part, kind = one.words[1] == "store", one.words[2], one.words[-1]
    fragment, place = (one.operands[1], one.operands[0]) if stores else (one.operands[0], one.operands[1])
    names, shape = names_of(fragment), _shape(one, part)
    layout = "col" if "col" in one.words else "row"
    size = _BYTES[kind]
    per, count = 4 // size, shape[0] * shape[1]
    space = next((word for word in one.words if word in ("global", "shared")), "")
    form = Form(space, f"b{8 * size}", size, 1)
    address = address_of(kernel, place)
    stride = operand(kernel, one.operands[2], "u32") if len(one.operands) > 2 else None

    def run(block: Block, lanes: Array | None) -> None:
        threads = block.threads if lanes is None else lanes
        begin = address(block, lanes).astype(np.uint64)
        apart = (
            np.full(len(threads), shape[1 if layout == "row" else 0], np.int64) if stride is None else stride(block, lanes).astype(np.int64)
        )
        for register, name in enumerate(names):
            held = np.ascontiguousarray(block.read(name, lanes)).view(_UNSIGNED[size]).reshape(len(threads), per) if stores else None
            found = np.zeros((len(threads), per), _UNSIGNED[size])
            for element in range(per):
                numbers = ((register * per + element) * _WARP + threads % _WARP) % count
                # Accumulators have no layout: how they lie in memory is up to each load and store.
                row, column = _places(shape, "row" if part in "cd" else layout, numbers)
                index = row * apart + column if layout == "row" else column * apart + row
                places = begin + (index * size).astype(np.uint64)
                if held is not None:
                    write_memory(block, form, places, threads, [held[:, element].copy()], one.line)
                else:
                    found[:, element] = read_memory(block, form, places, threads, one.line)[0]
            if held is None:
                block.write(name, lanes, found.view(np.uint32)[:, 0])

    return run


def _multiply(kernel: Kernel, one: Instruction) -> Step:
    into, *sources = (names_of(text) for text in one.operands[:4])
    layouts = [word for word in one.words if word in ("row", "col")]
    kinds = one.words[one.words.index(next(word for word in one.words if re.fullmatch(r"m\d+n\d+k\d+", word))) + 1 :]
    d_kind, a_kind, b_kind, c_kind = kinds if len(kinds) == 4 else (kinds[0], "f16", "f16", kinds[1])

    def tile(block: Block, lanes: Array | None, names: list[str], kind: str, part: str, layout: str) -> Array:
        words = np.stack([np.ascontiguousarray(block.read(name, lanes)).view(np.uint32).reshape(-1, _WARP) for name in names])
        per, shape = 4 // _BYTES[kind], _shape(one, part)
        elements = np.ascontiguousarray(words[..., None]).view(_UNSIGNED[_BYTES[kind]])  # [register, warp, thread, element]
        flat = elements.transpose(1, 0, 3, 2).reshape(elements.shape[1], -1)[:, : shape[0] * shape[1]]
        assert per * len(names) * _WARP >= flat.shape[1]
        matrix = np.zeros((len(flat), *shape), flat.dtype)
        row, column = _places(shape, layout, np.arange(flat.shape[1]))
        matrix[:, row, column] = flat
        return typed(matrix, kind)

    def run(block: Block, lanes: Array | None) -> None:
        a, b = (
            tile(block, lanes, names, kind, part, layout)
            for names, kind, part, layout in zip(sources[:2], (a_kind, b_kind), "ab", layouts, strict=True)
        )
        sums = a @ b + tile(block, lanes, sources[2], c_kind, "c", "row")
        size = _BYTES[d_kind]
        dtype = {"f16": np.float16, "f32": np.float32, "s32": np.int32}[d_kind]
        whole = sums.astype(np.int64).astype(dtype) if d_kind == "s32" else sums.astype(dtype)
        parts = whole.reshape(len(whole), len(into), 4 // size, _WARP).transpose(1, 0, 3, 2)
        for name, part in zip(into, np.ascontiguousarray(parts).view(np.uint32), strict=True):
            block.write(name, lanes, part.reshape(-1))

    return run


def made(kernel: Kernel, one: Instruction) -> Step | None:
    """The step of an instruction."""
    return _multiply(kernel, one) if one.words[1] == "mma" else _move(kernel, one)


MAKERS = {"wmma": made}
