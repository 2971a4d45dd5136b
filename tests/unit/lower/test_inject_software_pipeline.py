"""Software pipelines: the same results in another order, as many versions as iterations are under way, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

import tensorexpr
from tensorexpr.errors import ScheduleError
from tensorexpr.script import from_source
from tensorexpr.tir import IRModule, PrimFunc, transform
from tensorexpr.tir.interpreter import interpret

CHAIN = """
@T.prim_func
def main(X: T.Buffer((8,), "float32"), Y: T.Buffer((8,), "float32"), n: T.int32):
    for i in T.serial({extent}, annotations={{"software_pipeline_stage": {stages}, "software_pipeline_order": {orders}{more}}}):
        with T.block("work"):
            T.reads(X[i])
            T.writes(Y[i])
            m0 = T.alloc_buffer((1,))
            m1 = T.alloc_buffer((1,))
            with T.block():
                m0[0] = X[i] * T.float32(2)
            with T.block():
                m1[0] = m0[0] + T.float32(3)
            with T.block():
                Y[i] = m1[0] * m1[0]
"""


def chain(stages: list[int], orders: list[int], extent: int | str = 8, more: str = "") -> PrimFunc:
    func = from_source(CHAIN.format(stages=stages, orders=orders, extent=extent, more=more))
    assert isinstance(func, PrimFunc)
    return func


def piped(func: PrimFunc) -> PrimFunc:
    result = transform.InjectSoftwarePipeline()(IRModule({"main": func}))["main"]
    assert isinstance(result, PrimFunc)
    return result


def run(func: PrimFunc, n: int) -> np.ndarray:
    x, y = np.arange(8, dtype=np.float32), np.full(8, -1, np.float32)
    interpret(func, [x, y, n])
    return y


@pytest.mark.parametrize(
    ("extent", "stages", "orders"),
    [
        (8, [0, 1, 1], [0, 1, 2]),
        (8, [0, 1, 2], [0, 1, 2]),
        (8, [0, 1, 2], [2, 1, 0]),
        (5, [0, 0, 3], [0, 2, 1]),
        (2, [0, 2, 4], [1, 0, 2]),  # fewer iterations than stages
        (1, [0, 1, 2], [0, 1, 2]),
    ],
)
def test_a_pipeline_computes_the_same(extent: int, stages: list[int], orders: list[int]) -> None:
    func = chain(stages, orders, extent)
    result = piped(func)
    assert result is not func
    np.testing.assert_array_equal(run(result, 8), run(func, 8))


def test_a_pipeline_of_any_length_computes_the_same() -> None:
    func = chain([0, 1, 3], [0, 1, 2], "n")
    result = piped(func)
    for n in (0, 1, 2, 3, 4, 7):
        np.testing.assert_array_equal(run(result, n), run(func, n))


def test_versions_are_the_iterations_under_way() -> None:
    text = piped(chain([0, 1, 3], [0, 1, 2])).script()
    assert "m0 = T.alloc_buffer((2, 1))" in text
    assert "m1 = T.alloc_buffer((3, 1))" in text


def test_readers_in_front_of_writers_need_no_second_version() -> None:
    text = piped(chain([0, 1, 2], [2, 1, 0])).script()
    assert "m0 = T.alloc_buffer((1,))" in text
    assert "m1 = T.alloc_buffer((1,))" in text


def test_an_asynchronous_stage_is_committed_and_waited_for() -> None:
    text = piped(chain([0, 3, 3], [0, 1, 2], more=', "software_pipeline_async_stages": [0]')).script()
    assert text.count("async_commit_queue_scope") == 2  # in the prologue and in the loop
    assert [line.split(",")[2].strip(" )") for line in text.splitlines() if "inflight" in line] == ["3", "2 - i"]


def test_a_pipeline_within_one_counts_as_three_statements() -> None:
    text = """
@T.prim_func
def main(X: T.Buffer((4, 4), "float32"), Y: T.Buffer((4, 4), "float32")):
    for i in T.serial(4, annotations={"software_pipeline_stage": [0, 0, 1, 1], "software_pipeline_order": [0, 2, 1, 3]}):
        with T.block():
            row = T.alloc_buffer((4,))
            for k in range(4):
                with T.block():
                    row[k] = X[i, k]
            for j in T.serial(4, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}):
                with T.block():
                    one = T.alloc_buffer((1,))
                    with T.block():
                        one[0] = row[j] * T.float32(2)
                    with T.block():
                        Y[i, j] = one[0] + T.float32(1)
"""
    func = from_source(text)
    assert isinstance(func, PrimFunc)
    x, y = np.arange(16, dtype=np.float32).reshape(4, 4), np.zeros((4, 4), np.float32)
    interpret(piped(func), [x, y])
    np.testing.assert_array_equal(y, x * 2 + 1)


@pytest.mark.parametrize(
    ("stages", "orders", "message"),
    [
        ([0, 1], [0, 1, 2], "one integer for each of the 3 statements"),
        ([0, 1, 1], [0, 1, 1], "the same place"),
        ([0, 1, 1], [0, 2, 1], "would run before it"),
        ([1, 0, 1], [0, 1, 2], "would run before it"),
        ([0, -1, 1], [0, 1, 2], "negative stage"),
    ],
)
def test_illegal_pipelines_are_refused(stages: list[int], orders: list[int], message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        piped(chain(stages, orders))


def test_a_pipeline_needs_both_annotations() -> None:
    func = from_source(CHAIN.format(stages=[0, 1, 1], orders=0, extent=8, more="").replace(', "software_pipeline_order": 0', ""))
    with pytest.raises(ScheduleError, match="has no software_pipeline_order"):
        piped(func)  # type: ignore[arg-type]


def test_a_buffer_of_all_iterations_may_not_be_overtaken() -> None:
    text = CHAIN.format(stages=[0, 1, 1], orders=[0, 1, 2], extent=8, more="")
    outside = text.replace("            m0 = T.alloc_buffer((1,))\n", "").replace("    for i", "    m0 = T.alloc_buffer((1,))\n    for i")
    with pytest.raises(ScheduleError, match="allocate it inside the loop"):
        piped(from_source(outside))  # type: ignore[arg-type]
    apart = outside.replace("m0 = T.alloc_buffer((1,))", "m0 = T.alloc_buffer((8,))").replace("m0[0]", "m0[i]")
    np.testing.assert_array_equal(run(piped(from_source(apart)), 8), run(chain([0, 1, 1], [0, 1, 2]), 8))  # type: ignore[arg-type]


def test_only_loops_that_run_in_order_are_pipelines() -> None:
    text = CHAIN.format(stages=[0, 1, 1], orders=[0, 1, 2], extent=8, more="").replace("T.serial", "T.parallel")
    with pytest.raises(ScheduleError, match="one after the other"):
        piped(from_source(text))  # type: ignore[arg-type]


@pytest.mark.parametrize("more", ["", ', "software_pipeline_async_stages": [0]'])
def test_pipelines_are_lowered_with_everything_else(more: str) -> None:
    func = chain([0, 1, 3], [0, 1, 2], "n", more)
    lowered = tensorexpr.lower(func)["main"]
    assert "software_pipeline" not in lowered.script()
    for n in (0, 2, 8):
        np.testing.assert_array_equal(run(lowered, n), run(func, n))
