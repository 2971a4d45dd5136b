"""Cost models: what they learn, what they forget, what they write down."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

import numpy as np
import pytest

from tensorexpr import log
from tensorexpr.errors import RecordError, TuningError
from tensorexpr.tune.cost_model import (
    BoostedModel,
    CostModel,
    FloatArray,
    PriorModel,
    RandomModel,
    default_model,
    rank_correlation,
)
from tensorexpr.tune.cost_model.base import checked_samples

COLUMNS = 12


def programs(count: int, seed: int = 0) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Features, throughput and a prior that knows half of what makes them fast."""
    generator = np.random.default_rng(seed)
    features = generator.normal(size=(count, COLUMNS))
    known = -np.abs(features[:, 0])
    logs = known - np.maximum(features[:, 1], features[:, 2])
    return features, np.exp(logs + 8.0), known


@pytest.fixture
def boosted() -> BoostedModel:
    return BoostedModel(seed=1)


@pytest.mark.parametrize("model", [BoostedModel(), RandomModel(), PriorModel()], ids=lambda model: model.name)
def test_all_models_follow_the_protocol(model: CostModel, tmp_path: Path) -> None:
    assert isinstance(model, CostModel)
    features, throughput, prior = programs(20)
    model.update(features, throughput, prior)
    scores = model.predict(features, prior)
    assert scores.shape == (20,)
    assert np.isfinite(scores).all()
    assert model.predict(features[:0], prior[:0]).shape == (0,)
    model.save(tmp_path / "model.json")
    model.load(tmp_path / "model.json")


def test_untrained_it_is_the_prior(boosted: BoostedModel) -> None:
    features, _, prior = programs(5)
    np.testing.assert_allclose(boosted.predict(features, prior), prior)
    np.testing.assert_array_equal(boosted.predict(features), np.zeros(5))


def test_it_learns_what_the_prior_does_not_know(boosted: BoostedModel) -> None:
    features, throughput, prior = programs(500)
    boosted.update(features[:300], throughput[:300], prior[:300])
    unseen = rank_correlation(boosted.predict(features[300:], prior[300:]), throughput[300:])
    assert unseen > 0.9
    assert unseen > rank_correlation(prior[300:], throughput[300:]) + 0.2


def test_it_learns_without_a_prior(boosted: BoostedModel) -> None:
    features, throughput, _ = programs(500)
    boosted.update(features[:300], throughput[:300])
    assert rank_correlation(boosted.predict(features[300:]), throughput[300:]) > 0.8


def test_a_few_samples_do_not_spoil_the_prior(boosted: BoostedModel) -> None:
    features, throughput, prior = programs(200)
    for count in (1, 2, 4, 7, 16):
        boosted.update(features[:count], throughput[:count], prior[:count])
        after = rank_correlation(boosted.predict(features[100:], prior[100:]), throughput[100:])
        assert after > rank_correlation(prior[100:], throughput[100:]) - 0.1


def test_predictions_are_log_throughput_up_to_a_constant(boosted: BoostedModel) -> None:
    features, throughput, prior = programs(800)
    boosted.update(features, throughput, prior)
    fast, slow = np.argmax(throughput), np.argsort(throughput)[400]
    scores = boosted.predict(features, prior)
    assert scores[fast] - scores[slow] == pytest.approx(np.log(throughput[fast] / throughput[slow]), abs=0.5)


def test_the_same_seed_gives_the_same_predictions() -> None:
    features, throughput, prior = programs(200)
    made = []
    for seed in (3, 3, 4):
        model = BoostedModel(seed=seed)
        model.update(features, throughput, prior)
        made.append(model.predict(features, prior))
    np.testing.assert_array_equal(made[0], made[1])
    assert not np.array_equal(made[0], made[2])


def test_an_update_replaces_the_one_before(boosted: BoostedModel) -> None:
    features, throughput, prior = programs(200)
    boosted.update(*programs(100, seed=9))
    boosted.update(features, throughput, prior)
    fresh = BoostedModel(seed=1)
    fresh.update(features, throughput, prior)
    np.testing.assert_array_equal(boosted.predict(features, prior), fresh.predict(features, prior))


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_what_failed_is_not_learned_from(bad: float, boosted: BoostedModel) -> None:
    features, throughput, prior = programs(100)
    spoilt = throughput.copy()
    spoilt[::10] = bad
    boosted.update(features, spoilt, prior)
    kept = np.arange(100) % 10 != 0
    fresh = BoostedModel(seed=1)
    fresh.update(features[kept], throughput[kept], prior[kept])
    np.testing.assert_array_equal(boosted.predict(features, prior), fresh.predict(features, prior))


def test_nothing_but_failures_leaves_the_prior(boosted: BoostedModel) -> None:
    features, _, prior = programs(20)
    boosted.update(features, np.zeros(20), prior)
    np.testing.assert_allclose(boosted.predict(features, prior), prior)


def test_constant_features_and_priors_are_no_trouble(boosted: BoostedModel) -> None:
    boosted.update(np.ones((30, 3)), np.linspace(1, 2, 30), np.zeros(30))
    assert np.isfinite(boosted.predict(np.ones((5, 3)), np.zeros(5))).all()


def test_samples_that_can_not_be_used_are_left_out() -> None:
    features = np.array([[1.0], [np.nan], [2.0], [3.0]])
    rows, labels, prior = checked_samples(features, np.array([4.0, 4.0, 2.0, 1.0]), np.array([0.0, 0.0, np.inf, 5.0]))
    np.testing.assert_array_equal(rows, [[1.0], [3.0]])
    np.testing.assert_allclose(labels, [0.0, np.log(0.25)])
    np.testing.assert_array_equal(prior, [0.0, 5.0])


def test_shapes_that_do_not_fit_are_refused(boosted: BoostedModel) -> None:
    with pytest.raises(TuningError, match=r"takes features \[n, f\]"):
        boosted.update(np.zeros((3, 2)), np.ones(4))
    boosted.update(*programs(50))
    with pytest.raises(TuningError, match="was trained on 12 features, not 3"):
        boosted.predict(np.zeros((2, 3)))


def test_a_saved_model_predicts_the_same(boosted: BoostedModel, tmp_path: Path) -> None:
    features, throughput, prior = programs(150)
    boosted.update(features, throughput, prior)
    boosted.save(tmp_path / "model.json")
    again = BoostedModel(seed=1)
    again.load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict(features, prior), boosted.predict(features, prior))


def test_what_was_loaded_helps_with_a_new_task(boosted: BoostedModel, tmp_path: Path) -> None:
    boosted.update(*programs(400))
    boosted.save(tmp_path / "model.json")
    again = BoostedModel(seed=1)
    again.load(tmp_path / "model.json")
    features, throughput, prior = programs(210, seed=5)
    again.update(features[:10], 100 * throughput[:10], prior[:10])
    assert rank_correlation(again.predict(features[10:], prior[10:]), throughput[10:]) > 0.85


def test_a_model_that_knows_nothing_is_not_saved(boosted: BoostedModel, tmp_path: Path) -> None:
    with pytest.raises(TuningError, match="has learned nothing yet"):
        boosted.save(tmp_path / "model.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "random"}, "holds no boosted model of version 1"),
        ({"version": 2}, "holds no boosted model of version 1"),
        ({"columns": 0}, "columns is no number of features"),
        ({"columns": 5}, "don't make rows of 5"),
        ({"labels": None}, "has no labels"),
        ({"labels": "!!!!"}, "labels can't be decoded"),
        ({"prior": "AAAA"}, "can't be decoded"),
        ({"prior": "AAAAAAAA+H8="}, "prior hold numbers that aren't finite"),
    ],
)
def test_a_damaged_file_is_a_record_error(change: dict[str, object], message: str, boosted: BoostedModel, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    boosted.update(*programs(10))
    boosted.save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(RecordError) as caught:
        boosted.load(path)
    assert message in str(caught.value)


@pytest.mark.parametrize("model", [BoostedModel(), RandomModel(), PriorModel()], ids=lambda model: model.name)
@pytest.mark.parametrize("content", ["", "[", "[]", '{"model": 3}', "[" * 100_000, "\x00"])
def test_what_is_no_model_is_a_record_error(content: str, model: CostModel, tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text(content)
    with pytest.raises(RecordError):
        model.load(tmp_path / "model.json")
    with pytest.raises(RecordError):
        model.load(tmp_path / "missing.json")


def test_random_scores_follow_the_seed() -> None:
    features = np.zeros((50, 2))
    first, again, other = (RandomModel(seed).predict(features) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert ((first >= 0) & (first < 1)).all()


def test_without_xgboost_the_prior_serves_and_it_is_said_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setitem(sys.modules, "xgboost", None)
    log.once.cache_clear()
    with caplog.at_level(logging.WARNING):
        models = [default_model(), default_model()]
    assert all(isinstance(model, PriorModel) for model in models)
    assert len(caplog.records) == 1
    assert "pip install 'tensorexpr[tune]'" in caplog.text
    with pytest.raises(TuningError, match="the learned cost model needs xgboost"):
        BoostedModel()


def test_with_xgboost_the_learned_model_is_the_default() -> None:
    assert default_model(3).name == "boosted"
