"""Fast Fourier transforms of rows, in loops of vectors.

A transform of n = a * b elements is, with j = b * j1 + j2 and k = k1 + a * k2 (Cooley and Tukey 1965),

    X[k] = sum over j2 of w(b)^(j2 k2) * w(n)^(j2 k1) * sum over j1 of x[j] * w(a)^(j1 k1)

The inner sums are taken as they stand, with k1 in the lanes: what each reads is one number for all lanes, and nothing is ever
transposed. What is left are a transforms of b elements, side by side in the lanes, by passes of small radices whose results come
out in order (Stockham 1966). Lengths with a large prime factor become a convolution with a chirp (Bluestein 1970).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import pi
from typing import Any

import numpy as np

from ..dataclass import dataclass
from ..tir.arithmetic import const, convert
from ..tir.buffer import decl_buffer
from ..tir.constant_array import ConstantArray
from ..tir.dtype import parse_dtype
from ..tir.expr import Broadcast, PrimExpr, Ramp
from ..tir.ir_builder import BufferVar, IRBuilder
from ..tir.stmt import AllocateConst

Complex = tuple[PrimExpr, PrimExpr]
Target = tuple[BufferVar, BufferVar]
Parts = tuple[BufferVar, BufferVar | None]
# Sums that are taken at once: each waits for its own multiply-adds only.
_SUMS = 4
# Inputs of a butterfly: more don't fit in 16 registers.
_MOST = 10
_REGISTER = 32  # bytes


@dataclass(frozen=True)
class Plan:
    """How a transform of `size` elements is cut.

    Args:
        first: a, the terms of the sums that are taken as they stand, and how many transforms go on side by side.
        lanes: of these, rounded up to whole registers.
        radices: of the passes, whose product is `length`.
    """

    size: int
    first: int
    lanes: int
    radices: tuple[int, ...]

    @property
    def length(self) -> int:
        """b, the elements of the transforms side by side."""
        return self.size // self.first


@lru_cache
def best_plan(size: int, width: int) -> tuple[float, Plan]:
    """The plan of the fewest operations for each element, and how many these are; registers have `width` lanes."""
    found = []
    for first in range(1, size + 1):
        if size % first == 0:
            lanes = -(-first // width) * width
            passes = _radices(size // first)
            if passes is not None:
                # A pass loads and stores both parts and turns them by four operations; a sum has four for each of its terms.
                found.append((lanes / first * (4 * first + 6 + passes[0]), Plan(size, first, lanes, passes[1])))
    return min(found, key=lambda one: one[0])


@lru_cache
def _radices(length: int) -> tuple[float, tuple[int, ...]] | None:
    """The cheapest passes of a transform, and their cost for each element; None where a prime factor is too large for one."""
    if length == 1:
        return 0.0, ()
    found = []
    for radix in range(2, min(length, _MOST) + 1):
        rest = _radices(length // radix) if length % radix == 0 else None
        if rest is not None:
            found.append((8.0 + 2 * sum(_primes(radix)) + rest[0], (radix, *rest[1])))
    return min(found, default=None)


def _primes(number: int) -> list[int]:
    factor = next((n for n in range(2, number) if number % n == 0), number)
    return [factor] if factor == number else [factor, *_primes(number // factor)]


def _waves(turns: Any, sign: int) -> Any:
    """e^(sign 2 pi i t) of fractions of a turn."""
    return np.exp(sign * 2j * pi * turns)


def _places(begin: Any, lanes: int) -> Any:
    """The index of so many elements from one on."""
    return Ramp(convert(begin), const(1), lanes) if lanes > 1 else begin


class Transform:
    """Transforms of rows of one length, built into a function at a place.

    Args:
        ib: where the loops are built.
        size: elements of a row.
        dtype: float32 or float64.
        sign: of the exponent: -1, or 1 for the inverse.
        scale: what results are multiplied with.
    """

    def __init__(self, ib: IRBuilder, size: int, dtype: str, sign: int, scale: float = 1.0) -> None:
        self.ib, self.size, self.dtype, self.sign, self.scale = ib, size, dtype, sign, scale
        self.width = _REGISTER * 8 // parse_dtype(dtype).bits
        cost, self.plan = best_plan(size, self.width)
        # A chirp takes two transforms of at least twice the length, whose factors are small, and three products.
        longer = 1 << (2 * size - 2).bit_length()
        self.by_chirp = (2 * best_plan(longer, self.width)[0] + 12) * longer < cost * size

    def rows(self, source: Parts, begin: Any, target: Target, place: Any) -> None:
        """Transform the row that begins at element `begin` of `source` into `target`, from `place` on; real numbers have no second part."""
        (self._convolved if self.by_chirp else self._cut)(source, begin, target, place)

    def _cut(self, source: Parts, begin: Any, target: Target, place: Any) -> None:
        plan = self.plan
        filled = plan.lanes == plan.first
        inside = len(plan.radices) + (not filled)
        spare = [self._parts(plan.length * plan.lanes, name) for name in ("", "_next")[:inside]]
        # From one to the other, and the last pass into the result if no lanes are to be left out.
        ways: list[tuple[Target, Any]] = [(spare[n % 2], 0) for n in range(inside)]
        if filled:
            ways.append((target, place))
        self._sums(source, begin, *ways[0])
        rest, together = plan.length, 1
        for radix, (before, _), (after, at) in zip(plan.radices, ways, ways[1:], strict=False):
            rest //= radix
            self._pass(radix, rest, together, before, after, at)
            together *= radix
        if not filled:
            with self.ib.for_range(0, plan.length, "k") as k:
                for wanted, found in zip(target, ways[-1][0], strict=True):
                    wanted[_places(place + k * plan.first, plan.first)] = found[_places(k * plan.lanes, plan.first)]

    def _sums(self, source: Parts, begin: Any, target: Target, place: Any) -> None:
        """The sums over j1, turned by w(n)^(j2 k1): target[place + j2, k1]."""
        plan, ib = self.plan, self.ib
        terms, ends = np.arange(plan.first), np.arange(plan.length)
        lanes = np.arange(plan.lanes) % plan.first
        waves = self._table(_waves(np.outer(terms, lanes) % plan.first / plan.first, self.sign), "waves")
        turns = self._table(_waves(np.outer(ends, lanes) % plan.size / plan.size, self.sign) * self.scale, "turns")

        def tile(first: Any, count: int, at: Any) -> None:
            sums = ib.allocate(self.dtype, (2 * count * self.width,), "sums", scope="local")
            places = [_places(n * self.width, self.width) for n in range(2 * count)]
            for one in places:
                sums[one] = self._number(0.0)
            with ib.for_range(0, plan.first, "j1") as j1:
                c, s = self._complex(waves, j1 * plan.lanes + at)
                for n in range(count):
                    element = begin + j1 * plan.length + (first + n)
                    re, im = places[2 * n : 2 * n + 2]
                    x = ib.let("x", self._every(source[0][element]))
                    sums[re], sums[im] = sums[re] + x * c, sums[im] + x * s
                    if source[1] is not None:
                        y = ib.let("y", self._every(source[1][element]))
                        sums[re], sums[im] = sums[re] - y * s, sums[im] + y * c
            for n in range(count):
                to = (first + n) * plan.lanes + at
                value = self._product((sums[places[2 * n]], sums[places[2 * n + 1]]), self._complex(turns, to))
                self._store(target, place + to, value)

        whole = plan.length // _SUMS * _SUMS
        with ib.for_range(0, plan.lanes // self.width, "register") as register:
            at = register * self.width
            if whole:
                with ib.for_range(0, whole // _SUMS, "j2") as j2, ib.new_scope():
                    tile(j2 * _SUMS, _SUMS, at)
            if plan.length > whole:
                with ib.new_scope():
                    tile(whole, plan.length - whole, at)

    def _pass(self, radix: int, rest: int, together: int, source: Target, target: Target, place: Any) -> None:
        """target[place + q, k, p] = w^(p k) * sum over j of w(radix)^(j k) source[q, p, j], where q counts what is done already."""
        ib, lanes = self.ib, self.plan.lanes
        turns = (
            self._table(_waves(np.outer(np.arange(rest), np.arange(1, radix)) / (rest * radix), self.sign), "turns") if rest > 1 else None
        )
        with (
            ib.for_range(0, rest, "p") as p,
            ib.for_range(0, together, "q") as q,
            ib.for_range(0, lanes // self.width, "register") as register,
        ):
            at = register * self.width
            given = [self._complex(source, (q + together * (p + rest * j)) * lanes + at) for j in range(radix)]
            for k, value in enumerate(self._butterfly(given)):
                if turns is not None and k:
                    number = p * (radix - 1) + (k - 1)
                    value = self._product(value, (self._every(turns[0][number]), self._every(turns[1][number])))
                self._store(target, place + (q + together * (radix * p + k)) * lanes + at, value)

    def _butterfly(self, x: Sequence[Complex]) -> list[Complex]:
        """The transform of a few values, written out."""
        count = len(x)
        if count == 1:
            return list(x)
        inner = _primes(count)[-1]
        if inner == count:
            return self._of_prime(x)
        outer = count // inner
        rows = [self._butterfly(x[n::outer]) for n in range(outer)]
        found: list[Complex] = [x[0]] * count
        for k in range(inner):
            column = [self._turned(rows[n][k], n * k, count) for n in range(outer)]
            for m, value in enumerate(self._butterfly(column)):
                found[k + inner * m] = value
        return found

    def _of_prime(self, x: Sequence[Complex]) -> list[Complex]:
        """Two results at a time, k and count - k, whose terms differ in signs alone."""
        count, half = len(x), len(x) // 2
        if count == 2:
            return [self._let(x[0][0] + x[1][0], x[0][1] + x[1][1]), self._let(x[0][0] - x[1][0], x[0][1] - x[1][1])]
        pairs = [(x[j], x[count - j]) for j in range(1, half + 1)]
        both = [self._let(a[0] + b[0], a[1] + b[1]) for a, b in pairs]
        apart = [self._let(a[0] - b[0], a[1] - b[1]) for a, b in pairs]
        total = x[0]
        for one in both:
            total = (total[0] + one[0], total[1] + one[1])
        found = [self._let(*total)] * count
        for k in range(1, half + 1):
            even, odd = x[0], (self._number(0.0), self._number(0.0))
            for j in range(1, half + 1):
                wave = complex(_waves(j * k % count / count, self.sign))
                even = (even[0] + both[j - 1][0] * self._number(wave.real), even[1] + both[j - 1][1] * self._number(wave.real))
                odd = (odd[0] + apart[j - 1][0] * self._number(wave.imag), odd[1] + apart[j - 1][1] * self._number(wave.imag))
            even, odd = self._let(*even), self._let(*odd)
            found[k] = self._let(even[0] - odd[1], even[1] + odd[0])
            found[count - k] = self._let(even[0] + odd[1], even[1] - odd[0])
        return found

    def _turned(self, value: Complex, turns: int, count: int) -> Complex:
        """A value times w(count)^turns; quarters of a turn take no multiplication."""
        quarters, rest = divmod(4 * (turns % count), count)
        if rest:
            wave = complex(_waves(turns % count / count, self.sign))
            return self._product(value, (self._number(wave.real), self._number(wave.imag)))
        for _ in range(quarters if self.sign > 0 else -quarters % 4):
            value = (-value[1], value[0])
        return value

    def _convolved(self, source: Parts, begin: Any, target: Target, place: Any) -> None:
        """By j k = (j^2 + k^2 - (k - j)^2) / 2: what is turned by the chirp is convolved with its conjugate, and turned again."""
        size, ib = self.size, self.ib
        longer = 1 << (2 * size - 2).bit_length()
        steps = np.arange(size)
        chirp = _waves(steps * steps % (2 * size) / (2 * size), self.sign)
        around = np.zeros(longer, complex)
        around[:size] = chirp.conj()
        around[longer - size + 1 :] = chirp.conj()[:0:-1]
        turns, spectrum = self._table(chirp, "chirp"), self._table(np.fft.fft(around) / longer * self.scale, "spectrum")
        padded, found = self._parts(longer, "_padded"), self._parts(longer, "_found")
        self._each(size, lambda at: self._turn_source(source, begin, at, turns, padded))
        for part in padded:
            with ib.for_range(size, longer, "i") as i:
                part[i] = const(0.0, self.dtype)
        Transform(ib, longer, self.dtype, -1).rows(padded, 0, found, 0)
        self._each(longer, lambda at: self._store(found, at, self._product(self._complex(found, at), self._complex(spectrum, at))))
        Transform(ib, longer, self.dtype, 1).rows(found, 0, padded, 0)
        self._each(size, lambda at: self._store(target, place + at, self._product(self._complex(padded, at), self._complex(turns, at))))

    def _parts(self, size: int, name: str) -> Target:
        return self.ib.allocate(self.dtype, (size,), f"re{name}"), self.ib.allocate(self.dtype, (size,), f"im{name}")

    def _turn_source(self, source: Parts, begin: Any, at: Any, turns: Target, target: Target) -> None:
        place = _places(begin + at, self.width)
        c, s = self._complex(turns, at)
        x = self.ib.let("x", source[0][place])
        value = (x * c, x * s) if source[1] is None else self._product((x, self.ib.let("y", source[1][place])), (c, s))
        self._store(target, at, value)

    def _each(self, size: int, work: Callable[[Any], None]) -> None:
        """Vectors that cover so many elements; the last of a row that isn't whole vectors is one of fewer lanes."""
        whole, width = size // self.width, self.width
        with self.ib.for_range(0, whole, "i") as i:
            work(i * width)
        if size > whole * width:
            self.width = size - whole * width
            with self.ib.new_scope():
                work(whole * width)
            self.width = width

    def _table(self, values: Any, name: str) -> Target:
        """Constants of the function: real and imaginary parts."""

        def part(data: Any, suffix: str) -> BufferVar:
            buffer = decl_buffer((data.size,), self.dtype, f"{name}_{suffix}")
            array = ConstantArray(np.ascontiguousarray(data.ravel().astype(self.dtype)), self.dtype, (data.size,))
            self.ib.emit(lambda body: AllocateConst(buffer.data, self.dtype, buffer.shape, array, body))
            return BufferVar(self.ib, buffer)

        return part(values.real, "re"), part(values.imag, "im")

    def _number(self, value: float) -> PrimExpr:
        return self._every(const(value, self.dtype))

    def _every(self, value: PrimExpr) -> PrimExpr:
        """A number in all lanes."""
        return Broadcast(value, self.width) if self.width > 1 else value

    def _complex(self, parts: Target, at: Any) -> Complex:
        place = _places(at, self.width)
        return self._let(parts[0][place], parts[1][place])

    def _let(self, re: PrimExpr, im: PrimExpr) -> Complex:
        return self.ib.let("re", re), self.ib.let("im", im)

    def _product(self, a: Complex, b: Complex) -> Complex:
        return self._let(a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0])

    def _store(self, parts: Target, at: Any, value: Complex) -> None:
        place = _places(at, self.width)
        parts[0][place], parts[1][place] = value
