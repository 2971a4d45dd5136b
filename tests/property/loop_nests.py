"""Random loop nests as schedules make them: imperfect splits with guards, any loop order and kind, tiles in local storage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tensorexpr.tir.arithmetic import all as all_of
from tensorexpr.tir.arithmetic import cast, const, convert, floordiv, floormod, maximum, minimum
from tensorexpr.tir.attrs import FrozenMap
from tensorexpr.tir.buffer import Buffer, decl_buffer
from tensorexpr.tir.expr import BufferLoad, IntImm, PrimExpr, Select, Var
from tensorexpr.tir.function import PrimFunc
from tensorexpr.tir.intrin import if_then_else, likely
from tensorexpr.tir.stmt import Allocate, BufferStore, For, ForKind, IfThenElse, Stmt, seq

TRUE = IntImm("bool", 1)
KINDS = (ForKind.SERIAL, ForKind.SERIAL, ForKind.VECTORIZED, ForKind.UNROLLED)


@dataclass(frozen=True)
class Level:
    """One loop of an axis: the axis' index is the sum of the values of its levels times their strides."""

    axis: str
    extent: PrimExpr
    stride: int
    kind: ForKind
    low: int = 0


@dataclass(frozen=True)
class Nest:
    """What was drawn: the extents, the loops, which of them surround everything, and what is computed."""

    extents: dict[str, PrimExpr]
    levels: tuple[Level, ...]
    shared: int
    value: int
    tiled: bool
    dtype: str
    max_step: int
    sizes: dict[str, int] = field(default_factory=dict)


@st.composite
def nests(draw: st.DrawFn) -> Nest:
    """A nest over i and j, with or without a reduction over k."""
    sizes = {"i": draw(st.integers(1, 9)), "j": draw(st.integers(1, 18)), "k": draw(st.sampled_from((0, 0, 1, 3, 5)))}
    dtype = draw(st.sampled_from(("int32", "int32", "int64")))
    extents: dict[str, PrimExpr] = {axis: const(size, dtype) for axis, size in sizes.items() if size}
    if draw(st.integers(0, 3)) == 0:
        extents["i"] = Var("n", dtype)
    spatial: list[Level] = []
    reduction: list[Level] = []
    for axis, extent in extents.items():
        (reduction if axis == "k" else spatial).extend(_levels(draw, axis, extent, dtype))
    spatial = list(draw(st.permutations(spatial)))
    shared = draw(st.integers(0, len(spatial)))
    inner = list(draw(st.permutations(spatial[shared:] + reduction)))
    outer = spatial[:shared]
    in_parallel = draw(st.booleans())
    if outer and in_parallel:
        outer[0] = Level(outer[0].axis, outer[0].extent, outer[0].stride, ForKind.PARALLEL, outer[0].low)
    value, tiled = draw(st.integers(0, len(VALUES) - 1)), draw(st.booleans())
    return Nest(extents, (*outer, *inner), shared, value, tiled, dtype, draw(st.sampled_from((0, 0, 16, 64))), sizes)


def _levels(draw: st.DrawFn, axis: str, extent: PrimExpr, dtype: str) -> list[Level]:
    """An axis in one, two or three loops, whose factors needn't divide anything."""
    levels: list[Level] = []
    stride = 1
    rest = extent
    for _ in range(draw(st.sampled_from((0, 1, 1, 2)))):
        factor = draw(st.sampled_from((1, 2, 3, 4, 8)))
        levels.append(Level(axis, const(factor, dtype), stride, draw(st.sampled_from(KINDS))))
        rest = floordiv(rest + (factor - 1), factor)
        stride *= factor
    kinds = KINDS if isinstance(rest, IntImm) else (ForKind.SERIAL,)
    levels.append(Level(axis, rest, stride, draw(st.sampled_from(kinds)), draw(st.sampled_from((0, 0, 0, 2, -3)))))
    return levels


def _product(a: BufferLoad, b: BufferLoad, at: dict[str, PrimExpr], nest: Nest) -> PrimExpr:
    return a * b


def _padded(a: BufferLoad, b: BufferLoad, at: dict[str, PrimExpr], nest: Nest) -> PrimExpr:
    i, j = at["i"], at["j"]
    shifted = BufferLoad(b.buffer, ((b.indices[0] - 1),))
    return if_then_else(all_of(j >= 1, i + j < 9), shifted + a, const(3, "float32"))


def _selected(a: BufferLoad, b: BufferLoad, at: dict[str, PrimExpr], nest: Nest) -> PrimExpr:
    return Select(convert(floormod(at["j"], 3).equal(0)), maximum(a, b), minimum(a, b))


def _indexed(a: BufferLoad, b: BufferLoad, at: dict[str, PrimExpr], nest: Nest) -> PrimExpr:
    position = floordiv(at["j"], 4) * 3 + floormod(at["j"], 4) + floormod(at["i"] - 5, 2)
    return cast(position, "float32") + BufferLoad(b.buffer, (floordiv(at["j"] + at["i"], 2),)) * a


def _gathered(a: BufferLoad, b: BufferLoad, at: dict[str, PrimExpr], nest: Nest) -> PrimExpr:
    where = floormod(cast(a, nest.dtype), const(7, nest.dtype))
    return BufferLoad(b.buffer, (where,)) + if_then_else(a > 0.0, b, a)


VALUES: tuple[Callable[..., PrimExpr], ...] = (_product, _product, _padded, _selected, _indexed, _gathered)


class _Builder:
    """Turns a drawn nest into a function."""

    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.a = decl_buffer((9 * 6,), "float32", "A")
        self.b = decl_buffer((6 * 18,), "float32", "B")
        self.c = decl_buffer((9 * 18,), "float32", "C")

    def function(self) -> PrimFunc:
        """The function, with parameters A, B, C and n if there is one."""
        nest = self.nest
        handles = {Var(buffer.name, "handle"): buffer for buffer in (self.a, self.b, self.c)}
        symbols = [extent for extent in nest.extents.values() if isinstance(extent, Var)]
        body = self._loops(nest.levels[: nest.shared], {}, self._inside)
        return PrimFunc((*handles, *symbols), body, None, handles, FrozenMap({"global_symbol": "main", "tir.noalias": True}))

    def _loops(self, levels: tuple[Level, ...], terms: dict[Level, PrimExpr], body: Callable[[dict[Level, PrimExpr]], Stmt]) -> Stmt:
        if not levels:
            return body(terms)
        level, rest = levels[0], levels[1:]
        var = Var(f"{level.axis}{level.stride}", self.nest.dtype)
        inside = self._loops(rest, {**terms, level: var - level.low}, body)
        pragmas = {"pragma_auto_unroll_max_step": self.nest.max_step} if self.nest.max_step else {}
        low = const(level.low, self.nest.dtype)
        return For(var, low, level.extent, level.kind, inside, annotations=FrozenMap(pragmas))

    def _indices(self, terms: dict[Level, PrimExpr]) -> dict[str, PrimExpr]:
        at: dict[str, PrimExpr] = {}
        for level, value in terms.items():
            part = value * level.stride
            at[level.axis] = at[level.axis] + part if level.axis in at else part
        return at

    def _guarded(self, axes: set[str], at: dict[str, PrimExpr], body: Stmt) -> Stmt:
        conditions = [likely(at[axis] < self.nest.extents[axis]) for axis in sorted(axes)]
        return IfThenElse(all_of(*conditions), body) if conditions else body

    def _inside(self, terms: dict[Level, PrimExpr]) -> Stmt:
        """Init and update, or one store; into C, or into a tile that is copied out."""
        inner = self.nest.levels[self.nest.shared :]
        spatial = tuple(level for level in inner if level.axis != "k")
        tile_size = 1
        for level in spatial:
            tile_size *= level.extent.value if isinstance(level.extent, IntImm) else 1 << 20
        if not self.nest.tiled or tile_size > 256:
            return self._compute(self.c, terms, spatial, inner, self._flat)
        tile = decl_buffer((tile_size,), "float32", "T")

        def at_tile(now: dict[Level, PrimExpr]) -> PrimExpr:
            index: PrimExpr = const(0, self.nest.dtype)
            for level in spatial:
                index = index * level.extent + now[level]
            return index

        def copy(now: dict[Level, PrimExpr]) -> Stmt:
            return self._guarded({"i", "j"}, self._indices(now), BufferStore(self.c, BufferLoad(tile, (at_tile(now),)), (self._flat(now),)))

        computed = self._compute(tile, terms, spatial, inner, at_tile)
        body = seq(computed, self._loops(spatial, terms, copy))
        return Allocate(tile.data, "float32", (IntImm("int32", tile_size),), TRUE, body)

    def _flat(self, now: dict[Level, PrimExpr]) -> PrimExpr:
        at = self._indices(now)
        return at["i"] * 18 + at["j"]

    def _compute(
        self,
        target: Buffer,
        terms: dict[Level, PrimExpr],
        spatial: tuple[Level, ...],
        inner: tuple[Level, ...],
        index: Callable[..., PrimExpr],
    ) -> Stmt:
        reduces = "k" in self.nest.extents

        def update(now: dict[Level, PrimExpr]) -> Stmt:
            at = self._indices(now)
            k = at.get("k", const(0, self.nest.dtype))
            a, b = BufferLoad(self.a, (at["i"] * 6 + k,)), BufferLoad(self.b, (k * 18 + at["j"],))
            value = VALUES[self.nest.value](a, b, at, self.nest)
            place = (index(now),)
            stored = BufferStore(target, BufferLoad(target, place) + value if reduces else value, place)
            return self._guarded(set(at), at, stored)

        def init(now: dict[Level, PrimExpr]) -> Stmt:
            return self._guarded({"i", "j"}, self._indices(now), BufferStore(target, const(0, "float32"), (index(now),)))

        nest = self._loops(inner, terms, update)
        return seq(self._loops(spatial, terms, init), nest) if reduces else nest


def build(nest: Nest) -> PrimFunc:
    """The function of a drawn nest."""
    return _Builder(nest).function()


def arguments(nest: Nest) -> list[Any]:
    """Arguments for it: arrays of small integers, and n."""
    rng = np.random.default_rng(7)
    arrays: list[Any] = [rng.integers(-4, 5, size).astype("float32") for size in (54, 108, 162)]
    return arrays + ([nest.sizes["i"]] if isinstance(nest.extents["i"], Var) else [])
