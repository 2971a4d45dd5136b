"""te.scan: what it means, checked against NumPy, and what other parts of te say of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr import te
from tensorexpr.auto_scheduler import ComputeDAG
from tensorexpr.errors import DeclarationError, WorkloadError
from tensorexpr.schedule import AutoInlineInjective, create_schedule
from tensorexpr.te.dag import given_placeholders, post_dfs_order
from tensorexpr.te.dag_text import format_dag
from tensorexpr.te.flops import flop_count
from tensorexpr.te.identity import dag_equal
from tensorexpr.te.operation import PlaceholderOp
from tensorexpr.te.reference import evaluate
from tensorexpr.te.tolerance import reduction_length
from tensorexpr.testing.check import assert_schedule_correct
from tests.scan_programs import PROGRAMS, cumulative_sum, fibonacci, followed, history, lstm, rnn, two_states

Array = Any


def values(tensors: tuple[Any, ...]) -> tuple[dict[Any, Array], list[Array]]:
    """Random inputs, and what the evaluator makes of them."""
    given = [t for t in tensors if isinstance(t.op, PlaceholderOp)]
    generator = np.random.default_rng(1)
    inputs = {t: (generator.random([int(e.value) for e in t.shape]) - 0.5).astype(t.dtype) for t in given}
    return inputs, evaluate([t for t in tensors if t not in inputs], inputs)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def test_sums_over_time() -> None:
    inputs, (made,) = values(cumulative_sum())
    np.testing.assert_allclose(made, np.cumsum(next(iter(inputs.values())), 0), rtol=1e-5, atol=1e-6)


def test_fibonacci_numbers() -> None:
    assert values(fibonacci())[1][0].tolist() == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]


def test_two_states_read_each_other() -> None:
    inputs, (made_a, made_b) = values(two_states())
    (x,) = inputs.values()
    a, b = [x[0]], [np.float32(1.0)]
    for row in x[1:]:
        a, b = [*a, a[-1] * 0.5 + b[-1] + row], [*b, (a[-1] * 0.125).sum()]
    np.testing.assert_allclose(made_a, np.stack(a), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(made_b, np.stack(b), rtol=1e-5, atol=1e-6)


def test_a_recurrent_cell() -> None:
    inputs, (made,) = values(rnn())
    x, weight = inputs.values()
    rows = [np.zeros(x.shape[1:], "float32")]
    for row in x[1:]:
        rows.append(np.tanh(rows[-1] @ weight.T + row))
    np.testing.assert_allclose(made, np.stack(rows), rtol=1e-5, atol=1e-6)


def test_an_lstm_cell() -> None:
    inputs, (made_c, made_h) = values(lstm())
    x, to_input, to_state = inputs.values()
    c = h = np.zeros(x.shape[1:], "float32")
    for t in range(1, len(x)):
        gates = np.einsum("bi,gni->bgn", x[t], to_input) + np.einsum("bi,gni->bgn", h, to_state)
        c = sigmoid(gates[:, 2]) * c + sigmoid(gates[:, 0]) * np.tanh(gates[:, 1])
        h = sigmoid(gates[:, 3]) * np.tanh(c)
        np.testing.assert_allclose(made_c[t], c, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(made_h[t], h, rtol=1e-5, atol=1e-6)


def test_results_are_read_like_any_tensor() -> None:
    inputs, (made,) = values(followed())
    np.testing.assert_allclose(made, np.cumsum(next(iter(inputs.values())), 0)[::-1] * 2, rtol=1e-5, atol=1e-6)


def test_all_earlier_rows_are_there() -> None:
    inputs, (made,) = values(history())
    (x,) = inputs.values()
    rows = [x[0]]
    for value in x[1:]:
        rows.append(np.sum(rows) * 0.25 + value)
    np.testing.assert_allclose(made, rows, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_default_schedules(name: str) -> None:
    tensors = PROGRAMS[name]()
    outputs = list(dict.fromkeys(t.op for t in tensors if not isinstance(t.op, PlaceholderOp)))
    assert_schedule_correct(create_schedule(outputs), tensors)


@pytest.mark.parametrize("steps", [1, 2])
def test_few_steps(steps: int) -> None:
    x, sums = cumulative_sum(steps, 3)
    assert_schedule_correct(create_schedule(sums.op), [x, sums])


def test_symbolic_time_and_width() -> None:
    m, n = te.var("m"), te.var("n")
    x, state = te.placeholder((m, n), name="X"), te.placeholder((m, n), name="state")
    update = te.compute((m, n), lambda t, i: state[t - 1, i] + x[t, i], "update")
    made = te.scan(te.compute((1, n), lambda _, i: x[0, i], "first"), update, state)
    s = create_schedule(made.op)
    s[update].vectorize(s[update].split(update.op.axis[1], factor=4)[1])
    assert_schedule_correct(s, [x, made], sizes=[{m: 6, n: 7}, {m: 1, n: 4}, {m: 2, n: 1}])


def test_fewer_rows_than_init_has() -> None:
    m = te.var("m")
    state = te.placeholder((m,), "int64", name="state")
    first = te.compute((2,), lambda t: t.astype("int64"), "first")
    made = te.scan(first, te.compute((m,), lambda t: state[t - 1] + state[t - 2], "update"), state)
    assert_schedule_correct(create_schedule(made.op), [made], sizes=[{m: 0}, {m: 1}, {m: 2}, {m: 7}])


def test_attributes() -> None:
    _, a, b = two_states()
    op = a.op
    assert (a.value_index, b.value_index, op.num_outputs) == (0, 1, 2)
    assert str(op) == "scan(pair, init=[first_a, first_b], update=[next_a, next_b], state_placeholder=[a, b])"
    assert [str(axis.dom.min) for axis in (op.scan_axis, *op.spatial_axis_)] == ["1", "0"]
    assert [axis.name for axis in (op.scan_axis, *op.spatial_axis_)] == ["pair_idx", "pair_out0_i1"]
    assert [len(op.spatial_axes(i)) for i in range(2)] == [1, 0]


def test_states_are_no_inputs() -> None:
    _, sums = cumulative_sum()
    assert [op.name for op in given_placeholders(post_dfs_order([sums.op]))] == ["X"]


def test_text() -> None:
    _, sums = cumulative_sum()
    assert format_dag([sums]).splitlines()[-1] == "sums = SCAN [init first, update update, state state]"


def test_flops_count_the_steps_alone() -> None:
    _, sums = cumulative_sum(steps=6, width=5)
    assert flop_count([sums]) == 2 * 5 * 5
    _, _, made = rnn(steps=5, batch=3, width=8)
    assert flop_count([made]) == 4 * 3 * 8 * (2 * 8 + 1)


def test_identity() -> None:
    assert dag_equal([cumulative_sum()[1]], [cumulative_sum()[1]])
    assert not dag_equal([cumulative_sum()[1]], [cumulative_sum()[1].op.update[0]])
    assert not dag_equal([two_states()[1]], [two_states()[2]])


def test_errors_add_up_over_the_steps() -> None:
    assert reduction_length([rnn(steps=9)[2]]) > 2 * reduction_length([rnn(steps=5)[2]]) // 2
    assert reduction_length([rnn(steps=9)[2]]) == 2 * reduction_length([rnn(steps=5)[2]])


def test_automatic_inlining_leaves_updates() -> None:
    x, sums = cumulative_sum()
    s = create_schedule(sums.op)
    AutoInlineInjective(s)
    assert [stage.op.name for stage in s.stages if stage.attach_type == 2] == ["first", "kept"]
    assert_schedule_correct(s, [x, sums])


def test_where_scans_have_no_place() -> None:
    x, sums = cumulative_sum()
    with pytest.raises(DeclarationError, match="gradient of sums: it depends on the inputs through the scan sums"):
        te.gradient(sums, [x])
    with pytest.raises(DeclarationError, match=r"create_prim_func: Unsupported Operation: ScanOp\. sums is no placeholder"):
        te.create_prim_func([x, sums])
    with pytest.raises(WorkloadError, match=r"the computation has recurrences \(sums\), for which the search has no rules"):
        ComputeDAG([x, sums])
