"""Tensor functions whose arguments and results are parts of larger tensors.

    relu(x, y), y: (1, 55, 55, 64)        relu(x, whole), whole: (1, 55, 55, 128), y stands for whole[0:1, 0:55, 0:55, 64:128]

The computation is that of the part, and so are its schedule and its records; where elements lie is all that changes. Such a function says
so by an attribute, since its tensors are found by its computation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from ..dataclass import replace
from ..tir.attrs import FrozenMap
from ..tir.block import BlockRealize, MatchBufferRegion
from ..tir.buffer import Buffer, BufferRegion, decl_buffer
from ..tir.expr import IntImm, Range, Var
from ..tir.function import LaterBody, PrimFunc
from ..tir.stmt import Stmt
from ..tir.stmt_functor import Renaming
from .tensor_function import plain_tensors, remember

ATTRIBUTE = "relax.regions"
Region: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
"""The extents of the larger tensor, and where in it the part begins."""
Regions: TypeAlias = Mapping[int, Region]
"""By the place of an argument."""


def regions_of(func: PrimFunc) -> Regions:
    """The arguments of a tensor function that are parts of larger tensors."""
    return regions_from_json(func.attrs.get(ATTRIBUTE, ()))


def regions_to_json(regions: Regions) -> list[Any]:
    """As a value of JSON, and of the attribute."""
    return [[n, list(whole), list(begins)] for n, (whole, begins) in sorted(regions.items())]


def regions_from_json(said: Iterable[Any]) -> Regions:
    """What `regions_to_json` made."""
    return {int(n): (tuple(map(int, whole)), tuple(map(int, begins))) for n, whole, begins in said}


def stated_regions(func: PrimFunc, regions: Regions) -> PrimFunc:
    """The tensor function of the same computation whose arguments at these places are the larger tensors.

    Raises:
        DeclarationError: if it is no computation of tensors alone.
    """
    tensors = plain_tensors(func)
    params, buffer_map, wrap = _placed(func, regions)
    attrs = FrozenMap({**func.attrs, ATTRIBUTE: regions_to_json(regions)})
    made = PrimFunc.of_later_body(params, LaterBody(lambda: wrap(func.body)), buffer_map, attrs)
    remember(made, tensors)
    return made


def in_regions(func: PrimFunc, regions: Regions) -> PrimFunc:
    """The loops of a function with the larger tensors for arguments."""
    params, buffer_map, wrap = _placed(func, regions)
    return replace(func, params=params, body=wrap(func.body), buffer_map=buffer_map)


def _placed(func: PrimFunc, regions: Regions) -> tuple[tuple[Var, ...], dict[Var, Buffer], Callable[[Stmt], Stmt]]:
    """Parameters, their buffers, and what makes the body of one in terms of the parts."""
    buffer_map, views = dict(func.buffer_map), list[tuple[Buffer, Buffer, BufferRegion]]()
    for n, (extents, begins) in regions.items():
        part = func.buffer_map[func.params[n]]
        dtype = part.shape[0].dtype
        whole = decl_buffer([IntImm(dtype, extent) for extent in extents], part.dtype, part.name)
        box = [Range.from_min_extent(IntImm(dtype, first), extent) for first, extent in zip(begins, part.shape, strict=True)]
        # The box gives these their values.
        strides, offset = [Var(f"{part.name}_s{axis}", dtype) for axis in range(part.ndim)], Var(f"{part.name}_offset", dtype)
        views.append(
            (part, decl_buffer(part.shape, part.dtype, f"{part.name}_part", None, strides, offset), BufferRegion(whole, tuple(box)))
        )
        buffer_map[func.params[n]] = whole

    def wrap(body: Stmt) -> Stmt:
        body = Renaming({part.data: view.data for part, view, _ in views}, False, {part: view for part, view, _ in views}).apply(body)
        matches = tuple(MatchBufferRegion(view, box) for _, view, box in views)
        if isinstance(body, BlockRealize):
            return replace(body, block=replace(body.block, match_buffers=(*matches, *body.block.match_buffers)))
        for match in matches:
            body = match.bind(body)
        return body

    return func.params, buffer_map, wrap
