"""What users' classes and the parts of a search share: `derived_object`, contexts, seeds, counts of cores."""

from __future__ import annotations

import contextlib
import os
import random
import threading
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

from ..errors import TuningError
from ..processor import usable_cores
from ..runtime.registry import get_global_func, register_func
from ..tir.function import IRModule
from ..tir.structural_digest import structural_hash

Class = TypeVar("Class", bound=type)
Result = TypeVar("Result")
# What builders and runners say of a program past its limit: programs look for these words, TVM's.
TIMED_OUT = "Timeout, killed after {:g} seconds"


class Extensible:
    """Base of everything that users may write themselves, as a subclass."""

    kinds: ClassVar[dict[str, Callable[..., Any]]] = {}
    what: ClassVar[str] = "part of a search"
    protocols: ClassVar[dict[str, type[Extensible]]] = {}
    default: ClassVar[str | None] = None

    def __init_subclass__(cls, kind: str = "", what: str = "", default: str | None = None, **kwargs: Any) -> None:
        """A protocol says `what` its `kinds` are in messages; classes with a `kind` are made by that name: `Builder.create("local")`."""
        super().__init_subclass__(**kwargs)
        if what:
            cls.kinds, cls.what, cls.default = {}, what, default
            cls.protocols[what] = cls
        if kind:
            cls.kinds[kind] = cls

    @classmethod
    def create(cls, kind: Any = None, *args: Any, **kwargs: Any) -> Any:
        """What a name stands for: an object, or of rules, postprocessors, mutators and callbacks those for a kind of target.

        Args:
            kind: the name; the usual one if None. A design space or database may be a function of a schedule too.

        Raises:
            TuningError: for another name.
        """
        if callable(kind) and "schedule-fn" in cls.kinds:
            return cls.kinds["schedule-fn"](kind, *args, **kwargs)
        return chosen(cls.default if kind is None else kind, cls.kinds, cls.what)(*args, **kwargs)

    def __str__(self) -> str:
        return f"meta_schedule.{type(self).__name__}({hex(id(self))})"

    def _outer(self: Any) -> Any:
        """Itself: what a decorated object calls the object that it stands for."""
        return self


def part(what: str, given: Any) -> Any:
    """A part of a search as it is given, or by its name."""
    return given if given is None or isinstance(given, Extensible) else Extensible.protocols[what].create(given)


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


def within(limit_s: float, function: Callable[..., Result], *args: Any) -> Result:
    """What a function gives, called in a thread of its own; nothing ends it when it takes too long.

    Raises:
        TimeoutError: if it takes longer than the limit.
        Exception: what the function raises.
    """
    outcome: list[Any] = []

    def call() -> None:
        try:
            outcome.append((function(*args), None))
        # SystemExit too: a thread that ends without an outcome would look like one that takes too long
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(limit_s)
    if not outcome:
        raise TimeoutError(f"it took longer than {limit_s:g} s")
    made, error = outcome[0]
    if error is not None:
        raise error
    result: Result = made
    return result


def get_global_func_with_default_on_worker(name: str | Callable[..., Any] | None, default: Callable[..., Any]) -> Callable[..., Any]:
    """A function by its name or as it is, or another one where there is none.

    Raises:
        ArgumentError: if a name is given that isn't registered.
    """
    if name is None:
        return default
    found = get_global_func(name, allow_missing=default is not None) if isinstance(name, str) else name
    made: Callable[..., Any] = default if found is None else found
    return made


@register_func("meta_schedule.remove_build_dir", override=True)
def remove_build_dir(artifact_path: str) -> None:
    """Remove a file that a builder made, and its folder if nothing else is in it."""
    with contextlib.suppress(OSError):
        os.remove(artifact_path)
        os.rmdir(os.path.dirname(artifact_path))


def shash2hex(mod: IRModule) -> str:
    """The hash of a module as 16 hexadecimal digits."""
    return f"{structural_hash(mod) & 0xFFFFFFFFFFFFFFFF:016x}"


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
    if not (seed is None or hasattr(seed, "__index__")):
        raise TuningError(f"a seed is a whole number, or None for another one each time, not {seed!r}")
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
