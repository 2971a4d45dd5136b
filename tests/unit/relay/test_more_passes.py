"""Passes for convolutions between blocks, arguments, sizes, lifetimes, zeros and ones, and what nothing uses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.errors import ArgumentError, DeclarationError
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relay import transform
from tensorexpr.relay.analysis import list_op_freqs
from tensorexpr.relay.to_graph import to_graph
from tests.effort import share_of


def computed(mod: Any, *args: Any) -> Any:
    return Evaluator(to_graph(mod))("main", *args)


def atrous(layout: str, block: int, paddings: Any, crops: Any, size: int, pad_value: float = 0.0, padding: Any = (0, 0)) -> Any:
    shape = {"N": 1, "C": 2, "H": size, "W": size}
    x = relay.var("x", shape=[shape[one] for one in layout])
    kernel = "HWIO" if layout == "NHWC" else "OIHW"
    extents = {"H": 3, "W": 2, "I": 2, "O": 3}
    w = relay.const(np.random.default_rng(1).standard_normal([extents[one] for one in kernel]).astype("float32"))
    blocks = [block, block] if layout == "NHWC" else [1, block, block]
    sides = [([0, 0], [0, 0])] * (layout == "NCHW") + list(zip(paddings, crops, strict=True))
    y = relay.nn.space_to_batch_nd(x, blocks, [one for one, _ in sides], pad_value)
    y = relay.nn.conv2d(y, w, kernel_size=(3, 2), channels=3, padding=padding, data_layout=layout, kernel_layout=kernel)
    return tvm.IRModule.from_expr(relay.Function((x,), relay.nn.batch_to_space_nd(y, blocks, [one for _, one in sides])))


@settings(max_examples=share_of(15), deadline=None)
@given(
    layout=st.sampled_from(["NHWC", "NCHW"]), block=st.integers(2, 3), before=st.tuples(*[st.integers(0, 5)] * 2),
    crops=st.tuples(*[st.integers(0, 3)] * 4), own=st.sampled_from([(0, 0), (1, 0), (1, 0, 0, 2)]),
)  # fmt: skip
def test_convolutions_between_blocks_have_dilation(layout: str, block: int, before: Any, crops: Any, own: Any) -> None:
    size = 8
    paddings = [(b, -(size + b) % block + 2 * block) for b in before]
    mod = atrous(layout, block, paddings, [crops[:2], crops[2:]], size, padding=own)
    made = transform.FlattenAtrousConv()(mod)
    x = np.random.default_rng(0).standard_normal([int(n) for n in mod["main"].params[0].checked_type.shape]).astype("float32")
    np.testing.assert_allclose(computed(made, x), computed(mod, x), rtol=1e-5, atol=1e-5)
    wide = all(
        pad >= crop for pads, crop in zip(paddings, (crops[:2], crops[2:]), strict=True) for pad, crop in zip(pads, crop, strict=True)
    )
    if wide:
        assert list_op_freqs(made) == {"nn.conv2d": 1}


def test_convolutions_between_blocks_that_stay() -> None:
    for mod in (
        atrous("NHWC", 2, [(1, 1)] * 2, [(2, 0), (0, 0)], 8),  # cut by more than was added
        atrous("NHWC", 2, [(2, 2)] * 2, [(0, 0)] * 2, 8, pad_value=1.0),  # no zeros around it
    ):
        assert transform.FlattenAtrousConv()(mod)["main"] is mod["main"]


def test_builds_flatten_them() -> None:
    mod = atrous("NHWC", 2, [(2, 2)] * 2, [(0, 0)] * 2, 8)
    lib = relay.build(mod, "llvm")
    assert "space_to_batch" not in lib.get_graph_json()


@pytest.mark.parametrize("most, count", [(0, 1), (12, 1), (11, 1), (10, 2), (5, 3), (3, 9)])
def test_concatenations_of_few_arguments(most: int, count: int) -> None:
    parts = [relay.var(f"x{n}", shape=(n + 1, 2)) for n in range(10)]
    mod = tvm.IRModule.from_expr(relay.Function(parts, relay.concatenate(relay.Tuple(parts), 0)))  # type: ignore[arg-type]
    made = transform.SplitArgs(most)(mod)
    assert list_op_freqs(made)["concatenate"] == count
    arrays = [np.full((n + 1, 2), n, "float32") for n in range(10)]
    np.testing.assert_array_equal(computed(made, *arrays), np.concatenate(arrays))
    with pytest.raises(DeclarationError, match="two operands and the result of concatenate are more than 2 arguments"):
        transform.SplitArgs(2)(mod)


@pytest.mark.parametrize("auto_pad", [False, True])
def test_sizes_of_an_axis(auto_pad: bool) -> None:
    x, w = relay.var("x", shape=(4, 3)), relay.var("w", shape=(3,))
    mod = tvm.IRModule.from_expr(relay.Function((x, w), relay.Tuple([relay.nn.relu(x - w), x + relay.const(1.0)])))
    made = transform.FlexibleShapeDispatch(buckets=[4, 2], auto_pad=auto_pad)(mod)
    assert {var.name_hint for var in made.get_global_vars()} == {"main", "main_2", "main_4", "main_any"}
    rng = np.random.default_rng(0)
    weights = rng.standard_normal(3).astype("float32")
    machine = tvm.runtime.vm.VirtualMachine(relay.vm.compile(made, "llvm"), tvm.cpu())
    for rows in (1, 2, 3, 4, 6):
        data = rng.standard_normal((rows, 3)).astype("float32")
        first, second = machine.invoke("main", data, weights)
        np.testing.assert_allclose(first.numpy(), np.maximum(data - weights, 0))
        np.testing.assert_allclose(second.numpy(), data + 1)


def test_sizes_that_there_are_not() -> None:
    x = relay.var("x", shape=(4, 3))
    mod = tvm.IRModule.from_expr(relay.Function((x,), relay.sum(x)))
    with pytest.raises(ArgumentError, match="buckets are sizes of an axis, at least one and each at least 1"):
        transform.FlexibleShapeDispatch([])
    with pytest.raises(DeclarationError, match="float32 has no axis 0 to be"):
        transform.FlexibleShapeDispatch([2])(mod)
    with pytest.raises(DeclarationError, match=r'input_indices \[1\]; "main" has 1 parameters'):
        transform.FlexibleShapeDispatch([2], input_indices=[1], affects_output=False)(mod)
    made = transform.FlexibleShapeDispatch([2], affects_output=False)(mod)
    np.testing.assert_allclose(computed(made, np.ones((2, 3), "float32")), 6)


def test_another_batch() -> None:
    mod, params = relay.testing.mlp.get_workload(1)
    made = transform.ChangeBatch({"data": 0}, 5)(mod)
    assert made["main"].checked_type.ret_type == relay.TensorType((5, 10))
    assert [param.name_hint for param in made["main"].params] == [param.name_hint for param in mod["main"].params]
    with pytest.raises(DeclarationError, match="has no axis 7 to be of another size"):
        transform.ChangeBatch({mod["main"].params[0]: 7})(mod)
    assert params


def test_calls_between_functions() -> None:
    mod = relay.fromtext("""#[version = "0.0.5"]
    def @f(%x: float32) -> float32 { if (%x > 0f) { @f(%x - 1f) } else { %x } }
    def @g(%x: float32) -> float32 { @f(%x) + @f(%x) }
    def @main(%x: float32) -> float32 { @g(@f(%x)) }
    """)
    graph = relay.analysis.CallGraph(mod)
    assert [graph.ref_count(name) for name in ("f", "g", "main")] == [4, 1, 0]
    assert [graph.global_call_count(relay.GlobalVar(name)) for name in ("f", "g", "main")] == [1, 2, 2]
    assert [graph.is_recursive(name) for name in ("f", "g", "main")] == [True, False, False]
    assert graph.print_var("g") == "Call graph node: g, #refs = 1\n  call site 0: 2 x f"
    with pytest.raises(DeclarationError, match="the module has no function 'h'; it has f, g, main"):
        graph.ref_count("h")


def test_what_code_generators_read_and_write() -> None:
    a, b = relay.var("a", shape=(2,)), relay.var("b", shape=(2,))
    mod: Any = tvm.IRModule()
    mod["both"] = relay.Function((a, b), relay.Tuple([a + b, a - b])).with_attr("Compiler", "mine")
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    made = relay.Call(mod.get_global_var("both"), [relay.exp(x), y])
    mod["main"] = relay.Function((x, y), relay.TupleGetItem(made, 0) * relay.TupleGetItem(made, 1))
    one, other = np.array([0.0, 1.0], "float32"), np.array([2.0, 3.0], "float32")
    found = relay.analysis.get_calibration_data(mod, {"x": one, "y": tvm.nd.array(other)})
    ((var, arrays),) = found.items()
    assert var.name_hint == "both"
    for got, expected in zip(
        arrays["inputs"] + arrays["outputs"], (np.exp(one), other, np.exp(one) + other, np.exp(one) - other), strict=True
    ):
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-6)
    with pytest.raises(DeclarationError, match="no array for y; given are x"):
        relay.analysis.get_calibration_data(mod, {"x": one})


def test_where_values_end() -> None:
    mod = relay.fromtext("""#[version = "0.0.5"]
    def @main(%x: float32, %c: bool) -> float32 {
      let %y = %x + %x;
      let %f = fn (%a: float32) -> float32 { let %b = %a * %y; let %d = %b + %b; %d };
      let %z = if (%c) { let %u = %x * %x; let %v = %u + 1f; %v } else { %x };
      let %w = %f(%z);
      %w
    }
    """)
    made = transform.ManifestLifetimes()(mod)
    lines = [line.strip() for line in str(made).splitlines()]
    after = [(lines[n - 1].split(" = ")[0], line.split("kill(")[1][:2]) for n, line in enumerate(lines) if "kill" in line]
    # y is held by f; x ends in the branch that goes on behind it, and is what the other one returns.
    assert after == [
        ("let %b", "%a"),
        ("let %d", "%b"),
        ("let %u", "%x"),
        ("let %v", "%u"),
        ("};", "%c"),
        ("let %w", "%f"),
        ("let %_1", "%z"),
    ]
    np.testing.assert_allclose(computed(made, np.float32(3), np.array(True)), 2 * 6 * 10)


def test_zeros_and_ones_of_derivatives() -> None:
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(3,))
    for value, left in (
        (relay.zeros((2, 3), "float32") + x, {}), (x - relay.zeros_like(x), {}), (relay.ones_like(x) * (x + y), {"add": 1}),
        (x * relay.zeros_like(x), {"zeros_like": 1}), (relay.zeros((2, 3), "float32") + y, {"zeros": 1, "add": 1}),
        (relay.zeros_like(x) - x, {"zeros_like": 1, "subtract": 1}), (relay.const(1.0) * x, {}),
    ):  # fmt: skip
        mod = tvm.IRModule.from_expr(relay.Function((x, y), value))
        made = transform.LazyGradientInit()(mod)
        assert list_op_freqs(made) == left
        arrays = np.arange(6, dtype="float32").reshape(2, 3), np.ones(3, "float32")
        np.testing.assert_array_equal(computed(made, *arrays), computed(mod, *arrays))


def test_values_that_nothing_uses_go_in_one_walk() -> None:
    x = relay.var("x", shape=(2,))
    body, steps = x, []
    for n in range(3000):
        steps.append(relay.Var(f"v{n}"))
    body = steps[-1]
    for n in reversed(range(3000)):
        body = relay.Let(steps[n], relay.add(steps[n - 1] if n else x, x), relay.Let(relay.Var(f"u{n}"), relay.exp(x), body))  # type: ignore[assignment]
    made = transform.DeadCodeElimination()(tvm.IRModule.from_expr(relay.Function((x,), body)))
    assert list_op_freqs(made) == {"add": 3000}


def test_values_stay_in_front_of_functions_that_use_them() -> None:
    mod = relay.fromtext("""#[version = "0.0.5"]
    def @main(%x: float32) -> (float32, float32) {
      let %e = exp(%x);
      let %f = fn (%y: float32) -> float32 { let %z = %y * %y; %z + %e };
      (%f(%x), %f(%e))
    }
    """)
    made = transform.DeadCodeElimination(inline_once=True)(mod)
    func = next(line for line in str(made).splitlines() if "fn (" in line)
    assert str(made).index("exp(") < str(made).index(func)
    assert str(made).count("let %z") == 0


def test_shared_values_are_compared_once() -> None:
    def network() -> Any:
        x = relay.var("x", shape=(2,))
        y = x
        for _ in range(200):
            y = relay.add(y, y)
        return relay.Function((x,), y)

    one, other = network(), network()
    assert tvm.ir.structural_equal(one, other)
    assert tvm.ir.structural_hash(one) == tvm.ir.structural_hash(other)
    assert not tvm.ir.structural_equal(one, relay.Function(other.params, relay.add(other.body, other.params[0])))
