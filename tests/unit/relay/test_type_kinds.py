"""Types of types."""

# mypy: disable-error-code="arg-type, index, assignment"

from __future__ import annotations

from typing import Any

import pytest

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.errors import TypeMismatchError
from tensorexpr.relay import TypeKind, TypeMutator
from tensorexpr.relay.analysis import check_kind

TENSOR = relay.TensorType((2, 3))
A, N, LIMIT = relay.TypeVar("A"), relay.TypeVar("n", TypeKind.ShapeVar), relay.TypeVar("c", TypeKind.Constraint)
LIST = relay.GlobalTypeVar("List")


def module() -> Any:
    """A module that defines lists."""
    mod = tvm.IRModule()
    mod[LIST] = relay.TypeData(LIST, [A], [relay.Constructor("Cons", [A, LIST(A)], LIST), relay.Constructor("Nil", [], LIST)])
    return mod


def relation(*types: Any) -> Any:
    """Something that is asked of types."""
    return relay.TypeRelation(None, types, len(types) - 1, None)


@pytest.mark.parametrize(
    ("typ", "kind"),
    [
        (A, TypeKind.Type), (N, TypeKind.ShapeVar), (LIST, TypeKind.AdtHandle), (TENSOR, TypeKind.Type),
        (relay.IncompleteType(TypeKind.ShapeVar), TypeKind.ShapeVar), (relay.IncompleteType(), TypeKind.Type),
        (relay.TupleType([TENSOR, A]), TypeKind.Type), (relay.RefType(TENSOR), TypeKind.Type), (relation(TENSOR, A), TypeKind.Constraint),
        (relay.FuncType([A], TENSOR, [A, N], [relation(A, TENSOR)]), TypeKind.Type), (LIST(TENSOR), TypeKind.Type),
    ],
    ids=str,
)  # fmt: skip
def test_kinds(typ: Any, kind: TypeKind) -> None:
    assert check_kind(typ, module()) == kind
    assert check_kind(module()[LIST]) == TypeKind.TypeData


@pytest.mark.parametrize(
    "typ",
    [
        relay.TupleType([TENSOR, N]), relay.RefType(LIMIT), relation(TENSOR, N), relay.FuncType([N], TENSOR), relay.FuncType([A], LIMIT),
        relay.FuncType([A], A, [], [TENSOR]), LIST(N), LIST(), LIST(TENSOR, TENSOR), relay.GlobalTypeVar("Other")(TENSOR),
        relay.GlobalTypeVar("List", TypeKind.Type)(TENSOR), 3,
    ],
    ids=str,
)  # fmt: skip
def test_what_a_type_cannot_be_made_of(typ: Any) -> None:
    with pytest.raises(TypeMismatchError):
        check_kind(typ, module())


def test_errors_say_what_was_wished() -> None:
    with pytest.raises(TypeMismatchError, match="a FuncType takes a Type where n is a ShapeVar"):
        check_kind(relay.FuncType([N], TENSOR))
    with pytest.raises(TypeMismatchError, match="List has 1 parameters, not 2"):
        check_kind(LIST(A, A), module())
    with pytest.raises(TypeMismatchError, match="the module doesn't define Tree; its types are List"):
        check_kind(relay.GlobalTypeVar("Tree")(A), module())


def test_mutators_reach_what_is_asked_of_types() -> None:
    class Halves(TypeMutator):  # type: ignore[misc]
        def visit_tensor_type(self, typ: Any) -> Any:
            return relay.TensorType(typ.shape, "float16")

    made = Halves().visit(relay.FuncType([A], A, [A], [relation(A, TENSOR)]))
    assert made.type_constraints[0].args[1].dtype == "float16"
