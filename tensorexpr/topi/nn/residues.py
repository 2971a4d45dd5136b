"""A transposed convolution as convolutions: one for the results of each residue modulo the stride, put side by side at the end.

Along an axis of stride s and dilation d the result at p (counted from in front of its padding) is

    sum over taps t with t * d = p (mod s) of  data[(p - t * d) / s] * weights[t]

Results p = u * s + r of one residue r have the same taps and read neighbouring data, so they are a plain convolution over the data as
it is: of the products that a dilated tensor has, 1 / s along each axis, those that aren't with zeros (Shi et al. 2016, "Is the
deconvolution layer the same as a convolutional layer?"). Residues with equally many taps share one convolution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import gcd
from typing import Any

from ...dataclass import dataclass
from ...te.declare import compute
from ...te.tensor import Tensor
from ...tir import arithmetic, intrin
from ...tir.arithmetic import const, floordiv, floormod
from ...tir.expr import PrimExpr, Var
from .. import tag


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring residues whose windows are equal.

    Args:
        first: the least of them.
        count: of residues.
        tap: the first tap of the first residue; the next residue's is the next one.
        taps: of each residue; 0 if these results are zero.
        offset: data that a result u of the residue meets with its first tap: u + offset.
    """

    first: int
    count: int
    tap: int
    taps: int
    offset: int


@dataclass(frozen=True, slots=True)
class Residues:
    """The results along one axis.

    Args:
        stride: the number of residues.
        apart: taps of a residue are so far apart.
        step: they meet data so far apart.
        first: u of the first results.
        cut: of these, results in front of the first one that there is.
        more: by how much u has more values than there is data.
        runs: in order of their residues.
    """

    stride: int
    apart: int
    step: int
    first: int
    cut: int
    more: int
    runs: tuple[Run, ...]

    def border(self, run: Run) -> tuple[int, int]:
        """Zeros in front of the data and behind it, or what to leave out where they are negative, for the windows of a run."""
        reach = (run.taps - 1) * self.step
        front = reach - run.offset - self.first
        return front, self.more + reach - front

    def taps_of(self, run: Run, residue: int) -> range:
        """The taps of a residue of a run, counted from its first, in the order of the data that they meet."""
        first = run.tap + residue
        return range(first + (run.taps - 1) * self.apart, first - 1, -self.apart)


def residues(taps: int, stride: int, dilation: int, low: int, high: int, extra: int) -> Residues:
    """An axis of a transposed convolution with paddings `low` and `high` and `extra` results at its end.

    Example:
        Three taps at stride 2: Run(0, 1, 0, 2, 0), taps 0 and 2, and Run(1, 1, 1, 1, 0), tap 1.
    """
    common = gcd(stride, dilation)
    apart, step = stride // common, dilation // common
    found: list[Run] = []
    for residue in range(stride):
        run = Run(residue, 1, 0, 0, 0)
        # t * dilation = residue (mod stride) has solutions only where their gcd divides the residue; other results are 0.
        if residue % common == 0:
            # apart and step have no common factor, so there is an inverse; modulo 1 it is 0.
            tap = residue // common * pow(step, -1, apart) % apart
            run = Run(residue, 1, tap, max(0, -(-(taps - tap) // apart)), (residue - tap * dilation) // stride)
        last = found[-1] if found else None
        follows = last is not None and (last.taps, last.offset) == (run.taps, run.offset) and last.tap + last.count == run.tap
        # Residues without taps join whatever they are: nothing of them is read.
        if last is not None and (follows or not (last.taps or run.taps)):
            found[-1] = Run(last.first, last.count + 1, last.tap, last.taps, last.offset)
        else:
            found.append(run)
    first = low // stride
    over = (taps - 1) * dilation + 1 - stride + extra - low - high  # results beyond a stride for each element of the data
    return Residues(stride, apart, step, first, low - first * stride, (low + over - 1) // stride + 1 - first, tuple(found))


def interleaved(
    axes: Sequence[Residues],
    shape: Sequence[Any],
    dtype: str,
    read: Callable[[tuple[Run, ...], Var, Var, Sequence[PrimExpr], Sequence[PrimExpr]], PrimExpr],
    name: str,
    names: Sequence[str],
) -> Tensor:
    """The results of all residues in their places.

    Args:
        axes: of the window.
        shape: of the result: batch, channels and the axes.
        read: for a run along each axis, batch, channel, residues counted from the runs' first, and u counted from the first: a result.
        name: of the operation.
        names: of its axes.
    """

    def body(n: Var, o: Var, *at: Var) -> PrimExpr:
        places = [index if not axis.cut else index + axis.cut for index, axis in zip(at, axes, strict=True)]
        rest = [floormod(place, axis.stride) for place, axis in zip(places, axes, strict=True)]
        along = [floordiv(place, axis.stride) for place, axis in zip(places, axes, strict=True)]
        found: PrimExpr | None = None
        # From the last combination to the first, each in front of what was found.
        for runs in reversed(list(product(*(axis.runs for axis in axes)))):
            inside = [one if not run.first else one - run.first for one, run in zip(rest, runs, strict=True)]
            value = read(runs, n, o, inside, along) if all(run.taps for run in runs) else const(0, dtype)
            ends = [run.first + run.count for run in runs]
            # An upper end is enough: runs in front have taken the residues below, and the last run needs none.
            conditions = [one < end for one, end, axis in zip(rest, ends, axes, strict=True) if end < axis.stride]
            found = value if found is None or not conditions else intrin.if_then_else(arithmetic.all(*conditions), value, found)
        assert found is not None
        return found

    return compute(tuple(shape), body, name, tag.INJECTIVE, varargs_names=list(names[2:]))
