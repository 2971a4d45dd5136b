"""C sources to LLVM IR, for the pragma "import_llvm": by clang, or as assembly by the compiler that there is."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from ..errors import TensorExprError
from .cc import get_cc, run_compiler
from .utils import is_source_path, tempdir

# A label that ends with its function or file; two files have the same ones.
_LOCAL_LABEL = re.compile(r"\.L(\w+)")


def find_clang(required: bool = True) -> list[str]:
    """The paths of clang, that of LLVM's own version first.

    Raises:
        TensorExprError: if there is none and it is required.
    """
    from ..target.codegen import llvm_version_major

    found = [path for name in (f"clang-{llvm_version_major()}", "clang") if (path := shutil.which(name))]
    if required and not found:
        raise TensorExprError("no clang is there, which makes LLVM IR of C: install it, or write the function with te or ir_builder")
    return found


def create_llvm(
    inputs: str | Sequence[str], output: str | os.PathLike[str] | None = None, options: Sequence[str] | None = None, cc: str | None = None
) -> str:
    """The LLVM IR of C source, as text.

    Without clang, another compiler makes assembly of the source, and that is what the text holds: its functions can be called,
    but not inlined.

    Args:
        inputs: the path of a source file or the source itself, or several.
        output: also write it there.
        options: further words for the compiler.
        cc: the path of clang.

    Raises:
        TensorExprError: if there is no compiler, or it fails.
    """
    compiler = cc or next(iter(find_clang(required=get_cc() is None)), None)
    with tempdir() as folder:
        files = []
        for number, text in enumerate([inputs] if isinstance(inputs, str) else inputs):
            files.append(text if is_source_path(text) else folder.relpath(f"input{number}.cc"))
            if files[-1] != text:
                Path(files[-1]).write_text(text)
        made = folder.relpath("output.ll")
        if compiler is not None:
            run_compiler(compiler, ["-S", "-emit-llvm", "-O3", *(options or ()), *files, "-o", made])
            code = Path(made).read_text()
        else:
            code = "".join(_assembly_of(file, options or (), made) for file in files)
    if output is not None:
        Path(output).write_text(code)
    return code


def _assembly_of(file: str, options: Sequence[str], made: str) -> str:
    """The assembly of a source as lines of an LLVM module, with labels of its own."""
    run_compiler(None, ["-S", "-O3", "-fPIC", "-fno-asynchronous-unwind-tables", *options, file, "-o", made])
    text = Path(made).read_text()
    own = hashlib.sha256(text.encode()).hexdigest()[:8]
    lines = _LOCAL_LABEL.sub(rf".L\1_{own}", text).splitlines()
    return "".join(f'module asm "{_escaped(line)}"\n' for line in lines)


def _escaped(line: str) -> str:
    # LLVM's strings name other bytes by their number, as in \0A
    return "".join(letter if " " <= letter <= "~" and letter not in '"\\' else f"\\{ord(letter):02X}" for letter in line)
