"""The parts of a learned model whose rows are stores: sums of rows, objective and evaluations."""

from __future__ import annotations

import numpy as np
import pytest

from tensorexpr.auto_scheduler.cost_model import xgb_model
from tensorexpr.errors import TuningError

FEATURES = [np.ones((2, 3)), np.zeros((1, 3)), np.full((3, 3), 2.0)]


def test_rows_are_summed_by_program_and_curves_never_fall() -> None:
    np.testing.assert_array_equal(xgb_model.predict_throughput_pack_sum([1.0, 2.0, 5.0, 1.0], [0, 0, 1, 2]), [3.0, 5.0, 1.0])
    np.testing.assert_array_equal(xgb_model.max_curve([1.0, 3.0, 2.0, 4.0]), [1.0, 3.0, 3.0, 4.0])


def test_matrices_know_the_programs_of_their_rows() -> None:
    pytest.importorskip("xgboost", reason="the extra `tune` is not installed")
    matrix, ids = xgb_model.feature_to_pack_sum_xgbmatrix(FEATURES)
    assert matrix.num_row() == 6 and ids.tolist() == [0, 0, 1, 2, 2, 2]
    trained = xgb_model.pack_sum_xgbmatrix(FEATURES, [0.5, 0.2, 1.0], gids=[1, 0, 1], weights=[1.0, 2.0, 1.0])
    assert xgb_model.dmatrix_context.get("pack_ids", trained).tolist() == [0, 1, 1, 2, 2, 2]  # sorted by task
    assert xgb_model.dmatrix_context.get("pack_ids", matrix) is None
    np.testing.assert_allclose(trained.get_label(), [0.2, 0.5, 0.5, 1.0, 1.0, 1.0])
    scores = np.array([0.1, 0.25, 0.25, 0.5, 0.25, 0.25])  # 0.1, 0.5, 1.0: the first is 0.1 too low
    gradient, hessian = xgb_model.pack_sum_square_error(scores, trained)
    np.testing.assert_allclose(gradient, [-0.2, 0, 0, 0, 0, 0], atol=1e-7)
    np.testing.assert_allclose(hessian, [2, 1, 1, 1, 1, 1])
    name, value = xgb_model.pack_sum_rmse(scores, trained)
    assert name == "p-rmse" and value == pytest.approx(0.1 / np.sqrt(6))
    name, value = xgb_model.pack_sum_average_peak_score(2)(-scores, trained)
    assert name == "a-peak@2" and value == pytest.approx((0.2 + 0.5) / 2)


def test_nothing_makes_no_matrix() -> None:
    with pytest.raises(TuningError, match="the features of at least one program"):
        xgb_model.feature_to_pack_sum_xgbmatrix([])
