"""A thin writer of LLVM IR text: fresh names, blocks, instructions, declarations and metadata.

A function is a list of lines. An item may itself be a list: a place reserved for lines that are known later (the
phi nodes at the head of a loop, what is hoisted in front of it).
"""

from __future__ import annotations

from typing import TypeAlias

from ..dataclass import dataclass, field
from ..errors import CodegenError
from .types import symbol

Lines: TypeAlias = "list[str | list[str]]"

LINE_LIMIT = 200_000
OPEN_TO_VECTORS = "tensorexpr.loop.open"
"""The mark of a loop that LLVM may vectorise; LLVM itself doesn't know it."""


def flatten(lines: Lines) -> list[str]:
    """The lines with reserved places filled in."""
    flat: list[str] = []
    for item in lines:
        if type(item) is str:
            flat.append(item)
        # A place may have got no lines: then it leaves nothing.
        else:
            flat += item
    return flat


@dataclass(slots=True)
class ModuleText:
    """What the functions of a module share: declarations, metadata, and the cap on its size."""

    limit: int = LINE_LIMIT
    lines: int = 0
    functions: list[str] = field(default_factory=list)
    declarations: dict[str, str] = field(default_factory=dict)
    constants: list[str] = field(default_factory=list)
    attributes: list[str] = field(default_factory=list)
    metadata: list[str] = field(default_factory=list)
    _shared: dict[str, int] = field(default_factory=dict)

    def declare(self, name: str, result: str, *params: str, attributes: str = "") -> str:
        """Declare an outside function once; its global name."""
        spelled = symbol(name)
        # LLVM refuses a module that declares a function twice.
        if spelled not in self.declarations:
            self.declarations[spelled] = f"declare {result} {spelled}({', '.join(params)}){attributes}"
        return spelled

    def node(self, text: str) -> int:
        """The number of a shared metadata node."""
        number = self._shared.get(text)
        if number is None:
            number = self._shared[text] = len(self.metadata)
            self.metadata.append(f"!{number} = {text}")
        return number

    def distinct(self, text: str) -> int:
        """The number of a metadata node of its own."""
        self.metadata.append(f"!{len(self.metadata)} = distinct {text}")
        return len(self.metadata) - 1

    def loop_node(self, open_to_vectors: bool = False, at_once: int = 1) -> int:
        """The number of a fresh loop identity under which LLVM doesn't vectorise: our passes have decided.

        Args:
            open_to_vectors: nobody has decided on this one, so LLVM may.
            at_once: iterations that are written one behind the other; what is left of them gets a loop of its own.
        """
        copies = '"llvm.loop.unroll.disable"' if at_once == 1 else f'"llvm.loop.unroll.count", i32 {at_once}'
        decided = (f'"{OPEN_TO_VECTORS}"',) if open_to_vectors else (copies, '"llvm.loop.vectorize.enable", i1 false')
        hints = [self.node(f"!{{!{hint}}}") for hint in decided]
        number = len(self.metadata)
        # A loop's identity refers to itself, which keeps it from being merged with another one's.
        self.metadata.append(f"!{number} = distinct !{{!{number}, {', '.join(f'!{hint}' for hint in hints)}}}")
        return number

    def string(self, value: str) -> str:
        """The global name of a zero-terminated string constant."""
        name = f"@.string.{len(self.constants)}"
        data = value.encode() + b"\0"
        # A quote would end the text, and a backslash starts an escape.
        escaped = "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in data)
        self.constants.append(f'{name} = private unnamed_addr constant [{len(data)} x i8] c"{escaped}"')
        return name

    def array(self, data: bytes, alignment: int) -> str:
        """The global name of constant bytes."""
        name = f"@.array.{len(self.constants)}"
        escaped = "".join(f"\\{byte:02X}" for byte in data)
        self.constants.append(f'{name} = private unnamed_addr constant [{len(data)} x i8] c"{escaped}", align {alignment}')
        return name

    def too_large(self) -> CodegenError:
        """The error of a module that has outgrown the cap."""
        return CodegenError(
            f"the generated code exceeds {self.limit} lines of LLVM IR: unroll less (a smaller auto_unroll_max_step, fewer or shorter "
            "unrolled axes), tile smaller, or raise line_limit of codegen.emit.emit_module"
        )

    def text(self) -> str:
        """The whole module."""
        parts = [*self.constants, *self.functions, *self.declarations.values(), *self.attributes, *self.metadata]
        return "\n".join(parts) + "\n"


class FunctionText:
    """The body of one function while it is written; `block` is the label of the block that receives lines."""

    __slots__ = ("_count", "block", "entry", "lines", "module")

    def __init__(self, module: ModuleText) -> None:
        self.module = module
        self.entry: list[str] = []
        self.lines: Lines | list[str] = []
        self.block = "start"
        self._count = 0

    def emit(self, instruction: str) -> None:
        """Append an instruction without a result."""
        module = self.module
        module.lines += 1
        if module.lines > module.limit:
            raise module.too_large()
        self.lines.append("  " + instruction)

    def value(self, instruction: str) -> str:
        """Append an instruction; the name of its result."""
        module = self.module
        module.lines += 1
        if module.lines > module.limit:
            raise module.too_large()
        self._count += 1
        name = f"%v{self._count}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def fresh(self, hint: str) -> str:
        """A fresh name without its sigil, for labels and values that are defined later."""
        self._count += 1
        return f"{hint}.{self._count}"

    def comment(self, text: str) -> None:
        """Append a line for readers."""
        self.lines.append(f"  ; {text}")

    def reserve(self) -> list[str]:
        """A place here whose lines come later."""
        place: list[str] = []
        self.lines.append(place)  # type: ignore[arg-type]
        return place

    def start(self, label: str) -> None:
        """Begin a block."""
        self.lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        """End the block with a jump."""
        self.emit(f"br label %{label}")

    def branch(self, condition: str, if_true: str, if_false: str, metadata: str = "") -> None:
        """End the block with a two-way branch."""
        self.emit(f"br i1 {condition}, label %{if_true}, label %{if_false}{metadata}")

    def phi(self, llvm_type: str, *incoming: tuple[str, str]) -> str:
        """A phi of (value, label) pairs; the value itself where all agree."""
        # A value that no arm changed needs no phi.
        if len({value for value, _ in incoming}) == 1:
            return incoming[0][0]
        return self.value(f"phi {llvm_type} " + ", ".join(f"[ {value}, %{label} ]" for value, label in incoming))
