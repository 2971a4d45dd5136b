"""What rolling buffers, prefetches, store predicates, non-temporal stores and separate loads become; and how they are explained."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.schedule import Schedule, create_schedule
from tensorexpr.te.tensor import Tensor
from tests.conftest import Golden
from tests.programs import matmul

Program = tuple[Schedule, list[Tensor]]


def rolling_blur() -> Program:
    """A blur along rows, then along columns, whose rows stay in a window of three."""
    a = te.placeholder((10, 18), name="A")
    b = te.compute((10, 16), lambda i, j: a[i, j] + a[i, j + 1] + a[i, j + 2], name="B")
    out = te.compute((8, 16), lambda i, j: b[i, j] + b[i + 1, j] + b[i + 2, j], name="out")
    s = create_schedule(out.op)
    outer, inner = s[out].split(out.op.axis[0], factor=4)
    s[out].parallel(outer)
    s[b].compute_at(s[out], inner)
    s[b].rolling_buffer()
    s[b].vectorize(b.op.axis[1])
    s[out].vectorize(out.op.axis[1])
    return s, [a, out]


def prefetched_matmul() -> Program:
    """Rows of B are fetched four steps of k ahead."""
    args = matmul(4, 32, 16)
    c = args[-1]
    s = create_schedule(c.op)
    (i, j), (k,) = c.op.axis, c.op.reduce_axis
    s[c].reorder(i, k, j)
    s[c].vectorize(j)
    s[c].prefetch(args[1], k, 4)
    return s, args


def predicated() -> Program:
    """A stage without what nobody reads of it, an output without its odd elements."""
    a = te.placeholder((12,), name="A")
    b = te.compute((12,), lambda i: a[i] + 1.0, name="B")
    out = te.compute((8,), lambda i: b[i + 2] * 2.0, name="out")
    s = create_schedule(out.op)
    i = b.op.axis[0]
    s[b].set_store_predicate(te.all(i >= 2, i < 10))
    s[out].set_store_predicate(out.op.axis[0] % 2 == 0)
    return s, [a, out]


def nontemporal() -> Program:
    """An elementwise operation on rows in parallel."""
    a = te.placeholder((8, 64), name="A")
    out = te.compute((8, 64), lambda i, j: a[i, j] * 2.0, name="out")
    s = create_schedule(out.op)
    s[out].parallel(out.op.axis[0])
    s[out].vectorize(out.op.axis[1])
    s[out].store_nontemporal()
    return s, [a, out]


def separate_loads() -> Program:
    """A one-dimensional convolution with its taps written out, each of which loads for itself."""
    a, w = te.placeholder((8, 6), name="A"), te.placeholder((8, 3, 16), name="W")
    c, r = te.reduce_axis((0, 8), "c"), te.reduce_axis((0, 3), "r")
    out = te.compute((4, 16), lambda i, j: te.sum(a[c, i + r] * w[c, r, j], axis=[c, r]), name="out")
    s = create_schedule(out.op)
    i, j = out.op.axis
    s[out].reorder(c, r, i, j)
    s[out].vectorize(j)
    s[out].unroll(r)
    s[out].pragma(r, "no_load_merge")
    return s, [a, w, out]


PROGRAMS: dict[str, Callable[[], Program]] = {
    "rolling_blur": rolling_blur, "prefetched_matmul": prefetched_matmul, "predicated": predicated, "nontemporal": nontemporal,
    "separate_loads": separate_loads,
}  # fmt: skip


@pytest.mark.parametrize("phase", [0, 1, 2])
@pytest.mark.parametrize("name", PROGRAMS)
def test_lowered(golden: Golden, name: str, phase: int) -> None:
    s, args = PROGRAMS[name]()
    golden(f"memory/{name}.phase{phase}.py", tvm.lower(s, args, upto=phase).script())


@pytest.mark.parametrize("name", PROGRAMS)
def test_words(golden: Golden, name: str) -> None:
    s, _ = PROGRAMS[name]()
    golden(f"memory/{name}.txt", f"{s}\n\n{s.explain()}\n\n{s.as_python()}\n")
