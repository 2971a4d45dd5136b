"""prefetch, rolling_buffer, set_store_predicate, store_nontemporal as steps: JSON, Python, copies, and what keeps them."""

from __future__ import annotations

import json
from typing import Any

from tensorexpr import te
from tensorexpr.schedule import Schedule, Trace, create_schedule
from tensorexpr.te.tensor import Tensor


def program() -> tuple[Tensor, Tensor, Tensor]:
    """A, B = A + 1 and out[i, j] = B[i, j] + B[i + 2, j]."""
    a = te.placeholder((10, 4), name="A")
    b = te.compute((10, 4), lambda i, j: a[i, j] + 1.0, name="B")
    return a, b, te.compute((8, 4), lambda i, j: b[i, j] + b[i + 2, j], name="out")


def scheduled() -> tuple[Schedule, tuple[Tensor, Tensor, Tensor]]:
    """Everything at once."""
    a, b, out = program()
    s = create_schedule(out.op)
    i, j = out.op.axis
    s[b].compute_at(s[out], i)
    s[b].rolling_buffer()
    s[b].set_store_predicate(b.op.axis[0] < 10)
    s[out].set_store_predicate(te.all(te.any(i * 2 + 1 > j, i // 2 == 0), te.any(j != 3, i % 3 <= 1), i - j >= -3))
    s[out].prefetch(a, i, 2)
    s[out].store_nontemporal()
    return s, (a, b, out)


def test_json() -> None:
    s, _ = scheduled()
    data = json.loads(json.dumps(s.trace.to_json()))
    assert Trace.from_json(data) == s.trace
    assert data[1:3] == [["rolling_buffer", 1], ["set_store_predicate", 1, ["<", ["axis", 0], 10]]]
    assert data[4:] == [["prefetch", 2, 0, 0, 0, 2], ["store_nontemporal", 2]]
    again = Schedule(s.outputs, Trace.from_json(data))
    assert str(again) == str(s)


def test_python() -> None:
    s, _ = scheduled()
    a, b, out = program()
    names: dict[str, Any] = {"A": a, "B": b, "out": out}
    names["s"] = again = create_schedule(out.op)
    exec(s.as_python(), names)
    assert again.trace == s.trace


def test_not_and_the_order_of_operations_survive() -> None:
    _, _, out = program()
    s = create_schedule(out.op)
    i, j = out.op.axis
    s[out].set_store_predicate(~te.all(i - (j - 2) < 3, (i + 1) * 2 > j))
    lines = s.as_python()
    names: dict[str, Any] = {"out": out, "A": None, "B": out.op.input_tensors[0]}
    names["s"] = again = create_schedule(out.op)
    exec(lines, names)
    assert again.trace == s.trace


def test_the_latest_predicate_and_distance_hold() -> None:
    a, b, out = program()
    s = create_schedule(out.op)
    s[out].set_store_predicate(out.op.axis[0] < 3)
    s[out].set_store_predicate(out.op.axis[1] < 2)
    s[b].prefetch(a, b.op.axis[0], 1)
    s[b].prefetch(a, b.op.axis[0], 5)
    assert s.tree[2].store_predicate == ("<", ("axis", 1), 2)
    assert [mark.offset for mark in s.tree[1].prefetches] == [5]


def test_cache_write_leaves_the_stores_to_the_stage_that_copies_out() -> None:
    _, _, out = program()
    s = create_schedule(out.op)
    s[out].set_store_predicate(out.op.axis[0] < 3)
    s[out].store_nontemporal()
    cached = s.cache_write(out, "local")
    assert s.tree[2].nontemporal
    assert s.tree[2].store_predicate == ("<", ("axis", 0), 3)
    new = s.tree[s[cached].id]
    assert not new.nontemporal
    assert new.store_predicate is None


def test_words_in_the_drawing() -> None:
    s, _ = scheduled()
    text = str(s)
    assert "B [10, 4] rolling where i < 10" in text
    assert "out [8, 4] non-temporal where" in text
    assert "for i (0, 8) prefetch=A+2" in text
