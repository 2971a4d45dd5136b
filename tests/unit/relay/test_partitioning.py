"""Parts of networks for code generators of others: however a network is cut, it computes the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import register_func, relay
from tensorexpr.contrib import graph_executor
from tensorexpr.errors import DeclarationError, TensorExprError
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relay import dataflow_pattern as dp
from tensorexpr.relay import transform
from tensorexpr.relay.dataflow_pattern import is_op, wildcard
from tensorexpr.tir.op_registry import Op
from tests.c_compiler import needs_compiler
from tests.effort import share_of

TARGETS = ("one", "two")
UNARY = {"tanh": relay.tanh, "nn.relu": relay.nn.relu, "exp": relay.exp, "sigmoid": relay.sigmoid, "sin": relay.sin}
BINARY = {"add": relay.add, "multiply": relay.multiply, "maximum": relay.maximum}
SHAPE = (2, 3)


def generate(func: Any) -> dict[str, Any]:
    """A code generator: it evaluates the function, with the oracle of graphs."""
    mod = tvm.IRModule.from_expr(relay.Function(func.params, func.body))
    graph = relay.Function.module_to_graph(mod)

    def run(*arrays: Any) -> None:
        count = len(func.params)
        made = Evaluator(graph)("main", *(one.numpy() for one in arrays[:count]))
        for result, value in zip(arrays[count:], made if isinstance(made, (tuple, list)) else [made], strict=True):
            result.copyfrom(np.asarray(value))

    return {func.attrs["global_symbol"]: run}


@pytest.fixture(autouse=True)
def generators() -> Iterator[None]:
    """Two generators, and operators that nobody computes."""
    for target in TARGETS:
        register_func(f"relay.ext.{target}", generate, override=True)
    yield
    for name in (*UNARY, *BINARY):
        for target in TARGETS:
            Op.of(name).reset_attr(f"target.{target}")


def supported(target: str, *names: str) -> None:
    """Let a generator compute operators."""
    for name in names:
        Op.of(name).set_attr(f"target.{target}", lambda call: True)


def partitioned(mod: Any, *targets: str, merges: bool = True) -> Any:
    """The passes in their order."""
    passes = [transform.AnnotateTarget(list(targets)), *([transform.MergeCompilerRegions()] if merges else []), transform.PartitionGraph()]
    for one in passes:
        mod = one(mod)
    return mod


def external(mod: Any) -> dict[str, Any]:
    """The functions for generators."""
    return {var.name_hint: func for var, func in mod.functions_items() if isinstance(func, relay.Function) and "Compiler" in func.attrs}


def ran(mod: Any, value: Any) -> list[Any]:
    """What a module returns, built and run twice."""
    net = graph_executor.GraphModule(relay.build(mod, "llvm -num-cores 1")["default"](tvm.cpu()))
    for _ in range(2):
        net.run(x=value)
    return [net.get_output(n).numpy() for n in range(net.get_num_outputs())]


Steps = list[tuple[str, int, int]]
steps = st.lists(st.tuples(st.sampled_from([*UNARY, *BINARY, "if"]), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=9)


def network(made: Steps, results: int) -> Any:
    """A network of steps: each an operator of values before it, or a choice of two values; the last few are returned."""
    x = relay.var("x", shape=SHAPE)
    values: list[Any] = [x, relay.const(np.full(SHAPE, 0.5, "float32"))]
    for name, left, right in made:
        a, b = values[left % len(values)], values[right % len(values)]
        if name == "if":
            yes, no = relay.exp(relay.tanh(values[-1])), relay.tanh(relay.add(a, b))
            values.append(relay.sigmoid(relay.If(relay.greater(relay.mean(a), relay.mean(b)), yes, no)))
            continue
        # Of a sigmoid, so that exponentials of exponentials stay finite.
        values.append(UNARY[name](relay.sigmoid(a)) if name in UNARY else relay.sigmoid(BINARY[name](a, b)))
    kept = values[-min(results, len(made)) :]
    return tvm.IRModule.from_expr(relay.Function((x,), kept[0] if len(kept) == 1 else relay.Tuple(kept)))


@settings(max_examples=share_of(12), deadline=None)
@given(steps, st.sets(st.sampled_from([*UNARY, *BINARY])), st.sets(st.sampled_from([*UNARY, *BINARY])), st.integers(1, 3), st.booleans())
# A tanh behind an external call; and a value between two of one target that another one needs.
@example([("exp", 0, 0), ("tanh", 2, 0)], {"exp", "sigmoid"}, set(), 1, True)
@example([("exp", 0, 0), ("tanh", 2, 0)], {"exp"}, set(), 1, True)
@example([("exp", 0, 0), ("tanh", 2, 0), ("add", 2, 3)], {"exp", "add"}, {"tanh"}, 2, True)
# What both branches use, and one of them uses behind another value.
@example([("exp", 0, 0), ("if", 2, 1), ("if", 3, 2)], {"exp", "tanh", "add"}, {"sigmoid"}, 1, True)
@example([("tanh", 0, 0), ("if", 2, 2)], {"tanh", "add", "exp"}, set(), 1, False)
def test_a_network_computes_the_same_however_it_is_cut(made: Steps, first: set[str], second: set[str], results: int, merges: bool) -> None:
    for name in (*UNARY, *BINARY):
        for target in TARGETS:
            Op.of(name).reset_attr(f"target.{target}")
    supported("one", *first)
    supported("two", *second)
    mod = network(made, results)
    value = np.random.default_rng(len(made)).uniform(-1, 1, SHAPE).astype("float32")
    wanted = Evaluator(relay.Function.module_to_graph(mod))("main", value)
    cut = partitioned(mod, "one", "two", merges=merges)
    assert "annotation." not in str(cut)
    for got, one in zip(ran(cut, value), wanted if isinstance(wanted, (tuple, list)) else [wanted], strict=True):
        np.testing.assert_allclose(got, one, rtol=1e-4, atol=1e-5)


def test_neighbours_of_one_target_are_one_function() -> None:
    supported("one", "tanh", "exp")
    x = relay.var("x", shape=SHAPE)
    mod = tvm.IRModule.from_expr(relay.Function((x,), relay.exp(relay.tanh(x))))
    (func,) = external(partitioned(mod, "one")).values()
    assert func.attrs["Compiler"] == "one" and func.attrs["global_symbol"] == "tvmgen_default_one_main_0"
    assert func.ret_type == relay.TensorType(SHAPE) and [param.name_hint for param in func.params] == ["one_0_i0"]
    assert len(external(partitioned(mod, "one", merges=False))) == 2
    assert list(external(transform.PartitionGraph("net")(transform.AnnotateTarget("one")(mod)))) == [
        "tvmgen_net_one_main_0", "tvmgen_net_one_main_1",
    ]  # fmt: skip


def test_what_stands_between_keeps_neighbours_apart() -> None:
    """exp needs the sine of what tanh computes: both in one function would need their own result."""
    supported("one", "tanh", "add")
    x = relay.var("x", shape=SHAPE)
    y = relay.tanh(x)
    between = tvm.IRModule.from_expr(relay.Function((x,), relay.add(y, relay.sin(y))))
    assert len(external(partitioned(between, "one"))) == 2
    beside = tvm.IRModule.from_expr(relay.Function((x,), relay.add(y, relay.sin(x))))
    (func,) = external(partitioned(beside, "one")).values()
    assert len(func.params) == 2


def test_a_branch_that_uses_a_value_stands_between() -> None:
    supported("one", "tanh", "add")
    x, y = relay.var("x", shape=(2,)), relay.tanh(relay.var("y", shape=(2,)))
    chosen = relay.If(relay.greater(relay.sum(x), relay.const(0.0)), relay.sin(y), x)
    func = relay.Function((x, y.args[0]), relay.add(y, chosen))
    cut = partitioned(tvm.IRModule.from_expr(func), "one")
    assert len(external(cut)) == 2 and "tanh" not in str(cut["main"])  # the branch uses the function's result
    value, other = np.ones(2, "float32"), np.full(2, 0.5, "float32")
    made = relay.create_executor("graph", cut, target="llvm -num-cores 1").evaluate()(value, other)
    np.testing.assert_allclose(made.numpy(), np.tanh(other) + np.sin(np.tanh(other)), rtol=1e-5)


def test_regions_in_branches() -> None:
    """A branch has functions of its own, which run where it is taken; what a network computes around it isn't in them."""
    supported("one", "tanh", "exp")
    x = relay.var("x", shape=SHAPE)
    around = relay.tanh(x)
    chosen = relay.If(relay.greater(relay.mean(x), relay.const(0.0)), relay.exp(relay.tanh(around)), relay.sin(around))
    cut = partitioned(tvm.IRModule.from_expr(relay.Function((x,), relay.add(around, chosen))), "one")
    assert sorted(str(func.body).count("exp") for func in external(cut).values()) == [0, 1]
    calls: list[str] = []

    def counting(func: Any) -> dict[str, Any]:
        (name, run), *_ = generate(func).items()

        def counted(*arrays: Any) -> None:
            calls.append(name)
            run(*arrays)

        return {name: counted}

    register_func("relay.ext.one", counting, override=True)
    for value, count in ((np.ones(SHAPE, "float32"), 2), (-np.ones(SHAPE, "float32"), 1)):
        calls.clear()
        (got,) = ran(cut, value)
        first = np.tanh(value)
        np.testing.assert_allclose(got, (np.exp(np.tanh(first)) if count == 2 else np.sin(first)) + first, rtol=1e-5)
        assert len(calls) == 2 * count  # it runs twice


def test_what_a_variable_is_bound_to_stands_between() -> None:
    """add needs what is bound to v, which needs tanh: the two are no one function."""
    supported("one", "tanh", "add")
    x, v = relay.var("x", shape=SHAPE), relay.var("v", shape=SHAPE)
    y = relay.tanh(x)
    cut = partitioned(tvm.IRModule.from_expr(relay.Function((x,), relay.Let(v, relay.sin(y), relay.add(y, v)))), "one")
    assert len(external(cut)) == 2
    value = np.ones(SHAPE, "float32")
    (got,) = ran(cut, value)
    np.testing.assert_allclose(got, np.tanh(value) + np.sin(np.tanh(value)), rtol=1e-5)


def test_composite_functions() -> None:
    x, w = relay.var("x", shape=(2, 4)), relay.const(np.eye(4, dtype="float32"))
    mod = tvm.IRModule.from_expr(relay.Function((x,), relay.sin(relay.nn.relu(relay.nn.dense(x, w)))))
    pattern = is_op("nn.relu")(is_op("nn.dense")(wildcard(), dp.is_constant()))
    table = [("one.never", pattern, lambda call: False), ("one.dense_relu", pattern)]
    merged = transform.MergeComposite(table)(mod)
    assert 'Composite="one.dense_relu"' in str(merged) and "one.never" not in str(merged)
    cut = partitioned(merged, "one")
    (func,) = external(cut).values()
    assert func.body.op.attrs["Composite"] == "one.dense_relu"
    value = np.random.default_rng(0).standard_normal((2, 4)).astype("float32")
    np.testing.assert_allclose(ran(cut, value)[0], np.sin(np.maximum(value, 0)), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(ran(merged, value)[0], np.sin(np.maximum(value, 0)), rtol=1e-4, atol=1e-6)
    with pytest.raises(DeclarationError, match="a pattern table has tuples"):
        transform.MergeComposite([pattern])


def test_constants_are_inside_or_parameters() -> None:
    supported("one", "add")
    x = relay.var("x", shape=SHAPE)
    mod = tvm.IRModule.from_expr(relay.Function((x,), relay.add(x, relay.const(np.full(SHAPE, 2.0, "float32")))))
    marked = transform.AnnotateTarget(["one"])(mod)
    for binds, count in ((True, 1), (False, 2)):
        cut = transform.PartitionGraph(bind_constants=binds)(marked)
        (func,) = external(cut).values()
        assert len(func.params) == count
        np.testing.assert_allclose(ran(cut, np.ones(SHAPE, "float32"))[0], 3.0)


def test_elements_of_what_a_generator_computes_are_its_too() -> None:
    Op.of("split").set_attr("target.one", lambda call: True)
    try:
        supported("one", "tanh")
        x = relay.var("x", shape=(4, 3))
        halves = relay.split(x, 2)
        mod = tvm.IRModule.from_expr(relay.Function((x,), relay.tanh(halves[1])))
        (func,) = external(partitioned(mod, "one")).values()
        assert "split" in str(func) and "tanh" in str(func)
        value = np.arange(12, dtype="float32").reshape(4, 3) / 12
        np.testing.assert_allclose(ran(partitioned(mod, "one"), value)[0], np.tanh(value[2:]), rtol=1e-5)
        apart = transform.AnnotateTarget(["one"], include_non_call_ops=False)(mod)
        assert len(external(transform.PartitionGraph()(transform.MergeCompilerRegions()(apart)))) == 2
    finally:
        Op.of("split").reset_attr("target.one")


def test_marks_by_hand() -> None:
    x = relay.var("x", shape=SHAPE)
    begun = relay.annotation.compiler_begin(x, "one")
    marked = relay.annotation.compiler_end(relay.exp(relay.tanh(begun)), "one")
    mod = tvm.IRModule.from_expr(relay.Function((x,), relay.sin(marked)))
    value = np.ones(SHAPE, "float32")
    np.testing.assert_allclose(ran(mod, value)[0], np.sin(np.exp(np.tanh(value))), rtol=1e-5)  # marks alone change nothing
    cut = transform.PartitionGraph()(mod)
    assert len(external(cut)) == 1
    np.testing.assert_allclose(ran(cut, value)[0], np.sin(np.exp(np.tanh(value))), rtol=1e-5)
    y = relay.tanh(begun)
    out = relay.annotation.compiler_begin(relay.sin(relay.annotation.compiler_end(y, "one")), "one")
    wrong = relay.annotation.compiler_end(relay.add(y, out), "one")
    with pytest.raises(DeclarationError, match="computed of its own results"):
        transform.PartitionGraph()(tvm.IRModule.from_expr(relay.Function((x,), wrong)))


def test_modules_and_libraries_of_generators(tmp_path: Any) -> None:
    """A generator that returns a compiled module: the library holds it, and runs without the generator."""
    supported("one", "tanh")

    def compiled(func: Any) -> Any:
        A = tvm.te.placeholder(SHAPE, name="A")
        B = tvm.te.compute(SHAPE, lambda i, j: tvm.te.tanh(A[i, j]), name="B")
        return tvm.build(tvm.te.create_schedule(B.op), [A, B], "llvm", name=str(func.attrs["global_symbol"]))

    register_func("relay.ext.one", compiled, override=True)
    x = relay.var("x", shape=SHAPE)
    cut = partitioned(tvm.IRModule.from_expr(relay.Function((x,), relay.sin(relay.tanh(x)))), "one")
    lib = relay.build(cut, "llvm -num-cores 1")
    lib.export_library(tmp_path / "net.so")
    net = graph_executor.GraphModule(tvm.runtime.load_module(str(tmp_path / "net.so"))["default"](tvm.cpu()))
    value = np.full(SHAPE, 0.5, "float32")
    net.run(x=value)
    np.testing.assert_allclose(net.get_output(0).numpy(), np.sin(np.tanh(value)), rtol=1e-5)
    np.testing.assert_allclose(
        relay.create_executor("vm", cut, target="llvm -num-cores 1").evaluate()(value).numpy(), np.sin(np.tanh(value)), rtol=1e-5
    )


def test_generators_that_are_missing_or_make_too_little(tmp_path: Any) -> None:
    supported("one", "tanh")
    x = relay.var("x", shape=SHAPE)
    mod = tvm.IRModule.from_expr(relay.Function((x,), relay.tanh(x)))
    Op.of("tanh").set_attr("target.nobody", lambda call: True)
    try:
        with pytest.raises(DeclarationError, match=r'no code generator \'nobody\' is registered.*register_func\("relay.ext.nobody", f\)'):
            relay.build(partitioned(mod, "nobody"), "llvm")
    finally:
        Op.of("tanh").reset_attr("target.nobody")
    cut = partitioned(mod, "one")
    with pytest.raises(TensorExprError, match="Python functions of a code generator, which no library holds"):
        relay.build(cut, "llvm").export_library(tmp_path / "net.so")
    register_func("relay.ext.one", lambda func: {}, override=True)
    with pytest.raises(DeclarationError, match="'one' made no function 'tvmgen_default_one_main_0'"):
        relay.build(cut, "llvm")


def _in_place(func: Any, symbol: str) -> Any:
    return func.with_attr("Primitive", 1).with_attr("Compiler", "ccompiler").with_attr("global_symbol", symbol)


@needs_compiler
def test_functions_of_c(tmp_path: Path) -> None:
    """The generator "ccompiler": functions that stand where they are called, with constants and several results, also in a library."""
    x, a, b = relay.var("x", shape=SHAPE), relay.var("a", shape=SHAPE), relay.var("b", shape=SHAPE)
    weights = np.arange(6, dtype="float32").reshape(SHAPE)
    one = _in_place(relay.Function((a,), relay.Tuple([a * relay.const(weights) + relay.const(2.0), relay.sum(a, axis=1)])), "products")
    two = _in_place(relay.Function((b,), relay.nn.softmax(b)), "rows")
    pair = relay.TupleWrapper(relay.Call(one, [x]), 2)
    mod = tvm.IRModule.from_expr(relay.Function((x,), relay.Tuple([relay.Call(two, [pair[0]]), pair[1]])))
    value = np.linspace(-1, 1, 6, dtype="float32").reshape(SHAPE)
    built = relay.build(mod, ["llvm", {"kind": "ccompiler", "header": "// of ours"}])
    assert sorted(name for one in built.module.external for name in one.function_names) == ["products", "rows"]
    assert all("// of ours" in one.get_source() for one in built.module.external)
    built.export_library(tmp_path / "net.so")
    for lib in built, tvm.runtime.load_module(tmp_path / "net.so"):
        net = graph_executor.GraphModule(lib["default"](tvm.cpu()))
        net.run(x=value)
        rows = np.exp(value * weights + 2)
        np.testing.assert_allclose(net.get_output(0).numpy(), rows / rows.sum(1, keepdims=True), rtol=1e-6)
        np.testing.assert_allclose(net.get_output(1).numpy(), value.sum(1), rtol=1e-6, atol=1e-7)


@needs_compiler
def test_what_c_refuses() -> None:
    x, a = relay.var("x", shape=SHAPE), relay.var("a", shape=SHAPE)
    func = _in_place(relay.Function((a,), relay.tanh(a)), "one")
    mod = tvm.IRModule.from_expr(relay.Function((x,), relay.Call(func, [x])))
    with pytest.raises(TensorExprError, match="no C"):
        net = graph_executor.GraphModule(relay.build(mod, ["llvm", {"kind": "ccompiler", "header": "no C"}])["default"](tvm.cpu()))
        net.run(x=np.zeros(SHAPE, "float32"))
    other = _in_place(relay.Function((a,), relay.exp(a)), "one")
    mod = tvm.IRModule.from_expr(relay.Function((x,), relay.Call(other, [relay.Call(func, [x])])))
    with pytest.raises(DeclarationError, match="two functions have the \"global_symbol\" 'one'"):
        relay.build(mod, "llvm")
    unknown = relay.var("a", shape=(relay.Any(), 3))
    func = _in_place(relay.Function((unknown,), relay.tanh(unknown)), "one")
    y = relay.var("x", shape=(relay.Any(), 3))
    with pytest.raises(DeclarationError, match="one takes and returns tensors of known shapes, not"):
        relay.build(tvm.IRModule.from_expr(relay.Function((y,), relay.Call(func, [y]))), "llvm")


def test_functions_in_place_become_functions_of_the_module() -> None:
    """Of one generator, or of all."""
    x, a = relay.var("x", shape=SHAPE), relay.var("a", shape=SHAPE)
    func = _in_place(relay.Function((a,), relay.tanh(a)), "one")
    other = func.with_attr("Compiler", "two").with_attr("global_symbol", "two")
    mod = tvm.IRModule.from_expr(relay.Function((x,), relay.Call(other, [relay.Call(func, [relay.Call(func, [x])])])))
    for name, found in (("two", ["main", "two"]), ("", ["main", "one", "two"]), ("nobody", ["main"])):
        made = transform.OutlineCompilerFunctionsWithExistingGlobalSymbols(name)(mod)
        assert sorted(var.name_hint for var in made.get_global_vars()) == found
    assert isinstance(transform.ToANormalFormExpr(mod["main"].body), relay.Let)
