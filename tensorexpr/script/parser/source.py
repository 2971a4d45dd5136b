"""The text of a program, and errors that point into it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable
from contextlib import suppress
from difflib import get_close_matches
from typing import Any

from ...dataclass import dataclass
from ...errors import ParseError

_TAB = 4


@dataclass(frozen=True, slots=True)
class Source:
    """A text, and where it stands: the file, the number of its first line, and by how much it was moved to the left."""

    text: str
    filename: str = "<script>"
    first_line: int = 1
    indent: int = 0

    @staticmethod
    def of(thing: Any) -> Source:
        """The source of a function or class.

        Raises:
            ParseError: if there is none, as for what was typed at a prompt.
        """
        try:
            lines, first = _class_lines(thing) if inspect.isclass(thing) else inspect.getsourcelines(thing)
            filename = inspect.getsourcefile(_member(thing)) or "<script>"
        except (OSError, TypeError) as error:
            raise ParseError(
                f"the source of {getattr(thing, '__name__', thing)!r} can't be found ({error}); "
                "scripts are read from files, so write it to one or pass its text to tensorexpr.script.from_source"
            ) from None
        return Source.of_text("".join(lines), filename, max(first, 1))

    @staticmethod
    def of_text(text: str, filename: str = "<script>", first_line: int = 1) -> Source:
        """A text that may stand further to the right than Python wants it; lines of strings may stand further left."""
        # Before columns are counted: Python's tokenizer and the marks under an error would disagree on tabs.
        lines = text.expandtabs(_TAB).split("\n")
        begin = next((line for line in lines if line.strip()), "")
        indent = len(begin) - len(begin.lstrip(" "))
        # A line of a string that stands further left is moved as far as it has spaces.
        moved = [line[min(indent, len(line) - len(line.lstrip(" "))) :] for line in lines]
        return Source("\n".join(moved), filename, first_line, indent)

    def tree(self) -> ast.Module:
        """The syntax tree of the text, which nothing executes.

        Raises:
            ParseError: where the text is no Python syntax.
        """
        try:
            return ast.parse(self.text, self.filename)
        except SyntaxError as error:
            line, column = error.lineno or 1, max(error.offset or 1, 1)
            raise self.at(line, column - 1, 1, f"this is no Python syntax: {error.msg}") from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise ParseError(f"{self.filename}: the text can't be read: {error or type(error).__name__}") from None

    def error(self, node: ast.AST, message: str) -> ParseError:
        """An error about `node`."""
        line, start = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        text = self._line(line)
        # ast counts columns in bytes of UTF-8, a mark stands under characters: after "ä" they are one apart.
        first = len(text.encode()[:start].decode(errors="ignore"))
        last = len(text)
        # A node of several lines is marked to the end of its first one.
        if getattr(node, "end_lineno", line) == line and getattr(node, "end_col_offset", None) is not None:
            last = len(text.encode()[: node.end_col_offset].decode(errors="ignore"))  # type: ignore[attr-defined]
        return self.at(line, first, max(last - first, 1), message)

    def at(self, line: int, column: int, width: int, message: str) -> ParseError:
        """An error about `width` characters from `column` (counted from 0) on, of a line of the text."""
        number, text = line + self.first_line - 1, self._line(line)
        margin = " " * len(str(number))
        marked = f"{' ' * column}{'^' * max(min(width, len(text) - column), 1)}"
        place = f"{self.filename}:{number}:{column + self.indent + 1}"
        return ParseError(
            f"{place}: {message}\n  {number} | {text}\n  {margin} | {marked}",
            self.filename,
            number,
            column + self.indent + 1,
            message,
            width,
        )

    def _line(self, number: int) -> str:
        lines = self.text.split("\n")
        return lines[number - 1] if 0 < number <= len(lines) else ""


def _member(thing: Any) -> Any:
    """A function of a class, which knows its file and line when the class itself does not, as in a notebook; else the thing itself."""
    own = [member for member in vars(thing).values() if inspect.isfunction(member)] if inspect.isclass(thing) else []
    return min(own, key=lambda function: function.__code__.co_firstlineno) if own else thing


def _class_lines(thing: type) -> tuple[list[str], int]:
    """The lines of a class and the number of the first: those around its functions, as several classes may have one name."""
    member = _member(thing)
    if member is thing:
        return inspect.getsourcelines(thing)
    lines, _ = inspect.findsource(member)
    line = member.__code__.co_firstlineno
    for node in ast.walk(ast.parse("".join(lines))):
        # By the line of a member: `inspect` looks for the name alone, and would take the first of two classes called so.
        if isinstance(node, ast.ClassDef) and node.name == thing.__name__ and node.lineno <= line <= (node.end_lineno or line):
            # Decorators stand above the line with `class`.
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            return lines[first - 1 : node.end_lineno], first
    return inspect.getsourcelines(thing)


def suggestion(name: str, known: Iterable[str], shown: int = 12) -> str:
    """What to write in place of `name`: close names if there are any, else all if they are few."""
    names = sorted(set(known))
    close = get_close_matches(name, names, 3, 0.6)
    if close:
        return f"; did you mean {' or '.join(close)}?"
    return f"; known here: {', '.join(names)}" if 0 < len(names) <= shown else ""


def enclosed(function: Any) -> dict[str, Any]:
    """The variables of enclosing functions that a function uses, but for those that are assigned only after the definition."""
    found: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        # An empty cell raises ValueError: a name that is assigned below the decorated function.
        with suppress(ValueError):
            found[name] = cell.cell_contents
    return found
