"""clang, where it is installed: C sources to LLVM IR, for the pragma "import_llvm"."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ..errors import TensorExprError
from .utils import is_source_path, tempdir


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

    Args:
        inputs: the path of a source file or the source itself, or several.
        output: also write it there.
        options: further words for clang.
        cc: the path of clang.

    Raises:
        TensorExprError: if there is no clang, or it fails.
    """
    compiler = cc or find_clang()[0]
    with tempdir() as folder:
        made = folder.relpath("output.ll") if output is None else os.fspath(output)
        files = []
        for number, text in enumerate([inputs] if isinstance(inputs, str) else inputs):
            files.append(text if is_source_path(text) else folder.relpath(f"input{number}.cc"))
            if files[-1] != text:
                Path(files[-1]).write_text(text)
        words = [compiler, "-S", "-emit-llvm", "-O3", *(options or ()), *files, "-o", made]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise TensorExprError(f"`{' '.join(words)}` failed: {done.stderr.strip()}")
        return Path(made).read_text()
