"""The state of a program that is being built, and what a word does to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from ...errors import DeclarationError
from ...tir.buffer import Buffer
from ...tir.expr import IterVar, Var
from ...tir.stmt import Stmt
from ..parser.context import Context
from ..parser.language import MetaVar
from ..parser.values import ACTIVE, BUILDING, Builder, Loops, Opened, Pending
from .frame import IRBuilderFrame, LoopFrame, PendingFrame

# What these make surrounds what follows; anything else that waits for a name is made at once.
_FRAMES = frozenset(
    f"T.{name}"
    for name in (
        "block", "init", "allocate", "allocate_const", "realize", "attr", "LetStmt", "let", "Assert", "launch_thread", "decl_buffer",
        "While", "If", "Then", "Else",
    )
)  # fmt: skip


@contextmanager
def building(context: Context) -> Iterator[tuple[list[Any], Callable[[Any], Any]]]:
    """A builder for functions that a script calls; the items that they make, and what the script takes for a function's value."""
    with IRBuilder() as builder:
        builder.context = context
        frame = IRBuilderFrame(builder)
        builder.frames.append(frame)
        yield frame.items, _for_scripts


def _for_scripts(value: Any) -> Any:
    """A frame that a function only passes on is the definition itself, which the script opens where it is named."""
    return value.pending if isinstance(value, PendingFrame) else value


BUILDING[:] = [building]


class IRBuilder:
    """Collects what is built within ``with IRBuilder() as ib:``; `get` has the result, a statement, function or module."""

    def __init__(self) -> None:
        self.context = Context()
        self.function_name = ""  # of the last function that was finished
        self.frames: list[IRBuilderFrame] = []
        self._result: Any = None

    def __enter__(self) -> IRBuilder:
        ACTIVE.builders.append(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        # not the last one: builders may be left in another order than they were entered
        ACTIVE.builders.remove(self)

    @staticmethod
    def current() -> IRBuilder:
        """The innermost builder.

        Raises:
            DeclarationError: outside of any.
        """
        if not ACTIVE.builders:
            raise DeclarationError("no IRBuilder is active; write `with IRBuilder() as ib:` around this")
        found: IRBuilder = ACTIVE.builders[-1]
        return found

    @staticmethod
    def is_in_scope() -> bool:
        """Whether a builder is active."""
        return bool(ACTIVE.builders)

    def get(self) -> Any:
        """What has been built.

        Raises:
            DeclarationError: if nothing is finished yet.
        """
        if self._result is None:
            raise DeclarationError("nothing has been built yet; leave the outermost frame first")
        return self._result

    @staticmethod
    def name(s: str, v: Any) -> Any:
        """Name a variable, a buffer, an axis, or as name_0, name_1, ... the elements of a list; the thing itself."""
        if isinstance(v, (list, tuple)):
            for number, item in enumerate(v):
                IRBuilder.name(f"{s}_{number}", item)
        elif isinstance(v, IterVar):
            IRBuilder.name(s, v.var)
        elif isinstance(v, (Var, Buffer)):
            # What was made just now has no other user that could miss its old name.
            object.__setattr__(v, "name", s)
            if isinstance(v, Buffer):
                object.__setattr__(v.data, "name", s)
        elif hasattr(v, "name_hint"):  # a variable of a graph
            object.__setattr__(v, "name_hint", s)
        return v

    @staticmethod
    def name_many(s: Sequence[str], vs: Iterable[Any]) -> list[Any]:
        """Name things, one name for each.

        Raises:
            ValueError: if there are more of one than of the other.
        """
        return [IRBuilder.name(name, thing) for name, thing in zip(s, vs, strict=True)]

    def call(self, word: Builder, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a word of the language makes here."""
        first = [self.context] if word.in_context else [] if word.owner is None else [word.owner]
        return self.placed(word.name, word.function(*first, *args, **kwargs))

    def placed(self, name: str, made: Any) -> Any:
        """Give what a word made its place: a frame, a statement of the innermost frame, or a value."""
        if isinstance(made, Pending):
            return PendingFrame(self, made) if name in _FRAMES else self._now(made)
        if isinstance(made, Loops):
            return LoopFrame(self, made)
        if isinstance(made, Stmt):
            return self.add(made)
        if isinstance(made, list) and any(isinstance(item, Pending) for item in made):
            return [self.placed(name, item) for item in made]
        return made.value if isinstance(made, MetaVar) else made

    def _now(self, pending: Pending) -> Any:
        opened: Opened = pending.make("")
        if opened.around is not None:
            self.add(opened.around)
        return opened.value

    def add(self, item: Any) -> None:
        """Add a statement, a function, or what goes around all that follows, to the innermost frame.

        Raises:
            DeclarationError: outside of frames, if there is a result already.
        """
        if isinstance(item, Stmt):
            self.context.begin()
        if self.frames:
            self.frames[-1].add(item)
        elif self._result is not None:
            raise DeclarationError("a builder has one result, and this is a second one; put both into one frame")
        else:
            self._result = item
