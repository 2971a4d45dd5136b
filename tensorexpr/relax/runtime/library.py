"""Executables as one shared library: kernels, stretches, the functions of the graph as JSON, and the weights.

    the library    packed entries of the kernels, stretches; what follows is behind the end that the system's loader sees. Nothing if
                   the kernels run on a device: their text stands in the graph's description
    the graph      JSON: functions (`saved_graph`), signatures of kernels, target, where each constant lies
    the weights    each from a cache line on; they are mapped, so that processes share them and none reads what it doesn't use
    the end        a checksum of all this, places and sizes of graph and weights, and a mark

Loading a library runs its code: load only what you trust.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import math
import os
import shutil
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import ArgumentError, RecordError, TargetError, TensorExprError
from ...runtime import device_export, engine, export, sidecar
from ...runtime.code import LibraryCode
from ...runtime.module import Module
from ...runtime.ndarray import NDArray, empty, wrapped
from ...runtime.network import FORMAT, tail, write_end
from ...target import Target
from ...target.kinds import DEVICE_KINDS
from ...tir.dtype import to_numpy
from ...tir.function import IRModule
from ..external import EXTERNAL, external_functions
from .constants import bytes_of
from .executable import Executable
from .memory import ALIGNMENT
from .native import object_of, text_of
from .plain import plain_network
from .saved_graph import read_functions, write_functions

GRAPH_SECTION = ".tensorexpr.graph"
_MEMBER = "lib.so"
# Files are mapped by pages: weights that start on one keep their alignment in memory.
_PAGE = 4096


class Constants:
    """Arrays by number.

    Args:
        apart: those that aren't written, by their names.
    """

    def __init__(self, apart: Mapping[str, NDArray] | None = None) -> None:
        self.arrays: list[NDArray] = []
        self.places: list[int | None] = []  # None of those that aren't written
        self.apart = {id(one): name for name, one in (apart or {}).items()}
        self.size = 0
        self._numbers: dict[int, int] = {}

    def number(self, data: Any) -> int:
        """The number of an array.

        Raises:
            RecordError: for one of objects.
        """
        if not isinstance(data, NDArray):
            raise RecordError(f"a constant of {getattr(data, 'dtype', type(data).__name__)} has no place in a library")
        # `arrays` keeps each of them, so that no id is given to another one.
        found = self._numbers.setdefault(id(data), len(self.arrays))
        if found == len(self.arrays):
            self.arrays.append(data)
            is_apart = id(data) in self.apart
            self.places.append(None if is_apart else self.size)
            self.size += 0 if is_apart else -(-data._array.nbytes // ALIGNMENT) * ALIGNMENT
        return found

    def late(self) -> dict[str, int]:
        """The numbers of arrays that aren't written by their names."""
        return {self.apart[id(one)]: n for n, one in enumerate(self.arrays) if self.places[n] is None}

    def write(self, file: Any) -> None:
        """Write the arrays one after the other."""
        start = file.tell()
        for array, place in zip(self.arrays, self.places, strict=True):
            if place is None:
                continue
            file.write(b"\0" * (start + place - file.tell()))
            file.write(bytes_of(array))
        file.write(b"\0" * (start + self.size - file.tell()))


def export_executable(executable: Executable, file_name: str, fcompile: Callable[..., Any] | None, options: Mapping[str, Any]) -> None:
    """Write an executable as a shared library; see `Executable.export_library`."""
    if Path(file_name).suffix == ".tar":
        with tempfile.TemporaryDirectory(prefix="tensorexpr-") as folder:
            library = os.path.join(folder, _MEMBER)
            export_executable(executable, library, fcompile, options)
            with tarfile.open(file_name, "w") as archive:
                archive.add(library, _MEMBER)
        return
    if Path(file_name).suffix not in (".so", ".dylib"):
        raise ArgumentError(f"export_library: an executable becomes a shared library, x.so, or an archive of one, x.tar, not {file_name}")
    if executable.is_for_device:
        _write_with_text(executable, file_name)
        return
    modules = [*([] if executable.kernels is None else [executable.kernels]), *_external_modules(executable, file_name)]
    signatures = {name: signature for one in modules for name, signature in one.signatures.items()}
    kernels = [code for one in modules for code in one.objects(file_name)]
    stretches = executable.all_stretches()
    constants = Constants(executable.late)
    described = {
        **_described(executable, constants),
        "kernels": sidecar.signatures_to_json(signatures),
        "external": list(external_functions(executable.external)),
        # Stretches are planned again when it is loaded: the offsets in the machine code have to be those.
        "stretches": _digest(text_of(stretches, executable.target)),
    }
    plain = plain_network(executable)
    if plain is not None:  # for `runtime.load`, which knows nothing of graphs
        described["network"] = plain.described(constants.number)
    with tempfile.TemporaryDirectory(prefix="tensorexpr-") as folder:
        objects = written_objects(executable, kernels, folder)
        export.link_objects(executable.target, objects, file_name, fcompile, options)
    _append(file_name, described, constants)


def _described(executable: Executable, constants: Constants) -> dict[str, Any]:
    """What is written of a graph, wherever its kernels run."""
    functions = write_functions(executable.functions, constants.number)
    return {
        "format": FORMAT,
        "target": executable.target.resolved().export(),
        "origins": executable.origins,
        "graph": functions,
        "constants": [[place, list(one.shape), one.dtype] for one, place in zip(constants.arrays, constants.places, strict=True)],
        "late": constants.late(),
    }


def _write_with_text(executable: Executable, file_name: str) -> None:
    """Write a graph whose kernels run on a device, with their text and what launches need.

    Raises:
        TensorExprError: for functions of a code generator, which have no text.
    """
    if executable.external:
        names = ", ".join(external_functions(executable.external))
        raise TensorExprError(f"{file_name}: the graph calls {names} of a code generator, which a file of kernels for a device can't hold")
    constants = Constants(executable.late)
    described = _described(executable, constants)
    if executable.kernels is not None:
        text, parts = device_export.described_parts(executable.kernels)  # type: ignore[arg-type]  # kernels of a device
        described["device"] = {"text": text, **parts}
    Path(file_name).write_bytes(b"")
    _append(file_name, described, constants)


def _append(file_name: str, described: Mapping[str, Any], constants: Constants) -> None:
    """Write the graph and the weights behind a library."""
    with open(file_name, "r+b") as file:
        graph = json.dumps(described).encode()
        places = [file.seek(0, os.SEEK_END)]
        file.write(graph)
        file.write(b"\0" * (-file.tell() % _PAGE))
        places.append(file.tell())
        constants.write(file)
    write_end(file_name, places[0], len(graph), places[1], constants.size)


def _external_modules(executable: Executable, file_name: str) -> list[Module]:
    """What code generators of others made, if a library can hold it.

    Raises:
        TensorExprError: for functions that aren't in a module, and for two of one name.
    """
    names = [] if executable.kernels is None else list(executable.kernels.signatures)
    made: list[Module] = []
    for one in executable.external:
        if not isinstance(one, Module):
            raise TensorExprError(
                f"{file_name}: the graph calls {', '.join(one)}, Python functions of a code generator, which no library holds"
            )
        names += one.function_names
        made.append(one)
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise TensorExprError(f"{file_name}: {', '.join(twice)} is a kernel, and a function of a code generator: give one another name")
    return made


def written_objects(executable: Executable, kernels: Sequence[bytes], folder: str) -> list[str]:
    """The objects of kernels and stretches as files in a folder."""
    names = []
    for n, data in enumerate([*kernels, object_of(executable.all_stretches(), executable.target)]):
        names.append(os.path.join(folder, f"part{n}.o"))
        Path(names[-1]).write_bytes(data)
    return names


def load_archived(file_name: str) -> Executable | None:
    """The executable in an archive with a library; None if it has none. Errors as of `load_executable`."""
    try:
        with tempfile.TemporaryDirectory(prefix="tensorexpr-") as folder, tarfile.open(file_name) as archive:
            libraries = [name for name in archive.getnames() if name.endswith((".so", ".dylib"))]
            member = archive.extractfile(libraries[0]) if libraries else None
            if member is None:
                return None
            library = os.path.join(folder, _MEMBER)
            with open(library, "wb") as file:
                shutil.copyfileobj(member, file)
            return load_executable(library)  # what is mapped stays when its name is gone
    except (OSError, tarfile.TarError) as error:
        raise TensorExprError(f"{file_name}: no archive of a module or a network: {error}") from None
    except TensorExprError as error:
        raise type(error)(f"{file_name}: {error}") from None


def load_executable(file_name: str) -> Executable | None:
    """The executable in a library; None if the library has none.

    Raises:
        TensorExprError: if the file can't be read, is torn, or was written by another version.
        RecordError: if its checksum isn't that of its bytes.
        TargetError: if this machine can't run it.
    """
    found = tail(file_name)
    if found is None:
        return None
    text, weights = found
    try:
        described = json.loads(text)
        version = described["format"]
        if version != FORMAT:
            raise TensorExprError(f"{file_name} has format {version}, and this version of tensorexpr reads {FORMAT}; export it again")
        target = Target(described["target"])
        arrays = [
            _array(weights, None if place is None else int(place), tuple(shape), str(dtype))
            for place, shape, dtype in described["constants"]
        ]
        late = {str(name): arrays[int(number)] for name, number in described.get("late", {}).items()}
        functions = read_functions(described["graph"], arrays.__getitem__)
        origins = {str(name): str(origin) for name, origin in described["origins"].items()}
        if target.kind in DEVICE_KINDS:
            parts = dict(described.get("device", {}))
            device = device_export.from_parts(str(parts.pop("text")), parts, file_name) if parts else None
            return _without(Executable(IRModule(functions), device, target, origins), late)  # type: ignore[arg-type]
        engine.check_runs_here(target)
        signatures = sidecar.signatures_from_json(described["kernels"])
        # With a directory: the system would search its own places for a name without one.
        library = ctypes.CDLL(os.path.abspath(file_name))
        digest = str(described["stretches"])
    except TargetError as error:  # a ValueError, too
        raise TargetError(f"{file_name}: {error}") from None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise RecordError(f"{file_name}: the description of the graph can't be read: {error}") from None
    module = Module(LibraryCode(os.path.abspath(file_name), signatures, target)) if signatures else None
    called = {} if module is None else {name: module[name] for name in described.get("external", ())}
    external = (called,) if called else ()
    made = Executable(IRModule(functions, {EXTERNAL: external}), module, target, origins)  # type: ignore[arg-type]
    if _digest(text_of(made.all_stretches(), target)) != digest:
        raise TensorExprError(f"{file_name} was written by another version of tensorexpr, which plans memory otherwise; export it again")
    if not late:  # with constants of its own it needs stretches of its own: the system loads a library, and its tables, once
        # The function holds the library, which is mapped as long as the executable lives.
        made.library, made.mapped = lambda symbol: ctypes.addressof(ctypes.c_char.in_dll(library, symbol)), weights.base
    return _without(made, late)


def _without(executable: Executable, late: dict[str, NDArray]) -> Executable:
    executable.late, executable.missing = late, set(late)
    return executable


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _array(weights: Any, place: int | None, shape: tuple[int, ...], dtype: str) -> NDArray:
    """A constant on the memory of the file, or on memory of its own if the file doesn't have it."""
    if place is None:
        return empty(shape, dtype)
    end = place + math.prod(shape) * to_numpy(dtype).itemsize
    if not 0 <= place <= end <= weights.size:
        raise ValueError(f"a constant lies at {place} to {end} of {weights.size} bytes")
    return wrapped(weights[place:end].view(to_numpy(dtype)).reshape(shape), dtype)
