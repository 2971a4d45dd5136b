"""Shared libraries for Android, by the compiler of its NDK that the variable TVM_NDK_CC names."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ..errors import TensorExprError
from . import cc


def create_shared(output: str | os.PathLike[str], objects: str | Sequence[str], options: Sequence[str] | None = None) -> None:
    """Link objects to a shared library for Android, as `export_library(fcompile=ndk.create_shared)` does.

    Args:
        output: the library to write.
        objects: a file or several.
        options: words for the compiler, by default those for a shared library.

    Raises:
        TensorExprError: if TVM_NDK_CC isn't set, or the compiler fails.
    """
    compiler = os.environ.get("TVM_NDK_CC")
    if not compiler:
        raise TensorExprError("set TVM_NDK_CC to the NDK's compiler, such as .../bin/aarch64-linux-android24-clang++")
    cc.create_shared(output, objects, options, cc=compiler)


create_shared.output_format = "so"  # type: ignore[attr-defined]
