"""LLVM IR that programs bring along, by the pragma "import_llvm", linked into the code that is made for them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import CodegenError, InternalError
from ..target import Target
from . import engine

# What inline assembly of a module defines, which LLVM doesn't list among its functions.
_GLOBAL_LABEL = re.compile(r'^module asm "[^"]*\.globl(?:\\09| )+([\w.$]+)', re.MULTILINE)


def linked(text: str, imports: Sequence[str], target: Target) -> tuple[str, frozenset[str]]:
    """LLVM IR text with imported code in it, and the functions that the imports define.

    Of two imports that define a function the later one counts, as a program that imports for each of its loops gives the same
    source more than once.

    Args:
        text: of the module that calls them.
        imports: LLVM IR each, or the path of a file of it that ends in .ll.
        target: what the code is for.

    Raises:
        CodegenError: for an import that LLVM refuses.
    """
    context = engine.new_context()
    module = engine.parse(text, target, context)
    defined: set[str] = set()
    # From the last one on: of two such definitions the linker keeps what it has.
    for given in reversed(imports):
        code = _text_of(given)
        imported = _parsed(code, target, context)
        functions = [function for function in imported.functions if not function.is_declaration]
        symbols = {function.name for function in functions} | set(_GLOBAL_LABEL.findall(code))
        if symbols <= defined:
            continue
        for function in functions:
            function.linkage = "linkonce_odr"  # inlined and dropped, and no quarrel with another import's
        module.link_in(imported)
        defined |= symbols
    return str(module), frozenset(defined)


def _text_of(given: str) -> str:
    return Path(given).read_text() if given.endswith(".ll") and "\n" not in given else given


def _parsed(code: str, target: Target, context: Any) -> Any:
    try:
        return engine.parse(code, target, context)
    except InternalError as error:
        raise CodegenError(f"pragma import_llvm takes LLVM IR, as contrib.clang.create_llvm gives it: {error}") from None
