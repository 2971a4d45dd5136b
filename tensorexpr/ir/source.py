"""Places in the text of a program."""

from __future__ import annotations

from ..dataclass import dataclass


@dataclass(frozen=True, slots=True)
class SourceName:
    """The name of a text: a file, or ``<script>``."""

    name: str

    def same_as(self, other: object) -> bool:
        """Whether the other is the name of the same text."""
        return self == other


@dataclass(frozen=True, slots=True)
class Span:
    """Part of a text. Lines and columns count from 1; the end column is that behind the last character."""

    source_name: SourceName
    line: int
    end_line: int
    column: int
    end_column: int

    def same_as(self, other: object) -> bool:
        """Whether the other is the same place."""
        return self == other

    def __str__(self) -> str:
        return f"{self.source_name.name}:{self.line}:{self.column}"


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
