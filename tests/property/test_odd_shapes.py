"""Property 25: empty tensors, joins of one input, negative padding, strides, and axes of one element, through every phase."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensorexpr import te, topi
from tensorexpr.errors import DeclarationError
from tensorexpr.runtime.build import build
from tensorexpr.schedule import create_schedule
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tests.effort import share_of
from tests.operators import Array, assert_same, run, values

Make = Callable[..., Any]


def check(make: Make, wanted: Array, *arrays: Array) -> None:
    """What NumPy gives is what the definition means, and every phase and the machine code compute it."""
    assert_same(run(make, *arrays), wanted)
    inputs = [te.placeholder(a.shape, str(a.dtype), f"x{n}") for n, a in enumerate(arrays)]
    made = make(*inputs)
    assert isinstance(made, Tensor)
    assert_schedule_correct(create_schedule(made.op), [*inputs, made], phases=(0, 2))


EMPTY: dict[str, tuple[Make, Callable[[Array], Array], tuple[int, ...]]] = {
    "elementwise": (topi.nn.relu, lambda x: np.maximum(x, 0), (0, 3)),
    "sum to zeros": (lambda x: topi.sum(x, axis=0), lambda x: x.sum(0), (0, 3)),
    "sum of nothing": (lambda x: topi.sum(x, axis=1), lambda x: x.sum(1), (0, 3)),
    "product of nothing is one": (lambda x: topi.prod(x, axis=0), lambda x: x.prod(0), (0, 3)),
    "whole sum": (lambda x: topi.sum(x), lambda x: x.sum(), (2, 0)),
    "maximum over what is there": (lambda x: topi.max(x, axis=1), lambda x: x.max(1), (0, 3)),
    "transpose": (lambda x: topi.transpose(x), lambda x: x.T, (0, 3)),
    "reshape": (lambda x: topi.reshape(x, (3, 0)), lambda x: x.reshape(3, 0), (0, 3)),
    "join": (lambda x: topi.concatenate([x, x], axis=1), lambda x: np.concatenate([x, x], 1), (0, 3)),
    "padding": (lambda x: topi.nn.pad(x, [1, 0], [1, 0], 2.0), lambda x: np.full((2, 3), 2.0, "float32"), (0, 3)),
    "product over nothing": (lambda x: topi.matmul(x, topi.transpose(x)), lambda x: x @ x.T, (3, 0)),
    "softmax": (lambda x: topi.nn.softmax(x), lambda x: x, (3, 0)),
    "argmax over what is there": (lambda x: topi.argmax(x, axis=1), lambda x: x.argmax(1), (0, 3)),
    "broadcasting": (lambda x: topi.add(x, topi.full((1, 3), "float32", 1.0)), lambda x: x + 1, (0, 3)),
    "take": (lambda x: topi.take(x, topi.full((0,), "int32", 0), axis=0), lambda x: x[:0], (4, 3)),
    "slice of nothing": (lambda x: topi.strided_slice(x, [1, 0], [1, 3], [1, 1]), lambda x: x[1:1], (4, 3)),
}


@pytest.mark.parametrize("name", EMPTY)
def test_25_empty_tensors(name: str) -> None:
    make, wanted, shape = EMPTY[name]
    x = values(*shape)
    check(make, wanted(x), x)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4)])
@pytest.mark.parametrize("kind", ["parallel", "vectorize", "unroll"])
def test_25_loops_without_iterations_of_any_kind(shape: tuple[int, ...], kind: str) -> None:
    a = te.placeholder(shape, name="A")
    b = te.compute(shape, lambda *i: a(*i) * 2.0, name="B")
    c = te.compute(shape, lambda *i: b(*i) + 1.0, name="C")
    s = create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[-1], factor=4)
    s[b].compute_at(s[c], outer)
    getattr(s[c], kind)(inner if kind == "vectorize" else c.op.axis[0] if len(shape) > 1 else outer)
    assert_schedule_correct(s, [a, c])


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
@pytest.mark.parametrize("shape", [(4, 3), (1, 1), (0, 2)])
def test_25_joins_of_one_input(shape: tuple[int, ...], axis: int) -> None:
    x = values(*shape)
    check(lambda t: topi.concatenate([t], axis=axis), x, x)
    check(lambda t: topi.stack([t], axis=axis), np.stack([x], axis), x)


PADS = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=2)


@settings(max_examples=share_of(30), deadline=None, derandomize=True)
@given(st.integers(1, 5), st.integers(1, 5), PADS)
@example(n=4, m=3, pads=[(-1, 2), (0, -1)])
@example(n=3, m=3, pads=[(-2, -2), (1, 1)])
def test_25_padding_may_be_negative(n: int, m: int, pads: list[tuple[int, int]]) -> None:
    """Negative padding cuts; what would leave less than nothing is refused."""
    x = values(n, m)
    sizes = [extent + before + after for extent, (before, after) in zip(x.shape, pads, strict=True)]
    make: Make = lambda t: topi.nn.pad(t, [p[0] for p in pads], [p[1] for p in pads], 7.0)  # noqa: E731
    if min(sizes) < 0:
        with pytest.raises(DeclarationError):
            run(make, x)
        return
    grown = np.pad(x, [(max(0, b), max(0, a)) for b, a in pads], constant_values=7.0)
    cut = tuple(slice(max(0, -b), max(0, -b) + size) for (b, _), size in zip(pads, sizes, strict=True))
    check(make, grown[cut], x)


SLICES = st.tuples(st.integers(-7, 7), st.integers(-7, 7), st.sampled_from((-3, -2, -1, 1, 2, 3)))


@settings(max_examples=share_of(40), deadline=None, derandomize=True)
@given(st.integers(1, 6), st.integers(1, 6), SLICES, SLICES)
@example(n=5, m=4, first=(4, -7, -2), second=(0, 4, 3))
def test_25_slices_with_any_stride(n: int, m: int, first: tuple[int, int, int], second: tuple[int, int, int]) -> None:
    x = values(n, m)
    begin, end, strides = (list(part) for part in zip(first, second, strict=True))
    wanted = x[first[0] : first[1] : first[2], second[0] : second[1] : second[2]]
    check(lambda t: topi.strided_slice(t, begin, end, strides), np.ascontiguousarray(wanted), x)


@pytest.mark.parametrize("function", [topi.argmax, topi.argmin])
@pytest.mark.parametrize(("shape", "axis"), [((1, 3), 0), ((1, 3), 1), ((3, 1), 1), ((1,), 0), ((1, 1, 1), 1), ((4, 1, 3), 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_25_argmax_over_and_beside_axes_of_one(function: Make, shape: tuple[int, ...], axis: int, keepdims: bool) -> None:
    x = values(*shape)
    reference = np.argmax if function is topi.argmax else np.argmin
    check(lambda t: function(t, axis=axis, keepdims=keepdims), reference(x, axis=axis, keepdims=keepdims), x)


@settings(max_examples=share_of(30), deadline=None, derandomize=True)
@given(st.permutations((1, 3, 4)), st.lists(st.booleans(), min_size=3, max_size=3), st.integers(0, 2), st.booleans())
def test_25_broadcasting_under_argmax(shape: list[int], ones: list[bool], axis: int, smallest: bool) -> None:
    x, y = values(*shape), values(*(1 if one else extent for one, extent in zip(ones, shape, strict=True)))
    function, reference = (topi.argmin, np.argmin) if smallest else (topi.argmax, np.argmax)
    check(lambda s, t: function(topi.add(s, t), axis=axis), reference(x + y, axis=axis), x, y)


@settings(max_examples=share_of(25), deadline=None, derandomize=True)
@given(st.integers(0, 5), st.integers(1, 5), st.sampled_from((-2, -1, 1, 2, 3)), st.booleans())
def test_25_arguments_with_strides(n: int, m: int, step: int, columns: bool) -> None:
    """A view is taken as it is where its strides fit, or refused; never read as if it were compact."""
    a = te.placeholder((n, m), name="A")
    b = te.compute((n, m), lambda i, j: a[i, j] + 1.0, name="B")
    run_it = build(create_schedule(b.op), [a, b])
    whole = values(n if columns else 3 * n, 3 * m if columns else m)
    x = whole[:, ::step][:, :m] if columns else whole[::step][:n]
    if x.shape != (n, m):
        return
    y = np.full((n, m), 5, "float32")
    try:
        run_it(x, y)
    except ValueError as error:
        assert "strides" in str(error) or "compact" in str(error) or "contiguous" in str(error), error
        assert (y == 5).all()
        return
    np.testing.assert_array_equal(y, x + 1)
