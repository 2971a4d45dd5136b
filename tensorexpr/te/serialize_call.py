"""Computes over slices by a tensor intrinsic, as JSON. The intrinsic is named, with its digest: who reads must have it declared.

{"intrin": [name, digest], "outer": 1, "summed": [axis], "scalars": [expression],
 "slices": [[tensor, [[index], [begin, extent], ...]], ...]}
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import DeclarationError, RecordError
from ..tir.serialize import ExprReader, ExprWriter
from .tensor import Tensor, TensorSlice
from .tensor_compute import TensorComputeOp, TensorIntrinCall
from .tensor_intrin import TensorIntrin

JSON = Any


def write_call(op: TensorComputeOp, writer: ExprWriter, reference: Callable[[Tensor], JSON]) -> dict[str, JSON]:
    """What the record of such an operation holds besides its name, attributes and axes."""
    call = op.call
    slices = []
    for tensor, region, span in zip(call.tensors, call.regions, call.spans, strict=True):
        items = [[writer.expr(r.min), writer.expr(r.extent)] if d in span else [writer.expr(r.min)] for d, r in enumerate(region)]
        slices.append([reference(tensor), items])
    return {
        "intrin": [call.intrin.name, call.intrin.digest],
        "outer": op.schedulable_ndim,
        "summed": [writer.axis(axis) for axis in call.reduce_axis],
        "scalars": [writer.expr(value) for value in call.scalar_inputs],
        "slices": slices,
    }


def read_call(data: JSON, reader: ExprReader, tensor_of: Callable[[JSON], Tensor]) -> tuple[TensorIntrinCall, int]:
    """The call of a record, and how many axes stand around it.

    Raises:
        RecordError: for anything that `write_call` doesn't write, and intrinsics that aren't declared.
        DeclarationError: for slices that don't fit.
    """
    match data:
        case {"intrin": [str() as name, str() as digest], "outer": int() as outer, "summed": list(axes), "scalars": list(scalars),
              "slices": list(slices)} if len(data) == 5 and outer >= 0:  # fmt: skip
            pass
        case _:
            raise RecordError("a call of an intrinsic has the fields intrin, outer, summed, scalars and slices")
    try:
        intrin = TensorIntrin.get(name, digest)
    except DeclarationError as error:
        raise RecordError(str(error)) from error
    parts = [_slice(item, reader, tensor_of) for item in slices]
    values = [reader.expr(number) for number in scalars]
    return intrin(*parts, *values, reduce_axis=[reader.axis(number) for number in axes]), outer


def _slice(data: JSON, reader: ExprReader, tensor_of: Callable[[JSON], Tensor]) -> TensorSlice:
    match data:
        case [reference, list(items)]:
            tensor = tensor_of(reference)
            if len(items) == tensor.ndim and all(isinstance(item, list) and len(item) in (1, 2) for item in items):
                return TensorSlice(tensor, tuple(_item(item, reader) for item in items))
    raise RecordError("a slice is [tensor, an index or [begin, extent] for each dimension]")


def _item(item: list[JSON], reader: ExprReader) -> Any:
    begin = reader.expr(item[0])
    return begin if len(item) == 1 else slice(begin, begin + reader.expr(item[1]))
