"""Whether calls of tensor functions fit their callees: count, dtypes, numbers of axes, and extents where both are known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...arith.analyzer import Analyzer
from ...tir.arithmetic import as_int
from ...tir.expr import IntImm, PrimExpr, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import substitute
from ..expr import Call
from ..extents import readable
from ..struct_info import ObjectStructInfo, PrimStructInfo, StructInfo, TensorStructInfo, TupleStructInfo

TENSOR_CALLS = ("relax.call_tir", "relax.call_tir_inplace", "relax.call_tir_with_grad")


def misfits(call: Call, func: PrimFunc) -> Iterator[str]:
    """What of a call doesn't fit its callee, one text each.

    Args:
        call: of one of `TENSOR_CALLS`.
        func: which it calls.
    """
    given = list(_given(call))
    if len(given) != len(func.params):
        yield f"{call.args[0].name_hint} takes {len(func.params)} arguments with its results, and the call has {len(given)}"
        return
    numbers: dict[Var, PrimExpr] = {}
    fitting = []
    for param, (what, info) in zip(func.params, given, strict=True):
        buffer = func.buffer_map.get(param)
        if buffer is None:
            number = as_int(info.value) if isinstance(info, PrimStructInfo) and info.value is not None else None
            numbers.update({} if number is None else {param: IntImm(param.dtype, number)})
            continue
        if isinstance(info, ObjectStructInfo):  # known when it runs
            continue
        if not isinstance(info, TensorStructInfo):
            yield f"{what} is {info}, where {buffer.name} is a tensor"
        elif info.dtype not in ("", buffer.dtype):
            yield f"{what} has dtype {info.dtype}, and {buffer.name} {buffer.dtype}"
        elif info.ndim not in (-1, len(buffer.shape)):
            yield f"{what} has {info.ndim} axes, and {buffer.name} {len(buffer.shape)}"
        elif info.extents is not None:
            fitting.append((what, buffer, info.extents))
    # First extents that are symbols alone: they tell what the others are.
    for _, buffer, extents in fitting:
        for own, extent in zip(buffer.shape, extents, strict=True):
            number = as_int(extent)
            if isinstance(own, Var) and number is not None:
                numbers.setdefault(own, IntImm(own.dtype, number))
    for what, buffer, extents in fitting:
        for own, extent in zip(buffer.shape, extents, strict=True):
            expected, number = as_int(Analyzer().simplify(substitute(own, numbers))), as_int(extent)
            if None not in (expected, number) and expected != number:
                yield readable(f"{what} has shape {tuple(extents)}, and {buffer.name} {tuple(buffer.shape)}: {number} is not {expected}")
                break


def _given(call: Call) -> Iterator[tuple[str, StructInfo]]:
    """What a call passes, by parameters of its callee: what it is called in messages, and what is known of it."""
    operands: Any = call.args[1].struct_info
    for n, info in enumerate(operands.fields):
        yield f"argument {n}", info
    stated = call.sinfo_args[0]
    results = stated.fields if isinstance(stated, TupleStructInfo) else (stated,)
    places = call.attrs.get("inplace_indices") or [-1] * len(results)
    for n, (info, place) in enumerate(zip(results, places, strict=False)):
        if place < 0:
            yield f"result {n}", info
    for extra in call.args[2:]:
        for n, value in enumerate(getattr(extra.struct_info, "values", None) or ()):
            yield f"number {n}", PrimStructInfo(value.dtype, value)
