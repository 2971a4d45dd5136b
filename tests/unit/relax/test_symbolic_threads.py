"""Kernels of symbolic extents: from how many iterations on they start threads is in their loops, and is decided at each call."""

from __future__ import annotations

import re

import pytest

from tensorexpr import relax, te, topi
from tensorexpr.relax import BlockBuilder, TensorStructInfo, Var, op
from tensorexpr.spaces.default import default_schedule
from tensorexpr.spaces.machine import is_parallel, parallel_from
from tensorexpr.target import Target
from tensorexpr.tir.expr import Var as Symbol

TARGET = Target("llvm -mcpu=skylake-avx512 -num-cores=2")


@pytest.mark.parametrize("work", [1, 16, 700, 1 << 20])
def test_from_that_many_iterations_on_the_whole_is_worth_threads(work: int) -> None:
    least = parallel_from(TARGET, work)
    assert is_parallel(TARGET, least * work) and (least == 1 or not is_parallel(TARGET, (least - 1) * work))


def test_dear_functions_need_fewer_iterations() -> None:
    n = te.var("n")
    x = te.placeholder((n, 8), name="x")
    least = []
    for out in (topi.nn.relu(x), topi.exp(x)):
        trace = str(default_schedule([x, out], TARGET).trace)
        least.append(int(re.findall(r"key='parallel_from', value=(\d+)", trace)[0]))
    assert least[0] > 4 * least[1] > 0


def test_kernels_of_symbolic_extents_ask_and_others_do_not() -> None:
    n = Symbol("n", "int64")
    for rows, asks in ((n, True), (64, False)):
        x = Var("x", TensorStructInfo((rows, 512), "float32"))
        bb = BlockBuilder()
        with bb.function("main", [x]):
            with bb.dataflow():
                out = bb.emit_output(op.nn.softmax(bb.emit(op.nn.relu(x))))
            bb.emit_func_output(out)
        script = relax.build(bb.get(), TARGET, upto=4).script()
        assert ("pragma_parallel_from" in script) == asks
