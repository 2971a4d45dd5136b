"""References: values that can be changed. What is read and written stands in the order of the program, which Lets say.

    let %r = ref(%x); let %_ = ref_write(%r, add(%x, %x)); ref_read(%r)

They are calls of operators that no row describes: what they return follows from the type of the reference. A module with references in
it becomes graphs with effects, whose calls keep their order.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ..errors import DeclarationError, TypeMismatchError
from ..relax.relations import BaseCheckResult, struct_info_base_check
from ..relax.struct_info import ObjectStructInfo, StructInfo, TupleStructInfo
from ..tir.op_registry import Op
from .expr import Call
from .generics import erased, is_open
from .ty import info_of, type_of
from .type_names import Named, RefType


class Reference(Call):
    """Base of what makes, reads and writes references."""

    word: ClassVar[str]

    def __init__(self, *args: Any) -> None:
        Call.__init__(self, Op.of(self.word), args)


class RefCreate(Reference):
    """A new reference.

    Args:
        value: what it holds.
    """

    word = "ref"

    def __init__(self, value: Any) -> None:
        super().__init__(value)

    @property
    def value(self) -> Any:
        """What it holds at first."""
        return self.args[0]

    def _derived(self) -> StructInfo:
        return made_of(self.value.struct_info)


class RefRead(Reference):
    """What a reference holds.

    Args:
        ref: the reference.
    """

    word = "ref_read"

    def __init__(self, ref: Any) -> None:
        super().__init__(ref)

    @property
    def ref(self) -> Any:
        """The reference."""
        return self.args[0]

    def _derived(self) -> StructInfo:
        return held_by(self.ref.struct_info)


class RefWrite(Reference):
    """Lets a reference hold another value; an empty tuple.

    Args:
        ref: the reference.
        value: the value.
    """

    word = "ref_write"

    def __init__(self, ref: Any, value: Any) -> None:
        super().__init__(ref, value)

    @property
    def ref(self) -> Any:
        """The reference."""
        return self.args[0]

    @property
    def value(self) -> Any:
        """The value."""
        return self.args[1]

    def _derived(self) -> StructInfo:
        check_write(self.ref.struct_info, self.value.struct_info)
        return TupleStructInfo(())


REFERENCES: dict[str, type[Reference]] = {one.word: one for one in (RefCreate, RefRead, RefWrite)}


def made_of(info: StructInfo) -> StructInfo:
    """A reference that holds such a value."""
    return Named(RefType(type_of(info)))


def held_by(info: StructInfo) -> StructInfo:
    """What a reference holds.

    Raises:
        TypeMismatchError: for what is no reference.
    """
    given = info.type if isinstance(info, Named) else None
    if isinstance(given, RefType):
        return info_of(given.value) or ObjectStructInfo()
    if not is_open(info):
        raise TypeMismatchError(f"only references are read and written (relay.RefCreate), not {type_of(info)}")
    return ObjectStructInfo()


def check_write(ref: StructInfo, value: StructInfo) -> None:
    """Raise for a value of another type than a reference holds."""
    held = held_by(ref)
    if struct_info_base_check(erased(held), erased(value)) < BaseCheckResult.FAIL_L2:
        raise DeclarationError(f"a reference to {type_of(held)} can't hold {type_of(value)}")


__all__ = ["REFERENCES", "RefCreate", "RefRead", "RefType", "RefWrite", "Reference", "check_write", "held_by", "made_of"]
