"""One form for all functions: an entry that takes its arguments from a block of 64-bit words.

The entry of `f` is `int32_t f__packed(const uint64_t *words)`: one word per parameter (an address, an integer, the
bits of a double), then one per symbol. It is what calls, timing and loaded libraries go through.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..codegen.signature import BufferParam, Param, Signature
from ..codegen.types import symbol
from ..tir.dtype import parse_dtype


def entry_name(name: str) -> str:
    """The symbol of the packed entry of a function."""
    return f"{name}__packed"


def entries_text(signatures: Iterable[Signature]) -> str:
    """LLVM IR text that defines the packed entries, to stand behind the functions in their module."""
    return "\n".join(_entry(signature) for signature in signatures)


def alias_text(name: str, own: str) -> str:
    """LLVM IR text of a packed entry of one name that is the packed entry of another one in another module."""
    callee = symbol(entry_name(own))
    lines = [f"declare i32 {callee}(ptr)", f"define i32 {symbol(entry_name(name))}(ptr %words) {{"]
    return "\n".join([*lines, f"  %code = tail call i32 {callee}(ptr %words)", "  ret i32 %code", "}", ""])


def argument_types(signature: Signature) -> list[str]:
    """The LLVM types of the arguments of a function's C form."""
    return [_type(param) for param in signature.params] + ["i64"] * len(signature.symbols)


def _type(param: Param) -> str:
    if isinstance(param, BufferParam):
        return "ptr"
    return "double" if parse_dtype(param.dtype).is_float else "i64"


def _entry(signature: Signature) -> str:
    types = argument_types(signature)
    lines = [f"define i32 {symbol(entry_name(signature.name))}(ptr nocapture readonly %words) {{"]
    for index, kind in enumerate(types):
        lines.append(f"  %a{index} = getelementptr i64, ptr %words, i64 {index}")
        lines.append(f"  %w{index} = load {kind}, ptr %a{index}")
    arguments = ", ".join(f"{kind} %w{index}" for index, kind in enumerate(types))
    # Inlined, the function would be compiled twice.
    lines.append(f"  %code = call i32 {symbol(signature.name)}({arguments}) noinline")
    return "\n".join([*lines, "  ret i32 %code", "}", ""])
