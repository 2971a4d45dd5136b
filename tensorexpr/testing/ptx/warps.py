"""Instructions of whole warps: exchanges, matrix loads and products. Arrays have the shape (warps, 32)."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
LANE = np.arange(32)
_GROUP, _IN_GROUP = LANE >> 2, LANE & 3
_TYPES = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "s8": np.int8,
    "u8": np.uint8,
    "f64": np.float64,
    "f32": np.float32,
    "s32": np.int32,
}
_PER_REGISTER = {"f16": 2, "bf16": 2, "tf32": 1, "s8": 4, "u8": 4, "f64": 1}


def shuffled(kind: str, values: Array, lanes: Array, clamp: Array) -> tuple[Array, Array]:
    """shfl.sync: for each lane the value of another one, and whether that lane was in its segment."""
    segment = (clamp >> 8) & 31
    bound = clamp & 31
    low = LANE & segment
    top = low | (bound & ~segment & 31)
    shift = lanes & 31
    match kind:
        case "up":
            source = LANE - shift
            valid = source >= top
        case "down":
            source = LANE + shift
            valid = source <= top
        case "bfly":
            source = LANE ^ shift
            valid = source <= top
        case _:
            source = low | (shift & ~segment & 31)
            valid = source <= top
    source = np.where(valid, source, LANE)
    return np.take_along_axis(values, source & 31, axis=1), valid


def matrix_rows(trans: bool, rows: Array) -> Array:
    """ldmatrix: of rows (warps, 8, 8) of halves the register of each lane: two neighbours of a row, or of a column."""
    tile = rows.swapaxes(1, 2) if trans else rows
    pair = np.ascontiguousarray(tile).view(np.uint32)  # (warps, 8, 4)
    return pair[:, _GROUP, _IN_GROUP]


def multiplied(shape: tuple[int, int, int], kinds: tuple[str, str, str], a: list[Array], b: list[Array], c: list[Array]) -> list[Array]:
    """mma.sync: the registers of a * b + c, by the layouts of the PTX ISA's section on matrix fragments.

    Args:
        shape: m, n, k.
        kinds: the types of a, b and c.
        a, b, c: registers as bits, each (warps, 32).
    """
    m, n, k = shape
    warps = a[0].shape[0]
    left = np.zeros((warps, m, k), np.float64 if kinds[0] not in ("s8", "u8") else np.int64)
    right = np.zeros((warps, k, n), left.dtype)
    for register, value in enumerate(a):
        row, column = _place_a(register, m, kinds[0])
        for element in range(_PER_REGISTER[kinds[0]]):
            left[:, row, column + element] = _element(value, kinds[0], element)
    for register, value in enumerate(b):
        per = _PER_REGISTER[kinds[1]]
        for element in range(per):
            right[:, per * _IN_GROUP + element + 4 * per * register, _GROUP] = _element(value, kinds[1], element)
    return _accumulated(m, kinds[2], left @ right, c)


def typed(halves: Array, kind: str) -> Array:
    """Elements of an operand as numbers that are added up without loss."""
    return np.asarray(np.ascontiguousarray(halves).view(_TYPES[kind]).astype(np.float64))


def group_places(registers: int) -> tuple[Array, Array]:
    """The row and the column that each register of each thread of four warps holds of the sums of wgmma."""
    register, thread = np.arange(registers)[:, None], np.arange(128)
    row = thread // 32 * 16 + thread % 32 // 4 + register % 4 // 2 * 8
    return row, register // 4 * 8 + thread % 4 * 2 + register % 2


def _place_a(register: int, m: int, kind: str) -> tuple[Array, Array]:
    per = _PER_REGISTER[kind]
    if m == 8:
        return _GROUP, per * _IN_GROUP + 4 * per * register
    return _GROUP + 8 * (register & 1), per * _IN_GROUP + 4 * per * (register >> 1)


def _element(value: Array, kind: str, element: int) -> Array:
    if kind == "tf32":
        return np.asarray((value & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64))
    typed = np.ascontiguousarray(value).view(_TYPES[kind]).reshape(*value.shape, -1)
    return np.asarray(typed[..., element].astype(np.int64 if kind in ("s8", "u8") else np.float64))


def _accumulated(m: int, kind: str, product: Array, c: list[Array]) -> list[Array]:
    found = []
    for register, value in enumerate(c):
        if kind == "f16":
            row, column = _GROUP + 8 * register, 2 * _IN_GROUP
            halves = value.view(np.float16).reshape(*value.shape, 2).astype(np.float64)
            both = np.stack([product[:, row, column], product[:, row, column + 1]], axis=-1) + halves
            found.append(np.ascontiguousarray(both.astype(np.float16)).view(np.uint32)[..., 0])
            continue
        row = _GROUP + 8 * (register >> 1) if m == 16 else _GROUP
        column = 2 * _IN_GROUP + (register & 1)
        part = product[:, row, column]
        if kind == "s32":
            found.append((part + value.view(np.int32)).astype(np.int64).astype(np.int32).view(np.uint32))
        elif kind == "f64":
            found.append((part + value.view(np.float64)).view(np.uint64))
        else:
            found.append((part + value.view(np.float32)).astype(np.float32).view(np.uint32))
    return found
