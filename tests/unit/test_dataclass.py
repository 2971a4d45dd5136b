"""`tensorexpr.dataclass` makes the classes that the standard library makes, later."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
import threading
from typing import Any, ClassVar

import pytest

from tensorexpr.dataclass import InitVar, dataclass, field, fields, replace

BOTH = pytest.mark.parametrize("decorate", [dataclass, dataclasses.dataclass], ids=["later", "at once"])
OPTIONS = [
    {},
    {"frozen": True},
    {"eq": False},
    {"repr": False},
    {"slots": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "eq": False, "slots": True, "repr": False},
]


def classes(decorate: Any, options: dict[str, bool]) -> tuple[Any, Any]:
    """A class and one that inherits it, with all that fields can have."""

    @decorate(**options)
    class Point:
        only: int = field(default=1, kw_only=True)
        x: int
        y: list[int] = field(default_factory=list)
        scale: InitVar[int] = 2  # type: ignore[assignment]  # mypy does not know what decorates it
        count: ClassVar[int] = 3
        hidden: int = field(default=7, repr=False)

        def __post_init__(self, scale: int) -> None:
            object.__setattr__(self, "hidden", self.hidden * scale)

    @decorate(**options)
    class Named(Point):
        name: str = "a"
        x: int = 5

    return Point, Named


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("is_base_first", [True, False])
def test_a_class_is_as_the_standard_librarys(options: dict[str, bool], is_base_first: bool) -> None:
    for place in (0, 1):
        ours, theirs = (classes(decorate, options) for decorate in (dataclass, dataclasses.dataclass))
        if is_base_first:
            ours[0](1)
        assert seen(ours[place]) == seen(theirs[place])


def seen(cls: Any) -> list[Any]:
    """What programs see of a class and of what it makes."""
    one, same, other = cls(1, [2], 3), cls(1, y=[2], scale=3), cls(x=2, only=4)
    found: list[Any] = [one == same, one == other, one != same, one.hidden, other.y, cls.count, repr(one).partition("object at")[0]]
    found += [
        cls.__match_args__,
        str(inspect.signature(cls)),
        cls.__qualname__,
        cls.__module__,
        cls.__hash__ is None,
        cls.__hash__ is object.__hash__,
    ]
    found += [[(f.name, f.type, f.default, f.repr) for f in fields(cls)], dataclasses.is_dataclass(cls), dataclasses.asdict(one)]
    found += [replace(one, x=9, scale=1).x, getattr(cls, "__slots__", None), hasattr(one, "__dict__"), cls.__dataclass_params__.frozen]
    found += [copy.copy(one).hidden, getattr(cls, "name", None) if "__slots__" not in vars(cls) else None]
    for change in ((setattr, "x", 4), (delattr, "x"), (setattr, "unknown", 4)):
        try:
            found.append((change[0](one, *change[1:]), getattr(one, "x", None)))
        except (AttributeError, TypeError):  # of a frozen class with slots the standard library's says that it isn't its own subclass
            found.append("refused")
    for wrong in ((), (1, 2, 3, 4, 5, 6, 7)):
        try:
            found.append(cls(*wrong).x)
        except TypeError as error:
            found.append(str(error))
    match other:
        case cls(x=2, y=rest):
            found.append(rest)
    return found


@pytest.mark.parametrize(
    "first", [repr, hash, fields, dataclasses.is_dataclass, lambda one: one == one, lambda one: one.__dataclass_params__]
)
def test_whatever_is_asked_first_is_answered(first: Any) -> None:
    def made(decorate: Any) -> Any:
        @decorate(frozen=True, slots=True)
        class Pair:
            a: int
            b: str = "c"

        return Pair

    ours, theirs = (made(decorate) for decorate in (dataclass, dataclasses.dataclass))
    for cls in (ours, theirs):  # as what makes nodes does
        made_first = object.__new__(cls)
        for name, value in (("a", 1), ("b", "c")):
            object.__setattr__(made_first, name, value)
        cls.first = made_first
    assert str(first(ours.first)) == str(first(theirs.first))


def test_what_a_class_says_itself_stays() -> None:
    @dataclass(frozen=True)
    class Own:
        a: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

    @dataclass
    class Hashed:
        a: int

        def __hash__(self) -> int:
            return 5

    assert (repr(Own(1)), Own(1) == 3, hash(Own(1)) == hash(Own(1))) == ("own", True, True)
    assert hash(Hashed(3)) == 5


def test_many_threads_need_it_at_once() -> None:
    for _ in range(20):

        @dataclass(frozen=True, slots=True)
        class Late:
            a: int

        start = threading.Barrier(4)
        found: list[bool] = []

        def make(start: threading.Barrier = start, cls: Any = Late, found: list[bool] = found) -> None:
            start.wait()
            found.append(cls(1) == cls(1) and hash(cls(2)) == hash(cls(2)))

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [True] * 4


@dataclass(frozen=True, slots=True)
class Kept:
    """Where pickle finds it."""

    a: int
    b: tuple[int, ...] = ()


def test_it_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(Kept(1, (2,)))) == Kept(1, (2,)) == copy.deepcopy(Kept(1, (2,)))


COUNT = """
import dataclasses, gc
made, at_once = [], dataclasses._process_class
dataclasses._process_class = lambda *args, **kwargs: made.append(args) or at_once(*args, **kwargs)
import tensorexpr.relax, tensorexpr.relax.frontend.onnx
from tensorexpr.dataclass import _Unmade
print(len(made), sum(isinstance(one, _Unmade) for one in gc.get_objects()))
"""


def test_imports_make_few() -> None:
    done = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True)
    made, known = map(int, done.stdout.split())
    assert made < known / 3, "a class needs its methods while a module is imported: what is asked of it there?"
