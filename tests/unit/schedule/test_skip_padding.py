"""skip_padding: which terms are left out, and what lowering makes of a convolution's borders."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.schedule import Schedule, Trace, create_schedule
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.tir.expr import Reduce
from tests.programs import conv_relu

Program = tuple[Schedule, list[Tensor], Tensor]


def convolved(size: int = 9, dtype: str = "float32", pad: int = 1, stride: int = 1, channels: int = 2) -> Program:
    """A 3x3 convolution of a padded image by 16 filters, which are the vector; the padding is inlined."""
    x = te.placeholder((channels, size, size), dtype, name="X")
    w = te.placeholder((channels, 3, 3, 16), dtype, name="W")
    whole, end = size + 2 * pad, size + pad

    def padded(c: Any, i: Any, j: Any) -> Any:
        return te.if_then_else(te.all(i >= pad, i < end, j >= pad, j < end), x[c, i - pad, j - pad], te.const(0, dtype))

    p = te.compute((channels, whole, whole), padded, name="P")
    rc, ri, rj = te.reduce_axis((0, channels), "rc"), te.reduce_axis((0, 3), "ri"), te.reduce_axis((0, 3), "rj")
    out = (whole - 3) // stride + 1
    conv = te.compute(
        (out, out, 16), lambda i, j, o: te.sum(p[rc, i * stride + ri, j * stride + rj] * w[rc, ri, rj, o], axis=[rc, ri, rj]), name="conv"
    )
    s = create_schedule(conv.op)
    s[p].compute_inline()
    return s, [x, w, conv], conv


def reduction(s: Schedule, tensor: Tensor) -> Reduce:
    """What a stage reduces now."""
    body = s.tree[s[tensor].id].compute.body[0]
    assert isinstance(body, Reduce)
    return body


def tiled(s: Schedule, conv: Tensor, columns: int, hint: bool, balanced: bool = False) -> Tensor:
    """Rows in parallel, tiles of columns in registers, the channel loop inside the taps."""
    cached: Tensor = s.cache_write(conv, "local")
    i, j, o = s[conv].op.axis
    jo, ji = s[conv].split(j, factor=columns, balanced=balanced)
    s[conv].reorder(i, jo, ji, o)
    s[conv].parallel(i)
    s[conv].vectorize(o)
    s[cached].compute_at(s[conv], jo)
    (_, cj, co), (rc, ri, rj) = s[cached].op.axis, s[cached].op.reduce_axis
    s[cached].reorder(ri, rj, rc, cj, co)
    s[cached].vectorize(co)
    s[cached].skip_padding(assume_finite=True)
    if hint:
        s[conv].pragma(jo, "loop_partition_hint", True)
    return cached


def test_the_condition_becomes_that_of_the_reduction() -> None:
    s, args, conv = convolved()
    s[conv].skip_padding(assume_finite=True)
    assert str(reduction(s, conv).condition) == "i + ri >= 1 and i + ri < 10 and j + rj >= 1 and j + rj < 10"
    assert s.explain().count("terms: only where i + ri >= 1 and") == 1
    assert_schedule_correct(s, args)


def test_rows_at_the_border_run_fewer_taps() -> None:
    s, args, conv = convolved()
    s[conv].skip_padding(assume_finite=True)
    text = tvm.lower(s, args, upto=2).script()
    assert "for ri in range(T.max(1 - i, 0), " in text and "for rj in range(T.max(1 - j, 0), " in text
    assert "if" not in text


def test_tiles_at_the_border_have_bodies_of_their_own_without_dead_terms() -> None:
    s, args, conv = convolved(12)
    tiled(s, conv, 4, hint=True)
    text = tvm.lower(s, args, upto=2).script()
    assert not re.search(r"\bif\b|if_then_else|predicate|Select", text)
    assert text.count("for ri in range(T.max(1 - i, 0)") == 3  # the first tile, those between, the last
    assert len(re.findall(r"for (?:rj|rj, rc) in .*\n|for rc in range\(2\)", text)) >= 4
    updates = re.findall(r"local_1\[\d+\] = \w+_1\[\d+\] \+ ", text)
    assert len(updates) == (3 + 4) + 4 + (4 + 3)  # per body and part of the taps; a corner tile's outer tap meets 3 columns
    assert_schedule_correct(s, args)


@pytest.mark.parametrize("hint", [False, True])
@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize(
    "size, pad, stride, columns", [(7, 1, 1, 4), (9, 2, 1, 5), (8, 1, 2, 3), (11, 3, 2, 2), (5, 2, 1, 14), (1, 1, 1, 1)]
)
def test_every_border(size: int, pad: int, stride: int, columns: int, balanced: bool, hint: bool) -> None:
    s, args, conv = convolved(size, pad=pad, stride=stride)
    tiled(s, conv, columns, hint, balanced)
    assert_schedule_correct(s, args, phases=(0, 2, 3))


def test_a_whole_term_that_is_the_identity_needs_no_assumption() -> None:
    a = te.placeholder((10,), name="A")
    r = te.reduce_axis((0, 3), name="r")

    def term(i: Any) -> Any:
        return te.if_then_else(te.all(i + r >= 1, i + r < 11), a[i + r - 1], te.min_value("float32"))

    b = te.compute((10,), lambda i: te.max(term(i), axis=r), name="B")
    s = create_schedule(b.op)
    s[b].skip_padding()
    assert "if_then_else" not in str(reduction(s, b).source[0])
    assert_schedule_correct(s, [a, b])


def test_products_of_integers_need_no_assumption() -> None:
    s, args, conv = convolved(dtype="int32")
    s[conv].skip_padding()
    assert_schedule_correct(s, args)


def _run(prepare: Callable[[Schedule, Tensor], object]) -> Any:
    s, args, conv = convolved(4, channels=1)
    prepare(s, conv)
    x, w = np.ones((1, 4, 4), "float32"), np.full((1, 3, 3, 16), np.inf, "float32")
    out = np.zeros((4, 4, 16), "float32")
    tvm.build(s, args)(x, w, out)
    return out


def test_28_infinite_weights_make_nan_at_the_border_unless_said_otherwise() -> None:
    plain = _run(lambda s, conv: None)
    assert np.isnan(plain[0]).all() and np.isinf(plain[1:3, 1:3]).all()
    assert np.isnan(_run(lambda s, conv: s[conv].pragma(conv.op.axis[1], "loop_partition_hint", True))[0]).all()
    assert np.isinf(_run(lambda s, conv: s[conv].skip_padding(assume_finite=True))).all()


def test_factors_deep_in_a_product_and_behind_casts() -> None:
    a, w = te.placeholder((9,), "int8", name="A"), te.placeholder((3,), "int32", name="W")
    p = te.compute((11,), lambda i: te.if_then_else(te.all(i >= 1, i < 10), a[i - 1], te.const(0, "int8")), name="P")
    r = te.reduce_axis((0, 3), name="r")
    b = te.compute((9,), lambda i: te.sum(w[r] * (p[i + r].astype("int32") * 3), axis=r, where=r < 2), name="B")
    s = create_schedule(b.op)
    s[p].compute_inline()
    s[b].skip_padding()
    assert str(reduction(s, b).condition) == "r < 2 and (i + r >= 1 and i + r < 10)"
    assert_schedule_correct(s, [a, w, b])


def test_cached_and_factored_after_it() -> None:
    s, args, conv = convolved(5)
    s[conv].skip_padding(assume_finite=True)
    cached: Tensor = s.cache_write(conv, "local")
    s.rfactor(cached, s[cached].op.reduce_axis[0])
    assert_schedule_correct(s, args)


def test_as_json_and_python() -> None:
    args = conv_relu(2, 4, 4)
    conv = args[-1].op.input_tensors[0]
    s = create_schedule(args[-1].op)
    s[conv.op.input_tensors[0]].compute_inline()
    s[conv].skip_padding(assume_finite=True)
    s[conv].pragma(s[conv].op.axis[1], "loop_partition_hint")
    again = Schedule(s.outputs, Trace.from_json(json.loads(json.dumps(s.trace.to_json()))))
    assert again.trace == s.trace and again.as_python() == s.as_python()
    assert "s[conv].skip_padding(assume_finite=True)" in s.as_python()
    replayed = create_schedule(args[-1].op)
    exec(s.as_python(), {"pad": conv.op.input_tensors[0], "conv": conv, "out": args[-1], "s": replayed})
    assert replayed.trace == s.trace
    assert_schedule_correct(s, args)
