"""The C header of an exported library."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..codegen.c_types import KEYWORDS, memory_type, name_in_c
from ..codegen.signature import BufferParam, Param, Signature
from ..tir.dtype import parse_dtype
from . import binding

_IDENTIFIER = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")


def c_header(signatures: Iterable[Signature], name: str, packed: str = "") -> str:
    """A header that declares the functions of a library, with what each expects of its arguments.

    With `packed`, the parameters of functions that take their arguments as arrays of values, the header declares these.
    """
    guard = re.sub(r"[^A-Z0-9]", "_", f"TENSOREXPR_{name.upper()}_H")
    lines = [f"#ifndef {guard}", f"#define {guard}", "#include <stdint.h>", "#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    for signature in signatures:
        lines += [*_comment(signature), f"int32_t {f'{signature.name}({packed});' if packed else _declarator(signature)}", ""]
    return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", "#endif", ""])


def _comment(signature: Signature) -> Iterator[str]:
    yield f"/* {signature.name}"
    for param in signature.params:
        if isinstance(param, BufferParam):
            shape = ", ".join(binding.text(extent) for extent in binding.extents(param))
            access = "written" if param.is_written else "read"
            layout = f"strides ({', '.join(map(binding.text, param.strides))}) elements" if param.strides else "compact, last index fastest"
            yield f" *   {param.name}: {param.dtype}[{shape}], {access}, {layout}, aligned to {param.alignment} bytes"
        else:
            yield f" *   {param.name}: {param.dtype}"
    if any(isinstance(param, BufferParam) and param.is_written for param in signature.params):
        yield " * Written arrays must not overlap any other."
    yield " * Returns 0."
    # From 1 on, as the code returns them; 0 is success.
    for number, message in enumerate(signature.errors, start=1):
        yield f" * Returns {number}: {message.replace('*/', '* /')}"
    yield " */"


def _declarator(signature: Signature) -> str:
    used: set[str] = set()
    parts = [f"{_c_type(param)}{_c_name(param.name, used)}" for param in signature.params]
    parts += [f"int64_t {_c_name(var.name, used)}" for var in signature.symbols]
    if _IDENTIFIER.match(signature.name) and signature.name not in KEYWORDS:
        return f"{signature.name}({', '.join(parts)});"
    # A symbol that is no C identifier is declared under another name.
    return f'{_c_name(signature.name, set())}({", ".join(parts)}) __asm__("{signature.name}");'


def _c_type(param: Param) -> str:
    if not isinstance(param, BufferParam):
        return "double " if parse_dtype(param.dtype).is_float else "int64_t "
    return f"{memory_type(param.dtype)} *" if param.is_written else f"const {memory_type(param.dtype)} *"


def _c_name(name: str, used: set[str]) -> str:
    """A C identifier like `name` that is not taken."""
    clean = name_in_c(name)
    while clean in used:
        clean += "_"
    used.add(clean)
    return clean
