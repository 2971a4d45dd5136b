"""Texts of programs with their syntax trees."""

from __future__ import annotations

import ast
import inspect
from typing import Any

from ..source import Source as Text


class Source:
    """A text, and where it stands.

    Args:
        program: a text, a syntax tree, or a function or class whose source is read.

    Raises:
        ParseError: if a function or class has no source.
    """

    def __init__(self, program: Any) -> None:
        self._tree = program if isinstance(program, ast.AST) else None
        text = ast.unparse(program) if isinstance(program, ast.AST) else program
        self._text = Text.of_text(text, "<str>") if isinstance(text, str) else Text.of(text)
        self.source_name = self._text.filename
        self.start_line = self._text.first_line
        self.start_column = self._text.indent
        self.source = self._text.text if not isinstance(program, str) else program
        self.full_source = self.source if isinstance(program, (str, ast.AST)) else _file_of(program, self.source)

    def as_ast(self) -> ast.AST:
        """The syntax tree.

        Raises:
            ParseError: where the text is no Python.
        """
        return self._text.tree() if self._tree is None else self._tree


def _file_of(program: Any, otherwise: str) -> str:
    """All of the file that a function or class stands in."""
    try:
        return "".join(inspect.findsource(program)[0])
    except (OSError, TypeError):
        return otherwise
