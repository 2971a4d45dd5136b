"""One record: what its line looks like, and that it comes back as it was."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from tensorexpr.errors import RecordError
from tensorexpr.target import Target
from tensorexpr.te.identity import dag_key
from tensorexpr.tune.measure import FAILED_COST, MeasureErrorNo, MeasureResult
from tensorexpr.tune.records import Record, make_record, parse_record

from .programs import matmul, tiled

ARGS = matmul(64)
TRACE = tiled(ARGS[2], 4, 32)
RECORD = Record(
    workload_key='["matmul", 64]',
    dag_hash="0123456789abcdef0123456789abcdef",
    target="llvm -keys=cpu -mcpu=znver5 -mtriple=x86_64-unknown-linux-gnu -num-cores=2",
    num_threads=2,
    trace=TRACE,
    costs=(0.00051, 0.0005),
    error_no=MeasureErrorNo.NO_ERROR,
    error_msg="",
    all_cost=0.31,
    timestamp=1795263232.5,
    policy={"number": 20, "raced": False, "min_repeat_ms": 12.0},
    spills=4,
    ir_lines=229,
    verified=True,
)


def test_the_line_is_the_golden_one(golden: Callable[[str, str], None]) -> None:
    golden("records/matmul.json", RECORD.dumps())


def test_a_line_comes_back_as_it_was() -> None:
    again = parse_record(RECORD.dumps())
    assert again == RECORD
    assert again.dumps() == RECORD.dumps()
    assert parse_record(RECORD.dumps().encode()) == RECORD


def test_mean_and_median_are_those_of_the_costs() -> None:
    record = replace(RECORD, costs=(1.0, 2.0, 6.0))
    assert (record.mean, record.median) == (3.0, 2.0)
    failed = replace(RECORD, error_no=MeasureErrorNo.RUN_TIMEOUT, costs=(FAILED_COST,), verified=False)
    assert math.isinf(failed.mean)
    assert math.isinf(failed.median)
    assert not failed.is_success


def test_a_result_becomes_a_record() -> None:
    result = MeasureResult((FAILED_COST,), MeasureErrorNo.WRONG_ANSWER, "x" * 5000, 1.5, 1795263232.5, number=3)
    target = Target("llvm -num-cores=3")
    record = make_record("key", dag_key(ARGS), target, TRACE, result)
    assert (record.num_threads, record.error_no, record.verified) == (3, MeasureErrorNo.WRONG_ANSWER, False)
    assert record.target == str(target.resolved())
    assert len(record.error_msg) == 2000
    assert parse_record(record.dumps()) == record


def test_unicode_and_control_characters_stay_on_one_line() -> None:
    record = replace(RECORD, error_msg="bad \n\r\u2028 \x00 \u00e9 \U0001f600", error_no=MeasureErrorNo.COMPILE_HOST, verified=False)
    line = record.dumps()
    assert line.isascii()
    assert "\n" not in line
    assert parse_record(line) == record


@pytest.mark.parametrize(
    "broken",
    [
        replace(RECORD, costs=()),
        replace(RECORD, costs=(float("nan"),)),
        replace(RECORD, costs=(0.0,)),
        replace(RECORD, all_cost=float("inf")),
        replace(RECORD, workload_key="x" * 200_000),
        replace(RECORD, error_msg="\ud800"),
        replace(RECORD, policy={"nested": {}}),  # type: ignore[dict-item]
        replace(RECORD, error_no=MeasureErrorNo.RUN_TIMEOUT),
    ],
)
def test_no_line_is_written_that_can_not_be_read(broken: Record) -> None:
    with pytest.raises(RecordError):
        broken.dumps()


def test_integers_stand_for_seconds_too() -> None:
    data = {**RECORD.to_json(), "costs": [1], "all_cost": 2, "timestamp": 3}
    assert parse_record(json.dumps(data)).costs == (1.0,)
