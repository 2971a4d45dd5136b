"""What users' classes and the parts of a search share: `derived_object`, contexts, seeds, counts of cores."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ..errors import TuningError
from ..processor import usable_cores

if TYPE_CHECKING:
    from .tune_context import TuneContext

Class = TypeVar("Class", bound=type)


class Extensible:
    """Base of everything that users may write themselves, as a subclass."""

    kinds: ClassVar[dict[str, Callable[..., Any]]] = {}

    def __init_subclass__(cls, kind: str = "", **kwargs: Any) -> None:
        """Classes with a `kind` are made by that name: `Builder.create("local")`."""
        super().__init_subclass__(**kwargs)
        if kind:
            cls.kinds[kind] = cls

    def _outer(self: Any) -> Any:
        """Itself: what a decorated object calls the object that it stands for."""
        return self


class Contextual(Extensible):
    """Base of the parts of a search that are told for which task they work."""

    def _initialize_with_tune_context(self, context: TuneContext) -> None:
        """Take the task; older programs call it `initialize_with_tune_context`."""
        self.initialize_with_tune_context(context)

    def initialize_with_tune_context(self, context: TuneContext) -> None:
        """Take the task. Nothing is remembered here."""


def derived_object(cls: Class) -> Class:
    """Decorator of a user's class that derives from one of the `Py` classes.

    Example::

        @ms.derived_object
        class Narrow(ms.schedule_rule.PyScheduleRule):
            def apply(self, sch, block):
                return [sch]

    A plain subclass works as well: there is nothing behind these classes that would have to be told.

    Raises:
        TuningError: if it derives from none.
    """
    if not isinstance(cls, type) or not issubclass(cls, Extensible):
        raise TuningError(
            f"derived_object decorates a class that derives from PyScheduleRule, PyRunner or another of the Py classes, not {cls!r}"
        )
    cls._cls = cls  # type: ignore[attr-defined]
    return cls


def cpu_count(logical: bool = True) -> int:
    """The cores that this process may use."""
    return usable_cores()


def thread_count(threads: int | str) -> int:
    """A number of threads as users give it.

    Raises:
        TuningError: if it is neither a number from 1 up nor "physical" or "logical".
    """
    if threads in ("physical", "logical"):
        return usable_cores()
    if not isinstance(threads, int) or threads < 1:
        raise TuningError(f'a number of threads is at least 1, or "physical" or "logical", not {threads!r}')
    return threads


def fork_seed(seed: int | None, n: int) -> list[int]:
    """Seeds for n searches, drawn from one; from the system's randomness if it is None."""
    rng = random.Random(None if seed is None or seed < 0 else seed)
    return [rng.randrange(1, 1 << 31) for _ in range(n)]


def chosen(kind: Any, known: Mapping[str, Callable[..., Any]], what: str) -> Callable[..., Any]:
    """What a name stands for.

    Raises:
        TuningError: if the name is not known.
    """
    name = kind.replace("_", "-") if isinstance(kind, str) and kind not in known else kind  # releases of 2022 write replay_trace
    if not isinstance(name, str) or name not in known:
        raise TuningError(f"no {what} is called {kind!r}; known: {', '.join(known)}")
    return known[name]
