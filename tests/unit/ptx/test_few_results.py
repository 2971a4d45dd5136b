"""Schedules without a search where results are few: sums that blocks share, products of a few rows, short rows, arguments of maxima."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te, topi
from tensorexpr.schedule.te_schedule import Schedule
from tensorexpr.spaces.default import default_schedule, scheduled_by_plans
from tensorexpr.spaces.explain import explain_default
from tensorexpr.spaces.gpu import Tiling, reduction, split_sum
from tensorexpr.spaces.gpu import rows as gpu_rows
from tensorexpr.spaces.gpu.block import limits_of
from tensorexpr.spaces.gpu.reduction import short_rows
from tensorexpr.target import Target
from tensorexpr.te.combiner_laws import depends_on_order
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.ptx import assembled, emulator
from tensorexpr.testing.ptx.memory import Counters
from tensorexpr.tir.arithmetic import as_int
from tensorexpr.tir.expr import Reduce

from .running import needs_ptxas

Array = np.ndarray[Any, np.dtype[Any]]
TARGET = Target("cuda -arch=sm_80")


def inputs(*shapes: tuple[int, ...], dtype: str = "float32") -> list[Tensor]:
    return [te.placeholder(shape, dtype, name="ABC"[number]) for number, shape in enumerate(shapes)]


def product(a: Tensor, b: Tensor, rows: bool = False) -> Tensor:
    """A B in float32, where B stands by rows of its transpose if asked."""
    k = te.reduce_axis((0, a.shape[1]), name="k")

    def term(i: Any, j: Any) -> Any:
        return a[i, k].astype("float32") * (b[j, k] if rows else b[k, j]).astype("float32")

    made: Tensor = te.compute((a.shape[0], b.shape[0 if rows else 1]), lambda i, j: te.sum(term(i, j), axis=k), name="C")
    return made


@dataclass(frozen=True)
class Ran:
    """What a schedule's kernels computed on the emulator, their text, and the counters of the last one."""

    found: Array
    text: str
    counters: Counters

    @property
    def kernels(self) -> int:
        """How many there are."""
        return self.text.count(".entry")


def run(s: Schedule, tensors: Sequence[Tensor], values: Sequence[Array]) -> Ran:
    module: Any = tvm.build(s, tensors, target=TARGET)
    shape, device = tuple(as_int(extent) or 0 for extent in tensors[-1].shape), emulator()
    out = tvm.nd.empty(shape, tensors[-1].dtype, device)
    module(*(tvm.nd.array(value, device) for value in values), out)
    return Ran(out.numpy(), module.imported_modules[0].get_source("ptx"), device.counters)


def run_on_cpu(s: Schedule, tensors: Sequence[Tensor], values: Sequence[Array]) -> Array:
    """What the same schedule computes there."""
    out = tvm.nd.empty(tuple(as_int(extent) or 0 for extent in tensors[-1].shape), tensors[-1].dtype)
    tvm.build(s, tensors, target="llvm")(*map(tvm.nd.array, values), out)
    return np.asarray(out.numpy())


def drawn(tensors: Sequence[Tensor]) -> list[Array]:
    """Whole numbers: however a sum is cut, it is exact."""
    rng = np.random.default_rng(2)
    return [rng.integers(-4, 5, [as_int(extent) or 0 for extent in one.shape]).astype(one.dtype) for one in tensors[:-1]]


def _convolution(x: Array, w: Array) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    return np.asarray(np.maximum(np.einsum("ncyxhw,fchw->nfyx", windows, w), 0))


# Sums that blocks share


def on_units(tiling: Tiling, tensors: Sequence[Tensor]) -> Schedule:
    """The schedule of rules with another tiling of the product C."""
    s = te.create_schedule(tensors[-1].op)
    number = next(stage.id for stage in s.tree.in_order() if stage.name == "C")
    scheduled_by_plans(s, TARGET, wanted={number: tiling})
    return s


def test_parts_of_sums_on_matrix_units_are_added_up() -> None:
    parts = 4
    a, b = inputs((32, 128), (32, 128), dtype="float16")
    tensors = [a, b, topi.cast(topi.nn.relu(product(a, b, rows=True)), "float16")]
    values = drawn(tensors)
    schedule = on_units(Tiling((32, 32, 16, 16), chunks=2, parts=parts), tensors)
    ran = run(schedule, tensors, values)
    wanted = np.maximum(values[0].astype("float32") @ values[1].T.astype("float32"), 0)
    assert np.array_equal(ran.found, wanted) and np.array_equal(run_on_cpu(schedule, tensors, values), wanted)
    assert ran.kernels == 2 and "mma.sync" in ran.text
    # each thread adds vectors of four up, and what is made of the result is made there
    assert ran.counters.global_transactions == 32 * 32 * (4 * parts + 2) // 32
    assert ran.counters.global_requests == 32 * 32 // 4 // 32 * (parts + 1)


CUT: dict[str, tuple[Callable[..., Tensor], Sequence[tuple[int, ...]], Callable[..., Array]]] = {
    "dense": (topi.nn.dense, [(16, 128), (32, 128)], lambda a, b: a @ b.T),
    "convolution": (lambda a, b: topi.nn.relu(topi.nn.conv2d_nchw(a, b, 1, 0, 1)), [(1, 16, 6, 6), (16, 16, 3, 3)], _convolution),
}


@pytest.mark.parametrize("name", CUT)
def test_parts_of_sums_in_threads_are_added_up(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    define, shapes, reference = CUT[name]
    # as if a second kernel cost nothing
    monkeypatch.setattr(split_sum, "LAUNCH", 0.0)
    monkeypatch.setattr(split_sum, "LATENCY", 60.0)
    a, b = inputs(*shapes)
    tensors = [a, b, define(a, b)]
    assert "which a second kernel adds up" in explain_default(tensors, TARGET)
    values, schedule = drawn(tensors), default_schedule(tensors, TARGET)
    if name == "convolution":  # though channels are cut, what is fetched of the weights lies together
        assert "_rx, factor=3)" in schedule.as_python()
    ran = run(schedule, tensors, values)
    assert np.array_equal(ran.found, reference(*values))
    assert ran.kernels == 2
    if name == "convolution":
        assert np.array_equal(run_on_cpu(schedule, tensors, values), reference(*values))


@pytest.mark.parametrize(
    "dtype, sizes, is_cut",
    [
        ("float16", (128, 128, 8192), True),
        ("float16", (4096, 4096, 4096), False),
        ("float16", (128, 128, 128), False),
        ("float32", (128, 128, 8192), True),
        ("float32", (4096, 4096, 4096), False),
        ("float32", (128, 128, 128), False),
    ],
)
def test_sums_are_cut_where_results_are_few_and_terms_many(dtype: str, sizes: tuple[int, int, int], is_cut: bool) -> None:
    n, m, k = sizes
    a, b = inputs((n, k), (m, k), dtype=dtype)
    text = explain_default([a, b, product(a, b, rows=True)], TARGET)
    assert ("which a second kernel adds up" in text) == is_cut


def test_no_more_parts_than_multiprocessors_have_room_for() -> None:
    limits = limits_of(TARGET)
    few = replace(limits, rates=replace(limits.rates, multiprocessors=4))
    assert split_sum.possible_parts(1024, 16, 1, few) == [2, 4, 8]
    assert split_sum.possible_parts(1024, 128, 1, few) == [2, 4, 8]
    assert split_sum.possible_parts(1024, 512, 1, few) == [2]
    assert not split_sum.possible_parts(1024, 16, 4, few) and not split_sum.possible_parts(1009, 16, 1, few)


# Products of a few rows

SHORT = {
    "a vector by rows of halves": ((1, 512), (32, 512), True, "float16"),
    "rows by rows": ((3, 256), (36, 256), True, "float16"),
    "a vector by columns": ((1, 64), (64, 64), False, "float16"),
    "rows by columns": ((5, 37), (37, 40), False, "float32"),
}


@pytest.mark.parametrize("name", SHORT)
def test_products_of_a_few_rows_read_the_matrix_once_by_vectors(name: str) -> None:
    left, right, rows, dtype = SHORT[name]
    a, b = inputs(left, right, dtype=dtype)
    tensors = [a, b, topi.nn.relu(product(a, b, rows))]
    assert "a product of a few rows" in explain_default(tensors, TARGET)
    values, schedule = drawn(tensors), default_schedule(tensors, TARGET)
    ran = run(schedule, tensors, values)
    wanted = np.maximum(values[0].astype("float32") @ (values[1].T if rows else values[1]).astype("float32"), 0)
    assert np.array_equal(ran.found, wanted)
    if name.startswith("rows"):
        assert np.array_equal(run_on_cpu(schedule, tensors, values), wanted)
    assert "ld.global.nc.v4.b32" in ran.text and ran.kernels == 1
    # by columns sums of eight columns of each thread meet in shared memory, once: as long as two without conflicts
    assert ran.counters.bank_conflicts <= (0 if rows else ran.counters.shared_requests)
    matrix, vector, result = (int(np.prod(one.shape)) * one.dtype.itemsize for one in (values[1], values[0], ran.found))
    if left[0] == 1:  # each block, of a warp or more, reads the vector, and some sectors are stored by several warps
        blocks = int(re.findall(r"a block have (\d+) columns", explain_default(tensors, TARGET))[0])
        assert ran.counters.global_transactions <= (matrix + vector * right[0 if rows else 1] / blocks + 8 * result) / 32


def test_columns_of_a_short_product_may_be_apart() -> None:
    """Of Y[i, r, j] the few rows r stand between axes of the columns, which were to be one loop: an error."""
    (a, b), k = inputs((6, 3), (6, 4, 64)), te.reduce_axis((0, 6), "k")
    tensors = [a, b, te.compute((4, 3, 64), lambda i, r, j: te.sum(a[k, r] * b[k, i, j], axis=k), name="Y")]
    assert "a product of a few rows" in explain_default(tensors, TARGET)
    values = drawn(tensors)
    assert np.array_equal(run(default_schedule(tensors, TARGET), tensors, values).found, np.einsum("kr,kij->irj", *values[:2]))


def test_several_sums_of_threads_may_share_storage() -> None:
    """Sums over two warps, one after the other, whose results the storage of one array held: the second took it from the first."""
    a = te.placeholder((4, 128), name="A")
    k = te.reduce_axis((0, 128), name="k")
    b = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="B")
    s = te.create_schedule(b.op)
    own, thread = s.cache_write(b, "local"), te.thread_axis((0, 64), "threadIdx.x")
    block, each = s[b].split(s[b].op.axis[0], factor=2)
    one, mine = s[b].split(s[b].fuse(), factor=64)
    s[b].reorder(block, one, mine, each)
    s[b].bind(block, te.thread_axis("blockIdx.x"))
    s[b].bind(mine, thread)
    s[own].compute_at(s[b], block)
    turn, shared = s[own].split(s[own].op.reduce_axis[0], factor=64)
    s[own].reorder(shared, *s[own].op.axis, turn)
    s[own].bind(shared, thread)
    for stage, axis in ((s[b], each), (s[own], s[own].op.axis[0])):
        stage.unroll(axis)
    (value,) = drawn([a, b])
    ran = run(s, [a, b], [value])
    assert np.array_equal(ran.found, value.sum(1))


@needs_ptxas
@pytest.mark.parametrize("rows", [True, False])
def test_a_large_matrix_by_a_vector_fits_registers(rows: bool) -> None:
    a, b = inputs((1, 4096), (4096, 4096), dtype="float16")
    tensors = [a, b, product(a, b, rows)]
    text = tvm.build(default_schedule(tensors, TARGET), tensors, target=TARGET).imported_modules[0].get_source("ptx")
    used = assembled(text, "sm_80")
    assert used.spilled == 0 and used.registers <= 64


# Short rows


def _softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


ROWS: dict[str, tuple[tuple[int, ...], Callable[[Tensor], Tensor], Callable[[Array], Array], int]] = {
    "softmax": ((16, 64), topi.nn.softmax, _softmax, 3),
    "softmax of batches": ((2, 3, 8, 32), lambda a: topi.nn.softmax(a, 3), _softmax, 3),
    "sums": ((24, 32), lambda a: topi.sum(a, 1), lambda x: x.sum(1), 1),
    "arguments of maxima": ((32, 16), lambda a: topi.argmax(a, 1), lambda x: x.argmax(1), 1),
}


@pytest.mark.parametrize("name", ROWS)
def test_short_rows_are_read_by_vectors_of_all_threads(name: str) -> None:
    shape, define, reference, passes = ROWS[name]
    (a,) = inputs(shape)
    tensors = [a, define(a)]
    (value,) = drawn(tensors)
    ran = run(default_schedule(tensors, TARGET), tensors, [value])
    np.testing.assert_allclose(ran.found, reference(value.astype("float64")), rtol=1e-5, atol=1e-7)
    stored = value.size // ran.found.size > 1
    # what is stored of each row is a word, in sectors of which each warp stores some of
    words = ran.found.size if stored else 0
    assert passes * value.nbytes // 32 <= ran.counters.global_transactions <= passes * value.nbytes // 32 + words
    assert re.findall(r"ld\.global\S*", ran.text) == ["ld.global.nc.v4.b32"] * len(re.findall(r"ld\.global", ran.text))
    assert ran.counters.barriers == 0 and ran.counters.bank_conflicts == 0


def test_blocks_share_a_row_that_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_rows, "_LONG", 512)
    monkeypatch.setattr(reduction, "_PART", 256)
    (a,) = inputs((1, 1024))
    tensors = [a, topi.argmax(a, 1)]
    (value,) = drawn(tensors)
    schedule = default_schedule(tensors, TARGET)
    ran = run(schedule, tensors, [value])
    assert np.array_equal(ran.found, value.argmax(1)) and np.array_equal(run_on_cpu(schedule, tensors, [value]), value.argmax(1))
    assert ran.kernels == 3


def test_rows_beside_each_other_divide_all_rows() -> None:
    limits = limits_of(TARGET)
    for elements, rows, threads, beside in ((64, 16, 16, 8), (64, 12, 16, 4), (60, 16, 16, 8), (16, 64, 4, 32)):
        found = short_rows(limits, elements, 4, rows)
        assert found is not None and (found.threads, found.beside) == (threads, beside)
    # no two rows, vectors for a whole warp, and rows that no vectors divide
    assert not short_rows(limits, 64, 4, 7) and not short_rows(limits, 128, 4, 64) and not short_rows(limits, 62, 4, 16)


# Arguments of maxima


@pytest.mark.parametrize("define", [topi.argmax, topi.argmin, lambda a, axis: topi.argmax(a, axis, select_last_index=True)])
def test_threads_share_arguments_of_maxima(define: Callable[..., Tensor]) -> None:
    (a,) = inputs((3, 600))
    tensors = [a, define(a, 1)]
    (value,) = drawn(tensors)  # each of nine numbers occurs many times
    ran = run(default_schedule(tensors, TARGET), tensors, [value])
    wanted = {topi.argmax: value.argmax(1), topi.argmin: value.argmin(1)}.get(define, 599 - value[:, ::-1].argmax(1))
    assert np.array_equal(ran.found, wanted)
    assert ran.counters.global_transactions == 3 * 600 * 4 // 32 + 3
    assert ran.kernels == 1


def _first_largest() -> Any:
    return te.comm_reducer(
        lambda x, y: (te.if_then_else(x[1] >= y[1], x[0], y[0]), te.if_then_else(x[1] >= y[1], x[1], y[1])),
        lambda index, value: (te.const(-1, index), te.min_value(value)),
        name="first",
    )


def test_what_depends_on_the_order_keeps_it() -> None:
    """Of equal values this reducer takes the index that comes first, whatever it is: threads would take turns."""
    (a,) = inputs((3, 600))
    k = te.reduce_axis((0, 600), name="k")
    first = _first_largest()
    found = te.compute((3,), lambda i: first((k.var, a[i, k]), axis=k), name="first")
    body = found[0].op.body[0]
    assert isinstance(body, Reduce) and "not commutative" in (depends_on_order(body.combiner) or "")
    assert "or whose terms have an order" in explain_default([a, *found], TARGET)
    largest: Any = topi.argmax(a, 1).op.input_tensors[0].op
    assert depends_on_order(largest.body[0].combiner) is None
