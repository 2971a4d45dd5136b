"""Tensors in a GPU's memory as its copy engine is told of them: maps, which the host makes for each launch.

A map says where a tensor lies and which box of it one instruction copies. Source: CUDA Driver API, "Tensor Map Object Management".
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ..dataclass import dataclass
from ..errors import ArgumentError
from ..tir.dtype import parse_dtype

MAP_BYTES = 128
"""Bytes of a map, which begins at a multiple of 64."""
_MOST_DIMENSIONS, _MOST_SIDE, _PIECE = 5, 256, 16
_SWIZZLES = (0, 32, 64, 128)
_FORMAT = "<QBBBx5I4Q5H"  # address, dimensions, bytes of an element, swizzle; shape, strides, box


@dataclass(frozen=True)
class TensorMap:
    """A tensor and the boxes that are copied of it, the dimension along memory last.

    Args:
        address: of the first element, a multiple of 16.
        dtype: of the elements.
        shape: elements along each of one to five dimensions; what a box has beyond them is zeros.
        strides: elements from one to the next along all dimensions but the last, whose elements are neighbours; multiples of 16 bytes.
        box: elements along each dimension, at most 256; of the last one whole pieces of 16 bytes.
        swizzle: 0, or 32, 64 or 128: the bytes of a row of the box, at most, within which pieces of 16 bytes change places.

    Raises:
        ArgumentError: for what the copy engine doesn't take, with the numbers.
    """

    address: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int = 0

    def __post_init__(self) -> None:
        rank, size = len(self.shape), self.itemsize
        steps = [stride * size for stride in self.strides]
        row = self.box[-1] * size if self.box else 0
        rules = (
            (1 <= rank <= _MOST_DIMENSIONS, f"a tensor of 1 to {_MOST_DIMENSIONS} dimensions, not {rank}"),
            (
                len(self.box) == rank and len(steps) == rank - 1,
                f"{rank} sides of the box and {rank - 1} strides, not {self.box} and {self.strides}",
            ),
            (self.address % _PIECE == 0, f"an address that is a multiple of {_PIECE}, not {self.address:#x}"),
            (all(0 < side <= _MOST_SIDE for side in self.box), f"sides of a box from 1 to {_MOST_SIDE}, not {self.box}"),
            (all(0 < extent < 1 << 32 for extent in self.shape), f"extents from 1 to 2**32 - 1, not {self.shape}"),
            (all(step % _PIECE == 0 and 0 < step < 1 << 40 for step in steps), f"strides of whole {_PIECE} bytes, not {steps} bytes"),
            (row % _PIECE == 0, f"rows of a box of whole {_PIECE} bytes, not {row}"),
            (self.swizzle in _SWIZZLES, f"a swizzle of {', '.join(map(str, _SWIZZLES))} bytes, not {self.swizzle}"),
            (not self.swizzle or row <= self.swizzle, f"rows of a box of at most {self.swizzle} bytes, which are swizzled, not {row}"),
        )
        for holds, wish in rules:
            if not holds:
                raise ArgumentError(f"a tensor map wants {wish}; copy the tensor into another layout, or use T.ptx_cp_async")

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return parse_dtype(self.dtype).itemsize

    @property
    def byte_strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next, of all dimensions."""
        return (*(stride * self.itemsize for stride in self.strides), self.itemsize)

    @property
    def size_in_bytes(self) -> int:
        """From the first element to behind the last one."""
        ends = [(extent - 1) * stride for extent, stride in zip(self.shape, self.byte_strides, strict=True)]
        return sum(ends) + self.itemsize

    def packed(self) -> bytes:
        """128 bytes that `unpacked` reads: the emulator's form, which no hardware knows."""
        shape, strides, box = (self._filled(values) for values in (self.shape, self.strides, self.box))
        data = struct.pack(_FORMAT, self.address, len(self.shape), self.itemsize, self.swizzle, *shape, *strides[:-1], *box)
        return data.ljust(MAP_BYTES, b"\0")

    @staticmethod
    def _filled(values: Sequence[int]) -> list[int]:
        return [*values, *[0] * (_MOST_DIMENSIONS - len(values))]

    @staticmethod
    def unpacked(data: bytes) -> TensorMap:
        """The map of 128 bytes that `packed` made; elements are unsigned integers of their size."""
        address, rank, size, swizzle, *rest = struct.unpack(_FORMAT, data[: struct.calcsize(_FORMAT)])
        shape, strides, box = rest[:5][:rank], rest[5:9][: rank - 1], rest[9:][:rank]
        return TensorMap(address, f"uint{8 * size}", tuple(shape), tuple(strides), tuple(box), swizzle)
