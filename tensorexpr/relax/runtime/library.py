"""Executables as one shared library: kernels, stretches, the functions of the graph as JSON, and the weights.

    .tensorexpr.graph      JSON: functions (`saved_graph`), signatures of kernels, target, where each constant lies; not mapped
    .tensorexpr.weights    the constants, each from a cache line on; the system maps them, so that processes share them
    code                   packed entries of the kernels, stretches

Weights of more than a gigabyte stand beside the library in `x.so.weights`. Loading a library runs its code: load only what you trust.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import math
import mmap
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import ArgumentError, RecordError, TensorExprError
from ...runtime import engine, export, sidecar
from ...runtime.code import CompiledCode, LibraryCode
from ...runtime.elf import section
from ...runtime.module import Module
from ...runtime.ndarray import NDArray, wrapped
from ...target import Target
from ...tir.dtype import to_numpy
from ...tir.function import IRModule
from .constants import bytes_of
from .executable import Executable
from .memory import ALIGNMENT
from .native import object_of, text_of
from .saved_graph import read_functions, write_functions

FORMAT = 1
GRAPH_SECTION = ".tensorexpr.graph"
_WEIGHTS = "tensorexpr_weights"
_LARGEST_INSIDE = 1 << 30
_DATA = """
.section {graph},"",@progbits
.incbin "{folder}/graph.json"
.section .tensorexpr.weights,"a",@progbits
.balign 4096
.globl {weights}
{weights}:
{inside}
.zero 64
.section .note.GNU-stack,"",@progbits
"""


class Constants:
    """Arrays by number."""

    def __init__(self) -> None:
        self.arrays: list[NDArray] = []
        self.places: list[int] = []
        self.size = 0
        self._numbers: dict[int, int] = {}

    def number(self, data: Any) -> int:
        """The number of an array.

        Raises:
            RecordError: for one of objects.
        """
        if not isinstance(data, NDArray):
            raise RecordError(f"a constant of {getattr(data, 'dtype', type(data).__name__)} has no place in a library")
        found = self._numbers.setdefault(id(data), len(self.arrays))
        if found == len(self.arrays):
            self.arrays.append(data)
            self.places.append(self.size)
            self.size += -(-data._array.nbytes // ALIGNMENT) * ALIGNMENT
        return found

    def write(self, path: Path) -> None:
        """Write the arrays one after the other."""
        with path.open("wb") as file:
            for array, place in zip(self.arrays, self.places, strict=True):
                file.seek(place)
                file.write(bytes_of(array))
            file.truncate(self.size)


def export_executable(executable: Executable, file_name: str, fcompile: Callable[..., Any] | None, options: Mapping[str, Any]) -> None:
    """Write an executable as a shared library; see `Executable.export_library`."""
    if Path(file_name).suffix not in (".so", ".dylib"):
        raise ArgumentError(f"export_library: an executable becomes a shared library, x.so, not {file_name}")
    kernels = None if executable.mod is None else executable.mod._source()
    if kernels is not None:
        export.check_exportable(kernels, file_name)
    stretches = executable.all_stretches()
    constants = Constants()
    functions = write_functions(executable.functions, constants.number)
    code = CompiledCode("", b"", {}, executable.target) if kernels is None else kernels
    inside = constants.size <= _LARGEST_INSIDE
    described = {
        "format": FORMAT,
        "target": executable.target.resolved().export(),
        "kernels": sidecar.signatures_to_json(code.signatures),
        "origins": executable.origins,
        "graph": functions,
        "constants": [[place, list(one.shape), one.dtype] for one, place in zip(constants.arrays, constants.places, strict=True)],
        "inside": inside,
        "stretches": _digest(text_of(stretches, executable.target)),
    }
    with tempfile.TemporaryDirectory(prefix="tensorexpr-") as name:
        folder = Path(name)
        objects = [folder / "graph.s"]
        (folder / "graph.json").write_text(json.dumps(described))
        constants.write(folder / "weights" if inside else Path(f"{file_name}.weights"))
        included = f'.incbin "{folder}/weights"' if inside else ""
        objects[0].write_text(_DATA.format(graph=GRAPH_SECTION, folder=folder, weights=_WEIGHTS, inside=included))
        for part, data in (("kernels", code.data), ("stretches", object_of(stretches, executable.target) if stretches else b"")):
            if data:
                objects.append(folder / f"{part}.o")
                objects[-1].write_bytes(data)
        export.link_objects(code, list(map(str, objects)), file_name, fcompile, options)


def load_executable(file_name: str) -> Executable | None:
    """The executable in a library; None if the library has none.

    Raises:
        TensorExprError: if the file can't be read, is torn, or was written by another version.
        TargetError: if this machine can't run it.
    """
    text = _graph_text(file_name)
    if text is None:
        return None
    try:
        described = json.loads(text)
        version = described["format"]
        if version != FORMAT:
            raise TensorExprError(f"{file_name} has format {version}, and this version of tensorexpr reads {FORMAT}; export it again")
        target = Target(described["target"])
        engine.check_runs_here(target)
        signatures = sidecar.signatures_from_json(described["kernels"])
        library = ctypes.CDLL(os.path.abspath(file_name))
        arrays = _arrays(file_name, library, described["constants"], bool(described["inside"]))
        functions = read_functions(described["graph"], arrays.__getitem__)
        origins = {str(name): str(origin) for name, origin in described["origins"].items()}
        digest = str(described["stretches"])
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise RecordError(f"{file_name}: the description of the graph can't be read: {error}") from None
    module = Module(LibraryCode(os.path.abspath(file_name), signatures, target)) if signatures else None
    made = Executable(IRModule(functions), module, target, origins)  # type: ignore[arg-type]
    if _digest(text_of(made.all_stretches(), target)) != digest:
        raise TensorExprError(f"{file_name} was written by another version of tensorexpr, which plans memory otherwise; export it again")
    made.library = lambda symbol: ctypes.addressof(ctypes.c_char.in_dll(library, symbol))
    return made


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _graph_text(file_name: str) -> bytes | None:
    try:
        with open(file_name, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return section(data, GRAPH_SECTION)
    except (OSError, ValueError) as error:
        raise TensorExprError(f"{file_name}: no library can be read: {error}") from None


def _arrays(file_name: str, library: ctypes.CDLL, table: Sequence[Any], inside: bool) -> list[NDArray]:
    """The constants, on the memory of the library or of the file beside it."""
    spans = [int(place) + math.prod(shape) * to_numpy(dtype).itemsize for place, shape, dtype in table]
    size = max(spans, default=0)
    if inside:
        at = ctypes.addressof(ctypes.c_char.in_dll(library, _WEIGHTS))
        whole: Any = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(at)) if size else np.empty(0, np.uint8)
    else:
        beside = f"{file_name}.weights"
        if not os.path.exists(beside) or os.path.getsize(beside) < size:
            raise TensorExprError(f"{file_name}: its weights stand in {beside}, which isn't there or is too short; export it again")
        whole = np.memmap(beside, np.uint8, "r")
    whole.flags.writeable = False
    parts = ((whole[place:end], shape, dtype) for (place, shape, dtype), end in zip(table, spans, strict=True))
    return [wrapped(part.view(np.ndarray).view(to_numpy(dtype)).reshape(shape), dtype) for part, shape, dtype in parts]
