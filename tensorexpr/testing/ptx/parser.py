"""PTX text as kernels: parameters, shared memory, instructions with their guards, and where labels lead."""

from __future__ import annotations

import re

from ...dataclass import dataclass, field
from ...errors import ArgumentError

_PARAM = re.compile(
    r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)(?:\s+\.ptr)?(?:\s+\.(?:global|shared|local|const))?(?:\s+\.align\s+\d+)?\s+([\w$]+)"
)
_SHARED = re.compile(r"^(\.extern\s+)?(?:\.visible\s+)?\.shared\s+\.align\s+(\d+)\s+\.[bfsu](\d+)\s+([\w$]+)(?:\[(\d*)\])?\s*;")
_LOCAL = re.compile(r"^\.local\s+\.align\s+(\d+)\s+\.b8\s+([\w$]+)\[(\d+)\]")
_CONSTANT = re.compile(r"^\.(?:visible\s+)?(?:global|const)\s+\.align\s+(\d+)\s+\.b8\s+([\w$]+)\[(\d+)\](?:\s*=\s*\{([^}]*)\})?")
_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(([^)]*)\)")
_OPERAND = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,\s][^,]*")
_NAME = re.compile(r"[\w$]+")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: the words of its name, its operands as text, the predicate that guards it, and its line."""

    words: tuple[str, ...]
    operands: tuple[str, ...]
    guard: str
    negated: bool
    line: int
    text: str


@dataclass
class Kernel:
    """A kernel. `shared` and `local` are name -> (offset, bytes); `dynamic` names extern shared memory, behind all static one."""

    name: str
    params: list[tuple[str, str]]
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    shared: dict[str, tuple[int, int]] = field(default_factory=dict)
    local: dict[str, tuple[int, int]] = field(default_factory=dict)
    constants: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    dynamic: tuple[str, ...] = ()
    dynamic_alignment: int = 128  # of what is behind static shared memory

    @property
    def static_bytes(self) -> int:
        """Bytes of static shared memory."""
        return max((at + size for at, size in self.shared.values()), default=0)

    @property
    def local_bytes(self) -> int:
        """Bytes of local memory of a thread."""
        return max((at + size for at, size in self.local.values()), default=0)


def parse(text: str) -> dict[str, Kernel]:
    """The kernels of a PTX module by name.

    Raises:
        ArgumentError: if there are none.
    """
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    kernels: dict[str, Kernel] = {}
    shared: dict[str, tuple[int, int]] = {}
    constants: dict[str, tuple[int, bytes]] = {}
    dynamic: dict[str, int] = {}
    current: Kernel | None = None
    pending = statement = ""
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.split("//")[0].strip()
        if current is None:
            pending = f"{pending} {line}".strip()
            entry = _ENTRY.search(pending)
            if entry:
                params = [(found[2], found[1]) for found in _PARAM.findall(entry[2])]
                current = kernels[entry[1]] = Kernel(entry[1], params)
                pending = ""
            elif pending.endswith(";"):
                _variable(pending, shared, constants, dynamic)
                pending = ""
            elif line.startswith((".version", ".target", ".address_size")):
                pending = ""
            continue
        if line == "}":
            current = None
        elif line.startswith(".shared"):
            _variable(line, shared, constants, dynamic)  # of this kernel alone, by its name
        elif line:
            statement = f"{statement} {line}".strip()
            if line.endswith((";", ":", "{", "}", ")")) or line.startswith("."):
                for one in re.findall(r"[^;]+;?", statement):
                    _line(current, one.strip(), number)
                _own_variable(current, statement)
                statement = ""
    if not kernels:
        raise ArgumentError("the PTX text holds no .entry")
    for kernel in kernels.values():
        used = {name for instruction in kernel.instructions for name in _NAME.findall(instruction.text)}
        kernel.shared.update(_laid_out({name: part for name, part in shared.items() if name in used}))
        kernel.dynamic = tuple(name for name in dynamic if name in used)
        kernel.dynamic_alignment = max(128, *(dynamic[name] for name in kernel.dynamic), 0)
        kernel.constants = {name: part for name, part in constants.items() if name in used}
    return kernels


def _laid_out(parts: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """Alignments and sizes as offsets and sizes."""
    at, found = 0, {}
    for name, (alignment, size) in parts.items():
        at = -(-at // alignment) * alignment
        found[name] = (at, size)
        at += size
    return found


def _variable(text: str, shared: dict[str, tuple[int, int]], constants: dict[str, tuple[int, bytes]], dynamic: dict[str, int]) -> None:
    found = _SHARED.match(text)
    if found and (found[1] or found[5] == ""):
        dynamic[found[4]] = int(found[2])
    elif found:
        shared[found[4]] = (int(found[2]), int(found[5] or 1) * int(found[3]) // 8)
        return
    constant = _CONSTANT.match(text)
    if constant:
        data = bytes(int(value, 0) & 255 for value in (constant[4] or "").split(",") if value.strip())
        constants[constant[2]] = (int(constant[1]), data.ljust(int(constant[3]), b"\0"))


def _own_variable(kernel: Kernel, line: str) -> None:
    found = _LOCAL.match(line)
    if found:
        alignment, size = int(found[1]), int(found[3])
        kernel.local[found[2]] = (-(-kernel.local_bytes // alignment) * alignment, size)


def _line(kernel: Kernel, line: str, number: int) -> None:
    label = re.match(r"^([\w$]+):\s*(.*)$", line)
    if label:
        kernel.labels[label[1]] = len(kernel.instructions)
        line = label[2]
    if not line or line[0] in ".{}(":
        return
    guard, negated = "", False
    if line[0] == "@":
        word, line = line[1:].split(None, 1)
        negated, guard = word.startswith("!"), word.lstrip("!")
    name, _, rest = line.rstrip(";").strip().partition(" ")
    name, tab, more = name.partition("\t")
    rest = f"{more} {rest}" if tab else rest
    operands = tuple(operand.strip() for operand in _OPERAND.findall(rest))
    kernel.instructions.append(Instruction(tuple(name.split(".")), operands, guard, negated, number, line.rstrip(";")))
