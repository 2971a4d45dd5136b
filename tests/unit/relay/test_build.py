"""Networks by Relay's names: built, run, saved; and what doesn't fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relax, relay
from tensorexpr.contrib import graph_executor
from tensorexpr.contrib.debugger import debug_executor
from tensorexpr.errors import ArgumentError, DeclarationError, MissingFunctionError, RecordError, TensorExprError, TypeMismatchError
from tensorexpr.relay.to_graph import to_graph

X = np.linspace(-1, 1, 12).astype("float32").reshape(3, 4)
W = np.linspace(-2, 1, 8).astype("float32").reshape(2, 4)
EXPECTED = np.maximum(X @ W.T, 0)


def network() -> relay.Function:
    x, w = relay.var("x", shape=(3, 4)), relay.var("w", shape=(2, 4))
    return relay.Function((x, w), relay.nn.relu(relay.nn.dense(x, w)))


@pytest.fixture(scope="module")
def built() -> Any:
    with tvm.transform.PassContext(opt_level=3):
        return relay.build(tvm.IRModule.from_expr(network()), target="llvm", params={"w": W})


def test_the_graph_executor_runs_a_network(built: Any) -> None:
    module = graph_executor.GraphModule(built["default"](tvm.cpu()))
    assert (module.get_num_inputs(), module.get_num_outputs(), module.get_input_index("x"), module.get_input_index("w")) == (1, 1, 0, -1)
    assert module.get_input_info() == ({"x": (3, 4)}, {"x": "float32"})
    assert module.get_output_info() == ({"output_0": (3, 2)}, {"output_0": "float32"})
    assert module.get_output_index("output_0") == 0
    module.run()  # inputs that weren't set are zeros
    np.testing.assert_array_equal(module.get_output(0).numpy(), np.zeros((3, 2)))
    module.set_input("x", tvm.nd.array(X))
    module.set_input(**built.get_params())
    module.run()
    np.testing.assert_allclose(module.get_output(0).numpy(), EXPECTED, 1e-6)
    module.run(x=X + 1)
    np.testing.assert_allclose(module.get_output(0, tvm.nd.empty((3, 2))).numpy(), np.maximum((X + 1) @ W.T, 0), 1e-6)
    assert module.benchmark(tvm.cpu(), repeat=2, number=1).mean > 0


def test_graph_library_and_parameters(built: Any, tmp_path: Path) -> None:
    graph, lib, params = built
    nodes = json.loads(graph)["nodes"]
    assert nodes[0]["name"] == "x" and any("relu" in node["name"] for node in nodes)
    module = graph_executor.create(graph, lib, tvm.cpu())
    module.run(x=X)
    np.testing.assert_allclose(module.get_output(0).numpy(), EXPECTED, 1e-6)
    built.export_library(str(tmp_path / "net.so"))
    again = graph_executor.GraphModule(tvm.runtime.load_module(str(tmp_path / "net.so"))["default"](tvm.cpu()))
    again.run(x=X)
    np.testing.assert_array_equal(again.get_output(0).numpy(), module.get_output(0).numpy())
    saved = relay.save_param_dict({"w": tvm.nd.array(W), **params})
    np.testing.assert_array_equal(relay.load_param_dict(saved)["w"].numpy(), W)


def test_the_debug_executor_names_each_call(built: Any) -> None:
    module = debug_executor.GraphModuleDebug(built["default"](tvm.cpu()), [tvm.cpu()], built.get_graph_json())
    assert "dense" in str(module.profile(x=X)) or "matmul" in str(module.profile(x=X))


@pytest.mark.parametrize("kind", ["graph", "vm", "debug"])
def test_executors_evaluate(kind: str) -> None:
    call = relay.create_executor(kind, tvm.IRModule.from_expr(network()), tvm.cpu(), "llvm").evaluate()
    np.testing.assert_allclose(call(X, w=W).numpy(), EXPECTED, 1e-6)
    with pytest.raises(ArgumentError, match=r"main takes x, w; given are a value"):
        call(X)
    with pytest.raises(ArgumentError, match=r"main takes x, w; given are a value, weight=..."):
        call(X, weight=W)


def test_numbers_are_arguments() -> None:
    s = relay.var("s", shape=())
    call = relay.create_executor("graph", relay.Function((s,), s + relay.const(0.5))).evaluate()
    assert [float(call(one).numpy()) for one in (2, 0.25, np.float32(1))] == [2.5, 0.75, 1.5]


def test_inputs_are_copies_unless_they_are_asked_not_to_be(built: Any) -> None:
    module = graph_executor.GraphModule(built["default"](tvm.cpu()))
    given = tvm.nd.array(X)
    module.set_input("x", given)
    given.copyfrom(X + 1)
    module.run()
    np.testing.assert_allclose(module.get_output(0).numpy(), EXPECTED, 1e-6)
    module.set_input_zero_copy("x", given)
    given.copyfrom(X)
    module.run()
    np.testing.assert_allclose(module.get_output(0).numpy(), EXPECTED, 1e-6)
    module.get_input("x").copyfrom(X + 1)  # the input itself
    module.run()
    np.testing.assert_allclose(module.get_output(0).numpy(), np.maximum((X + 1) @ W.T, 0), 1e-6)


def test_control_flow_runs() -> None:
    n, x = relay.var("n", shape=(), dtype="int32"), relay.var("x", shape=(2,))
    loop = relay.var("loop", relay.FuncType((n.type_annotation, x.type_annotation), x.type_annotation))
    step = relay.If(relay.less(n, relay.const(1)), x, relay.Call(loop, (n - relay.const(1), x * relay.const(2.0))))
    k, y = relay.var("k", shape=(), dtype="int32"), relay.var("y", shape=(2,))
    body = relay.Let(loop, relay.Function((n, x), step, relay.TensorType((2,))), relay.Call(loop, (k, y)))
    call = relay.create_executor("vm", tvm.IRModule.from_expr(relay.Function((k, y), body)), target="llvm").evaluate()
    np.testing.assert_array_equal(call(np.int32(5), np.ones(2, "float32")).numpy(), [32, 32])


def test_what_does_not_fit() -> None:
    x = relay.var("x", shape=(3, 4))
    with pytest.raises(DeclarationError, match=r"relay.nn.dense"):
        _ = relay.nn.dense(x, relay.const(np.ones((2, 5), "float32"))).checked_type
    with pytest.raises(TypeMismatchError, match=r"relay.add: rhs is an expression, not 1; relay.const\(1\) makes one"):
        relay.add(x, 1)
    with pytest.raises(TypeMismatchError, match=r"relay.nn.dense: an operand has too few axes \(data: .*, weight: .*\(\), "):
        relay.nn.dense(x, relay.var("w", shape=())).struct_info  # noqa: B018  what is known is asked for here
    with pytest.raises(TypeMismatchError, match=r"relay.nn.relu: too many positional arguments; it is nn.relu"):
        relay.nn.relu(x, x)
    with pytest.raises(DeclarationError, match=r"no operator 'nn.magic'"):
        _ = relay.Call(relay.op.Op.of("nn.magic"), (x,)).checked_type
    with pytest.raises(DeclarationError, match="variable %y is used, and nothing binds it"):
        relay.build(relay.Function((x,), x + relay.var("y", shape=(4,))), "llvm")
    with pytest.raises(DeclarationError, match='a network is a function "main"; the module has other'):
        relay.build(tvm.IRModule.from_expr(network().with_attr("global_symbol", "other")), "llvm")
    with pytest.raises(DeclarationError, match='Executor "fast" is not defined; there are graph, aot'):
        relay.build(network(), "llvm", executor="fast")
    with pytest.raises(DeclarationError, match="state a type or a shape, not both"):
        relay.var("x", "float32", shape=(1,))


def test_what_does_not_fit_a_built_network(built: Any) -> None:
    module = graph_executor.GraphModule(built["default"](tvm.cpu()))
    with pytest.raises(ArgumentError, match="no input 'y'; the network has x"):
        module.set_input("y", X)
    with pytest.raises(ArgumentError, match=r"input 'x' is .*, and the value has shape \(4, 3\)"):
        module.set_input("x", X.T)
    with pytest.raises(ArgumentError, match=r"input 'x' is .*, and the value is of <U3"):
        module.set_input("x", "abc")
    with pytest.raises(ArgumentError, match="get_output: the network didn't run yet"):
        module.get_output(0)
    with pytest.raises(MissingFunctionError, match="no 'other' in a built network; it is called 'default'"):
        built["other"]
    with pytest.raises(ArgumentError, match="the graph is no JSON"):
        graph_executor.create("{", built.get_lib(), tvm.cpu())


def test_scopes_of_statements_and_the_virtual_machine() -> None:
    x = relay.var("x", shape=())
    sb = relay.ScopeBuilder()
    with sb.if_scope(sb.let(("positive", relay.TensorType((), "bool")), relay.less(relay.const(0.0), x))):
        twice = sb.let("twice", relay.add(x, x))
        sb.ret(twice)
    with pytest.raises(DeclarationError, match="ret"), sb.else_scope():
        sb.let("y", x)
    with sb.else_scope():
        sb.ret(relay.negative(x))
    with pytest.raises(DeclarationError, match="else_scope follows an if_scope"), sb.else_scope():
        pass
    func = relay.Function((x,), sb.get())
    assert str(func).count("let") == 2
    machine = relay.vm.VirtualMachine(relay.vm.compile(tvm.IRModule.from_expr(func), "llvm"), tvm.cpu())
    assert [float(machine["main"](np.array(one, "float32")).numpy()) for one in (3, -2)] == [6, 2]


def test_types_of_chains_that_are_deeper_than_the_stack() -> None:
    value: Any = relay.var("x", shape=(4,))
    for _ in range(1500):
        value = relay.add(value, relay.nn.relu(value))
    assert value.checked_type == relay.TensorType((4,))


def test_operators_of_a_network_are_fused() -> None:
    x, w = relay.var("x", shape=(4, 8)), relay.const(np.ones((16, 8), "float32"))
    func = relay.Function((x,), relay.tanh(relay.nn.relu(relay.nn.dense(x, w))))
    made = relax.build(to_graph(func), "llvm", upto=3)
    assert sum(isinstance(one, tvm.tir.PrimFunc) for _, one in made.functions_items()) == 1


def test_what_an_executable_is_made_of() -> None:
    x, w = relay.var("x", shape=(2, 4)), relay.var("w", shape=(3, 4))
    mod = tvm.IRModule.from_expr(relay.Function((x, w), relay.nn.relu(relay.nn.dense(x, w))))
    built = relay.build(mod, "llvm -num-cores 1", params={"w": np.ones((3, 4), "float32")}).module
    assert built.globals == ["main"] and built.get_function_params("main") == ["x"]
    assert built.primitives == list(built.origins) and built.lib is built.kernels and built.mod is built
    assert sum(one.numpy().size for one in built.constants) >= 12 and len(built.constants) == 1
    with pytest.raises(MissingFunctionError, match="no function 'other' of a graph; there are main"):
        built.get_function_params("other")


def test_an_archive_of_a_network_is_loaded(built: Any, tmp_path: Path) -> None:
    built.export_library(tmp_path / "net.tar")
    (tmp_path / "net.json").write_text(built.get_graph_json())
    loaded = tvm.runtime.load_module(tmp_path / "net.tar")
    module = graph_executor.create((tmp_path / "net.json").read_text(), loaded, tvm.cpu())
    module.run(x=X)
    np.testing.assert_allclose(module.get_output(0).numpy(), EXPECTED, 1e-6)
    (tmp_path / "cut.tar").write_bytes((tmp_path / "net.tar").read_bytes()[:2000])
    with pytest.raises(TensorExprError, match=r"cut\.tar"):
        tvm.runtime.load_module(tmp_path / "cut.tar")


def test_the_virtual_machine_by_the_names_of_relay(built: Any) -> None:
    machine = tvm.runtime.vm.VirtualMachine(built.lib, tvm.cpu())
    np.testing.assert_allclose(machine.run(X).numpy(), EXPECTED, 1e-6)
    machine.set_input("main", x=X + 1)
    np.testing.assert_allclose(machine.invoke("main").numpy(), np.maximum((X + 1) @ W.T, 0), 1e-6)
    assert len(machine.get_outputs()) == 1 and machine.get_outputs()[0] is machine.get_outputs("main")[0]
    machine.set_input("main", X)
    assert machine.time_evaluator("invoke_stateful", tvm.cpu(), number=2)("main").mean > 0
    np.testing.assert_allclose(machine.get_outputs()[0].numpy(), EXPECTED, 1e-6)
    with pytest.raises(ArgumentError, match="takes 1 arguments"):
        machine.run(X, X)


def test_options_of_executors() -> None:
    kind = relay.backend.Executor
    assert kind("aot", {"interface-api": "c"})["interface-api"] == "c" and not kind("graph")["link-params"]
    assert "unpacked-api" in kind.list_registered_options("aot") and "interface-api" not in kind("aot")
    for name, options, said in (("aot", {"speed": 1}, '"speed" is not available'), ("graph", {"link-params": "yes"}, "should have type")):
        with pytest.raises(DeclarationError, match=said):
            kind(name, options)
    assert relay.backend.Runtime("crt", {"system-lib": True})["system-lib"]


def test_modules_and_expressions_are_json() -> None:
    x, n = relay.var("x", shape=(2, 3)), relay.var("n", shape=(relay.Any(), 3))
    func = relay.Function((x, n), relay.nn.relu(x) + relay.const(np.ones((2, 3), "float32")))
    nodes: list[Any] = [tvm.IRModule.from_expr(func), func, relay.sum(n, axis=1)]
    for node in nodes:
        read = tvm.ir.load_json(tvm.ir.save_json(node))
        tvm.ir.assert_structural_equal(read, node, map_free_vars=True)
    for text in ('{"relay": "type", "text": ""}', '{"relay"'):
        with pytest.raises(RecordError):
            tvm.ir.load_json(text)
    with pytest.raises(RecordError, match="by itself"):
        tvm.ir.save_json([func])


def test_an_executable_is_saved_in_two_parts(tmp_path: Path) -> None:
    x = relay.var("x", shape=(2, 3))
    mod = tvm.IRModule.from_expr(relay.Function((x,), relay.nn.relu(x)))
    made = relay.vm.compile(mod, "llvm")
    code, library = made.save()
    library.export_library(tmp_path / "net.so")
    made.mod.export_library(tmp_path / "other.so")
    data = np.arange(6, dtype="float32").reshape(2, 3) - 3
    loaded = tvm.runtime.vm.Executable.load_exec(code, tvm.runtime.load_module(str(tmp_path / "net.so")))
    for one in (loaded, tvm.runtime.load_module(str(tmp_path / "other.so")), made.mod):
        np.testing.assert_array_equal(tvm.runtime.vm.VirtualMachine(one, tvm.cpu()).run(data).numpy(), np.maximum(data, 0))
    assert made.bytecode.startswith("main(x):")
    with pytest.raises(ArgumentError, match="other functions"):
        tvm.runtime.vm.Executable.load_exec(b"main(x, y)", library)
    compiler = relay.vm.VMCompiler()
    with pytest.raises(ArgumentError, match="lower"):
        compiler.get_exec()
    compiler.lower(mod, "llvm")
    compiler.codegen()
    assert compiler.get_exec().globals == ["main"]


def test_results_are_written_to_arrays_and_parameters_shared() -> None:
    lib = relay.build(tvm.IRModule.from_expr(network()), target="llvm")
    module, other = (graph_executor.GraphModule(lib["default"](tvm.cpu())) for _ in range(2))
    out = tvm.nd.empty((3, 2))
    module.set_output_zero_copy("output_0", out)
    module.run(x=X, w=W)
    assert module.get_output(0) is out
    np.testing.assert_allclose(out.numpy(), EXPECTED, 1e-6)
    with pytest.raises(ArgumentError, match=r"the array is float32\[2, 3\]"):
        module.set_output_zero_copy(0, tvm.nd.empty((2, 3)))
    with pytest.raises(ArgumentError, match="output 1 of a network of 1"):
        module.set_output_zero_copy(1, out)
    other.share_params(module, relay.save_param_dict({"w": tvm.nd.array(W)}))
    other.run(x=X)
    np.testing.assert_allclose(other.get_output(0).numpy(), EXPECTED, 1e-6)
    with pytest.raises(ArgumentError, match="what lies between kernels isn't kept"):
        module.debug_get_output("dense")


def test_a_parameter_of_another_shape_is_named() -> None:
    expected = r"parameter %w is Tensor\[\(2, 4\), float32\], and its value is Tensor\[\(4, 2\), float32\]"
    with pytest.raises(DeclarationError, match=expected):
        relay.build(tvm.IRModule.from_expr(network()), target="llvm", params={"w": W.T})


def test_arrays_of_numpy_are_converted_where_that_loses_no_integer() -> None:
    x = relay.var("x", shape=(2,), dtype="uint8")
    run = relay.create_executor("graph").evaluate(relay.Function((x,), x))
    np.testing.assert_array_equal(run(np.array([3, 255])).numpy(), [3, 255])
    with pytest.raises(ArgumentError, match="has dtype int64, where"):
        run(np.array([3, 256]))
    pair = relay.Var("pair", relay.TupleType((relay.scalar_type("int64"), relay.scalar_type("float32"))))
    swapped = relay.Function((pair,), relay.Tuple([relay.TupleGetItem(pair, 1), relay.TupleGetItem(pair, 0)]))
    found = relay.create_executor("graph").evaluate(swapped)((3, relay.const(2.5)))
    assert [one.numpy().item() for one in found] == [2.5, 3]


def test_results_in_nested_tuples_are_numbered_one_behind_the_other() -> None:
    x = relay.var("x", shape=(3,))
    a, b, c = (x + relay.const(float(n)) for n in range(3))
    net = relay.build(relay.Function((x,), relay.Tuple([a, relay.Tuple([relay.Tuple([b]), c])])), "llvm")
    module = graph_executor.GraphModule(net["default"](tvm.cpu()))
    module.run(x=X[0, :3])
    assert module.get_num_outputs() == 3 and module.get_output_index("output_2") == 2
    for n in range(3):
        np.testing.assert_allclose(module.get_output(n).numpy(), X[0, :3] + n)


def test_what_passes_make_of_a_module_is_a_module_of_relay() -> None:
    """Programs look at it with their visitors, and build it."""
    mod, params = relay.optimize(tvm.IRModule.from_expr(network()), "llvm", {"w": W})
    assert not params and [param.name_hint for param in mod["main"].params] == ["x"]
    seen: list[str] = []

    class Names(relay.ExprVisitor):
        def visit_call(self, call: Any) -> None:
            seen.append(call.op.name)
            super().visit_call(call)

    Names().visit(mod["main"])
    assert seen[0] == "nn.relu" and len(seen) == 2
    module = graph_executor.GraphModule(relay.build(mod, "llvm")["default"](tvm.cpu()))
    module.run(x=X)
    np.testing.assert_allclose(module.get_output(0).numpy(), EXPECTED, 1e-5, 1e-6)
