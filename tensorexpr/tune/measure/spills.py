"""How often machine code moves vector registers to and from the stack: the cheap sign of a register tile that is too large.

Generated kernels keep nothing of their own in stack vectors, so each such instruction is a spill or a reload. They are
found by their encoding: scanning an object takes far less than the second code generation that gives
`codegen.spills.count_spills` its assembly, which tells loops from the rest.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

import numpy as np

_ELF = b"\x7fELF\x02\x01"
_MACHINE_X86_64, _MACHINE_AARCH64 = 62, 183
_SECTION = struct.Struct("<IIQQQQIIQQ")
_EXECUTABLE = 4
# A memory operand [rsp + displacement]: ModRM with rm = 100 and mod != 11, then the SIB byte for base rsp without an index.
_ON_STACK = b"[" + b"".join(b"\\x%02x" % (mod << 6 | reg << 3 | 4) for mod in range(3) for reg in range(8)) + rb"]\x24"
_X86 = re.compile(
    rb"(?:\x62[\x01-\xff][\x00-\xff]{2}[\x00-\xff]"  # EVEX: any vector instruction, reloads are often folded into them
    rb"|\xc5[\x00-\xff][\x10\x11\x28\x29\x6f\x7f]"  # VEX: moves
    rb"|\xc4[\xc1-\xff\x01-\x7f][\x00-\xff][\x10\x11\x28\x29\x6f\x7f]"
    rb"|\x0f[\x28\x29])" + _ON_STACK,  # SSE: movaps
    re.DOTALL,
)
# LDR/STR (immediate, SIMD&FP), 128 bits, base sp; LDP/STP of q registers, base sp.
_AARCH64 = ((0xFFC003E0, 0x3DC003E0), (0xFFC003E0, 0x3D8003E0), (0xFFC003E0, 0xAD4003E0), (0xFFC003E0, 0xAD0003E0))


def spills_in_object(data: bytes) -> int:
    """The instructions of an ELF object that access the stack with vector registers; 0 for other formats."""
    if not data.startswith(_ELF):
        return 0
    (machine,) = struct.unpack_from("<H", data, 18)
    codes = list(_executable_sections(data))
    if machine == _MACHINE_X86_64:
        return sum(sum(1 for _ in _X86.finditer(code)) for code in codes)
    if machine == _MACHINE_AARCH64:
        return sum(_count_words(code) for code in codes)
    return 0


def _executable_sections(data: bytes) -> Iterator[bytes]:
    (offset,) = struct.unpack_from("<Q", data, 40)
    (count,) = struct.unpack_from("<H", data, 60)
    for index in range(count):
        _, _, flags, _, start, size, *_ = _SECTION.unpack_from(data, offset + index * _SECTION.size)
        if flags & _EXECUTABLE:
            yield data[start : start + size]


def _count_words(code: bytes) -> int:
    words = np.frombuffer(code[: len(code) // 4 * 4], "<u4")
    return int(sum(np.count_nonzero((words & mask) == value) for mask, value in _AARCH64))
