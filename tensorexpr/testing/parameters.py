"""Values and targets that a test runs over, as fixtures of pytest, and fixtures whose values are kept.

Fixtures that change together and the fixture `target` need the plugin: `pytest_plugins = ["tensorexpr.testing.plugin"]`.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

GROUP = ("parametrize_group", "parametrize_values", "parametrize_ids")

_numbers = itertools.count()


def _check_names(values: Sequence[Any], by_dict: Mapping[str, Any] | None, ids: Sequence[str] | None) -> None:
    if by_dict is not None and (values or ids is not None):
        raise RuntimeError("parameter takes values, with ids if wished, or by_dict, which has both; not both of them")


def parameter(*values: Any, ids: Sequence[str] | None = None, by_dict: Mapping[str, Any] | None = None) -> Any:
    """A fixture with several values: each test that takes it runs once for each. It may stand in a module or in a class.

    Args:
        values: the values, unless `by_dict` gives them with their names.
        ids: names of the values.
        by_dict: values by their names.

    Raises:
        RuntimeError: for `by_dict` beside values or names.
    """
    import pytest

    _check_names(values, by_dict, ids)
    chosen, names = (list(by_dict.values()), list(by_dict)) if by_dict is not None else (list(values), ids)

    @pytest.fixture(params=chosen, ids=names)
    def as_fixture(*_owner: Any, request: Any) -> Any:
        return request.param

    return as_fixture


def parameters(*value_sets: Sequence[Any], ids: Sequence[str] | None = None) -> list[Any]:
    """Fixtures that change together: a test that takes them runs once for each set, whichever of them it takes.

    Args:
        value_sets: sets of values, one for each fixture.
        ids: names of the sets.

    Returns:
        The fixtures, in the order of the values: `size, dtype = parameters((4, "int8"), (8, "int32"))`.
    """
    number = next(_numbers)
    return [_column(number, values, ids) for values in zip(*value_sets, strict=True)]


def _column(number: int, values: Sequence[Any], ids: Sequence[str] | None) -> Any:
    import pytest

    def as_fixture(*_owner: Any, request: Any) -> Any:
        return request.param

    # What plugins of pytest read, ours and those of programs.
    for name, value in zip(GROUP, (number, values, ids), strict=True):
        setattr(as_fixture, name, value)
    return pytest.fixture(as_fixture)


def fixture(func: Callable[..., Any] | None = None, *, cache_return_value: bool = False) -> Any:
    """`pytest.fixture`, for values that cost time.

    Args:
        func: what makes the value; its arguments are fixtures.
        cache_return_value: make it once for each set of arguments, and give each test a copy. What can't be copied, or
            depends on what has no order among keys, is made anew.
    """
    import pytest

    def made(inner: Callable[..., Any]) -> Any:
        return pytest.fixture(_kept(inner) if cache_return_value else inner)

    return made if func is None else made(func)


def _named(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """Arguments with what tells them apart: places and names."""
    return [*enumerate(args), *sorted(kwargs.items())]


def _kept(func: Callable[..., Any]) -> Callable[..., Any]:
    kept: dict[Any, Any] = {}

    @wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        # with their types: 1, 1.0 and True are one key, and so are 0.0 and -0.0 but for their texts
        key = tuple((name, type(value), repr(value) if isinstance(value, float) else value) for name, value in _named(args, kwargs))
        try:
            is_known = key in kept
        except TypeError:  # arguments that are no keys
            return func(*args, **kwargs)
        value = kept[key] if is_known else func(*args, **kwargs)
        try:
            # the first one gets a copy too, as it may change it
            made = copy.deepcopy(value)
        except Exception:  # what can't be copied says so by many errors; it is made anew each time
            return value
        kept[key] = value
        return made

    return call


def exclude_targets(*kinds: str) -> Callable[[Any], Any]:
    """A decorator: a test that takes `target` doesn't run for targets of these kinds."""
    return _noted("tvm_excluded_targets", kinds)


def known_failing_targets(*kinds: str) -> Callable[[Any], Any]:
    """A decorator: a test that takes `target` is expected to fail for targets of these kinds."""
    return _noted("tvm_known_failing_targets", kinds)


def _noted(attribute: str, kinds: Sequence[str]) -> Callable[[Any], Any]:
    def note(func: Any) -> Any:
        setattr(func, attribute, list(kinds))
        return func

    return note
