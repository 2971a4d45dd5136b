"""Stages computed in tiles of two sizes: each computes what its readers read in that tile, no more and no less."""

from __future__ import annotations

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.schedule import create_schedule
from tensorexpr.testing.check import assert_schedule_correct


def test_a_window_shrinks_with_its_tile() -> None:
    a = te.placeholder((25,), name="A")
    b = te.compute((25,), lambda i: a[i] * 2.0, name="B")
    r = te.reduce_axis((0, 3), name="r")
    c = te.compute((23,), lambda i: te.sum(b[i + r], axis=r), name="C")
    s = create_schedule(c.op)
    io, _ = s[c].split(c.op.axis[0], factor=5, balanced=True)
    s[b].compute_at(s[c], io)
    text = tvm.lower(s, [a, c], upto=1).script()
    assert "for i in range(7)" in text and "if T.likely(i * 2 + i_outer < 15)" in text  # 3 tiles of 5 need 7, 2 of 4 need 6
    assert_schedule_correct(s, [a, c])


def test_a_reader_that_runs_backwards() -> None:
    """In a smaller tile it is the first element of the box that isn't read."""
    a = te.placeholder((23,), name="A")
    b = te.compute((23,), lambda i: a[i] * 2.0, name="B")
    c = te.compute((23,), lambda i: b[22 - i] + 1.0, name="C")
    s = create_schedule(c.op)
    io, _ = s[c].split(c.op.axis[0], factor=5, balanced=True)
    s[b].compute_at(s[c], io)
    assert "i * 2 + i_outer" not in tvm.lower(s, [a, c], upto=0).script()
    assert_schedule_correct(s, [a, c])


def test_a_window_with_a_stride() -> None:
    a = te.placeholder((47,), name="A")
    b = te.compute((47,), lambda i: a[i] * 2.0, name="B")
    c = te.compute((23,), lambda i: b[i * 2] + b[i * 2 + 2], name="C")
    s = create_schedule(c.op)
    io, _ = s[c].split(c.op.axis[0], factor=5, balanced=True)
    s[b].compute_at(s[c], io)
    assert_schedule_correct(s, [a, c])


def test_a_chain_of_stages_in_a_tile() -> None:
    """Each stage of the chain passes the short tile on to what it reads."""
    a = te.placeholder((27,), name="A")
    b = te.compute((27,), lambda i: a[i] * 2.0, name="B")
    c = te.compute((25,), lambda i: b[i] + b[i + 2], name="C")
    d = te.compute((23,), lambda i: c[i] + c[i + 1] + c[i + 2], name="D")
    s = create_schedule(d.op)
    io, _ = s[d].split(d.op.axis[0], factor=5, balanced=True)
    s[c].compute_at(s[d], io)
    s[b].compute_at(s[d], io)
    text = tvm.lower(s, [a, d], upto=1).script()
    assert "for i in range(9)" in text and "if T.likely(i * 2 + i_outer < 19)" in text
    assert "for i in range(7)" in text and "if T.likely(i * 2 + i_outer < 15)" in text
    assert_schedule_correct(s, [a, d])


def test_readers_that_disagree_get_the_whole_box() -> None:
    """The last element of the box is read by the second reader in every tile."""
    a = te.placeholder((27,), name="A")
    b = te.compute((27,), lambda i: a[i] * 2.0, name="B")
    c = te.compute((23,), lambda i: b[i] + b[i // 24 + 20], name="C")
    s = create_schedule(c.op)
    io, _ = s[c].split(c.op.axis[0], factor=5, balanced=True)
    s[b].compute_at(s[c], io)
    assert_schedule_correct(s, [a, c])


def test_a_reader_whose_tile_is_split_again() -> None:
    a = te.placeholder((23,), name="A")
    b = te.compute((23,), lambda i: a[i] * 2.0, name="B")
    c = te.compute((23,), lambda i: b[i] + 1.0, name="C")
    s = create_schedule(c.op)
    io, ii = s[c].split(c.op.axis[0], factor=5, balanced=True)
    s[c].split(ii, factor=2)
    s[b].compute_at(s[c], io)
    assert_schedule_correct(s, [a, c])


def test_no_guard_at_the_border_where_the_tiles_end_at_it() -> None:
    """The larger and the smaller tiles apart, no tile reaches beyond the end."""
    a = te.placeholder((23,), name="A")
    b = te.compute((23,), lambda i: a[i] * 2.0, name="B")
    c = te.compute((23,), lambda i: b[i] + 1.0, name="C")
    s = create_schedule(c.op)
    io, _ = s[c].split(c.op.axis[0], factor=5, balanced=True)
    s[b].compute_at(s[c], io)
    assert "< 23" not in tvm.lower(s, [a, c], upto=0).script()
    s = create_schedule(c.op)
    io, _ = s[c].split(c.op.axis[0], factor=5)
    s[b].compute_at(s[c], io)
    assert "< 23" in tvm.lower(s, [a, c], upto=0).script()
