"""Derivatives of operators that have no rule: those of their tensor computations (`te.gradient`), as tensor functions.

A rule is better where it knows more: what a derivative shares with the value, or which operator it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import DeclarationError
from ..block_builder import BlockBuilder
from ..expr import Call, Constant, Tuple
from ..ops.row import row_of
from ..struct_info import TensorStructInfo
from .legalize import has_known_shapes


def _is_float(info: Any) -> bool:
    return isinstance(info, TensorStructInfo) and info.dtype.startswith(("float", "bfloat"))


def _places(name: str, value: Any) -> list[tuple[str, int | None, Any]]:
    """The operands of an argument: itself, or the fields of a tuple by their number."""
    return [(name, number, one) for number, one in enumerate(value.fields)] if isinstance(value, Tuple) else [(name, None, value)]


def by_computation(call: Call, adjoint: Any, builder: BlockBuilder) -> Sequence[Any] | None:
    """The adjoints of a call's operands by that of its result, None for those by which nothing is derived.

    None if the operator has no tensor computation, or one that has no derivative: several results, loops of its own.
    """
    row = row_of(call)
    if row is None or row.te is None or not _is_float(call.struct_info) or not has_known_shapes(call):
        return None
    te, given = row.te, row.bound(call)
    places = [place for name in row.arguments if given[name] is not None for place in _places(name, given[name])]
    # An operand that stands twice is one tensor there, whose derivative is that by both.
    wanted: dict[int, tuple[str, int | None]] = {}
    for name, number, value in places:
        if not isinstance(value, Constant) and _is_float(getattr(value, "struct_info", None)):
            wanted.setdefault(id(value), (name, number))

    from ...te import autodiff  # derivatives, which programs that are only run don't load

    def derived(head: Any, **tensors: Any) -> Any:
        by = [tensors[name] if number is None else tensors[name][number] for name, number in wanted.values()]
        return autodiff.gradient(row.apply(te, tensors), by, head)

    if not wanted:
        return None
    try:
        made = builder.call_te(derived, adjoint, **given, primfunc_name_hint=f"{row.kernel}_gradient")
    except DeclarationError:
        return None
    whole = builder.emit(made)
    parts = [whole] if len(wanted) == 1 else [builder.emit(whole[number]) for number in range(len(wanted))]
    found = dict(zip(wanted.values(), parts, strict=True))
    own = {name: [found.get((name, number)) for other, number, _ in places if other == name] for name in row.arguments}
    return [own[name] if isinstance(given[name], Tuple) else own[name][0] for name in row.arguments if given[name] is not None]


__all__ = ["by_computation"]
