"""Why schedules are legal, as text."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tensorexpr import te
from tensorexpr.errors import ScheduleError
from tensorexpr.schedule import Schedule, create_schedule
from tests.conftest import Golden
from tests.programs import chain, matmul, matmul_add


def tiled_matmul() -> Schedule:
    """Parallel blocks that hold their part of the product, a reduction in blocks, a vector loop."""
    out = matmul_add(16, 64, 20)[-1]
    product = out.op.input_tensors[0]
    s = create_schedule(out.op)
    i, j = out.op.axis
    io, jo, _, ji = s[out].tile(i, j, 8, 32)
    block = s[out].fuse(io, jo)
    s[out].parallel(block)
    s[out].vectorize(ji)
    s[product].compute_at(s[out], block)
    (_, mj), (k,) = product.op.axis, product.op.reduce_axis
    ko, ki = s[product].split(k, factor=8)
    s[product].reorder(ki, ko, mj)
    s[product].unroll(ki)
    s[product].vectorize(mj)
    return s


def stencil() -> Schedule:
    """Two stages inside a loop of their consumer, one of them split, one inlined before."""
    d = chain(20)[-1]
    c, b = d.op.input_tensors
    s = create_schedule(d.op)
    outer, _ = s[d].split(d.op.axis[0], factor=4)
    s[b].compute_at(s[d], outer)
    s[c].compute_inline()
    s[b].split(b.op.axis[0], factor=4)
    return s


def symbolic_rows() -> Schedule:
    """Row sums of n x m, rows in parallel, a guarded vector tail in what follows."""
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    total = te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="total")
    c = te.compute((n, m), lambda i, j: a[i, j] - total[i], name="C")
    s = create_schedule(c.op)
    s[c].parallel(c.op.axis[0])
    s[c].vectorize(s[c].split(c.op.axis[1], factor=8)[1])
    s[total].compute_at(s[c], c.op.axis[0])
    s[total].split(k, factor=4)
    return s


PROGRAMS: dict[str, Callable[[], Schedule]] = {"tiled_matmul": tiled_matmul, "stencil": stencil, "symbolic_rows": symbolic_rows}


@pytest.mark.parametrize("name", PROGRAMS)
def test_explanations(name: str, golden: Golden) -> None:
    golden(f"explain/{name}.txt", PROGRAMS[name]().explain())


def test_an_illegal_schedule_is_not_explained() -> None:
    a, b, c = matmul()
    d = te.compute(c.shape, lambda i, j: c[i, j] + 1.0, name="D")
    e = te.compute(c.shape, lambda i, j: c[i, j] + d[i, j], name="E")
    s = create_schedule(e.op)
    s[c].compute_at(s[d], d.op.axis[0])
    with pytest.raises(ScheduleError, match="In schedule for C: it is computed at loop 'i' of D, but E also reads it outside"):
        s.explain()
    assert a is not None and b is not None


def test_the_reason_follows_the_schedule() -> None:
    c = matmul()[-1]
    s = create_schedule(c.op)
    outer, inner = s[c].split(c.op.reduce_axis[0], factor=4)
    assert "in the declared order" in s.explain() and "associative" not in s.explain()
    s[c].reorder(inner, outer)
    assert "the combiner x + y is associative and commutative" in s.explain()
