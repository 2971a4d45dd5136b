"""Cost models learn, predict, and are saved and loaded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import meta_schedule as ms
from tensorexpr import tir
from tensorexpr.errors import RecordError, TuningError
from tensorexpr.meta_schedule.cost_model import CostModel, RandomModel, XGBConfig, XGBModel
from tensorexpr.meta_schedule.cost_model.analytic import log_throughput
from tensorexpr.meta_schedule.feature_extractor import FeatureExtractor, PerStoreFeature, RandomFeatureExtractor
from tensorexpr.meta_schedule.runner import RunnerResult
from tensorexpr.meta_schedule.search_strategy import MeasureCandidate
from tests.meta_schedule_programs import matmul, scaled, tiles


def context(n: int = 64) -> ms.TuneContext:
    return ms.TuneContext(matmul(n), target="llvm", space_generator=tiles, search_strategy="replay-trace", rand_state=5)


def candidates(ctx: ms.TuneContext, count: int) -> list[MeasureCandidate]:
    ctx.pre_tuning(count, count)
    return ctx.generate_measure_candidates() or []


def lanes(candidate: MeasureCandidate) -> int:
    found: list[int] = []
    loops = found.append
    tir.stmt_functor.post_order_visit(
        candidate.sch.mod["main"].body,
        lambda node: loops(int(str(node.extent))) if isinstance(node, tir.For) and node.kind == tir.ForKind.VECTORIZED else None,
    )
    return found[0]


def test_boosted_trees_learn_what_is_fast(tmp_path: Path) -> None:
    pytest.importorskip("xgboost")
    ctx, model = context(), XGBModel()
    everyone = candidates(ctx, 60)
    # the opposite of what the analytic model says: narrow vectors are fast
    results = [RunnerResult([1e-3 * lanes(candidate)]) for candidate in everyone]
    before = model.predict(ctx, everyone[40:])
    model.update(ctx, everyone[:40], results[:40])
    after = model.predict(ctx, everyone[40:])
    speed = 1.0 / np.array([result.median for result in results[40:]])
    assert np.corrcoef(before, speed)[0, 1] < 0 < 0.8 < np.corrcoef(after, speed)[0, 1]
    model.save(tmp_path / "model")
    other = XGBModel()
    other.load(tmp_path / "model")
    assert np.corrcoef(other.predict(ctx, everyone[40:]), speed)[0, 1] > 0.8


def test_programs_that_failed_teach_nothing_about_speed() -> None:
    pytest.importorskip("xgboost")
    ctx, model = context(), XGBModel(config=XGBConfig(max_depth=3))
    some = candidates(ctx, 4)
    before = model.predict(ctx, some)
    model.update(ctx, some, [RunnerResult(None, "no luck")] * 4)
    model.update(ctx, [], [])
    assert (model.predict(ctx, some) == before).all() and model.predict(ctx, []).shape == (0,)


def test_the_analytic_model_prefers_vectors_and_parallel_loops() -> None:
    target = tvm.Target("llvm -mcpu=znver5 -num-cores=4")
    sch = tir.Schedule(scaled(4096))
    _, inner = sch.split(sch.get_loops(sch.get_block("B"))[0], [None, 16])
    before = log_throughput(sch.mod, target)
    sch.vectorize(inner)
    assert log_throughput(sch.mod, target) > before + 0.8
    large = tir.Schedule(matmul(256))
    i, *_ = large.get_loops(large.get_block("C"))
    before = log_throughput(large.mod, target)
    large.parallel(i)
    assert log_throughput(large.mod, target) > before + 1.0  # 4 cores: log(4) less the fork


def test_each_store_has_164_features_with_meaning() -> None:
    sch = tir.Schedule(scaled(64))
    (loop,) = sch.get_loops(sch.get_block("B"))
    outer, inner = sch.split(loop, [None, 16])
    sch.vectorize(inner)
    sch.annotate(outer, "pragma_auto_unroll_max_step", 15)
    extractor = PerStoreFeature()
    (found,) = extractor.extract_from(context(), [MeasureCandidate(sch, ())])
    assert found.shape == (1, 164) and extractor.feature_vector_length == 164
    row = 2.0 ** found[0] - 1.0
    assert row[2] == pytest.approx(64) and row[:16].sum() == pytest.approx(64)  # float multiplications, and nothing else
    assert row[16:19].tolist() == pytest.approx([1.0, 16.0, 16.0])  # vectors: loops, product, innermost extent
    bytes_moved, unique, lines = (row[57 + 3 + n] for n in range(3))
    assert (bytes_moved, unique, lines) == pytest.approx((256.0, 256.0, 4.0))
    assert row[-3:].tolist() == pytest.approx([64.0, 2.0, 15.0])  # iterations, loops, the pragma
    assert PerStoreFeature(extract_workload=True).extract_from(context(), [MeasureCandidate(sch, ())])[0].shape == (1, 180)


def test_a_reduction_has_one_row_for_its_buffer() -> None:
    sch = tir.Schedule(matmul(16))
    (found,) = PerStoreFeature().extract_from(context(), [MeasureCandidate(sch, ())])
    assert found.shape[0] == 1
    assert 2.0 ** found[0][1] - 1 == pytest.approx(16**3) and 2.0 ** found[0][2] - 1 == pytest.approx(16**3)


def test_random_models_are_the_same_for_a_seed(tmp_path: Path) -> None:
    ctx = context()
    some = candidates(ctx, 3)
    one, other = RandomModel(seed=3), RandomModel(seed=3)
    assert (one.predict(ctx, some) == other.predict(ctx, some)).all()
    one.update(ctx, some, [RunnerResult([1.0])] * 3)
    one.save(tmp_path / "state")
    again = RandomModel(path=str(tmp_path / "state"))
    assert (again.predict(ctx, some) == one.predict(ctx, some)).all()
    features = RandomFeatureExtractor(seed=1).extract_from(ctx, some)
    assert all(matrix.shape[1] == 30 and 1 <= len(matrix) <= 5 for matrix in features)


def test_what_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no model")
    with pytest.raises(RecordError, match="is no saved random model"):
        RandomModel(path=str(tmp_path / "text"))
    with pytest.raises(TuningError, match="no cost model is called 'mlp'"):
        CostModel.create("mlp")
    with pytest.raises(TuningError, match="no feature extractor is called 'x'"):
        FeatureExtractor.create("x")
    with pytest.raises(TuningError, match="at least one buffer"):
        PerStoreFeature(buffers_per_store=0)
    assert CostModel.create("none") is None
