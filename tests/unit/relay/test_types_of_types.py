"""Walks over types."""

from __future__ import annotations

from typing import Any

import pytest

from tensorexpr import relay
from tensorexpr.relay import TypeFunctor, TypeMutator, TypeVisitor

A = relay.TypeVar("a")
LIST = relay.GlobalTypeVar("List")
TENSOR = relay.TensorType((2, 3))
TYPES = [
    A, relay.IncompleteType(), TENSOR, relay.FuncType([A, TENSOR], A, [A]), relay.TupleType([TENSOR, relay.TupleType([])]),  # type: ignore[arg-type]
    relay.RefType(TENSOR), LIST, LIST(relay.TupleType([A])), relay.TypeData(LIST, [A], [relay.Constructor("Nil", [], LIST)]),  # type: ignore[arg-type]
]  # fmt: skip


@pytest.mark.parametrize("typ", TYPES, ids=lambda typ: type(typ).__name__)
def test_each_kind_has_a_method(typ: Any) -> None:
    with pytest.raises(NotImplementedError, match=f"TypeFunctor has no method for {type(typ).__name__}"):
        TypeFunctor().visit(typ)
    TypeVisitor().visit(typ)
    assert TypeMutator().visit(typ) is typ


def test_what_is_no_type() -> None:
    with pytest.raises(TypeError, match="visits types, not int"):
        TypeVisitor().visit(3)


def test_all_parts_are_visited() -> None:
    seen: list[Any] = []

    class Tensors(TypeVisitor):  # type: ignore[misc]
        def visit_tensor_type(self, typ: Any) -> None:
            seen.append(typ)

    nested = relay.FuncType([LIST(relay.RefType(TENSOR)), relay.TupleType([A, TENSOR])], relay.TensorType((), "int32"))  # type: ignore[arg-type]
    Tensors().visit(nested)
    assert [str(one) for one in seen] == ["Tensor[(2, 3), float32]"] * 2 + ["int32"]


def test_parts_that_change_make_new_types() -> None:
    class Halves(TypeMutator):  # type: ignore[misc]
        def visit_tensor_type(self, typ: Any) -> Any:
            return relay.TensorType(typ.shape, "float16")

    half = relay.TensorType((2, 3), "float16")
    for make in (lambda t: relay.FuncType([t], A, [A]), lambda t: relay.TupleType([A, t]), relay.RefType, LIST):  # type: ignore[arg-type]
        made = Halves().visit(make(TENSOR))
        assert made == make(half)
        assert type(made) is type(make(half))


def test_dtypes_by_the_names_of_c() -> None:
    for word, dtype in ("int", "int32"), ("float", "float32"), ("uint", "uint32"):
        assert relay.TensorType((2,), word).dtype == dtype
    func = relay.fromtext('#[version = "0.0.5"]\ndef @main(%x: int) -> int { %x + 1 }')["main"]
    assert func.checked_type == relay.FuncType([relay.scalar_type("int32")], relay.scalar_type("int32"))  # type: ignore[arg-type]
