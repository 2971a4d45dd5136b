"""Modules as files: objects, assembly, LLVM IR, shared libraries with a C header; and back.

Loading a library runs code: load only what you trust. The description beside it guards against mistakes (torn
files, another CPU, another version), not against malice.
"""

from __future__ import annotations

import atexit
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..codegen.signature import PACKED_SYMBOL, RAISED
from ..errors import ArgumentError, TensorExprError
from ..target import Target
from . import engine, sidecar
from .code import CompiledCode, LibraryCode
from .elf import undefined_symbols
from .header import c_header

_OBJECT_MEMBER = "module.o"
_COMPILERS = ("cc", "gcc", "clang")
_PARALLEL_SYMBOL = "GOMP_parallel"
_WITHOUT_LINKER = (
    "linking a shared library needs {}, and there is no {}; "
    "install one, {}, pass fcompile=, or write an object file with module.save('x.o')"
)


def save(code: CompiledCode, file_name: str, fmt: str = "") -> None:
    """Write code in the format `fmt`, or that of the name's ending; see `Module.save`."""
    kind = fmt or Path(file_name).suffix[1:]
    if kind in ("o", "obj"):
        check_exportable(code, file_name)
        write_file(file_name, code.data)
        write_file(f"{file_name}.json", sidecar.write(code, code.data).encode())
    elif kind == "ll":
        write_file(file_name, code.text.encode())
    elif kind in ("s", "asm"):
        write_file(file_name, engine.emit_assembly(code.text, code.target, code.opt_level).encode())
    elif kind == "bc":
        write_file(file_name, engine.emit_bitcode(code.text, code.target))
    else:
        raise ArgumentError(f"save: no format {kind!r}; there are o, ll, s (or asm), bc; for a shared library use export_library")


def export_library(code: CompiledCode, file_name: str, fcompile: Callable[..., Any] | None, options: Mapping[str, Any]) -> None:
    """Write a library with its header and description; see `Module.export_library`."""
    check_exportable(code, file_name)
    if not (fcompile is None or callable(fcompile)):
        raise ArgumentError(f"export_library: fcompile is a function such as cc.create_shared, not {fcompile!r}")
    suffix = Path(file_name).suffix
    if suffix == ".tar" and (fcompile is None or getattr(fcompile, "output_format", "") == "tar"):
        write_file(file_name, _archive(code))
        return
    if fcompile is None and suffix == ".o":
        save(code, file_name)
    else:
        with tempfile.TemporaryDirectory(prefix="tensorexpr-") as folder:
            objects = os.path.join(folder, _OBJECT_MEMBER)
            Path(objects).write_bytes(code.data)
            link_objects(code.target, [objects], file_name, fcompile, options)
        # The hash is one of what the linker wrote, so that is read back.
        write_file(f"{file_name}.json", sidecar.write(code, Path(file_name).read_bytes()).encode())
    write_file(str(Path(file_name).with_suffix(".h")), c_header(code.signatures.values(), Path(file_name).stem).encode())


def describe_linked(library: str, objects: Sequence[str]) -> None:
    """Write the description of a library that was linked of objects, if some of them have one; it has the functions of all these.

    Raises:
        TensorExprError: for descriptions that aren't those of the objects, or of objects for different machines.
    """
    # An object of other tools has no description, and nothing to contribute to this one.
    described = [sidecar.read(_read(f"{name}.json"), _read(name)) for name in objects if os.path.exists(f"{name}.json")]
    if not described:
        return
    target = described[0].target
    if any(other.target != target for other in described):
        raise TensorExprError(f"{library}: its objects were built for different targets: {', '.join(str(d.target) for d in described)}")
    signatures = {name: signature for each in described for name, signature in each.signatures.items()}
    data = _read(library)
    write_file(f"{library}.json", sidecar.write(CompiledCode("", data, signatures, target), data).encode())


def to_bytes(code: LibraryCode | CompiledCode) -> tuple[str, bytes, str, str, int]:
    """Code as its kind, its bytes, their description, its LLVM text and LLVM's level: what another process needs to run it.

    Raises:
        TensorExprError: for code that calls a Python function of this process.
    """
    if isinstance(code, CompiledCode):
        check_exportable(code, "pickle")
        return "o", code.data, sidecar.write(code, code.data), code.text, code.opt_level
    data = _read(code.path)
    return "so", data, sidecar.write(CompiledCode("", data, code.signatures, code.target), data), "", 0


def from_bytes(kind: str, data: bytes, description: str, text: str, opt_level: int) -> LibraryCode | CompiledCode:
    """The code of what `to_bytes` made. A library is written to a folder that stays as long as the process.

    Raises:
        TensorExprError: for bytes that don't belong together.
        TargetError: if this machine can't run them.
    """
    described = sidecar.read(description.encode(), data)
    engine.check_runs_here(described.target)
    if kind == "o":
        return CompiledCode(text, data, described.signatures, described.target, opt_level)
    folder = tempfile.mkdtemp(prefix="tensorexpr-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = os.path.join(folder, "module.so")
    Path(path).write_bytes(data)
    return LibraryCode(path, described.signatures, described.target)


def check_exportable(code: CompiledCode, file_name: str) -> None:
    """Refuse code that calls into this Python process. C functions stay undefined symbols of the file.

    Raises:
        TensorExprError: naming the Python functions that it calls.
    """
    if PACKED_SYMBOL.encode() not in code.data:
        return
    start, end = RAISED.split("{}")
    messages = (message for signature in code.signatures.values() for message in signature.errors)
    names = sorted({message[len(start) : -len(end)] for message in messages if message.startswith(start) and message.endswith(end)})
    raise TensorExprError(
        f"{file_name}: the code calls the Python function {', '.join(names)}, which lives in this process only, so it can't be exported; "
        "call a C function (tir.call_extern) in its place"
    )


def load_module(path: str | os.PathLike[str], fmt: str = "") -> LibraryCode | CompiledCode:
    """Read a library (`.so`), object (`.o`) or archive (`.tar`) that was written here; its description is checked first.

    Raises:
        TensorExprError: if the file, its description or their agreement is missing.
        TargetError: if this machine can't run it.
    """
    name = os.fspath(path)
    kind = fmt or Path(name).suffix[1:]
    if kind not in ("so", "dylib", "o", "tar"):
        raise ArgumentError(f"load_module: no format {kind!r} of {name}; there are so, o and tar")
    if kind == "tar":
        data, text = _unpack(name)
    else:
        data, text = _read(name), _read(f"{name}.json")
    try:
        described = sidecar.read(text, data)
    except sidecar.SidecarError as error:
        raise sidecar.SidecarError(f"{name}: {error}") from None
    engine.check_runs_here(described.target)
    if kind in ("o", "tar"):
        return CompiledCode("", data, described.signatures, described.target)
    return LibraryCode(os.path.abspath(name), described.signatures, described.target)


def link_objects(
    target: Target, objects: Sequence[str], file_name: str, fcompile: Callable[..., Any] | None, options: Mapping[str, Any]
) -> None:
    """Link a library of files of objects, or let `fcompile` do it.

    Args:
        target: what they are for.
        objects: the files.
        file_name: the library.
        fcompile: called as `fcompile(file_name, objects, **options)`.
        options: see `Module.export_library`.

    Raises:
        TensorExprError: if there is no C compiler, it fails, or `fcompile` writes no file.
    """
    if not fcompile:  # programs of TVM say False for the system's
        _link(target, objects, file_name, options)
        return
    fcompile(file_name, list(objects), **options)
    if not os.path.exists(file_name):
        raise TensorExprError(f"{file_name}: fcompile was called as fcompile({file_name!r}, [object], ...) and wrote no such file")


def c_compiler(file_name: str, options: Mapping[str, Any], target: Target, remedy: str = _WITHOUT_LINKER) -> str:
    """The C compiler for a file: of the option "cc", or one that is found; for this machine's platform that of the environment's CC, too.

    Raises:
        TensorExprError: if there is none; it says what to do in place of it, `remedy`.
    """
    names = _COMPILERS if target.is_host_platform else _cross_compilers(target.triple)
    given: str | None = options.get("cc") or (os.environ.get("CC") if target.is_host_platform else None)
    found = given or next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        what = "a C compiler" if target.is_host_platform else f"a C compiler for {target.triple}"
        setting = "set CC" if target.is_host_platform else "name one with cc="
        raise TensorExprError(f"{file_name}: {remedy.format(what, ', '.join(names), setting)}")
    return found


def run_c_compiler(file_name: str, words: Sequence[str], options: Mapping[str, Any], target: Target, remedy: str = _WITHOUT_LINKER) -> None:
    """Run the C compiler on its way to a file; arguments and errors as of `c_compiler`, and where it fails an error with what it says."""
    # CC may hold options, such as "ccache gcc"; no shell is involved.
    command = [*c_compiler(file_name, options, target, remedy).split(), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise TensorExprError(f"{file_name}: there is no program {command[0]!r}; name another C compiler with CC or cc=") from None
    if done.returncode:
        raise TensorExprError(f"{file_name}: `{' '.join(command)}` failed: {done.stderr.strip()}")


def _cross_compilers(triple: str) -> tuple[str, ...]:
    """What compilers for a platform are called: Debian's leave the vendor out."""
    words = triple.split("-")
    without_vendor = [words[0], *words[2:]] if len(words) > 3 else words
    return tuple(f"{name}-gcc" for name in dict.fromkeys((triple, "-".join(without_vendor))))


def _link(target: Target, objects: Sequence[str], file_name: str, options: Mapping[str, Any]) -> None:
    unknown = set(options) - {"options", "cc"}
    if unknown:
        raise ArgumentError(
            f"export_library: no option {', '.join(sorted(unknown))}; known: options=[words for the C compiler], cc=its name"
        )
    # The OpenMP library becomes a dependency only of code that calls it.
    parallel = ["-fopenmp"] if any(_PARALLEL_SYMBOL in undefined_symbols(_read(name)) for name in objects) else []
    run_c_compiler(file_name, ["-shared", "-o", file_name, *objects, *parallel, "-lm", *(options.get("options") or ())], options, target)


def _archive(code: CompiledCode) -> bytes:
    target = io.BytesIO()
    description = sidecar.write(code, code.data).encode()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for name, data in ((_OBJECT_MEMBER, code.data), (f"{_OBJECT_MEMBER}.json", description)):
            member = tarfile.TarInfo(name)  # its time and owner are 0, so a module always gives the same bytes
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return target.getvalue()


def _unpack(name: str) -> tuple[bytes, bytes]:
    """The two members, read into memory: nothing is extracted to disk."""
    try:
        # "r:" takes no compression, which could unpack to any size.
        with tarfile.open(fileobj=io.BytesIO(_read(name)), mode="r:") as archive:
            members = [archive.extractfile(member) for member in (_OBJECT_MEMBER, f"{_OBJECT_MEMBER}.json")]
            data, text = (member.read() if member else b"" for member in members)
    except (tarfile.TarError, KeyError) as error:
        raise TensorExprError(f"{name}: no archive of a module: {error}") from None
    return data, text


def _read(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise TensorExprError(f"{name}: {error.strerror}; export_library writes a library and, beside it, its description") from None


def write_file(name: str, data: bytes) -> None:
    """Write a file at once or not at all: readers never see a part of it. Devices and pipes get the bytes as they come.

    Raises:
        TensorExprError: if it can't be written.
    """
    folder = os.path.dirname(os.path.abspath(name))
    try:
        if os.path.exists(name) and not os.path.isfile(name):
            Path(name).write_bytes(data)
        else:
            _put_in_place(name, data, folder)
    except OSError as error:
        raise TensorExprError(f"{name} can't be written: {error.strerror or error}: {folder}") from None


def _put_in_place(name: str, data: bytes, folder: str) -> None:
    # In the same folder, as only within a file system a rename is atomic.
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".tensorexpr-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o644)  # mkstemp lets nobody else read
        os.replace(temporary, name)
    except BaseException:
        os.unlink(temporary)
        raise
