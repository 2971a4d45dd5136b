"""Places in the text of a program."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceName:
    """The name of a text: a file, or ``<script>``."""

    name: str


@dataclass(frozen=True, slots=True)
class Span:
    """Part of a text. Lines and columns count from 1; the end column is that behind the last character."""

    source_name: SourceName
    line: int
    end_line: int
    column: int
    end_column: int


@dataclass(frozen=True, slots=True)
class SequentialSpan:
    """Parts of texts that one node comes from."""

    spans: tuple[Span, ...]


class SourceMap:
    """Texts by name."""

    def __init__(self) -> None:
        self.source_map: dict[SourceName, str] = {}

    def add(self, name: str, content: str) -> SourceName:
        """Keep a text under a name."""
        key = SourceName(name)
        self.source_map[key] = content
        return key
