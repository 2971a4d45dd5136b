"""Networks as classes: what happens beside their values, how they are exported and built, and parts that are replaced."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relax, tir
from tensorexpr.errors import ArgumentError, DeclarationError, MissingFunctionError, TypeMismatchError
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.frontend import nn
from tensorexpr.runtime.registry import remove_global_func

RNG = np.random.default_rng(5)
X = nn.spec.Tensor((2, 3), "float32")


class Shouts(nn.Module):
    def forward(self, x: Any, n: Any) -> Any:
        y = x * 2.0
        nn.op.print_(y)
        nn.op.debug_func("tests.nn.seen", y, 3, 2.5, "text", n)
        return y


def test_prints_and_debugging_functions(capfd: pytest.CaptureFixture[str]) -> None:
    seen: list[Any] = []
    tvm.register_func("tests.nn.seen", lambda *args: seen.append(args), override=True)
    mod, params = Shouts().export_tvm({"forward": {"x": X, "n": int}}, debug=True)
    assert params == [] and relax.analysis.well_formed(mod)
    assert [param.name_hint for param in mod["forward"].params] == ["x", "n", "_io"] and mod["forward"].attrs["num_input"] == 3
    machine = relax.VirtualMachine(relax.build(mod), tvm.cpu())
    effects = machine["_initialize_effect"]()
    x = RNG.uniform(size=(2, 3)).astype("float32")
    for _ in range(2):
        y, effects = machine["forward"](x, (7,), *effects)
    np.testing.assert_array_equal(y.numpy(), 2 * x)
    # Both calls print: nothing is merged, and nothing is left out.
    assert capfd.readouterr().out.count("test_nn_effects.py:") == 2 and len(seen) == 2
    place, value, *others = seen[0]
    assert "test_nn_effects.py:" in place and others == [3, 2.5, "text", 7]
    np.testing.assert_array_equal(value.numpy(), 2 * x)
    remove_global_func("tests.nn.seen")
    with pytest.raises(MissingFunctionError, match=r"test_nn_effects\.py:\d+: no function 'tests.nn.seen' is registered"):
        machine["forward"](x, (7,), *effects)


def test_effects_that_there_are_not() -> None:
    with pytest.raises(DeclarationError, match="debug_print is called in modules that are exported with debug=True"):
        Shouts().export_tvm({"forward": {"x": X, "n": int}})
    with pytest.raises(DeclarationError, match=r"while Module\.export_tvm makes a graph"):
        nn.op.print_(nn.Tensor.placeholder((2,), "float32"))

    class Inner(nn.Module):
        define_subroutine = True

        def forward(self, x: Any) -> Any:
            nn.op.print_(x)
            return x

    class Outer(nn.Module):
        def __init__(self) -> None:
            self.inner = Inner()

        def forward(self, x: Any) -> Any:
            return self.inner(x)

    with pytest.raises(DeclarationError, match="a module with define_subroutine has no effects"):
        Outer().export_tvm({"forward": {"x": X}}, debug=True)


class Remembers(nn.Module):
    def __init__(self) -> None:
        self.keys, self.values = nn.KVCache(2, [3]), nn.KVCache(2, [3])

    def forward(self, x: Any, n: Any) -> Any:
        self.keys.append(x)
        self.values.append(x * 10.0)
        return self.keys.view(n), self.values.view(n)


@pytest.mark.parametrize("mode", ["plain", "packed"])
def test_caches_that_grow(mode: str) -> None:
    """Each of two has rows of its own, though both begin as equal values."""
    mod, _ = Remembers().export_tvm({"forward": {"x": nn.spec.Tensor(("m", 3)), "n": int, "$": {"effect_mode": mode}}})
    machine = relax.VirtualMachine(relax.build(mod), tvm.cpu())
    effects = machine["_initialize_effect"]()
    rows = np.zeros((0, 3), "float32")
    views = []
    for count in (1, 3, 2):
        x = RNG.uniform(size=(count, 3)).astype("float32")
        rows = np.concatenate([rows, x])
        given = effects if mode == "plain" else [effects]
        (keys, values), effects = machine["forward"](x, (len(rows),), *given)
        views.append((keys, rows))
        np.testing.assert_array_equal(values.numpy(), rows * 10)
    for keys, expected in views:  # earlier ones stay as they were
        np.testing.assert_array_equal(keys.numpy(), expected)
    with pytest.raises(ArgumentError, match=r"attention_kv_cache_view: the cache holds \(7, 3\), not \(9, 3\)"):
        machine["forward"](x[:1], (9,), *(effects if mode == "plain" else [effects]))


def test_rows_that_a_cache_does_not_take() -> None:
    class Wrong(nn.Module):
        def __init__(self, dtype: str) -> None:
            self.cache = nn.KVCache(2, [4], dtype)

        def forward(self, x: Any) -> Any:
            self.cache.append(x)
            return x

    with pytest.raises(TypeMismatchError, match="KVCache: elements are float16, not float32"):
        Wrong("float16").export_tvm({"forward": {"x": X}})
    module = Wrong("float16")
    module.to("float32")
    mod, _ = module.export_tvm({"forward": {"x": X}})
    machine = relax.VirtualMachine(relax.build(mod), tvm.cpu())
    with pytest.raises(ArgumentError, match=r"rows of the cache are \(4,\), not \(3,\)"):
        machine["forward"](np.zeros((2, 3), "float32"), *machine["_initialize_effect"]())
    with pytest.raises(DeclarationError, match="KVCache: it is read and written in methods while"):
        nn.KVCache(2, [4]).view(1)


class Layer(nn.Module):
    def __init__(self, dtype: str = "float32") -> None:
        self.fc = nn.Linear(3, 4, dtype=dtype)
        self.dtype = dtype

    def forward(self, x: Any) -> Any:
        return self.fc(x)


def test_parameters_as_one_tuple() -> None:
    mod, params = Layer().export_tvm({"forward": {"x": X, "$": {"param_mode": "packed", "effect_mode": "none"}}}, debug=True)
    func: Any = mod["forward"]
    assert [param.name_hint for param in func.params] == ["x", "packed_params"] and func.attrs["num_input"] == 1
    assert [name for name, _ in params] == ["fc.weight", "fc.bias"]
    x, w, b = (RNG.uniform(size=shape).astype("float32") for shape in ((2, 3), (4, 3), (4,)))
    np.testing.assert_allclose(Evaluator(mod)("forward", x, [w, b]), x @ w.T + b, rtol=1e-6)


def test_specifications() -> None:
    module = Layer()
    spec = nn.spec.ModuleSpec.from_raw({"forward": {"x": X}}, module)
    assert str(spec) == "ModuleSpec:\n  forward(x: Tensor([2, 3], 'float32'))"
    assert nn.spec.ModuleSpec.from_raw(spec, module) is spec
    assert str(nn.spec.MethodSpec.from_raw({"x": (X, [int])}, lambda x: x)) == "MethodSpec(x: (Tensor([2, 3], 'float32'), [int]))"
    assert module.export_tvm(spec)[0]["forward"].params[0].name_hint == "x"
    like = nn.spec.MethodSpec.from_torch([np.zeros((2, 3), "float32"), 3], lambda x, n: x)
    assert str(like) == "MethodSpec(x: Tensor([2, 3], 'float32'), n: int)"
    with pytest.raises(DeclarationError, match=r"nn\.spec: param_mode is one of plain, packed, none, not 'tuple'"):
        module.export_tvm({"forward": {"x": X, "$": {"param_mode": "tuple"}}})


def test_objects_and_tuples_as_arguments() -> None:
    class State(nn.Object):
        pass

    class Holds(nn.Module):
        def forward(self, state: Any, pair: Any) -> Any:
            assert isinstance(state, State) and isinstance(pair, tuple)
            return pair[0] + pair[1], state

    mod, _ = Holds().export_tvm({"forward": {"state": nn.spec.Object(State), "pair": (X, X)}})
    a, b = RNG.uniform(size=(2, 2, 3)).astype("float32")
    total, state = relax.VirtualMachine(relax.build(mod), tvm.cpu())["forward"]("anything", (tvm.nd.array(a), tvm.nd.array(b)))
    np.testing.assert_array_equal(total.numpy(), a + b)
    assert state == "anything"
    with pytest.raises(DeclarationError, match=r"nn\.Object: state is R\.Tensor"):
        State(_expr=relax.Var("state", relax.TensorStructInfo((2,))), _name="state")


def test_symbols_of_weights() -> None:
    """A name is one symbol in a method, a variable itself; both are known before anything is exported."""
    n = tir.Var("n", "int64")
    by_name, by_variable = nn.Linear("n", 4, bias=False), nn.Linear(n, 4, bias=False)
    assert str(by_name.weight.shape[1]) == "n" and by_variable.weight.shape[1] is n
    for module in (by_name, by_variable):
        mod, _ = module.export_tvm({"forward": {"x": nn.spec.Tensor((2, "n" if module is by_name else n))}})
        x, w = RNG.uniform(size=(2, 5)).astype("float32"), RNG.uniform(size=(4, 5)).astype("float32")
        np.testing.assert_allclose(Evaluator(mod)("forward", x, w), x @ w.T, rtol=1e-6)


def test_functions_of_others() -> None:
    tvm.register_func("tests.nn.scaled", lambda x, k, out: out.copyfrom(x.numpy() * k), override=True)
    module = nn.ExternModule({"tests.nn.scaled": lambda x, k: nn.Tensor.placeholder(x.shape, x.dtype)})

    class Uses(nn.Module):
        def forward(self, x: Any) -> Any:
            return module["tests.nn.scaled"](x, 3) + module["tests.nn.scaled"](x, 4)

    mod, params, externs = Uses().export_tvm({"forward": {"x": X}}, allow_extern=True)
    assert externs == [module] and params == []
    x = RNG.uniform(size=(2, 3)).astype("float32")
    np.testing.assert_allclose(relax.VirtualMachine(relax.build(mod))["forward"](x).numpy(), 7 * x, rtol=1e-6)
    with pytest.raises(DeclarationError, match="allow_extern=True returns these, too"):
        Uses().export_tvm({"forward": {"x": X}})
    with pytest.raises(DeclarationError, match=r"there is no function 'other'; there are tests\.nn\.scaled"):
        module["other"]
    for kind in (nn.SourceModule, nn.ObjectModule):
        with pytest.raises(DeclarationError, match=f"nn.{kind.__name__}: objects of other compilers aren't linked"):
            kind({}, "code")

    class Twice(nn.Module):
        def forward(self, x: Any) -> Any:
            nn.add_extern(module)
            nn.add_extern(nn.ExternModule(module.symbols))
            return x

    with pytest.raises(DeclarationError, match=r"another module has tests\.nn\.scaled already"):
        Twice().export_tvm({"forward": {"x": X}})


def test_parts_that_are_replaced() -> None:
    class Halves(nn.Mutator):
        def __init__(self) -> None:
            self.names: list[str] = []

        def visit_param(self, name: str, node: Any) -> Any:
            self.names.append(name)
            return nn.Parameter(node.shape, "float16")

        def visit_module(self, name: str, node: Any) -> Any:
            return nn.Identity() if isinstance(node, nn.ReLU) else self.visit(name, node)

        def visit_effect(self, name: str, node: Any) -> Any:
            return nn.KVCache(4, [8])

    class Net(nn.Module):
        def __init__(self) -> None:
            self.layers = nn.ModuleList([Layer(), nn.ModuleList([nn.ReLU(), nn.Linear(4, 2, bias=False)])])
            self.scale, self.cache = nn.Parameter((2,)), nn.KVCache(2, [8])

    mutator = Halves()
    net = mutator.visit("net", Net())
    assert mutator.names == ["net.layers.0.fc.weight", "net.layers.0.fc.bias", "net.layers.1.1.weight", "net.scale"]
    assert {param.dtype for param in net.parameters()} == {"float16"}
    assert isinstance(net.layers[1][0], nn.Identity) and net.cache.init_seq_len == 4
    assert next(name for name, _ in mutator.visit("", net).named_parameters()) == "layers.0.fc.weight" and mutator.names[4][:6] == "layers"


class _Stretch(nn.Module):
    """Operators whose results have a meaning in NumPy."""

    def forward(self, x: Any, u: Any, top_p: Any, top_k: Any, rows: Any) -> Any:
        prob = nn.op.softmax(x, -1)
        order = nn.op.argsort(prob, -1, True, "int64")
        ordered = nn.op.sort(prob, -1, True)
        sample = nn.op.sample_top_p_top_k_from_sorted_prob(ordered, order, top_p, top_k, u, rows)
        return prob, sample, nn.op.renormalize_top_p_top_k_prob(prob, ordered, top_p, top_k)


def test_sampling() -> None:
    spec = {
        "x": nn.spec.Tensor((2, 6)), "u": nn.spec.Tensor((4, 1)), "top_p": nn.spec.Tensor((2, 1)),
        "top_k": nn.spec.Tensor((2, 1), "int64"), "rows": nn.spec.Tensor((4, 1), "int64"),
    }  # fmt: skip
    mod, _ = _Stretch().export_tvm({"forward": spec})
    x, rows = RNG.standard_normal((2, 6)).astype("float32"), np.array([[0], [1], [1], [0]])
    u, top_p, top_k = np.array([[0.0], [0.3], [0.8], [0.999]], "float32"), np.array([[0.7], [2.0]], "float32"), np.array([[5], [3]])
    prob, sample, left = (one.numpy() for one in relax.VirtualMachine(relax.build(mod))["forward"](x, u, top_p, top_k, rows))
    for row in range(2):
        order = np.argsort(-prob[row], kind="stable")
        sums = np.cumsum(prob[row][order])
        # As many as reach top_p, and at most top_k.
        count = min(int((sums < top_p[row, 0]).sum()) + 1, top_k[row, 0])
        kept = np.where(np.isin(np.arange(6), order[:count]), prob[row], 0)
        np.testing.assert_allclose(left[row], kept / kept.sum(), rtol=1e-5)
        for at in np.flatnonzero(rows[:, 0] == row):
            assert sample[at, 0] == order[np.searchsorted(sums[:count] / sums[count - 1], u[at, 0], side="right")]


def test_sampling_by_rows_in_order() -> None:
    class Draws(nn.Module):
        def forward(self, p: Any, index: Any, top_p: Any, top_k: Any, u: Any) -> Any:
            return nn.op.sample_top_p_top_k_from_sorted_prob(p, index, top_p, top_k, u)

    number, count = nn.spec.Tensor((2, 1)), nn.spec.Tensor((2, 1), "int64")
    spec = {"p": nn.spec.Tensor((2, 3)), "index": nn.spec.Tensor((2, 3), "int64"), "top_p": number, "top_k": count, "u": number}
    mod, _ = Draws().export_tvm({"forward": spec})
    p, index = np.array([[0.5, 0.4, 0.1], [0.4, 0.3, 0.3]], "float32"), np.array([[2, 1, 0], [2, 0, 1]])
    top_p, top_k, u = np.array([[0.6], [0.9]], "float32"), np.array([[3], [2]]), np.array([[0.5], [0.6]], "float32")
    assert Evaluator(mod)("forward", p, index, top_p, top_k, u).tolist() == [[2], [0]]
    with pytest.raises(DeclarationError, match="numbers for 2 rows; sample_indices says which"):
        Draws().export_tvm({"forward": {**spec, "u": nn.spec.Tensor((3, 1))}})


class _Steps(nn.Module):
    def __init__(self) -> None:
        self.steps = nn.Timesteps(7, flip_sin_to_cos=True)
        self.embed = nn.TimestepEmbedding(7, 8, cond_proj_dim=5, post_act_fn="silu")
        self.attention = nn.Attention(8, 6, heads=2, dim_head=4, norm_num_groups=2)

    def times(self, t: Any, condition: Any) -> Any:
        steps = self.steps(t)
        return steps, self.embed(steps, condition)

    def attend(self, x: Any, other: Any) -> Any:
        return self.attention(x, other), self.attention(x, other, nn.op.zeros((3, 4)))


def test_layers_of_diffusion() -> None:
    module = _Steps()
    spec = {
        "times": {"t": nn.spec.Tensor((3,)), "condition": nn.spec.Tensor((3, 5))},
        "attend": {"x": nn.spec.Tensor((1, 3, 8)), "other": nn.spec.Tensor((1, 4, 6))},
    }
    mod, params = module.export_tvm(spec)
    weights = {name: RNG.uniform(-0.5, 0.5, [int(one) for one in p.shape]).astype("float32") for name, p in params}
    run = Evaluator(mod)
    t, condition = np.array([0, 1, 50], "float32"), RNG.uniform(size=(3, 5)).astype("float32")
    steps, embedded = run("times", t, condition, *weights.values())
    angles = t[:, None] * np.exp(-np.log(10000) * np.arange(3) / 2)
    np.testing.assert_allclose(steps, np.concatenate([np.cos(angles), np.sin(angles), np.zeros((3, 1))], 1), rtol=1e-5, atol=1e-6)

    def silu(x: Any) -> Any:
        return x / (1 + np.exp(-x))

    def w(name: str) -> Any:
        return weights[name]

    h = (steps + condition @ w("embed.cond_proj.weight").T) @ w("embed.linear_1.weight").T + w("embed.linear_1.bias")
    expected = silu(silu(h) @ w("embed.linear_2.weight").T + w("embed.linear_2.bias"))
    np.testing.assert_allclose(embedded, expected, rtol=1e-4, atol=1e-5)
    x, other = RNG.uniform(size=(1, 3, 8)).astype("float32"), RNG.uniform(size=(1, 4, 6)).astype("float32")
    plain, masked = run("attend", x, other, *weights.values())
    assert plain.shape == (1, 3, 8)
    np.testing.assert_allclose(plain, masked, rtol=1e-5)
    with pytest.raises(DeclarationError, match='act_fn and post_act_fn are "silu", not'):
        nn.TimestepEmbedding(4, 4, act_fn="relu")
    with pytest.raises(DeclarationError, match="a condition needs cond_proj_dim"):
        module.embed.cond_proj = None
        module.export_tvm({"times": spec["times"]})


def test_operators_of_planes() -> None:
    class Planes(nn.Module):
        def forward(self, x: Any) -> Any:
            sizes = nn.op.interpolate(x, size=(6, 4)), nn.op.interpolate(x, scale_factor=2.0, mode="bilinear")
            return nn.op.pad(x, [0, 0, 0, 0, 1, 0, 0, 2]), *sizes

    mod, _ = Planes().export_tvm({"forward": {"x": nn.spec.Tensor((1, 1, 3, 2))}})
    x = RNG.uniform(size=(1, 1, 3, 2)).astype("float32")
    padded, nearest, linear = Evaluator(mod)("forward", x)
    np.testing.assert_array_equal(padded, np.pad(x, [(0, 0), (0, 0), (1, 0), (0, 2)]))
    np.testing.assert_array_equal(nearest, x.repeat(2, 2).repeat(2, 3))
    assert linear.shape == (1, 1, 6, 4)
    with pytest.raises(DeclarationError, match="recompute_scale_factor and antialias aren't there"):

        class Wrong(nn.Module):
            def forward(self, x: Any) -> Any:
                return nn.op.interpolate(x, size=(6, 4), antialias=True)

        Wrong().export_tvm({"forward": {"x": nn.spec.Tensor((1, 1, 3, 2))}})


def test_attention_to_what_came_before() -> None:
    class Looks(nn.Module):
        def forward(self, q: Any, mask: Any) -> Any:
            return nn.op.scaled_dot_product_attention(q, q, q, is_causal=True), nn.op.scaled_dot_product_attention(q, q, q, mask)

    mod, _ = Looks().export_tvm({"forward": {"q": nn.spec.Tensor((1, 5, 2, 4)), "mask": nn.spec.Tensor((5, 5))}})
    q, mask = RNG.uniform(size=(1, 5, 2, 4)).astype("float32"), np.triu(np.full((5, 5), -1e9, "float32"), 1)
    causal, masked = Evaluator(mod)("forward", q, mask)
    np.testing.assert_allclose(causal, masked, rtol=1e-5)


def test_modules_of_pytorch_tensors() -> None:
    torch = pytest.importorskip("torch")

    class Net(nn.Module):
        def __init__(self) -> None:
            self.fc, self.cache = nn.Linear(3, 3), nn.KVCache(2, [3])

        def forward(self, x: Any, n: Any) -> Any:
            self.cache.append(self.fc(x))
            return self.cache.view(n)

        def parts(self, pair: Any) -> Any:
            return [pair[0] + pair[1], pair[0]]

    net = Net()
    spec = {"forward": {"x": nn.spec.Tensor((1, 3)), "n": int}, "parts": {"pair": (X, X)}}
    with pytest.raises(DeclarationError, match=r"jit: parameters without values: fc\.weight, fc\.bias"):
        net.jit(spec)
    layer = torch.nn.Linear(3, 3)
    net.load_state_dict({f"fc.{name}": one.detach().numpy() for name, one in layer.state_dict().items()})
    model = net.jit(spec, debug=True)
    rows = torch.rand(3, 3)
    for n in (1, 2, 3):
        found = model["forward"](rows[n - 1 : n], n)
    assert isinstance(found, torch.Tensor) and torch.allclose(found, layer(rows), atol=1e-6)
    total, first = model["parts"]((rows[:2], rows[1:]))
    assert torch.equal(total, rows[:2] + rows[1:]) and torch.equal(first, rows[:2])
    with pytest.raises(ArgumentError, match="there is no method 'other'; there are forward, parts"):
        model["other"]
    with pytest.raises(ArgumentError, match=r"jit: argument n is int, not float"):
        model["forward"](rows[:1], 1.0)
    with pytest.raises(ArgumentError, match=r"jit: forward\(x: Tensor\(\[1, 3\], 'float32'\), n: int\) gets 1 arguments"):
        model["forward"](rows[:1])
    with pytest.raises(DeclarationError, match='out_format is "torch"'):
        net.jit(spec, out_format="numpy")
