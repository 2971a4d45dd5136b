"""Border guards go exactly where computing past the end reads nothing that doesn't exist and traps nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.schedule import Schedule, create_schedule
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tests.packing import packed_matmul

Definition = Callable[[Tensor], Callable[[Any], Any]]


def in_tiles(definition: Definition, extent: int = 12) -> tuple[Schedule, list[Tensor], str]:
    """A stage of 10 elements in tiles of 4 of its reader, and the lines that compute it."""
    a = te.placeholder((extent,), "int32", name="A")
    b = te.compute((10,), definition(a), name="B")
    c = te.compute((10,), lambda i: b[i] + 1, name="C")
    s = create_schedule(c.op)
    outer, _ = s[c].split(c.op.axis[0], factor=4)
    s[b].compute_at(s[c], outer)
    text = str(tvm.lower(s, [a, c], upto=0))
    return s, [a, c], text.split("T.realize(B")[1].split("C[")[0].rsplit("for ", 1)[0]


UNGUARDED: dict[str, Definition] = {
    "reads one element": lambda a: lambda i: a[0] + i * 2,
    "reads what there is": lambda a: lambda i: a[i] * 2,
    "reads under a condition": lambda a: lambda i: te.if_then_else(i < 9, a[i + 3], 0),
    "reads elsewhere": lambda a: lambda i: a[11 - te.indexmod(i, 12)],
    "reads where clipped data says": lambda a: lambda i: a[tvm.tir.max(tvm.tir.min(a[i], 11), 0)],
    "divides by a constant": lambda a: lambda i: te.floordiv(a[i], 3),
}
GUARDED: dict[str, Definition] = {
    "reads past the end": lambda a: lambda i: a[i + 2],
    "reads before the start": lambda a: lambda i: a[9 - i],
    "reads past the end under a condition": lambda a: lambda i: te.if_then_else(i > 3, a[i + 2], 0),
    "divides by what is read": lambda a: lambda i: te.floordiv(100, a[te.indexmod(i, 12)]),
    "calls out": lambda a: lambda i: tvm.tir.call_pure_extern("int32", "abs", a[i]),
    "reads where data says": lambda a: lambda i: a[a[i]],
}


@pytest.mark.parametrize("name", UNGUARDED)
def test_no_guard(name: str) -> None:
    s, args, computed = in_tiles(UNGUARDED[name])
    assert "likely" not in computed
    assert_schedule_correct(s, args)


@pytest.mark.parametrize("name", GUARDED)
def test_guard(name: str) -> None:
    _, _, computed = in_tiles(GUARDED[name])
    assert "likely" in computed


def test_one_of_two_guards() -> None:
    """Rows of A end, columns of the packed B don't: the tile is guarded in one direction."""
    s, args = packed_matmul(13, 7, 19)
    text = str(tvm.lower(s, args, upto=0))
    update = text.split("for k in range(7)")[1].split("for i_inner")[0]
    assert "T.likely(i_outer * 5 + i_c < 13)" in update
    assert update.count("likely") == 1


def test_a_reader_of_what_was_left_out_keeps_its_guard() -> None:
    """B is stored for the tensor only; what lies past its end was never computed."""
    a = te.placeholder((10,), "int32", name="A")
    b = te.compute((10,), lambda i: a[i] + 1, name="B")
    d = te.compute((10,), lambda i: b[i] + 1, name="D")
    c = te.compute((10,), lambda i: d[i] + 1, name="C")
    s = create_schedule(c.op)
    outer, _ = s[c].split(c.op.axis[0], factor=4)
    s[b].compute_at(s[c], outer)
    s[d].compute_at(s[c], outer)
    assert str(tvm.lower(s, [a, c], upto=0)).count("likely") == 3
    assert_schedule_correct(s, [a, c])
