"""Modules of PyTorch that run tensor functions and networks of ours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tensorexpr as tvm
from tensorexpr.script import tir as T

torch = pytest.importorskip("torch")
contrib = pytest.importorskip("tensorexpr.contrib.torch")


def _double(n: int) -> tvm.tir.PrimFunc:
    @T.prim_func
    def double(a: T.handle, b: T.handle) -> None:
        A, B = T.match_buffer(a, (n,)), T.match_buffer(b, (n,))
        for i in range(n):
            with T.block("B"):
                v = T.axis.spatial(n, i)
                B[v] = A[v] * T.float32(2)

    return double


def test_a_tensor_function_as_a_module() -> None:
    x, y = torch.arange(4.0, requires_grad=True), torch.zeros(4)
    module = contrib.as_torch(_double)(4)
    assert isinstance(module, torch.nn.Module) and "T.prim_func" in module.script()
    module(x, y)
    assert y.tolist() == [0, 2, 4, 6]
    with pytest.raises(tvm.TVMError, match=r"argument 1 is on cpu with strides \(2,\); tensors are compact"):
        module(x, torch.zeros(8)[::2])
    with pytest.raises(tvm.TVMError, match="as_torch takes a PrimFunc"):
        contrib.as_torch(3)


def test_modules_are_saved(tmp_path: Path) -> None:
    """Also one that was loaded, and one that is a part of another module."""
    x, y = torch.arange(4.0), torch.zeros(4)
    net = torch.nn.Sequential(contrib.optimize_torch(lambda one: one.exp() + 1, x, max_trials_global=0), torch.nn.ReLU())
    double = contrib.as_torch(_double)(4)
    for turn in range(2):
        torch.save((net, double), tmp_path / f"{turn}.pt")
        net, double = torch.load(tmp_path / f"{turn}.pt", weights_only=False)
        torch.testing.assert_close(net(x), x.exp() + 1)
        double(x, y)
        assert y.tolist() == [0, 2, 4, 6]


@pytest.mark.parametrize("kind", ["module", "traced", "function"])
def test_a_network_as_a_module(kind: str) -> None:
    """Built by rules; a module that trains is as it was behind it, and the result stays what it was when another one is made."""
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Dropout(0.5), torch.nn.ReLU())
    x = torch.linspace(-1, 1, 6).reshape(2, 3)
    makers: dict[str, Callable[[], Any]] = {
        "module": lambda: net,
        "traced": lambda: torch.jit.trace(net.eval(), x),
        "function": lambda: lambda one: net.eval()(one),
    }
    given = makers[kind]()
    net.train(kind == "module")
    made = contrib.optimize_torch(given, x, max_trials_global=0)
    assert net.training == (kind == "module")
    found, other = made(x), made(-x)
    torch.testing.assert_close(found, net.eval()(x))
    torch.testing.assert_close(other, net(-x))
    with pytest.raises(tvm.TVMError, match="the network takes 1 inputs, not 2"):
        made(x, x)


def test_what_pytorch_can_not_export() -> None:
    with pytest.raises(tvm.TVMError, match=r"PyTorch .* can't export function"):
        contrib.optimize_torch(lambda one: one.nothing, torch.zeros(2))


def test_a_network_in_a_folder(tmp_path: Path) -> None:
    """`compile` writes library, graph and parameters, which can be loaded alone."""
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU()).eval()
    x = torch.linspace(-1, 1, 6).reshape(2, 3)
    traced, folder = torch.jit.trace(net, x), str(tmp_path / "net")
    options = {"input_infos": [("x", (2, 3))], "tuning_n_trials": 0, "export_dir": folder}
    made = contrib.compile(traced, options)
    torch.testing.assert_close(made(x), net(x).detach())
    assert sorted(one.name for one in (tmp_path / "net").iterdir()) == sorted(contrib.TVM_ASSETS)
    loaded = contrib.PyTorchTVMModule()
    loaded.load_tvm(folder)
    torch.testing.assert_close(loaded.build_pytorch_module(1, 1)(x), net(x).detach())
    for wrong, message in (
        ({"trials": 3, **options}, "no option 'trials'; there are input_infos"), ({}, 'the option "input_infos" is missing'),
        ({**options, "num_outputs": 2}, "1 inputs and 1 outputs, not 1 and 2"),
    ):  # fmt: skip
        with pytest.raises(tvm.TVMError, match=message):
            contrib.compile(traced, wrong)
    for call, message in (
        (lambda one: one.build_tvm(folder), "there is no network yet"),
        (lambda one: one.load_tvm(str(tmp_path)), "has no mod.so, graph.json"),
        (lambda one: one.build_pytorch_module(1, 1), "nothing is built"),
    ):  # fmt: skip
        with pytest.raises(tvm.TVMError, match=message):
            call(contrib.PyTorchTVMModule())  # type: ignore[no-untyped-call]


def test_a_network_follows_a_log(tmp_path: Path) -> None:
    net, x = torch.nn.Linear(64, 32).eval(), torch.ones(16, 64)
    options = {
        "input_infos": [("x", (16, 64))],
        "tuning_n_trials": 1,
        "tuning_log_file": str(tmp_path / "log"),
        "export_dir": str(tmp_path),
    }
    torch.testing.assert_close(contrib.compile(torch.jit.trace(net, x), options)(x), net(x).detach())
    assert (tmp_path / "log").read_text().count("\n") >= 1  # of each template
