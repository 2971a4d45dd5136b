"""How nodes are made: unique expressions, distinct statements, and classes that `isinstance` asks about quickly."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

import tensorexpr.tir as tir
from tensorexpr.tir.interning import Built


def _classes(base: type) -> Iterator[type]:
    """Those that modules hold: `dataclass` makes each twice, and the first may not have been collected."""
    cls: type
    for cls in base.__subclasses__():
        if getattr(sys.modules[cls.__module__], cls.__name__, None) is cls and cls.__module__.startswith("tensorexpr."):
            yield cls
        yield from _classes(cls)


def test_classes_of_nodes_have_no_metaclass_and_no_init() -> None:
    """A metaclass makes `isinstance` three times as slow; an `__init__` would fill a unique node again, with other arguments."""
    classes = list(_classes(Built))
    assert {tir.Add, tir.IntImm, tir.For, tir.Buffer, tir.PrimFunc, tir.IterVar} <= set(classes)
    assert all(type(cls) is type for cls in classes)
    assert [cls for cls in classes if "__init__" in vars(cls) and not issubclass(cls, tir.Var)] == []


def test_equal_expressions_are_one_object_and_statements_are_not() -> None:
    x, one = tir.Var("x", "int32"), tir.IntImm("int32", 1)
    assert tir.Add(x, one) is tir.Add(a=x, b=tir.IntImm("int32", 1))
    assert tir.Evaluate(x) is not tir.Evaluate(x)
    assert tir.Var("x", "int32") is not x


def test_what_a_node_lacks_is_said() -> None:
    with pytest.raises(TypeError, match="Add takes a, b"):
        tir.Add(tir.Var("x"))  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("dtype", "value", "exact"),
    [("float16", 3.14, 3.140625), ("float16", 65504.0, 65504.0), ("float32", 0.1, 0.10000000149011612), ("float64", 0.1, 0.1)],
)
def test_the_value_of_a_constant_is_what_was_written(dtype: str, value: float, exact: float) -> None:
    constant = tir.FloatImm(dtype, value)
    assert (constant.value, float(constant)) == (value, exact)
    assert tir.FloatImm(dtype, exact) is constant


def test_dtypes_without_bits_have_the_usual_ones() -> None:
    assert tir.IntImm("int", 3) is tir.IntImm("int32", 3)
    assert (tir.const(1, "uint").dtype, tir.Var("x", "float").dtype, tir.decl_buffer((4,), "float").dtype) == (
        "uint32",
        "float32",
        "float32",
    )
    assert tir.Cast("int", tir.FloatImm("float", 2.5)).dtype == "int32"
