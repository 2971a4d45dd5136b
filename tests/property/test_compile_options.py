"""Property 38: levels, widths, features, threads and pass options change speed only: every build of a program gives the same result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr.lower.context import PassContext
from tensorexpr.lower.pipeline import lower
from tensorexpr.runtime.build import build
from tensorexpr.schedule import Schedule, create_schedule
from tensorexpr.te.operation import Operation
from tensorexpr.te.reference import evaluate
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing import assert_close, random_inputs, tolerance_of
from tensorexpr.testing.strategies import compute_dags, schedules
from tests.effort import share_of
from tests.programs import conv_relu, matmul_add, softmax

OPTIONS: tuple[dict[str, Any], ...] = (
    {"opt_level": 0},
    {"opt_level": 1},
    {"opt_level": 3},
    {"config": {"tir.disable_vectorize": True}},
    {"config": {"tir.UnrollLoop": {"explicit_unroll": False}}},
    {"config": {"tir.UnrollLoop": {"auto_max_step": 128, "unroll_local_access": True}}},
    {"config": {"tir.LoopPartition": {"partition_const_loop": True}}},
    {"config": {"tir.disable_storage_rewrite": True}},
    {"config": {"tir.disable_cse_tir": True}},
    {"config": {"tir.noalias": False}},
    {"config": {"tir.instrument_bound_checkers": True}},
)
TARGETS = ("llvm", "llvm -num-cores=1", "llvm -num-cores=7", "llvm -mcpu=x86-64", "llvm -mcpu=x86-64-v3", "llvm -mattr=-avx512f,-avx2")


def check(s: Schedule, args: list[Tensor], inputs: dict[Tensor, Any], target: str, options: dict[str, Any]) -> None:
    results = [t for t in args if t not in inputs]
    wanted = evaluate(results, inputs)
    with PassContext(**options):
        run = build(s, args, target=target)
    found = [np.full(w.shape, 3, w.dtype) for w in wanted]
    outputs = iter(found)
    run(*(inputs[t] if t in inputs else next(outputs) for t in args))
    for tensor, array, value in zip(results, found, wanted, strict=True):
        assert_close(array, value, tolerance_of(tensor), f"{tensor.name} with {options} for {target}")


@settings(max_examples=share_of(60), deadline=None, derandomize=True)
@given(st.data(), st.sampled_from(OPTIONS), st.sampled_from(TARGETS))
def test_38_random_programs(data: st.DataObject, options: dict[str, Any], target: str) -> None:
    dag = data.draw(compute_dags())
    s = data.draw(schedules(dag.outputs, max_steps=12))
    check(s, list(dag.tensors), dict(random_inputs(list(dag.inputs), 4)), target, options)


def scheduled(args: list[Tensor]) -> Schedule:
    """Tiles that don't fit, in parallel, unrolled and vectorised."""
    s = create_schedule(args[-1].op)
    out: Operation = args[-1].op
    outer, inner = s[args[-1]].split(out.axis[-1], factor=5)
    s[args[-1]].vectorize(inner)
    s[args[-1]].parallel(out.axis[0])
    s[args[-1]].unroll(outer)
    return s


@pytest.mark.parametrize("program", [matmul_add, conv_relu, softmax])
@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: str(next(iter(o.values()))))
def test_38_every_option(program: Any, options: dict[str, Any]) -> None:
    args = program()
    check(scheduled(args), args, dict(random_inputs(args[:-1], 4)), "llvm", options)


@pytest.mark.parametrize("target", TARGETS)
def test_38_every_target(target: str) -> None:
    args = matmul_add(7, 13, 5)
    check(scheduled(args), args, dict(random_inputs(args[:-1], 4)), target, {})


def test_38_the_options_differ_in_what_they_make() -> None:
    """Options that do nothing would agree for free."""
    args = conv_relu()
    texts = {}
    for number, options in enumerate(OPTIONS):
        with PassContext(**options):
            texts[number] = lower(scheduled(args), args).script()
    assert len(set(texts.values())) >= 5
