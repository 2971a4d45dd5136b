"""A module of C text: printed, saved, and compiled by the system's C compiler when a function of it is called."""

from __future__ import annotations

import ctypes
import io
import os
import tarfile
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..codegen.c_entries import entries_c
from ..codegen.c_module import PACKED, EmittedC
from ..codegen.c_types import function_in_c
from ..codegen.signature import PACKED_SYMBOL, Signature
from ..dataclass import dataclass, field, replace
from ..errors import ArgumentError, TensorExprError
from ..target import Target
from . import export, packed, sidecar
from .code import CompiledCode, LibraryCode
from .header import c_header
from .module import Module

# -fwrapv: sums of signed integers wrap; -fno-strict-aliasing: programs may look at memory as elements of several types.
_WITHOUT_COMPILER = (
    "functions of target c run when {} has compiled them, and there is no {}; install one, {}, save the text with module.save('x.c') for "
    "a compiler elsewhere, or build for target llvm, which needs none"
)
FLAGS = ("-std=c99", "-O2", "-fPIC", "-fwrapv", "-fno-strict-aliasing")


@dataclass(frozen=True)
class CCode:
    """C text with how its functions are called."""

    emitted: EmittedC
    target: Target
    timings: dict[str, float] = field(default_factory=dict)

    @property
    def signatures(self) -> Mapping[str, Signature]:
        """The functions by name."""
        return self.emitted.signatures

    @property
    def whole(self) -> str:
        """The text, and the entries through which the runtime calls its functions."""
        return f"{self.emitted.text}\n#include <string.h>\n{entries_c(self.emitted)}"

    def load(self) -> tuple[Mapping[str, int], Any]:
        """Compile the text and load it into this process.

        Raises:
            TensorExprError: if there is no C compiler, or it fails.
        """
        with tempfile.TemporaryDirectory(prefix="tensorexpr-") as folder:
            library = os.path.join(folder, "module.so")
            export.link_objects(self.target, [self.compiled(folder, ", ".join(self.signatures))], library, None, {})
            # The file may go: the process keeps what it has mapped.
            addresses, loaded = LibraryCode(library, self.signatures, self.target).load()
        keep = [loaded]
        if hasattr(loaded, PACKED_SYMBOL):
            address, trampoline = packed.trampoline()
            ctypes.c_void_p.in_dll(loaded, PACKED_SYMBOL).value = address
            keep.append(trampoline)
        return addresses, keep

    def compiled(self, folder: str, wanted: str, options: Mapping[str, Any] | None = None) -> str:
        """The object file that the C compiler makes in a folder, on the way to the file that is `wanted`."""
        source, result = os.path.join(folder, "module.c"), os.path.join(folder, "module.o")
        Path(source).write_text(self.whole)
        parallel = ["-fopenmp"] if self.emitted.is_parallel else []
        words = [*FLAGS, *parallel, "-c", source, "-o", result, *((options or {}).get("options") or ())]
        export.run_c_compiler(wanted, words, options or {}, self.target, _WITHOUT_COMPILER)
        return result


class CSourceModule(Module):
    """Functions as C text.

    `get_source()` is the text, `save("x.c")` and `export_library` write it or what the C compiler makes of it, and a call of a
    function compiles it first.
    """

    _code: CCode

    @property
    def whole(self) -> str:
        """The text, and the entries through which the runtime, and a network's text, call its functions."""
        return self._code.whole

    @property
    def type_key(self) -> str:
        """Always "c"."""
        return "c"

    @property
    def format(self) -> str:
        """The format that `save` writes by default."""
        return "c"

    def get_source(self, fmt: str = "") -> str:
        """The C text.

        Raises:
            ArgumentError: for another format than "c", "cc" or nothing.
        """
        if fmt not in ("", "c", "cc"):
            raise ArgumentError(f"no source format {fmt!r} of a module of target c; there is 'c'; for 'll' and 'asm' build for target llvm")
        return self._code.emitted.text

    def save(self, file_name: str | os.PathLike[str], fmt: str = "") -> None:
        """Write a file in the format `fmt` or of the name's ending: c or cc (the text), o (an object file and its description).

        Raises:
            ArgumentError: for another format.
            TensorExprError: for an object file, if there is no C compiler, or it fails.
        """
        name = os.fspath(file_name)
        kind = fmt or Path(name).suffix[1:] or "c"
        if kind in ("c", "cc"):
            export.write_file(name, self.get_source().encode())
        elif kind == "o":
            self._check_exportable(name)
            with tempfile.TemporaryDirectory(prefix="tensorexpr-") as folder:
                export.write_file(name, Path(self._code.compiled(folder, name)).read_bytes())
            self._describe(name)
        else:
            raise ArgumentError(
                f"save: no format {kind!r} of a module of target c; there are c and o; for a shared library use export_library"
            )

    def export_library(
        self,
        file_name: str | os.PathLike[str],
        fcompile: Callable[..., Any] | None = None,
        *,
        addons: Sequence[str] | None = None,
        workspace_dir: str | None = None,
        fpack_imports: None = None,
        **kwargs: Any,
    ) -> None:
        """Write what the C compiler makes of the text, `x.so` or `x.o`, or the text itself, `x.c`, or an archive of it, `x.tar`; and `x.h`.

        Libraries and objects have a description beside them (`x.so.json`), with which `runtime.load_module` reads them.

        Args:
            file_name: where to write.
            fcompile: compiles the text instead of the system's C compiler; called as `fcompile(file_name, ["module.c"], **kwargs)`.
            addons: further files for the C compiler to link.
            workspace_dir, fpack_imports: accepted.
            kwargs: `options=[...]` are further words for the C compiler, `cc="clang"` is its name.

        Raises:
            TensorExprError: if there is no C compiler, or it fails.
        """
        name = os.fspath(file_name)
        suffix, header = Path(name).suffix, self._header(Path(name).stem)
        options = {**kwargs, "options": [*(kwargs.get("options") or ()), *addons]} if addons else kwargs
        if suffix in (".c", ".cc") and fcompile is None:
            self.save(name)
        elif suffix == ".tar" and (fcompile is None or getattr(fcompile, "output_format", "") == "tar"):
            export.write_file(name, _archive({f"{Path(name).stem}.c": self.get_source(), f"{Path(name).stem}.h": header}))
            return
        elif suffix == ".o" and fcompile is None:
            self.save(name)
        else:
            self._check_exportable(name)
            with tempfile.TemporaryDirectory(prefix="tensorexpr-") as folder:
                if fcompile:
                    Path(folder, "module.c").write_text(self._code.whole)
                    source = os.path.join(folder, "module.c")
                else:
                    source = self._code.compiled(folder, name, {"cc": options.get("cc")})
                export.link_objects(self.target, [source], name, fcompile, options)
            self._describe(name)
        export.write_file(str(Path(name).with_suffix(".h")), header.encode())

    def objects(self, file_name: str) -> list[bytes]:
        """The object files that a library of these functions is linked of, from the C compiler."""
        self._check_exportable(file_name)
        with tempfile.TemporaryDirectory(prefix="tensorexpr-") as folder:
            return [Path(self._code.compiled(folder, file_name)).read_bytes()]

    def __getstate__(self) -> dict[str, Any]:
        return {"code": self._code}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["code"])  # type: ignore[misc]

    def _header(self, name: str) -> str:
        return c_header([replace(one, name=function_in_c(one.name)) for one in self.signatures.values()], name, PACKED)

    def _check_exportable(self, name: str) -> None:
        export.check_exportable(CompiledCode("", self.get_source().encode(), self.signatures, self.target), name)

    def _describe(self, name: str) -> None:
        """The description of the file of that name, which says how its functions are called."""
        data = Path(name).read_bytes()
        export.write_file(f"{name}.json", sidecar.write(CompiledCode("", data, self.signatures, self.target), data).encode())

    def _source(self) -> CompiledCode:
        raise TensorExprError("a module of target c has C text alone; build for target llvm for LLVM IR and what is made of it")


def _archive(files: Mapping[str, str]) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)  # its time and owner are 0, so a module always gives the same bytes
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return target.getvalue()
