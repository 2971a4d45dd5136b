"""Programs of PyTorch: imported, built and run, they compute what PyTorch does."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensorexpr import relax
from tensorexpr.errors import DeclarationError
from tensorexpr.frontend.torch import dynamo_capture_subgraphs, from_exported_program, from_fx, relax_dynamo
from tensorexpr.relax.evaluator import Evaluator

torch: Any = pytest.importorskip("torch", reason="programs of PyTorch are read by PyTorch")
F = torch.nn.functional


class Wrapped(torch.nn.Module):  # type: ignore[misc]
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def exported(module: Any, *args: Any, **options: Any) -> Any:
    with torch.no_grad():
        return torch.export.export(module.eval(), args, **options)


def arrays_of(value: Any) -> list[Any]:
    """All tensors of a result in order."""
    if hasattr(value, "numpy"):
        return [value.numpy()]
    if isinstance(value, np.ndarray):
        return [value]
    return [found for one in value for found in arrays_of(one)] if isinstance(value, (list, tuple)) else []


def check(module: Any, *args: Any, tolerance: float = 2e-5) -> None:
    """A module agrees with its graph as the virtual machine runs it."""
    mod = from_exported_program(exported(module, *args))
    compare(relax.VirtualMachine(relax.build(mod, "llvm"))["main"](*(one.numpy() for one in args)), module, args, tolerance)


def compare(result: Any, module: Any, args: Any, tolerance: float = 2e-5) -> None:
    """A result is what the module gives."""
    with torch.no_grad():
        wanted = arrays_of(module.eval()(*args))
    found = arrays_of(result)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def numbers(*shape: int) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


X, Y = numbers(3, 4), numbers(4)
IMAGE = numbers(2, 6, 7, 8)
WHOLE = torch.arange(12).reshape(3, 4) - 5

# Small functions of one or two tensors, by what is special about them.
ELEMENTWISE: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "scaled add": (lambda x, y: torch.add(x, y, alpha=2) - 3 * y + torch.rsub(x, y), (X, Y)),
    "integers become floats": (lambda x: (torch.sqrt(x.abs()), x / 2, x + 0.5, torch.sigmoid(x)), (WHOLE,)),
    "kinds of quotients": (lambda x: (x // 3, torch.div(x, 3, rounding_mode="trunc"), x % 4, torch.remainder(x, -3)), (WHOLE * 1.0,)),
    "quotients of integers": (lambda x: (x // 3, x % 4, torch.remainder(x, -3)), (WHOLE,)),
    "powers": (lambda x: (x**2, x.abs() ** 0.5, 2.0**x, x.abs() ** 1.5, torch.exp2(x)), (X,)),
    "comparisons": (lambda x, y: ((x > y) & (x < 1), x.eq(0.0), ~(x >= y), torch.where(x > y, x, y)), (X, Y)),
    "limits": (lambda x: (x.clamp(-0.5, 0.5), x.clamp(min=0.1), x.clamp(max=0.1), F.relu6(4 * x), F.hardtanh(x)), (X,)),
    "activations": (lambda x: (F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.mish(x), F.softsign(x)), (X,)),
    "more activations": (lambda x: (F.hardswish(x), F.hardsigmoid(x), F.elu(x), F.selu(x), F.celu(x), F.leaky_relu(x, 0.2)), (X,)),
    "softplus of large numbers": (lambda x: F.softplus(x, beta=2.0, threshold=3), (X * 40,)),
    "casts": (lambda x: (x.to(torch.int32), x.double() + 1, x.half().float(), x.bool().int()), (X,)),
    "logarithms": (lambda x: (x.abs().log(), x.abs().log2(), x.abs().log10(), x.abs().rsqrt()), (X,)),
    "small and large": (lambda x: (x.log1p() * 1e6, x.expm1() * 1e6), (torch.tensor([0.0, 1e-9, -1e-7, 3e-4, -0.4]),)),
    "far from 0": (lambda x: (x.abs().log1p(), x.expm1()), (torch.tensor([50.0, -200.0, 1.5, -0.999]),)),
    "sums": (lambda x: (x.sum(), x.mean(0), x.sum((0, 1), keepdim=True), x.amax(1), x.amin(0), x.prod(1)), (X,)),
    "places": (lambda x: (x.argmax(1), x.argmin(), *x.max(1), *x.min(0, keepdim=True)), (X,)),
    "truths": (lambda x: ((x > 0).any(1), (x > -9).all(), (x > 0).sum(0)), (X,)),
    "spreads": (lambda x: (x.var(1), x.std(), x.var(0, correction=0), torch.var_mean(x, 1), x.norm(), x.norm(1, dim=1)), (X,)),
    "running sums": (lambda x: x.cumsum(1), (X,)),
}
MOVING: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "shapes": (lambda x: (x.view(2, 6), x.reshape(-1), x.unsqueeze(1).squeeze(1), x.t(), x[None].transpose(0, -1)), (X,)),
    "parts": (lambda x: (x[1], x[:, 1:3], x[..., -1], x[::2], x.narrow(1, 1, 2), x.select(0, -1)), (X,)),
    "splits": (lambda x: (*x.split(2), *x.chunk(3, 1), *x.split([1, 2], 0), *x.unbind(0)), (X,)),
    "joins": (lambda x, y: (torch.cat([x, y[None]]), torch.stack([x, x], 1), torch.cat([x, x], -1)), (X, Y)),
    "repetitions": (lambda x: (x.expand(2, 3, 4), x.repeat(2, 1, 3), x[:1].expand(5, -1)), (X,)),
    "turns of nothing and by whole lengths": (lambda x: (x[:0].roll(2, 0), x.roll(3, 0), x.roll((1, -1), (0, 1))), (X,)),
    "orders": (lambda x: (x.permute(1, 0), x.flip(0, 1), x.roll(1, 0), x.roll(-2), x.movedim(0, 1)), (X,)),
    "gathers": (lambda x: (x[torch.tensor([2, 0, -1])], x[:, torch.tensor([1, 1])], x.index_select(1, torch.tensor([3, 0]))), (X,)),
    "places of several axes": (lambda x: (x[torch.tensor([2, 0]), torch.tensor([1, -1])], x.gather(1, torch.tensor([[0], [3]]))), (X,)),
    "diagonals": (lambda x: (torch.einsum("ii", x[:, :3]), torch.einsum("ii->i", x.t()[:3].t()), x.t().contiguous().t().diagonal(1)), (X,)),
    "views of memory": (lambda x: (x.as_strided((2, 3), (1, 2), 1), x.t().as_strided((2, 2), (4, 2)), x.as_strided((), ())), (X,)),
    "scattered where a mask says": (lambda x, y: (x.masked_scatter(x > 0, x * 2), x.masked_scatter(y > 0, -x)), (X, Y)),
    "triangles": (lambda x: (x.tril(), x.triu(1)), (X,)),
    "borders": (lambda x: (F.pad(x, (1, 2, 0, 1)), F.pad(x, (1, 0), value=3.0), F.pad(x[None], (1, 1), mode="replicate")), (X,)),
    "made tensors": (lambda x: (torch.zeros_like(x), torch.full((2,), 3.0) + x[0, 0], torch.arange(4) + x, torch.ones(3, 1) * x), (X,)),
    "replaced parts": (lambda x: (replaced(x), torch.zeros(3, 4).scatter(1, torch.tensor([[1], [0], [2]]), x)), (X,)),
    "order by size": (lambda x: (*x.topk(2), *x.sort(1, descending=True)), (X,)),
    "pixels": (lambda x: F.pixel_shuffle(x.reshape(1, 4, 7, 24), 2), (IMAGE[:1].repeat(1, 2, 1, 1)[:, :12],)),
}
INDICES = torch.tensor([[0, 2], [1, 1]])
CUBE = numbers(2, 3, 4)
SORTED = torch.tensor([-1.0, 0.0, 1.0])
PLACED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "axes side by side": (lambda x: (x[:, INDICES, torch.tensor([1, -1])], x[:, [[0], [2]], [1, 3, 0]], x[:, None, [0, 2]]), (CUBE,)),
    "axes apart": (lambda x: x[torch.tensor([0, 1]), :, INDICES], (CUBE,)),
    "written": (
        lambda x: (placed(x, 7.0, [1]), placed(x, CUBE[0], [1]), placed(x, IMAGE[:, :2, 0, :3], [0, 1], slice(None), INDICES)),
        (CUBE,),
    ),
    "added": (lambda x: x.index_put((torch.tensor([0, 1, 1]), torch.tensor([2, 0, 0])), X, accumulate=True), (CUBE,)),
    "written where a mask says": (lambda x: (placed(x, 0.5, x > 0), placed(x, Y, x[..., 0] > 0)), (CUBE,)),
    "taken where a mask says": (lambda x: (x[x > 0] * 2, x[x[..., 0] > 0], torch.nonzero(x > 0)), (CUBE,)),
    "steps": (lambda x: (placed(x, 1.0, slice(None), slice(0, 3, 2)), placed(x, 1.0, ..., slice(1, None, 3))), (CUBE,)),
    "along an axis": (
        lambda x: (x.index_add(1, INDICES[0], x[:, :2]), x.index_copy(1, INDICES[0], x[:, :2]), x.index_fill(2, INDICES[0], 3.0)),
        (CUBE,),
    ),
    "joined": (
        lambda x: (joined(x, "amax"), joined(x, "prod"), joined(x, "sum"), x.scatter_add(1, x[:, :2].argsort(1), CUBE[:, :2])),
        (CUBE,),
    ),
    "angles": (lambda x: (torch.atan2(x, x.flip(0)), torch.hypot(x, CUBE[0]), torch.copysign(x, CUBE[:1])), (CUBE,)),
    "distances": (lambda x: (torch.cdist(x, x + 1), torch.cdist(x, x[:, :2], p=1.0)), (CUBE,)),
    "middles": (lambda x: (*x.median(1), *x.kthvalue(2, -1, keepdim=True), x.median()), (CUBE,)),
    "products": (lambda x: (x.cumprod(1), torch.linalg.det(x[..., :3]), (WHOLE << 2) + (WHOLE >> 1)), (CUBE,)),
    "grids": (lambda x: (*torch.meshgrid(x, x[:2], indexing="ij"), *torch.meshgrid(x, x[:2], indexing="xy")), (Y,)),
    "sorted places": (lambda x: (torch.searchsorted(SORTED, x), torch.searchsorted(SORTED, x, right=True)), (CUBE,)),
    "slopes": (lambda x: (F.prelu(x, torch.tensor([0.2])), F.prelu(x, torch.tensor([0.2, 0.3, 0.4]))), (CUBE,)),
    "places of pooling": (lambda x: F.max_pool2d(x, 2, return_indices=True), (IMAGE[:1],)),
    "groups of heads": (lambda x: F.scaled_dot_product_attention(x, x[:, :2], x[:, :2], enable_gqa=True), (IMAGE,)),
}
LAYERS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "conv with groups": (torch.nn.Conv2d(6, 4, 3, stride=2, padding=1, groups=2), (IMAGE,)),
    "conv same": (torch.nn.Conv2d(6, 4, (2, 3), padding="same", dilation=2, bias=False), (IMAGE,)),
    "conv without a batch": (torch.nn.Conv2d(6, 4, 1), (IMAGE[0],)),
    "conv1d": (torch.nn.Conv1d(6, 4, 3, padding=1), (IMAGE[:, :, 0],)),
    "conv transposed": (torch.nn.ConvTranspose2d(6, 4, 3, stride=2, padding=1, output_padding=1), (IMAGE,)),
    "max pool": (torch.nn.MaxPool2d(3, 2, padding=1, ceil_mode=True), (IMAGE,)),
    "mean pool": (torch.nn.AvgPool2d(3, 2, padding=1, count_include_pad=False), (IMAGE,)),
    "adaptive pool": (torch.nn.AdaptiveAvgPool2d((3, None)), (IMAGE,)),
    "batch norm": (torch.nn.BatchNorm2d(6, eps=1e-3), (IMAGE,)),
    "group norm": (torch.nn.GroupNorm(3, 6), (IMAGE,)),
    "instance norm": (torch.nn.InstanceNorm2d(6), (IMAGE,)),
    "layer norm": (torch.nn.LayerNorm([7, 8]), (IMAGE,)),
    "rms norm": (torch.nn.RMSNorm(8), (IMAGE,)),
    "rms norm of small float64": (torch.nn.RMSNorm(8, dtype=torch.float64), (IMAGE.double() * 1e-5,)),
    "rms norm without an epsilon": (torch.nn.RMSNorm(8, eps=0.0), (IMAGE * 1e-5,)),
    "embedding": (torch.nn.Embedding(10, 3), (torch.tensor([[1, 9], [0, 3]]),)),
    "bilinear": (torch.nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), (IMAGE,)),
    "nearest": (torch.nn.Upsample(size=(10, 12)), (IMAGE,)),
}


def replaced(x: Any) -> Any:
    made = x * 2
    made[:, 1] = 7.0
    made[1:, 2:] += 1
    return made


def placed(x: Any, value: Any, *places: Any) -> Any:
    made = x.clone()
    made[tuple(torch.tensor(one) if isinstance(one, list) else one for one in places)] = value
    return made


def joined(x: Any, how: str) -> Any:
    return x.scatter_reduce(1, torch.zeros(2, 2, 4, dtype=torch.long), CUBE[:, :2], how)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_an_operator(name: str) -> None:
    function, args = ELEMENTWISE[name]
    check(Wrapped(function), *args)


@pytest.mark.parametrize("name", [*MOVING, *PLACED])
def test_what_moves_elements(name: str) -> None:
    """By the meaning of the graph: what its operators compute as kernels isn't PyTorch's business."""
    function, args = {**MOVING, **PLACED}[name]
    mod = from_exported_program(exported(Wrapped(function), *args))
    compare(Evaluator(mod)("main", *(one.numpy() for one in args)), Wrapped(function), args)


def test_what_has_no_converter_is_named() -> None:
    with pytest.raises(DeclarationError, match=r"without a converter: prims.bessel_j0.default; give them by custom_convert_map"):
        from_exported_program(exported(Wrapped(lambda x: torch.special.bessel_j0(x)), X))


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer(name: str) -> None:
    module, args = LAYERS[name]
    for value in module.state_dict().values():  # statistics and scales that aren't those of a new module
        if value.dtype.is_floating_point:
            value.add_(0.1 + 0.2 * torch.rand(value.shape))
    check(module, *args)


class Attention(torch.nn.Module):  # type: ignore[misc]
    """A layer of BERT by hand, with a mask that is added."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (torch.nn.Linear(width, width) for _ in range(4))
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, x: Any, mask: Any) -> Any:
        n, tokens, width = x.shape
        q, k, v = (one(x).view(n, tokens, self.heads, -1).transpose(1, 2) for one in (self.q, self.k, self.v))
        scores = q @ k.transpose(-1, -2) / math.sqrt(width // self.heads) + mask
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, tokens, width)
        return self.norm(x + self.o(mixed))


def test_a_layer_of_a_transformer_by_hand_and_by_pytorch() -> None:
    x = numbers(2, 5, 8)
    mask = torch.where(torch.tensor([True, True, False, True, True]), 0.0, -1e4).expand(2, 1, 1, 5)
    check(Attention(8, 2), x, mask)
    check(torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu"), x)


@pytest.mark.parametrize("how", ["causal", "truth", "added"])
def test_attention_with_masks(how: str) -> None:
    q, k = numbers(1, 2, 4, 8), numbers(1, 2, 6, 8)
    masks = {"truth": torch.ones(4, 6).tril(2).bool(), "added": numbers(4, 6)}
    check(Wrapped(lambda a, b: F.scaled_dot_product_attention(a, b, b, masks.get(how), is_causal=how == "causal")), q, k)


class Classifier(torch.nn.Module):  # type: ignore[misc]
    """What classifiers are made of: a stem, a residual block with depthwise convolutions, joined branches, a head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, 2, 1, bias=False), torch.nn.BatchNorm2d(8), torch.nn.ReLU6(inplace=True))
        self.deep = torch.nn.Sequential(
            torch.nn.Conv2d(8, 8, 3, 1, 1, groups=8), torch.nn.Hardswish(inplace=True), torch.nn.Conv2d(8, 8, 1)
        )
        self.gate = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Conv2d(8, 8, 1), torch.nn.Hardsigmoid())
        self.head = torch.nn.Sequential(torch.nn.Dropout(0.2), torch.nn.Linear(16, 5))

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        x = F.max_pool2d(x + self.deep(x) * self.gate(x), 2)
        x = torch.cat([x, F.relu(x, inplace=False)], 1)
        return F.log_softmax(self.head(x.mean((2, 3)).flatten(1)), dim=-1)


def test_a_classifier_by_every_door() -> None:
    """An exported program, a traced module, and torch.compile."""
    module, x = Classifier().eval(), numbers(2, 3, 12, 12)
    for value in module.stem[1].buffers():
        if value.dtype.is_floating_point:
            value.add_(0.3)
    check(module, x)
    with torch.no_grad():
        wanted = module(x).numpy()
    traced = from_fx(torch.fx.symbolic_trace(module), [((2, 3, 12, 12), "float32")])
    found = relax.VirtualMachine(relax.build(traced, "llvm"))["main"](x.numpy())
    np.testing.assert_allclose(found.numpy(), wanted, rtol=2e-5, atol=2e-5)
    torch._dynamo.reset()
    compiled = torch.compile(module, backend=relax_dynamo())
    with torch.no_grad():
        np.testing.assert_allclose(compiled(x).numpy(), wanted, rtol=2e-5, atol=2e-5)
        np.testing.assert_allclose(compiled(x[:1]).numpy(), wanted[:1], rtol=2e-5, atol=2e-5)
        module.head[1].bias.add_(1.0)  # changed weights are noticed
        np.testing.assert_allclose(compiled(x).numpy(), module(x).numpy(), rtol=2e-5, atol=2e-5)


class Scaled(torch.nn.Module):  # type: ignore[misc]
    scale = 0.5

    def forward(self, x: Any) -> Any:
        return x.relu() * self.scale


def test_numbers_that_pytorch_leaves_open_are_those_of_the_call() -> None:
    module, x = Scaled(), numbers(2, 3)
    torch._dynamo.reset()
    compiled = torch.compile(module, backend=relax_dynamo(), dynamic=True)
    for scale in (0.5, 0.25, 0.5):
        module.scale = scale
        np.testing.assert_array_equal(compiled(x).numpy(), module(x).numpy())


def test_weights_in_the_place_of_others_that_are_gone() -> None:
    """A new tensor often has the address of one that was freed, and as few changes; it is another weight all the same."""
    graphs: list[Any] = []

    def keep(graph_module: Any, example_inputs: Any) -> Any:
        graphs.append((relax_dynamo()(graph_module, example_inputs), [one is module.weight for one in example_inputs]))
        return graph_module.forward

    module, x = torch.nn.Linear(3, 3, bias=False), numbers(2, 3)
    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(module, backend=keep)(x)
        ((compiled, is_weight),) = graphs
        assert sorted(is_weight) == [False, True]
        for scale in (1.0, 2.0):
            weight = torch.eye(3) * scale
            (found,) = compiled(*(weight if one else x for one in is_weight))
            np.testing.assert_allclose(found.numpy(), x.numpy() * scale, rtol=1e-5)
            del weight


def test_graphs_are_captured() -> None:
    mod = dynamo_capture_subgraphs(Wrapped(lambda x: torch.relu(x) + 1), X)
    found = relax.VirtualMachine(relax.build(mod, "llvm"))["subgraph_0"](X.numpy())
    np.testing.assert_allclose(found.numpy(), np.maximum(X.numpy(), 0) + 1)


def test_sizes_may_be_symbols() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.GELU(), torch.nn.LayerNorm(6), torch.nn.Flatten())
    program = exported(module, numbers(3, 2, 4), dynamic_shapes=({0: torch.export.Dim("n", min=2, max=64)},))
    machine = relax.VirtualMachine(relax.build(from_exported_program(program, unwrap_unit_return_tuple=True), "llvm"))
    for count in (2, 5):
        x = numbers(count, 2, 4)
        with torch.no_grad():
            np.testing.assert_allclose(machine["main"](x.numpy()).numpy(), module(x).numpy(), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("shift", [3, -1, 0])
def test_turns_of_a_size_that_is_a_symbol(shift: int) -> None:
    module = Wrapped(lambda x: (x.roll(shift, 0), x.roll(shift), x[1:], x[-2:], x[::2]))
    mod = from_exported_program(exported(module, numbers(6, 3), dynamic_shapes=(({0: torch.export.Dim("n", min=4)},),)))
    machine = relax.VirtualMachine(relax.build(mod, "llvm"))
    for rows in (4, 5, 9):
        x = numbers(rows, 3)
        for found, wanted in zip(arrays_of(machine["main"](x.numpy())), module(x), strict=True):
            np.testing.assert_array_equal(found, wanted.numpy())


def test_weights_may_stay_parameters() -> None:
    module = torch.nn.Linear(4, 2)
    mod = from_exported_program(exported(module, X), keep_params_as_input=True, unwrap_unit_return_tuple=True)
    func = mod["main"]
    assert func.attrs["num_input"] == 1 and [one.name_hint for one in func.params] == ["input", "p_weight", "p_bias"]
    found = relax.VirtualMachine(relax.build(mod, "llvm"))["main"](X.numpy(), *func.attrs["params"])
    np.testing.assert_allclose(found.numpy(), module(X).detach().numpy(), rtol=1e-5, atol=1e-5)


def test_bfloat16_weights_keep_their_bits() -> None:
    module = torch.nn.Linear(4, 2).to(torch.bfloat16)
    func = from_exported_program(exported(module, X.to(torch.bfloat16)), keep_params_as_input=True)["main"]
    assert str(func.attrs["params"][0].dtype) == "bfloat16"
    assert (func.attrs["params"][0].numpy().astype(np.float32) == module.weight.detach().float().numpy()).all()


def test_results_are_a_tuple_unless_asked_otherwise() -> None:
    program = exported(Wrapped(torch.relu), X)
    several: Any = from_exported_program(program)["main"]
    single: Any = from_exported_program(program, unwrap_unit_return_tuple=True)["main"]
    assert isinstance(several.ret_struct_info, relax.TupleStructInfo) and isinstance(single.ret_struct_info, relax.TensorStructInfo)


def test_what_cannot_be_read_is_said() -> None:
    with pytest.raises(DeclarationError, match=r"bessel_j0.*bessel_j1.*custom_convert_map"):
        from_exported_program(exported(Wrapped(lambda x: torch.special.bessel_j0(x) + torch.special.bessel_j1(x)), X))
    with pytest.raises(DeclarationError, match="evaluation mode"):
        norm = torch.nn.BatchNorm1d(4).train()
        from_exported_program(torch.export.export(norm, (X,)))
    with pytest.raises(DeclarationError, match="input_info"):
        from_fx(Wrapped(torch.relu), [(3, 4)])  # type: ignore[list-item]


def test_own_converters_come_first() -> None:
    own = {"relu.default": lambda c, x: c.op("negative", x)}
    mod = from_exported_program(exported(Wrapped(torch.relu), X), custom_convert_map=own, unwrap_unit_return_tuple=True)
    assert "R.negative" in mod.script() and "relu" not in mod.script()


def test_views_of_memory_that_is_not_theirs() -> None:
    with pytest.raises(DeclarationError, match="reaches elements of the memory that aren't its tensor's"):
        from_exported_program(exported(Wrapped(lambda x: x[:, :2].as_strided((2, 3), (4, 1))), X))


def test_training_drops_by_a_seed() -> None:
    class Drops(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return torch.ops.aten.native_dropout(x, 0.5, True)

    with torch.no_grad():
        mod = from_exported_program(torch.export.export(Drops(), (X,)))
    kept, mask = arrays_of(relax.VirtualMachine(relax.build(mod, "llvm"))["main"](X.numpy(), np.array(1, "int64")))
    np.testing.assert_array_equal(kept, X.numpy() * mask * 2)
    assert mask.dtype == "bool" and mask.any() and not mask.all()
