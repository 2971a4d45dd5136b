"""What travels between clients and workers comes out as it went in; what is no message is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorexpr.errors import TuningError
from tensorexpr.fleet.messages import (
    WorkerDescription,
    build_job,
    build_of,
    built,
    candidates_of,
    frame_of,
    options_from_json,
    options_to_json,
    outcomes_of,
    outcomes_to_json,
    program_of,
    run_job,
)
from tensorexpr.tune.measure import MeasureErrorNo, MeasureOptions, Program, TimingPolicy
from tensorexpr.tune.measure.builder import Build, Failure
from tensorexpr.tune.measure.compiled import ArrayArgument, CompiledCandidate
from tensorexpr.tune.measure.protocol import encode
from tests.unit.tune.programs import matmul, tiled

CANDIDATE = CompiledCandidate(b"\x7fELF", "main", (ArrayArgument("A", "float32", (4, 4)),), ("too small",), {"lower": 0.5}, 3, 100)
FAILURE = Failure(MeasureErrorNo.RUN_TIMEOUT, "took longer", "printed", 1.5)


@pytest.mark.parametrize("made", [CANDIDATE, FAILURE])
def test_builds_travel(made: CompiledCandidate | Failure) -> None:
    assert build_of(frame_of(encode(built(Build(made, 0.25))))) == Build(made, 0.25)


def test_programs_travel() -> None:
    trace = tiled(matmul(64)[2], 4, 16)
    sent = program_of(frame_of(build_job(Program(7, trace, dag={"x": 1}), 3)))
    assert (sent.steps, sent.dag) == (trace.to_json(), {"x": 1})


@given(st.floats(1e-9, 1e3), st.integers(0, 5))
def test_options_travel(seconds: float, repeat: int) -> None:
    options = MeasureOptions(timing=TimingPolicy(repeat=repeat, cooldown_s=seconds), run_timeout_s=seconds, verify=False)
    assert options_from_json(options_to_json(options)) == options


def test_candidates_and_outcomes_travel() -> None:
    assert candidates_of(frame_of(run_job([CANDIDATE, CANDIDATE], 1e-3))) == [CANDIDATE, CANDIDATE]
    outcomes: list[tuple[dict[str, object] | Failure, float]] = [({"costs": [1.0]}, 0.5), (FAILURE, 2.0)]
    assert outcomes_of(outcomes_to_json(outcomes)) == outcomes


@pytest.mark.parametrize("data", [b"", b"GET / HTTP/1.1", run_job([CANDIDATE], None) * 2, run_job([CANDIDATE], None)[:-1]])
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(TuningError, match="frame"):
        frame_of(data)


def test_a_worker_that_says_too_little_is_refused() -> None:
    with pytest.raises(TuningError, match="describes itself wrongly"):
        WorkerDescription.of({"address": "tcp://127.0.0.1:1"})
