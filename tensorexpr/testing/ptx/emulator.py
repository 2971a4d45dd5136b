"""The device that runs PTX in NumPy: `nd.array(x, emulator())`, and a module built for cuda runs on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dataclass import dataclass, field
from ...errors import ArgumentError, TargetError
from ...runtime import ndarray
from ...runtime.device import Device
from ...runtime.device_module import DeviceCode
from ...runtime.tensor_maps import TensorMap
from ...target.chips import STATIC_SHARED, chip_of
from .between_blocks import BetweenBlocks, OutOfStep
from .faults import PtxFault
from .machine import Block, Program, prepare
from .memory import Counters, GlobalMemory
from .parser import parse

Array = np.ndarray[Any, np.dtype[Any]]
_WARP = 32
_SIDE_BY_SIDE = 1024  # threads of blocks that run as one: more of them cost NumPy as much as their calls save
_SAVED = 256 << 20  # bytes of arrays that are kept, so that blocks that can't run side by side begin again
_ALIGNMENT = 256  # bytes, as drivers allocate


@dataclass(frozen=True)
class Emulator(Device):
    """An emulated GPU: a CUDA device whose memory is the host's. `counters` are those of the last launch.

    A program that races, leaves its arrays, reads what nobody wrote or waits for threads that never come is stopped with a
    `PtxFault`.
    """

    device_type: int = Device.kDLCUDA
    device_id: int = 0
    _state: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def exist(self) -> bool:
        """True: it needs no driver."""
        return True

    @property
    def counters(self) -> Counters:
        """What the last launch did.

        Raises:
            ArgumentError: if nothing was launched yet.
        """
        if "counters" not in self._state:
            raise ArgumentError("the emulator has launched no kernel yet")
        found: Counters = self._state["counters"]
        return found

    def make_array(self, shape: int | Sequence[int], dtype: str) -> ndarray.NDArray:
        """An array on this device."""
        plain = ndarray.empty(shape, dtype)
        size = plain.size * plain._array.itemsize
        room = np.full(size + _ALIGNMENT, 0xFF, np.uint8)
        start = -room.ctypes.data % _ALIGNMENT
        return ndarray.NDArray(room[start : start + size].view(plain._array.dtype).reshape(plain.shape), self)

    def host_view(self, array: ndarray.NDArray) -> Array:
        """The array's memory."""
        return array._array

    def allocate(self, size: int) -> tuple[int, Any]:
        """Memory for so many bytes, filled with ones: NaN in every type of float."""
        room = np.full(size + _ALIGNMENT, 0xFF, np.uint8)
        return room.ctypes.data + -room.ctypes.data % _ALIGNMENT, room

    def tensor_map(self, described: TensorMap) -> bytes:
        """A map in the emulator's form."""
        return described.packed()

    def launch(
        self,
        code: DeviceCode,
        kernel: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        arguments: Sequence[Any],
        memory: Sequence[tuple[int, int]],
    ) -> None:
        """Run a kernel's blocks one after the other."""
        info = code.kernels[kernel]
        chip = chip_of(code.target.arch)
        size = info.static_shared + info.dynamic_shared
        if info.static_shared > STATIC_SHARED or size > chip.shared_bytes:
            raise TargetError(f"{kernel} takes {size} bytes of shared memory; {code.target.arch} has {chip.shared_bytes}")
        self.run_text(code.assembly, kernel, grid, block, arguments, memory, info.dynamic_shared)

    def run_text(
        self,
        text: str,
        kernel: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        arguments: Sequence[Any],
        memory: Sequence[tuple[int, int]],
        dynamic_shared: int = 0,
    ) -> None:
        """Run a kernel of PTX text.

        Args:
            text: a PTX module.
            kernel: the name of its entry.
            grid, block: blocks, and threads of one, in x, y and z.
            arguments: numbers of NumPy, of the parameters' sizes; addresses are uint64.
            memory: address and bytes of all arrays that it may touch.
            dynamic_shared: bytes of dynamic shared memory.

        Raises:
            PtxFault: for what is wrong with the program.
        """
        program = self._program(text, kernel)
        if len(arguments) != len(program.kernel.params):
            raise ArgumentError(f"{kernel} takes {len(program.kernel.params)} arguments, got {len(arguments)}")
        counters = self._state["counters"] = Counters()
        arrays = GlobalMemory(memory)
        threads = block[0] * block[1] * block[2]
        most = _SIDE_BY_SIDE // threads if program.runs_side_by_side and threads % _WARP == 0 else 1
        together = max(1, min(most, grid[0] * grid[1] * grid[2]))
        saved = arrays.saved() if together > 1 and sum(arrays.sizes) <= _SAVED else None
        try:
            self._blocks(program, arrays, arguments, counters, grid, block, dynamic_shared, together if saved is not None else 1)
        except (OutOfStep, PtxFault):
            if saved is None:
                raise
            # One after the other: what is wrong is told as of a block by itself, and blocks that go ways of their own are right.
            arrays.restore(saved)
            counters = self._state["counters"] = Counters()
            self._blocks(program, arrays, arguments, counters, grid, block, dynamic_shared, 1)

    def _blocks(
        self, program: Program, arrays: GlobalMemory, arguments: Sequence[Any], counters: Counters,
        grid: tuple[int, int, int], block: tuple[int, int, int], dynamic_shared: int, together: int,
    ) -> None:  # fmt: skip
        """Run all blocks of a launch, so many side by side."""
        arrays.watch = BetweenBlocks(program.global_cell, arrays.sizes, grid) if grid != (1, 1, 1) else None
        indices = [(x, y, z) for z, y, x in np.ndindex(grid[::-1])]
        with np.errstate(all="ignore"):  # devices don't warn
            for first in range(0, len(indices), together):
                if arrays.watch is not None:
                    arrays.watch.begin(first)
                some = indices[first : first + together]
                Block(program, arrays, arguments, counters, grid, block, some, dynamic_shared, first).run()

    def _program(self, text: str, kernel: str) -> Program:
        programs: dict[tuple[str, str], Program] = self._state.setdefault("programs", {})
        key = text, kernel
        if key not in programs:
            kernels = parse(text)
            if kernel not in kernels:
                raise ArgumentError(f"the PTX text has no kernel {kernel!r}; it has {', '.join(kernels)}")
            programs[key] = prepare(kernels[kernel])
        return programs[key]

    def __str__(self) -> str:
        return f"emulator({self.device_id})"

    __repr__ = __str__


def emulator(dev_id: int = 0) -> Emulator:
    """A fresh emulated GPU, for modules built with `target="cuda"`."""
    return Emulator(device_id=dev_id)
