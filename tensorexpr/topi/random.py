"""Random numbers by Threefry (Salmon et al. 2011), in states that split (Claessen and Palka 2013).

A state is ten words of uint64: a key of four, the path of splits that led to it (two), a counter (two), and a bit at the next place of the
path (two). Equal states give equal numbers, on every machine and bit for bit those of TVM: so a state is used once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..arith.analyzer import Analyzer
from ..errors import DeclarationError
from ..te.declare import placeholder
from ..te.tensor import Tensor
from ..tir import arithmetic, bitwise, intrin
from ..tir.arithmetic import cast, const
from ..tir.buffer import Buffer
from ..tir.expr import PrimExpr
from ..tir.ir_builder import BufferVar, IRBuilder
from .rows import in_loops, product
from .scan import cumsum
from .transform import injective, reshape
from .utils import equal_const_int, extent_value, need_rank

_WORD = "uint64"
_LARGEST = 2**64 - 1
_TOP = 2**63
# Salmon et al., table 2: how far the words of 64 bits are rotated in round r modulo 8.
_ROTATIONS = ((14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32))
# The same for each of the two pairs, a byte for each round.
_FIRST, _SECOND = (sum(both[n] << 8 * r for r, both in enumerate(_ROTATIONS)) for n in range(2))
_PARITY = 0x1BD11BDAA9FC1A22
_ROUNDS = 20
# How an unsigned word becomes a float in [1, 2): the word's dtype, the bits that are dropped, and the exponent.
_FLOATS = {"float32": ("uint32", 9, 127 << 23), "float64": (_WORD, 12, 1023 << 52)}


def _word(value: int) -> PrimExpr:
    return const(value, _WORD)


def _mix(ib: IRBuilder, key: Callable[[int], PrimExpr], block: Sequence[PrimExpr], store: Callable[[int, PrimExpr], None]) -> None:
    """Encrypt a block of four words. A word is xored with the sum of its pair once more than in the paper, as in TVM's numbers."""
    x = ib.allocate(_WORD, (4,), "block", scope="local")
    keys = ib.allocate(_WORD, (5,), "key", scope="local")
    parity = _word(_PARITY)
    for n in range(4):
        x[n], keys[n] = block[n], key(n)
        parity = bitwise.bitwise_xor(parity, key(n))
    keys[4] = parity
    with ib.for_range(0, _ROUNDS, "r", kind="unroll") as number:
        group = arithmetic.floordiv(number, 4)
        with ib.if_scope(arithmetic.floormod(number, 4) == 0):
            for n in range(4):
                x[n] = x[n] + keys[arithmetic.floormod(group + n, 5)]
            # The number of the injection: without it the same keys would come round after five of them.
            x[3] = x[3] + cast(group, _WORD)
        odd = arithmetic.floormod(number, 2)
        for i, j, rotations in ((0, 1 + odd * 2, _FIRST), (2, 3 - odd * 2, _SECOND)):
            at = cast(arithmetic.floormod(number, 8) * 8, _WORD)
            # A table in a word: the round is an expression until loops are unrolled, and can't index a tuple of Python.
            by = bitwise.bitwise_and(bitwise.shift_right(_word(rotations), at), _word(63))
            x[i] = x[i] + x[j]
            # No rotation is 0 (the table has 5 to 58), so no shift is by 64 bits.
            turned = bitwise.bitwise_or(bitwise.shift_left(x[j], by), bitwise.shift_right(x[j], _word(64) - by))
            x[j] = bitwise.bitwise_xor(turned, x[i] + x[j])
    for n in range(4):
        store(n, x[n])


def _next_place(ib: IRBuilder, gen: BufferVar, out: BufferVar) -> None:
    """Move the bit that marks the end of the path."""
    with ib.if_scope(gen[8] == _word(1)):
        out[8], out[9] = _word(0), _word(_TOP)
    with ib.else_scope():
        out[8], out[9] = bitwise.shift_right(gen[8], _word(1)), _word(0)


def _new_key(ib: IRBuilder, gen: BufferVar, out: BufferVar, place: int) -> None:
    """A state whose key is the block of path and counter, for a path that is full."""

    def store(n: int, value: PrimExpr) -> None:
        out[n] = value

    _mix(ib, lambda n: gen[n], [gen[4 + n] for n in range(4)], store)
    for n in range(4, 8):
        out[n] = _word(0)
    out[8], out[9] = _word(place), _word(0)


def _with_room(ib: IRBuilder, gen: BufferVar, out: BufferVar, size: Any) -> None:
    """The state itself if its counter can count `size` more, else a new one on the path to its right."""
    end = _word(_LARGEST) - cast(size, _WORD)
    with ib.if_scope(gen[7] < end):
        for n in range(10):
            out[n] = gen[n]
    # The path has no place left: path and counter become the next key.
    with ib.else_scope(), ib.if_scope(gen[8] == _word(0)):
        _new_key(ib, gen, out, _TOP)
    with ib.if_scope(arithmetic.all(gen[7] >= end, gen[8] != _word(0))):
        for n in range(4):
            out[n] = gen[n]
        out[4], out[5] = bitwise.bitwise_or(gen[4], gen[8]), bitwise.bitwise_or(gen[5], gen[9])
        out[6], out[7] = _word(0), _word(0)
        _next_place(ib, gen, out)


def _checked(where: str, gen: Tensor) -> None:
    need_rank(where, "the state", gen, 1)
    if gen.dtype != _WORD or extent_value(gen.shape[0]) != 10:
        raise DeclarationError(f"{where}: the state is {gen.dtype} [{gen.shape[0]}]; it takes uint64 [10]")


def threefry_generate(gen: Tensor, out_shape: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Random words.

    Args:
        gen: uint64 [10], a state; not to be used again.
        out_shape: extents; if they are no constants there are as many words as a multiple of four, n * 4 or (n, 4).

    Returns:
        The next state, uint64 [10], and words uint64 of `out_shape`, uniform over all 2^64 values.

    Raises:
        DeclarationError: for another state, or a number of words of which it isn't known that four divide it.
    """
    _checked("threefry_generate", gen)
    shape = tuple(extent_value(extent) for extent in out_shape)
    size, rest = math.prod(shape), 0
    if isinstance(size, int):
        rest = size % 4
    elif not equal_const_int(Analyzer().simplify(arithmetic.floormod(size, 4)), 0):
        raise DeclarationError(f"threefry_generate: out_shape is {shape}; the extents are constants, or four divide their product")
    whole = arithmetic.floordiv(size, 4)

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        given, state, words = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
        _with_room(ib, given, state, size)

        def put(at: Any, count: int) -> Callable[[int, PrimExpr], None]:
            def store(n: int, value: PrimExpr) -> None:
                if n < count:
                    words[at + n] = value

            return store

        if extent_value(whole) != 0:
            with ib.for_range(0, whole, "i", kind="parallel") as i:
                counted = [state[4 + n] + cast(i, _WORD) for n in range(4)]
                _mix(ib, lambda n: state[n], counted, put(i * 4, 4))
            state[7] = state[7] + cast(whole * 4, _WORD)
        if rest:
            _mix(ib, lambda n: state[n], [state[4 + n] for n in range(4)], put(4 * whole, rest))
            state[7] = state[7] + _word(4)
        state[6] = _word(0)

    flat = in_loops([(10,), (size,)], [gen], body, "threefry_generate", [_WORD, _WORD])
    return flat[0], flat[1] if len(shape) == 1 else reshape(flat[1], shape)


def threefry_split(gen: Tensor) -> tuple[Tensor, Tensor]:
    """Two states out of one, whose numbers have nothing to do with each other.

    Args:
        gen: uint64 [10], a state; not to be used again.

    Returns:
        Two states, uint64 [10].

    Raises:
        DeclarationError: for another state.
    """
    _checked("threefry_split", gen)

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        given, left, right = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
        with ib.if_scope(given[8] == _word(0)):
            _new_key(ib, given, left, _TOP // 2)
            for n in range(10):
                right[n] = left[n]
            right[4] = _word(_TOP)
        with ib.else_scope():
            for out in (left, right):
                for n in range(8):
                    out[n] = given[n]
                _next_place(ib, given, out)
            for n in (4, 5):
                right[n] = bitwise.bitwise_or(given[n], given[4 + n])

    made = in_loops([(10,), (10,)], [gen], body, "threefry_split", [_WORD, _WORD])
    return made[0], made[1]


def threefry_test_wrapping(target: Any, device: Any) -> bool:
    """Whether the sum of unsigned words wraps on a target, as Threefry needs it.

    Args:
        target: to build for.
        device: to run on.
    """
    import numpy as np

    from ..runtime import ndarray
    from ..runtime.build import build
    from ..schedule.te_schedule import create_schedule

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        given, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        out[0] = given[0] + _word(1)

    word = placeholder((1,), _WORD, "word")
    total = in_loops([(1,)], [word], body, "wrapped", [_WORD])[0]
    found = ndarray.array(np.ones(1, _WORD), device)
    build(create_schedule(total.op), [word, total], target)(ndarray.array(np.array([_LARGEST], _WORD), device), found)
    return int(found.numpy()[0]) == 0


def _scalar(value: Any, dtype: str) -> PrimExpr:
    return cast(value() if isinstance(value, Tensor) else value, dtype)


def uniform(gen: Tensor, low: Any, high: Any, out_shape: Sequence[int], out_dtype: str) -> tuple[Tensor, Tensor]:
    """Numbers in [low, high), each as likely.

    Args:
        gen: uint64 [10], a state; not to be used again.
        low, high: numbers or scalar tensors.
        out_shape: constant extents.
        out_dtype: "float32" or "float64".

    Returns:
        The next state, uint64 [10], and the numbers.

    Raises:
        DeclarationError: for another state, shape or dtype.
    """
    if out_dtype not in _FLOATS:
        raise DeclarationError(f'uniform: out_dtype is {out_dtype!r}; it takes "float32" or "float64"')
    state, words = threefry_generate(gen, out_shape)
    dtype, dropped, exponent = _FLOATS[out_dtype]

    def body(*i: Any) -> PrimExpr:
        mantissa = bitwise.shift_right(cast(words(*i), dtype), const(dropped, dtype))
        unit = intrin.reinterpret(out_dtype, bitwise.bitwise_or(mantissa, const(exponent, dtype))) - const(1, out_dtype)
        first, last = _scalar(low, out_dtype), _scalar(high, out_dtype)
        return unit * (last - first) + first

    return state, injective(words.shape, body, "uniform")


def normal(gen: Tensor, mean: Any, scale: Any, out_shape: Sequence[int], out_dtype: str) -> tuple[Tensor, Tensor]:
    """Numbers of a normal distribution (Box and Muller 1958).

    Args:
        gen: uint64 [10], a state; not to be used again.
        mean, scale: the mean and the standard deviation, numbers or scalar tensors.
        out_shape: constant extents.
        out_dtype: "float32" or "float64".

    Returns:
        The next state, uint64 [10], and the numbers.

    Raises:
        DeclarationError: for another state, shape or dtype.
    """
    state, pairs = uniform(gen, 0.0, 1.0, (2, *out_shape), out_dtype)

    def body(*i: Any) -> PrimExpr:
        # Uniform numbers may be 0 but not 1: the logarithm of 1 less such a number is finite.
        radius = intrin.sqrt(const(-2, out_dtype) * intrin.log(const(1, out_dtype) - pairs(0, *i)))
        angle = const(6.283185307179586, out_dtype) * pairs(1, *i)
        return radius * intrin.sin(angle) * _scalar(scale, out_dtype) + _scalar(mean, out_dtype)

    return state, injective(pairs.shape[1:], body, "normal")


def multinomial(gen: Tensor, probs: Tensor, num_samples: int) -> tuple[Tensor, Tensor]:
    """Numbers of classes, drawn with given probabilities.

    Args:
        gen: uint64 [10], a state; not to be used again.
        probs: float32 or float64 [..., classes]; they need not sum to 1, negative ones count as 0.
        num_samples: how many to draw of each row.

    Returns:
        The next state, uint64 [10], and int32 [..., num_samples].

    Raises:
        DeclarationError: for another state or dtype.
    """
    from .reduction import argmin, sum

    leading = tuple(extent_value(extent) for extent in probs.shape[:-1])
    rows, classes = product(leading), probs.shape[-1]
    dtype = probs.dtype
    positive = injective(probs.shape, lambda *i: arithmetic.maximum(probs(*i), const(0, dtype)), "positive")
    total = sum(positive, -1, True)
    parts = injective(probs.shape, lambda *i: positive(*i) / total(*i[:-1], 0), "parts")
    ends = reshape(cumsum(parts, -1, dtype), (rows, classes))
    state, drawn = uniform(gen, 0.0, 1.0, (extent_value(rows), num_samples), "float32")

    def room(r: Any, k: Any, n: Any) -> PrimExpr:
        # Of the last end, which rounding leaves at 0.9999999, say: a number beyond all ends would give the first class.
        left = ends(r, k) - cast(drawn(r, n), dtype) * ends(r, classes - 1)
        # More than any room there is: classes of no part in front must not tie with the first one that has all.
        return intrin.select(left > const(0, dtype), left, const(2, dtype))

    # The class whose part holds the number is the first one that ends behind it.
    chosen = argmin(injective((rows, classes, num_samples), room, "room"), 1)
    return state, reshape(chosen, (*leading, num_samples))
