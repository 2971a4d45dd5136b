"""One test for each reason why a line of TVM's logs can't be read or replayed."""

from __future__ import annotations

import json
from typing import Any

import pytest

import tests.v06_workloads  # noqa: F401  (registers the workloads)
from tensorexpr.auto_scheduler import ComputeDAG, load_best_record
from tensorexpr.auto_scheduler.measure_record import load_record_from_string
from tensorexpr.errors import RecordError
from tensorexpr.tune.records import parse_v06, replay_v06

KEY = '["v06_matmul_add", 32, 48, 24]'
TASK = [KEY, "llvm -keys=cpu", [1, 64, 64, 0, 0, 0, 0, 0], "", 1, []]
RESULT = [[0.001], 0, 0.1, 1.0]


def line(*steps: Any, **changes: Any) -> str:
    """A line with these steps, and some fields replaced."""
    return json.dumps({"i": [TASK, [[], list(steps)]], "r": RESULT, "v": "v0.6", **changes})


def test_the_good_one_is_good() -> None:
    assert load_record_from_string(line(["SP", 2, 0, 32, [4], 1])).workload_key == KEY


UNREADABLE: dict[str, tuple[str, str]] = {
    "version": (line(v="v0.5"), "v is 'v0.5'; it is 'v0.6'"),
    "more fields": (line(extra=1), "has no field 'extra'"),
    "no state": (line(i=[TASK]), "i is 'list'; it is a task and a state"),
    "short task": (line(i=[[KEY], [[], []]]), "the task is a list of 2 to 6 fields"),
    "key": (line(i=[[3, "llvm"], [[], []]]), "the task: workload key is 3; it is text"),
    "hardware": (line(i=[[KEY, "llvm", [1.5]], [[], []]]), "the task: hardware parameters is 'list'; it is a list of numbers"),
    "option": (line(i=[[*TASK[:4], 3], [[], []]]), "the task: layout rewrite option is 3; it is 0, 1 or 2"),
    "stages": (line(i=[TASK, [["x"], []]]), "the state is an empty list and a list of transform steps"),
    "too many": (line(*[["CI", 1]] * 501), "the state has 501 steps"),
    "no list": (line("SP"), "step 0 is a list that starts with its code"),
    "unknown": (line(["XX", 1]), "no transform step is called 'XX'; known: AN, CA,"),
    "count": (line(["CI", 1, 2]), "CI has 2 fields; it takes 1: stage"),
    "negative": (line(["CI", -1]), "CI: stage is -1; it is a number of a stage"),
    "open length": (line(["SP", 2, 0, 32, [None], 1]), "SP: lengths is 'list'; it is a list of positive sizes, none of them left open"),
    "flag": (line(["SP", 2, 0, 32, [4], 2]), "SP: inner_to_outer is 2; it is 0 or 1"),
    "annotation": (line(["AN", 2, 0, 12]), "AN: annotation is 12; it is a number from 0 to 11"),
    "costs": (line(r=[[], 0, 0.1, 1.0]), "the result: costs is 'list'; it is a list of 1 to 1000 seconds"),
    "zero": (line(r=[[0.0], 0, 0.1, 1.0]), "a cost of 0 seconds, with no error"),
    "error": (line(r=[[0.1], 9, 0.1, 1.0]), "the result: error number is 9; it is a number from 0 to 8"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_is_not_read(name: str) -> None:
    text, message = UNREADABLE[name]
    with pytest.raises(RecordError) as caught:
        parse_v06(text)
    assert message in str(caught.value)


IMPOSSIBLE: dict[str, tuple[list[Any], str]] = {
    "stage": ([["CI", 9]], "step 0 (CI) of the log can't be replayed: no stage 9; the program has 5 stages here"),
    "iterator": ([["SP", 2, 7, 0, [4], 1]], "matmul has no iterator 7; it has 3: i, j, k"),
    "order": ([["RE", 2, [0, 0, 1]]], "[0, 0, 1] is no order of the 3 iterators of matmul"),
    "follow": ([["FSP", 4, 0, 5, 1]], "step 5 is no split to follow"),
    "follow parts": ([["SP", 2, 0, 32, [4], 1], ["FSP", 4, 0, 0, 3]], "it follows step 0 for 3 parts, but that has 1"),
    "fused level": ([["SP", 2, 0, 32, [4], 1], ["FFSP", 4, 0, [0], 1, 1]], "it follows level 1 of steps [0], which have no such level"),
    "fuse none": ([["FU", 2, []]], "it fuses no iterators"),
    "tensorize": ([["AN", 2, 0, 11]], "it calls for an intrinsic without naming it"),
    "pragma": ([["PR", 2, 0, "tensor_core"]], "the pragma 'tensor_core' has no equal here; the one known is 'auto_unroll_max_step$'"),
    "huge pragma": ([["PR", 2, 0, "auto_unroll_max_step$99999999"]], "auto_unroll_max_step takes 0 to"),
    "placeholder": ([["SP", 0, 0, 32, [4], 1]], "A has no iterator 0; it has 0: none"),
    "illegal": ([["AN", 2, 2, 3]], "can't parallel 'k': it is a reduction axis"),
    "cached late": ([["CA", 2, 4, 0], ["CHW", 4, "local"]], "cache_write of out, at whose loops matmul is computed already"),
    "place": ([["CA", 4, 2, 0]], "the places where stages are computed can't be replayed"),
    "storage": ([["SA", 4, 0, 8, 4]], "storage_align is about storage that the schedule makes"),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_is_not_replayed(name: str) -> None:
    steps, message = IMPOSSIBLE[name]
    with pytest.raises(RecordError) as caught:
        replay_v06(parse_v06(line(*steps)).steps, ComputeDAG(KEY).initial_tree)
    assert message in str(caught.value)


def test_an_unknown_workload_and_target_are_named() -> None:
    with pytest.raises(RecordError, match=r"the workload .*nowhere.* can't be declared: .* not registered"):
        load_record_from_string(line(i=[['["nowhere", 1]', "llvm"], [[], []]]))
    with pytest.raises(RecordError, match="the log's target 'abacus'"):
        load_record_from_string(line(i=[[KEY, "abacus"], [[], []]]))


def test_a_log_of_lines_that_can_not_be_replayed_says_why(tmp_path: Any) -> None:
    log = tmp_path / "log.json"
    log.write_text(line(["CI", 9]) + "\n")
    with pytest.raises(RecordError, match=r"of 1 v0.6 lines none can be replayed, the first because step 0 \(CI\)"):
        load_best_record(log, KEY)
