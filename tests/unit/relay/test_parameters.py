"""Parameters of built networks: by name, apart from the library, and other values for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.contrib import graph_executor
from tensorexpr.contrib.graph_executor import GraphModule
from tensorexpr.driver import tvmc
from tensorexpr.errors import ArgumentError
from tensorexpr.relay.backend import Executor

X = np.random.default_rng(0).standard_normal((3, 40), "float32")
FIRST, SECOND = (np.random.default_rng(n).standard_normal((40, 40), "float32") for n in (1, 2))
EXPECTED = np.maximum(X @ FIRST.T, 0) @ SECOND.T


def network() -> relay.Function:
    x, first, second = (relay.var(name, shape=shape) for name, shape in (("x", (3, 40)), ("first", (40, 40)), ("second", (40, 40))))
    return relay.Function((x, first, second), relay.nn.dense(relay.nn.relu(relay.nn.dense(x, first)), second))


@pytest.fixture(scope="module")
def built() -> Any:
    return relay.build(network(), "llvm", params={"first": FIRST, "second": SECOND})


def _result(module: GraphModule) -> np.ndarray:
    module.run(x=X)
    found: np.ndarray = module.get_output(0).numpy()
    return found


def _machine(library: Any) -> GraphModule:
    return GraphModule(library["default"](tvm.cpu()))


def test_they_are_named_and_set_again(built: Any) -> None:
    graph, library, params = built
    assert params.keys() == built.get_params().keys() == library.get_params().keys() and len(params) == 2
    assert all(f'"name": "{name}"' in graph for name in params)
    module = graph_executor.create(graph, library, tvm.cpu())
    expected = _result(module)
    np.testing.assert_allclose(expected, EXPECTED, 1e-4, 1e-4)
    machine = module.module
    module.set_input(**params)
    module.load_params(relay.save_param_dict(params))
    assert module.module is machine  # the values that it has need no machine
    np.testing.assert_array_equal(_result(module), expected)


def test_other_values_are_of_one_executor(built: Any) -> None:
    module, other = _machine(built), _machine(built)
    expected = _result(other)
    (name, value), *_ = built.get_params().items()
    module.set_input(name, -value.numpy())
    np.testing.assert_array_equal(module.get_input(name).numpy(), -value.numpy())
    changed = _result(module)
    assert not np.array_equal(changed, expected)
    np.testing.assert_array_equal(_result(other), expected)
    np.testing.assert_array_equal(built.get_params()[name].numpy(), value.numpy())
    np.testing.assert_array_equal(module.module["get_output"](0).numpy(), changed)  # functions by name follow
    other.share_params(module, relay.save_param_dict({name: value}))
    np.testing.assert_array_equal(_result(other), changed)


def test_what_does_not_fit(built: Any) -> None:
    module = _machine(built)
    expected = _result(module)
    (name, value), (last, _) = built.get_params().items()
    wrong = np.zeros((1, *value.shape), "float32")
    with pytest.raises(ArgumentError, match=rf"{name} is float32 of shape \(.*\), not float32 of \(1, "):
        module.set_input(name, wrong)
    with pytest.raises(ArgumentError, match=rf"{last} is float32 of shape \(.*\), not float64 of"):
        module.load_params(relay.save_param_dict({name: -value.numpy(), last: value.numpy().astype("float64")}))
    np.testing.assert_array_equal(_result(module), expected)  # nothing was set
    with pytest.raises(ArgumentError, match="no input 'p9'; the network has x"):
        module.set_input("p9", wrong)
    module.load_params(relay.save_param_dict({"p9": wrong}))  # of another network's names none is taken
    np.testing.assert_array_equal(_result(module), expected)


@pytest.mark.parametrize("how", ["factory", "library"])
def test_a_library_without_them(built: Any, tmp_path: Path, how: str) -> None:
    path = str(tmp_path / "net.so")
    (built["remove_params"]() if how == "factory" else built.get_lib()).export_library(path)
    expected = _result(_machine(built))
    loaded = tvm.runtime.load_module(path)
    module = _machine(loaded)
    with pytest.raises(ArgumentError, match=r"exported without p0, p1: .*load_params\(bytes\)"):
        module.run(x=X)
    (name, value), (last, second) = built.get_params().items()
    module.set_input(name, value)
    with pytest.raises(ArgumentError, match=rf"exported without {last}:"):
        module.run(x=X)
    module.load_params(relay.save_param_dict(built.get_params()))
    np.testing.assert_array_equal(_result(module), expected)
    np.testing.assert_array_equal(_result(_machine(loaded)), expected)  # what lacked them has them now, for all
    other = _machine(tvm.runtime.load_module(path))
    other.set_input(**{name: -value.numpy(), last: second})
    assert not np.array_equal(_result(other), expected)
    np.testing.assert_array_equal(_result(module), expected)


def test_a_library_with_them_knows_their_names(built: Any, tmp_path: Path) -> None:
    built.export_library(tmp_path / "net.so")
    loaded: Any = tvm.runtime.load_module(str(tmp_path / "net.so"))
    found = loaded.get_params()
    assert found.keys() == built.get_params().keys()
    for name, value in found.items():
        np.testing.assert_array_equal(value.numpy(), built.get_params()[name].numpy())
    np.testing.assert_array_equal(_result(_machine(loaded)), _result(_machine(built)))
    built["remove_params"]().export_library(tmp_path / "bare.so")
    assert (tmp_path / "bare.so").stat().st_size < (tmp_path / "net.so").stat().st_size - 2 * FIRST.nbytes + 4096


@pytest.mark.parametrize("how", ["executor", "pass context", "target", "ahead of time"])
def test_linked_parameters_are_none(how: str, tmp_path: Path) -> None:
    executor = {"executor": Executor("graph", {"link-params": True}), "ahead of time": Executor("aot")}.get(how)
    config = {"relay.FuseOps.link_params": True} if how == "pass context" else {}
    with tvm.transform.PassContext(config=config):
        target = "llvm -link-params=1" if how == "target" else "llvm"
        library = relay.build(network(), target, executor=executor, params={"first": FIRST, "second": SECOND})
    assert library.get_params() == {}
    library.lib.export_library(tmp_path / "net.so")
    np.testing.assert_array_equal(_result(_machine(tvm.runtime.load_module(str(tmp_path / "net.so")))), _result(_machine(library)))


@pytest.mark.parametrize("linked", [False, True])
def test_c_text_has_linked_parameters(linked: bool, tmp_path: Path) -> None:
    executor = Executor("graph", {"link-params": linked})
    library = relay.build(network(), "c", executor=executor, params={"first": FIRST, "second": SECOND})
    text = library.lib.get_source()
    assert ("tensorexpr_constant_1[1600]" in text) == ("int32_t tensorexpr_run(" in text) == linked
    assert (float(FIRST[0, 0]).hex().split("p")[0].rstrip("0") in text) == linked
    library.lib.save(tmp_path / "net.c")
    assert (tmp_path / "net.c").read_text() == text


def test_weights_that_are_inputs_are_no_parameters() -> None:
    library = relay.build(network(), "llvm")
    assert library.get_params() == {}
    module = _machine(library)
    module.load_params(relay.save_param_dict({"first": FIRST, "second": SECOND}))
    np.testing.assert_allclose(_result(module), EXPECTED, 1e-4, 1e-4)


def test_a_package_has_library_graph_and_parameters(tmp_path: Path) -> None:
    model = tvmc.model.TVMCModel(tvm.IRModule.from_expr(network()), {"first": FIRST, "second": SECOND})
    package = tvmc.compile(model, "llvm", package_path=tmp_path / "net.tar")
    assert package.graph is not None and package.params is not None
    module = graph_executor.create(package.graph, tvm.runtime.load_module(package.lib_path), tvm.cpu())
    module.load_params(package.params)
    np.testing.assert_allclose(_result(module), EXPECTED, 1e-4, 1e-4)
    library = tvmc.compile(model, "llvm", package_path=tmp_path / "net.so")
    assert library.lib_path == str(tmp_path / "net.so") and library.params == package.params
    by_machine = tvmc.compile(model, "llvm", package_path=tmp_path / "vm.tar", use_vm=True)
    assert by_machine.graph is None and by_machine.params is None


def test_constants_of_a_code_generators_functions_are_no_parameters() -> None:
    """They belong to what it made, and stay with it."""
    x = relay.var("x", shape=(3, 40))
    part = relay.annotation.compiler_end(
        relay.add(relay.annotation.compiler_begin(x, "ccompiler"), relay.annotation.compiler_begin(relay.const(X), "ccompiler")),
        "ccompiler",
    )
    mod = tvm.IRModule.from_expr(relay.Function((x,), relay.nn.dense(part, relay.const(FIRST))))
    built = relay.build(relay.transform.PartitionGraph()(mod), "llvm")
    assert len(built.get_params()) == 1
    np.testing.assert_allclose(_result(_machine(built)), (X + X) @ FIRST.T, 1e-4, 1e-4)
