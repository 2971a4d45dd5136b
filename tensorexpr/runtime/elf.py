"""A look into an object file: which symbols it needs. Used to explain why loading it failed."""

from __future__ import annotations

import struct

_MAGIC = b"\x7fELF\x02\x01"
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMBOL_TABLE = 2


def undefined_symbols(data: bytes) -> list[str]:
    """The symbols a 64-bit little-endian ELF object refers to and does not define; nothing for other formats."""
    if not data.startswith(_MAGIC):
        return []
    # e_shoff and e_shnum: where the table of sections is, and how many it has.
    (offset,) = struct.unpack_from("<Q", data, 40)
    (count,) = struct.unpack_from("<H", data, 60)
    sections = [_SECTION.unpack_from(data, offset + i * _SECTION.size) for i in range(count)]
    found = []
    for _, kind, _, _, start, size, link, *_ in sections:
        if kind != _SYMBOL_TABLE:
            continue
        strings = sections[link][4]
        # Section 0 means undefined; the first symbol of a table is empty, without a name.
        for name, _, _, section, _, _ in _SYMBOL.iter_unpack(data[start : start + size]):
            if section == 0 and name:
                end = data.index(b"\0", strings + name)
                found.append(data[strings + name : end].decode())
    return found
