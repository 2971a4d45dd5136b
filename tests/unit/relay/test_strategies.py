"""Strategies of operators: which implementation is chosen, and builds that follow it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import autotvm, relay, te, topi
from tensorexpr.errors import DeclarationError
from tensorexpr.relay.backend import te_compiler
from tensorexpr.relay.backend.graph_executor_codegen import GraphExecutorCodegen
from tensorexpr.relay.op import strategy
from tensorexpr.relay.testing import TempOpAttr, run_infer_type


def _dense(x: Any, w: Any, bias: Any, out_dtype: str) -> Any:
    k = te.reduce_axis((0, x.shape[1]), name="k")
    return te.compute((x.shape[0], w.shape[0]), lambda i, j: te.sum(x[i, k] * w[j, k], axis=k), name="own")


def _columns_first(outs: Any) -> Any:
    s = te.create_schedule([out.op for out in outs])
    s[outs[0]].reorder(*reversed(s[outs[0]].op.axis))
    return s


def _two(attrs: Any, inputs: Any, out_type: Any, target: Any) -> Any:
    made = relay.op.OpStrategy()
    scheduled = strategy.wrap_topi_schedule(_columns_first)
    made.add_implementation(strategy.wrap_compute_dense(topi.nn.dense), strategy.naive_schedule, name="plain", plevel=5)
    with te.SpecializedCondition(inputs[0].shape[0] >= 4):
        made.add_implementation(strategy.wrap_compute_dense(_dense), scheduled, name="columns", plevel=10)
    return made


@pytest.fixture
def registered() -> Iterator[None]:
    """The strategy of dense layers is `_two`."""
    with TempOpAttr("nn.dense", "FTVMStrategy", _two):
        yield


def _network(rows: int) -> Any:
    x, w = relay.var("x", shape=(rows, 8)), relay.var("w", shape=(6, 8))
    return relay.Function((x, w), relay.nn.relu(relay.nn.dense(x, w)))


def _selected(call: Any, shapes: Sequence[tuple[int, ...]]) -> Any:
    call = run_infer_type(call)
    inputs = [te.placeholder(shape) for shape in shapes]
    return te_compiler.select_implementation(call.op, call.attrs, inputs, call.checked_type, "llvm")


@pytest.mark.parametrize(("rows", "name"), [(4, "columns"), (2, "plain")])
def test_the_highest_level_that_holds_is_built(rows: int, name: str, registered: None) -> None:
    chosen, outs = _selected(_network(rows).body.args[0], [(rows, 8), (6, 8)])
    assert (chosen.name, tuple(outs[0].shape)) == (name, (rows, 6))
    lib = relay.build(_network(rows), "llvm")
    assert lib.module.origins[f"nn_dense_{name}"] == f"strategy: {name}"
    x, w = (np.random.default_rng(n).standard_normal(shape, "float32") for n, shape in enumerate([(rows, 8), (6, 8)]))
    found = relay.vm.VirtualMachine(lib.module, tvm.cpu()).invoke("main", x, w)
    np.testing.assert_allclose(found.numpy(), np.maximum(x @ w.T, 0), rtol=1e-5, atol=1e-6)


def test_what_is_said_of_open_sizes_is_left_to_the_rules(registered: None) -> None:
    x, w = relay.var("x", shape=(relay.Any(), 8)), relay.var("w", shape=(6, 8))
    assert set(relay.build(relay.Function((x, w), relay.nn.dense(x, w)), "llvm").module.origins.values()) == {"rule"}


def test_a_schedule_of_what_an_operator_means() -> None:
    seen: list[str] = []

    def schedule(attrs: Any, outs: Any, target: Any) -> Any:
        seen.append(outs[0].op.name)
        return te.create_schedule([out.op for out in outs])

    with TempOpAttr("nn.relu", "FTVMStrategy", None):
        relay.op.register_schedule("nn.relu", schedule)
        lib = relay.build(_network(4), "llvm")
    assert seen and lib.module.origins["nn_relu_nn_relu_registered"] == "strategy: nn.relu.registered"
    assert "nn_relu_nn_relu_registered" not in relay.build(_network(4), "llvm").module.origins  # the attribute is gone


@pytest.mark.parametrize("name", ["nn.softmax", "add", "concatenate", "nn.bias_add"])
def test_operators_without_strategies_have_one_implementation(name: str) -> None:
    x, y = relay.var("x", shape=(4, 8)), relay.var("y", shape=(8,))
    calls: dict[str, tuple[Any, list[tuple[int, ...]]]] = {
        "nn.softmax": (relay.nn.softmax(x), [(4, 8)]),
        "add": (relay.add(x, y), [(4, 8), (8,)]),
        "concatenate": (relay.concatenate([x, x], 1), [(4, 8), (4, 8)]),
        "nn.bias_add": (relay.nn.bias_add(x, y), [(4, 8), (8,)]),
    }
    call, shapes = calls[name]
    chosen, outs = _selected(call, shapes)
    assert chosen.name == f"{name}.generic" and tuple(outs[0].shape) == tuple(run_infer_type(call).checked_type.shape)


def test_a_log_chooses_among_implementations() -> None:
    @autotvm.register_topi_compute("test/strategy")
    def compute(cfg: Any, x: Any, w: Any, bias: Any, out_dtype: str) -> Any:
        return topi.nn.dense(x, w, bias, out_dtype)

    autotvm.register_topi_schedule("test/strategy", lambda cfg, outs: te.create_schedule([outs[0].op]))

    def both(attrs: Any, inputs: Any, out_type: Any, target: Any) -> Any:
        made = relay.op.OpStrategy()
        for function, name, level in ((compute, "tuned", 1), (topi.nn.dense, "plain", 9)):
            made.add_implementation(strategy.wrap_compute_dense(function), strategy.naive_schedule, name, level)
        return made

    call, shapes = _network(4).body.args[0], [(4, 8), (6, 8)]
    args = [*map(te.placeholder, shapes), None, "float32"]
    config = autotvm.ConfigEntity(0, None, {}, [])
    config.cost = 0.5
    task = autotvm.task.create("test/strategy", args, "llvm")
    record = autotvm.MeasureInput(target=tvm.target.Target("llvm"), task=task, config=config), autotvm.MeasureResult((0.5,), 0, 1, 0)
    with TempOpAttr("nn.dense", "FTVMStrategy", both):
        assert _selected(call, shapes)[0].name == "plain"
        with autotvm.apply_history_best([record]):
            assert _selected(call, shapes)[0].name == "tuned"


def test_what_is_no_strategy() -> None:
    for made, said in (("fast", r"returns a relay\.op\.OpStrategy, not str"), (relay.op.OpStrategy(), "has no implementation for")):
        with TempOpAttr("nn.relu", "FTVMStrategy", lambda *_, made=made: made), pytest.raises(DeclarationError, match=said):
            relay.build(_network(4), "llvm")
    with pytest.raises(DeclarationError, match=r"no operator 'nn\.nothing'"):
        te_compiler.get_valid_implementations("nn.nothing", {}, [], None, "llvm")


def test_functions_are_lowered_once_and_built() -> None:
    compiler = te_compiler.get()
    lowered = compiler.lower(_network(4), "llvm")
    assert compiler.lower(_network(4), "llvm").same_as(lowered) and not compiler.lower(_network(2), "llvm").same_as(lowered)
    assert any(isinstance(func, tvm.tir.PrimFunc) for func in lowered.funcs.functions.values())
    x, w, out = np.full((4, 8), 0.5, "float32"), np.ones((6, 8), "float32"), tvm.nd.empty((4, 6))
    compiler.jit(_network(4), "llvm")(tvm.nd.array(x), tvm.nd.array(w), out)
    np.testing.assert_array_equal(out.numpy(), np.full((4, 6), 4.0))
    mod = tvm.IRModule.from_expr(_network(4))
    graph, kernels, params = GraphExecutorCodegen(None, "llvm").codegen(mod, mod["main"])
    (module,) = kernels.values()
    assert all(name.name_hint in graph for name in module.get_global_vars()) and params == {}
