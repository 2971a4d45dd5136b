"""Tests that say what a transform makes of a function: `CompareBeforeAfter`."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from ..tir.function import IRModule, PrimFunc
from ..tir.structural_difference import assert_structural_equal

_NAMES = {"before": ("before", "Before"), "expected": ("expected", "Expected")}


class CompareBeforeAfter:
    """Base of a test class: `transform` makes `expected` of `before`, or raises it.

    A subclass has, in its body or from a base:

    - `before` and `expected` (or `Before` and `Expected`): a function or a module; the source of one, which is a function in
      TVMScript without its decorator, or a class of such; a method or a fixture that returns one. `expected` may be a class of
      errors.
    - `transform`: a pass; a method or a fixture that returns one, or a function of what `before` is.
    - `check_well_formed`: whether sources are checked when they are parsed.
    """

    check_well_formed: bool = True

    def __init_subclass__(cls) -> None:
        for name, made in (("before", _program), ("expected", _expected)):
            given = _given(cls, name)
            if given is not None:
                setattr(cls, name, made(given))
        transform: Any = getattr(cls, "transform", None)
        if transform is not None:
            setattr(cls, "transform", _transform(cls, transform))  # noqa: B010

    @classmethod
    def _normalize_before(cls, program: Any) -> Any:
        """The fixture that `before` becomes; base classes of tests in TVM's style ask for it by this name."""
        return _program(program)

    def test_compare(self, before: Any, expected: Any, transform: Callable[[Any], Any]) -> None:
        """The test: the result is structurally equal to what was expected, names of functions aside; or the error is raised."""
        import pytest

        if inspect.isclass(expected) and issubclass(expected, Exception):
            with pytest.raises(expected):
                after = transform(before)
                pytest.fail(f"{expected.__name__} was expected; there came\n{after.script()}\nof\n{before.script()}")
            return
        if not isinstance(expected, (PrimFunc, IRModule)):
            raise TypeError(f"expected is a function, a module or a class of errors, not {type(expected).__name__}")
        after = transform(before)
        if isinstance(after, PrimFunc) and isinstance(expected, PrimFunc):
            after, expected = (func.with_attr("global_symbol", "main") for func in (after, expected))
        try:
            assert_structural_equal(after, expected)
        except ValueError as error:
            texts = (f"{name}:\n{program.script()}" for name, program in (("before", before), ("after", after), ("expected", expected)))
            raise ValueError("\n".join((str(error), *texts))) from error


def _given(cls: type, name: str) -> Any:
    """What a class has under either name; its own goes before that of a base."""
    own = [spelled for spelled in _NAMES[name] if spelled in vars(cls)]
    if len(own) > 1:
        raise TypeError(f"{cls.__name__} has both {' and '.join(own)}; keep one of them")
    found = own or [spelled for spelled in _NAMES[name] if hasattr(cls, spelled)]
    return getattr(cls, found[0]) if found else None


def _is_fixture(found: Any) -> bool:
    return hasattr(found, "_pytestfixturefunction") or type(found).__name__ == "FixtureFunctionDefinition"


def _takes_self(found: Any) -> bool:
    return callable(found) and not inspect.isclass(found) and "self" in inspect.signature(found).parameters


def _parsed(func: Any, check: bool) -> Any:
    from ..script import from_source

    return from_source("@T.prim_func\n" + textwrap.dedent(inspect.getsource(func)), check_well_formed=check)


def _program(given: Any) -> Any:
    """A fixture of the function or module."""
    import pytest

    def value(self: Any) -> Any:
        if isinstance(given, (PrimFunc, IRModule)):
            return given
        if _takes_self(given):
            return given(self)
        if not inspect.isclass(given):
            return _parsed(given, self.check_well_formed)
        members = {name: member for name, member in vars(given).items() if not name.startswith("_")}
        funcs = {name: m if isinstance(m, PrimFunc) else _parsed(m, self.check_well_formed) for name, m in members.items()}
        return IRModule({name: func.with_attr("global_symbol", name) for name, func in funcs.items()})

    return given if _is_fixture(given) else pytest.fixture(value)


def _expected(given: Any) -> Any:
    import pytest

    if not inspect.isclass(given) or not issubclass(given, Exception):
        return _program(given)

    def value(self: Any) -> Any:
        return given

    return pytest.fixture(value)


def _transform(cls: Any, given: Any) -> Any:
    """A fixture of a function from what `before` is to what is compared."""
    import pytest

    if _is_fixture(given):
        # pytest finds a fixture by its attribute, so the given one needs another name beside `transform`
        if not hasattr(cls, "_transform_orig"):
            cls._transform_orig = given

        def from_fixture(self: Any, _transform_orig: Any) -> Any:
            return _on(_transform_orig)

        return pytest.fixture(from_fixture)

    def value(self: Any) -> Any:
        return _on(given(self) if _takes_self(given) else given)

    return pytest.fixture(value)


def _on(transform: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A transform of modules, for functions too."""

    def apply(given: Any) -> Any:
        if isinstance(given, PrimFunc):
            return transform(IRModule({"main": given}))["main"]
        return transform(given)

    return apply
