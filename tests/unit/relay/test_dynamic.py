"""Operators whose shapes are values: what they compute when a graph runs is what they compute of constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.errors import ArgumentError, DeclarationError
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relay.to_graph import to_graph
from tests.effort import share_of

from .dynamic_cases import DYNAMIC
from .operator_cases import operands


def variables(data: list[Any]) -> list[Any]:
    return [relay.var(f"x{n}", shape=one.shape, dtype=str(one.dtype)) for n, one in enumerate(data)]


@pytest.mark.parametrize(("name", "spec", "call", "meaning"), DYNAMIC, ids=[f"{n}-{case[0]}" for n, case in enumerate(DYNAMIC)])
def test_by_tensors_and_by_attributes(name: str, spec: str, call: Callable[..., Any], meaning: Any) -> None:
    data = operands(spec)
    params = variables(data)
    value = call(relay, *params)
    mod = tvm.IRModule.from_expr(relay.Function(tuple(params), value))
    assert name in str(mod) and "?" in str(relay.transform.InferType()(mod))
    known = {f"x{n}": one for n, one in enumerate(data) if n}
    static = relay.transform.DynamicToStatic()(tvm.IRModule.from_expr(relay.build_module.bind_params_by_name(mod["main"], known)))
    if known and name != "dyn.arange":
        assert "dyn." not in str(static) and "?" not in str(relay.transform.InferType()(static))
        np.testing.assert_allclose(Evaluator(to_graph(static))("main", data[0]), meaning(*data), 1e-5)


def test_a_graph_with_them_is_built_and_read_back() -> None:
    x, s, n = relay.var("x", shape=(2, 6)), relay.var("s", shape=(3,), dtype="int64"), relay.var("n", shape=(2,), dtype="int32")
    made = relay.nn.relu(relay.reshape(x, s)) + relay.const(1.0)
    mod = tvm.IRModule.from_expr(relay.Function((x, s, n), relay.Tuple([relay.sum(made, axis=0), relay.zeros(n, "int32")])))
    read = relay.fromtext(mod.astext())
    tvm.ir.assert_structural_equal(read, mod)
    run = relay.create_executor("vm", mod=read).evaluate()
    data = np.arange(12, dtype="float32").reshape(2, 6) - 4
    for shape in ((3, 2, 2), (0, -1, 3)):
        total, none = run(data, np.array(shape), np.array([1, 3], "int32"))
        expected = data.reshape([data.shape[0] if one == 0 else one for one in shape])
        np.testing.assert_allclose(total.numpy(), (np.maximum(expected, 0) + 1).sum(0))
        assert none.shape == (1, 3)
    with pytest.raises(ArgumentError):
        run(data, np.array([5, 1, 1]), np.array([1, 1], "int32"))


@settings(max_examples=share_of(25), deadline=None)
@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=3),
    st.lists(st.sampled_from([0, -1, -3, 1, 2, 3, 4, 6]), min_size=1, max_size=3),
)
def test_numbers_of_reshapes_are_read_alike(old: list[int], new: list[int]) -> None:
    x = relay.var("x", shape=old)
    try:
        static = relay.reshape(x, new).checked_type.concrete_shape
    except DeclarationError:
        return
    s = relay.var("s", shape=(len(new),), dtype="int64")
    made = to_graph(tvm.IRModule.from_expr(relay.Function((x, s), relay.reshape(x, s))))
    data = np.zeros(old, "float32")
    if len(static) == len(new):
        assert np.shape(Evaluator(made)("main", data, np.array(new))) == static


def test_values_of_unknown_extents_are_operands() -> None:
    mask = relay.var("mask", shape=(2, 3), dtype="bool")
    places = relay.argwhere(mask)
    made = relay.take(relay.const(np.arange(10, dtype="float32")), relay.sum(places * places, axis=1))
    assert str(made.checked_type) == "Tensor[(?), float32]"
    found = relay.create_executor("vm", mod=tvm.IRModule.from_expr(relay.Function((mask,), made))).evaluate()(np.eye(2, 3, dtype=bool))
    np.testing.assert_array_equal(found.numpy(), [0, 2])


def test_sums_of_segments() -> None:
    x, s = relay.var("x", shape=(relay.Any(), relay.Any())), relay.var("s", shape=(3,), dtype="int32")
    data, segments = np.arange(8, dtype="float32").reshape(4, 2), np.array([0, 2, 0], "int32")
    expected = np.stack([data[0] + data[2], np.zeros(2), data[1]])
    for count in (None, 3):
        run = relay.create_executor("vm", mod=tvm.IRModule.from_expr(relay.Function((x, s), relay.op.segment_sum(x, s, count)))).evaluate()
        np.testing.assert_allclose(run(data, segments).numpy(), expected)


REFUSED: dict[str, Callable[[Any, Any], Any]] = {
    "known extent": lambda x, s: relay.zeros(relay.var("open", shape=(relay.Any(),), dtype="int64"), "int32"),
    "axes= stands": lambda x, s: relay.strided_slice(x, s, s, axes=[0]),
    "constant": lambda x, s: relay.nn.pad(x, relay.var("w", shape=(2, 2), dtype="int64"), pad_mode="edge"),
    "size is constant": lambda x, s: relay.image.resize2d(x, s, coordinate_transformation_mode="tf_crop_and_resize"),
}


@pytest.mark.parametrize("said", REFUSED)
def test_refused(said: str) -> None:
    x, s = relay.var("x", shape=(2, 3)), relay.var("s", shape=(2,), dtype="int64")
    with pytest.raises(DeclarationError, match=said):
        _ = REFUSED[said](x, s).checked_type


def test_equal_types() -> None:
    one, other = (relay.TensorType((relay.Any(), 3), "int8") for _ in range(2))
    assert one == other and hash(one) == hash(other)
    assert one != relay.TensorType((2, 3), "int8") and one != relay.TensorType((relay.Any(), 3), "int16")
    n = relay.ShapeVar("n")
    assert relay.TensorType((n,)) == relay.TensorType((n,)) != relay.TensorType((relay.Any(),))


@pytest.mark.parametrize("transposed", [False, True])
def test_batches_of_an_open_number_in_panels(transposed: bool) -> None:
    """What is beside the columns of a panel needn't be a constant."""
    shape = (20, 32) if transposed else (32, 20)
    x, y = relay.var("x", shape=(5, 32, 16)), relay.var("y", shape=(relay.Any(), *shape))
    func = relay.Function((x, y), relay.nn.batch_matmul(x, y, transpose_a=True, transpose_b=transposed))
    a, b = (np.random.default_rng(n).random(size, "float32") for n, size in enumerate([(5, 32, 16), (5, *shape)]))
    found = relay.create_executor("vm", tvm.IRModule.from_expr(func)).evaluate()(a, b)
    np.testing.assert_allclose(found.numpy(), a.swapaxes(1, 2) @ (b.swapaxes(1, 2) if transposed else b), rtol=1e-4)


def test_places_in_axes_of_open_extents() -> None:
    row, boxes = relay.var("row", shape=(relay.Any(),)), relay.var("boxes", shape=(relay.Any(), relay.Any(), 6))
    wanted = relay.const(np.array([2.5, 0.0, 9.0], "float32"))
    several = relay.var("several", shape=(relay.Any(),))
    counted = relay.vision.get_valid_counts(boxes, 0.5, 0, 1)
    func = relay.Function((row, several, boxes), relay.Tuple([relay.searchsorted(row, wanted), relay.searchsorted(row, several), *counted]))
    data = np.linspace(-1, 1, 48, dtype="float32").reshape(2, 4, 6)
    arguments = np.array([1, 2, 3, 4], "float32"), np.array([2.0], "float32"), data
    found = relay.create_executor("vm", tvm.IRModule.from_expr(func)).evaluate()(*arguments)
    np.testing.assert_array_equal(found[0].numpy(), [2, 0, 4])
    np.testing.assert_array_equal(found[1].numpy(), [1])
    good = (data[:, :, 1] > 0.5) & (data[:, :, 0] >= 0)
    np.testing.assert_array_equal(found[2].numpy(), good.sum(1))
    np.testing.assert_array_equal(found[4].numpy()[1, : good[1].sum()], np.flatnonzero(good[1]))


def test_windows_of_signals_of_open_sizes() -> None:
    """A store between two stages was as large as int32 counts."""
    data, window = relay.var("data", shape=(relay.Any(), relay.Any())), relay.var("window", shape=(relay.Any(),), dtype="int32")
    func = relay.Function((data, window), relay.stft(data, 2, 1, 2, window))
    signal = np.arange(18, dtype="float32").reshape(2, 9) % 5
    found = relay.create_executor("vm", tvm.IRModule.from_expr(func)).evaluate()(signal, np.array([1, 3], "int32")).numpy()
    frames = np.stack([signal[:, :-1], 3 * signal[:, 1:]], -1)
    np.testing.assert_allclose(found[..., 0], np.fft.rfft(frames).real.swapaxes(1, 2), rtol=1e-5, atol=1e-5)
