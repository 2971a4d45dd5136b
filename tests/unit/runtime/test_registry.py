"""Functions by name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tensorexpr.errors import ArgumentError
from tensorexpr.runtime import get_global_func, list_global_func_names, register_func, remove_global_func


@pytest.fixture(autouse=True)
def tidy() -> Iterator[None]:
    before = set(list_global_func_names())
    yield
    for name in set(list_global_func_names()) - before:
        remove_global_func(name)


def test_three_ways_to_register() -> None:
    @register_func("tests.one")
    def one() -> int:
        return 1

    @register_func
    def two() -> int:
        return 2

    register_func("tests.three", lambda: 3)
    assert (one(), two()) == (1, 2)
    assert [get_global_func(name)() for name in ("tests.one", "two", "tests.three")] == [1, 2, 3]
    assert {"tests.one", "two", "tests.three"} <= set(list_global_func_names())


def test_a_name_is_taken_once() -> None:
    register_func("tests.f", lambda: 1)
    with pytest.raises(ArgumentError, match=r"'tests\.f' is registered already; pass override=True"):
        register_func("tests.f", lambda: 2)
    register_func("tests.f", lambda: 2, override=True)
    assert get_global_func("tests.f")() == 2


def test_missing_names() -> None:
    assert get_global_func("tests.nothing", allow_missing=True) is None
    with pytest.raises(ArgumentError, match=r"no function 'tests\.nothing' is registered; registered:"):
        get_global_func("tests.nothing")
    remove_global_func("tests.nothing")
