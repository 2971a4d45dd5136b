"""The per-store features of one program, beside what TVM 0.19 says of the same one, and their names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tests.v06_workloads  # noqa: F401  (registers the workloads)
from tensorexpr import te
from tensorexpr.auto_scheduler import ComputeDAG, MeasureInput, MeasureResult, SearchTask, feature, save_records
from tensorexpr.errors import ScheduleError
from tensorexpr.lower.phase0.inline_stages import inline_stages
from tensorexpr.schedule import create_schedule
from tensorexpr.schedule.steps import Split
from tensorexpr.schedule.trace import Trace
from tensorexpr.tune.features import per_store, per_store_names
from tensorexpr.tune.measure import FAILED_COST, MeasureErrorNo
from tensorexpr.tune.space import Sketch

# What TVM prints for the product and for the sum; all other features are 0. Its counts of integer operations are those of
# addresses, which are not counted here.
TVM = {
    "float_addsub": (18.0, 12.0004),
    "float_mul": (18.0, 0.0),
    "vec_type.kPosNone": (1.0, 1.0),
    "unroll_type.kPosNone": (1.0, 1.0),
    "parallel_num": (1.0, 1.0),
    "parallel_prod": (2.3219, 2.3219),
    "parallel_len": (2.3219, 2.3219),
    "parallel_type.kPosMixed": (1.0, 1.0),
    "blockIdx_x_len": (1.0, 1.0),
    "blockIdx_y_len": (1.0, 1.0),
    "blockIdx_z_len": (1.0, 1.0),
    "threadIdx_x_len": (1.0, 1.0),
    "threadIdx_y_len": (1.0, 1.0),
    "threadIdx_z_len": (1.0, 1.0),
    "vthread_len": (1.0, 1.0),
    "B0.acc_type.kRead": (1.0, 1.0),
    "B0.bytes": (20.0, 14.0001),
    "B0.unique_bytes": (14.0001, 14.0001),
    "B0.lines": (18.0, 8.0056),
    "B0.unique_lines": (8.0056, 8.0056),
    "B0.reuse_type.kLoopMultipleRead": (1.0, 0.0),
    "B0.reuse_type.kNoReuse": (0.0, 1.0),
    "B0.reuse_dis_iter": (3.1699, 0.0),
    "B0.reuse_dis_bytes": (5.8329, 0.0),
    "B0.reuse_ct": (4.0875, 0.0),
    "B0.bytes_d_reuse_ct": (16.0, 15.0),
    "B0.unique_bytes_d_reuse_ct": (10.0014, 15.0),
    "B0.lines_d_reuse_ct": (14.0001, 9.0028),
    "B0.unique_lines_d_reuse_ct": (4.0875, 9.0028),
    "B0.stride": (6.0224, 1.0),
    "B1.acc_type.kRead": (0.0, 1.0),
    "B1.acc_type.kReadWrite": (1.0, 0.0),
    "B1.bytes": (20.0, 14.0001),
    "B1.unique_bytes": (14.0001, 14.0001),
    "B1.lines": (18.0, 8.0056),
    "B1.unique_lines": (8.0056, 8.0056),
    "B1.reuse_type.kLoopMultipleRead": (1.0, 0.0),
    "B1.reuse_type.kSerialMultipleReadWrite": (0.0, 1.0),
    "B1.reuse_dis_iter": (1.585, 10.0014),
    "B1.reuse_dis_bytes": (4.3923, 14.8074),
    "B1.reuse_ct": (2.3219, 1.585),
    "B1.bytes_d_reuse_ct": (18.0, 13.0002),
    "B1.unique_bytes_d_reuse_ct": (12.0004, 13.0002),
    "B1.lines_d_reuse_ct": (16.0, 7.0112),
    "B1.unique_lines_d_reuse_ct": (6.0224, 7.0112),
    "B1.stride": (6.0224, 1.0),
    "B2.acc_type.kRead": (1.0, 0.0),
    "B2.acc_type.kWrite": (0.0, 1.0),
    "B2.bytes": (20.0, 14.0001),
    "B2.unique_bytes": (14.0001, 14.0001),
    "B2.lines": (17.0, 8.0056),
    "B2.unique_lines": (8.0056, 8.0056),
    "B2.reuse_type.kLoopMultipleRead": (1.0, 0.0),
    "B2.reuse_type.kNoReuse": (0.0, 1.0),
    "B2.reuse_dis_iter": (1.0, 0.0),
    "B2.reuse_dis_bytes": (3.7004, 0.0),
    "B2.reuse_ct": (1.585, 0.0),
    "B2.bytes_d_reuse_ct": (19.0, 15.0),
    "B2.unique_bytes_d_reuse_ct": (13.0002, 15.0),
    "B2.lines_d_reuse_ct": (16.0, 9.0028),
    "B2.unique_lines_d_reuse_ct": (7.0112, 9.0028),
    "B2.stride": (0.0, 1.0),
    "arith_intensity_curve_0": (2.0588, 0.1155),
    "arith_intensity_curve_1": (2.6604, 0.1155),
    "arith_intensity_curve_2": (2.9419, 0.1155),
    "arith_intensity_curve_3": (3.045, 0.1155),
    "arith_intensity_curve_4": (3.1411, 0.1155),
    "arith_intensity_curve_5": (3.2313, 0.1155),
    "arith_intensity_curve_6": (3.3161, 0.1155),
    "arith_intensity_curve_7": (3.3963, 0.1155),
    "arith_intensity_curve_8": (3.4722, 0.1155),
    "arith_intensity_curve_9": (3.5443, 0.1155),
    "alloc_size": (12.0004, 14.0001),
    "alloc_prod": (12.0004, 12.0004),
    "alloc_outer_prod": (2.3219, 1.0),
    "alloc_inner_prod": (16.0, 12.0004),
    "outer_prod": (18.0, 12.0004),
    "num_loops": (3.1699, 2.0),
    "auto_unroll_max_step": (6.0224, 0.0),
}


def tiled_matmul_add() -> Sketch:
    """A product in tiles, computed at the fused parallel loop of a sum."""
    a, b, d = (te.placeholder((64, 64), name=name) for name in "ABD")
    k = te.reduce_axis((0, 64), name="k")
    product = te.compute((64, 64), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="matmul")
    out = te.compute((64, 64), lambda i, j: product[i, j] + d[i, j], name="out")
    s = create_schedule(out.op)
    i, j = product.op.axis
    i, i3 = s[product].split(i, factor=2)
    i, i2 = s[product].split(i, factor=2)
    i0, i1 = s[product].split(i, factor=8)
    j, j2 = s[product].split(j, factor=16)
    j0, j1 = s[product].split(j, factor=2)
    k0, k1 = s[product].split(product.op.reduce_axis[0], factor=4)
    s[product].reorder(i0, j0, i1, j1, k0, i2, j2, k1, i3)
    io, ii = s[out].split(out.op.axis[0], factor=32)
    jo, ji = s[out].split(out.op.axis[1], factor=32)
    s[out].reorder(io, jo, ii, ji)
    fused = s[out].fuse(io, jo)
    s[out].parallel(fused)
    s[product].compute_at(s[out], fused)
    s[product].pragma(i0, "auto_unroll_max_step", 64)
    return Sketch("one", s.outputs, ComputeDAG([a, b, d, out]).initial_tree, s.trace)


def test_features_are_what_tvm_says() -> None:
    sketch = tiled_matmul_add()
    made = per_store(sketch, inline_stages(sketch.tree), np.zeros((1, 0), np.int64))
    assert [tensor.name for tensor in made.stores] == ["matmul", "out"]
    wanted = np.array([TVM.get(name, (0.0, 0.0)) for name in per_store_names()])
    np.testing.assert_allclose(made.features[0].T, wanted, atol=2e-4)


def test_there_are_164_names() -> None:
    names = feature.get_per_store_feature_names()
    assert len(names) == len(set(names)) == 164
    assert set(TVM) <= set(names)
    assert (names[0], names[57], names[-1]) == ("float_mad", "B0.acc_type.kRead", "auto_unroll_max_step")
    assert len(feature.get_per_store_feature_names(7)) == 164 + 2 * 18


@pytest.mark.parametrize("shape", [(), (1,), (0,), (1, 1)])
def test_stores_without_loops_have_features(shape: tuple[int, ...]) -> None:
    x = te.placeholder(shape, name="X")
    dag = ComputeDAG([x, te.compute(shape, lambda *i: x(*i) + 1.0, name="out")])
    sketch = Sketch("one", dag.outputs, dag.initial_tree, Trace())
    made = per_store(sketch, inline_stages(sketch.tree), np.zeros((3, 0), np.int64))
    assert made.features.shape == (3, 1, 164)
    assert np.isfinite(made.features).all()


def task() -> SearchTask:
    """A small product."""
    return SearchTask(func="v06_matmul", args=(16, 16, 16), target="llvm -num-cores=1")


def result(cost: float) -> MeasureResult:
    """A result; of a failure, if the cost is that of one."""
    error = MeasureErrorNo(4 if cost == FAILED_COST else 0)
    return MeasureResult((cost,), error, "", 0.1, 1.0, not error)


def test_features_of_programs_and_of_logs(tmp_path: Path) -> None:
    traces = [Trace(), Trace((Split(2, 0, (None, 4)),)), Trace((Split(2, 1, (None, 8)),))]
    rows = feature.get_per_store_features_from_states(traces, task())
    assert [made.shape for made in rows] == [(1, 164)] * 3
    pairs = [MeasureInput(task(), trace) for trace in traces], [result(2.0), result(0.5), result(FAILED_COST)]
    save_records(tmp_path / "log.json", *pairs)
    for features, throughputs, tasks in (
        feature.get_per_store_features_from_measure_pairs(*pairs),
        feature.get_per_store_features_from_file(tmp_path / "log.json", 10),
    ):
        np.testing.assert_array_equal(np.stack(features), np.stack(rows))
        assert (throughputs.tolist(), tasks.tolist()) == ([0.25, 1.0, 0.0], [0, 0, 0])
    first, _, _ = feature.get_per_store_features_from_measure_pairs(*pairs, skip_first_n_feature_extraction=2)
    assert [len(made) for made in first] == [0, 0, 1]


def test_a_program_of_another_task_has_none() -> None:
    with pytest.raises(ScheduleError):
        feature.get_per_store_features_from_states([Trace((Split(9, 0, (None, 4)),))], task())
