"""Modules and records come back from files as they were, and no file makes anything else than a RecordError."""

from __future__ import annotations

import base64
import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.errors import DeclarationError, RecordError, ScheduleError
from tensorexpr.meta_schedule.database import TuningRecord, Workload
from tensorexpr.schedule.blocks import Schedule, Trace
from tensorexpr.testing.strategies import compute_dags
from tensorexpr.tir.serialize.module_graph import module_from_graph, module_to_graph
from tensorexpr.tir.structural import structural_equal
from tests.effort import share_of
from tests.meta_schedule_programs import matmul, tiles

SETTINGS = settings(deadline=None, derandomize=True, max_examples=share_of(40), suppress_health_check=list(HealthCheck))


def scheduled(seed: int) -> Schedule:
    sch = Schedule(matmul(), seed=seed)
    tiles(sch)
    block = sch.get_block("C")
    sch.annotate(sch.get_loops(block)[0], "pragma_auto_unroll_max_step", sch.sample_categorical([0, 16], [0.5, 0.5]))
    sch.annotate(block, "notes", ["text", 2, {"deep": 1}])
    sch.enter_postproc()
    sch.parallel(sch.get_loops(block)[0])
    return sch


@SETTINGS
@given(compute_dags())
def test_modules_come_back(dag: Any) -> None:
    try:
        mod = tvm.IRModule({"main": te.create_prim_func(list(dag.tensors))})
    except DeclarationError:  # computations that have no form in blocks
        return
    text = module_to_graph(mod)
    again = module_from_graph(text)
    assert structural_equal(again, mod) and str(again) == str(mod)
    assert module_to_graph(again) == text


@SETTINGS
@given(st.integers(1, 1 << 30))
def test_scheduled_modules_and_traces_come_back(seed: int) -> None:
    sch = scheduled(seed)
    again = module_from_graph(module_to_graph(sch.mod))
    assert structural_equal(again, sch.mod) and str(again) == str(sch.mod)
    assert sch.trace is not None
    trace = Trace.from_json(json.loads(json.dumps(sch.trace.as_json())))
    assert str(trace) == str(sch.trace)
    replayed = Schedule(matmul())
    trace.apply_to_schedule(replayed, remove_postproc=False)
    assert structural_equal(replayed.mod, sch.mod)
    assert replayed.trace is not None and replayed.trace.as_json() == sch.trace.as_json()


@SETTINGS
@given(st.integers(1, 1 << 30), st.lists(st.floats(1e-9, 1e3), max_size=3))
def test_records_come_back(seed: int, seconds: list[float]) -> None:
    sch, workload = scheduled(seed), Workload(matmul())
    assert sch.trace is not None
    made = TuningRecord(sch.trace, workload, seconds, tvm.Target("llvm -num-cores=3"))
    data = json.loads(json.dumps(made.as_json()))
    again = TuningRecord.from_json(data, Workload.from_json(json.loads(json.dumps(workload.as_json()))))
    assert again.as_json() == data and again.mean == made.mean


TEXT = module_to_graph(scheduled(1).mod)
NODES = json.loads(TEXT)
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 1 << 70),
    st.floats(),
    st.text(max_size=4),
    st.just([]),
    st.just({}),
    st.integers(0, 200).map(str),
)


@st.composite
def changed_graphs(draw: Any) -> str:
    """The text of a module with one to three places changed."""
    data = json.loads(TEXT)
    for _ in range(draw(st.integers(1, 3))):
        node = data["nodes"][draw(st.integers(0, len(data["nodes"]) - 1))]
        if draw(st.booleans()) and isinstance(node.get("attrs"), dict) and node["attrs"]:
            node["attrs"][draw(st.sampled_from(sorted(node["attrs"])))] = draw(ODD)
        elif isinstance(node.get("data"), list) and node["data"]:
            node["data"][draw(st.integers(0, len(node["data"]) - 1))] = draw(ODD)
        else:
            node[draw(st.sampled_from(["type_key", "attrs", "data", "repr_str", "keys"]))] = draw(ODD)
    return json.dumps(data)


@settings(SETTINGS, max_examples=share_of(400))
@given(changed_graphs())
def test_changed_graphs_are_modules_or_refused(text: str) -> None:
    try:
        mod = module_from_graph(text)
    except RecordError:
        return
    assert isinstance(mod, tvm.IRModule)


@SETTINGS
@given(st.integers(0, len(TEXT)), st.binary(max_size=3))
def test_torn_graphs_are_refused(cut: int, more: bytes) -> None:
    torn = TEXT[:cut] + more.decode(errors="replace")
    if torn.strip() == TEXT.strip():
        return
    try:
        module_from_graph(torn)
    except RecordError:
        return
    raise AssertionError("a torn graph was read")


JSON = st.recursive(ODD, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=2), max_leaves=12)


@settings(SETTINGS, max_examples=share_of(300))
@given(JSON, st.integers(0, 3), st.booleans())
def test_odd_records_are_refused(value: Any, place: int, whole: bool) -> None:
    good = TuningRecord(scheduled(1).trace or Trace(), WORKLOAD, [1.0], tvm.Target("llvm")).as_json()
    data = value if whole else [*good[:place], value, *good[place + 1 :]]
    try:
        record = TuningRecord.from_json(data, WORKLOAD)
        record.as_measure_candidate()
    except (RecordError, ScheduleError):
        return
    assert not whole


WORKLOAD = Workload(matmul())


@settings(SETTINGS, max_examples=share_of(100))
@given(JSON, st.binary(max_size=30))
def test_odd_workloads_are_refused(value: Any, data: bytes) -> None:
    for made in (value, ["1", base64.b64encode(data).decode()], ["1", base64.b64encode(len(data).to_bytes(8, "little") + data).decode()]):
        try:
            Workload.from_json(made)
        except RecordError:
            continue
        raise AssertionError(f"{made} was taken for a workload")
