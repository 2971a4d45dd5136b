"""Networks as classes: what they export means what they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relax, te, topi
from tensorexpr.errors import ArgumentError, DeclarationError
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.frontend import nn

RNG = np.random.default_rng(3)


def exported(module: Any, spec: Any) -> tuple[Any, list[np.ndarray]]:
    """A module's graphs, and random weights."""
    mod, params = module.export_tvm(spec)
    assert relax.analysis.well_formed(mod)
    return mod, [RNG.uniform(0.1, 1, [int(one) for one in p.stated]).astype(p.param_dtype) for _, p in params]


class Mlp(nn.Module):
    def __init__(self) -> None:
        self.fc1 = nn.Linear(4, 8)
        self.blocks = nn.ModuleList([nn.Linear(8, 8, bias=False), nn.RMSNorm(8, -1, 1e-5, bias=False)])
        self.fc2 = nn.Linear(8, 2, bias=False)

    def forward(self, x: Any) -> Any:
        return 2.0 * self.fc2(self.blocks(nn.op.relu(self.fc1(x))))

    def both(self, x: Any, k: Any) -> Any:
        return self.fc1(x), nn.op.full((k,), 1.0)


def test_exported_networks() -> None:
    module = Mlp()
    names = ["fc1.weight", "fc1.bias", "blocks.0.weight", "blocks.1.weight", "fc2.weight"]
    assert [name for name, _ in module.named_parameters()] == names == list(module.state_dict())
    mod, (w1, b1, w2, g, w3) = exported(module, {"forward": {"x": nn.spec.Tensor(("n", 4), "float32")}})
    assert [p.name_hint for p in mod["forward"].params] == ["x", *(name.replace(".", "_") for name in names)]
    assert mod["forward"].attrs["num_input"] == 1
    x = RNG.uniform(-1, 1, (3, 4)).astype("float32")
    h = np.maximum(x @ w1.T + b1, 0) @ w2.T
    h = h / np.sqrt((h * h).mean(-1, keepdims=True) + 1e-5) * g
    found = relax.VirtualMachine(relax.build(mod))["forward"](x, w1, b1, w2, g, w3).numpy()
    np.testing.assert_allclose(found, 2 * h @ w3.T, rtol=1e-4)


def test_several_methods_and_integers() -> None:
    mod, weights = exported(Mlp(), {"both": {"x": nn.spec.Tensor((1, 4)), "k": int}, "forward": {"x": nn.spec.Tensor((1, 4))}})
    x = np.ones((1, 4), "float32")
    first, ones = Evaluator(mod)("both", x, (5,), *weights)
    np.testing.assert_allclose(first, x @ weights[0].T + weights[1], rtol=1e-6)
    assert ones.tolist() == [1.0] * 5


class Layers(nn.Module):
    def __init__(self) -> None:
        self.conv = nn.Conv2D(3, 4, 3, padding=1)
        self.norm = nn.GroupNorm(2, 4)
        self.layer = nn.LayerNorm(5)
        self.rows = nn.Embedding(7, 5)
        self.act = nn.ModuleList([nn.SiLU(), nn.GELU(), nn.Identity()])

    def planes(self, x: Any) -> Any:
        return self.act(self.norm(self.conv(x)))

    def texts(self, tokens: Any, mask: Any) -> Any:
        x = self.layer(self.rows(tokens))
        q = x.reshape(1, -1, 1, 5)
        return nn.op.scaled_dot_product_attention(q, q, q, mask), nn.op.chunk(x, 2, dim=0)[1]

    def own(self, x: Any) -> Any:
        y = nn.op.tensor_expr_op(topi.nn.relu, "activation", [x])
        a = te.placeholder((4,), name="a")
        func = te.create_prim_func([a, te.compute((4,), lambda i: a[i] + 1.0, name="b")])
        return nn.op.extern("tests.nn.twice", [nn.op.tensor_ir_op(func, "more", [y], y)], y)


@tvm.register_func("tests.nn.twice", override=True)
def twice(x: tvm.nd.NDArray, out: tvm.nd.NDArray) -> None:
    np.from_dlpack(out)[...] = np.from_dlpack(x) * 2


def test_layers() -> None:
    spec = {
        "planes": {"x": nn.spec.Tensor((1, 3, 6, 6))},
        "texts": {"tokens": nn.spec.Tensor((4,), "int32"), "mask": nn.spec.Tensor((4, 4))},
        "own": {"x": nn.spec.Tensor((4,))},
    }
    mod, weights = exported(Layers(), spec)
    vm = relax.VirtualMachine(relax.build(mod))
    x = RNG.uniform(-1, 1, (1, 3, 6, 6)).astype("float32")
    tokens, mask = np.array([0, 3, 6, 3], "int32"), np.triu(np.full((4, 4), -1e4, "float32"), 1)
    np.testing.assert_allclose(vm["planes"](x, *weights).numpy(), Evaluator(mod)("planes", x, *weights), rtol=1e-3, atol=1e-5)
    gamma, beta, table = weights[4], weights[5], weights[6]
    h = table[tokens]
    h = (h - h.mean(-1, keepdims=True)) / np.sqrt(h.var(-1, keepdims=True) + 1e-5) * gamma + beta
    scores = h @ h.T / np.sqrt(5) + mask
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    attended, half = (one.numpy() for one in vm["texts"](tokens, mask, *weights))
    np.testing.assert_allclose(attended[0, :, 0], scores / scores.sum(-1, keepdims=True) @ h, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(half, h[2:], rtol=1e-4, atol=1e-5)
    y = np.array([-1, 0, 1, 2], "float32")
    np.testing.assert_allclose(vm["own"](y, *weights).numpy(), (np.maximum(y, 0) + 1) * 2)


def test_weights() -> None:
    module = Mlp()
    state = {name: np.ones([int(one) for one in p.stated], "float32") for name, p in module.named_parameters()}
    assert module.load_state_dict(state) == ([], [])
    assert module.fc1.weight.data.numpy().sum() == 32
    assert module.load_state_dict({"fc1.weight": state["fc1.weight"], "k": 1}, strict=False)[1] == ["k"]
    with pytest.raises(ArgumentError, match="unexpected"):
        module.load_state_dict({**state, "k": 1})
    with pytest.raises(ArgumentError, match=r"a parameter of shape \(8, 4\) of float32 gets \(4, 8\)"):
        module.load_state_dict({**state, "fc1.weight": np.ones((4, 8), "float32")})
    module.to("float16")
    assert module.fc1.weight.dtype == "float16" and module.fc1.weight.data is None


def test_mistakes() -> None:
    with pytest.raises(DeclarationError, match="has no method 'backward'"):
        Mlp().export_tvm({"backward": {}})
    with pytest.raises(DeclarationError, match="method forward takes x; the spec has y"):
        Mlp().export_tvm({"forward": {"y": int}})
    with pytest.raises(DeclarationError, match=r"while Module\.export_tvm makes a graph"):
        nn.op.relu(nn.Parameter((2,)))
    with pytest.raises(DeclarationError, match="argument x of forward is"):
        Mlp().export_tvm({"forward": {"x": float}})
