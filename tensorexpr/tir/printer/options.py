"""How a program is printed: names of the language, numbers of lines, parts that are marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...dataclass import dataclass, field
from ..buffer import Buffer
from ..expr import PrimExpr
from ..function import IRModule, PrimFunc
from ..node import Object
from ..object_path import ObjectPath
from ..stmt import Stmt
from ..structured import Structured
from .highlight import tokens

# Control characters: names have none, and in strings they are escaped.
MARK_LINE, MARK_BEGIN, MARK_END = "\x01", "\x02", "\x03"
_MARKS = str.maketrans("", "", MARK_LINE + MARK_BEGIN + MARK_END)


@dataclass(slots=True)
class Options:
    """The options of `script()`, and the parts that they mark in one program."""

    name: str | None = None
    show_meta: bool = False
    ir_prefix: str = "I"
    tir_prefix: str = "T"
    relax_prefix: str = "R"
    module_alias: str = "cls"
    buffer_dtype: str = "float32"
    int_dtype: str = "int32"
    float_dtype: str = "void"
    verbose_expr: bool = False
    indent_spaces: int = 4
    print_line_numbers: bool = False
    num_context_lines: int = -1
    syntax_sugar: bool = True
    show_object_address: bool = False
    show_all_struct_info: bool = True
    path_to_underline: Sequence[ObjectPath] | None = None
    path_to_annotate: Mapping[ObjectPath, str] | None = None
    obj_to_underline: Sequence[Any] | None = None
    obj_to_annotate: Mapping[Any, str] | None = None
    marked: set[int] = field(default_factory=set)  # by identity: what is marked wherever it stands
    marked_in: dict[int, set[int]] = field(default_factory=dict)  # owner -> expressions marked in it alone
    remarks: dict[int, str] = field(default_factory=dict)
    metadata: dict[str, list[Any]] = field(default_factory=dict)  # what a text refers to by kind and number

    def with_metadata(self, text: str) -> str:
        """A text with what it refers to, or a remark that this is left out."""
        if not self.metadata:
            return text
        if not self.show_meta:
            return f"{text}\n\n# Metadata omitted. Use show_meta=True in script() method to show it."
        # Backslashes first: those that come before quotes must not be doubled.
        saved = Object._printers["json"](self.metadata).replace("\\", "\\\\").replace('"', '\\"')
        return f'metadata = tvm.ir.load_json("""{saved}""")\n{text}'

    def bind(self, program: Any) -> Options:
        """Find the parts of `program` that are marked."""
        self.marked.update(id(thing) for thing in self.obj_to_underline or ())
        self.remarks.update({id(thing): text for thing, text in dict(self.obj_to_annotate or {}).items()})
        for path in self.path_to_underline or ():
            passed = path.follow(program)
            owner, part = _owner_and_part(passed)
            if part is None:
                self.marked.add(id(owner))
            else:
                self.marked_in.setdefault(id(owner), set()).add(id(part))
        for path, text in dict(self.path_to_annotate or {}).items():
            self.remarks[id(_owner_and_part(path.follow(program))[0])] = text
        return self

    def finished(self, text: str) -> str:
        """The text with its marks as lines of carets, other prefixes, and the numbers of its lines."""
        lines = self._prefixed(text).split("\n")
        if self.indent_spaces != 4:
            lines = [_indented(line, self.indent_spaces) for line in lines]
        wanted = [number for number, line in enumerate(lines) if line.translate(_MARKS) != line]
        kept = self._kept(wanted, len(lines))
        digits = len(str(len(lines)))
        out: list[str] = []
        last = -1
        for number in kept:
            if number > last + 1:
                out.append(f"(... {number - last - 1} lines skipped ...)")
            begin = f"{number + 1:>{digits}} " if self.print_line_numbers else ""
            plain, carets = _underlined(lines[number])
            out.append(begin + plain)
            out += [" " * len(begin) + carets] if carets else []
            last = number
        if last + 1 < len(lines):
            out.append(f"(... {len(lines) - last - 1} lines skipped ...)")
        return "\n".join(out)

    def _kept(self, marked: Sequence[int], count: int) -> list[int]:
        """The numbers of the lines that are shown: those near a mark, if only so many are asked for."""
        if self.num_context_lines < 0 or not marked:
            return list(range(count))
        near = self.num_context_lines
        return [n for n in range(count) if any(abs(n - m) <= near for m in marked)]

    def _prefixed(self, text: str) -> str:
        """The text with other names for T and I, but not in strings."""
        new = {"T": self.tir_prefix, "I": self.ir_prefix}
        if new == {"T": "T", "I": "I"}:
            return text
        return "".join(piece if kind == "string" else _renamed(piece, kind, new) for kind, piece in tokens(text))


def _renamed(piece: str, kind: str | None, new: Mapping[str, str]) -> str:
    if kind == "builtin":
        return new.get(piece[0], piece[0]) + piece[1:]
    if kind == "decorator":
        return f"@{new.get(piece[1], piece[1])}{piece[2:]}" if piece[2:3] == "." else piece
    if kind == "comment":
        for old, name in new.items():
            piece = piece.replace(f" {old}.", f" {name}.")
            piece = piece[: -len(old)] + name if piece.endswith(f" as {old}") else piece
    return piece


def _indented(line: str, width: int) -> str:
    mark = MARK_LINE if line.startswith(MARK_LINE) else ""
    body = line.removeprefix(MARK_LINE)
    spaces = len(body) - len(body.lstrip(" "))
    return mark + " " * (spaces // 4 * width) + body[spaces:]


def _underlined(line: str) -> tuple[str, str]:
    """A line without its marks, and the carets that belong under it."""
    plain = line.translate(_MARKS)
    if line.startswith(MARK_LINE):
        indent = len(plain) - len(plain.lstrip(" "))
        return plain, " " * indent + "^" * (len(plain) - indent)
    depth, carets = 0, ""
    for char in line:
        if char == MARK_BEGIN:
            depth += 1
        elif char == MARK_END:
            depth -= 1
        else:
            carets += "^" if depth > 0 else " "
    return plain, carets.rstrip()


def _owner_and_part(passed: Sequence[Any]) -> tuple[Any, PrimExpr | None]:
    """Of what a path passes: the innermost statement, buffer or function, and the expression in it that is meant, if any."""
    part = next((thing for thing in reversed(passed) if isinstance(thing, PrimExpr)), None)
    owner = next(
        (thing for thing in reversed(passed) if isinstance(thing, (Stmt, Buffer, PrimFunc, IRModule)) or _is_line(thing)), passed[0]
    )
    if isinstance(owner, Structured):
        return owner, None  # of a graph a line is marked
    return owner, part if part is not None and _place(passed, part) > _place(passed, owner) else None


def _is_line(thing: Any) -> bool:
    return isinstance(thing, Structured) and (thing.structural_line or thing.structural_scope)


def _place(passed: Sequence[Any], thing: Any) -> int:
    return next(number for number, other in enumerate(passed) if other is thing)
