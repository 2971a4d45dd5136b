"""Programs of PyTorch as people write them: masks, numbers that are read, states, open sizes, losses; graphs mean what PyTorch computes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from tensorexpr import relax
from tensorexpr.errors import ArgumentError, DeclarationError
from tensorexpr.frontend.torch import from_exported_program
from tensorexpr.relax.evaluator import Evaluator

torch: Any = pytest.importorskip("torch", reason="programs of PyTorch are read by PyTorch")
from .test_torch import F, Wrapped, arrays_of, compare, exported, numbers  # noqa: E402  # which asks for PyTorch, too

X, CUBE = numbers(3, 4), numbers(3, 4, 2)
PLACES, CLASSES = torch.tensor([0, 2]), torch.tensor([0, 3, 1])
COMPLEX = torch.complex(X, numbers(4, 3).reshape(3, 4))
SORTED = torch.tensor([-1.0, 0.0, 1.0])


def assigned(x: Any, places: Any, mask: Any) -> Any:
    y = x.clone()
    y[places] = 1
    y[mask] = 0
    y[places, places] = torch.tensor([5.0, 6])
    y[mask[:, 0]] *= 2
    y[mask[:, 0], 1] = 3
    return y


def counted(x: Any, n: Any) -> Any:
    count = n.item()
    torch._check(count >= 0)
    torch._check(count <= 4)
    return x[:, :count].sum(1), torch.full((count,), count) + 1


def quantized(x: Any) -> Any:
    import torch.ao.quantization.fx._decomposed

    scale, zero = torch.ops.quantized_decomposed.choose_qparams(x, -128, 127, 1e-5, torch.int8)
    return torch.ops.quantized_decomposed.quantize_per_tensor.tensor(x, scale, zero, -128, 127, torch.int8), scale, zero


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "frexp": (
        lambda x: (*torch.frexp(x), *torch.frexp(x.double() * 1e-300), *torch.frexp(x.clip(-6e4, 6e4).half())),
        (torch.tensor([0.0, -0.0, 1.0, 0.5, -3.7, 1e-40, -3e38, 65504, 6e-8, 1.2e-10, math.inf, -math.inf, math.nan]),),
    ),
    "digits": (lambda x: (x.round(decimals=1), (x * 300).round(decimals=-2)), (X,)),
    "places of truth": (lambda x: (torch.where(x > 0), x[torch.where(x[:, 0] > 0)]), (X,)),
    "masks beside other indices": (lambda x, m: (x[m, 0], x[:, m[0]], x[m[:, 0]], x[PLACES, :, :][:, m[0]]), (CUBE, X > 0)),
    "written by masks": (assigned, (X, PLACES, X > 0)),
    "filled in place": (lambda x: ((x * 2).fill_diagonal_(0.5), (x + 1).fill_(2.0), (x + 1).fill_(x[0, 0])), (X,)),
    "a place that a tensor says": (lambda x, i: (x[i[0]], x[:, i[1]], x[i[0], i[1]]), (X, torch.tensor([1, -1]))),
    "as many as a tensor says": (counted, (X, torch.tensor(2))),
    "a factor that a tensor says": (lambda x, n: x * n.item() + n.item(), (X, torch.tensor(2.5))),
    "parts that a tensor says": (lambda x, n: torch.cat([x[:, :one] for one in n.tolist()], 1), (X, torch.tensor([1, 2]))),
    "bits": (lambda x: (x.view(torch.int32), x.half().view(torch.int16), x.view(torch.int32).view(torch.float32)), (X,)),
    "sorted": (
        lambda x: (torch.searchsorted(SORTED, 0.3), torch.searchsorted(SORTED, x, side="right"), torch.bucketize(0, SORTED),
                   torch.searchsorted(SORTED.flip(0), x, sorter=torch.tensor([2, 1, 0]))), (X.int(),),
    ),
    "weighed": (lambda x: (*torch.histogram(x, 4), *torch.histogram(x, 3, range=(-1.0, 1.0), weight=x.abs(), density=True)), (X,)),
    "windows": (lambda x: (torch.kaiser_window(4) * x, torch.blackman_window(4), torch.bartlett_window(3)), (X,)),
    "segments": (
        lambda x, n: [torch.segment_reduce(x, how, lengths=n) for how in ("sum", "mean", "max")] + [
            torch.segment_reduce(x, "min", offsets=torch.tensor([0, 2, 3]))], (X, torch.tensor([2, 1])),
    ),
    "losses": (
        lambda x, y: (F.nll_loss(x, y, reduction="sum"), F.nll_loss(x, y, x[0].abs(), ignore_index=3), F.cross_entropy(x, y, x[1].abs()),
                      F.cross_entropy(x, y, label_smoothing=0.1), F.cross_entropy(x, x.softmax(1), reduction="none"),
                      F.cross_entropy(x[None].mT, y[None], reduction="none"), F.cross_entropy(x[0], y[0])), (X, CLASSES),
    ),
    "ignored classes": (lambda x, y: F.cross_entropy(x, torch.where(y > 1, -100, y), reduction="sum"), (X, CLASSES)),
    "queries that see nothing": (
        lambda q, m: (F.scaled_dot_product_attention(q, q, q, m), F.scaled_dot_product_attention(q, q, q, torch.where(m, 0.0, -torch.inf))),
        (numbers(1, 2, 4, 8), torch.ones(4, 4).tril(-1).bool()),
    ),
    "quantised as it runs": (quantized, (X,)),
    "rounded to bits": (
        lambda x: (torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -8, 7),
                   torch.fake_quantize_per_channel_affine(x, x[:, 0].abs(), torch.zeros(3, dtype=torch.int32), 0, -8, 7)), (X,),
    ),
    "complex": (lambda z: torch.view_as_real(torch.cat([z.tan().flatten(), z.rsqrt().flatten(), z.prod(1), z.prod()[None]])), (COMPLEX,)),
    "complex convolutions": (lambda z: torch.view_as_real(F.conv1d(z[None], z.reshape(2, 3, 2), z[0, :2])), (COMPLEX,)),
    "made complex": (lambda z: torch.view_as_real(z.new_zeros(2) + torch.full((2,), 1 + 2j) + z[0, 0]), (COMPLEX,)),
}  # fmt: skip


def arguments(args: Any) -> list[Any]:
    return [(torch.view_as_real(one) if one.is_complex() else one).numpy() for one in args]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_programs(name: str) -> None:
    function, args = FUNCTIONS[name]
    mod = from_exported_program(exported(Wrapped(function), *args))
    compare(Evaluator(mod)("main", *arguments(args)), Wrapped(function), args, 1e-4)


def test_what_a_tensor_says_runs() -> None:
    machine = relax.VirtualMachine(relax.build(from_exported_program(exported(Wrapped(counted), X, torch.tensor(2))), "llvm"))
    for count in (2, 0, 4):
        compare(machine["main"](X.numpy(), np.array(count)), Wrapped(counted), (X, torch.tensor(count)))


def written_parts(x: Any) -> Any:
    y = x.clone()
    y[1:] = x[:-1]
    y[:, 0] = 0
    y[-1] = 5
    y[::2] += 1
    return y


AUTO = torch.export.Dim.AUTO
OPEN: dict[str, Callable[..., Any]] = {
    "parts that are written": written_parts,
    "windows": lambda x: (x.unfold(0, 2, 1), x.unfold(1, 3, 2)),
    "made": lambda x: (torch.eye(x.shape[0]), torch.full((x.shape[0],), x.shape[1]), x.std(0), x.sum() / x.shape[0] ** 0.5),
    "split": lambda x: x.split([2, x.shape[0] - 2]),
}


@pytest.mark.parametrize("name", OPEN)
def test_open_sizes(name: str) -> None:
    module = Wrapped(OPEN[name])
    mod = from_exported_program(exported(module, numbers(6, 4), dynamic_shapes=(({0: AUTO},),)))
    machine = relax.VirtualMachine(relax.build(mod, "llvm"))
    for rows in (4, 7):
        for run in (partial(Evaluator(mod), "main"), machine["main"]):
            compare(run(numbers(rows, 4).numpy()), module, (numbers(rows, 4),))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("parts", [2, 3])
def test_chunks_of_open_sizes(parts: int, axis: int) -> None:
    """How many there are the export knows, and how long they are a run."""

    def function(x: Any) -> Any:
        chunks = x.chunk(parts, axis)
        return (chunks[0] * chunks[1], *chunks, torch.cat([chunks[1], chunks[0]], axis), x.split(x.shape[axis] // parts, axis)[-1] + 1)

    extent = parts * torch.export.Dim("extent", min=2, max=9)
    module, shape = Wrapped(function), [5, 5]
    shape[axis] = 3 * parts
    mod = from_exported_program(exported(module, numbers(*shape), dynamic_shapes=(({axis: extent},),)))
    machine = relax.VirtualMachine(relax.build(mod, "llvm"))
    for size in (2, 4):
        shape[axis] = size * parts
        for run in (partial(Evaluator(mod), "main"), machine["main"]):
            compare(run(numbers(*shape).numpy()), module, (numbers(*shape),))


def test_sizes_that_are_multiples() -> None:
    """Of 4 * n alone an argument's extent says what n is."""
    rows = 4 * torch.export.Dim("rows", min=2, max=9)
    module = Wrapped(lambda x: (F.pixel_unshuffle(x, 2), x.reshape(-1, 4, 3).sum(1)))
    mod = from_exported_program(exported(module, numbers(1, 8, 6), dynamic_shapes=(({1: rows},),)))
    machine = relax.VirtualMachine(relax.build(mod, "llvm"))
    for count in (8, 12):
        x = numbers(1, count, 6)
        compare(machine["main"](x.numpy()), module, (x,))
        compare(Evaluator(mod)("main", x.numpy()), module, (x,))
    with pytest.raises(ArgumentError, match=r"is 8, not 9"):
        machine["main"](numbers(1, 9, 6).numpy())


def test_integers_that_stay_open() -> None:
    class Scaled(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any, n: int) -> Any:
            return x * n, x[:, :2] + n

    mod = from_exported_program(exported(Scaled(), X, 5, dynamic_shapes=(None, AUTO)))
    machine = relax.VirtualMachine(relax.build(mod, "llvm"))
    compare(machine["main"](X.numpy(), 7), Scaled(), (X, 7))


class Cache(torch.nn.Module):  # type: ignore[misc]
    """Keys that a buffer holds."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("keys", torch.ones(1, 6, 4))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Any, place: Any) -> Any:
        self.calls += 1
        self.keys[:, place] = x
        x.mul_(2)
        return self.keys.sum(2) * self.calls


def test_states_go_in_and_come_out() -> None:
    func: Any = (mod := from_exported_program(exported(Cache(), numbers(1, 1, 4), torch.tensor([2]))))["main"]
    assert sorted(func.attrs["writes"]) == [0, 2, 3]
    states, module = [one.numpy() for one in func.attrs["states"]], Cache()
    for place in (2, 4):
        x = numbers(1, 1, 4)
        given = [x.numpy().copy(), np.array([place]), *states]
        result, *written = arrays_of(Evaluator(mod)("main", *given))
        y = x.clone()
        np.testing.assert_allclose(result, module(y, torch.tensor([place])).numpy(), rtol=1e-5)
        by_place = dict(zip(func.attrs["writes"], written, strict=True))
        np.testing.assert_allclose(by_place[0], y.numpy())
        states = [by_place[2], by_place[3]]
    assert sorted(one.shape for one in states) == [(), (1, 6, 4)]


DRAWN: dict[str, Callable[..., Any]] = {
    "normal": lambda x: torch.randn_like(x),
    "uniform": lambda x: torch.rand(x.shape[0], 40) * 12**0.5 - 3**0.5,
    "integers": lambda x: torch.randint(0, x.shape[0], x.shape) / x.shape[0] * 12**0.5 - 3**0.5,
}


@pytest.mark.parametrize("name", DRAWN)
def test_random_numbers_of_open_sizes(name: str) -> None:
    mod = from_exported_program(exported(Wrapped(DRAWN[name]), numbers(30, 40), dynamic_shapes=(({0: AUTO},),)))
    machine = relax.VirtualMachine(relax.build(mod, "llvm"))
    for rows in (25, 50):
        (found,) = arrays_of(machine["main"](numbers(rows, 40).numpy(), np.array(3)))
        assert found.shape == (rows, 40) and len(np.unique(found)) > min(rows, 40) / 2
        np.testing.assert_allclose([found.mean(), found.std()], [0, 1], atol=0.15)


def test_random_numbers_in_loops() -> None:
    """Each turn draws others, of loops within loops, too."""
    scan: Any = torch._higher_order_ops.scan

    def turns(x: Any) -> Any:
        return scan(lambda carry, row: (carry + 0, torch.rand_like(row)), x[0], x, dim=0)[1]

    found = arrays_of(Evaluator(from_exported_program(exported(Wrapped(turns), numbers(4, 5))))("main", numbers(4, 5).numpy(), np.array(1)))
    assert len(np.unique(found[0])) == 20
    other = arrays_of(Evaluator(from_exported_program(exported(Wrapped(turns), numbers(4, 5))))("main", numbers(4, 5).numpy(), np.array(2)))
    assert (found[0] != other[0]).all()


def test_norms_of_batches_in_training_are_refused() -> None:
    with pytest.raises(DeclarationError, match=r"norm of batches takes statistics.*module\.eval"):
        from_exported_program(torch.export.export(torch.nn.BatchNorm1d(4).train(), (X,)))


def test_what_pytorch_takes_apart_wrongly_is_refused() -> None:
    with pytest.raises(DeclarationError, match="multilabel_margin_loss"):
        from_exported_program(exported(Wrapped(lambda x, y: F.multilabel_margin_loss(x, y)), X, torch.tensor([[3, 0, -1, 1]] * 3)))
