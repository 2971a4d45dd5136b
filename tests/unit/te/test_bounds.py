"""Property 27: a definition that provably reads out of bounds is refused when it is built, and no other: it may only be counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensorexpr import lower, te
from tensorexpr.auto_scheduler import ComputeDAG
from tensorexpr.autotvm.task.task import compute_flop
from tensorexpr.errors import DeclarationError
from tensorexpr.te import Tensor
from tensorexpr.te.dag import given_placeholders, post_dfs_order
from tensorexpr.te.reference import evaluate
from tensorexpr.tir.intrin import select

A = te.placeholder((8, 6), name="A")
n = te.var("n")
N = te.placeholder((n,), name="N")
index = te.placeholder((8,), "int32", name="index")
k = te.reduce_axis((0, 3), "k")
empty = te.reduce_axis((0, 0), "empty")

LEGAL: dict[str, Callable[[], Tensor]] = {
    "reversed": lambda: te.compute((8,), lambda i: A[7 - i, 0]),
    "strided": lambda: te.compute((4,), lambda i: A[i * 2 + 1, 5]),
    "window": lambda: te.compute((6,), lambda i: te.sum(A[i + k, 0], axis=k)),
    "reshape": lambda: te.compute((48,), lambda i: A[te.floordiv(i, 6), te.floormod(i, 6)]),
    "padding": lambda: te.compute((10,), lambda i: te.if_then_else(te.all(i >= 1, i < 9), A[i - 1, 0], 0.0)),
    "padding, else arm": lambda: te.compute((10,), lambda i: te.if_then_else(te.any(i < 1, i >= 9), 0.0, A[i - 1, 0])),
    "padding by select": lambda: te.compute((10,), lambda i: select(te.all(i >= 1, i < 9), A[i - 1, 0], 0.0)),
    "guarded by and": lambda: te.compute((9,), lambda i: te.all(i < 8, A[i, 0] > 0.0)),
    "guarded by or": lambda: te.compute((9,), lambda i: te.any(i >= 8, A[i, 0] > 0.0)),
    "where": lambda: te.compute((8,), lambda i: te.sum(A[i + k, 0], axis=k, where=i + k < 8)),
    "clamped": lambda: te.compute((20,), lambda i: A[te.max(te.min(i - 3, 7), 0), 0]),
    "symbolic": lambda: te.compute((n + 1,), lambda i: N[i]),
    "gathered": lambda: te.compute((8,), lambda i: A[index[i], 0]),
    "guarded by data": lambda: te.compute((9,), lambda i: te.if_then_else(N[i] > 0.0, A[i, 0], 0.0)),
    "nothing to compute": lambda: te.compute((0,), lambda i: A[i + 99, 0]),
    "nothing to reduce": lambda: te.compute((8,), lambda i: te.sum(A[i + 99, empty], axis=empty)),
    "interval too wide": lambda: te.compute((8,), lambda i: A[i * 2 - i, 0]),
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal_definitions_are_accepted(name: str) -> None:
    assert LEGAL[name]().op.num_outputs == 1


ILLEGAL: dict[str, tuple[Callable[[], Tensor], str]] = {
    "one too far": (lambda: te.compute((9,), lambda i: A[i, 0]), r"A\[i, 0\] reads index 8 of dimension 0 of A \(extent 8\), at i = 8"),
    "below": (lambda: te.compute((7,), lambda i: A[i - 1, 0]), "index -1 of dimension 0 of A .*at i = 0"),
    "constant": (lambda: te.compute((8,), lambda i: A[i, 6]), "index 6 of dimension 1"),
    "window": (lambda: te.compute((7,), lambda i: te.sum(A[i + k, 0], axis=k)), "index 8 .*at i = 6, k = 2"),
    "wrong guard": (
        lambda: te.compute((10,), lambda i: te.if_then_else(te.all(i >= 1, i <= 9), A[i - 1, 0], 0.0)),
        "index 8 .*at i = 9 although the conditions around it hold",
    ),
    "wrong arm": (lambda: te.compute((10,), lambda i: te.if_then_else(i < 8, 0.0, A[i, 0])), "index 8 .*although"),
    "condition": (lambda: te.compute((9,), lambda i: te.if_then_else(A[i, 0] > 0.0, 1.0, 0.0)), "index 8"),
    "init": (lambda: te.compute((9,), lambda i: te.sum(A[0, k], axis=k, init=A[i, 0])), "index 8"),
    "huge": (lambda: te.compute((1 << 20, 1 << 20), lambda i, j: te.placeholder((1 << 20,), name="H")[i + j]), "reads index"),
}


def inputs(tensor: Tensor) -> list[Tensor]:
    return [op.output(0) for op in given_placeholders(post_dfs_order([tensor.op]))]


USES: dict[str, Callable[[Tensor], Any]] = {
    "lowered": lambda tensor: lower(te.create_schedule(tensor.op), [*inputs(tensor), tensor]),
    "function": lambda tensor: te.create_prim_func([tensor]),
    "searched": lambda tensor: ComputeDAG([tensor]).initial_tree,
    "evaluated": lambda tensor: evaluate([tensor], {t: np.zeros(t.shape, np.float32) for t in inputs(tensor)}),
    "differentiated": lambda tensor: te.gradient(tensor, A),
}


@pytest.mark.parametrize("name", ILLEGAL)
@pytest.mark.parametrize("use", USES)
def test_27_out_of_bounds_reads_are_refused_with_a_witness(name: str, use: str) -> None:
    declare, message = ILLEGAL[name]
    if (name, use) == ("below", "differentiated"):
        pytest.skip("who reads the first rows is known where the values are wanted")
    tensor = declare()
    with pytest.raises(DeclarationError, match=message):
        USES[use](tensor)


@pytest.mark.parametrize("use", USES)
def test_what_is_derived_from_such_a_definition_is_refused_too(use: str) -> None:
    illegal = te.compute((9,), lambda i: A[i, 0], name="early")
    with pytest.raises(DeclarationError, match=r"compute early: .* \(declared in .*test_bounds\.py:\d+\)"):
        USES[use](te.compute((4,), lambda i: illegal[i] * 2.0))


@pytest.mark.parametrize("step", ["inline", "cache_write", "rfactor", "cache_read"])
def test_no_step_of_a_schedule_hides_it(step: str) -> None:
    illegal = te.compute((7,), lambda i: te.sum(A[i + k, 0], axis=k), name="early")
    double = te.compute((7,), lambda i: illegal[i] * 2.0)
    s = te.create_schedule(double.op)
    if step == "inline":
        illegal = te.compute((9,), lambda i: A[i, 0], name="early")
        double = te.compute((9,), lambda i: illegal[i] * 2.0)
        s = te.create_schedule(double.op)
        s[illegal].compute_inline()
    elif step == "cache_write":
        s.cache_write(illegal, "local")
    elif step == "cache_read":
        s.cache_read(A, "local", [illegal])
    else:
        s.rfactor(illegal, k)
    with pytest.raises(DeclarationError, match=r"compute early: .* reads index 8"):
        lower(s, [A, double])


def test_operations_of_such_a_definition_are_counted() -> None:
    assert compute_flop(te.create_schedule(te.compute((9,), lambda i: A[i, 0] * 2.0).op)) == 9


def test_long_chains_of_guards_stay_quick_to_declare() -> None:
    parts = [te.placeholder((4,), name=f"p{i}") for i in range(300)]

    def concatenated(i: Any) -> Any:
        value: Any = 0.0
        for number, part in reversed(list(enumerate(parts))):
            value = te.if_then_else(i < 4 * (number + 1), part[te.max(i - 4 * number, 0)] if number else part[i], value)
        return value

    assert len(te.compute((1200,), concatenated).op.input_tensors) == 300
